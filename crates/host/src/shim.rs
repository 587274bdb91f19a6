//! Reaching macvlan pods from their own node, which macvlan alone does not allow.
//!
//! Called by the macvlan plugin for `hostReach`. A macvlan child never talks to its parent, but children talk to each other: so
//! the node gets a child of its own, the shim, and a route to each pod through it.
//!
//! ```text
//!   node ── 10.1.2.20/32 dev moor-eth1 ──► shim ◄──(macvlan bridge)──► net1 in the pod
//!                     eth1 has 10.1.2.5      │       pod: 10.1.2.5 is at the shim's MAC, permanently
//! ```
//!
//! Shared by all pods on that parent, counted by `shared`, gone with the last one.
//!
//! Easy to get wrong: the shim must not speak for the node's address on the wire, or switches and neighbours learn two MACs
//! for it. So it has no address of the parent, answers no ARP (`arp_ignore` 8), takes no router's advice (`accept_ra` 0), and
//! both sides know each other by permanent neighbour entries instead of asking.

use std::net::IpAddr;
use std::path::PathBuf;

use mooring_api::net::{Addr, Link, LinkChange, LinkKind, MacvlanMode, Neighbour, NewLink, Route};
use mooring_api::{Cidr, HostCidr, IfName, Mac};

use crate::shared::{Object, Objects, SharedError, User, make_marked};
use crate::sysctl::{self, SysctlError};
use crate::{Change, Netlink, NetlinkError, Netns, NetnsError, fault};

/// The alias of a shim that we made.
pub const MARK: &str = "mooring.dev/shim";

/// The shims of this node.
#[derive(Clone, Debug)]
pub struct Shims {
    objects: Objects,
}

/// What is to be reached.
#[derive(Clone, Copy, Debug)]
pub struct Reach<'a> {
    /// The pod's namespace.
    pub pod: &'a Netns,
    /// The macvlan interface there, with its MAC.
    pub link: &'a Link,
    /// Its addresses.
    pub addresses: &'a [HostCidr],
    /// Addresses of the node for this, put on the shim; empty to use those that the parent has in the pod's subnets.
    pub node: &'a [IpAddr],
}

/// Why a pod is not reachable from its node.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShimError {
    /// The node has no address that the pod could answer to.
    #[error("{parent} has no address in {subnet}, so the pod could not answer the node")]
    NoAddress {
        /// The parent.
        parent: String,
        /// The pod's subnet.
        subnet: Cidr,
    },
    /// The shim's name is taken.
    #[error("{name} exists on this node and is not the shim of this master")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// The kernel refused.
    #[error("cannot {doing} {name}")]
    Netlink {
        /// What was being done.
        doing: &'static str,
        /// The link.
        name: String,
        /// Why.
        source: NetlinkError,
    },
    /// A namespace.
    #[error("cannot reach the pod from its node")]
    Netns(#[from] NetnsError),
    /// A kernel parameter of the shim.
    #[error("cannot keep the shim quiet")]
    Sysctl(#[from] SysctlError),
    /// The notes of its users.
    #[error("cannot tell who uses a shim")]
    Users(#[from] SharedError),
}

impl Shims {
    /// Their users are noted under `root`, which a reboot should empty.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            objects: Objects::new(root),
        }
    }

    /// Makes the pod's interface on `parent` reachable from the node, for `user`.
    pub fn hold(
        &self,
        (host, node): (&Netns, &mut Netlink),
        parent: &Link,
        reach: Reach<'_>,
        mut user: User,
    ) -> Result<(), ShimError> {
        let name = name(&parent.name);
        let pairs = pairs(node, parent, reach)?;
        user.addresses = reach.addresses.iter().map(HostCidr::addr).collect();
        user.mac = reach.link.mac;
        let object = self.objects.lock(&name)?;
        let own = (user.container.as_str(), user.ifname.as_str());
        object.add(&user)?;
        fault::point("shim-user-noted");
        let outcome = ensure(host, node, &name, parent)
            .inspect(|_| fault::point("shim-made"))
            .and_then(|shim| connect(node, &shim, reach, &pairs));
        if outcome.is_err() {
            // The error that counts is the one above.
            let _ = leave(node, &object, &name, own);
        }
        outcome
    }

    /// Whether the node still has the shim beside `parent`, and a route through it to each address. What is missing, in words.
    pub fn missing(
        &self,
        node: &mut Netlink,
        parent: &str,
        addresses: &[HostCidr],
    ) -> Result<Option<String>, ShimError> {
        let name = name(parent);
        let fail = |source| ShimError::Netlink {
            doing: "look for",
            name: name.clone(),
            source,
        };
        let Some(shim) = node.link(&name).map_err(fail)? else {
            return Ok(Some(format!("the shim {name} is gone")));
        };
        let routes = node.routes(Some(shim.index)).map_err(fail)?;
        let is_lost = |address: &&HostCidr| {
            let wanted = HostCidr::single(address.addr()).subnet();
            !routes.iter().any(|route| route.dst == wanted)
        };
        let lost = addresses.iter().find(is_lost);
        Ok(lost.map(|lost| format!("the route to {} by {name} is gone", lost.addr())))
    }

    /// Ends what an attachment holds; the shim goes with the last user. Nothing held is success.
    pub fn release(
        &self,
        node: &mut Netlink,
        container: &str,
        ifname: &str,
    ) -> Result<(), ShimError> {
        let leave =
            |object: &Object, name: &str, user: (&str, &str)| leave(node, object, name, user);
        self.objects.release(container, ifname, leave)
    }

    /// Ends what is held by users that are gone, and by those of `network` that are not `valid`.
    pub fn collect(
        &self,
        node: &mut Netlink,
        network: &str,
        valid: &dyn Fn(&str, &str) -> bool,
    ) -> Result<(), ShimError> {
        let leave =
            |object: &Object, name: &str, user: (&str, &str)| leave(node, object, name, user);
        self.objects.collect(network, valid, leave)
    }
}

