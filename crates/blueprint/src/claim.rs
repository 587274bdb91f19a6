//! Steps 2 to 4: every port gets its claims, the claims become wishes to the book, and the book's
//! answers become statuses. The book itself is met by `package`, between [`wants`] and [`answer`].

mod external;
mod kept;

use std::net::IpAddr;

use mooring_api::kinds::nephio::ipam::{IPClaimSpec, IPClaimStatus};
use mooring_api::kinds::nephio::vlan::{VLANClaimSpec, VLANClaimStatus};
use mooring_api::{
    AddrRange, Family, Finding, HostCidr, ObjectRef, Selector, Status, VlanId, annotation, label,
};
use mooring_ipam::{Claim, Holder, InstanceKey, Kind, Lease, Order, Pools, Thing, Want};
use serde_json::{Map, Value, json};

use crate::Context;
use crate::bundle::{Bundle, Object, group, map_below};
use crate::choices::Flavour;
use crate::cluster::Cluster;
use crate::pools::kind;
use crate::port::{ClaimName, Port};

pub use kept::{Given, KEPT_ADDRESS, pieces};

/// Where a range stands on its IPClaim: the published status has no field for it.
pub const RANGE: &str = "mooring.dev/range";

/// A wish to the book, and the claim object that it is for.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Kind of the claim object.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// What findings should point at.
    pub object: ObjectRef,
    /// The wish.
    pub claim: Claim,
    /// The answer stands in the claim already, from somebody else: the book only records it.
    pub answered: bool,
    /// An address that a range should be taken around, beside the one that the book knows of.
    pub kept: Option<IpAddr>,
}

impl Wish {
    /// Whether the book is asked: an external system may serve networks that we do not know.
    pub fn is_for_the_book(&self, pools: &Pools) -> bool {
        let same = |p: &mooring_ipam::Prefix| p.instance == self.claim.instance;
        !self.answered || pools.prefixes.iter().any(same)
    }

    /// The field of `object` that the wish comes from.
    pub fn field(&self) -> &'static str {
        match (self.claim.want, self.claim.fixed) {
            (Want::Vlan { .. }, _) => "spec.attachmentType",
            (_, Some(_)) => "spec.prefix",
            _ => "spec.networkInstance",
        }
    }
}

/// The condition of an Interface.
pub fn interface_condition(name: &str) -> String {
    format!("req.nephio.org.interface.{name}")
}

/// The condition of an IPClaim.
pub fn claim_condition(name: &str) -> String {
    format!("ipam.nephio.org.ipclaim.{name}")
}

/// The condition of a VLANClaim.
pub fn vlan_condition(name: &str) -> String {
    format!("vlan.nephio.org.vlanclaim.{name}")
}

/// Makes the IPClaims and VLANClaims of every Interface. A claim that the user wrote is used as it is.
pub fn declare(bundle: &mut Bundle, ports: &[Port], cluster: &Cluster) -> Vec<Finding> {
    let mut findings = Vec::new();
    for port in ports {
        if port.choices.flavour == Flavour::External {
            for claim in port.claims(cluster) {
                external::drop_range(bundle, &claim.name);
            }
        }
    }
    for port in ports.iter().filter(|p| !p.claim_first) {
        for claim in port.claims(cluster) {
            let known = bundle.find(group::IPAM, "IPClaim", &claim.name);
            if known.is_none_or(|o| o.owner().is_some()) {
                findings.extend(bundle.upsert(ip_claim(port, &claim)).err());
            }
        }
        if port.wants_vlan {
            findings.extend(bundle.upsert(vlan_claim(port, cluster)).err());
        }
    }
    findings
}

