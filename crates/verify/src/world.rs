//! The objects, read once: NADs, pods, what each pod attaches, and what the clusters say of themselves.
//!
//! ```text
//!   objects ──► NADs ◄── attachment ── pods (also templates of Deployments, Jobs …)
//!          └──► clusters (WorkloadCluster, kubeadm)      └──► instances (NetworkInstance, IPPrefix, IPClaim)
//! ```
//!
//! Every rule gets this and reads no object itself. Easy to get wrong: a package often has no namespaces
//! yet. A NAD or pod without one may end up in any, so it matches any; the exact namespace goes first.

use std::collections::BTreeMap;

use mooring_api::annotation;
use mooring_attach::cni::member;
use mooring_attach::nad::{self, Use, Used};
use mooring_attach::networks::{self, Entry, Networks, ParseError};
use serde_json::{Map, Value};

use crate::cluster::Clusters;
use crate::input::{Input, Origin};
use crate::instance::Instances;

/// Everything, read.
pub(crate) struct World<'a> {
    pub(crate) inputs: &'a [Input<'a>],
    pub(crate) nads: Vec<Nad<'a>>,
    pub(crate) pods: Vec<Pod<'a>>,
    pub(crate) clusters: Clusters<'a>,
    pub(crate) instances: Instances,
    /// Cluster, then name.
    names: BTreeMap<&'a str, BTreeMap<&'a str, Vec<usize>>>,
}

/// A NetworkAttachmentDefinition that will be on a cluster.
pub(crate) struct Nad<'a> {
    pub(crate) input: usize,
    pub(crate) origin: &'a Origin,
    pub(crate) scope: Option<String>,
    pub(crate) config: &'a str,
    /// `Null` where the text is not JSON; then [`nad::check`] has said so.
    pub(crate) json: Value,
    pub(crate) uses: Vec<Used>,
    /// Pods and the place of the entry in their annotation.
    pub(crate) users: Vec<(usize, usize)>,
}

/// A pod, or the template of some.
pub(crate) struct Pod<'a> {
    pub(crate) input: usize,
    pub(crate) origin: &'a Origin,
    pub(crate) object: &'a Value,
    /// The object itself, or its template.
    pub(crate) template: &'a Value,
    /// Field path of the annotation.
    pub(crate) field: String,
    pub(crate) text: &'a str,
    pub(crate) on_host: bool,
    pub(crate) networks: Result<Networks, ParseError>,
    /// The NAD of each entry.
    pub(crate) nads: Vec<Option<usize>>,
}

impl<'a> World<'a> {
    pub(crate) fn read(inputs: &'a [Input<'a>]) -> Self {
        let instances = Instances::read(inputs);
        let mut world = Self {
            inputs,
            nads: Vec::new(),
            pods: Vec::new(),
            clusters: Clusters::read(inputs),
            instances,
            names: BTreeMap::new(),
        };
        let deployed = || {
            let all = inputs.iter().enumerate();
            all.filter(|(_, i)| !is_local_config(i.value))
        };
        for (index, input) in deployed() {
            world.add_nad(index, input);
        }
        for (index, input) in deployed() {
            world.add_pods(index, input);
        }
        world
    }

    fn add_nad(&mut self, index: usize, input: &'a Input<'a>) {
        let origin = &input.origin;
        let object = &origin.object;
        if object.kind != "NetworkAttachmentDefinition" || object.group() != "k8s.cni.cncf.io" {
            return;
        }
        let config = input.value.pointer("/spec/config").and_then(Value::as_str);
        let config = config.unwrap_or_default();
        let names = self.names.entry(&origin.cluster).or_default();
        names.entry(&object.name).or_default().push(self.nads.len());
        self.nads.push(Nad {
            input: index,
            origin,
            scope: self.instances.scope_of(input),
            config,
            json: serde_json::from_str(config).unwrap_or_default(),
            uses: nad::addresses(config),
            users: Vec::new(),
        });
    }

    fn add_pods(&mut self, index: usize, input: &'a Input<'a>) {
        let places: &[&str] = match input.origin.object.kind.as_str() {
            "Pod" => &[""],
            _ => &["spec.template.", "spec.jobTemplate.spec.template."],
        };
        for place in places {
            let mut keys = place.split_terminator('.');
            let template = keys.try_fold(input.value, |value, key| value.get(key));
            let Some(template) = template else { continue };
            let Some(text) = annotation_of(template, annotation::NETWORKS) else {
                continue;
            };
            let host = template.get("spec").and_then(|s| s.get("hostNetwork"));
            let on_host = host.and_then(Value::as_bool) == Some(true);
            // On the host's network no plugin is called, so nothing of it is ever attached.
            let networks = networks::parse(if on_host { "" } else { text });
            let entries = networks.as_ref().map_or(&[][..], |n| &n.entries[..]);
            let nads: Vec<Option<usize>> = entries
                .iter()
                .map(|entry| self.resolve(&input.origin, entry))
                .collect();
            for (place, nad) in nads.iter().enumerate() {
                if let Some(nad) = nad {
                    self.nads[*nad].users.push((self.pods.len(), place));
                }
            }
            self.pods.push(Pod {
                input: index,
                origin: &input.origin,
                object: input.value,
                template,
                field: format!("{place}metadata.annotations[{}]", annotation::NETWORKS),
                text,
                on_host,
                networks,
                nads,
            });
        }
    }

    /// The NAD that an entry names: of the exact namespace first, then of the pod's own package.
    fn resolve(&self, pod: &Origin, entry: &Entry) -> Option<usize> {
        let wanted = entry.namespace().unwrap_or(&pod.object.namespace);
        let named = self.named(&pod.cluster, entry.name()).iter().copied();
        let fits = |nad: &usize| {
            let there = &self.nads[*nad].origin.object.namespace;
            there == wanted || there.is_empty() || wanted.is_empty()
        };
        named.filter(fits).min_by_key(|nad| {
            let origin = self.nads[*nad].origin;
            let elsewhere = origin.object.namespace != wanted;
            (elsewhere, origin.package != pod.package, origin)
        })
    }

    /// The NADs of a cluster that have this name, in any namespace.
    pub(crate) fn named(&self, cluster: &str, name: &str) -> &[usize] {
        let named = self.names.get(cluster).and_then(|names| names.get(name));
        named.map_or(&[], Vec::as_slice)
    }

    /// The names of a cluster's NADs.
    pub(crate) fn nad_names(&self, cluster: &str) -> impl Iterator<Item = &'a str> {
        let names = self.names.get(cluster).into_iter();
        names.flat_map(|names| names.keys().copied())
    }
}

