//! Blocking route netlink: questions that give values, and changes in batches.
//!
//! Called by the plugins and the agent through [`crate::Netns::netlink`]. One file per object has its encoder and its
//! reader; `socket` has the protocol. Types of the netlink crates do not leave this module.
//!
//! Easy to get wrong: a batch is many messages in one send, not a transaction. The kernel carries out what it can, also
//! behind a refusal; [`Batch::send`] reports the first refusal, [`Batch::send_each`] all of them.

mod addr;
mod batch;
mod bridge;
pub(crate) mod conf;
mod error;
mod link;
mod neighbour;
mod route;
mod rule;
mod socket;
#[cfg(test)]
mod tests;
mod vf;
mod wire;

use mooring_api::Family;
use mooring_api::net::{Addr, BridgeVlan, Conf, Link, Neighbour, NewLink, Route, Rule, Vf};
use netlink_packet_route::AddressFamily;

pub use batch::Batch;
pub use error::NetlinkError;

use crate::Change;
use link::Which;
use socket::Socket;

type Result<T, E = NetlinkError> = std::result::Result<T, E>;

/// A netlink socket in one namespace, whichever thread uses it.
pub struct Netlink {
    socket: Socket,
}

impl std::fmt::Debug for Netlink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Netlink").finish_non_exhaustive()
    }
}

impl Netlink {
    /// Opens one in the calling thread's namespace.
    pub fn open() -> Result<Self> {
        let socket = Socket::open().map_err(|source| NetlinkError::Socket {
            operation: "open a socket".to_owned(),
            source,
        })?;
        Ok(Self { socket })
    }

    /// The link of that name, or of that alternative name.
    pub fn link(&mut self, name: &str) -> Result<Option<Link>> {
        self.find(&Which::Name(name), false, &format!("read link {name}"))
    }

    /// The link of that index.
    pub fn link_at(&mut self, index: u32) -> Result<Option<Link>> {
        self.find(&Which::Index(index), false, &format!("read link {index}"))
    }

    /// The link of that index with its VFs, for a PF.
    pub fn pf(&mut self, index: u32) -> Result<Option<Link>> {
        self.find(
            &Which::Index(index),
            true,
            &format!("read link {index} with its VFs"),
        )
    }

    /// The VFs of a PF; none when the link is gone, or is no PF.
    pub fn vfs(&mut self, pf: u32) -> Result<Vec<Vf>> {
        Ok(self.pf(pf)?.map(|link| link.vfs).unwrap_or_default())
    }

    /// The link of that index with its VFs, and the numbers behind its parameters: `None` of these when the files have to be
    /// asked ([`conf`] says when).
    pub(crate) fn with_conf(&mut self, index: u32) -> Result<Option<(Link, Option<Conf>)>> {
        let request = link::get(&Which::Index(index), true);
        let operation = format!("read link {index} with its parameters");
        let read = |body: &[u8]| {
            let conf = conf::read(body).filter(|_| conf::is_known_kernel());
            Some((link::read::link(body)?, conf))
        };
        if_there(self.socket.get(request, &operation, read))
    }

    fn find(&mut self, which: &Which<'_>, vfs: bool, operation: &str) -> Result<Option<Link>> {
        let request = link::get(which, vfs);
        if_there(self.socket.get(request, operation, link::read::link))
    }

    /// Every link, by index.
    pub fn links(&mut self) -> Result<Vec<Link>> {
        let mut links = self
            .socket
            .dump(link::dump(), "list links", link::read::link)?;
        links.sort_by_key(|link| link.index);
        Ok(links)
    }

    /// The addresses of a link, or of all; of a subnet the first one is the primary. None when the link is gone.
    pub fn addrs(&mut self, index: Option<u32>) -> Result<Vec<Addr>> {
        let request = addr::dump(index);
        let found = self.socket.dump(request, "list addresses", addr::read);
        let mut addrs = none_when_absent(found, index)?;
        // Kernels before strict checking ignore the filter.
        addrs.retain(|addr| index.is_none_or(|wanted| addr.index == wanted));
        Ok(addrs)
    }

