//! Adoption: from low-level objects to intents, with the proof that nothing changes.
//!
//! A step is taken only if the digest of the form stays what it was: first a segment becomes a Layer2Attachment, with its
//! mirrors and BGP peers, then every line of a low-level object that the intents now say goes. What is left is the residue:
//! low-level objects that intents cannot say, smaller than before, each with a finding that names what of it is left.
//! Intents and residue together are the network that was there, to the byte.
//!
//! Easy to get wrong: a proof by digest says nothing about the host's half, where `vlan.501` becomes `l2.vlan501`.

mod words;

use std::collections::BTreeMap;

use mooring_api::kinds::schiff::{
    API_VERSION, BGPPeeringSpec, CollectorSpec, DestinationLoopback, DestinationSpec, ItemAction,
    Layer2AttachmentSpec, Layer2NetworkConfigurationSpec, MirrorDestination, MirrorSelectorSpec,
    MirrorSource, MirrorSourceKind, PrefixItem, TrafficMirrorSpec, VRFRouteConfigurationSpec,
    label,
};
use mooring_api::{Code, Finding, ObjectRef};
use serde::Serialize;
use serde_json::{Value, json};

use self::words::NewMirror;
use crate::input::Object;
use crate::{Inputs, compile, status};

/// What low-level objects become.
#[derive(Clone, Debug, Default)]
pub struct Adoption {
    /// Intents to apply.
    pub intents: Vec<Value>,
    /// What stays low-level, and in which form.
    pub residue: Vec<Value>,
    /// Low-level objects that intents and residue replace.
    pub replaced: Vec<ObjectRef>,
    /// Why something stays.
    pub findings: Vec<Finding>,
    /// The digest of the form before and after.
    pub digest: String,
}

/// Finds intents for the low-level objects of the inputs. Compiles once per line, so it is for a person and not for a loop.
pub fn adopt(inputs: &Inputs) -> Adoption {
    let mut trial = Trial::new(inputs);
    trial.destinations();
    trial.segments();
    trial.mirrors();
    trial.loopbacks();
    trial.lines();
    trial.finish()
}

struct Trial<'a> {
    before: &'a Inputs,
    now: Inputs,
    digest: String,
    made: Vec<ObjectRef>,
    findings: Vec<Finding>,
}

fn digest(inputs: &Inputs) -> String {
    compile::form(inputs).digest()
}

