//! Secondary addresses and the cluster's own networks: the pod and service CIDRs, Services, pods, and
//! plugins that make an overlay.
//!
//! Inside a pod the interface's subnet wins over the default route, so an overlap cuts it off from
//! Services, DNS or other pods. Easy to get wrong: a cluster that does not say its networks is not
//! wrong, but then nothing was proved; that is said once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mooring_api::{AddrRange, Cidr, Code, Finding, ObjectRef, Severity};
use mooring_attach::nad::Use;

use crate::carried::Carried;
use crate::input::Origin;
use crate::report::Found;
use crate::world::{Nad, World, word};

pub(crate) fn judge(
    world: &World<'_>,
    carried: &[Carried<'_>],
    out: &mut Vec<Found>,
    unjudged: &mut Vec<Found>,
) {
    let taken = taken(world);
    let mut said = BTreeSet::new();
    for one in carried.iter().filter(|one| !one.field.is_empty()) {
        let cluster = one.origin.cluster.as_str();
        if let Use::Address(host) = one.what
            && let Some((other, what)) = taken.get(&(cluster, host.addr()))
            && *other != &one.origin.object
        {
            let message = format!(
                "{} is the {what} of {other}, and no address of the fabric",
                host.addr()
            );
            let help = "give the interface an address of its own network; Services and probes reach the pod by \
                        its primary interface";
            let finding = Finding::error(Code::ClusterAddressOnFabric, message).help(help);
            out.push(Found::at(finding, one.origin, &one.field));
            continue;
        }
        if let Some((cidr, finding)) = overlap(world, one)
            && said.insert((one.id, cidr))
        {
            out.push(Found::at(finding, one.origin, &one.field));
        }
    }
    out.extend(world.nads.iter().filter_map(overlay));
    unknown(world, carried, unjudged);
}

fn overlap(world: &World<'_>, one: &Carried<'_>) -> Option<(Cidr, Finding)> {
    let cluster = world.clusters.get(&one.origin.cluster)?;
    let (used, subnet) = match one.what {
        Use::Address(host) => (AddrRange::single(host.addr()), host.subnet()),
        Use::Range { range, subnet } => (range, subnet),
    };
    let pods = cluster.pods.iter().map(|cidr| (cidr, "pod"));
    let services = cluster.services.iter().map(|cidr| (cidr, "service"));
    let all: Vec<(&Cidr, &str)> = pods.chain(services).collect();
    let met = all.iter().find(|(cidr, _)| cidr.range().overlaps(&used));
    let severity = if met.is_some() {
        Severity::Error
    } else {
        Severity::Warning
    };
    let (cidr, kind) = met.or_else(|| all.iter().find(|(cidr, _)| cidr.overlaps(&subnet)))?;
    let what = match one.what {
        _ if met.is_none() => format!("the subnet {subnet}"),
        Use::Address(host) => host.addr().to_string(),
        Use::Range { range, .. } => range.to_string(),
    };
    let then = match severity {
        Severity::Error => "the cluster hands out the same addresses",
        _ => "the pod no longer reaches these over its primary interface",
    };
    let name = &one.origin.cluster;
    let message = format!("{what} meets {cidr}, the {kind} network of cluster {name}: {then}");
    let finding = Finding::error(Code::ClusterNetworkOverlap, message);
    let help =
        "take the secondary network from addresses that no cluster uses for pods or services";
    Some((
        **cidr,
        Finding {
            severity,
            ..finding
        }
        .help(help),
    ))
}

/// Addresses that a cluster has for itself, with whose they are.
fn taken<'a>(world: &World<'a>) -> BTreeMap<(&'a str, IpAddr), (&'a ObjectRef, &'static str)> {
    let mut out = BTreeMap::new();
    for input in world.inputs {
        let places: &[(&str, &str)] = match input.origin.object.kind.as_str() {
            "Service" => &[
                ("/spec/clusterIP", "service address"),
                ("/spec/clusterIPs", "service address"),
                ("/spec/externalIPs", "external address"),
                ("/spec/loadBalancerIP", "load balancer address"),
                ("/status/loadBalancer/ingress", "load balancer address"),
            ],
            "Ingress" => &[("/status/loadBalancer/ingress", "ingress address")],
            "Pod" => &[
                ("/status/podIP", "pod address"),
                ("/status/podIPs", "pod address"),
            ],
            _ => continue,
        };
        for (path, what) in places {
            let Some(value) = input.value.pointer(path) else {
                continue;
            };
            let one = std::slice::from_ref(value);
            for value in value.as_array().map_or(one, Vec::as_slice) {
                let text = value.get("ip").unwrap_or(value).as_str();
                if let Some(Ok(addr)) = text.map(str::parse) {
                    let place = (input.origin.cluster.as_str(), addr);
                    out.insert(place, (&input.origin.object, *what));
                }
            }
        }
    }
    out
}

/// A plugin whose interface is a tunnel between nodes and not a place on the fabric.
fn overlay(nad: &Nad<'_>) -> Option<Found> {
    let plugin = nad.plugin();
    let is_overlay = match plugin {
        "calico" | "flannel" | "cilium-cni" | "weave-net" | "antrea" | "canal" => true,
        "ovn-k8s-cni-overlay" => {
            let topology = nad.main().and_then(|p| word(p, "topology"));
            matches!(topology, None | Some("layer2" | "layer3"))
        }
        _ => false,
    };
    if !is_overlay {
        return None;
    }
    let message = format!(
        "{plugin} makes an overlay with addresses of the cluster's own: nothing outside can reach it"
    );
    let help = "use macvlan, ipvlan, sriov, vlan or host-device for an interface on the fabric";
    let finding = Finding::warning(Code::ClusterAddressOnFabric, message).help(help);
    Some(Found::at(finding, nad.origin, "spec.config"))
}

fn unknown(world: &World<'_>, carried: &[Carried<'_>], unjudged: &mut Vec<Found>) {
    let used = carried.iter().filter(|one| one.nad.is_some());
    let clusters: BTreeSet<&str> = used.map(|one| one.origin.cluster.as_str()).collect();
    for name in clusters {
        let (mut missing, mut key) = (Vec::new(), Vec::new());
        let cluster = world.clusters.get(name);
        if cluster.is_none_or(|c| c.pods.is_empty()) {
            missing.push("pod");
            key.push("podCIDRs");
        }
        if cluster.is_none_or(|c| c.services.is_empty()) {
            missing.push("service");
            key.push("serviceCIDRs");
        }
        if missing.is_empty() {
            continue;
        }
        let missing = missing.join(" and ");
        let shown = if name.is_empty() {
            "of these objects".to_owned()
        } else {
            name.to_owned()
        };
        let message = format!(
            "the {missing} networks of cluster {shown} are not known: whether a secondary network overlaps them was not judged"
        );
        let help = format!(
            "write {} into its WorkloadCluster, or add kubeadm's ClusterConfiguration (also inside the ConfigMap kubeadm-config) \
             or the Cluster of Cluster API",
            key.join(" and ")
        );
        let object = cluster
            .map(|c| c.object.as_str())
            .and_then(|o| o.split_once('/'));
        let (kind, own) = object.unwrap_or(("WorkloadCluster", name));
        let origin = Origin {
            cluster: name.to_owned(),
            object: ObjectRef::new("infra.nephio.org/v1alpha1", kind, own),
            ..Origin::default()
        };
        let finding = Finding::info(Code::ClusterNetworksUnknown, message).help(help);
        unjudged.push(Found::at(finding, &origin, ""));
    }
}
