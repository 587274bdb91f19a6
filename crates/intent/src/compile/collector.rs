//! Collector: a mirror VRF, a loopback in it and a tunnel out of it, on every node that mirrors anything there; and the
//! loopbacks of all other Destinations.
//!
//! Which nodes: the union of what its TrafficMirrors reach, less what its own selector leaves out. A node whose address
//! has not come yet is left out as pending and holds up nobody.

use std::collections::BTreeSet;
use std::net::IpAddr;

use mooring_api::kinds::schiff::{
    CollectorSpec, CollectorStatus, DestinationLoopback, DestinationSpec, GreProtocol,
    MirrorSourceKind, TrafficMirrorSpec,
};
use mooring_api::{Code, Family, ObjectRef, Selector};
use serde_json::json;

use super::{Context, Draft, node_key};
use crate::Scope;
use crate::answers::{Source, Want};
use crate::form::{Item, Loopback, Tunnel, VrfItem, short_hash};
use crate::input::{Object, claim_key};

pub(super) fn contribute(object: &Object<CollectorSpec>, context: &Context<'_>) -> Draft {
    let mut draft = Draft::new(object);
    let mirrors = mirrors(context, &object.id.name);
    let scopes = scopes(object, context);
    let tunnel = tunnel(&mut draft, object, context);
    let mut status = CollectorStatus {
        gre_interface: Some(gre_name(context, &object.id.name, object.spec.protocol)),
        reference_count: u32::try_from(mirrors.len()).unwrap_or(u32::MAX),
        ..CollectorStatus::default()
    };
    if let Some((vrf, loopback, tunnel)) = tunnel {
        let mut active = BTreeSet::new();
        for scope in &scopes {
            let field = "spec.mirrorDestination";
            draft.put(scope, Item::Vrf(vrf.clone()), field, "the mirror VRF");
            draft.put(
                scope,
                Item::Loopback(loopback.clone()),
                field,
                "the tunnel's source",
            );
            draft.put(
                scope,
                Item::Tunnel(tunnel.clone()),
                "spec.address",
                "the tunnel",
            );
            active.extend(context.names_in(scope));
        }
        pending(
            &mut draft,
            context,
            &loopback,
            &object.spec.address,
            &mut active,
        );
        status.active_nodes = u32::try_from(active.len()).unwrap_or(u32::MAX);
    }
    draft.contribution.platform = claims(context, &object.spec.mirror_destination.name, &scopes);
    draft.contribution.status = crate::status::value(&status);
    draft
}

/// Leaves out the nodes whose address is not there, or of the wrong family.
fn pending(
    draft: &mut Draft,
    context: &Context<'_>,
    loopback: &Loopback,
    address: &IpAddr,
    active: &mut BTreeSet<&str>,
) {
    let answer = |node: &str| address_of(context, loopback, node);
    let missing: Vec<&str> = active
        .iter()
        .filter(|n| answer(n).is_none())
        .copied()
        .collect();
    if let Some(first) = missing.first() {
        let message = format!(
            "{} nodes have no address of {} yet, {first} among them",
            missing.len(),
            loopback.name
        );
        let help = "look at the IPAddressClaim of the node, or at the pool";
        draft.warn(Code::ClaimPending, "spec.mirrorDestination", message, help);
    }
    let wrong = |n: &&str| answer(n).is_some_and(|a| Family::of(a) != Family::of(*address));
    let said = draft.is_bad();
    if let Some(node) = active.iter().find(|n| wrong(n) && !said) {
        let message =
            format!("the collector is {address}, and {node} would send from another family");
        let help = "give the mirror Destination a loopback of the collector's family";
        draft.error(Code::FamilyMismatch, "spec.address", message, help);
    }
    active.retain(|node| answer(node).is_some());
}

/// The address of a node's loopback.
pub(super) fn address_of(context: &Context<'_>, loopback: &Loopback, node: &str) -> Option<IpAddr> {
    context.answers.address(&loopback_key(loopback, node))
}

/// The key under which the address of a node's loopback is answered.
pub(crate) fn loopback_key(loopback: &Loopback, node: &str) -> String {
    match loopback.key.strip_prefix("claim/") {
        Some(namespace) => claim_key(namespace, &claim_name(&loopback.vrf, &loopback.name, node)),
        None => node_key(&loopback.key, node),
    }
}

