//! Two networks on one VLAN: they hear each other's broadcasts, and whoever has an address of both is a
//! bridge between them.
//!
//! Easy to get wrong: one network may have several subnets on its VLAN. Two NADs are of one network when
//! they share an instance or a subnet.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::{Cidr, Code, Finding, annotation};
use mooring_attach::cni::member;
use mooring_attach::nad::Use;
use serde_json::{Map, Value};

use crate::carried::Carried;
use crate::report::Found;
use crate::world::{Nad, World, annotation_of, word};

/// What a NAD is part of.
#[derive(Default)]
struct Network<'a> {
    scope: Option<&'a str>,
    instances: BTreeSet<&'a str>,
    subnets: BTreeSet<Cidr>,
}

pub(crate) fn judge(world: &World<'_>, carried: &[Carried<'_>], out: &mut Vec<Found>) {
    let mut networks: BTreeMap<usize, Network<'_>> = BTreeMap::new();
    for one in carried {
        let Some(nad) = one.nad else { continue };
        let (addr, subnet) = match one.what {
            Use::Address(host) => (host.addr(), host.subnet()),
            Use::Range { range, subnet } => (range.first(), subnet),
        };
        let network = networks.entry(nad).or_default();
        network.scope = one.scope;
        network.subnets.insert(subnet);
        network
            .instances
            .extend(world.instances.of(one.scope, addr));
    }
    let mut wires: BTreeMap<(&str, String, u64), Vec<usize>> = BTreeMap::new();
    for (index, nad) in world.nads.iter().enumerate() {
        let resource = annotation_of(world.inputs[nad.input].value, annotation::RESOURCE_NAME);
        if networks.contains_key(&index)
            && let Some((wire, vlan)) = wire(nad, resource)
        {
            let place = (nad.origin.cluster.as_str(), wire, vlan);
            wires.entry(place).or_default().push(index);
        }
    }
    for ((_, wire, vlan), mut nads) in wires {
        nads.sort_by_key(|nad| world.nads[*nad].origin);
        let first = nads[0];
        for nad in &nads[1..] {
            if !is_same(&networks[&first], &networks[nad]) {
                let finding = say(&world.nads[first], &wire, vlan, &networks[&first]);
                out.push(Found::at(finding, world.nads[*nad].origin, "spec.config"));
            }
        }
    }
}

fn say(first: &Nad<'_>, wire: &str, vlan: u64, network: &Network<'_>) -> Finding {
    let instance = network
        .instances
        .first()
        .map(|i| i.strip_prefix("default/").unwrap_or(i));
    let subnet = network.subnets.first().map(ToString::to_string);
    let other = instance.map(str::to_owned).or(subnet).unwrap_or_default();
    let message = format!(
        "VLAN {vlan} on {wire} carries another network already: {other}, of {}",
        first.origin.object
    );
    let help = "give each network a VLAN of its own; a VLANClaim hands out a free one";
    Finding::warning(Code::SharedVlan, message).help(help)
}

fn is_same(a: &Network<'_>, b: &Network<'_>) -> bool {
    if a.scope != b.scope {
        return false;
    }
    let known = !a.instances.is_empty() && !b.instances.is_empty();
    let families = |n: &Network<'_>| n.subnets.iter().map(Cidr::family).collect::<BTreeSet<_>>();
    !a.instances.is_disjoint(&b.instances)
        || !a.subnets.is_disjoint(&b.subnets)
        // A v4 and a v6 NAD of one network share no subnet.
        || (!known && families(a).is_disjoint(&families(b)))
}

/// Which broadcast domain of its cluster an interface is on; empty for the NIC of the default route, which macvlan takes
/// where none is named. Nothing where the plugin does not say.
pub(crate) fn link(nad: &Nad<'_>, resource: Option<&str>) -> Option<String> {
    let main = nad.main()?;
    let named = |key: &str| word(main, key).unwrap_or_default().to_owned();
    let tagged = |link: &str, key: &str| match tag(main, key) {
        Some(vlan) => format!("{link}.{vlan}"),
        None => link.to_owned(),
    };
    match nad.plugin() {
        "macvlan" | "ipvlan" => Some(named("master")),
        "vlan" => Some(tagged(word(main, "master")?, "vlanId")),
        // Two bridges of one name are one on each node.
        "bridge" => Some(tagged(word(main, "bridge").unwrap_or("cni0"), "vlan")),
        "ovs" => Some(tagged(word(main, "bridge")?, "vlan")),
        "sriov" => Some(tagged(resource?, "vlan")),
        "host-device" => word(main, "device").map(str::to_owned),
        _ => None,
    }
}

/// What the frames go out on, and with which tag.
pub(crate) fn wire(nad: &Nad<'_>, resource: Option<&str>) -> Option<(String, u64)> {
    let main = nad.main()?;
    match nad.plugin() {
        "macvlan" | "ipvlan" => {
            let (nic, vlan) = word(main, "master")?.rsplit_once('.')?;
            Some((nic.to_owned(), vlan.parse().ok()?))
        }
        "vlan" => Some((word(main, "master")?.to_owned(), tag(main, "vlanId")?)),
        "bridge" | "ovs" => Some((word(main, "bridge")?.to_owned(), tag(main, "vlan")?)),
        "sriov" => Some((resource?.to_owned(), tag(main, "vlan")?)),
        _ => None,
    }
}

/// 0 is no VLAN.
fn tag(plugin: &Map<String, Value>, key: &str) -> Option<u64> {
    member(plugin, key)?.as_u64().filter(|vlan| *vlan != 0)
}
