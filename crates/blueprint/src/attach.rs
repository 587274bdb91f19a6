//! Step 6: the workload's pod template asks for its networks. The annotation's grammar is `attach`'s;
//! here stands which entries, limits and node selectors a workload gets, and whether its rollout could
//! run two pods with one address.
//!
//! What we added is remembered in an annotation of the workload itself (not of its template: that would
//! restart pods), so that it can be taken out again.

use std::collections::BTreeMap;

use mooring_api::{Code, Finding, ObjectRef, annotation};
use mooring_attach::networks::{self, Key, Selection};
use mooring_attach::rollout::{self, Pods, Strategy};
use serde_json::{Value, json};

use crate::bundle::{Bundle, Object, group, map_below};
use crate::choices::Carrier;
use crate::claim;
use crate::cluster::{Cluster, said};
use crate::nad::node_name;
use crate::port::{Port, package_namespace};
use crate::workload::{self, template_path};

/// What we attached: `nad[@namespace]=interface[=resource]`, comma separated.
pub const ATTACHED: &str = "mooring.dev/attached";
/// The node that we pinned a workload to; absent where the user did.
const NODE: &str = "mooring.dev/node";
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Brings every workload's networks, limits and node selector to what its ports want.
pub fn attach(bundle: &mut Bundle, ports: &[Port], cluster: &Cluster) -> Vec<Finding> {
    let mut findings = Vec::new();
    for index in 0..bundle.objects.len() {
        let object = &bundle.objects[index];
        let Some(path) = template_path(object) else {
            continue;
        };
        let me = (object.kind().to_owned(), object.name().to_owned());
        let mine: Vec<&Port> = ports
            .iter()
            .filter(|p| p.attachable && p.instance.is_some() && p.workload.as_ref() == Some(&me))
            .collect();
        if mine.is_empty() && object.annotation(ATTACHED).is_none() {
            continue;
        }
        if let Err(finding) = node_for(&bundle.objects[index], &mine, cluster) {
            findings.push(finding);
            continue;
        }
        let node = node_for(&bundle.objects[index], &mine, cluster)
            .ok()
            .flatten();
        let wanted = entries(bundle, &mine, cluster, node.as_ref());
        let package = package_namespace(bundle);
        let object = &mut bundle.objects[index];
        let edit = Edit { object, path };
        findings.extend(edit.run(&wanted, node.as_ref(), &package));
        check_rollout(&mut bundle.objects[index], &mine, &mut findings);
    }
    findings
}

/// One network of a workload.
struct Entry {
    selection: Selection,
    resource: Option<String>,
    /// Whether the NAD itself carries the address: attached twice, the pod would have it twice.
    fixed: bool,
}

fn entries(
    bundle: &Bundle,
    ports: &[&Port],
    cluster: &Cluster,
    node: Option<&String>,
) -> Vec<Entry> {
    let entry = |port: &&Port| {
        let node = node.filter(|_| port.takes_ranges() && port.choices.per_node);
        let name = node_name(&port.nad_name(), node);
        let nad = bundle.find(group::CNI, "NetworkAttachmentDefinition", &name)?;
        let by_annotation = port.is_static() && port.choices.carrier == Carrier::Annotation;
        let answers = if by_annotation {
            claim::answers(bundle, port, cluster)
        } else {
            Vec::new()
        };
        Some(Entry {
            fixed: port.is_static() && port.choices.carrier == Carrier::Nad,
            resource: nad
                .annotation(annotation::RESOURCE_NAME)
                .map(ToOwned::to_owned),
            selection: Selection {
                name,
                namespace: Some(nad.namespace().to_owned()),
                interface: port.pod_name.parse().ok(),
                ips: answers.iter().map(|a| a.prefix).collect(),
                ..Selection::default()
            },
        })
    };
    ports.iter().filter_map(entry).collect()
}