fn tunnel(
    draft: &mut Draft,
    object: &Object<CollectorSpec>,
    context: &Context<'_>,
) -> Option<(VrfItem, Loopback, Tunnel)> {
    let spec = &object.spec;
    let field = "spec.mirrorDestination";
    let named = &spec.mirror_destination.name;
    let Some(destination) = destination(context, named) else {
        let message = format!("there is no Destination {named}");
        let help = "apply the Destination of the mirror VRF, with loopbacks";
        draft.error(Code::ReferenceNotFound, field, message, help);
        return None;
    };
    let loopbacks = &destination.spec.loopbacks;
    let wanted = spec.mirror_destination.loopback.as_ref();
    let found = match wanted {
        Some(name) => loopbacks.iter().find(|l| l.name == *name),
        None => loopbacks.first().filter(|_| loopbacks.len() == 1),
    };
    let Some(loopback) = found else {
        let message = format!("{} has {} loopbacks", destination.id, loopbacks.len());
        let help = "give it one, or name one with mirrorDestination.loopback";
        draft.error(Code::NoLoopback, field, message, help);
        return None;
    };
    if let Some(subnet) = loopback.subnet
        && subnet.family() != Family::of(spec.address)
    {
        let message = format!(
            "the collector is {}, and the loopback is of {subnet}",
            spec.address
        );
        let help = "give the mirror Destination a loopback of the collector's family";
        draft.error(Code::FamilyMismatch, "spec.address", message, help);
    }
    if spec.key.is_some_and(|key| i32::try_from(key).is_err()) {
        let message = "nodes can be told keys up to 2147483647".to_owned();
        draft.error(Code::NotCarried, "spec.key", message, "use a smaller key");
    }
    let vrf = destination.spec.vrf.as_str();
    let Some(identity) = context.fabric.identity(vrf) else {
        let message = format!(
            "VRF {vrf} of {} has no VNI and route target",
            destination.id
        );
        draft.error(
            Code::VNIUnresolved,
            field,
            message,
            "write both on the Destination",
        );
        return None;
    };
    let source = item(context, destination, loopback);
    let tunnel = Tunnel {
        name: gre_name(context, &object.id.name, spec.protocol),
        vrf: vrf.to_owned(),
        loopback: source.name.clone(),
        address: spec.address,
        frames: spec.protocol == GreProtocol::L2gre,
        key: spec.key,
    };
    Some((identity.clone(), source, tunnel))
}

/// A loopback as an item. One with a subnet has the key that a low-level object gives it, so that both share.
pub(super) fn item(
    context: &Context<'_>,
    destination: &Object<DestinationSpec>,
    loopback: &DestinationLoopback,
) -> Loopback {
    let vrf = destination.spec.vrf.to_string();
    let key = match &loopback.pool_ref {
        Some(pool) => format!("claim/{}", namespace(context, pool.namespace.as_deref())),
        None => subnet_key(&vrf, loopback.name.as_str()),
    };
    Loopback {
        vrf,
        name: loopback.name.to_string(),
        key,
    }
}

/// The key of a loopback with a subnet.
pub(super) fn subnet_key(vrf: &str, loopback: &str) -> String {
    format!("vrf/{vrf}/{loopback}")
}

fn namespace<'c>(context: &Context<'c>, written: Option<&'c str>) -> &'c str {
    written.unwrap_or(&context.inputs.config.namespaces.claims)
}

/// `gre-` or `gtap-` and a hash of name and protocol; longer where two would be alike.
pub(crate) fn gre_name(context: &Context<'_>, name: &str, protocol: GreProtocol) -> String {
    let lead = match protocol {
        GreProtocol::L3gre => "gre-",
        GreProtocol::L2gre => "gtap-",
    };
    let hash = |name: &str| short_hash(&format!("{name} {}", protocol.as_str()), 10);
    let own = hash(name);
    let inputs = context.inputs;
    let intents = inputs.collectors.iter();
    let intents = intents
        .filter(|c| c.spec.protocol == protocol)
        .map(|c| &c.id);
    let targets = inputs.mirror_targets.iter();
    let targets = targets
        .filter(|t| t.spec.protocol == protocol)
        .map(|t| &t.id);
    let alike = |id: &&ObjectRef| id.name != name && hash(&id.name)[..8] == own[..8];
    let digits = if intents.chain(targets).any(|id| alike(&id)) {
        10
    } else {
        8
    };
    format!("{lead}{}", &own[..digits])
}

