//! A condition, as Kptfiles and statuses carry it.

use serde::{Deserialize, Serialize};

/// True, False or Unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
pub enum Status {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody knows yet.
    Unknown,
}

/// A condition without time: what a Kptfile holds. `reason` is a finding's code where one caused it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
pub struct Condition {
    /// What is said to hold.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it does.
    pub status: Status,
    /// A short CamelCase word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}