/// The node that a workload with ranges per node runs on: the one it names, else the first.
fn node_for(
    object: &Object,
    ports: &[&Port],
    cluster: &Cluster,
) -> Result<Option<String>, Finding> {
    let Some(port) = ports
        .iter()
        .find(|p| p.takes_ranges() && p.choices.per_node)
    else {
        return Ok(None);
    };
    let named = workload::template(object)
        .and_then(|t| t.get("spec")?.get("nodeSelector")?.get(HOSTNAME)?.as_str());
    let Some(first) = cluster.nodes.first() else {
        return Err(Finding::error(
            Code::MissingNodes,
            format!(
                "ranges per node were asked for, but cluster {} lists no nodes",
                cluster.name
            ),
        )
        .on(&port.object)
        .at(format!("metadata.annotations[{}]", annotation::RANGE_PER))
        .help(format!(
            "List them in spec.nodes of {} (or annotation {}).",
            cluster.reference,
            annotation::NODES
        )));
    };
    match named {
        Some(node) if cluster.nodes.iter().any(|n| n == node) => Ok(Some(node.to_owned())),
        Some(node) if object.annotation(NODE) != Some(node) => Err(Finding::error(
            Code::MissingNodes,
            format!(
                "it runs on {node}, but cluster {} has {}",
                cluster.name,
                said(&cluster.nodes)
            ),
        )
        .on(&object.reference())
        .at(field(
            template_path(object).unwrap_or_default(),
            "spec.nodeSelector",
        ))
        .help(format!(
            "Name one of these, or add {node} to spec.nodes of {}.",
            cluster.reference
        ))),
        _ => Ok(Some(first.clone())),
    }
}

/// A field below the pod template at `path`.
fn field(path: &[&str], below: &str) -> String {
    path.iter()
        .chain(&[below])
        .copied()
        .collect::<Vec<_>>()
        .join(".")
}

struct Edit<'a> {
    object: &'a mut Object,
    path: &'static [&'static str],
}

