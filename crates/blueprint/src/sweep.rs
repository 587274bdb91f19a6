//! What goes when its Interface goes: claims, allocations and NADs that we made for something that is
//! no longer there, and their conditions and gates. Only what carries `owned-by` is ever removed.

use std::collections::BTreeSet;

use crate::bundle::{Bundle, Object};
use crate::claim::{claim_condition, interface_condition, vlan_condition};
use crate::cluster::Cluster;
use crate::nad::node_name;
use crate::port::Port;

/// Removes every generated object of these kinds that no port wants, and every condition of ours
/// without its object.
pub fn sweep(bundle: &mut Bundle, ports: &[Port], cluster: &Cluster, kinds: &[&str]) {
    let wanted = wanted(ports, cluster);
    let ours = |o: &Object| {
        o.owner()
            .is_some_and(|owner| owner.starts_with("Interface/") || owner.starts_with("IPClaim/"))
    };
    bundle.objects.retain(|o| {
        !ours(o)
            || !kinds.contains(&o.kind())
            || wanted.contains(&(
                o.kind().to_owned(),
                o.name().to_owned(),
                o.namespace().to_owned(),
            ))
    });
    let mut conditions: BTreeSet<String> = BTreeSet::new();
    for port in ports {
        if !port.claim_first {
            conditions.insert(interface_condition(&port.name));
            // The pod network and our own plugin have no claim, but may have its condition.
            conditions.insert(claim_condition(&port.name));
        }
        conditions.extend(
            port.claims(cluster)
                .iter()
                .map(|c| claim_condition(&c.name)),
        );
        if port.wants_vlan {
            conditions.insert(vlan_condition(&port.name));
        }
    }
    let prefixes = [
        interface_condition(""),
        claim_condition(""),
        vlan_condition(""),
    ];
    let stale: BTreeSet<String> = bundle
        .marks
        .conditions
        .iter()
        .map(|c| c.kind.clone())
        .filter(|c| prefixes.iter().any(|p| c.starts_with(p.as_str())) && !conditions.contains(c))
        .collect();
    bundle.marks.drop_conditions(&stale);
}

/// (kind, name, namespace) of everything that the ports want made.
fn wanted(ports: &[Port], cluster: &Cluster) -> BTreeSet<(String, String, String)> {
    let mut wanted = BTreeSet::new();
    for port in ports {
        let mut want = |kind: &str, name: &str| {
            wanted.insert((kind.to_owned(), name.to_owned(), port.namespace.clone()));
        };
        for claim in port.claims(cluster) {
            want("IPClaim", &claim.name);
        }
        if port.wants_vlan {
            want("VLANClaim", &port.name);
        }
        if port.attachable && port.instance.is_some() {
            if port.claim_first && !port.takes_ranges() {
                want("IPAllocation", &port.name);
            }
            for node in port.nodes(cluster) {
                want(
                    "NetworkAttachmentDefinition",
                    &node_name(&port.nad_name(), node),
                );
            }
        }
    }
    wanted
}
