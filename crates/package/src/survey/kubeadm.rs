//! The cluster's own networks as kubeadm leaves them on a cluster: ClusterConfiguration as text inside a ConfigMap.
//!
//! The rules read values and no text, so it is taken out here and judged as an object beside the others.

use mooring_krm::{Document, File};
use serde_json::Value;

/// The ClusterConfiguration inside the ConfigMap `kubeadm-config`.
pub(super) fn configuration(value: &Value) -> Option<Value> {
    let text = |path: &str| value.pointer(path).and_then(Value::as_str);
    if text("/kind") != Some("ConfigMap") || text("/metadata/name") != Some("kubeadm-config") {
        return None;
    }
    let file = File::parse(text("/data/ClusterConfiguration")?.as_bytes()).ok()?;
    let mut values = file.documents().iter().map(Document::value);
    let found = values.find(|value| value["kind"] == "ClusterConfiguration")?;
    Some(found.clone())
}
