//! BGPNeighbor: a session per node over a transfer network of two addresses, on which workloads announce the addresses
//! of inbound connections.
//!
//! The session is in the cluster's VRF, where the host's traffic arrives; what is announced there reaches the VRFs by
//! the leaks that the connections have anyway. So one session serves connections of any number of VRFs. The node has
//! the lower address of the transfer network, the workload the higher one.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::kinds::mooring::TransferRange;
use mooring_api::kinds::schiff::{BGPNeighborSpec, BGPNeighborStatus, Direction};
use mooring_api::{Cidr, Code, Family};

use super::{
    Context, Draft, family_key, key_of, node_key, seconds, timers, vrf_attachment, workload_as,
};
use crate::Scope;
use crate::answers::{Source, Want};
use crate::form::{CLUSTER, Item, Leak, Peer, PrefixRule, Side, Who};
use crate::input::Object;

pub(super) fn contribute(object: &Object<BGPNeighborSpec>, context: &Context<'_>) -> Draft {
    let spec = &object.spec;
    let mut draft = Draft::new(object);
    timers(&mut draft, "spec", spec.hold_time, spec.keepalive_time);
    let remote = workload_as(context, &spec.workload_as, &mut draft, "spec.workloadAS");
    let local = context.inputs.config.local_as;
    if local.is_none() {
        draft.error(
            Code::AsNumberMissing,
            "spec.workloadAS",
            "the AS of the nodes is not known".to_owned(),
            "write localAS in the OperatorConfig",
        );
    }
    let range = range(context, spec);
    if range.is_none() {
        draft.error(
            Code::TransferRangeMissing,
            "spec.transferRange",
            "the OperatorConfig has no such transfer range".to_owned(),
            "add it to spec.transferRanges of the OperatorConfig",
        );
    }
    let allowed = allowed(&mut draft, object, context);
    let (Some(remote_as), Some(range)) = (remote, range) else {
        return draft;
    };
    let mut status = BGPNeighborStatus {
        as_number: local.map(|a| a.to_string()),
        neighbor_as_number: local,
        workload_as_number: Some(remote_as),
        hold_time: seconds(spec.hold_time),
        keepalive_time: seconds(spec.keepalive_time),
        maximum_prefixes: spec.maximum_prefixes,
        ..BGPNeighborStatus::default()
    };
    let mut told = BTreeSet::new();
    for family in [Family::V4, Family::V6] {
        let Some(transfer) = of(range, family) else {
            continue;
        };
        let of_family = |rules: &BTreeSet<PrefixRule>| -> Vec<PrefixRule> {
            let here = rules.iter().filter(|r| r.prefix.family() == family);
            here.cloned().collect()
        };
        let key = key_of(&object.id);
        let peer = Peer {
            vrf: CLUSTER.to_owned(),
            who: Who::Transfer {
                key: family_key(&key, family),
                family,
            },
            remote_as,
            import: of_family(&allowed.hosts),
            export: of_family(&allowed.reachable),
            hold_time: seconds(spec.hold_time),
            keepalive_time: seconds(spec.keepalive_time),
            maximum_prefixes: spec.maximum_prefixes,
        };
        for scope in &allowed.scopes {
            let item = Item::Peer(peer.clone());
            draft.put(scope, item, "spec.allowedConnections", "a session per node");
            for name in context.names_in(scope) {
                told.insert((family, name));
            }
            if spec.advertise_transfer_network {
                for (vrf, communities) in &allowed.vrfs {
                    let leak = Leak {
                        vrf: vrf.clone(),
                        side: Side::Export,
                        inner: CLUSTER.to_owned(),
                        rule: PrefixRule::inside(transfer),
                        communities: communities.clone(),
                        order: None,
                    };
                    let field = "spec.advertiseTransferNetwork";
                    draft.put(
                        scope,
                        Item::Leak(leak),
                        field,
                        "transfer networks are exported",
                    );
                }
            }
        }
    }
    let mut pending = 0;
    for (family, name) in told {
        let key = node_key(&family_key(&key_of(&object.id), family), name);
        match context.answers.get(&key) {
            Some(net) => status.neighbor_ips.push(net.to_string()),
            None => pending += 1,
        }
    }
    if pending > 0 {
        let message = format!("{pending} transfer networks are not there yet");
        let help = "they are taken from the book; look at its findings";
        draft.warn(Code::ClaimPending, "spec.transferRange", message, help);
    }
    draft.contribution.status = crate::status::value(&status);
    draft
}

