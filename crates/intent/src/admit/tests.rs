//! The cases of `cases.yaml` as values, beside what the compiler says of the same; then who is asked and who is not.

use mooring_api::{Code, Finding};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Admission, admit};
use crate::{Answers, Inputs, Prior, allocate, compile, wants};

const GROUP: &str = "network.t-caas.telekom.com/v1alpha1";

#[derive(Deserialize)]
struct Case {
    rule: String,
    #[serde(default)]
    has: Vec<Value>,
    #[serde(default)]
    admits: Value,
    #[serde(default)]
    refuses: Value,
    #[serde(default)]
    says: String,
}

/// The cases, their objects with group and a time: what is there is of the first of January.
fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> =
        serde_saphyr::from_multiple(include_str!("cases.yaml")).expect("the cases are YAML");
    for case in &mut cases {
        for object in &mut case.has {
            dated(object, "2026-01-01T00:00:00Z");
        }
        for object in [&mut case.admits, &mut case.refuses] {
            dated(object, "2026-02-01T00:00:00Z");
        }
    }
    cases
}

fn dated(object: &mut Value, time: &str) {
    if object.is_null() {
        return;
    }
    if object["apiVersion"].is_null() {
        object["apiVersion"] = json!(GROUP);
    }
    object["metadata"]["creationTimestamp"] = json!(time);
}

fn there(cases: &[Case]) -> Vec<Value> {
    cases.iter().flat_map(|c| c.has.clone()).collect()
}

/// What the compiler says against an object beside others.
fn compiled(others: &[Value], object: &Value) -> Vec<Finding> {
    let inputs = Inputs::read(others.iter().chain([object]));
    let (answers, _) = allocate(&wants(&inputs), &Answers::default());
    let name = object["metadata"]["name"].as_str();
    let kind = object["kind"].as_str();
    let all = compile(&inputs, &answers, &Prior::default()).findings;
    let about = |f: &Finding| {
        let id = f.object.as_ref();
        id.map(|id| id.name.as_str()) == name && id.map(|id| id.kind.as_str()) == kind
    };
    all.into_iter()
        .filter(|f| f.is_error() && about(f))
        .collect()
}

fn messages(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|f| f.message.as_str()).collect()
}

#[test]
fn every_exclusive_key_refuses_and_admits_as_its_case_says_and_as_the_compiler_does() {
    let cases = cases();
    let there = there(&cases);
    let inputs = Inputs::read(&there);
    let (answers, _) = allocate(&wants(&inputs), &Answers::default());
    let sound = compile(&inputs, &answers, &Prior::default()).findings;
    let wrong: Vec<_> = sound.iter().filter(|f| f.is_error()).collect();
    assert!(wrong.is_empty(), "what is there is sound: {wrong:#?}");
    let mut tried = 0;
    for case in cases.iter().filter(|c| !c.says.is_empty()) {
        let rule = &case.rule;
        let Admission { refused, .. } = admit(&inputs, None, &case.refuses);
        let said = messages(&refused);
        assert!(
            said.iter().any(|m| m.starts_with(&case.says)),
            "{rule}: {said:?}"
        );
        assert!(refused.iter().all(|f| f.code == Code::Conflict), "{rule}");
        let judged = compiled(&there, &case.refuses);
        let judged = messages(&judged);
        assert!(
            said.iter().all(|m| judged.contains(m)),
            "{rule}: {said:?}, {judged:?}"
        );
        let Admission { refused, .. } = admit(&inputs, None, &case.admits);
        assert_eq!(messages(&refused), [""; 0], "{rule}");
        assert_eq!(messages(&compiled(&there, &case.admits)), [""; 0], "{rule}");
        tried += 1;
    }
    assert_eq!(tried, 19);
}

fn segment(name: &str, day: u8, group: &str, vlan: u16, rest: &Value) -> Value {
    let mut spec = json!({
        "workerGroups": [group],
        "network": { "vlanID": vlan, "vni": 20_000 + u32::from(vlan) + 5_000 * u32::from(day) },
        "interfaceName": name,
    });
    for (key, value) in rest.as_object().expect("fields") {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": GROUP, "kind": "Layer2Attachment",
        "metadata": { "name": name, "creationTimestamp": format!("2026-01-{day:02}T00:00:00Z") },
        "spec": spec,
    })
}

