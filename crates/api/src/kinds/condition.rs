//! A condition of a status. A Kptfile's condition has no time and is [`crate::Condition`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Condition, Status};

/// What holds of an object, since when. Time and generation are optional, because the functions of a
/// package write conditions without either.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusCondition {
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
    /// When it last changed between True, False and Unknown (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: Option<String>,
    /// The generation of the object that it speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
}

impl From<Condition> for StatusCondition {
    fn from(c: Condition) -> Self {
        Self {
            kind: c.kind,
            status: c.status,
            reason: c.reason,
            message: c.message,
            last_transition_time: None,
            observed_generation: None,
        }
    }
}