/// The TrafficMirrors of a Collector.
pub(super) fn mirrors<'a>(context: &Context<'a>, name: &str) -> Vec<&'a Object<TrafficMirrorSpec>> {
    let all = context.inputs.traffic_mirrors.iter();
    all.filter(|m| m.spec.collector == name).collect()
}

/// The nodes of an attachment that is mirrored.
pub(super) fn source_scope(context: &Context<'_>, mirror: &TrafficMirrorSpec) -> Option<Scope> {
    let name = &mirror.source.name;
    let inputs = context.inputs;
    let (groups, selector): (&[String], Option<&Selector>) = match mirror.source.kind {
        MirrorSourceKind::Layer2Attachment => {
            let all = &inputs.layer2_attachments;
            let spec = &all.iter().find(|a| a.id.name == *name)?.spec;
            (&spec.worker_groups, spec.node_selector.as_ref())
        }
        MirrorSourceKind::VRFAttachment => {
            let all = &inputs.vrf_attachments;
            let spec = &all.iter().find(|a| a.id.name == *name)?.spec;
            (&spec.worker_groups, spec.node_selector.as_ref())
        }
    };
    Some(context.nodes_of(groups, selector))
}

fn scopes(object: &Object<CollectorSpec>, context: &Context<'_>) -> BTreeSet<Scope> {
    let own = Scope::of(object.spec.node_selector.as_ref());
    let mirrors = mirrors(context, &object.id.name);
    let reached = mirrors
        .iter()
        .filter_map(|m| source_scope(context, &m.spec));
    reached.map(|scope| scope.and(&own)).collect()
}

fn destination<'a>(context: &Context<'a>, name: &str) -> Option<&'a Object<DestinationSpec>> {
    let all = context.fabric.destinations.iter();
    all.copied().find(|d| d.id.name == name)
}

/// The name that the seed gives a claim where it is a legal one, else a slug and a hash.
pub(crate) fn claim_name(vrf: &str, loopback: &str, node: &str) -> String {
    let name = format!("{vrf}-{loopback}-{node}");
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let legal = name.len() <= 253
        && name.split('.').all(|part| {
            part.starts_with(plain)
                && part.ends_with(plain)
                && part.chars().all(|c| plain(c) || c == '-')
        });
    if legal {
        return name;
    }
    let slug: String = name
        .to_lowercase()
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .take(200)
        .collect();
    format!("{}-{}", slug.trim_matches('-'), short_hash(&name, 8))
}

/// Every loopback, and the scopes in which it is wanted.
fn loopbacks<'a>(
    context: &Context<'a>,
) -> Vec<(
    &'a Object<DestinationSpec>,
    &'a DestinationLoopback,
    BTreeSet<Scope>,
)> {
    let inputs = context.inputs;
    let mut found = Vec::new();
    for destination in &context.fabric.destinations {
        let mut here: BTreeSet<Scope> = BTreeSet::new();
        let collectors = inputs.collectors.iter();
        let own = collectors.filter(|c| c.spec.mirror_destination.name == destination.id.name);
        for collector in own {
            here.extend(scopes(collector, context));
        }
        here.extend(consumers(context, destination));
        for loopback in &destination.spec.loopbacks {
            found.push((*destination, loopback, here.clone()));
        }
    }
    found
}

/// The scopes of attachments that select a Destination.
pub(super) fn consumers(
    context: &Context<'_>,
    destination: &Object<DestinationSpec>,
) -> BTreeSet<Scope> {
    let inputs = context.inputs;
    let selects = |s: &Selector| s.matches(&destination.labels);
    let mut scopes = BTreeSet::new();
    for a in &inputs.layer2_attachments {
        if a.spec.destinations.as_ref().is_some_and(selects) {
            scopes.insert(context.nodes_of(&a.spec.worker_groups, a.spec.node_selector.as_ref()));
        }
    }
    for a in &inputs.vrf_attachments {
        if selects(&a.spec.destinations) {
            scopes.insert(context.nodes_of(&a.spec.worker_groups, a.spec.node_selector.as_ref()));
        }
    }
    for a in &inputs.pod_networks {
        if selects(&a.spec.destinations) {
            scopes.insert(context.nodes_of(&a.spec.worker_groups, a.spec.node_selector.as_ref()));
        }
    }
    scopes
}