/// The shim's name beside a parent: `moor-eth1`, or `moor-` and a number where that is too long.
pub fn name(parent: &str) -> String {
    let name = format!("moor-{parent}");
    if name.len() <= IfName::MAX {
        return name;
    }
    format!("moor-{:08x}", fnv(parent.as_bytes()))
}

/// The shim's MAC: always the same beside the same parent, so that what a pod was told stays true when the shim is made again.
fn mac(parent: &Link) -> Mac {
    let mut seed = parent.name.clone().into_bytes();
    seed.extend(parent.mac.map(Mac::octets).unwrap_or_default());
    let [a, b, c, d] = fnv(&seed).to_be_bytes();
    // Locally administered, unicast.
    Mac::from([0x02, 0x6d, a, b, c, d])
}

/// FNV-1a: stable between builds, which the standard hasher is not.
fn fnv(bytes: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, step)
}

/// For each address of the pod, the address of the node that it talks to.
fn pairs(
    node: &mut Netlink,
    parent: &Link,
    reach: Reach<'_>,
) -> Result<Vec<(HostCidr, IpAddr)>, ShimError> {
    let theirs: Vec<IpAddr> = if reach.node.is_empty() {
        let addrs = node
            .addrs(Some(parent.index))
            .map_err(|source| ShimError::Netlink {
                doing: "read the addresses of",
                name: parent.name.clone(),
                source,
            })?;
        addrs.iter().map(|addr| addr.address.addr()).collect()
    } else {
        reach.node.to_vec()
    };
    let mut pairs = Vec::new();
    for &pod in reach.addresses {
        let subnet = pod.subnet();
        let found = theirs.iter().find(|ours| subnet.contains(**ours));
        let Some(&ours) = found else {
            return Err(ShimError::NoAddress {
                parent: parent.name.clone(),
                subnet,
            });
        };
        pairs.push((pod, ours));
    }
    Ok(pairs)
}

/// The shim beside `parent`, made where it is not there, quiet and up.
fn ensure(host: &Netns, node: &mut Netlink, name: &str, parent: &Link) -> Result<Link, ShimError> {
    let fail = |doing| {
        move |source| ShimError::Netlink {
            doing,
            name: name.to_owned(),
            source,
        }
    };
    let seen = node.link(name).map_err(fail("look for"))?;
    let shim = match seen {
        // Two long names may have one short one.
        Some(link) if !is_ours(&link) || link.parent != Some(parent.index) => {
            return Err(ShimError::NameTaken {
                name: name.to_owned(),
            });
        }
        // Up comes last, so one that is up has everything.
        Some(link) if link.up => return Ok(link),
        Some(link) => link,
        None => {
            let kind = LinkKind::Macvlan {
                mode: MacvlanMode::Bridge,
                broadcast_queue: None,
            };
            let mut wish = NewLink::new(name, kind).on(parent.index);
            wish.set.mac = Some(mac(parent));
            let mark = LinkChange {
                alias: Some(MARK.to_owned()),
                ..LinkChange::default()
            };
            let made = make_marked(node, wish, mark).map_err(fail("make"))?;
            made.ok_or_else(|| ShimError::NameTaken {
                name: name.to_owned(),
            })?
        }
    };
    fault::point("shim-marked");
    quiet(host, name)?;
    let up = Change::SetLink {
        index: shim.index,
        change: LinkChange::up(),
    };
    node.apply(&[up]).map_err(fail("bring up"))?;
    Ok(shim)
}

/// See the header: it must not speak for the node.
fn quiet(host: &Netns, name: &str) -> Result<(), SysctlError> {
    let v4 = [(format!("net/ipv4/conf/{name}/arp_ignore"), "8")];
    sysctl::write_all(host, &v4)?;
    let v6 = [
        (format!("net/ipv6/conf/{name}/accept_ra"), "0"),
        (format!("net/ipv6/conf/{name}/autoconf"), "0"),
    ];
    match sysctl::write_all(host, &v6) {
        // A kernel without IPv6.
        Err(error) if error.is_absent() => Ok(()),
        outcome => outcome,
    }
}

