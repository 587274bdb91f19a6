//! `moor plan -f PATH`: what intents become, and what would change.
//!
//! ```text
//!  network   reads objects and what was there before, compiles both       also for graph, explain, trace
//!  state     what --write keeps and --from reads
//!  show      one result of a compilation, or its diff
//! ```
//!
//! Easy to get wrong: an item that changes is one that goes and one that comes under the same path; people read it as one.

pub(super) mod network;
pub(super) mod show;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use mooring_api::Finding;
use mooring_intent::{Compiled, Inputs, Item, Part, Plan, Scope, plan};
use serde::Serialize;
use serde_json::Value;

use crate::args::{Format, PlanArgs};
use crate::output::{Output, Table, count, exit_of};
use crate::world::Exit;
use network::Network;

/// What `-o json` shows.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    /// The name of the NetworkConfigRevision.
    revision: &'a str,
    #[serde(flatten)]
    plan: &'a Plan,
    /// Addresses and networks by key, before and after.
    addresses: BTreeMap<&'a str, (Option<String>, Option<String>)>,
    findings: &'a [Finding],
}

pub(crate) fn run(args: &PlanArgs, output: &mut Output) -> anyhow::Result<Exit> {
    let Some(network) = Network::read(&args.network, output)? else {
        return Ok(Exit::Wrong);
    };
    if let Some(what) = &args.show {
        show::run(what, args, &network, output)?;
    } else {
        let plan = plan(&network.before, &network.compiled);
        let shown = Shown {
            revision: name(&network.compiled),
            plan: &plan,
            addresses: network.addresses(),
            findings: &network.findings,
        };
        let rows = rows(&network.inputs, &plan);
        if args.format.format == Format::Table {
            output.data(&text(&network, &shown, &rows))?;
        } else {
            output.show(args.format.format, &shown, |_| Table::new(["part"]))?;
        }
        output.findings(&network.findings);
        output.say(&summary(&network, &plan, &rows));
    }
    if let Some(dir) = &args.write {
        state::write(dir, &network)?;
        output.say(&format!("kept in {}", dir.display()));
    }
    Ok(exit_of(&network.findings))
}

/// The revision's name; a network without anything has none.
fn name(compiled: &Compiled) -> &str {
    let nothing = compiled.form.scopes().next().is_none();
    // As the controller names the NetworkConfigRevision.
    let name = compiled.digest.get(..10);
    name.filter(|_| !nothing).unwrap_or("none")
}

fn text(network: &Network, shown: &Shown<'_>, rows: &[[String; 5]]) -> String {
    let (old, new) = (name(&network.before), name(&network.compiled));
    let mut text = if old == new {
        format!("revision {new}, as before\n")
    } else {
        format!("revision {old} -> {new}\n")
    };
    let tables = [
        table(["", "part", "nodes", "from", "what"], rows),
        nodes(shown.plan),
        addresses(&shown.addresses),
        platform(shown.plan),
    ];
    for table in tables {
        let table = table.to_string();
        if !table.is_empty() {
            let _ = write!(text, "\n{table}");
        }
    }
    text
}

/// A row per part: sign, path, nodes, who, and what changes.
fn rows(inputs: &Inputs, plan: &Plan) -> Vec<[String; 5]> {
    type Sides<'a> = (Vec<&'a Part>, Vec<&'a Part>);
    let mut by_place: BTreeMap<(&str, &Scope), Sides<'_>> = BTreeMap::new();
    for part in &plan.removed {
        let place = by_place.entry((&part.path, &part.scope)).or_default();
        place.0.push(part);
    }
    for part in &plan.added {
        let place = by_place.entry((&part.path, &part.scope)).or_default();
        place.1.push(part);
    }
    let mut rows = Vec::new();
    for ((path, scope), sides) in by_place {
        let nodes = on(inputs, scope);
        let mut row = |sign: &str, part: &Part, what: String| {
            let cells = [sign, path, &nodes, &from(part), &what];
            rows.push(cells.map(str::to_owned));
        };
        match sides {
            (old, new) if old.len() == 1 && new.len() == 1 => {
                row("~", new[0], difference(&old[0].item, &new[0].item));
            }
            (old, new) => {
                for part in old {
                    row("-", part, String::new());
                }
                for part in new {
                    row("+", part, String::new());
                }
            }
        }
    }
    rows
}

/// Rows under a header; a last column that nobody fills is left out.
fn table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> Table {
    let filled = rows.iter().any(|row| !row[N - 1].is_empty());
    let columns = if filled { N } else { N - 1 };
    let mut table = Table::of(&header[..columns]);
    for row in rows {
        table.cells(row[..columns].to_vec());
    }
    table
}

fn nodes(plan: &Plan) -> Table {
    let mut table = Table::new(["node", "agent", "host"]);
    let names: BTreeSet<&String> = plan.agents.iter().chain(&plan.hosts).collect();
    for name in names {
        let word = |set: &BTreeSet<String>| {
            let changes = set.contains(name);
            String::from(if changes { "changes" } else { "" })
        };
        table.row([name.clone(), word(&plan.agents), word(&plan.hosts)]);
    }
    table
}

fn addresses(all: &BTreeMap<&str, (Option<String>, Option<String>)>) -> Table {
    let mut rows = Vec::new();
    for (key, sides) in all {
        let (sign, now, was) = match sides {
            (None, Some(new)) => ("+", new.as_str(), ""),
            (Some(old), None) => ("-", old.as_str(), ""),
            (Some(old), Some(new)) if old != new => ("~", new.as_str(), old.as_str()),
            _ => continue,
        };
        rows.push([sign, now, key, was].map(str::to_owned));
    }
    table(["", "address", "for", "before"], &rows)
}

