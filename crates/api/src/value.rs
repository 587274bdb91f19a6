//! The one error of parsing a value, and the macro that gives a value its serde and schema.

use std::fmt;

/// A string did not have the grammar of the value it was parsed as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue {
    what: &'static str,
    got: String,
    why: &'static str,
}

impl BadValue {
    /// `what` is the kind of value, `got` the text, `why` the rule that it breaks.
    pub fn new(what: &'static str, got: impl Into<String>, why: &'static str) -> Self {
        Self {
            what,
            got: got.into(),
            why,
        }
    }
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not {}: {}", self.got, self.what, self.why)
    }
}

impl std::error::Error for BadValue {}

/// Serde as a string through `FromStr` and `Display`; with kinds, a structural string schema.
macro_rules! string_value {
    ($name:ident, $doc:literal $(, $key:literal = $value:tt)*) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        #[cfg(feature = "kinds")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "description": $doc $(, $key: $value)* })
            }
        }
    };
}
pub(crate) use string_value;
