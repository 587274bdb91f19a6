//! Conditions of a status: what held before keeps its time, and a status that says the same is not written again.

use std::fmt::Write as _;

use mooring_api::kinds::StatusCondition;
use mooring_api::{Condition, Finding, Status, Time};
use serde_json::Value;

/// A condition, without time.
pub(super) fn condition(
    kind: &str,
    holds: bool,
    reason: &str,
    message: impl Into<String>,
) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status: if holds { Status::True } else { Status::False },
        reason: reason.to_owned(),
        message: message.into(),
    }
}

/// The first error as a condition that is False: its code, its sentence and what to do.
pub(super) fn refused(kind: &str, finding: &Finding) -> Condition {
    condition(kind, false, finding.code.as_str(), sentence(finding))
}

/// What happened, where, and what to do.
pub(super) fn sentence(finding: &Finding) -> String {
    // Writing into a String cannot fail.
    let mut text = String::new();
    if let Some(location) = &finding.location {
        let _ = write!(text, "{location}: ");
    }
    if let Some(object) = &finding.object {
        let _ = write!(text, "{object}: ");
    }
    text.push_str(&finding.message);
    if !finding.help.is_empty() {
        text.push_str(". ");
        text.push_str(&finding.help);
    }
    text
}

/// A time as the API writes it.
pub(super) fn rfc3339(time: Time) -> String {
    let seconds = i64::try_from(time.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds)
        .unwrap_or_default()
        .to_string()
}

/// Conditions with time and generation. One whose status is as before keeps the time of its last change.
pub(super) fn timed(
    before: &Value,
    wanted: Vec<Condition>,
    generation: Option<i64>,
    now: Time,
) -> Vec<StatusCondition> {
    let before: Vec<StatusCondition> = before["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|c| serde_json::from_value(c.clone()).ok())
        .collect();
    let timed = |condition: Condition| {
        let same = |c: &&StatusCondition| c.kind == condition.kind && c.status == condition.status;
        let since = before
            .iter()
            .find(same)
            .and_then(|c| c.last_transition_time.clone());
        StatusCondition {
            last_transition_time: since.or_else(|| Some(rfc3339(now))),
            observed_generation: generation,
            ..StatusCondition::from(condition)
        }
    };
    wanted.into_iter().map(timed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let before = json!({ "conditions": [
            { "type": "Ready", "status": "True", "reason": "NoErrors", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z" },
        ]});
        let at = |holds| {
            let wanted = vec![condition("Ready", holds, "Other", "x")];
            timed(&before, wanted, Some(3), Time(1_700_000_000))[0]
                .last_transition_time
                .clone()
        };
        assert_eq!(at(true).as_deref(), Some("2020-01-01T00:00:00Z"));
        assert_eq!(at(false).as_deref(), Some("2023-11-14T22:13:20Z"));
    }
}
