//! A pod by its name, with what it will have inside: interfaces, addresses, routes.
//!
//! Easy to get wrong: an address in the annotation may have no length; the kernel then knows no subnet, only
//! itself. And a pod that takes its address from a range has one only once it runs: the story is told
//! with the first of the range, which lies in the same subnet as all others.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::IpAddr;

use mooring_api::{HostCidr, annotation};
use mooring_attach::nad::Use;
use mooring_attach::networks::Entry;

use super::{Place, Unclear};
use crate::carried::host;
use crate::route::{Route, routes};
use crate::vlan::wire;
use crate::world::{Nad, Pod, World, annotation_of, word};

/// One end of the way.
pub(super) struct End {
    /// Which pod of the world.
    pub(super) pod: usize,
    cluster: String,
    namespace: String,
    workload: String,
    pub(super) interfaces: Vec<Interface>,
}

/// An interface inside a pod.
pub(super) struct Interface {
    pub(super) name: String,
    /// What it is made of: `macvlan on eth1`.
    pub(super) link: String,
    pub(super) vlan: Option<u64>,
    pub(super) mac: Option<String>,
    pub(super) scope: Option<String>,
    pub(super) addresses: Vec<Address>,
    pub(super) routes: Vec<Route>,
    /// Gateways that the annotation makes the pod's default.
    pub(super) defaults: Vec<IpAddr>,
}

/// An address, or the first of those that it may become.
pub(super) struct Address {
    pub(super) host: HostCidr,
    pub(super) is_fixed: bool,
    pub(super) shown: String,
    /// The network instance it is of, where that is known.
    pub(super) instance: Option<String>,
}

impl Address {
    pub(super) fn addr(&self) -> IpAddr {
        self.host.addr()
    }
}

impl End {
    pub(super) fn addresses(&self) -> impl Iterator<Item = (&Interface, &Address)> {
        let pairs = |i| Interface::pairs(i);
        self.interfaces.iter().flat_map(pairs)
    }

    /// `my-ran/ran-gnb/Deployment/gnb`.
    pub(super) fn place(&self) -> String {
        let parts = [&self.cluster, &self.namespace, &self.workload];
        let parts: Vec<&str> = parts
            .map(String::as_str)
            .into_iter()
            .filter(|p| !p.is_empty())
            .collect();
        parts.join("/")
    }

    /// The network instances it is attached to; none where one of them is not known.
    pub(super) fn networks(&self) -> Option<BTreeSet<&str>> {
        let all = self
            .addresses()
            .map(|(_, address)| address.instance.as_deref());
        all.collect()
    }

    /// The name alone.
    pub(super) fn short(&self) -> &str {
        self.workload.rsplit('/').next().unwrap_or(&self.workload)
    }

    pub(super) fn cluster(&self) -> &str {
        &self.cluster
    }

    pub(super) fn shown(&self, at: Option<(&Interface, &Address)>) -> Place {
        Place {
            cluster: self.cluster.clone(),
            namespace: self.namespace.clone(),
            workload: self.workload.clone(),
            interface: at.map(|(interface, _)| interface.name.clone()),
            address: at.map(|(_, address)| address.shown.clone()),
        }
    }
}

impl Interface {
    fn pairs(&self) -> impl Iterator<Item = (&Self, &Address)> {
        self.addresses.iter().map(move |address| (self, address))
    }
}

/// The one pod that a name leads to.
pub(super) fn find(world: &World<'_>, wanted: &str) -> Result<End, Unclear> {
    let all = || world.pods.iter().enumerate();
    let mut found: Vec<usize> = all()
        .filter(|(_, p)| is_named(p, wanted, false))
        .map(|(i, _)| i)
        .collect();
    if found.is_empty() {
        // `gnb-0`, or `gnb-7d9f-x2x1`: a pod that one of these workloads makes.
        found = all()
            .filter(|(_, p)| is_named(p, wanted, true))
            .map(|(i, _)| i)
            .collect();
    }
    let named = |at: &usize| end(world, *at).place();
    match found[..] {
        [one] => Ok(end(world, one)),
        [] => {
            let mut names: Vec<String> = (0..world.pods.len()).map(|at| named(&at)).collect();
            names.sort();
            names.dedup();
            let help = if names.is_empty() {
                "no pod here has a networks annotation; render the packages first".to_owned()
            } else {
                format!("there are {}", some(&names))
            };
            let message =
                format!("no pod {wanted} with a networks annotation is among these objects");
            Err(Unclear { message, help })
        }
        _ => {
            let mut names: Vec<String> = found.iter().map(named).collect();
            names.sort();
            let message = format!("{wanted} may be any of {} pods", names.len());
            let help = format!("write one of {}", some(&names));
            Err(Unclear { message, help })
        }
    }
}