fn ip_claim(port: &Port, claim: &ClaimName) -> Object {
    let api = format!("{}/v1alpha1", group::IPAM);
    let reference = ObjectRef::new(api, "IPClaim", &claim.name).within(&port.namespace);
    let mut made = Object::generated(&reference, &port.object);
    let mut spec = Map::new();
    let kind = if port.kind == Kind::Loopback {
        "loopback"
    } else {
        "network"
    };
    spec.insert("kind".into(), json!(kind));
    if let Some(instance) = &port.instance {
        spec.insert("networkInstance".into(), instance_reference(instance));
    }
    if claim.family == Family::V6 || port.families.len() > 1 {
        spec.insert("addressFamily".into(), json!(claim.family));
    }
    if let Some(name) = &port.network_name {
        spec.insert(
            "selector".into(),
            json!({ "matchLabels": { label::NETWORK_NAME: name } }),
        );
    }
    map_below(&mut made.value, &[]).insert("spec".into(), Value::Object(spec));
    made
}

fn instance_reference(instance: &InstanceKey) -> Value {
    match instance.namespace() {
        "default" => json!({ "name": instance.name() }),
        namespace => json!({ "name": instance.name(), "namespace": namespace }),
    }
}

fn vlan_claim(port: &Port, cluster: &Cluster) -> Object {
    let api = format!("{}/v1alpha1", group::VLAN);
    let reference = ObjectRef::new(api, "VLANClaim", &port.name).within(&port.namespace);
    let mut made = Object::generated(&reference, &port.object);
    let spec = json!({ "vlanIndex": { "name": cluster.name } });
    map_below(&mut made.value, &[]).insert("spec".into(), spec);
    made
}

/// Every wish of the package, in an order that does not depend on the documents' order.
pub fn wants(
    bundle: &Bundle,
    ports: &[Port],
    cluster: &Cluster,
    ctx: &Context<'_>,
    findings: &mut Vec<Finding>,
) -> Vec<Wish> {
    let mut wishes = Vec::new();
    for port in ports {
        for name in port.claims(cluster) {
            let Some(object) = bundle.find(group::IPAM, "IPClaim", &name.name) else {
                continue;
            };
            match address_wish(object, port, &name, bundle, cluster, ctx) {
                Ok(wish) => wishes.push(wish),
                Err(finding) if findings.contains(&finding) => {}
                Err(finding) => findings.push(finding),
            }
        }
        if let Some(object) = bundle
            .find(group::VLAN, "VLANClaim", &port.name)
            .filter(|_| port.wants_vlan)
        {
            match vlan_wish(object, port, cluster) {
                Ok(wish) => wishes.extend(wish),
                Err(finding) => findings.push(finding),
            }
        }
    }
    wishes.sort_by(|a, b| a.claim.holder.cmp(&b.claim.holder));
    wishes
}

/// Under which identities the agent takes the addresses of a port whose pod is waited for.
pub fn at_pod_start(port: &Port, cluster: &Cluster, ctx: &Context<'_>) -> Vec<Holder> {
    let families = port.families.iter().filter(|_| port.waits_for_pod());
    let name = |family: &Family| ClaimName {
        name: port.name.clone(),
        family: *family,
        ordinal: 0,
        node: None,
    };
    families
        .map(|family| holder(port, &name(family), cluster, ctx))
        .collect()
}

fn holder(port: &Port, name: &ClaimName, cluster: &Cluster, ctx: &Context<'_>) -> Holder {
    Holder {
        cluster: cluster.name.clone(),
        package: ctx.package.to_owned(),
        namespace: port.object.namespace.clone(),
        workload: port.workload_as_written(),
        interface: match &name.node {
            Some(node) => format!("{}@{node}", port.name),
            None => port.name.clone(),
        },
        family: name.family,
        ordinal: name.ordinal,
    }
}

