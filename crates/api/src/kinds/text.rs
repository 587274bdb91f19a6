//! Fields that other controllers leave as an empty string where they mean "none": a claim's gateway
//! and prefix, a cluster's master interface. They read as `None`; their schemas admit the empty string.

use std::fmt::Display;
use std::str::FromStr;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

/// An absent, null or empty value is `None`.
pub(super) fn empty_is_none<'de, D, T>(d: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    match Option::<String>::deserialize(d)? {
        None => Ok(None),
        Some(text) if text.is_empty() => Ok(None),
        Some(text) => text.parse().map(Some).map_err(serde::de::Error::custom),
    }
}

/// An address, or empty.
pub(super) fn address_or_empty(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string", "nullable": true, "maxLength": 45,
        "x-kubernetes-validations": [{ "rule": "self == '' || isIP(self)",
            "message": "must be an address, such as 10.1.2.1" }]
    })
}

/// An address with its subnet length, or empty.
pub(super) fn host_cidr_or_empty(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string", "nullable": true, "maxLength": 49,
        "x-kubernetes-validations": [{ "rule": "self == '' || isCIDR(self)",
            "message": "must be an address with its subnet length, such as 10.1.2.20/24" }]
    })
}

/// The name of a network interface, or empty.
pub(super) fn if_name_or_empty(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "nullable": true, "pattern": r"^([^\s/:]{1,15})?$" })
}
