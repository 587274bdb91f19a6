//! Time as a value. Deciding rooms never read a clock: the hands do, and pass [`Time`] in.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::value::{BadValue, string_value};

/// Seconds since 1970 in UTC.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub u64);

impl Time {
    /// Later by a span.
    #[must_use]
    pub fn after(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

/// A length of time in whole seconds. Written as `90s`, `10m`, `24h`, `7d`, or a sum: `1h30m`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

impl FromStr for Span {
    type Err = BadValue;

    fn from_str(s: &str) -> Result<Self, BadValue> {
        let bad = || BadValue::new("a duration", s, "write it like 90s, 10m, 24h or 1h30m");
        if s == "0" {
            return Ok(Self(0));
        }
        let (mut total, mut number) = (0u64, String::new());
        for c in s.trim().chars() {
            if c.is_ascii_digit() {
                number.push(c);
                continue;
            }
            let (_, unit) = UNITS.iter().find(|(u, _)| *u == c).ok_or_else(bad)?;
            let count: u64 = number.parse().map_err(|_| bad())?;
            total = count
                .checked_mul(*unit)
                .and_then(|x| total.checked_add(x))
                .ok_or_else(bad)?;
            number.clear();
        }
        if number.is_empty() && !s.trim().is_empty() {
            Ok(Self(total))
        } else {
            Err(bad())
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (name, unit) in UNITS {
            if rest >= unit {
                write!(f, "{}{name}", rest / unit)?;
                rest %= unit;
            }
        }
        Ok(())
    }
}

string_value!(Span, "A duration, such as 90s, 10m or 24h.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_and_print_alike() {
        for (text, seconds) in [
            ("0", 0),
            ("90s", 90),
            ("10m", 600),
            ("1h30m", 5400),
            ("7d", 604_800),
        ] {
            assert_eq!(text.parse::<Span>().unwrap(), Span(seconds), "{text}");
        }
        assert_eq!(Span(5400).to_string(), "1h30m");
        for bad in ["", "10", "m", "10x", "99999999999999999999d"] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
    }
}