fn address_wish(
    object: &Object,
    port: &Port,
    name: &ClaimName,
    bundle: &Bundle,
    cluster: &Cluster,
    ctx: &Context<'_>,
) -> Result<Wish, Finding> {
    let spec: IPClaimSpec = object.spec()?;
    let status: IPClaimStatus = object.status().unwrap_or_default();
    let instance = InstanceKey::new(
        &spec.network_instance.namespace,
        &spec.network_instance.name,
    );
    let answered = port.choices.flavour == Flavour::External;
    let fixed = match (answered, status.prefix) {
        (false, _) => spec.prefix,
        (true, Some(prefix)) => Some(prefix),
        (true, None) => return Err(external::unanswered(port, name)),
    };
    let want = match (port.takes_ranges(), spec.create_prefix, spec.prefix_length) {
        (true, ..) => Want::Range {
            count: port
                .choices
                .range_size
                .unwrap_or_else(|| range_size(ctx.pools, &instance, name)),
        },
        (false, Some(true), Some(len)) => Want::Block { len },
        (false, Some(true), None) => Want::Block {
            len: spec.prefix.map_or(name.family.bits(), |p| p.prefix_len()),
        },
        _ => Want::Address,
    };
    let before = match want {
        Want::Range { .. } => object
            .annotation(RANGE)
            .and_then(|r| r.parse().ok())
            .map(Thing::Range),
        Want::Block { .. } => status.prefix.map(|p| Thing::Block(p.subnet())),
        _ => status.prefix.map(|p| Thing::Addr(p.addr())),
    };
    // Findings about what the user wrote point at the claim, about what we made at its Interface.
    let object_ref = if object.owner().is_some() {
        port.object.clone()
    } else {
        object.reference()
    };
    Ok(Wish {
        kind: "IPClaim",
        name: name.name.clone(),
        object: object_ref,
        claim: Claim {
            holder: holder(port, name, cluster, ctx),
            instance,
            kind: kind(spec.kind),
            want,
            selector: spec.selector,
            fixed,
            before,
            names: vec![
                name.name.clone(),
                format!("{}-{}", bundle.marks.name, name.name),
            ],
            order: spec.index.map_or(Order::LowestFirst, Order::Index),
        },
        answered,
        kept: object
            .annotation(KEPT_ADDRESS)
            .and_then(|addr| addr.parse().ok()),
    })
}

/// A quarter of the first prefix as a power of two, at most 64 (a sixteenth for ranges per node), so
/// that a handful of clusters fit without anybody having to count.
fn range_size(pools: &Pools, instance: &InstanceKey, name: &ClaimName) -> u32 {
    let share = if name.node.is_some() { 16 } else { 4 };
    let fits =
        |p: &&mooring_ipam::Prefix| p.instance == *instance && p.cidr.family() == name.family;
    let size = pools
        .prefixes
        .iter()
        .find(fits)
        .map_or(0, |p| match p.ranges.as_slice() {
            [] => p.cidr.hosts().count(),
            ranges => ranges
                .iter()
                .map(AddrRange::count)
                .fold(0, u128::saturating_add),
        });
    let quarter = u32::try_from(size / share).unwrap_or(u32::MAX).clamp(1, 64);
    1 << quarter.ilog2()
}

fn vlan_wish(object: &Object, port: &Port, cluster: &Cluster) -> Result<Option<Wish>, Finding> {
    let Some(network) = &port.instance else {
        return Ok(None);
    };
    let spec: VLANClaimSpec = object.spec()?;
    let status: VLANClaimStatus = object.status().unwrap_or_default();
    let index = spec.vlan_index.unwrap_or_default();
    let index_name = if index.name.is_empty() {
        cluster.name.clone()
    } else {
        index.name
    };
    let claim = claim_to_vlan(
        vlan_holder(network, &cluster.name),
        InstanceKey::new(&index.namespace, &index_name),
        (spec.vlan_id, status.vlan_id),
    );
    Ok(Some(Wish {
        kind: "VLANClaim",
        name: port.name.clone(),
        object: port.object.clone(),
        claim,
        answered: false,
        kept: None,
    }))
}

/// A claim to a VLAN: the id that is asked for, where one is, and the one that was given before.
pub(crate) fn claim_to_vlan(
    holder: Holder,
    instance: InstanceKey,
    (asked, before): (Option<VlanId>, Option<VlanId>),
) -> Claim {
    Claim {
        holder,
        instance,
        kind: Kind::Network,
        want: Want::Vlan { id: asked },
        selector: Selector::default(),
        fixed: None,
        before: before.map(Thing::Vlan),
        names: Vec::new(),
        order: Order::LowestFirst,
    }
}

