//! What each Interface got, for the report: read from the objects, so that it says what was written.

use std::collections::BTreeMap;

use mooring_blueprint::{Bundle, Object};
use serde_json::Value;

use crate::report::InterfaceReport;
use crate::summary::plugin;

/// One row per Interface.
pub(crate) fn interfaces(bundle: &Bundle) -> Vec<InterfaceReport> {
    let nads = bundle.all("k8s.cni.cncf.io", "NetworkAttachmentDefinition");
    let nads: BTreeMap<String, &Object> = nads.filter_map(|o| Some((owner(o)?, o))).collect();
    let interfaces = bundle.all("req.nephio.org", "Interface");
    interfaces.map(|object| row(object, &nads)).collect()
}

/// `Kind/name` of the owner, whose name may have dots.
pub(super) fn owner(object: &Object) -> Option<String> {
    let text = object.annotation("specializer.nephio.org/owner")?;
    let (_, rest) = text.split_once('/').unwrap_or(("", text));
    let mut parts = rest.splitn(3, '.').skip(1);
    Some(format!("{}/{}", parts.next()?, parts.next()?))
}

fn row(object: &Object, nads: &BTreeMap<String, &Object>) -> InterfaceReport {
    let text = |path: &str| object.value.pointer(path).and_then(Value::as_str);
    let nad = nads.get(&format!("Interface/{}", object.name()));
    let (cni, on) = nad.map(|nad| plugin(nad)).unwrap_or_default();
    let answers = object.value.pointer("/status/ipClaimStatus");
    let answers = answers.and_then(Value::as_array).map(Vec::as_slice);
    let read = |answer: &Value, key: &str| answer.get(key)?.as_str().map(ToOwned::to_owned);
    let answers = answers.unwrap_or_default().iter();
    let vlan = object.value.pointer("/status/vlanClaimStatus/vlanID");
    InterfaceReport {
        name: object.name().to_owned(),
        network: text("/spec/networkInstance/name")
            .unwrap_or("default")
            .to_owned(),
        cni: if cni.is_empty() {
            text("/spec/cniType").unwrap_or_default().to_owned()
        } else {
            cni
        },
        on,
        addresses: answers
            .clone()
            .filter_map(|a| read(a, "prefix")?.parse().ok())
            .collect(),
        ranges: Vec::new(),
        gateways: answers
            .filter_map(|a| read(a, "gateway")?.parse().ok())
            .collect(),
        vlan: vlan.and_then(|v| serde_json::from_value(v.clone()).ok()),
        workload: owner(object),
    }
}
