//! What Nephio's resource backend knows: its tables and claims become things with owners, for the address book.
//!
//! ```text
//!  ConfigMap ipam-<instance>, vlan-<index> ─┐
//!  IPClaim, VLANClaim, IPPrefix objects     ├─► Listed ─┐
//!                                           ┘           ├─► whose ─► Owned: a package's identity, or a name
//!  claims of packages, as a render sees them ─► Claimed ┘
//! ```
//!
//! `package` reads the files and calls this for `moor import nephio`. Easy to get wrong: the backend writes a subnet as
//! several entries (the subnet, its first and last address, a host address); only the last is an address that somebody has.

mod claims;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mooring_api::{Cidr, Code, Family, Finding, ObjectRef};
use mooring_ipam::{Holder, InstanceKey, Thing};

pub use claims::{of_object, of_share, of_wish};
pub use table::{Index, Table, of_table};

/// Something that the backend, or an object, says somebody has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Where.
    pub instance: InstanceKey,
    /// What.
    pub thing: Thing,
    /// The subnet that an address lies in.
    pub subnet: Option<Cidr>,
    /// That subnet's gateway.
    pub gateway: Option<IpAddr>,
    /// The object that has it.
    pub owner: Owner,
    /// The identity that a render uses, where the entry itself tells it: a cluster's subnet.
    pub holder: Option<Holder>,
    /// It is the gateway of its subnet.
    pub is_gateway: bool,
    /// Which of the caller's objects says so.
    pub place: usize,
    /// The field of that object.
    pub field: &'static str,
}

/// An object as the backend's labels name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Kind; empty where the labels do not tell.
    pub kind: String,
    /// Namespace; an empty one is `default`.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Owner {
    /// An empty namespace becomes `default`, as in the backend.
    pub fn new(kind: &str, namespace: &str, name: &str) -> Self {
        let namespace = if namespace.is_empty() {
            "default"
        } else {
            namespace
        };
        Self {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    fn of(reference: &ObjectRef) -> Self {
        Self::new(&reference.kind, &reference.namespace, &reference.name)
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            kind,
            namespace,
            name,
        } = self;
        match (kind.as_str(), name.as_str()) {
            (_, "") => f.write_str("nobody that Nephio names"),
            ("", _) => write!(f, "{namespace}/{name}"),
            _ => write!(f, "{kind} {namespace}/{name}"),
        }
    }
}

/// A claim of a package, under the identity that a render uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Where.
    pub instance: InstanceKey,
    /// The claim object.
    pub owner: Owner,
    /// Its identity.
    pub holder: Holder,
    /// What its status says.
    pub said: Option<Thing>,
    /// The subnet that the address lies in.
    pub subnet: Option<Cidr>,
    /// That subnet's gateway.
    pub gateway: Option<IpAddr>,
    /// Which of the caller's objects it is.
    pub place: usize,
}

/// A prefix that others lie in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Known {
    /// Where.
    pub instance: InstanceKey,
    /// The prefix.
    pub cidr: Cidr,
}

/// A thing with its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// Where.
    pub instance: InstanceKey,
    /// What.
    pub thing: Thing,
    /// The subnet that it lies in.
    pub subnet: Option<Cidr>,
    /// That subnet's gateway.
    pub gateway: Option<IpAddr>,
    /// Whose it is.
    pub whose: Whose,
    /// Which of the caller's objects says so.
    pub place: usize,
    /// The field of that object.
    pub field: &'static str,
}

/// Whose something is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Of an identity that a render uses.
    Holder(Holder),
    /// Of an object that no package has.
    Object {
        /// Which.
        owner: Owner,
        /// It is the gateway of its subnet.
        is_gateway: bool,
    },
}

