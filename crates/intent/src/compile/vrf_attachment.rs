//! VRFAttachment: addresses in VRFs, the load balancer's pools for inbound and the gateways for outbound connections.
//!
//! The addresses live in the cluster's VRF and are leaked to each VRF as hosts, under one aggregate. A connection that
//! leads to several VRFs, or has routes of its own, has its traffic looked up in a local VRF, by source.

use std::collections::BTreeSet;
use std::net::IpAddr;

use mooring_api::kinds::schiff::{
    Connection, ConnectionStatus, Direction, Route, RouteDirection, VRFAttachmentSpec,
    VRFAttachmentStatus,
};
use mooring_api::{AddrRange, Cidr, Code, Family};

use super::layer2_attachment::ambiguous;
use super::{Context, Draft, family_key, key_of};
use crate::Scope;
use crate::answers::{Source, Want};
use crate::conflict::POOLS;
use crate::form::{Aggregate, CLUSTER, Item, PrefixRule, Side, Steer};
use crate::input::Object;
use crate::platform::{self, Inbound, Outbound};
use crate::reach::{Reach, local_of};

pub(super) fn contribute(object: &Object<VRFAttachmentSpec>, context: &Context<'_>) -> Draft {
    let spec = &object.spec;
    let mut draft = Draft::new(object);
    draft.network(context, &spec.network);
    let scope = draft.scope(context, &spec.worker_groups, spec.node_selector.as_ref());
    let mut reach = draft.reach(context, "spec.destinations", &spec.destinations, None);
    reach.speak(&spec.communities);
    let subnets: Vec<Cidr> = spec.network.subnets().collect();
    check(&mut draft, object, &subnets);
    draft.apart(&subnets, &reach.prefixes(), "spec.network");

    let mut status = VRFAttachmentStatus::default();
    (status.destinations, status.vrfs) = reach.names();
    for subnet in &subnets {
        let held = &mut draft.contribution.subnets;
        for vrf in reach.vrfs.keys() {
            held.push((vrf.clone(), *subnet, object.id.to_string()));
        }
        // Attachments of one subnet take their addresses from one instance, so these are apart.
        held.push((POOLS.to_owned(), *subnet, subnet.to_string()));
    }
    for (at, connection) in spec.connections.iter().enumerate() {
        let field = format!("spec.connections[{at}]");
        let addresses = addresses(&mut draft, object, context, connection, &field);
        connect(
            &mut draft, object, context, connection, &field, &scope, &addresses,
        );
        status.connections.push(said(connection, &addresses));
    }
    let inbound = |c: &Connection| c.direction == Direction::Inbound && !c.disable_load_balancer;
    if spec.connections.iter().any(inbound) {
        status
            .load_balancer_class
            .clone_from(&context.inputs.config.platform.load_balancer_class);
    }
    draft.contribution.status = crate::status::value(&status);
    draft
}

fn said(connection: &Connection, addresses: &[IpAddr]) -> ConnectionStatus {
    let of = |family| {
        let all = addresses.iter().filter(|a| Family::of(**a) == family);
        all.map(ToString::to_string).collect()
    };
    ConnectionStatus {
        name: connection.name.clone(),
        addresses: of(Family::V6),
        addresses_v4: of(Family::V4),
    }
}