/// Five things, then how many more.
fn some(names: &[String]) -> String {
    let mut text = names.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > 5 {
        let _ = write!(text, " and {} more", names.len() - 5);
    }
    text
}

/// What stands before the name must be, in this order, any of cluster, namespace and kind.
fn is_named(pod: &Pod<'_>, wanted: &str, made_by: bool) -> bool {
    let mut parts: Vec<&str> = wanted.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    let own = pod.origin.object.name.as_str();
    let rest = name
        .strip_prefix(own)
        .and_then(|rest| rest.strip_prefix('-'));
    if name != own && !(made_by && rest.is_some_and(|r| !r.is_empty())) {
        return false;
    }
    let object = &pod.origin.object;
    let kind = object.kind.to_lowercase();
    let mut left = [pod.origin.cluster.as_str(), &object.namespace, &kind].into_iter();
    parts
        .iter()
        .all(|part| left.any(|own| own == *part || own == part.to_lowercase()))
}

fn end(world: &World<'_>, at: usize) -> End {
    let pod = &world.pods[at];
    let object = &pod.origin.object;
    let interfaces = pod.entries().map(|(place, entry, nad)| {
        let nad = nad.map(|nad| &world.nads[nad]);
        interface(world, place, entry, nad)
    });
    End {
        pod: at,
        cluster: pod.origin.cluster.clone(),
        namespace: object.namespace.clone(),
        workload: format!("{}/{}", object.kind, object.name),
        interfaces: interfaces.collect(),
    }
}

fn interface(world: &World<'_>, place: usize, entry: &Entry, nad: Option<&Nad<'_>>) -> Interface {
    let asked = entry.ips().into_iter().filter_map(host);
    let mut addresses: Vec<Address> = asked.map(fixed).collect();
    for used in nad.map_or(&[][..], |nad| &nad.uses) {
        match used.what {
            Use::Address(host) if addresses.iter().all(|a| a.addr() != host.addr()) => {
                addresses.push(fixed(host));
            }
            Use::Range { range, subnet } if entry.ips().is_empty() => addresses.push(Address {
                host: subnet.host(range.first()),
                is_fixed: false,
                shown: format!("one of {range}"),
                instance: None,
            }),
            _ => {}
        }
    }
    let scope = nad.and_then(|nad| nad.scope.clone());
    for address in &mut addresses {
        let instance = world.instances.of(scope.as_deref(), address.addr());
        address.instance = instance.map(str::to_owned);
    }
    let resource =
        nad.and_then(|nad| annotation_of(world.inputs[nad.input].value, annotation::RESOURCE_NAME));
    let defaults = entry.default_route().unwrap_or_default();
    Interface {
        name: entry
            .interface()
            .map_or_else(|| format!("net{}", place + 1), str::to_owned),
        link: nad.map_or_else(|| entry.name().to_owned(), |nad| link(nad, resource)),
        vlan: nad
            .and_then(|nad| wire(nad, resource))
            .map(|(_, vlan)| vlan),
        mac: entry.mac().map(str::to_owned),
        scope,
        addresses,
        routes: nad.map(routes).unwrap_or_default(),
        defaults: defaults.iter().filter_map(|gw| gw.parse().ok()).collect(),
    }
}

fn fixed(host: HostCidr) -> Address {
    Address {
        host,
        is_fixed: true,
        shown: host.to_string(),
        instance: None,
    }
}

fn link(nad: &Nad<'_>, resource: Option<&str>) -> String {
    let plugin = nad.plugin();
    let main = nad.main();
    let text = |key: &str| main.and_then(|main| word(main, key));
    let on = ["master", "bridge", "device", "pciBusID"]
        .into_iter()
        .find_map(text);
    match on.or(resource) {
        Some(on) => format!("{plugin} on {on}"),
        None => plugin.to_owned(),
    }
}
