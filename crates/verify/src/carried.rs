//! Which addresses the objects carry, and for whom.
//!
//! A NAD carries addresses for its Interface (or for itself); a pod's annotation carries those in
//! `ips` for the workload's interface. An address that stands in both is one use, not two: whether that
//! works is `nad::check_selection`'s to say. A reservation of whereabouts is a use by the pod it names,
//! unless that pod is here and asks for the address itself.

use std::collections::BTreeMap;
use std::net::IpAddr;

use mooring_api::{HostCidr, ObjectRef, annotation};
use mooring_attach::nad::{Use, Used};
use serde_json::Value;

use crate::input::{Input, Origin, Reservation};
use crate::world::{World, annotation_of};

/// One address or range that somebody gets.
#[derive(Clone, Debug)]
pub(crate) struct Carried<'a> {
    /// Which object, as a number: equal for equal objects only.
    pub(crate) id: usize,
    pub(crate) origin: &'a Origin,
    /// Address or range.
    pub(crate) what: Use,
    /// Routing domain.
    pub(crate) scope: Option<&'a str>,
    /// Inside its cluster, package and namespace: who gets it.
    pub(crate) user: String,
    /// Field path of the object.
    pub(crate) field: String,
    /// Which NAD it belongs to, where that is known.
    pub(crate) nad: Option<usize>,
}

/// Everything carried. `kept` are the reservations with their origins, as [`origins`] made them.
pub(crate) fn gather<'a>(world: &'a World<'a>, kept: &'a [Kept<'a>]) -> Vec<Carried<'a>> {
    let mut out = Vec::new();
    for (index, nad) in world.nads.iter().enumerate() {
        let owner = annotation_of(world.inputs[nad.input].value, annotation::OWNED_BY);
        let name = &nad.origin.object.name;
        let user = owner.map_or_else(|| format!("nad/{name}"), str::to_owned);
        out.extend(nad.uses.iter().map(|used| Carried {
            id: nad.input,
            origin: nad.origin,
            what: used.what,
            scope: nad.scope.as_deref(),
            user: user.clone(),
            field: "spec.config".into(),
            nad: Some(index),
        }));
    }
    for pod in &world.pods {
        let object = &pod.origin.object;
        for (place, entry, nad) in pod.entries() {
            let user = match entry.interface() {
                Some(interface) => format!("{}/{}@{interface}", object.kind, object.name),
                None => format!("{}/{}#{place}", object.kind, object.name),
            };
            let known = nad.map(|nad| &world.nads[nad]);
            let stands = known.map_or(&[][..], |nad| &nad.uses[..]);
            let scope = match known {
                Some(nad) => nad.scope.as_deref(),
                None => world.inputs[pod.input].scope.as_deref(),
            };
            for host in entry.ips().into_iter().filter_map(host) {
                let same =
                    |used: &Used| matches!(used.what, Use::Address(h) if h.addr() == host.addr());
                if stands.iter().any(same) {
                    continue;
                }
                out.push(Carried {
                    id: pod.input,
                    origin: pod.origin,
                    what: Use::Address(host),
                    scope,
                    user: user.clone(),
                    field: pod.field.clone(),
                    nad,
                });
            }
        }
    }
    reserved(world.inputs, kept, &mut out);
    out
}

/// An address of an annotation, with or without length.
pub(crate) fn host(ip: &str) -> Option<HostCidr> {
    let host = ip.parse::<HostCidr>().ok();
    host.or_else(|| ip.parse().ok().map(HostCidr::single))
}

/// The kind that messages name a book's reservation by.
pub(crate) const RESERVATION: &str = "Reservation";

/// A reservation and the place that messages name for it.
pub(crate) struct Kept<'a> {
    origin: Origin,
    reservation: &'a Reservation,
}

pub(crate) fn origins(reservations: &[Reservation]) -> Vec<Kept<'_>> {
    let kept = |reservation| Kept {
        origin: origin(reservation),
        reservation,
    };
    reservations.iter().map(kept).collect()
}

fn origin(reservation: &Reservation) -> Origin {
    Origin {
        object: ObjectRef::new("", RESERVATION, &reservation.holder),
        ..Origin::default()
    }
}

fn reserved<'a>(inputs: &'a [Input<'a>], kept: &'a [Kept<'a>], out: &mut Vec<Carried<'a>>) {
    let mut users: BTreeMap<(&str, IpAddr), Vec<&ObjectRef>> = BTreeMap::new();
    for one in out.iter() {
        if let Use::Address(host) = one.what {
            let place = (one.origin.cluster.as_str(), host.addr());
            users.entry(place).or_default().push(&one.origin.object);
        }
    }
    let mut found = Vec::new();
    for (id, input) in inputs.iter().enumerate() {
        let origin = &input.origin;
        let Some(address) = reserved_address(input) else {
            continue;
        };
        let podref = input.value.pointer("/spec/podref").and_then(Value::as_str);
        let podref = podref.unwrap_or_default();
        let here = users.get(&(origin.cluster.as_str(), address));
        if here.is_some_and(|list| list.iter().any(|object| is_of(podref, object))) {
            continue;
        }
        found.push(Carried {
            id,
            origin,
            what: Use::Address(HostCidr::single(address)),
            scope: input.scope.as_deref(),
            user: format!("reservation/{podref}"),
            field: "spec.ip".into(),
            nad: None,
        });
    }
    for (place, one) in kept.iter().enumerate() {
        let Kept {
            origin,
            reservation,
        } = one;
        found.push(Carried {
            id: inputs.len() + place,
            origin,
            what: kept_use(reservation),
            scope: reservation.scope.as_deref(),
            user: format!("reservation/{}", reservation.holder),
            field: String::new(),
            nad: None,
        });
    }
    out.extend(found);
}

fn kept_use(reservation: &Reservation) -> Use {
    let Reservation { range, subnet, .. } = *reservation;
    let first = HostCidr::single(range.first());
    if range.first() == range.last() {
        return Use::Address(first);
    }
    let subnet = subnet.unwrap_or_else(|| first.subnet());
    Use::Range { range, subnet }
}

/// The address of a reservation of whereabouts.
pub(crate) fn reserved_address(input: &Input<'_>) -> Option<IpAddr> {
    let object = &input.origin.object;
    if object.kind != "OverlappingRangeIPReservation" {
        return None;
    }
    let said = input.value.pointer("/spec/ip").and_then(Value::as_str);
    let address = said.and_then(host).map(|h| h.addr());
    // Its name is the address where whereabouts wrote it itself.
    address.or_else(|| object.name.parse().ok())
}

/// Whether a pod `namespace/name` is, or is made by, this object.
fn is_of(podref: &str, object: &ObjectRef) -> bool {
    let (namespace, name) = podref.split_once('/').unwrap_or(("", podref));
    let here = [namespace, &object.namespace];
    let same = here[0] == here[1] || here.iter().any(|n| n.is_empty());
    let rest = name.strip_prefix(object.name.as_str());
    same && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The addresses that an attachment brings by itself.
pub(crate) fn arguments(entry: &mooring_attach::networks::Entry) -> bool {
    let args = entry.keys().get("cni-args").and_then(|a| a.get("ips"));
    !entry.ips().is_empty() || args.is_some_and(|ips| !matches!(ips, Value::Null))
}