/// A Destination's loopbacks on the nodes of those who select it.
pub(super) fn loopbacks_of(
    draft: &mut Draft,
    object: &Object<DestinationSpec>,
    context: &Context<'_>,
) {
    let Some(identity) = context.fabric.identity(object.spec.vrf.as_str()) else {
        return;
    };
    if object.spec.loopbacks.is_empty() {
        return;
    }
    let scopes = consumers(context, object);
    for loopback in &object.spec.loopbacks {
        if let Some(subnet) = loopback.subnet {
            draft.outside_the_cluster(context, subnet, "spec.loopbacks");
        }
        for scope in &scopes {
            let field = "spec.loopbacks";
            let item = item(context, object, loopback);
            draft.put(
                scope,
                Item::Vrf(identity.clone()),
                field,
                "the VRF of a loopback",
            );
            draft.put(
                scope,
                Item::Loopback(item),
                field,
                "on the nodes of those who select it",
            );
        }
    }
    draft.contribution.platform = claims(context, &object.id.name, &scopes);
}

/// The claims of a Destination's loopbacks for the nodes of scopes.
fn claims(
    context: &Context<'_>,
    destination: &str,
    scopes: &BTreeSet<Scope>,
) -> Vec<serde_json::Value> {
    let Some(destination) = self::destination(context, destination) else {
        return Vec::new();
    };
    let nodes: BTreeSet<&str> = scopes.iter().flat_map(|s| context.names_in(s)).collect();
    let mut claims = Vec::new();
    for loopback in &destination.spec.loopbacks {
        for node in &nodes {
            claims.extend(claim(context, destination, loopback, node));
        }
    }
    claims
}

fn claim(
    context: &Context<'_>,
    destination: &Object<DestinationSpec>,
    loopback: &DestinationLoopback,
    node: &str,
) -> Option<serde_json::Value> {
    let pool = loopback.pool_ref.as_ref()?;
    let vrf = destination.spec.vrf.as_str();
    Some(json!({
        "apiVersion": "ipam.cluster.x-k8s.io/v1beta1",
        "kind": "IPAddressClaim",
        "metadata": {
            "name": claim_name(vrf, loopback.name.as_str(), node),
            "namespace": namespace(context, pool.namespace.as_deref()),
            "labels": crate::platform::owned(&destination.id),
        },
        "spec": { "poolRef": { "apiGroup": pool.api_group, "kind": pool.kind, "name": pool.name } },
    }))
}

pub(super) fn wants(context: &Context<'_>, wants: &mut Vec<Want>) {
    for (destination, loopback, scopes) in loopbacks(context) {
        let nodes: BTreeSet<&str> = scopes.iter().flat_map(|s| context.names_in(s)).collect();
        let item = item(context, destination, loopback);
        for node in nodes {
            let (key, source) = match (loopback.subnet, claim(context, destination, loopback, node))
            {
                (Some(subnet), _) => {
                    let (fixed, avoid) = (None, Vec::new());
                    let source = Source::Address {
                        subnet,
                        fixed,
                        avoid,
                    };
                    (node_key(&item.key, node), source)
                }
                (None, Some(object)) => {
                    let name = claim_name(&item.vrf, &item.name, node);
                    let namespace = item.key.strip_prefix("claim/").unwrap_or_default();
                    (claim_key(namespace, &name), Source::Claim { object })
                }
                (None, None) => continue,
            };
            wants.push(Want {
                key,
                owner: destination.id.clone(),
                field: "spec.loopbacks".to_owned(),
                instance: item.vrf.clone(),
                source,
            });
        }
    }
    super::low_level::wants(context, wants);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_has_the_seeds_name_where_it_is_legal() {
        assert_eq!(
            claim_name("mirror", "lo.mir", "worker-1"),
            "mirror-lo.mir-worker-1"
        );
        let other = claim_name("m2m_enc", "lo.mir", "worker-1");
        assert!(other.starts_with("m2m-enc-lo-mir-worker-1-"), "{other}");
        assert_ne!(other, claim_name("m2m-enc", "lo.mir", "worker-1"));
        assert!(claim_name("m", "lo", &"n".repeat(260)).len() <= 253);
    }
}