/// Gives everything that is listed its owner, and says where a package and the backend disagree.
pub fn whose(
    claimed: &[Claimed],
    listed: &[Listed],
    known: &BTreeSet<Known>,
) -> (Vec<Owned>, Vec<(usize, Finding)>) {
    let mut findings = Vec::new();
    let mut by_owner: BTreeMap<(&InstanceKey, &Owner), Vec<&Claimed>> = BTreeMap::new();
    let mut by_thing: BTreeMap<(&InstanceKey, Thing), Vec<&Claimed>> = BTreeMap::new();
    let mut owned = Vec::new();
    for claim in claimed {
        let key = (&claim.instance, &claim.owner);
        by_owner.entry(key).or_default().push(claim);
        let Some(thing) = claim.said else { continue };
        let key = (&claim.instance, thing);
        by_thing.entry(key).or_default().push(claim);
        owned.push(Owned {
            instance: claim.instance.clone(),
            thing,
            subnet: around(known, &claim.instance, &thing, claim.subnet),
            gateway: claim.gateway,
            whose: Whose::Holder(claim.holder.clone()),
            place: claim.place,
            field: "status",
        });
    }
    for entry in listed {
        let Listed {
            instance,
            thing,
            owner,
            is_gateway,
            place,
            field,
            ..
        } = entry;
        // A cluster's subnet is known by what it is, since no claim of a package asks for it.
        let is_share = |c: &&&Claimed| {
            let cluster = entry.holder.as_ref().map(|h| &h.cluster);
            cluster == Some(&c.holder.cluster)
        };
        let named = by_owner.get(&(instance, owner)).into_iter().flatten();
        let shares = by_thing.get(&(instance, *thing)).into_iter().flatten();
        let claims: Vec<&Claimed> = named.chain(shares.filter(is_share)).copied().collect();
        let agrees = |c: &&&Claimed| c.said.is_none_or(|said| said == *thing);
        let claim = claims.iter().find(agrees);
        if let (None, Some(first)) = (claim, claims.first()) {
            let said = first.said.map(|t| t.to_string()).unwrap_or_default();
            let message =
                format!("{owner} in {instance}: its package says {said}, the backend has {thing}");
            let help = "Only one of them is what the pod has: correct the status or the table, and import again.";
            let finding = Finding::error(Code::AddressDiffers, message);
            findings.push((*place, finding.at(*field).help(help)));
            continue;
        }
        let told = claim.map(|c| c.holder.clone());
        let told = told.or_else(|| entry.holder.clone());
        let whose = match told.or_else(|| of_network(thing, owner, instance)) {
            Some(holder) => Whose::Holder(holder),
            None => Whose::Object {
                owner: owner.clone(),
                is_gateway: *is_gateway,
            },
        };
        owned.push(Owned {
            instance: instance.clone(),
            thing: *thing,
            subnet: around(known, instance, thing, entry.subnet),
            gateway: entry.gateway,
            whose,
            place: *place,
            field,
        });
    }
    (owned, findings)
}

/// A VLAN is claimed under `<network>-<cluster>-bd`, for all network functions there.
fn of_network(thing: &Thing, owner: &Owner, index: &InstanceKey) -> Option<Holder> {
    if !matches!(thing, Thing::Vlan(_)) {
        return None;
    }
    let suffix = format!("-{}-bd", index.name());
    let network = owner.name.strip_suffix(&suffix)?;
    let network = InstanceKey::new("", network);
    Some(crate::claim::vlan_holder(&network, index.name()))
}

/// The smallest prefix around something, as it is known or `said`, and not the thing itself.
fn around(
    known: &BTreeSet<Known>,
    instance: &InstanceKey,
    thing: &Thing,
    said: Option<Cidr>,
) -> Option<Cidr> {
    let range = thing.range()?;
    let lies_in = |cidr: &Cidr| {
        let inside = cidr.contains(range.first()) && cidr.contains(range.last());
        inside && *thing != Thing::Block(*cidr)
    };
    // One look per length: a table may hold thousands of subnets.
    let mut widening = prefixes_of(range.first());
    let found = widening.find(|cidr| {
        let instance = instance.clone();
        lies_in(cidr)
            && known.contains(&Known {
                instance,
                cidr: *cidr,
            })
    });
    let both = found.into_iter().chain(said.filter(lies_in));
    both.max_by_key(Cidr::prefix_len)
}

/// Every prefix around an address, the longest first.
fn prefixes_of(addr: IpAddr) -> impl Iterator<Item = Cidr> {
    let bits = Family::of(addr).bits();
    (0..=bits).rev().map(move |len| Cidr::containing(addr, len))
}

#[cfg(test)]
mod tests;
