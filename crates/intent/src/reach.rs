//! Where an attachment leads: the Destinations that it selects, their VRFs, and what comes and goes there.
//!
//! Also the identity of every VRF: a Destination or a low-level object says VNI and route target, else the
//! OperatorConfig. Two that disagree are a conflict, and the one that ran before, or is older, keeps the VRF.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::kinds::schiff::{DestinationSpec, Route, RouteDirection, label};
use mooring_api::{Cidr, Code, Finding, ObjectRef, Selector};

use crate::compile::{Nodes, Prior};
use crate::form::{CLUSTER, Item, Leak, LocalVrf, PrefixRule, Side, VrfItem, short_hash};
use crate::input::{Object, age, error};
use crate::{Inputs, Scope};

/// Destinations that can be selected, and the identity of every VRF.
#[derive(Debug, Default)]
pub(crate) struct Fabric<'a> {
    pub(crate) destinations: Vec<&'a Object<DestinationSpec>>,
    identities: BTreeMap<String, VrfItem>,
    /// What is wrong with objects that say a VRF's identity.
    pub(crate) findings: BTreeMap<ObjectRef, Vec<Finding>>,
    /// Which of them is about somebody who said another identity before: the VRF, and who that is.
    pub(crate) disputes: BTreeMap<ObjectRef, (Finding, String, ObjectRef)>,
}

impl<'a> Fabric<'a> {
    pub(crate) fn new(inputs: &'a Inputs, prior: &Prior) -> Self {
        let mut fabric = Self::default();
        for (name, identity) in &inputs.config.vrfs {
            let item = VrfItem {
                name: name.clone(),
                vni: identity.vni,
                route_target: identity.route_target.clone(),
            };
            fabric.identities.insert(name.clone(), item);
        }
        let mut claims = Vec::new();
        for object in &inputs.destinations {
            fabric.check(inputs, object);
            if let (Some(vni), Some(rt)) = (object.spec.vni, &object.spec.route_target) {
                let item = VrfItem {
                    name: object.spec.vrf.to_string(),
                    vni,
                    route_target: rt.to_string(),
                };
                claims.push((age(object), &object.id, item));
            }
        }
        for object in &inputs.vrfs {
            if let (Some(vni), Some(rt)) = (object.spec.vni, &object.spec.route_target) {
                let item = VrfItem {
                    name: object.spec.vrf.clone(),
                    vni,
                    route_target: rt.clone(),
                };
                claims.push((age(object), &object.id, item));
            }
        }
        let ran = ran_before(prior);
        claims.sort_by_key(|(age, _, item)| (ran.get(&item.name) != Some(item), *age));
        let mut said: BTreeMap<String, &ObjectRef> = BTreeMap::new();
        for (_, id, item) in claims {
            if let Some(first) = said.get(&item.name)
                && fabric.identities.get(&item.name) != Some(&item)
            {
                let theirs = &fabric.identities[&item.name];
                let message = format!(
                    "VRF {} has VNI {} and route target {} by {first}, and would have {} and {}",
                    item.name, theirs.vni, theirs.route_target, item.vni, item.route_target
                );
                let found = error(Code::Conflict, id, "spec.vni", message)
                    .help("let both say the same, or name another VRF");
                let dispute = (
                    found.clone(),
                    format!("VRF {}", item.name),
                    (*first).clone(),
                );
                fabric.disputes.insert(id.clone(), dispute);
                fabric.findings.entry(id.clone()).or_default().push(found);
                continue;
            }
            said.insert(item.name.clone(), id);
            fabric.identities.insert(item.name.clone(), item);
        }
        let sound = inputs.destinations.iter();
        fabric.destinations = sound
            .filter(|d| !fabric.findings.contains_key(&d.id))
            .collect();
        fabric
    }

    fn check(&mut self, inputs: &Inputs, object: &Object<DestinationSpec>) {
        let vrf = object.spec.vrf.as_str();
        let mut found = Vec::new();
        if let Some(said) = object.labels.get(label::VRF).filter(|said| *said != vrf) {
            let field = format!("metadata.labels[{}]", label::VRF);
            let message = format!("the label says VRF {said}, and spec.vrf is {vrf}");
            found.push(
                error(Code::LabelMismatch, &object.id, &field, message)
                    .help("let the label say the truth, or remove it"),
            );
        }
        if vrf == CLUSTER || inputs.config.reserved_vrfs.iter().any(|r| r == vrf) {
            let message = format!("VRF {vrf} belongs to the platform");
            found.push(
                error(Code::Conflict, &object.id, "spec.vrf", message).help("name another VRF"),
            );
        }
        if let Some(vni) = object.spec.vni
            && inputs.config.reserved_vnis.contains(&vni)
        {
            let message = format!("VNI {vni} belongs to the platform");
            found.push(
                error(Code::Conflict, &object.id, "spec.vni", message).help("use another VNI"),
            );
        }
        if !found.is_empty() {
            self.findings.insert(object.id.clone(), found);
        }
    }

