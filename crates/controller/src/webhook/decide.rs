//! What is admitted: pure, over the pools as they are and the object as it would be.
//!
//! CEL in the schema has seen the object alone before; here it is seen beside the others. Easy to get wrong: the old
//! object is taken from the request, not from our watch, which may be behind.

use mooring_api::{Code, Finding, Time};
use mooring_blueprint::{Bundle, Context, Object, nephio, pools};
use mooring_intent::{Admission, Inputs};
use mooring_ipam::{Lease, Pools, admit};

/// What is asked.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// As it is stored; None for a new one.
    pub(super) old: Option<Object>,
    /// As it would be; None for a deletion.
    pub(super) new: Option<Object>,
}

/// What a change of pools brings that is wrong. `others` may hold the object itself as it was seen last.
pub(super) fn pool(
    others: &[Object],
    asked: &Asked,
    leases: impl FnOnce(&Pools) -> Vec<Lease>,
    now: Time,
) -> Vec<Finding> {
    let Some(own) = asked
        .new
        .as_ref()
        .or(asked.old.as_ref())
        .map(Object::reference)
    else {
        return Vec::new();
    };
    let rest = || others.iter().filter(|o| o.reference() != own).cloned();
    let (before, known) = pools::read(&rest().chain(asked.old.clone()).collect::<Vec<_>>());
    let (after, told) = pools::read(&rest().chain(asked.new.clone()).collect::<Vec<_>>());
    let mut findings: Vec<Finding> = told
        .into_iter()
        // A prefix may be applied before the instance that contains it; the ipam role says where none ever comes.
        .filter(|f| f.is_error() && f.code != Code::UnknownNetworkInstance)
        .filter(|f| !known.contains(f))
        .collect();
    for finding in admit::pools(&before, &after, &leases(&before), now) {
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    findings
}

/// Why a claim could never be served. What only waits for pools is admitted.
pub(super) fn claim(others: &[Object], asked: &Asked, now: Time) -> Vec<Finding> {
    let Some(object) = &asked.new else {
        return Vec::new();
    };
    let (pools, _) = pools::read(others);
    let ctx = Context {
        pools: &pools,
        site: &[],
        cluster: None,
        package: "",
    };
    let mut bundle = Bundle::default();
    bundle.objects.push(object.clone());
    // What cannot be read is for the schema to refuse, and for the ipam role to report.
    let wishes = nephio::wants(nephio::Function::Ipam, &mut bundle, &ctx, &mut Vec::new());
    let never = wishes.iter().filter_map(|wish| {
        let finding = admit::claim(&pools, &wish.claim, now)?;
        Some(finding.on(&wish.object).at(wish.field()))
    });
    never.collect()
}

/// What a new or changed intent brings that is wrong. Who goes, goes freely.
pub(super) fn intent(others: &Inputs, asked: &Asked) -> Admission {
    let is_leaving = |object: &&Object| {
        let leaves = object.value.pointer("/metadata/deletionTimestamp");
        leaves.is_some_and(|time| !time.is_null())
    };
    let Some(new) = asked.new.as_ref().filter(|new| !is_leaving(new)) else {
        return Admission::default();
    };
    let old = asked.old.as_ref().map(|old| &old.value);
    mooring_intent::admit(others, old, &new.value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: Time = Time(1_800_000_000);

    fn prefix(name: &str, cidr: &str) -> Object {
        Object {
            value: json!({
                "apiVersion": "ipam.resource.nephio.org/v1alpha1", "kind": "IPPrefix",
                "metadata": { "name": name, "namespace": "default" },
                "spec": { "prefix": cidr, "networkInstance": { "name": "vpc" } },
            }),
            source: None,
        }
    }

    fn codes(others: &[Object], asked: &Asked) -> Vec<Code> {
        let found = pool(others, asked, |_| Vec::new(), NOW);
        found.iter().map(|f| f.code).collect()
    }

    #[test]
    fn a_new_prefix_over_another_is_refused_and_one_beside_it_is_not() {
        let others = [prefix("a", "10.0.0.0/24")];
        let over = Asked {
            old: None,
            new: Some(prefix("b", "10.0.0.128/25")),
        };
        assert_eq!(codes(&others, &over), [Code::OverlappingPrefixes]);
        let beside = Asked {
            old: None,
            new: Some(prefix("b", "10.0.1.0/24")),
        };
        assert!(codes(&others, &beside).is_empty());
    }

    #[test]
    fn a_prefix_may_come_before_the_instance_that_contains_it() {
        let mut first = prefix("a", "10.0.0.0/24");
        first.value["spec"] = json!({ "prefix": "10.0.0.0/24" });
        let asked = Asked {
            old: None,
            new: Some(first),
        };
        assert!(codes(&[], &asked).is_empty());
    }

    fn claim_for(spec: serde_json::Value) -> Asked {
        let value = json!({
            "apiVersion": "ipam.resource.nephio.org/v1alpha1", "kind": "IPClaim",
            "metadata": { "name": "n2", "namespace": "default" },
            "spec": spec,
        });
        Asked {
            old: None,
            new: Some(Object {
                value,
                source: None,
            }),
        }
    }

    #[test]
    fn a_claim_that_no_pool_could_serve_is_refused_and_one_that_waits_is_not() {
        let others = [prefix("a", "10.0.0.0/24")];
        let outside = claim_for(json!({
            "kind": "network", "networkInstance": { "name": "vpc" }, "prefix": "10.9.0.5/24",
        }));
        let found = claim(&others, &outside, NOW);
        assert_eq!(found[0].code, Code::AddressOutsidePrefix);
        assert_eq!(found[0].field.as_deref(), Some("spec.prefix"));
        let elsewhere =
            claim_for(json!({ "kind": "network", "networkInstance": { "name": "later" } }));
        assert!(claim(&others, &elsewhere, NOW).is_empty());
        let plain = claim_for(json!({ "kind": "network", "networkInstance": { "name": "vpc" } }));
        assert!(claim(&others, &plain, NOW).is_empty());
    }

    #[test]
    fn an_intent_that_only_waits_for_a_finalizer_is_not_asked() {
        let segment = |name: &str, vlan: u16| Object {
            value: json!({
                "apiVersion": "network.t-caas.telekom.com/v1alpha1", "kind": "Layer2Attachment",
                "metadata": { "name": name, "creationTimestamp": "2026-01-01T00:00:00Z" },
                "spec": { "network": { "vlanID": vlan, "vni": 1000 + vlan }, "interfaceName": name },
            }),
            source: None,
        };
        let others = Inputs::read([&segment("one", 10).value, &segment("two", 11).value]);
        let mut asked = Asked {
            old: Some(segment("two", 11)),
            new: Some(segment("two", 10)),
        };
        assert_eq!(intent(&others, &asked).refused[0].code, Code::Conflict);
        let mut leaving = segment("two", 10);
        leaving.value["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
        asked.new = Some(leaving);
        assert_eq!(intent(&others, &asked), Admission::default());
        asked.new = None;
        assert_eq!(intent(&others, &asked), Admission::default());
    }

    #[test]
    fn a_watch_that_has_seen_the_new_object_already_does_not_refuse_it() {
        let others = [prefix("a", "10.0.0.0/24")];
        let again = Asked {
            old: None,
            new: Some(prefix("a", "10.0.0.0/24")),
        };
        assert!(codes(&others, &again).is_empty());
    }
}
