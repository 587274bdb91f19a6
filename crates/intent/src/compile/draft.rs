//! One object on its way through the compiler, and what all kinds of attachments ask alike.

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use mooring_api::kinds::schiff::NetworkSpec;
use mooring_api::{Cidr, Code, Finding, ObjectRef, Selector};
use serde_json::Value;

use super::{Context, Contribution, Placed};
use crate::Scope;
use crate::form::{CLUSTER, Item, Side};
use crate::input::{Object, error, warning};
use crate::reach::{Asking, Reach, Via};

/// An object on its way: what it puts there, and what is wrong with it.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) created: Option<String>,
    pub(crate) contribution: Own,
    pub(crate) findings: Vec<Finding>,
}

/// A contribution that is written while nobody else has it, and shared afterwards.
#[derive(Clone, Debug)]
pub(crate) struct Own(Arc<Contribution>);

impl Deref for Own {
    type Target = Contribution;

    fn deref(&self) -> &Contribution {
        &self.0
    }
}

impl DerefMut for Own {
    fn deref_mut(&mut self) -> &mut Contribution {
        Arc::make_mut(&mut self.0)
    }
}

impl From<Arc<Contribution>> for Own {
    fn from(shared: Arc<Contribution>) -> Self {
        Self(shared)
    }
}

impl From<Own> for Arc<Contribution> {
    fn from(own: Own) -> Self {
        own.0
    }
}

impl Draft {
    pub(crate) fn new<S>(object: &Object<S>) -> Self {
        Self::of(object.id.clone(), object.created.clone())
    }

    pub(crate) fn of(object: ObjectRef, created: Option<String>) -> Self {
        let contribution = Contribution {
            object,
            items: Vec::new(),
            subnets: Vec::new(),
            platform: Vec::new(),
            nads: Vec::new(),
            status: Value::Null,
        };
        Self {
            created,
            contribution: Own(Arc::new(contribution)),
            findings: Vec::new(),
        }
    }

    pub(crate) fn id(&self) -> &ObjectRef {
        &self.contribution.object
    }

    pub(crate) fn is_bad(&self) -> bool {
        self.findings.iter().any(Finding::is_error)
    }

    pub(crate) fn put(&mut self, scope: &Scope, item: Item, field: &str, rule: &str) {
        self.contribution.items.push(Placed {
            scope: scope.clone(),
            item,
            field: field.to_owned(),
            rule: rule.to_owned(),
        });
    }

    pub(crate) fn error(&mut self, code: Code, field: &str, message: String, help: &str) {
        let found = error(code, &self.contribution.object, field, message).help(help);
        self.findings.push(found);
    }

    pub(crate) fn warn(&mut self, code: Code, field: &str, message: String, help: &str) {
        let found = warning(code, &self.contribution.object, field, message).help(help);
        self.findings.push(found);
    }

    /// The nodes of an attachment, with a word where that is all or none.
    pub(crate) fn scope(
        &mut self,
        context: &Context<'_>,
        groups: &[String],
        selector: Option<&Selector>,
    ) -> Scope {
        let scope = context.nodes_of(groups, selector);
        if scope.is_all() {
            self.warn(
                Code::AllNodesSelected,
                "spec.workerGroups",
                "neither workerGroups nor nodeSelector: all nodes get it".to_owned(),
                "write workerGroups, if not all nodes are meant",
            );
        } else if !context.inputs.nodes.is_empty() && context.names_in(&scope).next().is_none() {
            let message = format!("no node has {scope}");
            self.warn(
                Code::NoNodesSelected,
                "spec.workerGroups",
                message,
                "label a node so, or correct the group",
            );
        }
        scope
    }

    /// Where it leads; nothing, and a finding, where that is wrong.
    pub(crate) fn reach<'a>(
        &mut self,
        context: &Context<'a>,
        field: &str,
        selector: &Selector,
        narrowing: Option<&Selector>,
    ) -> Reach<'a> {
        let asking = Asking {
            id: &self.contribution.object.clone(),
            field: field.to_owned(),
            selector,
            narrowing,
        };
        match context.fabric.reach(&asking) {
            Ok(reach) => reach,
            Err(findings) => {
                self.findings.extend(findings);
                Reach::default()
            }
        }
    }

    /// A VRF of a matched Destination, and what it gives to the cluster.
    pub(crate) fn lead(&mut self, scope: &Scope, via: &Via, imported: bool) {
        let field = "spec.destinations";
        let vrf = Item::Vrf(via.vrf.clone());
        self.put(scope, vrf, field, "the VRF of a matched Destination");
        let imports = via.imports.iter().filter(|_| imported);
        for rule in imports {
            let item = via.leak(Side::Import, CLUSTER, rule.clone());
            let why = "prefixes of matched Destinations are imported";
            self.put(scope, item, field, why);
        }
    }

    /// What every network of an attachment is asked.
    pub(crate) fn network(&mut self, context: &Context<'_>, network: &NetworkSpec) {
        for field in network.reserved() {
            let message = format!("{field} is reserved and not processed");
            self.warn(
                Code::NotProcessed,
                field,
                message,
                "write the subnets themselves",
            );
        }
        for subnet in network.subnets() {
            self.outside_the_cluster(context, subnet, "spec.network");
        }
    }

    /// The cluster routes its own addresses itself; a second way to them would take pods or Services away.
    pub(crate) fn outside_the_cluster(&mut self, context: &Context<'_>, subnet: Cidr, field: &str) {
        let config = &context.inputs.config;
        let pods = config.pod_cidrs.iter().map(|c| (c, "pods"));
        let services = config.service_cidrs.iter().map(|c| (c, "Services"));
        let mut own = pods.chain(services);
        if let Some((taken, whose)) = own.find(|(cidr, _)| cidr.overlaps(&subnet)) {
            let message = format!("{subnet} overlaps {taken}, which the cluster's {whose} have");
            self.error(Code::Conflict, field, message, "use another subnet");
        }
    }

    /// A route into the attachment's own subnet would swallow it; one that covers it is fine.
    pub(crate) fn apart(&mut self, subnets: &[Cidr], prefixes: &BTreeSet<Cidr>, field: &str) {
        for subnet in subnets {
            if let Some(inside) = prefixes.iter().find(|p| subnet.covers(p)) {
                let message = format!("route {inside} lies inside the subnet {subnet}");
                self.error(
                    Code::OverlappingPrefixes,
                    field,
                    message,
                    "a route that covers the subnet is fine; one inside it is not",
                );
            }
        }
    }
}
