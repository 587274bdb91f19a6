//! Claims that stand in an API by themselves, outside of any package: what they wish, and what their answer looks like.
//!
//! The controller calls this. The identity of such a claim is its namespace and name (with the cluster that its selector
//! names), never a package id, so a claim that is deleted and made again gets the same address while it rests. Easy to
//! get wrong: two VLANClaims never share a VLAN here, as those of packages do, since each is given back when its object goes.

use mooring_api::kinds::nephio::ipam::{IPClaimSpec, IPClaimStatus, PrefixKind};
use mooring_api::kinds::nephio::vlan::{VLANClaimSpec, VLANClaimStatus};
use mooring_api::{Code, Family, Finding, annotation, label};
use mooring_ipam::{Claim, Holder, InstanceKey, Kind, Lease, Order, Pools, Thing, Want};
use serde_json::{Map, Value, json};

use crate::bundle::{Object, group, map_below};
use crate::claim::{Wish, allocation_spec, claim_to_vlan, shown};
use crate::nephio;
use crate::pools::kind;

/// What a claim wishes; None for one that asks nobody here: an external system answers it, or it looks an address up.
pub fn wish(object: &Object, pools: &Pools) -> Result<Option<Wish>, Finding> {
    let external = object.annotation(annotation::IPAM_FLAVOUR) == Some("external");
    if external || object.annotation(nephio::ACTION).is_some() {
        return Ok(None);
    }
    let (kind, claim) = if object.is(group::VLAN, "VLANClaim") {
        ("VLANClaim", vlan(object)?)
    } else {
        ("IPClaim", address(object, pools)?)
    };
    Ok(Some(Wish {
        kind,
        name: object.name().to_owned(),
        object: object.reference(),
        claim,
        answered: false,
        kept: None,
    }))
}

fn holder(object: &Object, cluster: &str, family: Family) -> Holder {
    Holder {
        cluster: cluster.to_owned(),
        package: String::new(),
        namespace: object.namespace().to_owned(),
        workload: String::new(),
        interface: object.name().to_owned(),
        family,
        ordinal: 0,
    }
}

fn address(object: &Object, pools: &Pools) -> Result<Claim, Finding> {
    let spec: IPClaimSpec = object.spec()?;
    let status: IPClaimStatus = object.status().unwrap_or_default();
    let network = &spec.network_instance;
    let instance = InstanceKey::new(&network.namespace, &network.name);
    let family = nephio::family(&spec, status.prefix, &instance, pools);
    let block = spec.create_prefix == Some(true) || spec.kind == PrefixKind::Pool;
    let want = match (block, spec.prefix_length, spec.prefix) {
        (false, ..) => Want::Address,
        (true, Some(len), _) => Want::Block { len },
        (true, None, Some(prefix)) => Want::Block {
            len: prefix.prefix_len(),
        },
        (true, None, None) => {
            let text = "a prefix is asked for, but prefixLength is missing";
            return Err(Finding::error(Code::InvalidField, text)
                .on(&object.reference())
                .at("spec.prefixLength")
                .help("Write prefixLength, or the prefix itself."));
        }
    };
    let before = status.prefix.map(|p| match want {
        Want::Block { .. } => Thing::Block(p.subnet()),
        _ => Thing::Addr(p.addr()),
    });
    let order = if nephio::has_mark(object) {
        Order::BestFit
    } else {
        Order::LowestFirst
    };
    let cluster = spec.selector.match_labels.get(label::CLUSTER_NAME);
    let cluster = cluster.map_or("", String::as_str);
    Ok(Claim {
        holder: holder(object, cluster, family),
        instance,
        kind: kind(spec.kind),
        want,
        fixed: spec.prefix,
        before,
        names: vec![object.name().to_owned()],
        order: spec.index.map_or(order, Order::Index),
        selector: spec.selector,
    })
}

fn vlan(object: &Object) -> Result<Claim, Finding> {
    let spec: VLANClaimSpec = object.spec()?;
    let status: VLANClaimStatus = object.status().unwrap_or_default();
    let refuse = |field: &str, message: &str, help: &str| {
        let finding = Finding::error(Code::InvalidField, message);
        finding.on(&object.reference()).at(field).help(help)
    };
    if spec.range.is_some() {
        let (message, help) = (
            "a range of VLANs is asked for, and only single ids are handed out",
            "Remove range; make one VLANClaim per VLAN.",
        );
        return Err(refuse("spec.range", message, help));
    }
    let index = spec.vlan_index.filter(|index| !index.name.is_empty());
    let Some(index) = index else {
        let (message, help) = (
            "no VLANIndex is named",
            "Name the VLANIndex that the id shall come from.",
        );
        return Err(refuse("spec.vlanIndex", message, help));
    };
    let holder = holder(object, &index.name, Family::V4);
    let instance = InstanceKey::new(&index.namespace, &index.name);
    Ok(claim_to_vlan(
        holder,
        instance,
        (spec.vlan_id, status.vlan_id),
    ))
}

