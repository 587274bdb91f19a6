//! What goes in: every object of the group, nodes, the OperatorConfig, and answers that others gave.
//!
//! Read by every hand from parsed objects. An object that breaks its schema is kept as *bad*, because it is still
//! there: if it ran before, it stays frozen.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mooring_api::kinds::mooring::{OperatorConfig, OperatorConfigSpec};
use mooring_api::kinds::schiff::{
    API_VERSION, BGPNeighbor, BGPNeighborSpec, BGPPeering, BGPPeeringSpec, Collector,
    CollectorSpec, Destination, DestinationSpec, Layer2Attachment, Layer2AttachmentSpec,
    Layer2NetworkConfiguration, Layer2NetworkConfigurationSpec, MirrorSelector, MirrorSelectorSpec,
    MirrorTarget, MirrorTargetSpec, PodNetwork, PodNetworkSpec, TrafficMirror, TrafficMirrorSpec,
    VRFAttachment, VRFAttachmentSpec, VRFRouteConfiguration, VRFRouteConfigurationSpec,
};
use mooring_api::kinds::{check, read};
use mooring_api::{Cidr, Code, Family, Finding, ObjectRef};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Answers;

/// The kinds of the group that are compiled: who follows a watch follows these.
pub const KINDS: [&str; 12] = [
    "BGPNeighbor",
    "BGPPeering",
    "Collector",
    "Destination",
    "Layer2Attachment",
    "Layer2NetworkConfiguration",
    "MirrorSelector",
    "MirrorTarget",
    "PodNetwork",
    "TrafficMirror",
    "VRFAttachment",
    "VRFRouteConfiguration",
];

/// An object with what the compiler needs of its metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct Object<S> {
    /// Which.
    pub id: ObjectRef,
    /// When it was made (RFC 3339 in UTC); files have none.
    pub created: Option<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What it says.
    pub spec: S,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Name.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Its own addresses, which no pool may hand out.
    pub addresses: Vec<IpAddr>,
}

/// Everything that is compiled together. Lists are sorted by age, then kind and name.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// The platform's choices.
    pub config: OperatorConfigSpec,
    /// Nodes by name.
    pub nodes: Vec<Node>,
    /// Destinations.
    pub destinations: Vec<Object<DestinationSpec>>,
    /// Layer2Attachments.
    pub layer2_attachments: Vec<Object<Layer2AttachmentSpec>>,
    /// VRFAttachments.
    pub vrf_attachments: Vec<Object<VRFAttachmentSpec>>,
    /// BGPNeighbors.
    pub bgp_neighbors: Vec<Object<BGPNeighborSpec>>,
    /// PodNetworks.
    pub pod_networks: Vec<Object<PodNetworkSpec>>,
    /// Collectors.
    pub collectors: Vec<Object<CollectorSpec>>,
    /// TrafficMirrors.
    pub traffic_mirrors: Vec<Object<TrafficMirrorSpec>>,
    /// Layer2NetworkConfigurations.
    pub layer2s: Vec<Object<Layer2NetworkConfigurationSpec>>,
    /// VRFRouteConfigurations.
    pub vrfs: Vec<Object<VRFRouteConfigurationSpec>>,
    /// BGPPeerings.
    pub peerings: Vec<Object<BGPPeeringSpec>>,
    /// MirrorTargets.
    pub mirror_targets: Vec<Object<MirrorTargetSpec>>,
    /// MirrorSelectors.
    pub mirror_selectors: Vec<Object<MirrorSelectorSpec>>,
    /// Objects that are there and break their schema, with what is wrong.
    pub bad: BTreeMap<ObjectRef, Vec<Finding>>,
    /// What Cluster API IPAM answered.
    pub claimed: Answers,
}

/// The API version of the OperatorConfig.
const OPERATOR: &str = "mooring.dev/v1alpha1";
/// The name of the only OperatorConfig.
const CONFIG: &str = "cluster";

/// The order in which objects count: older first; without a time of creation by kind and name.
pub(crate) fn age<S>(object: &Object<S>) -> (&str, &str, &str) {
    // A time begins with a digit, which is before this.
    let created = object.created.as_deref().unwrap_or("~");
    (created, &object.id.kind, &object.id.name)
}

