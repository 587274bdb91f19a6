//! dnn-fn: a DataNetwork claims a prefix per pool, and carries the answers in its status.
//!
//! Easy to get wrong: a pool that is taken out of the spec leaves its claim behind, marked to go, and the
//! DataNetwork waits until somebody has released the prefix.

use mooring_api::{Code, Finding, label};
use serde_json::{Map, Value, json};

use super::engine::{Failure, Input, Own, Rule, Updated, Watch};
use super::function_name;
use super::interface::{child, fill, put};
use super::kinds::{CLUSTER, DATA_NETWORK, IP_CLAIM};
use super::seen::Seen;
use crate::bundle::{Object, map_below};

/// For DataNetworks.
pub(super) const RULE: Rule = Rule {
    subject: DATA_NETWORK,
    owns: &[(IP_CLAIM, Own::Remote)],
    watches: &[(CLUSTER, Watch::Global)],
    root: false,
    one_per_owner: false,
    populate,
    update,
};

fn pools(object: &Object) -> impl Iterator<Item = &Value> {
    let pools = object
        .value
        .pointer("/spec/pools")
        .and_then(Value::as_array);
    pools.into_iter().flatten()
}

fn name(pool: &Value) -> &str {
    pool.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn stem(object: &Object) -> String {
    format!("{}-{}-", function_name(object), object.name())
}

fn populate(object: &Object, seen: &Seen) -> Result<Vec<Object>, Failure> {
    let cluster = seen.cluster()?;
    let instance = object.value.pointer("/spec/networkInstance");
    let instance = instance.filter(|i| i.is_object()).cloned();
    let mut made = Vec::new();
    for pool in pools(object) {
        let pool_name = name(pool);
        let Some(len) = pool.get("prefixLength").and_then(Value::as_u64) else {
            let text = format!("spec invalid: pool {pool_name} has no prefixLength");
            return Err(Failure::new(Code::InvalidField, text).at("spec.pools"));
        };
        let family = match pool.get("ipFamily").and_then(Value::as_str) {
            Some("ipv6") => "ipv6",
            _ => "ipv4",
        };
        let mut labels = Map::new();
        labels.insert(label::ADDRESS_FAMILY.into(), json!(family));
        labels.insert(label::CLUSTER_NAME.into(), json!(cluster.name));
        let mut claim = child(IP_CLAIM, &format!("{}{pool_name}", stem(object)), object);
        let spec = json!({
            "kind": "pool",
            "selector": { "matchLabels": labels },
            "createPrefix": true,
            "networkInstance": instance.clone().unwrap_or_else(|| json!({})),
            "prefixLength": len,
        });
        fill(&mut claim, spec);
        made.push(claim);
    }
    Ok(made)
}

/// In the order of the spec: the order of the claims' names would change when a pool is added.
fn update(input: &Input<'_>) -> Result<Updated, Failure> {
    let mut object = input.object()?.clone();
    let stem = stem(&object);
    let mut said = Vec::new();
    let mut answers: Vec<(usize, Value)> = Vec::new();
    for claim in input.all(IP_CLAIM) {
        if claim.value.pointer("/spec/kind") != Some(&json!("pool")) {
            continue;
        }
        let Some(pool) = claim.name().strip_prefix(&stem) else {
            let text = format!(
                "found an IPClaim owned by DNN {:?} with a suspicious name: {}",
                object.name(),
                claim.name()
            );
            said.push(
                Finding::warning(Code::NameTaken, text)
                    .on(&claim.reference())
                    .at("metadata.name"),
            );
            continue;
        };
        let status = claim.value.get("status").filter(|s| s.is_object());
        let status = status.cloned().unwrap_or_else(|| json!({}));
        let at = pools(&object).position(|p| name(p) == pool);
        let answer = json!({ "name": pool, "ipClaim": status });
        answers.push((at.unwrap_or(usize::MAX), answer));
    }
    answers.sort_by_key(|(at, _)| *at);
    let answers: Vec<Value> = answers.into_iter().map(|(_, answer)| answer).collect();
    let status = map_below(&mut object.value, &["status"]);
    put(
        status,
        "pools",
        (!answers.is_empty()).then(|| json!(answers)),
    );
    Ok(Updated {
        object: Some(object),
        said,
    })
}
