//! The backend's own tables: one ConfigMap per network instance or VLAN index, prefix or id → labels.
//!
//! Easy to get wrong: which object has an entry stands in two sets of labels. The backend finds its own way back by
//! `owner-gvk` and `nsn-name`, so that is what counts here too.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mooring_api::{Cidr, Code, Finding, VlanId, label};
use mooring_ipam::{Holder, InstanceKey, Thing};
use serde_json::Value;

use super::{Known, Listed, Owner, prefixes_of};
use crate::bundle::Object;
use crate::networks::share_holder;

const OWNER_GVK: &str = "nephio.org/owner-gvk";
const NAME: &str = "nephio.org/nsn-name";
const NAMESPACE: &str = "nephio.org/nsn-namespace";
const SUBNET: &str = "nephio.org/subnet";

/// The field that holds a table.
const FIELD: &str = "data.data";

/// What a table is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Index {
    /// The addresses of a network instance.
    Addresses(InstanceKey),
    /// The VLANs of an index.
    Vlans(InstanceKey),
}

impl Index {
    /// Of a ConfigMap, by its name. None is somebody else's ConfigMap.
    pub fn of(object: &Object) -> Option<Self> {
        if object.kind() != "ConfigMap" || object.api_version() != "v1" {
            return None;
        }
        let key =
            |name: &str| (!name.is_empty()).then(|| InstanceKey::new(object.namespace(), name));
        let (kind, name) = object.name().split_once('-')?;
        match kind {
            "ipam" => key(name).map(Self::Addresses),
            "vlan" => key(name).map(Self::Vlans),
            _ => None,
        }
    }
}

/// What a table holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// What somebody has.
    pub listed: Vec<Listed>,
    /// Prefixes that others lie in.
    pub known: BTreeSet<Known>,
    /// How many entries are pools, or belong to one: their objects say the same.
    pub pools: usize,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
}

/// One line of a table.
struct Entry<'a> {
    labels: &'a Value,
    owner: Owner,
}

impl<'a> Entry<'a> {
    fn new(labels: &'a Value) -> Self {
        let text = |key: &str| labels.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = text(OWNER_GVK).split('.').next().unwrap_or_default();
        let owner = Owner::new(kind, text(NAMESPACE), text(NAME));
        Self { labels, owner }
    }

    fn label(&self, key: &str) -> &'a str {
        self.labels
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    fn is_gateway(&self) -> bool {
        self.label(label::GATEWAY) == "true"
    }
}

/// Reads a table: the parsed text of its ConfigMap, which is the caller's object `place`.
pub fn of_table(index: &Index, text: &Value, place: usize) -> Table {
    let mut table = Table::default();
    let empty = serde_json::Map::new();
    let lines = match text {
        Value::Object(lines) => lines,
        // What the backend writes before the first claim.
        Value::Null => &empty,
        _ => {
            let text = "the table is not a map from prefix or id to labels";
            table.findings.push(wrong(text));
            return table;
        }
    };
    let labelled = |(key, labels): (&String, &Value)| {
        let strings = labels.as_object().map(|l| l.values().all(Value::is_string));
        let fine = labels.is_null() || strings == Some(true);
        (!fine).then(|| wrong(&format!("{key}: its labels are not a map of texts")))
    };
    table.findings.extend(lines.iter().filter_map(labelled));
    if !table.findings.is_empty() {
        return table;
    }
    match index {
        Index::Addresses(instance) => addresses(&mut table, instance, lines, place),
        Index::Vlans(index) => vlans(&mut table, index, lines, place),
    }
    table
}

fn wrong(message: &str) -> Finding {
    Finding::error(Code::ImportInvalid, message).at(FIELD).help(
        "Take the ConfigMap again as the backend wrote it: kubectl get configmap NAME -o yaml.",
    )
}