impl Inputs {
    /// Reads parsed objects. Kinds that mean nothing here are passed over.
    pub fn read<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut inputs = Self::default();
        inputs.add_all(objects);
        inputs
    }

    /// Reads objects in place of those that have their names. For hands that follow a watch.
    pub fn put<'a>(&mut self, objects: impl IntoIterator<Item = &'a Value>) {
        let objects: Vec<&Value> = objects.into_iter().collect();
        let theirs: BTreeSet<ObjectRef> = objects.iter().map(|o| reference(o)).collect();
        self.forget(|id| theirs.contains(id));
        self.add_all(objects);
    }

    /// Takes out the objects that fit. What Cluster API IPAM answered stays.
    pub fn forget(&mut self, fits: impl Fn(&ObjectRef) -> bool) {
        self.destinations.retain(|o| !fits(&o.id));
        self.layer2_attachments.retain(|o| !fits(&o.id));
        self.vrf_attachments.retain(|o| !fits(&o.id));
        self.bgp_neighbors.retain(|o| !fits(&o.id));
        self.pod_networks.retain(|o| !fits(&o.id));
        self.collectors.retain(|o| !fits(&o.id));
        self.traffic_mirrors.retain(|o| !fits(&o.id));
        self.layer2s.retain(|o| !fits(&o.id));
        self.vrfs.retain(|o| !fits(&o.id));
        self.peerings.retain(|o| !fits(&o.id));
        self.mirror_targets.retain(|o| !fits(&o.id));
        self.mirror_selectors.retain(|o| !fits(&o.id));
        self.bad.retain(|id, _| !fits(id));
        let node = |name: &str| ObjectRef::new("v1", "Node", name);
        self.nodes.retain(|n| !fits(&node(&n.name)));
        if fits(&ObjectRef::new(OPERATOR, "OperatorConfig", CONFIG)) {
            self.config = OperatorConfigSpec::default();
        }
    }

    fn add_all<'a>(&mut self, objects: impl IntoIterator<Item = &'a Value>) {
        for object in objects {
            self.add(object);
        }
        self.alone();
        self.nodes.sort_by(|a, b| a.name.cmp(&b.name));
        self.destinations.sort_by(|a, b| age(a).cmp(&age(b)));
        self.layer2_attachments.sort_by(|a, b| age(a).cmp(&age(b)));
        self.vrf_attachments.sort_by(|a, b| age(a).cmp(&age(b)));
        self.bgp_neighbors.sort_by(|a, b| age(a).cmp(&age(b)));
        self.pod_networks.sort_by(|a, b| age(a).cmp(&age(b)));
        self.collectors.sort_by(|a, b| age(a).cmp(&age(b)));
        self.traffic_mirrors.sort_by(|a, b| age(a).cmp(&age(b)));
        self.layer2s.sort_by(|a, b| age(a).cmp(&age(b)));
        self.vrfs.sort_by(|a, b| age(a).cmp(&age(b)));
        self.peerings.sort_by(|a, b| age(a).cmp(&age(b)));
        self.mirror_targets.sort_by(|a, b| age(a).cmp(&age(b)));
        self.mirror_selectors.sort_by(|a, b| age(a).cmp(&age(b)));
    }

    /// Of two objects with one name neither counts, or their order would decide.
    fn alone(&mut self) {
        let bad = &mut self.bad;
        once(&mut self.destinations, bad);
        once(&mut self.layer2_attachments, bad);
        once(&mut self.vrf_attachments, bad);
        once(&mut self.bgp_neighbors, bad);
        once(&mut self.pod_networks, bad);
        once(&mut self.collectors, bad);
        once(&mut self.traffic_mirrors, bad);
        once(&mut self.layer2s, bad);
        once(&mut self.vrfs, bad);
        once(&mut self.peerings, bad);
        once(&mut self.mirror_targets, bad);
        once(&mut self.mirror_selectors, bad);
    }

    fn add(&mut self, value: &Value) {
        let text = |path: &str| {
            value
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        match (text("/apiVersion"), text("/kind")) {
            ("v1", "Node") => self.nodes.push(node(value)),
            (OPERATOR, "OperatorConfig") => self.configure(value),
            (group, "IPAddress") if group.starts_with("ipam.cluster.x-k8s.io/") => {
                self.claimed(value);
            }
            (API_VERSION, kind) => self.member(kind, value),
            _ => {}
        }
    }

    fn configure(&mut self, value: &Value) {
        let id = reference(value);
        let mut findings = check(value);
        if id.name != CONFIG {
            let message = format!("there is one OperatorConfig, and it is called {CONFIG}");
            let found = error(Code::InvalidField, &id, "metadata.name", message);
            findings.push(found.help("rename it, or move what it says to the other"));
        }
        if findings.iter().any(Finding::is_error) {
            self.bad.insert(id, findings);
            return;
        }
        match read::<OperatorConfig>(value) {
            Ok(config) => self.config = config.spec,
            Err(finding) => {
                self.bad.insert(id, vec![finding]);
            }
        }
    }

    fn claimed(&mut self, value: &Value) {
        let text = |path: &str| {
            value
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let Ok(address) = text("/spec/address").parse::<IpAddr>() else {
            return;
        };
        let key = claim_key(text("/metadata/namespace"), text("/spec/claimRef/name"));
        self.claimed
            .give(key, Cidr::containing(address, Family::of(address).bits()));
    }

    /// Takes one of [`KINDS`]; others are nobody's here.
    fn member(&mut self, kind: &str, value: &Value) {
        macro_rules! into {
            ($list:ident, $kind:ty) => {
                if let Some(object) = self.object::<$kind>(value) {
                    self.$list.push(Object {
                        id: object.0,
                        created: object.1,
                        labels: object.2,
                        spec: object.3.spec,
                    });
                }
            };
        }
        match kind {
            "Destination" => into!(destinations, Destination),
            "Layer2Attachment" => into!(layer2_attachments, Layer2Attachment),
            "VRFAttachment" => into!(vrf_attachments, VRFAttachment),
            "BGPNeighbor" => into!(bgp_neighbors, BGPNeighbor),
            "PodNetwork" => into!(pod_networks, PodNetwork),
            "Collector" => into!(collectors, Collector),
            "TrafficMirror" => into!(traffic_mirrors, TrafficMirror),
            "Layer2NetworkConfiguration" => into!(layer2s, Layer2NetworkConfiguration),
            "VRFRouteConfiguration" => into!(vrfs, VRFRouteConfiguration),
            "BGPPeering" => into!(peerings, BGPPeering),
            "MirrorTarget" => into!(mirror_targets, MirrorTarget),
            "MirrorSelector" => into!(mirror_selectors, MirrorSelector),
            _ => {}
        }
    }

    #[expect(clippy::type_complexity, reason = "taken apart at its only caller")]
    fn object<K: DeserializeOwned>(
        &mut self,
        value: &Value,
    ) -> Option<(ObjectRef, Option<String>, BTreeMap<String, String>, K)> {
        let id = reference(value);
        let mut findings = check(value);
        if !findings.iter().any(Finding::is_error) {
            match read::<K>(value) {
                Ok(read) => {
                    let created = value.pointer("/metadata/creationTimestamp");
                    let created = created.and_then(Value::as_str).map(str::to_owned);
                    return Some((id, created, labels(value), read));
                }
                Err(finding) => findings.push(finding),
            }
        }
        self.bad.insert(id, findings);
        None
    }

    /// Whether any two objects have times of creation to be compared by.
    pub(crate) fn has_times(&self) -> bool {
        let made = |created: &Option<String>| created.is_some();
        self.layer2_attachments.iter().any(|o| made(&o.created))
            || self.vrf_attachments.iter().any(|o| made(&o.created))
            || self.layer2s.iter().any(|o| made(&o.created))
            || self.vrfs.iter().any(|o| made(&o.created))
            || self.destinations.iter().any(|o| made(&o.created))
            || self.pod_networks.iter().any(|o| made(&o.created))
            || self.bgp_neighbors.iter().any(|o| made(&o.created))
            || self.collectors.iter().any(|o| made(&o.created))
            || self.traffic_mirrors.iter().any(|o| made(&o.created))
            || self.peerings.iter().any(|o| made(&o.created))
    }
}

fn once<S>(objects: &mut Vec<Object<S>>, bad: &mut BTreeMap<ObjectRef, Vec<Finding>>) {
    let mut seen: BTreeMap<ObjectRef, usize> = BTreeMap::new();
    for object in objects.iter() {
        *seen.entry(object.id.clone()).or_default() += 1;
    }
    for (id, _) in seen.iter().filter(|(_, count)| **count > 1) {
        let message = "it is there more than once".to_owned();
        let found = error(Code::DuplicateObject, id, "metadata.name", message);
        bad.insert(id.clone(), vec![found.help("remove all but one")]);
    }
    objects.retain(|object| seen[&object.id] == 1);
}

/// The key of an answer of Cluster API IPAM.
pub(crate) fn claim_key(namespace: &str, name: &str) -> String {
    format!("claim/{namespace}/{name}")
}

/// Whether a key is that of a claim.
pub(crate) fn is_claim(key: &str) -> bool {
    key.starts_with("claim/")
}

/// A finding about an object.
pub(crate) fn error(code: Code, id: &ObjectRef, field: &str, message: String) -> Finding {
    Finding::error(code, message).on(id).at(field)
}

/// A warning about an object.
pub(crate) fn warning(code: Code, id: &ObjectRef, field: &str, message: String) -> Finding {
    Finding::warning(code, message).on(id).at(field)
}

pub(crate) fn reference(value: &Value) -> ObjectRef {
    let text = |path: &str| {
        value
            .pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    ObjectRef::new(text("/apiVersion"), text("/kind"), text("/metadata/name"))
}

fn labels(value: &Value) -> BTreeMap<String, String> {
    let map = value.pointer("/metadata/labels").and_then(Value::as_object);
    let pairs = map.into_iter().flatten();
    pairs
        .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
        .collect()
}

fn node(value: &Value) -> Node {
    let name = value.pointer("/metadata/name").and_then(Value::as_str);
    let addresses = value.pointer("/status/addresses").and_then(Value::as_array);
    let addresses = addresses.into_iter().flatten();
    Node {
        name: name.unwrap_or_default().to_owned(),
        labels: labels(value),
        addresses: addresses
            .filter_map(|a| a["address"].as_str()?.parse().ok())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_kinds_are_those_that_are_read_and_no_other_of_the_group_is() {
        let seen = |kind: &str| {
            let value = json!({ "apiVersion": API_VERSION, "kind": kind, "metadata": { "name": "a" }, "spec": 5 });
            // Whatever cannot be read is still there.
            !Inputs::read([&value]).bad.is_empty()
        };
        for kind in KINDS {
            assert!(seen(kind), "{kind}");
        }
        for kind in ["NodeNetworkConfig", "NetworkConfigRevision", "Nobody"] {
            assert!(!seen(kind), "{kind}");
        }
    }
}