/// What the seed asks of the object alone: room for every address, no prefix twice.
fn check(draft: &mut Draft, object: &Object<VRFAttachmentSpec>, subnets: &[Cidr]) {
    for subnet in subnets {
        let wanted: u128 = object
            .spec
            .connections
            .iter()
            .map(|c| count(c, subnet.family()) as u128)
            .sum();
        let usable = subnet.hosts().count();
        if wanted > usable {
            let message = format!("connections need {wanted} addresses, and {subnet} has {usable}");
            let help = "lower the counts, or make another VRFAttachment";
            draft.error(Code::PoolExhausted, "spec.connections", message, help);
        }
    }
    let own = object.spec.connections.iter().flat_map(|c| &c.routes);
    let taken = own.filter(|route| route.direction != Some(RouteDirection::Export));
    let taken: BTreeSet<Cidr> = taken.flat_map(|r| r.prefixes.iter().copied()).collect();
    draft.apart(subnets, &taken, "spec.connections");
    let mut seen = BTreeSet::new();
    for (at, connection) in object.spec.connections.iter().enumerate() {
        for prefix in connection.routes.iter().flat_map(|r| &r.prefixes) {
            if !seen.insert(prefix) {
                let field = format!("spec.connections[{at}].routes");
                let message = format!("{prefix} is written twice");
                let help = "write every prefix once in a VRFAttachment";
                draft.error(Code::OverlappingPrefixes, &field, message, help);
            }
        }
        let stray = connection
            .addresses
            .iter()
            .find(|a| !subnets.iter().any(|s| s.contains(**a)));
        if let Some(stray) = stray {
            let field = format!("spec.connections[{at}].addresses");
            let message = format!("{stray} lies in no subnet of the attachment");
            draft.error(
                Code::AddressOutsidePrefix,
                &field,
                message,
                "write one of network",
            );
        }
    }
}

/// How many addresses of a family.
fn count(connection: &Connection, family: Family) -> usize {
    if connection.addresses.is_empty() {
        return usize::from(connection.count);
    }
    let fixed = connection.addresses.iter();
    fixed.filter(|a| Family::of(**a) == family).count()
}

fn key(
    object: &Object<VRFAttachmentSpec>,
    connection: &Connection,
    family: Family,
    n: usize,
) -> String {
    let key = format!("{}/{}", key_of(&object.id), connection.name);
    format!("{}/{n}", family_key(&key, family))
}

/// The addresses that a connection has, IPv4 first.
pub(super) fn addresses(
    draft: &mut Draft,
    object: &Object<VRFAttachmentSpec>,
    context: &Context<'_>,
    connection: &Connection,
    field: &str,
) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    let mut missing = 0;
    for subnet in object.spec.network.subnets() {
        let family = subnet.family();
        for n in 0..count(connection, family) {
            match context.answers.address(&key(object, connection, family, n)) {
                Some(addr) if subnet.contains(addr) => addresses.push(addr),
                _ => missing += 1,
            }
        }
    }
    if missing > 0 {
        let message = format!("{missing} of its addresses are not there yet");
        let help = "they are taken from the book; look at its findings";
        draft.warn(Code::ClaimPending, field, message, help);
    }
    if let Some((addr, node)) = context.nodes.owner(&addresses) {
        let message = format!("{addr} is an address of node {node}");
        let help = "write other addresses, or another network";
        draft.error(Code::DuplicateAddress, field, message, help);
    }
    addresses
}

/// Where a connection leads.
pub(super) fn narrowed<'a>(
    draft: &mut Draft,
    object: &Object<VRFAttachmentSpec>,
    context: &Context<'a>,
    connection: &Connection,
    field: &str,
) -> Reach<'a> {
    let narrowing = connection.destinations.as_ref();
    let at = match narrowing {
        Some(_) => format!("{field}.destinations"),
        None => "spec.destinations".to_owned(),
    };
    if draft.is_bad() && narrowing.is_none() {
        // Said once already.
        return Reach::default();
    }
    let mut reach = draft.reach(context, &at, &object.spec.destinations, narrowing);
    reach.speak(&object.spec.communities);
    reach.add(&connection.routes);
    reach
}

fn connect(
    draft: &mut Draft,
    object: &Object<VRFAttachmentSpec>,
    context: &Context<'_>,
    connection: &Connection,
    field: &str,
    scope: &Scope,
    addresses: &[IpAddr],
) {
    let reach = narrowed(draft, object, context, connection, field);
    let subnets: Vec<Cidr> = object.spec.network.subnets().collect();
    let hosts: Vec<Cidr> = addresses.iter().map(|a| host(*a)).collect();
    let taken = |r: &Route| r.direction != Some(RouteDirection::Export);
    let own = connection
        .routes
        .iter()
        .any(|r| taken(r) && !r.prefixes.is_empty());
    let steered = steer(draft, object, context, &reach, scope, &hosts, own, field);
    for (name, via) in &reach.vrfs {
        draft.lead(scope, via, !steered);
        for subnet in &subnets {
            let (vrf, prefix) = (name.clone(), *subnet);
            let item = Item::Aggregate(Aggregate { vrf, prefix });
            draft.put(
                scope,
                item,
                "spec.network",
                "the subnet is announced as a whole",
            );
            let item = via.leak(Side::Export, CLUSTER, PrefixRule::exact(*subnet));
            draft.put(scope, item, "spec.network", "the own subnet is exported");
        }
        for prefix in &hosts {
            let item = via.leak(Side::Export, CLUSTER, PrefixRule::exact(*prefix));
            draft.put(scope, item, field, "addresses of a connection are exported");
        }
        for rule in &via.exports {
            let item = via.leak(Side::Export, CLUSTER, rule.clone());
            draft.put(scope, item, field, "a route with direction export");
        }
    }
    objects(draft, object, context, connection, scope, &reach, addresses);
}