impl<'a> Trial<'a> {
    fn new(before: &'a Inputs) -> Self {
        Self {
            before,
            now: before.clone(),
            digest: digest(before),
            made: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Takes a step if it changes nothing.
    fn step(&mut self, change: impl FnOnce(&mut Inputs)) -> bool {
        let mut next = self.now.clone();
        change(&mut next);
        let equal = digest(&next) == self.digest;
        if equal {
            self.now = next;
        }
        equal
    }

    /// What each VRF leads to: exact prefixes, and those with everything inside.
    fn destinations(&mut self) {
        let mut vrfs: Vec<&VRFRouteConfigurationSpec> = Vec::new();
        for object in &self.before.vrfs {
            vrfs.push(&object.spec);
        }
        vrfs.sort_by_key(|spec| (&spec.vrf, spec.seq));
        for spec in vrfs {
            let exact = |item: &&PrefixItem| item.ge.is_none() && item.le.is_none();
            let inside = |item: &&PrefixItem| {
                let bits = item.cidr.family().bits();
                item.ge.is_none() && item.le == Some(bits) && !item.cidr.is_default()
            };
            let permits = spec
                .import
                .iter()
                .filter(|i| i.action == ItemAction::Permit);
            let permits: Vec<&PrefixItem> = permits.collect();
            let lists = [
                (
                    String::new(),
                    false,
                    permits.iter().copied().filter(exact).collect::<Vec<_>>(),
                ),
                (
                    "-inside".to_owned(),
                    true,
                    permits.iter().copied().filter(inside).collect(),
                ),
            ];
            for (suffix, more_specifics, items) in lists {
                if more_specifics && items.is_empty() {
                    continue;
                }
                self.destination(spec, &suffix, more_specifics, &items);
            }
        }
    }

    fn destination(
        &mut self,
        spec: &VRFRouteConfigurationSpec,
        suffix: &str,
        more_specifics: bool,
        items: &[&PrefixItem],
    ) {
        let Ok(vrf) = spec.vrf.parse() else {
            return;
        };
        let name = format!("{}{suffix}", slug(&spec.vrf));
        let id = ObjectRef::new(API_VERSION, "Destination", &name);
        if let Some(known) = self.now.destinations.iter_mut().find(|d| d.id == id) {
            if self.made.contains(&id) {
                known.spec.prefixes.extend(items.iter().map(|i| i.cidr));
                known.spec.prefixes.sort();
                known.spec.prefixes.dedup();
            }
            return;
        }
        let object = Object {
            id: id.clone(),
            created: None,
            labels: [(label::VRF.to_owned(), spec.vrf.clone())].into(),
            spec: DestinationSpec {
                vrf,
                prefixes: items.iter().map(|i| i.cidr).collect(),
                more_specifics,
                vni: spec.vni,
                route_target: spec.route_target.as_ref().and_then(|rt| rt.parse().ok()),
                community: None,
                loopbacks: Vec::new(),
                sbr: None,
            },
        };
        if self.step(|inputs| inputs.destinations.push(object)) {
            self.made.push(id);
        }
    }

    /// Every segment that an attachment can say.
    fn segments(&mut self) {
        for object in &self.before.layer2s {
            let Some(spec) = words::attachment(&object.spec) else {
                let why = "a Layer2Attachment cannot say its gateways, offload or VRF";
                self.stays(&object.id, why);
                continue;
            };
            let named = |o: &&Object<BGPPeeringSpec>| {
                let segment = o.spec.peering_vlan.as_ref();
                segment.is_some_and(|v| v.name == object.id.name)
            };
            let peerings: Vec<_> = self.before.peerings.iter().filter(named).collect();
            let taken = match peerings[..] {
                [] => self.segment(object, &spec, None),
                [peering] => words::with_peers(&spec, &peering.spec)
                    .iter()
                    .any(|spec| self.segment(object, spec, Some(&peering.id))),
                _ => false,
            };
            if !taken {
                let why =
                    "an attachment would add routes that were not there, or something names it";
                self.stays(&object.id, why);
            }
        }
        for object in &self.before.peerings {
            if self.now.peerings.contains(object) {
                self.stays(&object.id, words::no_peers(&object.spec));
            }
        }
    }

    /// One segment, with the mirrors and the peering that name it.
    fn segment(
        &mut self,
        object: &Object<Layer2NetworkConfigurationSpec>,
        spec: &Layer2AttachmentSpec,
        peering: Option<&ObjectRef>,
    ) -> bool {
        let id = ObjectRef::new(API_VERSION, "Layer2Attachment", &object.id.name);
        let new = Object {
            id: id.clone(),
            created: object.created.clone(),
            labels: object.labels.clone(),
            spec: spec.clone(),
        };
        let mirrors = self.mirrors_of(&object.id.name);
        let mut made = vec![id];
        for (_, new) in &mirrors {
            made.extend([new.collector.id.clone(), new.mirror.id.clone()]);
        }
        let taken = self.step(|inputs| {
            inputs.layer2s.retain(|o| o.id != object.id);
            inputs.peerings.retain(|o| Some(&o.id) != peering);
            inputs.layer2_attachments.push(new);
            for (old, new) in mirrors {
                new.put(inputs);
                inputs.mirror_selectors.retain(|o| o.id != old);
            }
        });
        if taken {
            made.sort();
            made.dedup();
            made.retain(|id| !self.made.contains(id));
            self.made.extend(made);
        }
        taken
    }

    fn mirrors_of(&self, segment: &str) -> Vec<(ObjectRef, NewMirror)> {
        let all = self.before.mirror_selectors.iter();
        let own = all.filter(|o| {
            let source = &o.spec.mirror_source;
            source.kind == "Layer2NetworkConfiguration" && source.name == segment
        });
        own.filter_map(|o| Some((o.id.clone(), self.mirror(&o.spec, &o.id.name)?)))
            .collect()
    }

    /// Mirrors that stay, and targets that nobody names any more.
    fn mirrors(&mut self) {
        for object in &self.before.mirror_selectors {
            if self.now.mirror_selectors.contains(object) {
                let why = "its source is no attachment, or its loopback is no Destination's";
                self.stays(&object.id, why);
            }
        }
        for object in &self.before.mirror_targets {
            let named =
                |o: &Object<MirrorSelectorSpec>| o.spec.mirror_target.name == object.id.name;
            if !self.now.mirror_selectors.iter().any(named) {
                self.step(|inputs| inputs.mirror_targets.retain(|o| o.id != object.id));
            }
        }
    }

    fn mirror(&self, spec: &MirrorSelectorSpec, name: &str) -> Option<NewMirror> {
        let source = &spec.mirror_source;
        let mut targets = self.before.mirror_targets.iter();
        let target = targets.find(|t| t.id.name == spec.mirror_target.name)?;
        let vrf = &target.spec.destination_vrf;
        let destination = ObjectRef::new(API_VERSION, "Destination", slug(vrf));
        let routes = self.before.vrfs.iter().filter(|v| v.spec.vrf == *vrf);
        let mut loopbacks = routes.flat_map(|v| &v.spec.loopbacks);
        let loopback = loopbacks.find(|l| l.name == target.spec.source_loopback)?;
        let loopback = DestinationLoopback {
            name: loopback.name.parse().ok()?,
            pool_ref: None,
            subnet: Some(loopback.subnet.subnet()),
        };
        let object = |kind: &str, name: &str| ObjectRef::new(API_VERSION, kind, name);
        let collector = Object {
            id: object("Collector", &target.id.name),
            created: target.created.clone(),
            labels: target.labels.clone(),
            spec: CollectorSpec {
                address: target.spec.destination_ip.parse().ok()?,
                protocol: target.spec.protocol,
                key: target.spec.key,
                mirror_destination: MirrorDestination {
                    name: destination.name.clone(),
                    loopback: Some(loopback.name.clone()),
                },
                node_selector: None,
            },
        };
        let mirror = Object {
            id: object("TrafficMirror", name),
            created: None,
            labels: BTreeMap::new(),
            spec: TrafficMirrorSpec {
                source: MirrorSource {
                    kind: MirrorSourceKind::Layer2Attachment,
                    name: source.name.clone(),
                },
                collector: target.id.name.clone(),
                direction: spec.direction,
                traffic_match: spec.traffic_match.clone(),
            },
        };
        Some(NewMirror {
            destination,
            loopback,
            collector,
            mirror,
        })
    }

    fn stays(&mut self, id: &ObjectRef, why: &str) {
        self.stays_with(id, why, "it goes on working beside intents");
    }

    fn stays_with(&mut self, id: &ObjectRef, why: &str, help: &str) {
        let message = format!("it stays low-level: {why}");
        let found = Finding::info(Code::LowLevelObject, message)
            .on(id)
            .at("spec");
        self.findings.push(found.help(help));
    }

    /// Loopbacks that the Destination's consumers ask for on the same nodes.
    fn loopbacks(&mut self) {
        for object in &self.before.vrfs {
            let destination = ObjectRef::new(API_VERSION, "Destination", slug(&object.spec.vrf));
            for loopback in &object.spec.loopbacks {
                let Ok(name) = loopback.name.parse() else {
                    continue;
                };
                let new = DestinationLoopback {
                    name,
                    pool_ref: None,
                    subnet: Some(loopback.subnet.subnet()),
                };
                if !self.made.contains(&destination) {
                    continue;
                }
                self.step(|inputs| {
                    words::add(inputs, &destination, new);
                    edit(inputs, &object.id, |spec| {
                        spec.loopbacks.retain(|l| l != loopback);
                    });
                });
            }
        }
    }

    /// Drops whatever the intents say too, line by line; then objects that say nothing.
    fn lines(&mut self) {
        for object in &self.before.vrfs {
            let spec = &object.spec;
            for at in (0..spec.import.len()).rev() {
                self.step(|inputs| {
                    edit(inputs, &object.id, |spec| {
                        spec.import.remove(at);
                    });
                });
            }
            for at in (0..spec.export.len()).rev() {
                self.step(|inputs| {
                    edit(inputs, &object.id, |spec| {
                        spec.export.remove(at);
                    });
                });
            }
            for at in (0..spec.aggregate.len()).rev() {
                self.step(|inputs| {
                    edit(inputs, &object.id, |spec| {
                        spec.aggregate.remove(at);
                    });
                });
            }
            let gone = self.step(|inputs| inputs.vrfs.retain(|o| o.id != object.id));
            let left = self.now.vrfs.iter().find(|o| o.id == object.id);
            if let Some(left) = left.filter(|_| !gone) {
                let why = words::left(&left.spec);
                let help = words::instead(&left.spec);
                self.stays_with(&object.id, &why, help);
            }
        }
    }

    fn finish(self) -> Adoption {
        let mut adoption = Adoption {
            digest: self.digest,
            findings: self.findings,
            ..Adoption::default()
        };
        let made = &self.made;
        let destinations = self
            .now
            .destinations
            .iter()
            .filter(|o| made.contains(&o.id));
        adoption.intents.extend(destinations.map(written));
        let attachments = self.now.layer2_attachments.iter();
        let attachments = attachments.filter(|o| made.contains(&o.id));
        adoption.intents.extend(attachments.map(written));
        let collectors = self.now.collectors.iter().filter(|o| made.contains(&o.id));
        adoption.intents.extend(collectors.map(written));
        let mirrors = self.now.traffic_mirrors.iter();
        let mirrors = mirrors.filter(|o| made.contains(&o.id));
        adoption.intents.extend(mirrors.map(written));
        let (before, now) = (self.before, &self.now);
        for object in &before.layer2s {
            if now.layer2s.contains(object) {
                adoption.residue.push(written(object));
            } else {
                adoption.replaced.push(object.id.clone());
            }
        }
        for object in &before.vrfs {
            let left = now.vrfs.iter().find(|o| o.id == object.id);
            adoption.residue.extend(left.map(written));
            if left != Some(object) {
                adoption.replaced.push(object.id.clone());
            }
        }
        for object in &before.peerings {
            if now.peerings.contains(object) {
                adoption.residue.push(written(object));
            } else {
                adoption.replaced.push(object.id.clone());
            }
        }
        for object in &before.mirror_targets {
            if now.mirror_targets.contains(object) {
                adoption.residue.push(written(object));
            } else {
                adoption.replaced.push(object.id.clone());
            }
        }
        for object in &before.mirror_selectors {
            if now.mirror_selectors.contains(object) {
                adoption.residue.push(written(object));
            } else {
                adoption.replaced.push(object.id.clone());
            }
        }
        adoption
    }
}

fn edit(inputs: &mut Inputs, id: &ObjectRef, change: impl FnOnce(&mut VRFRouteConfigurationSpec)) {
    if let Some(object) = inputs.vrfs.iter_mut().find(|o| o.id == *id) {
        change(&mut object.spec);
    }
}

fn slug(vrf: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let text: String = vrf.to_lowercase().chars().map(plain).collect();
    text.trim_matches('-').to_owned()
}

fn written<S: Serialize>(object: &Object<S>) -> Value {
    let mut metadata = json!({ "name": object.id.name });
    if !object.labels.is_empty() {
        metadata["labels"] = json!(object.labels);
    }
    json!({
        "apiVersion": object.id.api_version,
        "kind": object.id.kind,
        "metadata": metadata,
        "spec": status::value(&object.spec),
    })
}
