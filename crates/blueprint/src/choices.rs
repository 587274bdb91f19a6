//! Choices that live on no field of the seeds: annotations under `mooring.dev/`, read on the Interface
//! or IPClaim, else on the Kptfile. Parsed once, here; a bad one is a finding at its annotation.

use std::net::IpAddr;
use std::str::FromStr;

use mooring_api::{Cidr, Code, Finding, annotation};

use crate::bundle::{Marks, Object};

/// Which IPAM plugin the NAD uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flavour {
    /// An address from the book, written down.
    #[default]
    Static,
    /// A range from the book, per cluster or node; the node hands out addresses.
    HostLocal,
    /// A range from the book, per cluster; whereabouts hands out addresses.
    Whereabouts,
    /// Our own plugin asks the agent when the pod starts.
    Moor,
    /// An address that somebody else writes into the IPClaim's status.
    External,
}

/// What carries a static address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The NAD (seed 000).
    Nad,
    /// The pod annotation (seed 001).
    Annotation,
}

/// A route that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Destination.
    pub dst: Cidr,
    /// Next hop; the claim's gateway of the same family where None.
    pub via: Option<IpAddr>,
}

/// Every choice for one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    /// IPAM plugin.
    pub flavour: Flavour,
    /// Carrier of a static address.
    pub carrier: Carrier,
    /// Routes asked for.
    pub routes: Vec<Route>,
    /// Whether the default route goes here.
    pub default_route: bool,
    /// `Kind/name` as written.
    pub workload: Option<(String, String)>,
    /// Name of the NAD.
    pub nad_name: Option<String>,
    /// The plugin's mode.
    pub mode: Option<String>,
    /// How many addresses.
    pub addresses: u16,
    /// DNS servers.
    pub dns: Vec<IpAddr>,
    /// How many addresses a range has.
    pub range_size: Option<u32>,
    /// A range per node instead of per cluster.
    pub per_node: bool,
}

/// Reads the choices for an Interface or IPClaim. Bad ones are reported and read as their default.
pub fn read(
    object: &Object,
    marks: &Marks,
    carrier: Carrier,
    findings: &mut Vec<Finding>,
) -> Choices {
    let mut reader = Reader {
        object,
        marks,
        findings,
    };
    Choices {
        flavour: reader.choice(
            annotation::IPAM_FLAVOUR,
            &[
                ("static", Flavour::Static),
                ("host-local", Flavour::HostLocal),
                ("whereabouts", Flavour::Whereabouts),
                ("moor", Flavour::Moor),
                ("external", Flavour::External),
            ],
            Flavour::Static,
        ),
        carrier: reader.choice(
            annotation::IPAM_CARRIER,
            &[("nad", Carrier::Nad), ("annotation", Carrier::Annotation)],
            carrier,
        ),
        routes: reader.list(
            annotation::ROUTES,
            "CIDR [via ADDRESS], comma separated",
            route,
        ),
        default_route: reader.choice(
            annotation::DEFAULT_ROUTE,
            &[("true", true), ("false", false)],
            false,
        ),
        workload: reader.one(annotation::WORKLOAD, "Kind/name", workload),
        nad_name: reader.one(annotation::NAD_NAME, "a name in lower case", |text| {
            is_object_name(text).then(|| text.to_owned())
        }),
        mode: reader.one(annotation::MODE, "a mode of the plugin", |text| {
            MODES.contains(&text).then(|| text.to_owned())
        }),
        addresses: reader
            .one(annotation::ADDRESSES, "a number from 1 to 64", |text| {
                text.parse().ok().filter(|n| (1..=64).contains(n))
            })
            .unwrap_or(1),
        dns: reader.list(annotation::DNS, "addresses, comma separated", |t| {
            t.parse().ok()
        }),
        range_size: reader.one(annotation::RANGE_SIZE, "a number from 1 to 65536", |text| {
            text.parse().ok().filter(|n| (1..=65_536).contains(n))
        }),
        per_node: reader.choice(
            annotation::RANGE_PER,
            &[("cluster", false), ("node", true)],
            false,
        ),
    }
}

/// The modes of macvlan and ipvlan; the NAD check knows which plugin takes which.
const MODES: [&str; 7] = ["bridge", "private", "vepa", "passthru", "l2", "l3", "l3s"];

fn route(text: &str) -> Option<Route> {
    let mut words = text.split_whitespace();
    let dst = words.next()?.parse().ok()?;
    let via = match (words.next(), words.next(), words.next()) {
        (None, ..) => None,
        (Some("via"), Some(gateway), None) => Some(gateway.parse().ok()?),
        _ => return None,
    };
    Some(Route { dst, via })
}

/// A DNS-1123 subdomain, as Kubernetes asks of an object's name.
pub fn is_object_name(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    text.len() <= 253
        && edge(text.chars().next())
        && edge(text.chars().last())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c))
}

/// Comma separated values of an annotation on any object; a bad one is a finding there.
pub fn list<T: FromStr>(
    object: &Object,
    key: &str,
    grammar: &str,
    findings: &mut Vec<Finding>,
) -> Vec<T> {
    let marks = Marks::default();
    Reader {
        object,
        marks: &marks,
        findings,
    }
    .list(key, grammar, |t| t.parse().ok())
}