    /// VNI and route target of a VRF.
    pub(crate) fn identity(&self, vrf: &str) -> Option<&VrfItem> {
        self.identities.get(vrf)
    }
}

fn ran_before(prior: &Prior) -> BTreeMap<String, VrfItem> {
    let placed = prior.iter().flat_map(|c| &c.items);
    let vrfs = placed.filter_map(|p| match &p.item {
        Item::Vrf(vrf) => Some((vrf.name.clone(), vrf.clone())),
        _ => None,
    });
    vrfs.collect()
}

/// Where something leads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach<'a> {
    pub(crate) destinations: Vec<&'a Object<DestinationSpec>>,
    pub(crate) vrfs: BTreeMap<String, Via>,
    /// A Destination asks for routing by source.
    pub(crate) forced: bool,
}

/// One VRF of a reach.
#[derive(Clone, Debug)]
pub(crate) struct Via {
    pub(crate) vrf: VrfItem,
    pub(crate) imports: BTreeSet<PrefixRule>,
    pub(crate) exports: BTreeSet<PrefixRule>,
    pub(crate) communities: BTreeSet<String>,
}

impl Via {
    /// A route between the VRF and an inner one.
    pub(crate) fn leak(&self, side: Side, inner: &str, rule: PrefixRule) -> Item {
        Item::Leak(Leak {
            vrf: self.vrf.name.clone(),
            side,
            inner: inner.to_owned(),
            rule,
            communities: match side {
                Side::Export => self.communities.clone(),
                Side::Import => BTreeSet::new(),
            },
            order: None,
        })
    }
}

/// What selects.
pub(crate) struct Asking<'s> {
    pub(crate) id: &'s ObjectRef,
    pub(crate) field: String,
    pub(crate) selector: &'s Selector,
    pub(crate) narrowing: Option<&'s Selector>,
}

impl<'a> Fabric<'a> {
    /// Where a selector leads, or what is wrong with it.
    pub(crate) fn reach(&self, asking: &Asking<'_>) -> Result<Reach<'a>, Vec<Finding>> {
        let matches = |d: &&&Object<DestinationSpec>| {
            let narrow = asking.narrowing.is_none_or(|n| n.matches(&d.labels));
            asking.selector.matches(&d.labels) && narrow
        };
        let destinations: Vec<_> = self.destinations.iter().filter(matches).copied().collect();
        if destinations.is_empty() {
            let message = "no Destination has these labels".to_owned();
            let found = error(
                Code::NoDestinationMatched,
                asking.id,
                &asking.field,
                message,
            );
            return Err(vec![found.help(format!(
                "label a Destination so, or correct the selector; there are {}",
                self.destinations.len()
            ))]);
        }
        let mut reach = Reach {
            destinations: destinations.clone(),
            ..Reach::default()
        };
        let mut findings = Vec::new();
        for destination in destinations {
            let spec = &destination.spec;
            let name = spec.vrf.as_str();
            let Some(identity) = self.identity(name) else {
                let message = format!(
                    "VRF {name} of {} has no VNI and route target",
                    destination.id
                );
                let found = error(Code::VNIUnresolved, asking.id, &asking.field, message);
                findings.push(found.help(
                    "write vni and routeTarget on the Destination, or add the VRF to the OperatorConfig",
                ));
                continue;
            };
            reach.forced |= spec.sbr.is_some_and(|sbr| sbr.enabled);
            let via = reach.vrfs.entry(name.to_owned()).or_insert_with(|| Via {
                vrf: identity.clone(),
                imports: BTreeSet::new(),
                exports: BTreeSet::new(),
                communities: BTreeSet::new(),
            });
            via.imports.extend(spec.prefixes.iter().map(|prefix| {
                if spec.more_specifics && !prefix.is_default() {
                    PrefixRule::inside(*prefix)
                } else {
                    PrefixRule::exact(*prefix)
                }
            }));
            via.communities
                .extend(spec.community.iter().map(ToString::to_string));
        }
        if findings.is_empty() {
            Ok(reach)
        } else {
            Err(findings)
        }
    }
}

impl Reach<'_> {
    /// Adds an attachment's own routes.
    pub(crate) fn add(&mut self, routes: &[Route]) {
        for route in routes {
            for via in self.vrfs.values_mut() {
                let rules = route.prefixes.iter().map(|p| PrefixRule::exact(*p));
                match route.direction {
                    Some(RouteDirection::Export) => via.exports.extend(rules),
                    _ => via.imports.extend(rules),
                }
            }
        }
    }

