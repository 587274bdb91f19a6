//! What a NAD takes for granted on its cluster: the CNI plugin, the NIC, the VLAN, the packet size.
//!
//! A WorkloadCluster that lists no NICs has said nothing about them, and nothing is judged; one that does
//! is taken to be complete.

use mooring_api::{Code, Finding, annotation};
use mooring_attach::cni::member;
use serde_json::{Map, Value};

use crate::cluster::{Cluster, Nic};
use crate::report::Found;
use crate::world::{Nad, World, annotation_of, word};

/// Plugins that make interfaces, as `spec.cnis` names them; others are helpers that need no entry.
const KNOWN: [&str; 8] = [
    "macvlan",
    "ipvlan",
    "vlan",
    "bridge",
    "sriov",
    "host-device",
    "amd-host-device",
    "ovs",
];

pub(crate) fn judge(world: &World<'_>, out: &mut Vec<Found>) {
    for nad in &world.nads {
        let Some(cluster) = world.clusters.get(&nad.origin.cluster) else {
            continue;
        };
        let resource = annotation_of(world.inputs[nad.input].value, annotation::RESOURCE_NAME);
        let mut say = |finding| out.push(Found::at(finding, nad.origin, "spec.config"));
        if let Some(finding) = plugin(nad, cluster) {
            say(finding);
        }
        let (nic, finding) = nic(nad, cluster, resource);
        if let Some(finding) = finding {
            say(finding);
        }
        if let Some((name, nic)) = nic
            && let Some(finding) = mtu(nad, name, nic)
        {
            say(finding);
        }
    }
}

fn plugin(nad: &Nad<'_>, cluster: &Cluster) -> Option<Finding> {
    let plugin = nad.plugin();
    if cluster.cnis.is_empty() || !KNOWN.contains(&plugin) || cluster.cnis.contains(plugin) {
        return None;
    }
    let offered: Vec<&str> = cluster.cnis.iter().map(String::as_str).collect();
    let name = &nad.origin.cluster;
    let message = format!(
        "cluster {name} does not offer {plugin}; it offers {}",
        offered.join(", ")
    );
    let help = format!(
        "choose one of these, or add {plugin} to spec.cnis of {}",
        cluster.object
    );
    Some(Finding::error(Code::UnsupportedCni, message).help(help))
}

/// The NIC below the interface, where the cluster lists it; what is wrong where it does not.
fn nic<'c>(
    nad: &Nad<'_>,
    cluster: &'c Cluster,
    resource: Option<&str>,
) -> (Option<(&'c str, &'c Nic)>, Option<Finding>) {
    let nothing = (None, None);
    if cluster.nics.is_empty() {
        return nothing;
    }
    let Some(main) = nad.main() else {
        return nothing;
    };
    let key = match nad.plugin() {
        "macvlan" | "ipvlan" | "vlan" => "master",
        "sriov" | "amd-host-device" => return served(nad, cluster, resource),
        "host-device" if word(main, "device").is_none() => return served(nad, cluster, resource),
        "host-device" => "device",
        _ => return nothing,
    };
    let Some(master) = word(main, key) else {
        return nothing;
    };
    let listed = |name: &str| {
        let found = cluster.nics.get_key_value(name);
        found.map(|(name, nic)| (name.as_str(), nic))
    };
    let (base, vlan) = match master.rsplit_once('.') {
        Some((base, vlan)) => (base, Some(vlan)),
        None => (master, None),
    };
    if let Some(nic) = listed(master) {
        // A sub-interface without a size of its own has its NIC's.
        let known = Some(nic).filter(|(_, nic)| nic.mtu.is_some());
        return (known.or(listed(base)), None);
    }
    let listed = listed(base);
    if listed.is_none() && cluster.master.as_deref() != Some(base) {
        return (None, Some(no_nic(nad, cluster, base)));
    }
    let missing = vlan.and_then(|vlan| no_vlan(nad, cluster, base, vlan));
    (listed, missing)
}

/// The NIC that a device plugin takes the interface from. Where no NIC names its resource, one under a foreign name may
/// come from a device plugin that the WorkloadCluster does not speak of.
fn served<'c>(
    nad: &Nad<'_>,
    cluster: &'c Cluster,
    resource: Option<&str>,
) -> (Option<(&'c str, &'c Nic)>, Option<Finding>) {
    let Some(resource) = resource else {
        return (None, None);
    };
    if let Some(nic) = cluster.by_resource(resource) {
        return (Some(nic), None);
    }
    let there = cluster.resources();
    if there.is_empty() && !cluster.is_own(resource) {
        return (None, None);
    }
    let name = &nad.origin.cluster;
    let there = if there.is_empty() {
        let nics: Vec<&str> = cluster.nics.keys().map(String::as_str).collect();
        format!("its NICs are {}", nics.join(", "))
    } else {
        format!("they serve {}", there.join(", "))
    };
    let message =
        format!("no NIC of cluster {name} serves {resource}; {there}: the pod stays Pending");
    let help = format!(
        "name a resource that is served, or write resourceName: {resource} at its NIC in spec.networkInterfaces of {}",
        cluster.object
    );
    let finding = Finding::error(Code::NoFittingNic, message).help(help);
    (None, Some(finding))
}

fn no_nic(nad: &Nad<'_>, cluster: &Cluster, nic: &str) -> Finding {
    let nics: Vec<&str> = cluster.nics.keys().map(String::as_str).collect();
    let name = &nad.origin.cluster;
    let message = format!(
        "cluster {name} has no NIC {nic}; it has {}",
        nics.join(", ")
    );
    let help = format!(
        "name one of these, or list {nic} in spec.networkInterfaces of {}",
        cluster.object
    );
    Finding::error(Code::NoFittingNic, message).help(help)
}

/// A cluster that lists some VLAN sub-interfaces of a NIC has those and no others.
fn no_vlan(nad: &Nad<'_>, cluster: &Cluster, base: &str, vlan: &str) -> Option<Finding> {
    let below = |name: &&String| name.rsplit_once('.').is_some_and(|(nic, _)| nic == base);
    let listed: Vec<&str> = cluster
        .nics
        .keys()
        .filter(below)
        .map(String::as_str)
        .collect();
    if listed.is_empty() {
        return None;
    }
    let name = &nad.origin.cluster;
    let message = format!(
        "cluster {name} has no VLAN {vlan} on {base}; it has {}",
        listed.join(", ")
    );
    let help = format!(
        "use one of these, or list {base}.{vlan} in spec.networkInterfaces of {} once the switch carries it",
        cluster.object
    );
    Some(Finding::error(Code::VlanMissing, message).help(help))
}

fn mtu(nad: &Nad<'_>, name: &str, nic: &Nic) -> Option<Finding> {
    let most = nic.mtu?;
    let number = |plugin: &&Map<String, Value>| {
        let mtu = member(plugin, "mtu")?;
        mtu.as_u64().or_else(|| mtu.as_str()?.parse().ok())
    };
    let wanted = nad.plugins().iter().filter_map(number).max()?;
    if wanted <= most {
        return None;
    }
    let message =
        format!("mtu {wanted} is larger than the {most} of {name}: the plugin refuses it");
    let help = format!(
        "write mtu {most} or less, or raise the mtu of {name} on the nodes and in the WorkloadCluster"
    );
    Some(Finding::error(Code::MtuTooLarge, message).help(help))
}
