//! The name of a network interface, by the kernel's rules.

use std::fmt;
use std::str::FromStr;

use crate::value::{BadValue, string_value};

/// 1 to 15 bytes, no slash, no colon, no white space, neither `.` nor `..` (the kernel's
/// `dev_valid_name`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IfName(String);

impl IfName {
    /// The longest name the kernel takes (IFNAMSIZ less the zero byte).
    pub const MAX: usize = 15;

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for IfName {
    type Err = BadValue;

    fn from_str(s: &str) -> Result<Self, BadValue> {
        let why = if s.is_empty() {
            "it is empty"
        } else if s.len() > Self::MAX {
            "the kernel takes at most 15 bytes"
        } else if s == "." || s == ".." {
            "the kernel refuses . and .."
        } else if s.contains(['/', ':']) || s.contains(char::is_whitespace) || s.contains('\0') {
            "the kernel refuses slashes, colons and white space"
        } else {
            return Ok(Self(s.to_owned()));
        };
        Err(BadValue::new("an interface name", s, why))
    }
}

impl fmt::Display for IfName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

string_value!(
    IfName,
    "A network interface name: at most 15 bytes, no slash, colon or white space.",
    "pattern" = r"^[^\s/:]{1,15}$"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_rules_hold() {
        for good in ["n2", "ens3.100", "l2.a", "a23456789012345"] {
            assert!(good.parse::<IfName>().is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "a b", "a:b", "a234567890123456"] {
            assert!(bad.parse::<IfName>().is_err(), "{bad}");
        }
    }
}