/// The fields of a claim's status that are the answer: `prefix` and `gateway`, or `vlanID`.
pub fn answer(wish: &Wish, lease: &Lease) -> Map<String, Value> {
    let mut status = Map::new();
    let prefix = match lease.thing {
        Thing::Addr(addr) => json!(shown(addr, lease, wish.claim.kind)),
        Thing::Block(block) => json!(block),
        Thing::Range(_) => json!(lease.subnet),
        Thing::Vlan(id) => {
            status.insert("vlanID".into(), json!(id));
            return status;
        }
    };
    status.insert("prefix".into(), prefix);
    let gateway = lease
        .gateway
        .filter(|_| wish.claim.kind == Kind::Network && matches!(lease.thing, Thing::Addr(_)));
    if let Some(gateway) = gateway {
        status.insert("gateway".into(), json!(gateway));
    }
    status
}

/// The IPAllocation of a claim of the form of seed 001: written by a person, for one address of a network. What a function
/// or a render made has a home for its address already.
pub fn allocation(object: &Object, wish: &Wish, lease: &Lease) -> Option<Object> {
    let by_hand = object.owner().is_none() && !nephio::has_mark(object);
    let Thing::Addr(addr) = lease.thing else {
        return None;
    };
    if !by_hand || wish.claim.kind != Kind::Network {
        return None;
    }
    let mut reference = object.reference();
    "IPAllocation".clone_into(&mut reference.kind);
    let mut made = Object::generated(&reference, &object.reference());
    let spec = allocation_spec(Some(&wish.claim.instance), addr, lease.gateway);
    map_below(&mut made.value, &[]).insert("spec".into(), spec);
    Some(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mooring_api::Time;
    use mooring_ipam::State;

    fn object(kind: &str, annotations: Value, spec: Value) -> Object {
        let group = if kind == "VLANClaim" {
            group::VLAN
        } else {
            group::IPAM
        };
        let value = json!({
            "apiVersion": format!("{group}/v1alpha1"), "kind": kind,
            "metadata": { "name": "n3", "namespace": "core", "annotations": annotations },
            "spec": spec,
        });
        Object {
            value,
            source: None,
        }
    }

    fn asks(object: &Object) -> Claim {
        wish(object, &Pools::default()).unwrap().unwrap().claim
    }

    fn lease(claim: &Claim) -> Lease {
        Lease {
            instance: claim.instance.clone(),
            thing: Thing::Addr("10.1.2.20".parse().unwrap()),
            subnet: Some("10.1.2.0/24".parse().unwrap()),
            gateway: Some("10.1.2.1".parse().unwrap()),
            holder: claim.holder.clone(),
            state: State::Held,
            since: Time(1),
        }
    }

    #[test]
    fn a_claim_by_hand_is_lowest_first_and_has_an_allocation_and_a_marked_one_neither() {
        let spec = json!({ "networkInstance": { "name": "ran" } });
        let plain = object("IPClaim", json!({}), spec.clone());
        let marked = object(
            "IPClaim",
            json!({ "specializer.nephio.org/owner": "x" }),
            spec,
        );
        assert_eq!(asks(&plain).order, Order::LowestFirst);
        assert_eq!(asks(&marked).order, Order::BestFit);
        let wished = wish(&plain, &Pools::default()).unwrap().unwrap();
        let held = lease(&wished.claim);
        let made = allocation(&plain, &wished, &held).unwrap();
        assert_eq!(made.value["spec"]["prefix"], "10.1.2.20/32");
        assert_eq!(made.value["spec"]["gateway"], "10.1.2.1");
        assert_eq!((made.kind(), made.name()), ("IPAllocation", "n3"));
        assert!(allocation(&marked, &wished, &held).is_none());
        assert_eq!(answer(&wished, &held)["prefix"], "10.1.2.20/24");
    }

    #[test]
    fn a_block_needs_a_length_and_a_range_of_vlans_is_refused() {
        let spec = json!({ "networkInstance": { "name": "ran" }, "createPrefix": true });
        let refused = wish(&object("IPClaim", json!({}), spec), &Pools::default()).unwrap_err();
        assert_eq!(refused.field.as_deref(), Some("spec.prefixLength"));
        let spec = json!({ "vlanIndex": { "name": "edge" }, "range": "100:199" });
        let refused = wish(&object("VLANClaim", json!({}), spec), &Pools::default()).unwrap_err();
        assert_eq!(refused.field.as_deref(), Some("spec.range"));
        let refused = wish(
            &object("VLANClaim", json!({}), json!({})),
            &Pools::default(),
        );
        assert_eq!(
            refused.unwrap_err().field.as_deref(),
            Some("spec.vlanIndex")
        );
    }

    #[test]
    fn what_an_external_system_answers_is_not_asked_for() {
        let spec = json!({ "networkInstance": { "name": "ran" } });
        for mark in [
            json!({ "mooring.dev/ipam-flavour": "external" }),
            json!({ "nephio.org/action": "get" }),
        ] {
            let asked = wish(&object("IPClaim", mark, spec.clone()), &Pools::default());
            assert!(asked.unwrap().is_none());
        }
    }

    #[test]
    fn two_vlan_claims_of_one_index_are_two_holders() {
        let spec = json!({ "vlanIndex": { "name": "edge" } });
        let mut second = object("VLANClaim", json!({}), spec.clone());
        second.value["metadata"]["name"] = json!("n4");
        let first = asks(&object("VLANClaim", json!({}), spec));
        assert_ne!(first.holder, asks(&second).holder);
        assert_eq!(first.instance, InstanceKey::new("", "edge"));
    }
}