/// Routes and neighbours, on the node and in the pod.
fn connect(
    node: &mut Netlink,
    shim: &Link,
    reach: Reach<'_>,
    pairs: &[(HostCidr, IpAddr)],
) -> Result<(), ShimError> {
    let mut here = Vec::new();
    let mut there = Vec::new();
    for ours in reach.node {
        here.push(Change::SetAddr(
            Addr::new(shim.index, HostCidr::single(*ours)).nodad(),
        ));
    }
    for (pod, ours) in pairs {
        let mut route = route(shim, pod.addr());
        route.prefsrc = Some(*ours);
        here.push(Change::SetRoute(route));
        if let Some(mac) = reach.link.mac {
            let known = Neighbour::permanent(shim.index, pod.addr(), mac);
            here.push(Change::AddNeighbour(known));
        }
        if let Some(mac) = shim.mac {
            let known = Neighbour::permanent(reach.link.index, *ours, mac);
            there.push(Change::AddNeighbour(known));
        }
    }
    node.apply(&here).map_err(|source| ShimError::Netlink {
        doing: "route to the pod by",
        name: shim.name.clone(),
        source,
    })?;
    fault::point("shim-routed");
    let mut pod = reach.pod.netlink()?;
    pod.apply(&there).map_err(|source| ShimError::Netlink {
        doing: "tell the pod of",
        name: shim.name.clone(),
        source,
    })
}

fn route(shim: &Link, pod: IpAddr) -> Route {
    Route::to(HostCidr::single(pod).subnet()).dev(shim.index)
}

/// Takes a user away: before it its routes, and the shim when nobody else is left.
fn leave(
    node: &mut Netlink,
    object: &Object,
    name: &str,
    (container, ifname): (&str, &str),
) -> Result<(), ShimError> {
    let fail = |doing| {
        move |source| ShimError::Netlink {
            doing,
            name: name.to_owned(),
            source,
        }
    };
    let others = object.others(container, ifname)?;
    let seen = node.link(name).map_err(fail("look for"))?;
    if let Some(shim) = seen.filter(is_ours) {
        if others.is_empty() {
            absent_is_fine(node.apply(&[Change::DelLink(shim.index)])).map_err(fail("remove"))?;
            fault::point("shim-removed");
        } else if let Some(user) = object.user(container, ifname) {
            // A later pod may have the address by now; then route and neighbour are its own.
            let kept = |address: &IpAddr| {
                let holds = |other: &Option<User>| {
                    other
                        .as_ref()
                        .is_some_and(|user| user.addresses.contains(address))
                };
                others.iter().any(holds)
            };
            for &address in user.addresses.iter().filter(|a| !kept(a)) {
                let gone = node.apply(&[Change::DelRoute(route(&shim, address))]);
                absent_is_fine(gone).map_err(fail("take a route from"))?;
                if let Some(mac) = user.mac {
                    let known = Neighbour::permanent(shim.index, address, mac);
                    let gone = node.apply(&[Change::DelNeighbour(known)]);
                    absent_is_fine(gone).map_err(fail("take a neighbour from"))?;
                }
            }
            fault::point("shim-unrouted");
        }
    }
    object.remove(container, ifname)?;
    Ok(())
}

fn is_ours(link: &Link) -> bool {
    matches!(link.kind, LinkKind::Macvlan { .. }) && link.alias.as_deref() == Some(MARK)
}

fn absent_is_fine(outcome: Result<(), NetlinkError>) -> Result<(), NetlinkError> {
    match outcome {
        Err(error) if error.is_absent() => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shim_is_called_after_its_parent_within_fifteen_bytes() {
        assert_eq!(name("eth1"), "moor-eth1");
        assert_eq!(name("enp3s0f100"), "moor-enp3s0f100");
        let long = [name("enp3s0f1.4094"), name("enp3s0f0.4094")];
        assert_ne!(long[0], long[1]);
        for name in &long {
            assert!(name.parse::<IfName>().is_ok(), "{name}");
        }
    }

    #[test]
    fn the_mac_stays_and_is_ours_to_give() {
        let parent = |name: &str, last: u8| Link {
            name: name.to_owned(),
            mac: Some(Mac::from([2, 0, 0, 0, 0, last])),
            ..Link::default()
        };
        assert_eq!(mac(&parent("eth1", 1)), mac(&parent("eth1", 1)));
        assert_ne!(mac(&parent("eth1", 1)), mac(&parent("eth1", 2)));
        assert_ne!(mac(&parent("eth1", 1)), mac(&parent("eth2", 1)));
        assert_eq!(mac(&parent("eth1", 1)).octets()[0] & 0b11, 0b10);
    }
}
