//! Statuses as values: the Ready condition, and whether a status says anything new.
//!
//! Pure. A status is written only where it differs from what stands there, so that a resync writes nothing; the time of a
//! condition moves only when True becomes False or back.

use mooring_api::Time;
use serde_json::{Map, Value, json};

/// Whether an object is ready, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) ready: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// A status with its Ready condition, made from what is to be said and what stood there.
pub(super) fn status(
    mut says: Map<String, Value>,
    verdict: &Verdict,
    generation: Option<i64>,
    before: Option<&Value>,
    now: Time,
) -> Map<String, Value> {
    let status = if verdict.ready { "True" } else { "False" };
    let stood = before.and_then(ready_of);
    let since = stood
        .filter(|c| c["status"] == status)
        .and_then(|c| c["lastTransitionTime"].as_str())
        .map_or_else(|| rfc3339(now), str::to_owned);
    let mut condition = Map::new();
    condition.insert("type".into(), json!("Ready"));
    condition.insert("status".into(), json!(status));
    condition.insert("reason".into(), json!(verdict.reason));
    condition.insert("message".into(), json!(verdict.message));
    condition.insert("lastTransitionTime".into(), json!(since));
    if let Some(generation) = generation {
        condition.insert("observedGeneration".into(), json!(generation));
    }
    says.insert("conditions".into(), json!([condition]));
    says
}

/// Whether `before` says all that `wanted` does, and nothing else under `keys`.
pub(super) fn is_same(before: Option<&Value>, wanted: &Map<String, Value>, keys: &[&str]) -> bool {
    let Some(before) = before else {
        return false;
    };
    let empty = |v: &&Value| !v.is_null() && **v != "";
    let same = |key: &&str| before.get(key).filter(empty) == wanted.get(*key).filter(empty);
    let wanted = wanted.get("conditions").and_then(|c| c.get(0));
    keys.iter().all(same) && ready_of(before) == wanted
}

/// The Ready condition of a status.
pub(super) fn ready_of(status: &Value) -> Option<&Value> {
    let conditions = status.get("conditions")?.as_array()?;
    conditions.iter().find(|c| c["type"] == "Ready")
}

fn rfc3339(time: Time) -> String {
    let seconds = i64::try_from(time.0).unwrap_or(i64::MAX);
    let stamp = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    stamp.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(ready: bool, message: &str) -> Verdict {
        Verdict {
            ready,
            reason: if ready { "Ready" } else { "PoolExhausted" },
            message: message.to_owned(),
        }
    }

    fn says(prefix: &str) -> Map<String, Value> {
        Map::from_iter([("prefix".to_owned(), json!(prefix))])
    }

    #[test]
    fn the_time_moves_with_the_status_and_not_with_the_message() {
        let first = status(Map::new(), &verdict(false, "a"), Some(1), None, Time(10));
        let first = Value::Object(first);
        let again = status(
            Map::new(),
            &verdict(false, "b"),
            Some(2),
            Some(&first),
            Time(20),
        );
        assert_eq!(
            again["conditions"][0]["lastTransitionTime"],
            "1970-01-01T00:00:10Z"
        );
        assert_eq!(again["conditions"][0]["observedGeneration"], 2);
        let ready = status(
            Map::new(),
            &verdict(true, ""),
            Some(2),
            Some(&first),
            Time(30),
        );
        assert_eq!(
            ready["conditions"][0]["lastTransitionTime"],
            "1970-01-01T00:00:30Z"
        );
    }

    #[test]
    fn a_status_that_stands_there_is_not_written_again() {
        let made = |before: Option<&Value>, prefix: &str, at| {
            status(says(prefix), &verdict(true, ""), Some(1), before, Time(at))
        };
        let stands = Value::Object(made(None, "10.0.0.1/24", 10));
        let keys = ["prefix", "gateway"];
        let again = made(Some(&stands), "10.0.0.1/24", 99);
        assert!(is_same(Some(&stands), &again, &keys));
        let moved = made(Some(&stands), "10.0.0.2/24", 99);
        assert!(!is_same(Some(&stands), &moved, &keys));
        assert!(!is_same(None, &again, &keys));
        let mut wiped = stands.clone();
        wiped["conditions"] = json!([]);
        assert!(!is_same(Some(&wiped), &again, &keys));
        let mut stale = stands.clone();
        stale["gateway"] = json!("10.0.0.1");
        assert!(!is_same(Some(&stale), &again, &keys));
        stale["gateway"] = json!("");
        assert!(
            is_same(Some(&stale), &again, &keys),
            "an empty text says nothing"
        );
    }
}