impl<'a> Pod<'a> {
    /// The attachments, each with its NAD where that is known.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (usize, &Entry, Option<usize>)> {
        let entries = self.networks.as_ref().map_or(&[][..], |n| &n.entries[..]);
        let pairs = entries.iter().zip(&self.nads).enumerate();
        pairs.map(|(place, (entry, nad))| (place, entry, *nad))
    }

    pub(crate) fn entry(&self, place: usize) -> Option<&Entry> {
        self.networks.as_ref().ok()?.entries.get(place)
    }

    pub(crate) fn spec(&self) -> &'a Value {
        const NONE: &Value = &Value::Null;
        self.template.get("spec").unwrap_or(NONE)
    }
}

impl Nad<'_> {
    /// The plugins, in the order of the chain.
    pub(crate) fn plugins(&self) -> Vec<&Map<String, Value>> {
        match self.json.get("plugins") {
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_object).collect(),
            _ => self.json.as_object().into_iter().collect(),
        }
    }

    /// The plugin that makes the interface.
    pub(crate) fn main(&self) -> Option<&Map<String, Value>> {
        self.plugins().first().copied()
    }

    /// The main plugin's name.
    pub(crate) fn plugin(&self) -> &str {
        self.main().and_then(|p| word(p, "type")).unwrap_or("")
    }

    /// The IPAM sections of the chain.
    pub(crate) fn ipams(&self) -> Vec<&Map<String, Value>> {
        let plugins = self.plugins().into_iter();
        plugins
            .filter_map(|p| member(p, "ipam")?.as_object())
            .collect()
    }

    /// The IPAM plugin's name, or nothing for a link without addresses.
    pub(crate) fn ipam(&self) -> &str {
        let ipams = self.ipams();
        ipams.iter().find_map(|i| word(i, "type")).unwrap_or("")
    }

    /// Whether the NAD itself names an address.
    pub(crate) fn has_address(&self) -> bool {
        let is_address = |used: &Used| matches!(used.what, Use::Address(_));
        self.uses.iter().any(is_address)
    }
}

/// A text that is there and not empty. Found as the plugins find it, without regard to the case of the key.
pub(crate) fn word<'v>(map: &'v Map<String, Value>, key: &str) -> Option<&'v str> {
    member(map, key)?.as_str().filter(|t| !t.is_empty())
}

/// A list; absent is empty.
pub(crate) fn list<'v>(map: &'v Map<String, Value>, key: &str) -> &'v [Value] {
    let list = member(map, key).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// An annotation of an object or of a pod template.
pub(crate) fn annotation_of<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value
        .get("metadata")?
        .get("annotations")?
        .get(key)?
        .as_str()
}

/// Never applied to a cluster.
pub(crate) fn is_local_config(value: &Value) -> bool {
    annotation_of(value, annotation::LOCAL_CONFIG) == Some("true")
}