impl Edit<'_> {
    /// `package` is where a workload without namespace will most likely run: an entry that names our
    /// NAD without namespace is then ours, and not a second attachment of the same NAD.
    fn run(mut self, wanted: &[Entry], node: Option<&String>, package: &str) -> Vec<Finding> {
        let namespace = self.object.namespace().to_owned();
        let before = attached(self.object);
        let gone: Vec<Key> = before.iter().map(|(key, _)| key.clone()).collect();
        let selections: Vec<Selection> = wanted
            .iter()
            .map(|e| Selection {
                namespace: e
                    .selection
                    .namespace
                    .clone()
                    .filter(|n| *n != namespace && !n.is_empty()),
                ..e.selection.clone()
            })
            .collect();
        let existing = self.networks().map(ToOwned::to_owned);
        let runs_in = if namespace.is_empty() {
            package
        } else {
            &namespace
        };
        match networks::merge(existing.as_deref(), runs_in, &selections, &gone) {
            Ok(text) => {
                if let Some(finding) = self.twice(text.as_deref(), runs_in, wanted) {
                    return vec![finding];
                }
                self.set_networks(existing.as_deref(), text);
            }
            Err(error) => return vec![self.unreadable(&error)],
        }
        let was: Vec<&str> = before.iter().filter_map(|(_, r)| r.as_deref()).collect();
        let is: Vec<&str> = wanted
            .iter()
            .filter_map(|e| e.resource.as_deref())
            .collect();
        self.set_limits(&was, &is);
        self.pin(node);
        self.remember(&selections, wanted);
        Vec::new()
    }

    /// A NAD that carries its address can be attached once.
    fn twice(&self, text: Option<&str>, runs_in: &str, wanted: &[Entry]) -> Option<Finding> {
        let networks = networks::parse(text?).ok()?;
        let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for entry in &networks.entries {
            let namespace = entry.namespace().unwrap_or(runs_in);
            *counts.entry((entry.name(), namespace)).or_default() += 1;
        }
        let is_double = |e: &&Entry| {
            let namespace = e.selection.namespace.as_deref().unwrap_or(runs_in);
            e.fixed && counts.get(&(e.selection.name.as_str(), namespace)) > Some(&1)
        };
        let double = wanted.iter().find(is_double)?;
        let below = format!("metadata.annotations[{}]", annotation::NETWORKS);
        let name = &double.selection.name;
        Some(
            Finding::error(
                Code::DuplicateAddress,
                format!("{name} is attached twice, and the pod would have its address twice"),
            )
            .on(&self.object.reference())
            .at(field(self.path, &below))
            .help(format!(
                "Remove your entry for {name}: Mooring attaches it, under the Interface's name."
            )),
        )
    }

    /// Pins the workload to a node, or takes back the pin that was ours.
    fn pin(&mut self, node: Option<&String>) {
        let ours = self.object.annotation(NODE).map(ToOwned::to_owned);
        let spec = map_below(&mut self.object.value, self.path)
            .entry("spec")
            .or_insert_with(|| json!({}));
        let pinned = spec.get("nodeSelector").and_then(|s| s.get(HOSTNAME));
        let pinned = pinned.and_then(Value::as_str).map(ToOwned::to_owned);
        match (node, ours) {
            (Some(node), _) if pinned.as_ref() == Some(node) => {}
            (Some(node), _) => {
                map_below(spec, &["nodeSelector"]).insert(HOSTNAME.into(), json!(node));
                self.object.set_annotation(NODE, node);
            }
            (None, None) => {}
            (None, Some(ours)) => {
                if pinned == Some(ours) {
                    let selector = map_below(spec, &["nodeSelector"]);
                    selector.shift_remove(HOSTNAME);
                    if selector.is_empty() {
                        map_below(spec, &[]).shift_remove("nodeSelector");
                    }
                }
                self.object.remove_annotation(NODE);
            }
        }
    }

    fn networks(&self) -> Option<&str> {
        let template = self
            .path
            .iter()
            .try_fold(&self.object.value, |v, key| v.get(key))?;
        template
            .get("metadata")?
            .get("annotations")?
            .get(annotation::NETWORKS)?
            .as_str()
    }

    fn set_networks(&mut self, existing: Option<&str>, text: Option<String>) {
        if text.as_deref() == existing {
            return;
        }
        let template = map_below(&mut self.object.value, self.path);
        let metadata = template.entry("metadata").or_insert_with(|| json!({}));
        let annotations = map_below(metadata, &["annotations"]);
        match text {
            Some(text) => drop(annotations.insert(annotation::NETWORKS.into(), json!(text))),
            None => drop(annotations.shift_remove(annotation::NETWORKS)),
        }
        if annotations.is_empty() {
            map_below(metadata, &[]).shift_remove("annotations");
        }
    }

    fn unreadable(&self, error: &networks::MergeError) -> Finding {
        let code = match error {
            networks::MergeError::Unreadable(_) => Code::InvalidNetworksAnnotation,
            networks::MergeError::InterfaceTwice { .. } => Code::InterfaceNameTaken,
        };
        let because = std::error::Error::source(error)
            .map(|e| format!(": {e}"))
            .unwrap_or_default();
        let below = format!("metadata.annotations[{}]", annotation::NETWORKS);
        Finding::error(code, format!("{error}{because}"))
            .on(&self.object.reference())
            .at(field(self.path, &below))
            .help("Write `name`, `namespace/name@interface`, or a JSON list of objects; name each interface once.")
    }

    /// The first container asks for as many devices as there are ports on the resource. What stood
    /// there beyond our share is the user's and stays.
    fn set_limits(&mut self, was: &[&str], is: &[&str]) {
        let mut names: Vec<&str> = was.iter().chain(is).copied().collect();
        names.sort_unstable();
        names.dedup();
        let count = |list: &[&str], name: &str| list.iter().filter(|r| **r == name).count();
        for name in names {
            let (had, want) = (count(was, name), count(is, name));
            if had == want {
                continue;
            }
            let spec = map_below(&mut self.object.value, self.path);
            let containers = spec.get_mut("spec").and_then(|s| s.get_mut("containers"));
            let Some(container) = containers.and_then(|c| c.get_mut(0)) else {
                return;
            };
            let limits = map_below(container, &["resources", "limits"]);
            let now = limits.get(name).and_then(quantity).unwrap_or(0);
            let total = (now + want).saturating_sub(had);
            if total == 0 {
                limits.shift_remove(name);
            } else {
                limits.insert(name.to_owned(), json!(total.to_string()));
            }
            prune(container);
        }
    }

    fn remember(&mut self, selections: &[Selection], wanted: &[Entry]) {
        let said: Vec<String> = selections
            .iter()
            .zip(wanted)
            .map(|(selection, entry)| {
                let namespace = selection
                    .namespace
                    .as_ref()
                    .map(|n| format!("@{n}"))
                    .unwrap_or_default();
                let interface = selection
                    .interface
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                let resource = entry
                    .resource
                    .as_ref()
                    .map(|r| format!("={r}"))
                    .unwrap_or_default();
                format!("{}{namespace}={interface}{resource}", selection.name)
            })
            .collect();
        if said.is_empty() {
            self.object.remove_annotation(ATTACHED);
        } else {
            self.object.set_annotation(ATTACHED, &said.join(","));
        }
    }
}

