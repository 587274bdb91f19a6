//! A VLAN id that can be used: 1 to 4094.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::value::BadValue;

/// A VLAN id, 1 to 4094. 0 means "no VLAN" on the wire and 4095 is reserved, so neither is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct VlanId(u16);

impl VlanId {
    /// Lowest usable id.
    pub const MIN: Self = Self(1);
    /// Highest usable id.
    pub const MAX: Self = Self(4094);

    /// The number.
    pub fn get(self) -> u16 {
        self.0
    }
}

impl TryFrom<u16> for VlanId {
    type Error = BadValue;

    fn try_from(id: u16) -> Result<Self, BadValue> {
        if (Self::MIN.0..=Self::MAX.0).contains(&id) {
            Ok(Self(id))
        } else {
            Err(BadValue::new(
                "a VLAN id",
                id.to_string(),
                "it must lie between 1 and 4094",
            ))
        }
    }
}

impl From<VlanId> for u16 {
    fn from(v: VlanId) -> u16 {
        v.0
    }
}

impl fmt::Display for VlanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(feature = "kinds")]
impl schemars::JsonSchema for VlanId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "VlanId".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "integer", "format": "int32", "minimum": 1, "maximum": 4094,
            "description": "A VLAN id, 1 to 4094."
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_4095_are_not_vlans() {
        assert!(VlanId::try_from(0).is_err());
        assert!(VlanId::try_from(4095).is_err());
        assert_eq!(serde_json::from_str::<VlanId>("4094").unwrap(), VlanId::MAX);
    }
}