/// Routing by source, where the cluster's own table could not tell.
#[expect(
    clippy::too_many_arguments,
    reason = "what one connection was resolved to"
)]
pub(super) fn steer<S>(
    draft: &mut Draft,
    object: &Object<S>,
    context: &Context<'_>,
    reach: &Reach<'_>,
    scope: &Scope,
    sources: &[Cidr],
    own: bool,
    field: &str,
) -> bool {
    let needed =
        reach.vrfs.len() > 1 || reach.forced || own || context.ambiguous.contains(&object.id);
    let Some(only) = reach.vrfs.keys().next().filter(|_| needed) else {
        return false;
    };
    let local = if reach.vrfs.len() == 1 && !own {
        local_of(only)
    } else {
        match reach.joined(&[CLUSTER]) {
            Ok(local) => local,
            Err(twice) => {
                ambiguous(draft, &twice);
                return true;
            }
        }
    };
    let into = local.name.clone();
    let why = "traffic is looked up by source in a local VRF";
    draft.put(scope, Item::Local(local), "spec.destinations", why);
    for source in sources {
        let (source, into) = (*source, into.clone());
        draft.put(scope, Item::Steer(Steer { source, into }), field, why);
    }
    true
}

fn host(addr: IpAddr) -> Cidr {
    Cidr::containing(addr, Family::of(addr).bits())
}

fn objects(
    draft: &mut Draft,
    object: &Object<VRFAttachmentSpec>,
    context: &Context<'_>,
    connection: &Connection,
    scope: &Scope,
    reach: &Reach<'_>,
    addresses: &[IpAddr],
) {
    let config = &context.inputs.config;
    let name = format!("{}-{}", object.id.name, connection.name);
    let made = match connection.direction {
        Direction::Inbound if !connection.disable_load_balancer => platform::inbound(
            config,
            &Inbound {
                owner: &object.id,
                name: &name,
                scope,
                addresses,
                advertisement: connection.advertisement,
            },
        ),
        Direction::Outbound => platform::outbound(
            config,
            &Outbound {
                owner: &object.id,
                name: &name,
                scope,
                addresses,
                destinations: &reach.prefixes(),
                replicas: connection.count,
            },
        ),
        _ => Vec::new(),
    };
    draft.contribution.platform.extend(made);
}

pub(super) fn wants(
    object: &Object<VRFAttachmentSpec>,
    context: &Context<'_>,
    wants: &mut Vec<Want>,
) {
    let spec = &object.spec;
    for (at, connection) in spec.connections.iter().enumerate() {
        for subnet in spec.network.subnets() {
            let family = subnet.family();
            let fixed: Vec<IpAddr> = connection
                .addresses
                .iter()
                .filter(|a| Family::of(**a) == family)
                .copied()
                .collect();
            let own = context.nodes.addresses_in(subnet);
            let avoid: Vec<AddrRange> = own.map(AddrRange::single).collect();
            for n in 0..count(connection, family) {
                wants.push(Want {
                    key: key(object, connection, family, n),
                    owner: object.id.clone(),
                    field: format!("spec.connections[{at}]"),
                    instance: subnet.to_string(),
                    source: Source::Address {
                        subnet,
                        fixed: fixed.get(n).copied(),
                        avoid: avoid.clone(),
                    },
                });
            }
        }
    }
}
