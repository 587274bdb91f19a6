//! What there is: instances, their prefixes, and what is set aside in them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use mooring_api::{AddrRange, Cidr, ObjectRef, Span};
use serde::{Deserialize, Serialize};

/// A network instance by namespace and name. An empty namespace means `default`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InstanceKey {
    namespace: String,
    name: String,
}

impl InstanceKey {
    /// An empty namespace becomes `default`.
    pub fn new(namespace: &str, name: &str) -> Self {
        let namespace = if namespace.is_empty() {
            "default"
        } else {
            namespace
        };
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Namespace, never empty.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for InstanceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "default" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

/// What a prefix, or a claim, is for.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A subnet whose hosts get addresses with the subnet's length.
    #[default]
    Network,
    /// Single addresses: /32 and /128.
    Loopback,
    /// Blocks for somebody else to hand out.
    Pool,
    /// What an instance owns; everything else lies inside one.
    Aggregate,
}

impl Kind {
    /// As it is written in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Loopback => "loopback",
            Self::Pool => "pool",
            Self::Aggregate => "aggregate",
        }
    }
}

/// A prefix to take from.
///
/// How to fill it from an IPPrefix:
/// - `cidr` is the network, host bits removed. An IPPrefix `10.0.0.1/24` with label
///   `nephio.org/gateway: "true"` is `cidr` 10.0.0.0/24 with `gateway` 10.0.0.1.
/// - Without that label, host bits of a network mean "this address lives in that subnet": somebody has it,
///   so add it to `exclude`. A second IPPrefix for a subnet that is already listed adds to that one.
/// - No gateway given: the native dialect calls [`Prefix::fill_gateway`]; nephio leaves it empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The IPPrefix, or the NetworkInstance whose aggregate it is.
    pub origin: ObjectRef,
    /// Field of `origin` that holds the prefix.
    pub field: String,
    /// The instance it belongs to.
    pub instance: InstanceKey,
    /// The subnet.
    pub cidr: Cidr,
    /// What it is for.
    pub kind: Kind,
    /// What selectors match.
    pub labels: BTreeMap<String, String>,
    /// The gateway. The native dialect fills in the first host where none is given.
    pub gateway: Option<IpAddr>,
    /// Where addresses are taken from; empty means the whole prefix.
    pub ranges: Vec<AddrRange>,
    /// What is never handed out.
    pub exclude: Vec<AddrRange>,
    /// How long a released address rests before somebody else gets it.
    pub cool_down: Span,
    /// Nothing new is handed out; who has something keeps it.
    pub drain: bool,
    /// `spec.allocations`: kept for one claim.
    pub kept: Vec<Kept>,
}

impl Prefix {
    /// Whether all of `range` lies inside.
    pub fn covers(&self, range: &AddrRange) -> bool {
        self.cidr.contains(range.first()) && self.cidr.contains(range.last())
    }

    /// The first host becomes the gateway of a network that has none. A /31, /32, /127 or /128 has no host
    /// to spare.
    pub fn fill_gateway(&mut self) {
        let spare = self.cidr.prefix_len() + 2 <= self.cidr.family().bits();
        if self.gateway.is_none() && self.kind == Kind::Network && spare {
            self.gateway = Some(self.cidr.hosts().first());
        }
    }
}

/// Addresses that are kept for one claim of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Which addresses: one where the allocation had host bits, else the whole block.
    pub range: AddrRange,
    /// The claim's name, or `<package>-<claim>`.
    pub claim: String,
    /// Its cluster; empty means any.
    pub cluster: String,
}

/// A routing domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The NetworkInstance, or the first IPPrefix that names it.
    pub origin: ObjectRef,
    /// Key.
    pub key: InstanceKey,
    /// Prefixes may repeat elsewhere.
    pub isolated: bool,
    /// `spec.prefixes`, each with its field path.
    pub aggregates: Vec<(Cidr, String)>,
}

/// Everything that addresses are taken from.
#[derive(Clone, Debug, Default)]
pub struct Pools {
    /// By key.
    pub instances: BTreeMap<InstanceKey, Instance>,
    /// In the order they were read.
    pub prefixes: Vec<Prefix>,
}
