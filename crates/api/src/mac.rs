//! A MAC address.

use std::fmt;
use std::str::FromStr;

use crate::value::{BadValue, string_value};

/// Six bytes, written `02:42:c0:a8:64:32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac([u8; 6]);

impl Mac {
    /// The bytes.
    pub fn octets(self) -> [u8; 6] {
        self.0
    }
}

impl From<[u8; 6]> for Mac {
    fn from(octets: [u8; 6]) -> Self {
        Self(octets)
    }
}

impl FromStr for Mac {
    type Err = BadValue;

    fn from_str(s: &str) -> Result<Self, BadValue> {
        let bad = || {
            BadValue::new(
                "a MAC address",
                s,
                "write six pairs of hex digits with colons",
            )
        };
        let mut octets = [0; 6];
        let mut parts = s.split([':', '-']);
        for octet in &mut octets {
            let part = parts.next().filter(|p| p.len() == 2).ok_or_else(bad)?;
            *octet = u8::from_str_radix(part, 16).map_err(|_| bad())?;
        }
        if parts.next().is_some() {
            Err(bad())
        } else {
            Ok(Self(octets))
        }
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, octet) in self.0.iter().enumerate() {
            let colon = if i == 0 { "" } else { ":" };
            write!(f, "{colon}{octet:02x}")?;
        }
        Ok(())
    }
}

string_value!(
    Mac,
    "A MAC address, such as 02:42:c0:a8:64:32.",
    "pattern" = "^([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}$"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_dashes_are_normalised() {
        assert_eq!(
            "02-42-C0-a8-64-32".parse::<Mac>().unwrap().to_string(),
            "02:42:c0:a8:64:32"
        );
        for bad in [
            "",
            "02:42:c0:a8:64",
            "02:42:c0:a8:64:32:11",
            "2:42:c0:a8:64:32",
            "zz:42:c0:a8:64:32",
        ] {
            assert!(bad.parse::<Mac>().is_err(), "{bad}");
        }
    }
}