    /// Communities of an attachment instead of those of its Destinations.
    pub(crate) fn speak(&mut self, communities: &[mooring_api::kinds::schiff::Community]) {
        if !communities.is_empty() {
            let own: BTreeSet<String> = communities.iter().map(ToString::to_string).collect();
            for via in self.vrfs.values_mut() {
                via.communities.clone_from(&own);
            }
        }
    }

    /// Everything that can be reached.
    pub(crate) fn prefixes(&self) -> BTreeSet<Cidr> {
        let rules = self.vrfs.values().flat_map(|via| &via.imports);
        rules.map(|rule| rule.prefix).collect()
    }

    /// Names for a status.
    pub(crate) fn names(&self) -> (Vec<String>, Vec<String>) {
        let mut destinations: Vec<_> = self
            .destinations
            .iter()
            .map(|d| d.id.name.clone())
            .collect();
        destinations.sort();
        (destinations, self.vrfs.keys().cloned().collect())
    }

    /// The local VRF that joins its VRFs by prefix, or the prefix that two of them have.
    pub(crate) fn joined(&self, imports: &[&str]) -> Result<LocalVrf, (Cidr, String, String)> {
        let mut routes: BTreeMap<Cidr, String> = BTreeMap::new();
        for (name, via) in &self.vrfs {
            for rule in &via.imports {
                if let Some(other) = routes.insert(rule.prefix, name.clone())
                    && other != *name
                {
                    return Err((rule.prefix, other, name.clone()));
                }
            }
        }
        let imports = imports.iter().map(|i| (*i).to_owned()).collect();
        Ok(local(imports, routes))
    }
}

/// A local VRF with the name that its content gives it.
pub(crate) fn local(imports: BTreeSet<String>, routes: BTreeMap<Cidr, String>) -> LocalVrf {
    let name = format!("s-{}", short_hash(&format!("{imports:?}{routes:?}"), 13));
    LocalVrf {
        name,
        imports,
        routes,
    }
}

/// The local VRF of one VRF of the fabric: everything of it, and everything of the cluster.
pub(crate) fn local_of(vrf: &str) -> LocalVrf {
    LocalVrf {
        name: format!("s-{vrf}"),
        imports: BTreeSet::from([vrf.to_owned(), CLUSTER.to_owned()]),
        routes: BTreeMap::new(),
    }
}

/// A consumer of Destinations, for the question who needs routing by source.
pub(crate) struct Consumer {
    pub(crate) id: ObjectRef,
    pub(crate) scope: Scope,
    pub(crate) vrfs: BTreeSet<String>,
    pub(crate) prefixes: BTreeSet<Cidr>,
}

/// Consumers whose prefixes are reached through other VRFs by somebody else on a node of theirs.
pub(crate) fn ambiguous(nodes: &Nodes<'_>, consumers: &[Consumer]) -> BTreeSet<ObjectRef> {
    type Way<'a> = (&'a BTreeSet<String>, &'a BTreeSet<Cidr>, &'a Scope);
    // Many consumers lead to the same prefixes from the same nodes: these are asked once.
    let mut alike: BTreeMap<Way<'_>, Vec<&ObjectRef>> = BTreeMap::new();
    for consumer in consumers {
        let key = (&consumer.vrfs, &consumer.prefixes, &consumer.scope);
        alike.entry(key).or_default().push(&consumer.id);
    }
    let overlap =
        |a: &BTreeSet<Cidr>, b: &BTreeSet<Cidr>| a.iter().any(|p| b.iter().any(|q| p.overlaps(q)));
    let mut found = BTreeSet::new();
    for ((vrfs, prefixes, scope), ids) in &alike {
        let clash = alike.keys().any(|(others, theirs, there)| {
            others != vrfs && overlap(prefixes, theirs) && nodes.meet(scope, there)
        });
        if clash {
            found.extend(ids.iter().copied().cloned());
        }
    }
    found
}
