//! Claims and prefixes that stand alone, and the claims of a package.

use mooring_api::kinds::nephio::ipam::{
    IPClaimSpec, IPClaimStatus, IPPrefixSpec, NetworkInstanceSpec, PrefixKind,
};
use mooring_api::kinds::nephio::vlan::{VLANClaimSpec, VLANClaimStatus};
use mooring_api::{Finding, label};
use mooring_ipam::{Claim, InstanceKey, Thing};

use super::{Claimed, Known, Listed, Owner, Table};
use crate::bundle::{Object, group};
use crate::claim::Wish;

/// What an object of a management cluster says: a claim with its answer, or a prefix. Other kinds say nothing.
pub fn of_object(object: &Object, place: usize) -> Result<Table, Finding> {
    let mut table = Table::default();
    let owner = Owner::of(&object.reference());
    let listed = |instance, thing| Listed {
        instance,
        thing,
        subnet: None,
        gateway: None,
        owner: owner.clone(),
        holder: None,
        is_gateway: false,
        place,
        field: "status",
    };
    if object.is(group::IPAM, "IPClaim") {
        // A claim that looks up has what another one has.
        if object.annotation("nephio.org/action").is_some() {
            return Ok(table);
        }
        let spec: IPClaimSpec = object.spec()?;
        let status: IPClaimStatus = object.status()?;
        let instance = InstanceKey::new(
            &spec.network_instance.namespace,
            &spec.network_instance.name,
        );
        let block = spec.create_prefix.is_some() || spec.kind == PrefixKind::Pool;
        if let Some(prefix) = status.prefix {
            let thing = if block {
                Thing::Block(prefix.subnet())
            } else {
                Thing::Addr(prefix.addr())
            };
            if block {
                table.known.insert(Known {
                    instance: instance.clone(),
                    cidr: prefix.subnet(),
                });
            }
            let is_network = spec.kind == PrefixKind::Network;
            table.listed.push(Listed {
                subnet: (!block && is_network).then(|| prefix.subnet()),
                gateway: status.gateway,
                is_gateway: spec.labels.get(label::GATEWAY).is_some_and(|v| v == "true"),
                field: "status.prefix",
                ..listed(instance, thing)
            });
        }
    } else if object.is(group::VLAN, "VLANClaim") {
        let spec: VLANClaimSpec = object.spec()?;
        let status: VLANClaimStatus = object.status()?;
        let index = spec.vlan_index.unwrap_or_default();
        let index = InstanceKey::new(&index.namespace, &index.name);
        let entry = status.vlan_id.map(|id| Listed {
            field: "status.vlanID",
            ..listed(index, Thing::Vlan(id))
        });
        table.listed.extend(entry);
    } else if object.is(group::IPAM, "IPPrefix") {
        let spec: IPPrefixSpec = object.spec()?;
        let instance = spec.network_instance.unwrap_or_default();
        let instance = InstanceKey::new(&instance.namespace, &instance.name);
        table.pools += 1;
        let cidr = spec.prefix.subnet();
        // Host bits say that this address lives in the subnet.
        if spec.prefix.is_host() {
            table.listed.push(Listed {
                subnet: Some(cidr),
                is_gateway: spec.labels.get(label::GATEWAY).is_some_and(|v| v == "true"),
                field: "spec.prefix",
                ..listed(instance.clone(), Thing::Addr(spec.prefix.addr()))
            });
        }
        table.known.insert(Known { instance, cidr });
    } else if object.is(group::IPAM, "NetworkInstance") {
        let spec: NetworkInstanceSpec = object.spec()?;
        let instance = InstanceKey::new(object.namespace(), object.name());
        table.pools += spec.prefixes.len();
        table.known.extend(spec.prefixes.iter().map(|p| Known {
            instance: instance.clone(),
            cidr: p.prefix,
        }));
    }
    Ok(table)
}

/// The subnet that a cluster must have for a claim of one of its packages to be answered as it is. `block` is what a render
/// asks for first.
pub fn of_share(block: &Claim, place: usize) -> Claimed {
    Claimed {
        instance: block.instance.clone(),
        owner: Owner::new("Network", block.instance.namespace(), block.instance.name()),
        holder: block.holder.clone(),
        said: block.before,
        subnet: None,
        gateway: None,
        place,
    }
}

/// A claim of a package, by the wish that a render makes of it. `object` is the claim, the caller's object `place`.
pub fn of_wish(wish: &Wish, object: &Object, place: usize) -> Claimed {
    let status: IPClaimStatus = match wish.kind {
        "IPClaim" => object.status().unwrap_or_default(),
        _ => IPClaimStatus::default(),
    };
    let said = wish.claim.before;
    let in_subnet = matches!(said, Some(Thing::Addr(_)));
    Claimed {
        instance: wish.claim.instance.clone(),
        owner: Owner::of(&object.reference()),
        holder: wish.claim.holder.clone(),
        said,
        subnet: status
            .prefix
            .map(|p| p.subnet())
            .filter(|s| in_subnet && s.prefix_len() < s.family().bits()),
        gateway: status.gateway,
        place,
    }
}
