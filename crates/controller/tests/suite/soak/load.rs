//! What people do meanwhile: claims, VLANs and variants come and go, some under a name that was there before.
//!
//! Easy to get wrong: a request that fails may have been done. So nobody keeps a list of what should be there; at the end
//! the server is asked.

use std::time::Duration;

use serde_json::{Value, json};

use super::Storm;
use super::chance::Chance;

pub(super) const CLAIMS: &str = "/apis/ipam.resource.nephio.org/v1alpha1";
pub(super) const VLANS: &str = "/apis/vlan.resource.nephio.org/v1alpha1";
/// Pools of claims only, beside the one that packages use too.
const POOLS: u64 = 3;
/// Names per pool: of these, about three in five are there at a time. A pool of 61 hosts never fills.
const NAMES: u64 = 50;
const VARIANTS: u64 = 8;

/// Instances and pools.
pub(super) fn prepare(storm: &Storm<'_>) {
    let ns = &storm.scene.name;
    let cluster = &storm.scene.stage.cluster;
    for pool in 0..POOLS {
        cluster.apply(&format!(
            "apiVersion: ipam.resource.nephio.org/v1alpha1
kind: NetworkInstance
metadata: {{name: pool-{pool}, namespace: {ns}}}
spec: {{prefixes: []}}
---
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPPrefix
metadata: {{name: pool-{pool}, namespace: {ns}}}
spec: {{prefix: 10.250.{pool}.0/26, networkInstance: {{name: pool-{pool}, namespace: {ns}}}}}
"
        ));
    }
    cluster.apply(&format!(
        "apiVersion: vlan.resource.nephio.org/v1alpha1
kind: VLANIndex
metadata: {{name: edge, namespace: {ns}}}
spec: {{}}
"
    ));
}

/// Makes and deletes claims until it is calm; gives how often somebody was heard and not heard.
pub(super) fn claims(storm: &Storm<'_>, mut chance: Chance) -> (usize, usize) {
    let ns = &storm.scene.name;
    let mut heard = (0, 0);
    while storm.goes_on() {
        let nth = chance.below(NAMES);
        let (list, object) = match chance.below(POOLS + 2) {
            0 => (format!("{VLANS}/namespaces/{ns}/vlanclaims"), vlan(ns, nth)),
            1 => (
                format!("{CLAIMS}/namespaces/{ns}/ipclaims"),
                claim(ns, nth, "shared", (&format!("vpc-{ns}"), "default")),
            ),
            pool => {
                let pool = format!("pool-{}", pool - 2);
                (
                    format!("{CLAIMS}/namespaces/{ns}/ipclaims"),
                    claim(ns, nth, &pool, (&pool, ns)),
                )
            }
        };
        let makes = chance.below(5) < 3;
        toggle(storm, makes, &list, &object, &mut heard);
        // People are not quicker than this; a wait for nothing.
        std::thread::sleep(Duration::from_millis(chance.below(60)));
    }
    heard
}

/// The same with variants, half of them published by policy.
pub(super) fn variants(storm: &Storm<'_>, mut chance: Chance) -> (usize, usize) {
    let ns = &storm.scene.name;
    let list = format!("/apis/config.porch.kpt.dev/v1alpha1/namespaces/{ns}/packagevariants");
    let mut heard = (0, 0);
    while storm.goes_on() {
        let object = variant(ns, chance.below(VARIANTS));
        // One that is going keeps its name for a while, so more are asked for than are sent away.
        let makes = chance.below(4) < 3;
        toggle(storm, makes, &list, &object, &mut heard);
        std::thread::sleep(Duration::from_millis(300 + chance.below(900)));
    }
    heard
}

fn toggle(storm: &Storm<'_>, makes: bool, list: &str, object: &Value, heard: &mut (usize, usize)) {
    let cluster = &storm.scene.stage.cluster;
    let answer = if makes {
        cluster.request("POST", list, Some(object))
    } else {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        cluster.request("DELETE", &format!("{list}/{name}"), None)
    };
    match answer {
        Ok(_) => heard.0 += 1,
        // There already, or not there.
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
        Err(_) => heard.1 += 1,
    }
}

fn claim(ns: &str, nth: u64, pool: &str, (instance, of): (&str, &str)) -> Value {
    json!({
        "apiVersion": "ipam.resource.nephio.org/v1alpha1", "kind": "IPClaim",
        "metadata": { "name": format!("{pool}-{nth}"), "namespace": ns },
        "spec": { "networkInstance": { "name": instance, "namespace": of } },
    })
}

fn vlan(ns: &str, nth: u64) -> Value {
    json!({
        "apiVersion": "vlan.resource.nephio.org/v1alpha1", "kind": "VLANClaim",
        "metadata": { "name": format!("vlan-{nth}"), "namespace": ns },
        "spec": { "vlanIndex": { "name": "edge", "namespace": ns } },
    })
}

/// Whether a variant of this name is published by policy; the others stay drafts.
pub(super) fn is_published(name: &str) -> bool {
    name.ends_with(['0', '2', '4', '6', '8'])
}

fn variant(ns: &str, nth: u64) -> Value {
    let name = format!("upf-{nth}");
    let mut variant = json!({
        "apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "PackageVariant",
        "metadata": { "name": name, "namespace": ns },
        "spec": {
            "upstream": { "repo": "blueprints", "package": "upf", "revision": 1 },
            "downstream": { "repo": "edge", "package": name },
            "injectors": [{ "kind": "WorkloadCluster", "name": "edge01" }],
            "packageContext": { "data": { "namespace": "core" } },
        },
    });
    if is_published(&name) {
        variant["spec"]["annotations"] = json!({ "approval.nephio.org/policy": "always" });
    }
    variant
}