fn addresses(
    table: &mut Table,
    instance: &InstanceKey,
    lines: &serde_json::Map<String, Value>,
    place: usize,
) {
    let mut entries = Vec::new();
    for (key, labels) in lines {
        // Host bits are refused here too: no entry of the backend has any.
        match key.parse::<Cidr>() {
            Ok(cidr) => entries.push((cidr, Entry::new(labels))),
            Err(e) => table.findings.push(wrong(&format!("{key}: {e}"))),
        }
    }
    let is_single = |cidr: &Cidr| cidr.prefix_len() == cidr.family().bits();
    let mut wide: BTreeMap<Cidr, &Entry<'_>> = BTreeMap::new();
    let mut gateways: BTreeSet<IpAddr> = BTreeSet::new();
    for (cidr, entry) in &entries {
        if is_single(cidr) {
            gateways.extend(entry.is_gateway().then(|| cidr.network()));
            continue;
        }
        wide.insert(*cidr, entry);
        let instance = instance.clone();
        table.known.insert(Known {
            instance,
            cidr: *cidr,
        });
    }
    for (cidr, entry) in &entries {
        let kind = entry.label(label::PREFIX_KIND);
        let kinds = ["aggregate", "network", "loopback", "pool", ""];
        if !kinds.contains(&kind) {
            let text = format!("{cidr} is of kind {kind:?}, which is none that Nephio knows");
            table.findings.push(wrong(&text));
            continue;
        }
        let by_object = ["NetworkInstance", "IPPrefix"].contains(&entry.owner.kind.as_str());
        let pool = kind == "aggregate"
            || entry.owner.kind == "NetworkInstance"
            || (by_object && !is_single(cidr));
        if pool || (is_single(cidr) && is_edge(*cidr, entry, &wide)) {
            table.pools += 1;
            continue;
        }
        let thing = if is_single(cidr) {
            Thing::Addr(cidr.network())
        } else {
            Thing::Block(*cidr)
        };
        table.listed.push(Listed {
            instance: instance.clone(),
            thing,
            subnet: subnet(entry.label(SUBNET)).filter(|s| s != cidr),
            gateway: gateway(*cidr, &wide, &gateways),
            owner: entry.owner.clone(),
            holder: share(*cidr, entry, instance).filter(|_| !is_single(cidr)),
            is_gateway: entry.is_gateway(),
            place,
            field: FIELD,
        });
    }
}

/// A subnet that was cut for one cluster, under the identity that a render gives it.
fn share(cidr: Cidr, entry: &Entry<'_>, instance: &InstanceKey) -> Option<Holder> {
    let cluster = entry.label(label::CLUSTER_NAME);
    let kind = entry.label(label::PREFIX_KIND);
    if cluster.is_empty() || kind.is_empty() {
        return None;
    }
    let network = entry.label(label::NETWORK_NAME);
    Some(share_holder(
        instance,
        cluster,
        kind,
        network,
        cidr.family(),
    ))
}

/// The first and the last address of a subnet stand beside it, for the same owner; nobody has them.
fn is_edge(cidr: Cidr, entry: &Entry<'_>, wide: &BTreeMap<Cidr, &Entry<'_>>) -> bool {
    let addr = cidr.network();
    let of_owner = |around: Cidr| {
        let spare = around.prefix_len() + 2 <= around.family().bits();
        let edge = around.network() == addr || around.last() == addr;
        spare && edge && wide.get(&around).is_some_and(|e| e.owner == entry.owner)
    };
    !entry.is_gateway() && prefixes_of(addr).any(of_owner)
}

/// The address with the gateway's label in the smallest subnet around it.
fn gateway(
    cidr: Cidr,
    wide: &BTreeMap<Cidr, &Entry<'_>>,
    gateways: &BTreeSet<IpAddr>,
) -> Option<IpAddr> {
    let is_subnet = |around: &Cidr| {
        let network = |e: &&Entry<'_>| e.label(label::PREFIX_KIND) == "network";
        around.prefix_len() < cidr.prefix_len() && wide.get(around).is_some_and(network)
    };
    let subnet = prefixes_of(cidr.network()).find(is_subnet)?;
    gateways
        .range(subnet.network()..=subnet.last())
        .next()
        .copied()
}

/// `<network>-<length>`, with dashes for the colons of IPv6.
fn subnet(text: &str) -> Option<Cidr> {
    let (network, len) = text.rsplit_once('-')?;
    let network = network.replace('-', ":");
    format!("{network}/{len}").parse().ok()
}

fn vlans(
    table: &mut Table,
    index: &InstanceKey,
    lines: &serde_json::Map<String, Value>,
    place: usize,
) {
    for (key, labels) in lines {
        let entry = Entry::new(labels);
        let Ok(id) = key.parse::<u16>() else {
            table.findings.push(wrong(&format!("{key:?} is no VLAN")));
            continue;
        };
        // The backend sets these aside for itself.
        if [0, 1, 4095].contains(&id) && entry.owner.name.is_empty() {
            continue;
        }
        match VlanId::try_from(id) {
            Ok(id) => table.listed.push(Listed {
                instance: index.clone(),
                thing: Thing::Vlan(id),
                subnet: None,
                gateway: None,
                owner: entry.owner,
                holder: None,
                is_gateway: false,
                place,
                field: FIELD,
            }),
            Err(e) => table.findings.push(wrong(&format!("{key}: {e}"))),
        }
    }
}
