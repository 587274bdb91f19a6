//! interface-fn: an Interface gets its claims, waits for them and for its NAD, and carries their answers.
//!
//! | cniType | networkInstance `default` | other instances |
//! |---|---|---|
//! | given | nothing | IPClaim per family, VLANClaim if tagged, the NAD's condition |
//! | absent | nothing | loopback IPClaim per family |
//!
//! Easy to get wrong: names begin with the network function, and the family policy is spelled in two ways.

use mooring_api::kinds::nephio::req::IpFamilyPolicy;
use mooring_api::{Code, Family, Finding, ObjectRef, annotation, label};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::engine::{Failure, Input, Own, Rule, Updated, Watch};
use super::kinds::{CLUSTER, INTERFACE, IP_CLAIM, NAD, VLAN_CLAIM};
use super::reference::Gvk;
use super::seen::Seen;
use super::{FOR, OWNER, VLAN_CLAIM_NAME, function_name};
use crate::bundle::{Object, map_below};

/// The pod network: whatever the cluster's own CNI gives.
pub(super) const POD_NETWORK: &str = "default";

/// For Interfaces.
pub(super) const RULE: Rule = Rule {
    subject: INTERFACE,
    owns: &[
        (NAD, Own::RemoteCondition),
        (IP_CLAIM, Own::Remote),
        (VLAN_CLAIM, Own::Remote),
    ],
    watches: &[(CLUSTER, Watch::Global)],
    root: false,
    one_per_owner: false,
    populate,
    update,
};

/// The network instance of an Interface or DataNetwork as written, and its name.
pub(super) fn network_instance(object: &Object) -> Result<(Value, &str), Failure> {
    let missing = |text: &str| Failure::new(Code::InvalidField, text).at("spec.networkInstance");
    let instance = object.value.pointer("/spec/networkInstance");
    let instance = instance.filter(|i| i.is_object());
    let instance = instance.ok_or_else(|| missing("spec invalid missing networkInstance"))?;
    let name = instance.get("name").and_then(Value::as_str);
    match name.unwrap_or_default() {
        "" => Err(missing("spec invalid: missing networkInstance name, got: ")),
        name => Ok((instance.clone(), name)),
    }
}

/// A text of the spec; absent and empty are the same.
pub(super) fn text<'a>(object: &'a Object, key: &str) -> &'a str {
    let spec = object.value.get("spec").and_then(|s| s.get(key));
    spec.and_then(Value::as_str).unwrap_or_default()
}

/// Both spellings of a policy; any other text, `none` too, is IPv4 to the published functions.
pub(super) fn families(object: &Object) -> &'static [Family] {
    let policy = json!(text(object, "ipFamilyPolicy"));
    match IpFamilyPolicy::deserialize(&policy) {
        Ok(IpFamilyPolicy::DualStack) => &[Family::V4, Family::V6],
        Ok(IpFamilyPolicy::Ipv6Only) => &[Family::V6],
        _ => &[Family::V4],
    }
}

fn populate(object: &Object, seen: &Seen) -> Result<Vec<Object>, Failure> {
    let cluster = seen.cluster()?;
    let (instance, network) = network_instance(object)?;
    if network == POD_NETWORK {
        return Ok(Vec::new());
    }
    let cni = text(object, "cniType");
    if !cni.is_empty() {
        cluster.offers(cni)?;
    }
    let stem = format!("{}-{}", function_name(object), object.name());
    let kind = if cni.is_empty() {
        "loopback"
    } else {
        "network"
    };
    let mut made = Vec::new();
    for family in families(object) {
        let mut labels = Map::new();
        labels.insert(label::ADDRESS_FAMILY.into(), json!(family));
        labels.insert(label::CLUSTER_NAME.into(), json!(cluster.name));
        if let Some(name) = object
            .annotation(label::NETWORK_NAME)
            .filter(|n| !n.is_empty())
        {
            labels.insert(label::NETWORK_NAME.into(), json!(name));
        }
        let mut claim = child(IP_CLAIM, &format!("{stem}-{family}"), object);
        let spec = json!({
            "kind": kind,
            "selector": { "matchLabels": labels },
            "networkInstance": instance,
        });
        fill(&mut claim, spec);
        made.push(claim);
    }
    if cni.is_empty() {
        return Ok(made);
    }
    if text(object, "attachmentType") == "vlan" {
        let mut claim = child(VLAN_CLAIM, &stem, object);
        let name = format!("{network}-{}-bd", cluster.name);
        claim.set_annotation(VLAN_CLAIM_NAME, &name);
        fill(&mut claim, json!({ "vlanIndex": { "name": cluster.name } }));
        made.push(claim);
    }
    made.push(child(NAD, &stem, object));
    Ok(made)
}

/// A new object for `owner`: `local-config` and the network function are handed on.
pub(super) fn child(gvk: Gvk, name: &str, owner: &Object) -> Object {
    let mut annotations = Map::new();
    if let Some(local) = owner.annotation(annotation::LOCAL_CONFIG) {
        annotations.insert(annotation::LOCAL_CONFIG.into(), json!(local));
    }
    let root = owner.annotation(FOR).or_else(|| owner.annotation(OWNER));
    annotations.insert(FOR.into(), json!(root.unwrap_or_default()));
    Object {
        value: json!({
            "apiVersion": gvk.api_version,
            "kind": gvk.kind,
            "metadata": { "name": name, "annotations": annotations },
        }),
        source: None,
    }
}

pub(super) fn fill(object: &mut Object, spec: Value) {
    let map = map_below(&mut object.value, &[]);
    map.insert("spec".into(), spec);
    map.insert("status".into(), json!({}));
}

/// The claims' answers become the Interface's status. It is built anew: an answer that changed leaves no old one
/// behind.
fn update(input: &Input<'_>) -> Result<Updated, Failure> {
    let mut object = input.object()?.clone();
    let answers: Vec<Value> = input
        .all(IP_CLAIM)
        .into_iter()
        .filter_map(|claim| claim.value.get("status"))
        .filter(|status| status.get("prefix").is_some_and(|p| !p.is_null()))
        .cloned()
        .collect();
    let vlan = input.all(VLAN_CLAIM).pop().map(|claim| {
        let status = claim.value.get("status").filter(|s| s.is_object());
        status.cloned().unwrap_or_else(|| json!({}))
    });
    let status = map_below(&mut object.value, &["status"]);
    put(
        status,
        "ipClaimStatus",
        (!answers.is_empty()).then(|| json!(answers)),
    );
    put(status, "vlanClaimStatus", vlan);
    let said = warnings(&object);
    Ok(Updated {
        object: Some(object),
        said,
    })
}

/// Sets a key where its value is new, and removes it where there is none.
pub(super) fn put(map: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    match value {
        Some(value) if map.get(key) == Some(&value) => {}
        Some(value) => drop(map.insert(key.to_owned(), value)),
        None => drop(map.shift_remove(key)),
    }
}

/// What works, but not as somebody may think.
fn warnings(object: &Object) -> Vec<Finding> {
    let reference: ObjectRef = object.reference();
    let policy = text(object, "ipFamilyPolicy");
    let read = IpFamilyPolicy::deserialize(&json!(policy));
    let mut said = Vec::new();
    if !policy.is_empty() && !matches!(read, Ok(p) if p != IpFamilyPolicy::None) {
        let text = format!("ipFamilyPolicy {policy:?} gives an IPv4 address");
        said.push(
            Finding::warning(Code::InvalidField, text)
                .on(&reference)
                .at("spec.ipFamilyPolicy")
                .help("Write ipv4-only, ipv6-only or dual-stack."),
        );
    }
    said
}