/// One value of an annotation on any object.
pub fn one<T: FromStr>(
    object: &Object,
    key: &str,
    grammar: &str,
    findings: &mut Vec<Finding>,
) -> Option<T> {
    let marks = Marks::default();
    Reader {
        object,
        marks: &marks,
        findings,
    }
    .one(key, grammar, |t| t.parse().ok())
}

/// A field that we add to somebody else's kind may stand in its annotation twin instead, where the
/// installed CRD would prune it. Where both stand and differ, nobody knows which one is meant.
pub fn twin<T: PartialEq>(
    object: &Object,
    (field, written): (&str, Option<T>),
    (key, grammar): (&str, &str),
    parse: impl Fn(&str) -> Option<T>,
    findings: &mut Vec<Finding>,
) -> Option<T> {
    let marks = Marks::default();
    let twin = Reader {
        object,
        marks: &marks,
        findings,
    }
    .one(key, grammar, parse);
    if let (Some(written), Some(twin)) = (&written, &twin)
        && written != twin
    {
        findings.push(
            Finding::error(
                Code::InvalidAnnotation,
                format!("annotation {key} and {field} disagree"),
            )
            .on(&object.reference())
            .at(format!("metadata.annotations[{key}]"))
            .help("Make the two equal, or remove one of them."),
        );
    }
    written.or(twin)
}

/// `Kind/name`.
pub fn workload(text: &str) -> Option<(String, String)> {
    let (kind, name) = text.split_once('/')?;
    (!kind.is_empty() && !name.is_empty()).then(|| (kind.to_owned(), name.to_owned()))
}

struct Reader<'a> {
    object: &'a Object,
    marks: &'a Marks,
    findings: &'a mut Vec<Finding>,
}

impl Reader<'_> {
    fn text(&self, key: &str) -> Option<(&str, bool)> {
        let own = self.object.annotation(key).map(|text| (text, true));
        own.or_else(|| Some((self.marks.annotations.get(key)?.as_str(), false)))
    }

    fn refuse(&mut self, key: &str, text: &str, grammar: &str, own: bool) {
        let finding = Finding::error(
            Code::InvalidAnnotation,
            format!("annotation {key} is {text:?}, which is not {grammar}"),
        )
        .help(format!("Write {grammar}, or remove the annotation."));
        let finding = if own {
            finding.on(&self.object.reference())
        } else {
            finding
        };
        let finding = finding.at(format!("metadata.annotations[{key}]"));
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn one<T>(&mut self, key: &str, grammar: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let (text, own) = self.text(key).map(|(t, own)| (t.to_owned(), own))?;
        let value = parse(text.trim());
        if value.is_none() {
            self.refuse(key, &text, grammar, own);
        }
        value
    }

    fn list<T>(&mut self, key: &str, grammar: &str, parse: impl Fn(&str) -> Option<T>) -> Vec<T> {
        let whole = |text: &str| -> Option<Vec<T>> {
            text.split(',')
                .map(str::trim)
                .filter(|t| !t.is_empty())
                .map(&parse)
                .collect()
        };
        self.one(key, grammar, whole).unwrap_or_default()
    }

    fn choice<T: Copy>(&mut self, key: &str, table: &[(&str, T)], default: T) -> T {
        let names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
        let grammar = format!("one of {}", names.join(", "));
        let find = |text: &str| {
            table
                .iter()
                .find(|(name, _)| *name == text)
                .map(|(_, v)| *v)
        };
        self.one(key, &grammar, find).unwrap_or(default)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn interface(annotations: serde_json::Value) -> Object {
        let value = json!({ "apiVersion": "req.nephio.org/v1alpha1", "kind": "Interface",
            "metadata": { "name": "n2", "annotations": annotations } });
        Object {
            value,
            source: None,
        }
    }

    #[test]
    fn the_interface_speaks_before_the_kptfile() {
        let mut marks = Marks::default();
        marks
            .annotations
            .insert(annotation::IPAM_FLAVOUR.into(), "whereabouts".into());
        marks
            .annotations
            .insert(annotation::DEFAULT_ROUTE.into(), "true".into());
        let object = interface(json!({ annotation::IPAM_FLAVOUR: "host-local" }));
        let mut findings = Vec::new();
        let choices = read(&object, &marks, Carrier::Nad, &mut findings);
        assert_eq!(choices.flavour, Flavour::HostLocal);
        assert!(choices.default_route);
        assert!(findings.is_empty());
    }

    #[test]
    fn a_bad_annotation_is_a_finding_at_its_key() {
        let object = interface(json!({ annotation::ROUTES: "10.0.0.0/8 through 10.1.2.1" }));
        let mut findings = Vec::new();
        read(&object, &Marks::default(), Carrier::Nad, &mut findings);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].code, Code::InvalidAnnotation);
        assert_eq!(
            findings[0].field.as_deref(),
            Some("metadata.annotations[mooring.dev/routes]")
        );
    }

    #[test]
    fn routes_have_an_optional_next_hop() {
        let object = interface(json!({ annotation::ROUTES: "10.0.0.0/8 via 10.1.2.9, fd00::/8" }));
        let choices = read(&object, &Marks::default(), Carrier::Nad, &mut Vec::new());
        assert_eq!(choices.routes[0].via, Some("10.1.2.9".parse().unwrap()));
        assert_eq!(choices.routes[1].via, None);
    }
}
