//! What a runtime asks a plugin to do.

use std::fmt;

use super::version::Version;

/// The value of `CNI_COMMAND`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Attach, or change an attachment.
    Add,
    /// Detach, or undo a change.
    Del,
    /// Is the attachment as it was made?
    Check,
    /// Could an ADD succeed?
    Status,
    /// Remove what no valid attachment owns.
    Gc,
    /// Which versions are spoken?
    Version,
}

impl Verb {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Add,
        Self::Del,
        Self::Check,
        Self::Status,
        Self::Gc,
        Self::Version,
    ];

    /// As it stands in the environment.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Del => "DEL",
            Self::Check => "CHECK",
            Self::Status => "STATUS",
            Self::Gc => "GC",
            Self::Version => "VERSION",
        }
    }

    /// The verb of that exact name: the reference library does not fold case either.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == text)
    }

    /// The oldest configuration that knows the verb.
    pub fn since(self) -> Version {
        match self {
            Self::Add | Self::Del | Self::Version => Version::V0_1_0,
            Self::Check => Version::V0_4_0,
            Self::Status | Self::Gc => Version::V1_1_0,
        }
    }

    /// Whether it is about one container's interface.
    pub fn is_attachment(self) -> bool {
        matches!(self, Self::Add | Self::Del | Self::Check)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
