//! `moor adopt -f PATH`: from low-level objects to intents, with the proof.
//!
//! The room takes only steps that keep the digest. Here the whole is proven once more, from the objects that are printed: compiled
//! instead of the originals, they must tell every node's agent the same.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use mooring_intent::{Adoption, Plan, adopt, plan};
use serde::Serialize;
use serde_json::Value;

use super::plan::network::{Network, instead};
use super::plan::show::yaml;
use crate::args::{AdoptArgs, Format, NetworkArg};
use crate::output::{Output, Table, count, exit_of};
use crate::world::Exit;

/// What `-o json` shows.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    digest: &'a str,
    equal: bool,
    intents: &'a [Value],
    residue: &'a [Value],
    replaced: Vec<String>,
    /// Nodes whose host gets devices of other names.
    hosts: &'a BTreeSet<String>,
    findings: &'a [mooring_api::Finding],
}

pub(crate) fn run(args: &AdoptArgs, output: &mut Output) -> anyhow::Result<Exit> {
    let arg = NetworkArg {
        files: args.files.clone(),
        before: None,
    };
    let Some(network) = Network::read(&arg, output)? else {
        return Ok(Exit::Wrong);
    };
    let errors = network.errors();
    if !errors.is_empty() {
        output.findings(&errors);
        output.say("nothing is adopted from a network that is wrong");
        return Ok(exit_of(&errors));
    }
    let mut adoption = adopt(&network.inputs);
    adoption.findings = network.located(adoption.findings);
    let after = instead(&network.objects(), &adoption);
    let proof = plan(&network.compiled, &after);
    let equal = proof.digest.0 == proof.digest.1 && proof.agents.is_empty();
    match args.format.format {
        Format::Table => output.data(&table(&adoption).to_string())?,
        Format::Yaml => {
            let all = [&adoption.intents[..], &adoption.residue[..]].concat();
            output.data(&yaml(&all))?;
        }
        Format::Json => {
            let shown = Shown {
                digest: &adoption.digest,
                equal,
                intents: &adoption.intents,
                residue: &adoption.residue,
                replaced: adoption.replaced.iter().map(ToString::to_string).collect(),
                hosts: &proof.hosts,
                findings: &adoption.findings,
            };
            output.show(Format::Json, &shown, |_| Table::new(["object"]))?;
        }
    }
    output.findings(&adoption.findings);
    output.say(&verdict(&adoption, &proof, equal));
    Ok(if equal { Exit::Done } else { Exit::Wrong })
}

fn table(adoption: &Adoption) -> Table {
    let id = |object: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        format!(
            "{}/{}",
            text(&object["kind"]),
            text(&object["metadata"]["name"])
        )
    };
    let residue: BTreeSet<String> = adoption.residue.iter().map(id).collect();
    let replaced: BTreeSet<String> = adoption.replaced.iter().map(ToString::to_string).collect();
    let mut table = Table::new(["object", "what"]);
    for object in &adoption.intents {
        table.row([id(object), "new intent".to_owned()]);
    }
    for object in &replaced {
        let word = if residue.contains(object) {
            "stays, with fewer lines"
        } else {
            "goes"
        };
        table.row([object.clone(), word.to_owned()]);
    }
    for object in residue.difference(&replaced) {
        table.row([object.clone(), "stays".to_owned()]);
    }
    table
}

fn verdict(adoption: &Adoption, proof: &Plan, equal: bool) -> String {
    let revision = adoption.digest.get(..10).unwrap_or(&adoption.digest);
    let intents = count(adoption.intents.len(), "intent");
    if !equal {
        return format!("these {intents} are NOT the network that was there; apply none of it");
    }
    let mut text = format!(
        "{intents} and {} that stay low-level are the same revision {revision}: no node's agent is told anything else",
        count(adoption.residue.len(), "object"),
    );
    if !proof.hosts.is_empty() {
        let hosts: Vec<&str> = proof.hosts.iter().map(String::as_str).collect();
        let _ = write!(
            text,
            "\non the hosts of {} devices get the names of their attachments",
            hosts.join(", ")
        );
    }
    text
}
