//! The versions of the protocol.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

use super::error::CniError;

/// A version of the protocol that we speak; later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// What an absent version means.
    V0_1_0,
    /// Adds VERSION.
    V0_2_0,
    /// A result with interfaces and any number of addresses.
    V0_3_0,
    /// Lists of plugins.
    V0_3_1,
    /// CHECK, and prevResult on DEL.
    V0_4_0,
    /// Addresses without their family's number.
    V1_0_0,
    /// STATUS, GC, more of interfaces and routes.
    V1_1_0,
}

impl Version {
    /// Every one, oldest first.
    pub const ALL: [Self; 7] = [
        Self::V0_1_0,
        Self::V0_2_0,
        Self::V0_3_0,
        Self::V0_3_1,
        Self::V0_4_0,
        Self::V1_0_0,
        Self::V1_1_0,
    ];

    /// The newest.
    pub const NEWEST: Self = Self::V1_1_0;

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V0_1_0 => "0.1.0",
            Self::V0_2_0 => "0.2.0",
            Self::V0_3_0 => "0.3.0",
            Self::V0_3_1 => "0.3.1",
            Self::V0_4_0 => "0.4.0",
            Self::V1_0_0 => "1.0.0",
            Self::V1_1_0 => "1.1.0",
        }
    }

    /// Whether the result is the old one: one address per family under `ip4` and `ip6`.
    pub fn has_old_result(self) -> bool {
        self < Self::V0_3_0
    }

    /// The answer to VERSION.
    pub fn supported() -> Value {
        json!({
            "cniVersion": Self::NEWEST.as_str(),
            "supportedVersions": Self::ALL.map(Self::as_str),
        })
    }

    /// All, as a person reads them.
    pub fn list() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }
}

impl FromStr for Version {
    type Err = CniError;

    /// The literal text only, as the reference library compares it; empty is the oldest.
    fn from_str(text: &str) -> Result<Self, CniError> {
        if text.is_empty() {
            return Ok(Self::V0_1_0);
        }
        let known = Self::ALL
            .into_iter()
            .find(|version| version.as_str() == text);
        known.ok_or_else(|| {
            CniError::new(CniError::VERSION, "incompatible CNI versions").with_details(format!(
                "config is {text:?}, plugin supports [{}]",
                Self::list()
            ))
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