/// A VLAN belongs to a network in a cluster, not to one interface: interfaces on different VLANs could
/// not talk to each other. So all packages there share one holder.
pub fn vlan_holder(network: &InstanceKey, cluster: &str) -> Holder {
    let mut holder = Holder::outside(format!("network/{network}"), "vlan", Family::V4);
    cluster.clone_into(&mut holder.cluster);
    holder
}

/// An address as a status shows it: with the length of its subnet, where hosts of one are asked for.
pub(crate) fn shown(addr: IpAddr, lease: &Lease, kind: Kind) -> HostCidr {
    match (lease.subnet, kind) {
        (Some(subnet), Kind::Network) => subnet.host(addr),
        _ => HostCidr::single(addr),
    }
}

/// Writes the book's answer into the claim's status, and sets its condition.
pub fn answer(bundle: &mut Bundle, wish: &Wish, given: &Given) {
    let Given { lease, kept } = given;
    if wish.answered {
        return;
    }
    let in_group = if wish.kind == "IPClaim" {
        group::IPAM
    } else {
        group::VLAN
    };
    let Some(object) = bundle.find_mut(in_group, wish.kind, &wish.name) else {
        return;
    };
    let mut set = |key: &str, value: Option<Value>| {
        let status = map_below(&mut object.value, &["status"]);
        match value {
            Some(value) if status.get(key) == Some(&value) => {}
            Some(value) => drop(status.insert(key.to_owned(), value)),
            None => drop(status.shift_remove(key)),
        }
    };
    let gateway = (wish.claim.kind == Kind::Network)
        .then_some(lease.gateway)
        .flatten();
    match lease.thing {
        Thing::Addr(addr) => {
            set("prefix", Some(json!(shown(addr, lease, wish.claim.kind))));
            set("gateway", gateway.map(|g| json!(g)));
            object.remove_annotation(RANGE);
            object.remove_annotation(KEPT_ADDRESS);
        }
        Thing::Block(block) => set("prefix", Some(json!(block))),
        Thing::Range(range) => {
            set("prefix", lease.subnet.map(|s| json!(s)));
            set("gateway", gateway.map(|g| json!(g)));
            object.set_annotation(RANGE, &range.to_string());
            match kept {
                Some(addr) => object.set_annotation(KEPT_ADDRESS, &addr.to_string()),
                None => object.remove_annotation(KEPT_ADDRESS),
            }
        }
        Thing::Vlan(id) => set("vlanID", Some(json!(id))),
    }
    let condition = if wish.kind == "IPClaim" {
        claim_condition(&wish.name)
    } else {
        vlan_condition(&wish.name)
    };
    bundle
        .marks
        .set(condition, Status::True, "Ready", &lease.thing.to_string());
}

/// What a claim of a port was answered.
#[derive(Clone, Debug)]
pub struct Answered {
    /// Which claim.
    pub name: ClaimName,
    /// `status.prefix`: the address in its subnet, or the subnet of a range.
    pub prefix: HostCidr,
    /// `status.gateway`.
    pub gateway: Option<IpAddr>,
    /// The range, for host-local and whereabouts.
    pub range: Option<AddrRange>,
}

/// All answers of a port; fewer than its claims while some wait.
pub fn answers(bundle: &Bundle, port: &Port, cluster: &Cluster) -> Vec<Answered> {
    let read = |name: ClaimName| {
        let object = bundle.find(group::IPAM, "IPClaim", &name.name)?;
        let status: IPClaimStatus = object.status().ok()?;
        let range = object.annotation(RANGE).and_then(|r| r.parse().ok());
        Some(Answered {
            name,
            prefix: status.prefix?,
            gateway: status.gateway,
            range,
        })
    };
    port.claims(cluster).into_iter().filter_map(read).collect()
}

