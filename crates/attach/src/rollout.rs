//! How many pods of a workload run at once: what decides whether one static address may serve it.
//!
//! `blueprint` refuses while rendering, `verify` finds it in manifests that nobody rendered; both ask
//! here. Easy to get wrong: a Deployment that says nothing surges, and a CronJob that says nothing starts
//! a run beside one that has not ended.

use std::fmt;

use serde_json::Value;

/// The most pods that run at once by intent, and the field that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pods {
    /// How many; `u64::MAX` where a node decides.
    pub most: u64,
    /// Field of the workload.
    pub field: &'static str,
}

/// How many pods a workload asks for.
pub fn pods(workload: &Value) -> Pods {
    let number = |path: &str| workload.pointer(path).and_then(Value::as_u64).unwrap_or(1);
    let said = |most, field| Pods { most, field };
    match workload["kind"].as_str().unwrap_or_default() {
        "Pod" => said(1, "kind"),
        "DaemonSet" => said(u64::MAX, "kind"),
        "Job" => said(number("/spec/parallelism"), "spec.parallelism"),
        "CronJob" => {
            let most = number("/spec/jobTemplate/spec/parallelism");
            let policy = workload
                .pointer("/spec/concurrencyPolicy")
                .and_then(Value::as_str);
            if most == 1 && policy.unwrap_or("Allow") == "Allow" {
                return said(2, "spec.concurrencyPolicy");
            }
            said(most, "spec.jobTemplate.spec.parallelism")
        }
        _ => said(number("/spec/replicas"), "spec.replicas"),
    }
}

/// As a clause: `spec.replicas is 3`.
impl fmt::Display for Pods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            "kind" => f.write_str("a DaemonSet runs a pod on every node"),
            "spec.concurrencyPolicy" => {
                f.write_str("concurrencyPolicy Allow starts a run beside one that has not ended")
            }
            field => write!(f, "{field} is {}", self.most),
        }
    }
}

/// What a Deployment does when its pod changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// It does not say, and so it surges.
    Unsaid,
    /// The new pod starts before the old one is gone.
    Surges,
    /// The old pod goes first.
    OneByOne,
}

/// The strategy of a Deployment.
pub fn strategy(deployment: &Value) -> Strategy {
    let strategy = &deployment["spec"]["strategy"];
    let surge = strategy.pointer("/rollingUpdate/maxSurge");
    let none =
        surge.is_some_and(|s| s.as_u64() == Some(0) || matches!(s.as_str(), Some("0" | "0%")));
    if strategy.as_object().is_none_or(serde_json::Map::is_empty) {
        Strategy::Unsaid
    } else if strategy["type"] == "Recreate" || none {
        Strategy::OneByOne
    } else {
        Strategy::Surges
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_says_how_many_in_its_own_field() {
        let most = |v: Value| (pods(&v).most, pods(&v).field);
        assert_eq!(most(json!({ "kind": "Pod" })), (1, "kind"));
        assert_eq!(most(json!({ "kind": "DaemonSet" })), (u64::MAX, "kind"));
        assert_eq!(most(json!({ "kind": "Deployment" })), (1, "spec.replicas"));
        let scaled = json!({ "kind": "StatefulSet", "spec": { "replicas": 0 } });
        assert_eq!(most(scaled), (0, "spec.replicas"));
        let job = json!({ "kind": "Job", "spec": { "parallelism": 3 } });
        assert_eq!(most(job), (3, "spec.parallelism"));
    }

    #[test]
    fn a_cron_job_that_says_nothing_may_run_beside_itself() {
        let job = |spec: Value| pods(&json!({ "kind": "CronJob", "spec": spec })).most;
        assert_eq!(job(json!({})), 2);
        assert_eq!(job(json!({ "concurrencyPolicy": "Forbid" })), 1);
    }

    #[test]
    fn a_deployment_that_says_nothing_surges() {
        let of = |s: Value| strategy(&json!({ "spec": { "strategy": s } }));
        assert_eq!(of(json!({})), Strategy::Unsaid);
        assert_eq!(of(json!({ "type": "RollingUpdate" })), Strategy::Surges);
        assert_eq!(of(json!({ "type": "Recreate" })), Strategy::OneByOne);
        assert_eq!(
            of(json!({ "rollingUpdate": { "maxSurge": "0%" } })),
            Strategy::OneByOne
        );
        assert_eq!(
            of(json!({ "rollingUpdate": { "maxSurge": 1 } })),
            Strategy::Surges
        );
    }
}
