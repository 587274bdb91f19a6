//! The nephio dialect: what the published functions do to a package, as pure steps over a [`Bundle`].
//!
//! ```text
//!  nfdeploy-fn ─► interface-fn, dnn-fn ─► wants ┄► (the book) ┄► answer ─► nad-fn ─► interface-fn … nfdeploy-fn
//!  conditions     claims                  ipam-fn, vlan-fn                 NADs      statuses      the NF's spec
//! ```
//!
//! One engine runs every function from a table row; `package` calls [`run`] for each, and meets the book between
//! [`wants`] and [`answer`]. Easy to get wrong: a step that cannot go on leaves a condition that is False, and
//! everything else goes on; only a package without Kptfile fails as a whole.

mod claims;
mod data_network;
mod dependency;
mod deployment;
mod engine;
mod interface;
mod kinds;
mod nad;
mod pools;
mod quantity;
mod reference;
mod seen;

use mooring_api::Finding;
use serde_json::Value;

use crate::bundle::{Bundle, Object};

pub(crate) use claims::family;
pub use claims::{Lookup, answer, forget, found, leaving, lookups, refuse, wants};
pub use dependency::{Provider, depends, link, needed};
pub use pools::pools;

/// What all annotations of the functions begin with.
const PREFIX: &str = "specializer.nephio.org/";
/// The direct owner.
const OWNER: &str = "specializer.nephio.org/owner";
/// The network function that all of it is for.
const FOR: &str = "specializer.nephio.org/for";
/// The namespace of that network function.
const NAMESPACE: &str = "specializer.nephio.org/namespace";
/// Please release.
const DELETE: &str = "specializer.nephio.org/delete";
/// The name that a VLAN is claimed under.
const VLAN_CLAIM_NAME: &str = "specializer.nephio.org/vlanClaimName";
/// `get` looks an address up instead of claiming one.
pub(crate) const ACTION: &str = "nephio.org/action";
/// The condition and gate of the whole package.
pub const SPECIALIZE: &str = "nephio.org.Specializer.specialize";

/// A function of the dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Function {
    /// Network functions wait for what they need, and get it in their spec.
    Deployment,
    /// Interfaces get claims, and statuses.
    Interface,
    /// Data networks get claims, and statuses.
    DataNetwork,
    /// IP claims get addresses.
    Ipam,
    /// VLAN claims get VLANs.
    Vlan,
    /// Interfaces get NADs.
    Nad,
}

impl Function {
    /// All of them, with the names they go by.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("nfdeploy-fn", Self::Deployment),
        ("interface-fn", Self::Interface),
        ("dnn-fn", Self::DataNetwork),
        ("ipam-fn", Self::Ipam),
        ("vlan-fn", Self::Vlan),
        ("nad-fn", Self::Nad),
    ];

    /// By the base name of an image or program.
    pub fn named(base: &str) -> Option<Self> {
        let mut names = Self::NAMES.iter();
        names.find(|(name, _)| *name == base).map(|(_, f)| *f)
    }

    /// Whether it meets the book.
    pub fn asks(self) -> bool {
        matches!(self, Self::Ipam | Self::Vlan)
    }
}

/// Whether a package is written for the published functions.
pub fn is_marked(bundle: &Bundle) -> bool {
    bundle.marks.gates.has(SPECIALIZE) || bundle.objects.iter().any(has_mark)
}

/// Whether an object carries a mark of the published functions.
pub fn has_mark(object: &Object) -> bool {
    let annotations = object.value.pointer("/metadata/annotations");
    let annotations = annotations.and_then(Value::as_object);
    annotations.is_some_and(|a| a.keys().any(|k| k.starts_with(PREFIX)))
}

/// Runs a function over a package. What is said is a warning: the conditions say it too, and a run of the published
/// functions does not fail by it. The functions that ask do here what needs no book.
pub fn run(function: Function, bundle: &mut Bundle) -> Vec<Finding> {
    match function {
        Function::Deployment => engine::run(&deployment::RULE, bundle),
        Function::Interface => engine::run(&interface::RULE, bundle),
        Function::DataNetwork => engine::run(&data_network::RULE, bundle),
        Function::Nad => engine::run(&nad::RULE, bundle),
        Function::Ipam | Function::Vlan => claims::miss(function, bundle),
    }
}

/// The name of the network function: as `for`, else `owner`, says. Text that is no reference gives what follows
/// its last dot.
fn function_name(object: &Object) -> &str {
    let text = object.annotation(FOR).or_else(|| object.annotation(OWNER));
    let text = text.unwrap_or_default();
    match reference::Ref::parse(text) {
        Some(reference) => &text[text.len() - reference.name.len()..],
        None => text.rsplit('.').next().unwrap_or_default(),
    }
}