fn quantity(value: &Value) -> Option<usize> {
    value
        .as_u64()
        .and_then(|n| usize::try_from(n).ok())
        .or_else(|| value.as_str()?.parse().ok())
}

/// Empty maps that only our limits had filled go away.
fn prune(container: &mut Value) {
    let empty = |v: Option<&Value>| {
        v.and_then(Value::as_object)
            .is_some_and(serde_json::Map::is_empty)
    };
    let Some(container) = container.as_object_mut() else {
        return;
    };
    if let Some(resources) = container
        .get_mut("resources")
        .and_then(Value::as_object_mut)
        && empty(resources.get("limits"))
    {
        resources.shift_remove("limits");
    }
    if empty(container.get("resources")) {
        container.shift_remove("resources");
    }
}

/// What an earlier run attached.
fn attached(object: &Object) -> Vec<(Key, Option<String>)> {
    let text = object.annotation(ATTACHED).unwrap_or_default();
    text.split(',')
        .filter_map(|entry| {
            let mut parts = entry.splitn(3, '=');
            let (nad, interface) = (parts.next()?, parts.next()?);
            let (name, namespace) = match nad.split_once('@') {
                Some((name, namespace)) => (name, Some(namespace.to_owned())),
                None => (nad, None),
            };
            let interface = Some(interface.to_owned()).filter(|i| !i.is_empty());
            let key = Key {
                name: name.to_owned(),
                namespace,
                interface,
            };
            Some((key, parts.next().map(ToOwned::to_owned)))
        })
        .collect()
}

/// More than one pod at a time with one static address is an outage, so it is refused; a Deployment
/// that says nothing is given `Recreate`, and that is said.
fn check_rollout(object: &mut Object, ports: &[&Port], findings: &mut Vec<Finding>) {
    let Some(port) = ports.iter().find(|p| p.is_static()) else {
        return;
    };
    let reference = object.reference();
    let pods = rollout::pods(&object.value);
    if pods.most > 1 {
        findings.push(shared(&reference, pods, port));
    } else if object.kind() == "Deployment" {
        check_strategy(object, &reference, findings);
    }
}

fn shared(workload: &ObjectRef, pods: Pods, port: &Port) -> Finding {
    let message = format!(
        "{pods}, and each pod would carry the one address of {}",
        port.object.name
    );
    Finding::error(Code::SharedStaticAddress, message)
        .on(workload)
        .at(pods.field)
        .help(format!(
            "Run one pod at a time, or set annotation {}: whereabouts (or host-local) on {}.",
            annotation::IPAM_FLAVOUR,
            port.object
        ))
}

fn check_strategy(object: &mut Object, reference: &ObjectRef, findings: &mut Vec<Finding>) {
    let finding = match rollout::strategy(&object.value) {
        Strategy::OneByOne => return,
        Strategy::Unsaid => {
            let strategy = map_below(&mut object.value, &["spec", "strategy"]);
            strategy.insert("type".into(), json!("Recreate"));
            Finding::info(
                Code::RecreateSet,
                "strategy set to Recreate: a rolling update would run two pods with one address",
            )
        }
        Strategy::Surges => Finding::error(
            Code::SurgingStrategy,
            "its rolling update starts the new pod before the old one is gone: one address, twice",
        )
        .help("Set spec.strategy.type: Recreate, or rollingUpdate.maxSurge: 0."),
    };
    findings.push(finding.on(reference).at("spec.strategy"));
}
