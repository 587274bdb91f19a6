//! What is judged, and where it came from.

use std::fmt;

use mooring_api::{AddrRange, Cidr, ObjectRef};
use serde_json::Value;

/// Where an object stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The cluster it is, or will be, on.
    pub cluster: String,
    /// The package it came in; empty for an object read from a cluster.
    pub package: String,
    /// The file, or empty.
    pub file: String,
    /// Which object.
    pub object: ObjectRef,
}

/// One object.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// Where it stands.
    pub origin: Origin,
    /// The isolated routing domain that its addresses belong to. `None`: that of the NetworkInstance it
    /// was made for, if that one is among the objects and isolated; else the one that all others share.
    /// A pod takes the scope of the NADs that it names.
    pub scope: Option<String>,
    /// The object.
    pub value: &'a Value,
}

/// A CNI configuration file of a node, from `/etc/cni/net.d`.
#[derive(Clone, Debug)]
pub struct CniFile<'a> {
    /// The node's cluster.
    pub cluster: String,
    /// The node, or empty where all nodes have the same files.
    pub node: String,
    /// The file's name without directories: the runtime takes the first one by name.
    pub name: String,
    /// What stands in it.
    pub text: &'a str,
}

/// An address that something other than a pod has: a host, a virtual machine, an appliance.
#[derive(Clone, Debug)]
pub struct Reservation {
    /// As for [`Input::scope`]; a book's isolated instances are written `namespace/name`.
    pub scope: Option<String>,
    /// The addresses; most are one.
    pub range: AddrRange,
    /// The subnet they lie in, where the book knows it.
    pub subnet: Option<Cidr>,
    /// Who has it, for the message.
    pub holder: String,
}

/// Everything that is judged together.
#[derive(Clone, Debug, Default)]
pub struct Fleet<'a> {
    /// The objects of every cluster, and those that only describe (clusters, instances, claims).
    pub objects: Vec<Input<'a>>,
    /// CNI configuration files of nodes, where they are at hand.
    pub files: Vec<CniFile<'a>>,
    /// Addresses that the book keeps for others than pods.
    pub reservations: Vec<Reservation>,
}

/// `NetworkAttachmentDefinition/n2 in oai-ran (cluster edge01, package gnb, gnb/nad_n2.yaml)`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)?;
        let named = |what: &str, value: &str| {
            let lead = if what.is_empty() { "" } else { " " };
            (!value.is_empty()).then(|| format!("{what}{lead}{value}"))
        };
        let parts: Vec<String> = [
            named("cluster", &self.cluster),
            named("package", &self.package),
            named("", &self.file),
        ]
        .into_iter()
        .flatten()
        .collect();
        if parts.is_empty() {
            return Ok(());
        }
        write!(f, " ({})", parts.join(", "))
    }
}
