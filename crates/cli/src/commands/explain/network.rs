//! `moor explain node/NAME …|prefix CIDR|KIND/NAME -f PATH`: which intent put a part of the network there.
//!
//! Easy to get wrong: an object that is set aside became nothing, and then its findings are the answer.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::IpAddr;

use mooring_api::{Cidr, Code, Family, Finding, Location, ObjectRef};
use mooring_intent::{Item, Question, Reason, explain};
use serde::Serialize;
use serde_json::Value;

use crate::args::{ExplainArgs, Format};
use crate::commands::plan::network::Network;
use crate::commands::plan::show::known;
use crate::commands::plan::{fields, on, platform_object};
use crate::output::{Output, Table, exit_of};
use crate::world::{Exit, Usage};

/// What `-o json` shows.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    parts: Vec<Part>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    platform: Vec<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    path: String,
    item: Item,
    nodes: BTreeSet<String>,
    /// The nodes in few words.
    #[serde(skip)]
    on: String,
    origins: Vec<Origin>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Origin {
    object: ObjectRef,
    field: String,
    rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<Location>,
}

/// Whether this is a question about a network, and not about a finding.
pub(super) fn is_meant(args: &ExplainArgs) -> bool {
    let code = args.code.as_deref().unwrap_or_default();
    !args.network.files.is_empty() || code == "prefix" || code.contains('/')
}

pub(super) fn run(args: &ExplainArgs, output: &mut Output) -> anyhow::Result<Exit> {
    let question = question(args)?;
    let Some(network) = Network::read(&args.network, output)? else {
        return Ok(Exit::Wrong);
    };
    let object = match &question {
        Question::Node { name, .. } => {
            known(&network, name)?;
            None
        }
        Question::Prefix(_) => None,
        Question::Object { kind, name } => Some(find(&network, kind, name)?),
    };
    let reasons = explain(&network.inputs, &network.compiled, &question);
    let own = object.as_ref().and_then(|object| {
        let mut all = network.compiled.contributions.iter();
        all.find(|c| c.object == *object)
    });
    let answer = Answer {
        parts: parts(&network, reasons),
        platform: own.iter().flat_map(|c| &c.platform).collect(),
        status: object
            .as_ref()
            .and_then(|object| network.compiled.statuses.get(object)),
    };
    if args.format.format == Format::Table {
        output.data(&text(&answer))?;
    } else {
        output.show(args.format.format, &answer, |_| Table::new(["part"]))?;
    }
    let about = |f: &&Finding| object.is_some() && f.object == object;
    let findings: Vec<Finding> = network.findings.iter().filter(about).cloned().collect();
    output.findings(&findings);
    if answer.parts.is_empty() && answer.platform.is_empty() {
        output.say(&nothing(&question));
    }
    Ok(exit_of(&findings))
}

fn question(args: &ExplainArgs) -> Result<Question, Usage> {
    let help = "moor explain node/NAME vlan 234, prefix CIDR, or KIND/NAME, each with -f PATH";
    let code = args.code.as_deref().unwrap_or_default();
    let words = &args.sources;
    if code == "prefix" {
        let [text] = &words[..] else {
            return Err(Usage::new("prefix needs one prefix", help));
        };
        let single = |a: IpAddr| Cidr::containing(a, Family::of(a).bits());
        let prefix = text
            .parse()
            .or_else(|e| text.parse().map(single).map_err(|_| e));
        let prefix =
            prefix.map_err(|e| Usage::new(format!("{text} is not a prefix: {e}"), help))?;
        return Ok(Question::Prefix(prefix));
    }
    let Some((kind, name)) = code.split_once('/').filter(|(_, name)| !name.is_empty()) else {
        let message = if code.is_empty() {
            "nothing is asked about -f".to_owned()
        } else {
            format!("{code} is no part of a network")
        };
        return Err(Usage::new(message, help));
    };
    if kind.eq_ignore_ascii_case("node") {
        return Ok(Question::Node {
            name: name.to_owned(),
            path: words.join("/"),
        });
    }
    if let Some(word) = words.first() {
        return Err(Usage::new(format!("{word} has no meaning here"), help));
    }
    Ok(Question::Object {
        kind: kind.to_owned(),
        name: name.to_owned(),
    })
}

/// The object that is meant, as it was written.
fn find(network: &Network, kind: &str, name: &str) -> Result<ObjectRef, Usage> {
    let mut alike = Vec::new();
    for object in network.objects() {
        let text = |path: &str| {
            object
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (own, its_name) = (text("/kind"), text("/metadata/name"));
        if own.eq_ignore_ascii_case(kind) {
            if its_name == name {
                return Ok(ObjectRef::new(text("/apiVersion"), own, name));
            }
            alike.push(format!("{own}/{its_name}"));
        }
    }
    let help = if alike.is_empty() {
        "name an intent, a low-level object or a node of -f".to_owned()
    } else {
        format!("there are {}", alike.join(", "))
    };
    Err(Usage::new(
        format!("no {kind}/{name} is among these objects"),
        help,
    ))
}

fn parts(network: &Network, reasons: Vec<Reason>) -> Vec<Part> {
    // A finding is what finds a line; nobody is told it.
    let wanted = reasons.iter().flat_map(|r| &r.origins);
    let wanted = wanted.map(|o| {
        let line = Finding::info(Code::LowLevelObject, "");
        line.on(&o.object).at(o.field.clone())
    });
    let located = network.located(wanted.collect());
    let mut places = located.into_iter().map(|f| f.location);
    let part = |reason: Reason| Part {
        on: on(&network.inputs, &reason.scope),
        path: reason.path,
        item: reason.item,
        nodes: reason.nodes,
        origins: reason
            .origins
            .into_iter()
            .map(|origin| Origin {
                object: origin.object,
                field: origin.field,
                rule: origin.rule,
                location: places.next().flatten(),
            })
            .collect(),
    };
    reasons.into_iter().map(part).collect()
}

fn text(answer: &Answer<'_>) -> String {
    let mut text = String::new();
    for (at, part) in answer.parts.iter().enumerate() {
        let space = if at == 0 { "" } else { "\n" };
        let _ = writeln!(text, "{space}{} on {}", part.path, part.on);
        let said = fields(&part.item).into_iter();
        let said = said.filter(|(_, value)| !value.is_empty());
        let said: Vec<String> = said.map(|(key, value)| format!("{key} {value}")).collect();
        let _ = writeln!(text, "  is    {}", said.join("; "));
        for origin in &part.origins {
            let place = origin.location.as_ref();
            let place = place.map_or_else(String::new, |l| format!(" ({}:{})", l.file, l.line));
            let (object, field, rule) = (&origin.object, &origin.field, &origin.rule);
            let _ = writeln!(text, "  from  {object} {field}: {rule}{place}");
        }
    }
    for (at, object) in answer.platform.iter().enumerate() {
        if at == 0 && !text.is_empty() {
            text.push('\n');
        }
        let [kind, name, _] = platform_object(object);
        let _ = writeln!(text, "makes {kind} {name}");
    }
    text
}

fn nothing(question: &Question) -> String {
    match question {
        Question::Node { name, path } if path.is_empty() => {
            format!("no object puts anything on node {name}")
        }
        Question::Node { name, path } => format!("no object puts {path} on node {name}"),
        Question::Prefix(prefix) => format!("no part of the network is about {prefix}"),
        Question::Object { kind, name } => {
            format!("{kind}/{name} puts nothing into the network of its own")
        }
    }
}
