//! The runtime's configuration files: it takes the first one by name, so a meta plugin that sorts after
//! another is never called, and no pod gets any of its networks.
//!
//! Easy to get wrong: what the runtime cannot read it passes over, and it only looks at `.conf`,
//! `.conflist` and `.json`.

use std::collections::BTreeMap;

use mooring_api::{Code, Finding, ObjectRef};
use serde_json::Value;

use crate::input::{CniFile, Origin};
use crate::report::Found;

pub(crate) fn judge(files: &[CniFile<'_>], out: &mut Vec<Found>) {
    let mut nodes: BTreeMap<(&str, &str), BTreeMap<&str, bool>> = BTreeMap::new();
    for file in files {
        let is_read = file
            .name
            .rsplit_once('.')
            .is_some_and(|(_, ending)| matches!(ending, "conf" | "conflist" | "json"));
        if let Some(meta) = is_meta(file.text).filter(|_| is_read) {
            let node = nodes.entry((&file.cluster, &file.node)).or_default();
            node.insert(&file.name, meta);
        }
    }
    for ((cluster, node), files) in nodes {
        let mut sorted = files.iter();
        let Some((first, false)) = sorted.next() else {
            continue;
        };
        let Some((meta, _)) = sorted.find(|(_, meta)| **meta) else {
            continue;
        };
        let on = if node.is_empty() {
            String::new()
        } else {
            format!(" on {node}")
        };
        let message = format!(
            "{meta} is never used{on}: the runtime takes {first}, and no pod gets its networks"
        );
        let help = format!(
            "rename it so that it sorts first, such as 00-{}",
            meta.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-')
        );
        let origin = Origin {
            cluster: cluster.to_owned(),
            file: (*meta).to_owned(),
            object: ObjectRef::new("", "File", *meta).within(node),
            ..Origin::default()
        };
        let finding = Finding::error(Code::MetaPluginUnused, message).help(help);
        out.push(Found::at(finding, &origin, ""));
    }
}

/// Whether a configuration calls a meta plugin; nothing where the runtime cannot use it.
fn is_meta(text: &str) -> Option<bool> {
    let value: Value = serde_json::from_str(text).ok()?;
    let one = std::slice::from_ref(&value);
    let plugins = match value.get("plugins") {
        Some(list) => list.as_array()?,
        None => one,
    };
    let mut types = plugins
        .iter()
        .map(|p| p.get("type").and_then(Value::as_str));
    if plugins.is_empty() || types.clone().any(|t| t.is_none()) {
        return None;
    }
    Some(types.any(|t| matches!(t, Some("multus" | "multus-shim" | "moor-meta" | "moor-cni"))))
}