/// The VLAN of a port: as written, else as claimed.
pub fn vlan(bundle: &Bundle, port: &Port) -> Option<VlanId> {
    port.vlan.or_else(|| {
        let object = bundle
            .find(group::VLAN, "VLANClaim", &port.name)
            .filter(|_| port.wants_vlan)?;
        object.status::<VLANClaimStatus>().ok()?.vlan_id
    })
}

/// A network claim that stands alone gets an IPAllocation in the claim's own group (seed 001). It holds
/// one address, so a range has none.
pub fn allocations(bundle: &mut Bundle, ports: &[Port], cluster: &Cluster) -> Vec<Finding> {
    let mut findings = Vec::new();
    for port in ports
        .iter()
        .filter(|p| p.claim_first && p.kind == Kind::Network && p.attachable && !p.takes_ranges())
    {
        for answer in answers(bundle, port, cluster) {
            let reference = ObjectRef::new(&port.object.api_version, "IPAllocation", &port.name)
                .within(&port.namespace);
            let mut made = Object::generated(&reference, &port.object);
            let instance = port.instance.as_ref();
            let spec = allocation_spec(instance, answer.prefix.addr(), answer.gateway);
            map_below(&mut made.value, &[]).insert("spec".into(), spec);
            findings.extend(bundle.upsert(made).err());
        }
    }
    findings
}

/// What an IPAllocation says: the one address, without its subnet.
pub(crate) fn allocation_spec(
    instance: Option<&InstanceKey>,
    addr: IpAddr,
    gateway: Option<IpAddr>,
) -> Value {
    let mut spec = json!({ "kind": "network" });
    let map = map_below(&mut spec, &[]);
    if let Some(instance) = instance {
        map.insert("networkInstance".into(), instance_reference(instance));
    }
    map.insert("prefix".into(), json!(HostCidr::single(addr)));
    if let Some(gateway) = gateway {
        map.insert("gateway".into(), json!(gateway));
    }
    spec
}

/// Sets the condition of every Interface whose claims are all answered.
pub fn conclude(bundle: &mut Bundle, ports: &[Port], cluster: &Cluster) {
    for port in ports {
        if port.choices.flavour == Flavour::External {
            external::conclude(bundle, port, cluster);
        }
    }
    for port in ports.iter().filter(|p| !p.claim_first) {
        let claims = port.claims(cluster).len();
        let vlan_ready = !port.wants_vlan || vlan(bundle, port).is_some();
        let ready = answers(bundle, port, cluster).len() == claims && vlan_ready;
        if port.instance.is_some() && port.choices.flavour == Flavour::Moor {
            let condition = claim_condition(&port.name);
            let message = "the agent takes the address when the pod starts";
            bundle
                .marks
                .set(condition, Status::True, "AtPodStart", message);
        }
        let (status, reason) = if ready {
            (Status::True, "Ready")
        } else {
            (Status::False, "WaitingForClaims")
        };
        bundle
            .marks
            .set(interface_condition(&port.name), status, reason, "");
    }
}

/// Processing-only objects are not for the cluster (`--deploy-records` ships the IPAM records).
pub fn stamp_local(bundle: &mut Bundle, deploy_records: bool) {
    const LOCAL: [(&str, &str); 7] = [
        (group::IPAM, "IPClaim"),
        (group::IPAM, "IPAllocation"),
        (group::VLAN, "VLANClaim"),
        (group::REQ, "Interface"),
        (group::INFRA, "NetworkInstance"),
        (group::IPAM, "NetworkInstance"),
        (group::INFRA, "WorkloadCluster"),
    ];
    for object in &mut bundle.objects {
        let Some((_, kind)) = LOCAL.iter().find(|(g, k)| object.is(g, k)) else {
            continue;
        };
        let record = matches!(*kind, "IPClaim" | "IPAllocation");
        if !(deploy_records && record) {
            object.set_annotation(annotation::LOCAL_CONFIG, "true");
        } else if object.annotation(annotation::LOCAL_CONFIG) == Some("true") {
            object.remove_annotation(annotation::LOCAL_CONFIG);
        }
    }
}
