//! What everybody who contributes may look at: objects, answers, what ran before, and what follows from all of them.
//!
//! Made once per compilation. Easy to get wrong: it holds specs and never drafts, so nobody's contribution depends on
//! whether somebody else's was good.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;

use mooring_api::kinds::schiff::Route;
use mooring_api::{Cidr, ObjectRef, Selector};

use super::{Prior, low_level};
use crate::answers::Answers;
use crate::reach::{self, Asking, Consumer, Fabric};
use crate::{Inputs, Node, Scope};

/// What everybody who contributes may look at.
pub(crate) struct Context<'a> {
    pub(crate) inputs: &'a Inputs,
    pub(crate) nodes: Nodes<'a>,
    pub(crate) answers: &'a Answers,
    pub(crate) prior: &'a Prior,
    pub(crate) fabric: Fabric<'a>,
    /// Consumers that need routing by source because of somebody else's prefixes.
    pub(crate) ambiguous: BTreeSet<ObjectRef>,
    /// VRFs whose low-level lines have an order that matters.
    pub(crate) ordered: BTreeSet<String>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(inputs: &'a Inputs, answers: &'a Answers, prior: &'a Prior) -> Self {
        let mut context = Self {
            inputs,
            nodes: Nodes::new(&inputs.nodes),
            answers,
            prior,
            fabric: Fabric::new(inputs, prior),
            ambiguous: BTreeSet::new(),
            ordered: low_level::ordered(inputs),
        };
        let mut consumers: Vec<Consumer> = Vec::new();
        for o in &inputs.layer2_attachments {
            if let Some(selector) = &o.spec.destinations {
                let scope = context.nodes_of(&o.spec.worker_groups, o.spec.node_selector.as_ref());
                consumers.extend(context.consumer(&o.id, selector, &o.spec.routes, scope));
            }
        }
        for o in &inputs.vrf_attachments {
            let scope = context.nodes_of(&o.spec.worker_groups, o.spec.node_selector.as_ref());
            consumers.extend(context.consumer(&o.id, &o.spec.destinations, &[], scope));
        }
        for o in &inputs.pod_networks {
            let scope = context.nodes_of(&o.spec.worker_groups, o.spec.node_selector.as_ref());
            let routes = &o.spec.routes;
            consumers.extend(context.consumer(&o.id, &o.spec.destinations, routes, scope));
        }
        context.ambiguous = reach::ambiguous(&context.nodes, &consumers);
        context
    }

    fn consumer(
        &self,
        id: &ObjectRef,
        selector: &Selector,
        routes: &[Route],
        scope: Scope,
    ) -> Option<Consumer> {
        let asking = Asking {
            id,
            field: String::new(),
            selector,
            narrowing: None,
        };
        let mut reach = self.fabric.reach(&asking).ok()?;
        reach.add(routes);
        Some(Consumer {
            id: id.clone(),
            scope,
            vrfs: reach.vrfs.keys().cloned().collect(),
            prefixes: reach.prefixes(),
        })
    }

    /// The nodes of worker groups that a selector also selects.
    pub(crate) fn nodes_of(&self, groups: &[String], selector: Option<&Selector>) -> Scope {
        let label = &self.inputs.config.worker_group_label;
        Scope::of_groups(label, groups).and(&Scope::of(selector))
    }

    /// Names of the nodes in a scope.
    pub(crate) fn names_in(&self, scope: &Scope) -> impl Iterator<Item = &'a str> {
        let (all, here) = (self.nodes.all, self.nodes.within(scope));
        (0..here.len()).map(move |at| all[here[at]].name.as_str())
    }
}

/// Nodes by scope and by address. Scopes are few and asked for by many, so each is looked for once.
pub(crate) struct Nodes<'a> {
    all: &'a [Node],
    known: RefCell<BTreeMap<Scope, Rc<[usize]>>>,
    owners: BTreeMap<IpAddr, usize>,
}

impl<'a> Nodes<'a> {
    fn new(all: &'a [Node]) -> Self {
        let mut owners = BTreeMap::new();
        for (at, node) in all.iter().enumerate() {
            for addr in &node.addresses {
                owners.entry(*addr).or_insert(at);
            }
        }
        Self {
            all,
            known: RefCell::default(),
            owners,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The places of the nodes in a scope, in order.
    pub(crate) fn within(&self, scope: &Scope) -> Rc<[usize]> {
        if let Some(known) = self.known.borrow().get(scope) {
            return Rc::clone(known);
        }
        let all = self.all.iter().enumerate();
        let here = all.filter(|(_, node)| scope.matches(&node.labels));
        let here: Rc<[usize]> = here.map(|(at, _)| at).collect();
        let mut known = self.known.borrow_mut();
        known.insert(scope.clone(), Rc::clone(&here));
        here
    }

    /// Whether a node is in both.
    pub(crate) fn meet(&self, one: &Scope, other: &Scope) -> bool {
        let (one, other) = (self.within(one), self.within(other));
        one.iter().any(|at| other.binary_search(at).is_ok())
    }

    /// The first node that has one of these addresses.
    pub(crate) fn owner(&self, addresses: &[IpAddr]) -> Option<(IpAddr, &'a str)> {
        let owned = addresses.iter();
        let owned = owned.filter_map(|addr| Some((*self.owners.get(addr)?, *addr)));
        let (at, addr) = owned.min()?;
        Some((addr, self.all[at].name.as_str()))
    }

    /// The addresses of nodes that lie in a subnet.
    pub(crate) fn addresses_in(&self, subnet: Cidr) -> impl Iterator<Item = IpAddr> {
        let range = self.owners.range(subnet.network()..=subnet.last());
        range.map(|(addr, _)| *addr)
    }
}
