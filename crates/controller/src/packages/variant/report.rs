//! What is told of a variant: its status, from what was done, and Events with what to do. Nothing is written where the
//! status says the same already.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::api::{ApiResource, DynamicObject};
use kube::{Api, ResourceExt as _};
use mooring_api::kinds::porch::{InterfaceAddress, PackageVariant};
use mooring_api::{Code, Condition, Finding};
use mooring_blueprint::Object;
use mooring_package::Report;
use mooring_package::revision::Lifecycle;
use serde_json::{Value, json};

use super::super::approval::Next;
use super::super::conditions::{condition, refused, sentence, timed};
use super::super::{PORCH, Role, reference};
use super::apply::Applied;
use crate::error::{Error, chain};

const KIND: &str = "PackageVariant";

/// What is told of a pass.
pub(super) enum Told<'a> {
    /// The variant cannot be made.
    Refused(&'a [Finding]),
    /// It was tried.
    Applied(&'a Applied, Option<Condition>),
    /// Something is away; it is tried again.
    Failed(&'a Error),
}

/// Conditions as Porch names them, then ours.
pub(super) fn conditions(told: &Told<'_>) -> Vec<Condition> {
    match told {
        Told::Refused(findings) => {
            let first = findings.iter().find(|f| f.is_error());
            let said = first.map(sentence).unwrap_or_default();
            let code = first.map_or("Invalid", |f| f.code.as_str());
            vec![
                condition("Stalled", true, "ValidationError", said.clone()),
                condition("Ready", false, code, said.clone()),
                condition("Specialised", false, code, said),
            ]
        }
        Told::Failed(error) => {
            let said = format!("{}; it is tried again", chain(*error));
            vec![
                condition("Stalled", true, error.reason(), said.clone()),
                condition("Ready", false, error.reason(), said),
            ]
        }
        Told::Applied(applied, deployed) => {
            let mut all = of(applied);
            all.extend(deployed.clone());
            all
        }
    }
}

fn of(applied: &Applied) -> Vec<Condition> {
    let valid = condition("Stalled", false, "Valid", "all validation checks passed");
    if let Some(finding) = applied.findings.iter().find(|f| f.is_error()) {
        let mut all = vec![
            valid,
            refused("Ready", finding),
            refused("Specialised", finding),
        ];
        all.extend(life(applied));
        return all;
    }
    let unmet = applied.kpt.unmet();
    // Without its gates it is not what is wanted, and this is why.
    let waits = |f: &&Finding| f.code == Code::WaitingForPackage && !unmet.is_empty();
    let waiting = applied.findings.iter().find(waits);
    if let Some(finding) = waiting.filter(|_| !applied.held) {
        let mut all = vec![
            valid,
            refused("Ready", finding),
            refused("Specialised", finding),
        ];
        all.extend(life(applied));
        return all;
    }
    let mut all = vec![
        valid,
        condition("Ready", true, "NoErrors", "the package is as wanted"),
    ];
    if applied.held {
        let help = "a draft of this was made, and somebody removed or rolled it back. Change the variant or its \
            blueprint, or take its annotation mooring.dev/last-draft away to make it again";
        all.push(condition("Specialised", false, "DraftRejected", help));
    } else {
        all.push(if unmet.is_empty() {
            condition(
                "Specialised",
                true,
                "Rendered",
                "every readiness gate is met",
            )
        } else {
            let said = format!("readiness gates are not met: {}", unmet.join(", "));
            condition("Specialised", false, "GatesNotMet", said)
        });
    }
    all.extend(life(applied));
    all
}

/// How far the newest revision is.
fn life(applied: &Applied) -> Vec<Condition> {
    let workspace = applied
        .workspace
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    let why = match &applied.next {
        Some(Next::Gates(gates)) => format!("; waits for {}", gates.join(", ")),
        Some(Next::Wait(until)) => {
            format!(
                "; waits until {}",
                super::super::conditions::rfc3339(*until)
            )
        }
        Some(Next::Person) => "; a person approves: moor package propose, then approve".to_owned(),
        Some(Next::Approve) | None => String::new(),
    };
    match applied.lifecycle {
        None => Vec::new(),
        Some(Lifecycle::Draft) => vec![
            condition(
                "Proposed",
                false,
                "Draft",
                format!("draft {workspace}{why}"),
            ),
            condition(
                "Published",
                false,
                "Draft",
                format!("draft {workspace} is not approved"),
            ),
        ],
        Some(Lifecycle::Proposed) => vec![
            condition(
                "Proposed",
                true,
                "Proposed",
                format!("{workspace} is proposed{why}"),
            ),
            condition(
                "Published",
                false,
                "Proposed",
                format!("{workspace} waits for approval"),
            ),
        ],
        Some(Lifecycle::Published) => {
            let version = applied
                .version
                .map_or_else(String::new, |v| format!(" as v{v}"));
            vec![
                condition(
                    "Proposed",
                    true,
                    "Approved",
                    "the newest revision was approved",
                ),
                condition(
                    "Published",
                    true,
                    "Published",
                    format!("the package is published{version}"),
                ),
            ]
        }
    }
}

/// What each interface has.
fn addresses(report: &Report) -> Vec<InterfaceAddress> {
    let interfaces = report.packages.iter().flat_map(|p| &p.interfaces);
    interfaces
        .flat_map(|i| {
            let texts = i
                .addresses
                .iter()
                .map(ToString::to_string)
                .chain(i.ranges.iter().cloned());
            texts
                .map(|address| InterfaceAddress {
                    interface: i.name.clone(),
                    address,
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The whole status. What a pass that failed does not know stays as it was.
fn status(object: &Object, told: &Told<'_>, before: &Value, now: mooring_api::Time) -> Value {
    let generation = object
        .value
        .pointer("/metadata/generation")
        .and_then(Value::as_i64);
    let mut wanted = conditions(told);
    let mut status = json!({});
    match told {
        Told::Applied(applied, _) if applied.lifecycle.is_some() => {
            let down = &object.value["spec"]["downstream"];
            let text = |value: &Value| value.as_str().unwrap_or_default().replace('/', ".");
            let workspace = applied.workspace.as_ref().map(ToString::to_string);
            let version = applied.version.map(|v| format!("v{v}"));
            let last = workspace.clone().or(version).unwrap_or_default();
            let error = applied.findings.iter().find(|f| f.is_error()).map(sentence);
            status = json!({
                "downstreamTargets": [{
                    "name": format!("{}.{}.{last}", text(&down["repo"]), text(&down["package"])),
                    "renderStatus": { "error": error.unwrap_or_default() },
                }],
                "lifecycle": applied.lifecycle.map(|l| l.to_string()),
                "workspace": workspace,
                "version": applied.version,
                "commit": applied.commit,
                "cluster": applied.report.packages.first().map(|p| p.cluster.clone()),
                "addresses": addresses(&applied.report),
            });
            if let Some(map) = status.as_object_mut() {
                map.retain(|_, value| !value.is_null());
            }
            if applied.report.packages.is_empty() {
                keep(&mut status, before, &["cluster", "addresses"]);
            }
        }
        Told::Applied(..) => {}
        Told::Refused(_) | Told::Failed(_) => {
            let known: Vec<String> = wanted.iter().map(|c| c.kind.clone()).collect();
            if let Some(map) = before.as_object() {
                let names: Vec<&str> = map.keys().map(String::as_str).collect();
                keep(&mut status, before, &names);
            }
            let others = before["conditions"].as_array().into_iter().flatten();
            let others = others.filter_map(|c| serde_json::from_value::<Condition>(c.clone()).ok());
            wanted.extend(others.filter(|c| !known.contains(&c.kind)));
        }
    }
    status["conditions"] = json!(timed(before, wanted, generation, now));
    status
}

fn keep(status: &mut Value, before: &Value, names: &[&str]) {
    for name in names {
        match &before[*name] {
            Value::Null => {}
            value => status[*name] = value.clone(),
        }
    }
}

impl Role {
    /// Writes the status where it changed, and publishes what happened.
    pub(super) async fn report(&self, object: &Object, told: &Told<'_>) -> Result<(), Error> {
        let before = self.written.newest(object);
        let mut status = status(object, told, &before, self.world.now());
        if let Some(map) = status.as_object_mut() {
            self.living.schemas.prune(super::DEFINITION, map);
        }
        let on = reference(object);
        if let Told::Applied(applied, _) = told {
            for (reason, note) in &applied.told {
                self.world.tell(&on, false, reason, note).await;
            }
        }
        if without_times(&before) == without_times(&status) {
            return Ok(());
        }
        let first = |findings: &[Finding]| {
            let error = findings.iter().find(|f| f.is_error());
            error.map(|f| (f.code.as_str().to_owned(), sentence(f)))
        };
        let warning = match told {
            Told::Refused(findings) => first(findings),
            Told::Applied(applied, _) => first(&applied.findings),
            Told::Failed(error) => Some((error.reason().to_owned(), chain(*error))),
        };
        match told {
            Told::Refused(findings) => self.found(KIND, findings),
            Told::Applied(applied, _) => self.found(KIND, &applied.findings),
            Told::Failed(_) => {}
        }
        if let Some((reason, note)) = warning {
            self.world.tell(&on, true, &reason, &note).await;
        }
        let applied = json!({
            "apiVersion": PORCH, "kind": KIND,
            "metadata": { "name": object.name(), "namespace": object.namespace() },
            "status": status,
        });
        let resource = ApiResource::erase::<PackageVariant>(&());
        let client = self.world.client.clone();
        let api: Api<DynamicObject> = Api::namespaced_with(client, object.namespace(), &resource);
        match self
            .world
            .apply_status(
                &api,
                object.name(),
                &applied,
                "write the status of a variant",
            )
            .await
        {
            Ok(now) => {
                self.written.note(&now);
                self.world.metrics.wrote(KIND);
            }
            // It was deleted meanwhile.
            Err(Error::Api { source, .. }) if matches!(&*source, kube::Error::Api(s) if s.code == 404) =>
                {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// The statuses that we wrote, by the uid of their object, with the version that each came to.
///
/// A pass may be given an object from before our last write, because the watch is a moment behind. Compared with that one,
/// the same status would be written again, only with other times.
#[derive(Default)]
pub(in crate::packages) struct Written(Mutex<BTreeMap<String, (u64, Value)>>);

impl Written {
    fn note(&self, object: &DynamicObject) {
        let (Some(uid), Some(version)) = (object.uid(), object.resource_version()) else {
            return;
        };
        if let Ok(version) = version.parse() {
            let status = object.data.get("status").cloned().unwrap_or_default();
            self.lock().insert(uid, (version, status));
        }
    }

    /// The status of an object: as it stands there, or as we wrote it since.
    fn newest(&self, object: &Object) -> Value {
        let text = |at: &str| object.value.pointer(at).and_then(Value::as_str);
        let seen: u64 = text("/metadata/resourceVersion")
            .and_then(|version| version.parse().ok())
            .unwrap_or_default();
        let mut written = self.lock();
        let uid = text("/metadata/uid").unwrap_or_default();
        match written.get(uid) {
            Some((version, status)) if *version > seen => return status.clone(),
            _ => written.remove(uid),
        };
        object.value.get("status").cloned().unwrap_or_default()
    }

    /// The object is gone, and no watch will show it again.
    pub(super) fn forget(&self, object: &Object) {
        let uid = object.value.pointer("/metadata/uid");
        self.lock()
            .remove(uid.and_then(Value::as_str).unwrap_or_default());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (u64, Value)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A status as it reads, whenever its conditions changed.
fn without_times(status: &Value) -> Value {
    let mut status = status.clone();
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        condition.remove("lastTransitionTime");
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u64, ready: &str) -> Value {
        json!({
            "apiVersion": PORCH, "kind": KIND,
            "metadata": { "name": "upf", "uid": "u", "resourceVersion": number.to_string() },
            "status": { "ready": ready },
        })
    }

    #[test]
    fn a_pass_over_an_older_object_knows_what_was_written_since() {
        let (written, source) = (Written::default(), None);
        let seen = |number, ready| Object {
            value: version(number, ready),
            source,
        };
        written.note(&serde_json::from_value(version(7, "yes")).unwrap());
        assert_eq!(written.newest(&seen(5, "no"))["ready"], "yes");
        // The watch has caught up: what stands there counts, whoever wrote it.
        assert_eq!(written.newest(&seen(9, "edited"))["ready"], "edited");
        assert_eq!(
            written.newest(&seen(5, "no"))["ready"],
            "no",
            "it is kept no longer than needed"
        );
        written.note(&serde_json::from_value(version(11, "gone")).unwrap());
        written.forget(&seen(9, "edited"));
        assert!(
            written.lock().is_empty(),
            "what is deleted leaves nothing behind"
        );
    }

    use mooring_api::Time;

    fn object() -> Object {
        let value = json!({ "metadata": { "generation": 2 }, "spec": { "downstream": { "repo": "edge", "package": "ran/upf" } } });
        Object {
            value,
            source: None,
        }
    }

    fn holds(status: &Value, kind: &str) -> (String, String) {
        let conditions = status["conditions"].as_array().expect("a list");
        let found = conditions
            .iter()
            .find(|c| c["type"] == kind)
            .expect("it is there");
        let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"))
    }

    #[test]
    fn a_draft_that_waits_for_a_person_says_what_to_do() {
        let applied = Applied {
            lifecycle: Some(Lifecycle::Draft),
            workspace: Some("v1".parse().expect("a workspace")),
            next: Some(Next::Person),
            ..Applied::default()
        };
        let status = status(
            &object(),
            &Told::Applied(&applied, None),
            &Value::Null,
            Time(0),
        );
        assert_eq!(holds(&status, "Ready"), ("True".into(), "NoErrors".into()));
        assert_eq!(holds(&status, "Proposed"), ("False".into(), "Draft".into()));
        assert!(status.to_string().contains("moor package propose"));
        assert_eq!(status["downstreamTargets"][0]["name"], "edge.ran.upf.v1");
    }

    #[test]
    fn a_finding_is_the_reason_and_the_package_keeps_its_state() {
        let applied = Applied {
            findings: vec![
                Finding::error(Code::PoolExhausted, "no address is left").help("Grow it."),
            ],
            lifecycle: Some(Lifecycle::Published),
            version: Some(3),
            ..Applied::default()
        };
        let before = json!({ "addresses": [{ "interface": "n2", "address": "10.0.0.1/24" }] });
        let status = status(&object(), &Told::Applied(&applied, None), &before, Time(0));
        assert_eq!(
            holds(&status, "Ready"),
            ("False".into(), "PoolExhausted".into())
        );
        assert_eq!(
            holds(&status, "Published"),
            ("True".into(), "Published".into())
        );
        assert_eq!(status["addresses"], before["addresses"]);
    }

    #[test]
    fn a_package_that_waits_for_another_one_says_so_until_its_gates_are_met() {
        let mut applied = Applied {
            findings: vec![
                Finding::warning(
                    Code::WaitingForPackage,
                    "waiting for package core-upf: it is not there",
                )
                .help("Publish it."),
            ],
            lifecycle: Some(Lifecycle::Draft),
            ..Applied::default()
        };
        applied.kpt.gates = vec!["nephio.org.Specializer.specialize".into()];
        let said = |applied: &Applied| {
            status(
                &object(),
                &Told::Applied(applied, None),
                &Value::Null,
                Time(0),
            )
        };
        let waiting = ("False".to_owned(), "WaitingForPackage".to_owned());
        assert_eq!(holds(&said(&applied), "Ready"), waiting);
        assert_eq!(holds(&said(&applied), "Specialised"), waiting);
        assert_eq!(holds(&said(&applied), "Stalled").0, "False");
        assert!(
            said(&applied)
                .to_string()
                .contains("core-upf: it is not there. Publish it.")
        );
        // What was injected before stays: nothing is missing.
        applied.kpt.gates.clear();
        assert_eq!(holds(&said(&applied), "Ready").0, "True");
    }

    #[test]
    fn git_being_away_keeps_everything_else_that_was_said() {
        let before = json!({
            "lifecycle": "Published", "version": 1,
            "conditions": [{ "type": "Published", "status": "True", "reason": "Published", "message": "x", "lastTransitionTime": "2020-01-01T00:00:00Z" }],
        });
        let error = Error::Other("no answer".into());
        let status = status(&object(), &Told::Failed(&error), &before, Time(0));
        assert_eq!(holds(&status, "Stalled"), ("True".into(), "Failed".into()));
        assert_eq!(holds(&status, "Published").0, "True");
        assert_eq!(status["version"], 1);
    }
}
