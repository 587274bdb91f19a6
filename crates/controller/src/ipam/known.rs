//! The pools as they are read from what is watched: once per change, not once per claim.
//!
//! Pure: objects in, [`Known`] out. Easy to get wrong: a pool that is not ours, or whose fields were dropped, must not give
//! anything; the first is left out, the second keeps what it gave.

use std::collections::{BTreeMap, BTreeSet};

use kube::api::DynamicObject;
use mooring_api::{Finding, ObjectRef};
use mooring_blueprint::{Object, nephio, pools};
use mooring_ipam::{InstanceKey, Pools};
use serde_json::{Map, Value, json};

use crate::living;

/// What addresses and VLANs are taken from.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// As the seeds read them.
    pub(super) native: Pools,
    /// As Nephio reads them: a gateway only where a label says so.
    pub(super) nephio: Pools,
    /// The VLANIndexes.
    pub(super) indices: BTreeSet<InstanceKey>,
    /// What is wrong, by object.
    pub(super) findings: BTreeMap<ObjectRef, Vec<Finding>>,
}

impl Known {
    /// Reads the objects: of two that cannot both be, the later one gives nothing. `dropped` are the fields of an IPPrefix that its definition lacks.
    pub(super) fn read(objects: &[Object], dropped: &[&str]) -> Self {
        let (mut native, mut findings) = pools::read(objects);
        let (mut nephio, _) = nephio::pools(objects);
        let lost: Vec<Finding> = objects
            .iter()
            .filter_map(|o| living::lost(o, dropped))
            .collect();
        // What is wrong with a pool is for a person to solve; until then who has an address keeps it.
        pools::set_aside(&mut native, &findings);
        for pools in [&mut native, &mut nephio] {
            pools::set_aside(pools, &lost);
        }
        findings.extend(lost);
        let indices = objects.iter().filter(|o| o.kind() == "VLANIndex");
        let indices = indices.map(|o| InstanceKey::new(o.namespace(), o.name()));
        let indices = indices.collect();
        let mut by_object: BTreeMap<ObjectRef, Vec<Finding>> = BTreeMap::new();
        for finding in findings {
            if let Some(object) = &finding.object {
                by_object.entry(object.clone()).or_default().push(finding);
            }
        }
        Self {
            native,
            nephio,
            indices,
            findings: by_object,
        }
    }

    /// The pools that serve a claim.
    pub(super) fn pools_for(&self, claim: &Object) -> &Pools {
        if nephio::has_mark(claim) {
            &self.nephio
        } else {
            &self.native
        }
    }

    /// Whether the same would be given.
    pub(super) fn gives_the_same(&self, other: &Self) -> bool {
        let same = |a: &Pools, b: &Pools| a.instances == b.instances && a.prefixes == b.prefixes;
        same(&self.native, &other.native)
            && same(&self.nephio, &other.nephio)
            && self.indices == other.indices
    }
}

/// An object of the API as the deciding rooms read it.
pub(super) fn object(of: &DynamicObject) -> Object {
    let mut metadata = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            metadata.insert(key.to_owned(), value);
        }
    };
    let meta = &of.metadata;
    put("name", meta.name.as_ref().map(|n| json!(n)));
    put("namespace", meta.namespace.as_ref().map(|n| json!(n)));
    put("labels", meta.labels.as_ref().map(|l| json!(l)));
    put("annotations", meta.annotations.as_ref().map(|a| json!(a)));
    let mut value = Map::new();
    if let Some(types) = &of.types {
        value.insert("apiVersion".into(), json!(types.api_version));
        value.insert("kind".into(), json!(types.kind));
    }
    value.insert("metadata".into(), Value::Object(metadata));
    for part in ["spec", "status"] {
        if let Some(part_of) = of.data.get(part) {
            value.insert(part.into(), part_of.clone());
        }
    }
    Object {
        value: Value::Object(value),
        source: None,
    }
}

#[cfg(test)]
mod tests {
    use mooring_api::{Code, annotation};

    use super::*;
    use crate::living::LAST_APPLIED;

    fn prefix(annotations: Value) -> Object {
        Object {
            value: json!({
                "apiVersion": "ipam.resource.nephio.org/v1alpha1", "kind": "IPPrefix",
                "metadata": { "name": "n3", "namespace": "core", "annotations": annotations },
                "spec": { "prefix": "10.1.2.0/24", "networkInstance": { "name": "ran" } },
            }),
            source: None,
        }
    }

    #[test]
    fn a_pool_whose_ranges_were_dropped_gives_nothing_until_the_twin_is_written() {
        let wrote = json!({ "spec": { "ranges": ["10.1.2.20-10.1.2.29"] } }).to_string();
        let dropped = ["spec.ranges"];
        let pruned = prefix(json!({ LAST_APPLIED: wrote }));
        let known = Known::read(std::slice::from_ref(&pruned), &dropped);
        assert!(known.native.prefixes[0].drain && known.nephio.prefixes[0].drain);
        assert_eq!(
            known.findings[&pruned.reference()][0].code,
            Code::FieldDropped
        );
        let twin =
            prefix(json!({ LAST_APPLIED: wrote, annotation::RANGES: "10.1.2.20-10.1.2.29" }));
        assert!(!Known::read(&[twin], &dropped).native.prefixes[0].drain);
        assert!(!Known::read(&[pruned], &[]).native.prefixes[0].drain);
        let whole = prefix(json!({ LAST_APPLIED: json!({ "spec": {} }).to_string() }));
        assert!(!Known::read(&[whole], &dropped).native.prefixes[0].drain);
    }
}
