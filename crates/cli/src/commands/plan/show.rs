//! One result of a compilation as objects, or as a diff against what was there before.

use mooring_intent::Compiled;
use serde_json::{Value, json};

use super::network::Network;
use crate::args::{Format, PlanArgs, Show};
use crate::commands::verify::diff;
use crate::output::{Output, Table};
use crate::world::Usage;

pub(super) fn run(
    what: &Show,
    args: &PlanArgs,
    network: &Network,
    output: &mut Output,
) -> anyhow::Result<()> {
    if let Show::Node(name) = what {
        known(network, name)?;
    }
    let new = objects(what, &network.compiled);
    if args.diff {
        let old = objects(what, &network.before);
        output.data(&diff::unified(&named(what), &yaml(&old), &yaml(&new)))?;
    } else if args.format.format == Format::Json {
        output.show(Format::Json, &new, |_| Table::new(["object"]))?;
    } else {
        output.data(&yaml(&new))?;
    }
    output.findings(&network.findings);
    Ok(())
}

/// Whether a node is there, now or before.
pub(crate) fn known(network: &Network, name: &str) -> Result<(), Usage> {
    let nodes = &network.compiled.nodes;
    if nodes.contains_key(name) || network.before.nodes.contains_key(name) {
        return Ok(());
    }
    let names: Vec<&str> = nodes.keys().map(String::as_str).collect();
    let help = if names.is_empty() {
        "add the v1 Nodes to -f: kubectl get nodes -o yaml".to_owned()
    } else {
        format!("there are {}", names.join(", "))
    };
    let message = format!("no node {name} is among these objects");
    Err(Usage::new(message, help))
}

fn objects(what: &Show, compiled: &Compiled) -> Vec<Value> {
    match what {
        Show::LowLevel => compiled.low_level(),
        Show::Revision => {
            let revision = compiled.revision();
            vec![json!({
                "apiVersion": mooring_api::kinds::schiff::API_VERSION,
                "kind": "NetworkConfigRevision",
                "metadata": { "name": revision.metadata.name },
                "spec": revision.spec,
            })]
        }
        Show::Node(name) => {
            let config = compiled.nodes.get(name);
            config
                .into_iter()
                .flat_map(|c| c.objects(name, &compiled.digest))
                .collect()
        }
        Show::Platform => compiled.platform.clone(),
        Show::Statuses => {
            let all = compiled.statuses.iter();
            let status = all.map(|(id, status)| {
                json!({ "apiVersion": id.api_version, "kind": id.kind,
                        "metadata": { "name": id.name }, "status": status })
            });
            status.collect()
        }
    }
}

/// The documents of a file.
pub(crate) fn yaml(objects: &[Value]) -> String {
    let texts: Vec<String> = objects.iter().map(mooring_package::yaml).collect();
    texts.join("---\n")
}

fn named(what: &Show) -> String {
    match what {
        Show::LowLevel => "low-level".to_owned(),
        Show::Revision => "revision".to_owned(),
        Show::Node(name) => format!("node/{name}"),
        Show::Platform => "platform".to_owned(),
        Show::Statuses => "statuses".to_owned(),
    }
}