    /// The routes of every table that leave by a link, or all. None when the link is gone.
    pub fn routes(&mut self, index: Option<u32>) -> Result<Vec<Route>> {
        let mut routes = Vec::new();
        for family in [Family::V4, Family::V6] {
            let request = route::dump(family, index);
            let found = self.socket.dump(request, "list routes", route::read);
            let found = none_when_absent(found, index)?;
            // A kernel without IPv6 answers for every family it has.
            routes.extend(found.into_iter().filter(|route| route.family() == family));
        }
        routes.retain(|route| index.is_none_or(|wanted| route.uses(wanted)));
        Ok(routes)
    }

    /// Every rule, by family and then as the kernel asks them.
    pub fn rules(&mut self) -> Result<Vec<Rule>> {
        // A rule of a family that is neither (of multicast routing) is not read.
        let found = self.socket.dump(rule::dump(), "list rules", rule::read);
        let mut rules = match found {
            // A kernel without policy routing has no such table.
            Err(e) if e.errno() == Some(nix::libc::EOPNOTSUPP) => Vec::new(),
            found => found?,
        };
        rules.sort_by_key(|rule| rule.family);
        Ok(rules)
    }

    /// The neighbours of a link, or of all, and the addresses that it answers for. None when the link is gone.
    pub fn neighbours(&mut self, index: Option<u32>) -> Result<Vec<Neighbour>> {
        let mut neighbours = Vec::new();
        for proxies in [false, true] {
            let request = neighbour::dump(index, proxies);
            let found = self
                .socket
                .dump(request, "list neighbours", neighbour::read);
            neighbours.extend(none_when_absent(found, index)?);
        }
        neighbours.sort_by_key(|n| Family::of(n.address));
        neighbours.retain(|n| index.is_none_or(|wanted| n.index == wanted));
        Ok(neighbours)
    }

    /// The VLANs of a bridge port (or of a bridge), or of all; ranges as the kernel joins them.
    pub fn bridge_vlans(&mut self, index: Option<u32>) -> Result<Vec<BridgeVlan>> {
        let found = self
            .socket
            .dump(bridge::dump(), "list bridge VLANs", bridge::read);
        let found = match found {
            Err(e) if e.errno() == Some(nix::libc::EOPNOTSUPP) => Vec::new(),
            found => found?,
        };
        let mut vlans: Vec<_> = found.into_iter().flatten().collect();
        vlans.retain(|vlan| index.is_none_or(|wanted| vlan.index == wanted));
        Ok(vlans)
    }

    /// A batch of changes, empty as yet.
    pub fn batch(&mut self) -> Batch<'_> {
        Batch::new(&mut self.socket)
    }

    /// Carries out changes in order, in few sends. The first refusal is the error; what stands behind it was tried too.
    pub fn apply(&mut self, changes: &[Change<'_>]) -> Result<()> {
        let mut batch = self.batch();
        for change in changes {
            batch.push(change);
        }
        batch.send()
    }

    /// Makes a link in this namespace and shows it.
    pub fn create(&mut self, link: &NewLink) -> Result<Link> {
        self.apply_and_show(&[Change::NewLink(link.clone())], &link.name)
    }

    /// Carries out a few changes and shows the link of that name as it is then, in one send: for what is made under a name.
    /// The first refusal is the error.
    pub fn apply_and_show(&mut self, changes: &[Change<'_>], name: &str) -> Result<Link> {
        let changes: Vec<_> = changes.iter().map(batch::request).collect();
        let question = link::get(&Which::Name(name), false);
        let operation = format!("read link {name}");
        self.socket
            .execute_and_get(&changes, question, &operation, link::read::link)
    }
}

/// What is not there is no failure.
fn if_there<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(e) if e.is_absent() => Ok(None),
        Err(e) => Err(e),
    }
}

/// Asking for the entries of a link that is gone finds none.
fn none_when_absent<T>(found: Result<Vec<T>>, index: Option<u32>) -> Result<Vec<T>> {
    match found {
        Err(e) if index.is_some() && e.is_absent() => Ok(Vec::new()),
        found => found,
    }
}

fn family(of: Family) -> AddressFamily {
    match of {
        Family::V4 => AddressFamily::Inet,
        Family::V6 => AddressFamily::Inet6,
    }
}

fn family_of(number: u8) -> Option<Family> {
    match AddressFamily::from(number) {
        AddressFamily::Inet => Some(Family::V4),
        AddressFamily::Inet6 => Some(Family::V6),
        _ => None,
    }
}