fn plain(name: &str, day: u8, group: &str, vlan: u16) -> Value {
    segment(name, day, group, vlan, &json!({}))
}

/// Refused and told, as messages.
fn asked(there: &[&Value], old: Option<&Value>, new: &Value) -> (Vec<String>, Vec<String>) {
    let cases = cases();
    let all = cases[0].has.iter().chain(there.iter().copied());
    let Admission { refused, told } = admit(&Inputs::read(all), old, new);
    let texts = |findings: Vec<Finding>| findings.into_iter().map(|f| f.message).collect();
    (texts(refused), texts(told))
}

#[test]
fn who_was_in_conflict_before_may_change_and_gets_no_further() {
    let (one, two) = (plain("one", 1, "a", 10), plain("two", 2, "a", 10));
    let three = plain("three", 3, "b", 10);
    let there = [&one, &two, &three];
    // The loser and the winner alike, with another MTU; and they are reminded.
    for (old, other) in [(&two, "one"), (&one, "two")] {
        let mut new = old.clone();
        new["spec"]["mtu"] = json!(9000);
        let (refused, told) = asked(&there, Some(old), &new);
        assert_eq!(refused, [""; 0]);
        assert_eq!(
            told,
            [format!("VLAN 10 belongs to Layer2Attachment/{other}")]
        );
    }
    // Onto the nodes of a third: a conflict more.
    let mut new = two.clone();
    new["spec"]["workerGroups"] = json!(["a", "b"]);
    let (refused, told) = asked(&there, Some(&two), &new);
    assert_eq!(refused, ["VLAN 10 belongs to Layer2Attachment/three"]);
    assert_eq!(told, ["VLAN 10 belongs to Layer2Attachment/one"]);
    // Out of it.
    let mut new = two.clone();
    new["spec"]["network"]["vlanID"] = json!(11);
    assert_eq!(asked(&there, Some(&two), &new).0, [""; 0]);
}

#[test]
fn an_older_object_does_not_take_what_a_newer_one_has() {
    let (old, newer) = (plain("old", 1, "a", 10), plain("newer", 2, "a", 11));
    let mut grabs = old.clone();
    grabs["spec"]["network"]["vlanID"] = json!(11);
    let (refused, _) = asked(&[&old, &newer], Some(&old), &grabs);
    assert_eq!(refused, ["VLAN 11 belongs to Layer2Attachment/newer"]);
}

#[test]
fn a_conflict_of_two_others_is_no_reason_to_refuse_a_third() {
    let (one, two) = (plain("one", 1, "a", 10), plain("two", 2, "a", 10));
    let third = plain("third", 3, "a", 11);
    assert_eq!(asked(&[&one, &two], None, &third).0, [""; 0]);
    // Nor one that it brings about: both attachments lead into one VRF by its label.
    let lead = |name: &str, day, vlan, subnet: &str| {
        let rest = json!({ "destinations": { "matchLabels": { "zone": "new" } } });
        let mut attachment = segment(name, day, "a", vlan, &rest);
        attachment["spec"]["network"]["ipv4"] = json!({ "subnet": subnet });
        attachment
    };
    let (one, two) = (
        lead("one", 1, 10, "192.168.0.0/24"),
        lead("two", 2, 11, "192.168.0.0/25"),
    );
    let destination = json!({
        "apiVersion": GROUP, "kind": "Destination",
        "metadata": { "name": "new", "labels": { "zone": "new" } },
        "spec": { "vrf": "new", "vni": 3, "routeTarget": "1:3" },
    });
    assert_eq!(asked(&[&one, &two], None, &destination).0, [""; 0]);
}

#[test]
fn what_waits_for_others_is_admitted_with_a_word() {
    let rest = json!({ "destinations": { "matchLabels": { "zone": "later" } } });
    let mut early = segment("early", 1, "a", 10, &rest);
    early["spec"]["network"]["ipv4"] = json!({ "subnet": "192.168.0.0/24" });
    let taken = plain("taken", 1, "a", 10);
    let (refused, told) = asked(&[&taken], None, &early);
    assert_eq!(refused, [""; 0]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("Destination"), "{told:?}");
}

