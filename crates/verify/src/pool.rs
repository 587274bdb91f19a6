//! Which pool an address is handed out from, and which link it lives on: inside one cluster two ranges may
//! overlap only where one pool keeps both, or where their frames never meet.
//!
//! ```text
//!  host-local    <dataDir>/<network name>/ on each node      the NAD's name where the configuration has none
//!  whereabouts   one pool per network_name and subnet; unless enable_overlapping_ranges is false, addresses are
//!                also reserved across the pools of one network_name
//!  static        nobody's: no pool knows of it
//! ```
//!
//! Called by `twice`. Easy to get wrong: an address that a pod asks host-local for is recorded there, one that it
//! asks whereabouts for is not; only an OverlappingRangeIPReservation keeps that one from being handed out.

use std::collections::BTreeSet;
use std::net::IpAddr;

use mooring_api::{Cidr, annotation};
use mooring_attach::nad::Use;
use serde_json::Value;

use crate::carried::{Carried, reserved_address};
use crate::vlan::link;
use crate::world::{Nad, World, annotation_of, word};

/// What is known of pools.
pub(crate) struct Pools<'a> {
    world: &'a World<'a>,
    links: Vec<Option<String>>,
    /// Cluster and address of whereabouts' own reservations.
    reserved: BTreeSet<(&'a str, IpAddr)>,
}

/// Who knows that an address is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeper<'a> {
    /// Nobody.
    None,
    /// Files on each node.
    HostLocal { dir: &'a str, name: &'a str },
    /// Objects in the cluster; `alone` is the subnet of a pool that does not look at others.
    Whereabouts {
        network: &'a str,
        alone: Option<Cidr>,
    },
}

impl Keeper<'_> {
    /// What to do about two that do not know of each other.
    pub(crate) fn help(&self, other: &Self) -> &'static str {
        match (self, other) {
            (Keeper::HostLocal { .. }, Keeper::HostLocal { .. }) => {
                "give each NAD a range of its own, or both configurations the same \"name\": host-local then keeps one \
                 record for both"
            }
            (Keeper::Whereabouts { .. }, Keeper::Whereabouts { .. }) => {
                "give each NAD a range of its own, or both the same network_name and leave enable_overlapping_ranges on"
            }
            (Keeper::None, Keeper::Whereabouts { .. }) => {
                "choose an address outside of the range, or exclude it there: whereabouts does not record what a pod \
                 asks for"
            }
            (Keeper::None, _) => {
                "choose an address outside of the range, or end one range before it and begin another behind it"
            }
            _ => "give each NAD a range of its own, or use one IPAM for both",
        }
    }
}

impl<'a> Pools<'a> {
    pub(crate) fn read(world: &'a World<'a>) -> Self {
        let link = |nad: &Nad<'_>| {
            let resource = annotation_of(world.inputs[nad.input].value, annotation::RESOURCE_NAME);
            link(nad, resource)
        };
        let reserved = world.inputs.iter().filter_map(|input| {
            let address = reserved_address(input)?;
            Some((input.origin.cluster.as_str(), address))
        });
        Self {
            world,
            links: world.nads.iter().map(link).collect(),
            reserved: reserved.collect(),
        }
    }

    /// The link, and who keeps it; nothing where the link is not known.
    pub(crate) fn of(&self, one: &Carried<'_>) -> Option<(&str, Keeper<'a>)> {
        let at = one.nad?;
        let link = self.links[at].as_deref()?;
        let nad = &self.world.nads[at];
        let keeper = match (nad.ipam(), one.what) {
            ("host-local", _) => host_local(nad),
            ("whereabouts", Use::Range { subnet, .. }) => whereabouts(nad, subnet),
            _ => Keeper::None,
        };
        Some((link, keeper))
    }

    /// Whether the second pool keeps clear of the first one after all.
    pub(crate) fn agree(
        &self,
        one: &Carried<'_>,
        mine: &Keeper<'_>,
        other: &Carried<'_>,
        theirs: &Keeper<'_>,
    ) -> bool {
        match (one.what, other.what, mine, theirs) {
            (Use::Address(host), _, _, Keeper::Whereabouts { .. }) => {
                let place = (one.origin.cluster.as_str(), host.addr());
                self.reserved.contains(&place)
            }
            // Of one subnet and name there is one pool, whatever else they say.
            (
                Use::Range { subnet: a, .. },
                Use::Range { subnet: b, .. },
                Keeper::Whereabouts { network: here, .. },
                Keeper::Whereabouts { network: there, .. },
            ) => a == b && here == there,
            _ => false,
        }
    }
}

fn host_local<'a>(nad: &'a Nad<'_>) -> Keeper<'a> {
    let ipam = nad.ipams().into_iter().next();
    let dir = ipam.and_then(|ipam| word(ipam, "dataDir"));
    let name = nad.json.get("name").and_then(Value::as_str);
    Keeper::HostLocal {
        dir: dir.unwrap_or_default().trim_end_matches('/'),
        name: name
            .filter(|n| !n.is_empty())
            .unwrap_or(&nad.origin.object.name),
    }
}

fn whereabouts<'a>(nad: &'a Nad<'_>, subnet: Cidr) -> Keeper<'a> {
    let ipam = nad.ipams().into_iter().next();
    let alone = ipam
        .and_then(|ipam| ipam.get("enable_overlapping_ranges"))
        .and_then(Value::as_bool)
        == Some(false);
    Keeper::Whereabouts {
        network: ipam
            .and_then(|ipam| word(ipam, "network_name"))
            .unwrap_or_default(),
        alone: alone.then_some(subnet),
    }
}