#[derive(Default)]
struct Allowed {
    scopes: BTreeSet<Scope>,
    hosts: BTreeSet<PrefixRule>,
    reachable: BTreeSet<PrefixRule>,
    vrfs: BTreeMap<String, BTreeSet<String>>,
}

fn allowed(draft: &mut Draft, object: &Object<BGPNeighborSpec>, context: &Context<'_>) -> Allowed {
    let mut allowed = Allowed::default();
    for (at, entry) in object.spec.allowed_connections.iter().enumerate() {
        let field = format!("spec.allowedConnections[{at}]");
        let name = &entry.vrf_attachment.name;
        let found = context
            .inputs
            .vrf_attachments
            .iter()
            .find(|a| a.id.name == *name);
        let Some(attachment) = found else {
            let message = format!("there is no VRFAttachment {name}");
            let help = "correct the name, or apply the VRFAttachment";
            draft.error(Code::ReferenceNotFound, &field, message, help);
            continue;
        };
        for wanted in &entry.connection_names {
            let connections = &attachment.spec.connections;
            let Some(at) = connections.iter().position(|c| c.name == *wanted) else {
                let message = format!("{} has no connection {wanted}", attachment.id);
                draft.error(Code::ReferenceNotFound, &field, message, "correct the name");
                continue;
            };
            let connection = &connections[at];
            if connection.direction != Direction::Inbound || !connection.disable_load_balancer {
                let message = format!(
                    "connection {wanted} of {} must be inbound with disableLoadBalancer: true",
                    attachment.id
                );
                let help = "change the connection, or name another one";
                draft.error(Code::ConnectionNotAllowed, &field, message, help);
                continue;
            }
            let at = format!("spec.connections[{at}]");
            let mut quiet = Draft::new(attachment);
            let spec = &attachment.spec;
            let reach = vrf_attachment::narrowed(&mut quiet, attachment, context, connection, &at);
            let hosts = vrf_attachment::addresses(&mut quiet, attachment, context, connection, &at);
            let hosts = hosts
                .into_iter()
                .map(|a| Cidr::containing(a, Family::of(a).bits()));
            allowed.hosts.extend(hosts.map(PrefixRule::exact));
            for (vrf, via) in &reach.vrfs {
                allowed.reachable.extend(via.imports.iter().cloned());
                let communities = allowed.vrfs.entry(vrf.clone()).or_default();
                communities.extend(via.communities.iter().cloned());
            }
            let scope = context.nodes_of(&spec.worker_groups, spec.node_selector.as_ref());
            allowed.scopes.insert(scope);
        }
    }
    allowed
}

fn range<'a>(context: &Context<'a>, spec: &BGPNeighborSpec) -> Option<&'a TransferRange> {
    let ranges = &context.inputs.config.transfer_ranges;
    match &spec.transfer_range {
        Some(name) => ranges.iter().find(|r| r.name == *name),
        None => ranges.first(),
    }
}

fn of(range: &TransferRange, family: Family) -> Option<Cidr> {
    match family {
        Family::V4 => range.ipv4,
        Family::V6 => range.ipv6,
    }
}

pub(super) fn wants(
    object: &Object<BGPNeighborSpec>,
    context: &Context<'_>,
    wants: &mut Vec<Want>,
) {
    let Some(range) = range(context, &object.spec) else {
        return;
    };
    let mut quiet = Draft::new(object);
    let allowed = allowed(&mut quiet, object, context);
    let nodes: BTreeSet<&str> = allowed
        .scopes
        .iter()
        .flat_map(|scope| context.names_in(scope))
        .collect();
    for family in [Family::V4, Family::V6] {
        let Some(transfer) = of(range, family) else {
            continue;
        };
        let key = family_key(&key_of(&object.id), family);
        for node in &nodes {
            wants.push(Want {
                key: node_key(&key, node),
                owner: object.id.clone(),
                field: "spec.transferRange".to_owned(),
                instance: format!("transfer-{}", range.name),
                source: Source::Block {
                    range: transfer,
                    len: family.bits() - 1,
                },
            });
        }
    }
}