#[test]
fn a_change_of_nothing_that_counts_asks_nobody() {
    let (one, two) = (plain("one", 1, "a", 10), plain("two", 2, "a", 10));
    let mut new = two.clone();
    new["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let nothing = (Vec::new(), Vec::new());
    assert_eq!(asked(&[&one, &two], Some(&two), &new), nothing);
}

#[test]
fn who_disputes_a_vrf_may_still_change_but_not_dispute_another() {
    let destination = |name: &str, day: u8, vrf: &str, vni: u32| {
        json!({
            "apiVersion": GROUP, "kind": "Destination",
            "metadata": { "name": name, "creationTimestamp": format!("2026-01-{day:02}T00:00:00Z") },
            "spec": { "vrf": vrf, "vni": vni, "routeTarget": format!("1:{vni}") },
        })
    };
    let (one, two) = (destination("one", 1, "v", 5), destination("two", 2, "v", 6));
    let other = destination("other", 1, "w", 8);
    let there = [&one, &two, &other];
    let moved = destination("two", 2, "v", 7);
    assert_eq!(asked(&there, Some(&two), &moved).0, [""; 0]);
    let worse = destination("two", 2, "w", 7);
    let (refused, _) = asked(&there, Some(&two), &worse);
    assert_eq!(refused.len(), 1);
    assert!(refused[0].contains("by Destination/other"), "{refused:?}");
}

#[test]
fn a_low_level_object_comes_or_stays_as_the_platform_says() {
    let mut all = cases()[0].has.clone();
    all[2]["spec"]["lowLevel"] = json!("deny");
    let low = |vni: u32| {
        json!({
            "apiVersion": GROUP, "kind": "Layer2NetworkConfiguration", "metadata": { "name": "low" },
            "spec": { "id": 5, "mtu": 1500, "vni": vni },
        })
    };
    let inputs = Inputs::read(&all);
    let new = admit(&inputs, None, &low(50));
    assert_eq!(new.refused[0].code, Code::LowLevelObject);
    let changed = admit(&inputs, Some(&low(50)), &low(51));
    assert_eq!(changed.refused, []);
    assert_eq!(changed.told[0].code, Code::LowLevelObject);
}

#[test]
fn the_thirty_first_vrf_of_a_node_is_told_and_not_refused() {
    let mut all = cases()[0].has.clone();
    let mut attachments = Vec::new();
    for n in 1..=31_u16 {
        all.push(json!({
            "apiVersion": GROUP, "kind": "Destination",
            "metadata": { "name": format!("v{n}"), "labels": { "v": format!("v{n}") } },
            "spec": { "vrf": format!("v{n}"), "vni": 5000 + n, "routeTarget": format!("1:{n}") },
        }));
        let rest = json!({ "destinations": { "matchLabels": { "v": format!("v{n}") } } });
        let mut attachment = segment(&format!("s{n}"), 1, "a", n, &rest);
        attachment["spec"]["network"]["ipv4"] = json!({ "subnet": format!("192.168.{n}.0/24") });
        attachments.push(attachment);
    }
    let last = attachments.pop().expect("there are 31");
    let inputs = Inputs::read(all.iter().chain(&attachments));
    let Admission { refused, told } = admit(&inputs, None, &last);
    assert_eq!(refused, []);
    assert_eq!(told[0].code, Code::VRFTableBudgetExceeded);
}

#[test]
fn objects_that_a_watch_puts_and_takes_are_what_a_reading_of_the_rest_gives() {
    let all = there(&cases());
    let mut followed = Inputs::default();
    for object in all.iter().chain(&all) {
        followed.put([object]);
    }
    let read = Inputs::read(&all);
    assert_eq!(format!("{followed:?}"), format!("{read:?}"));
    followed
        .forget(|id| id.kind == "Destination" || id.kind == "Node" || id.kind == "OperatorConfig");
    let rest = all.iter().filter(|o| {
        !["Destination", "Node", "OperatorConfig"].contains(&o["kind"].as_str().unwrap_or_default())
    });
    assert_eq!(format!("{followed:?}"), format!("{:?}", Inputs::read(rest)));
}