fn platform(plan: &Plan) -> Table {
    let mut table = Table::new(["", "object", "name", "from"]);
    let lists = [
        ("+", &plan.created),
        ("~", &plan.changed),
        ("-", &plan.deleted),
    ];
    for (sign, objects) in lists {
        for object in objects {
            let [kind, name, owner] = platform_object(object);
            table.row([sign.to_owned(), kind, name, owner]);
        }
    }
    table
}

/// Kind, name and owner of an object of the platform.
pub(super) fn platform_object(object: &Value) -> [String; 3] {
    let text = |path: &str| {
        let text = object.pointer(path).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let name = if namespace.is_empty() {
        name
    } else {
        format!("{namespace}/{name}")
    };
    let owner = text("/metadata/annotations/mooring.dev~1owned-by");
    [text("/kind"), name, owner]
}

/// Nodes as few words: all of them, their names, or how many.
pub(super) fn on(inputs: &Inputs, scope: &Scope) -> String {
    const NAMED: usize = 3;
    let here = inputs.nodes.iter().filter(|n| scope.matches(&n.labels));
    let names: Vec<&str> = here.map(|n| n.name.as_str()).collect();
    match names.len() {
        0 => "none".to_owned(),
        1..=NAMED => names.join(","),
        all if all == inputs.nodes.len() => format!("all {all}"),
        some => format!("{some} of {}", inputs.nodes.len()),
    }
}

/// Who put a part there, without field and rule.
fn from(part: &Part) -> String {
    let who = part.origins.iter();
    let who: BTreeSet<&str> = who.filter_map(|o| o.split_whitespace().next()).collect();
    who.into_iter().collect::<Vec<_>>().join(",")
}

/// The fields of an item, as text; what is empty, absent or false says nothing.
pub(super) fn fields(item: &Item) -> BTreeMap<String, String> {
    let value = serde_json::to_value(item).unwrap_or_default();
    let inner = value.as_object().and_then(|kind| kind.values().next());
    let fields = inner.and_then(Value::as_object).into_iter().flatten();
    fields
        .map(|(key, value)| (key.clone(), words(value)))
        .collect()
}

fn words(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(false) => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(words).collect();
            list.join(",")
        }
        Value::Object(map) => {
            let pairs = map.iter().map(|(key, value)| (key, words(value)));
            let pairs = pairs.filter(|(_, said)| !said.is_empty());
            let pairs: Vec<String> = pairs.map(|(key, said)| format!("{key} {said}")).collect();
            pairs.join(" ")
        }
        other => other.to_string(),
    }
}

/// `mtu 1500 -> 9000`.
fn difference(old: &Item, new: &Item) -> String {
    let (old, new) = (fields(old), fields(new));
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let shown = |fields: &BTreeMap<String, String>, key: &String| {
        let said = fields.get(key).filter(|said| !said.is_empty());
        said.cloned().unwrap_or_else(|| "none".to_owned())
    };
    let changed = keys
        .into_iter()
        .filter(|key| old.get(*key) != new.get(*key));
    let words = changed.map(|key| format!("{key} {} -> {}", shown(&old, key), shown(&new, key)));
    words.collect::<Vec<_>>().join("; ")
}

fn summary(network: &Network, plan: &Plan, rows: &[[String; 5]]) -> String {
    let total = count(network.inputs.nodes.len(), "node");
    if plan.is_empty() {
        return format!("nothing changes on {total}");
    }
    let signs = |sign: &str| rows.iter().filter(|row| row[0] == sign).count();
    let told: BTreeSet<&String> = plan.agents.iter().chain(&plan.hosts).collect();
    let platform = plan.created.len() + plan.changed.len() + plan.deleted.len();
    let mut text = format!(
        "parts of the network: {} new, {} changed, {} gone; {} of {total} and {} of the platform change",
        signs("+"),
        signs("~"),
        signs("-"),
        told.len(),
        count(platform, "object"),
    );
    if !plan.withdrawn.is_empty() {
        let gone = plan.withdrawn.iter();
        let gone: Vec<String> = gone.map(|(vrf, p)| format!("{p} in {vrf}")).collect();
        let _ = write!(text, "\nno longer announced: {}", gone.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use mooring_intent::{Aggregate, Item};

    use super::*;

    fn aggregate(prefix: &str) -> Item {
        Item::Aggregate(Aggregate {
            vrf: "red".to_owned(),
            prefix: prefix.parse().unwrap(),
        })
    }

    #[test]
    fn a_change_names_the_fields_that_differ_and_no_other() {
        let (old, new) = (aggregate("10.0.0.0/8"), aggregate("10.0.0.0/16"));
        assert_eq!(difference(&old, &new), "prefix 10.0.0.0/8 -> 10.0.0.0/16");
        assert_eq!(difference(&old, &old), "");
    }

    #[test]
    fn values_are_words_and_what_is_absent_says_nothing() {
        let value =
            serde_json::json!({ "a": null, "b": false, "c": [1, "x"], "d": { "e": "f", "g": [] } });
        assert_eq!(words(&value), "c 1,x d e f");
    }

    #[test]
    fn a_last_column_that_nobody_fills_is_left_out() {
        let row = |last: &str| ["+".to_owned(), "x".to_owned(), last.to_owned()];
        let header = ["", "part", "what"];
        assert_eq!(table(header, &[row("")]).to_string(), "   PART\n+  x\n");
        let both = table(header, &[row(""), row("y")]).to_string();
        assert_eq!(both, "   PART  WHAT\n+  x     -\n+  x     y\n");
    }
}
