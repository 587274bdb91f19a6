//! Taking a snapshot of a link, and putting a link back as a snapshot says.
//!
//! Called by the device records before a NIC leaves the host and when it comes home. A link that changes its namespace
//! loses its addresses, routes, neighbours and sysctls, and the kernel does not give them back.
//!
//! Easy to get wrong: sysctls come first (`disable_ipv6` refuses addresses, `addr_gen_mode` makes them), and once more at
//! the end, because the IPv6 MTU cannot exceed the link's, which is set in between.

use std::collections::BTreeMap;

use mooring_api::Family;
use mooring_api::net::{
    Addr, Conf, Link, Neighbour, Route, Rule, Snapshot, TABLE_LOCAL, TABLE_MAIN,
};

use crate::netlink::conf;
use crate::sysctl::{self, SysctlError};
use crate::{Change, Netlink, NetlinkError, Netns, NetnsError};

/// Where a link has parameters of its own.
const SYSCTLS: [&str; 4] = [
    "net/ipv4/conf",
    "net/ipv6/conf",
    "net/ipv4/neigh",
    "net/ipv6/neigh",
];
/// Stands for the link's name in the keys of a snapshot.
const NAME: &str = "IF";
/// Cannot be read where it is not set.
const SECRET: &str = "net/ipv6/conf/IF/stable_secret";
/// The table that stands for none in a rule, and the empty default one.
const NO_TABLES: [u32; 4] = [0, 253, TABLE_MAIN, TABLE_LOCAL];

/// A snapshot was not taken or not restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The namespace.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// The kernel's tables.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// A parameter.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// There is no such link.
    #[error("there is no link {index} in the network namespace {netns}")]
    NoLink {
        /// The index.
        index: u32,
        /// The namespace.
        netns: String,
    },
}

impl Netlink {
    /// Everything about a link but the sysctls that a socket cannot read; `None` when it is gone.
    pub fn snapshot(&mut self, index: u32) -> Result<Option<Snapshot>, NetlinkError> {
        let found = self.with_every_rule(index)?;
        Ok(found.map(|mut snapshot| {
            let Snapshot {
                link,
                addrs,
                routes,
                rules,
                ..
            } = &mut snapshot;
            rules.retain(|rule| concerns(rule, link, addrs, routes));
            snapshot
        }))
    }

    /// The same with the rules that have nothing to do with the link.
    fn with_every_rule(&mut self, index: u32) -> Result<Option<Snapshot>, NetlinkError> {
        let Some((link, conf)) = self.with_conf(index)? else {
            return Ok(None);
        };
        let addrs = self.addrs(Some(index))?;
        let routes = self.routes(Some(index))?;
        let rules = self.rules()?;
        let mut neighbours = self.neighbours(Some(index))?;
        neighbours.retain(|n: &Neighbour| n.proxy || n.state.is_permanent());
        // The kernel puts its own entries there too (multicast, broadcast), marked as needing no ARP.
        let vlans = match link.port {
            Some(_) => self.bridge_vlans(Some(index))?,
            None => Vec::new(),
        };
        Ok(Some(Snapshot {
            link,
            addrs,
            routes,
            rules,
            neighbours,
            vlans,
            sysctls: BTreeMap::new(),
            conf,
        }))
    }
}

/// Everything about a link, with its sysctls.
pub fn snapshot(netns: &Netns, index: u32) -> Result<Snapshot, RestoreError> {
    snapshot_with(netns, &mut netns.netlink()?, index)
}

/// The same with a socket that is already open in the namespace.
pub(crate) fn snapshot_with(
    netns: &Netns,
    netlink: &mut Netlink,
    index: u32,
) -> Result<Snapshot, RestoreError> {
    let found = netlink.snapshot(index)?;
    let mut snapshot = found.ok_or_else(|| no_link(netns, index))?;
    let Snapshot { link, conf, .. } = &snapshot;
    snapshot.sysctls = netns.run(|| in_files(&link.name, conf.as_ref()))?;
    Ok(snapshot)
}

/// Puts the link at `index` back as `wanted` says: sysctls first, then [`crate::diff`]. It goes on after a refusal, so that
/// as much as possible is back; the first refusal is the error. Gives the changes that it made.
pub fn restore(
    netns: &Netns,
    index: u32,
    wanted: &Snapshot,
) -> Result<Vec<Change<'static>>, RestoreError> {
    let mut netlink = netns.netlink()?;
    // What the kernel refuses now (an IPv6 MTU above the link's) is tried again below, and reported there.
    let _ = set_sysctls(netns, &mut netlink, index, wanted)?;
    // Seen after that: switching IPv6 on may have made addresses. Rules outlast the link, but nothing ties them to a link that
    // has lost its addresses and tables.
    let seen = netlink
        .with_every_rule(index)?
        .ok_or_else(|| no_link(netns, index))?;
    let changes = crate::diff(wanted, &seen);
    let mut batch = netlink.batch();
    for change in &changes {
        batch.push(change);
    }
    let refused = batch.send_each().into_iter().find_map(Result::err);
    set_sysctls(netns, &mut netlink, index, wanted)??;
    match refused {
        Some(error) => Err(error.into()),
        None => Ok(changes),
    }
}

/// What the link at `index` still lacks of `wanted`, but for sysctls: whether those took is [`restore`]'s to say.
pub fn missing(
    netns: &Netns,
    index: u32,
    wanted: &Snapshot,
) -> Result<Vec<Change<'static>>, RestoreError> {
    let seen = netns.netlink()?.snapshot(index)?;
    let seen = seen.ok_or_else(|| no_link(netns, index))?;
    Ok(crate::diff(wanted, &seen))
}

fn no_link(netns: &Netns, index: u32) -> RestoreError {
    RestoreError::NoLink {
        index,
        netns: netns.path().display().to_string(),
    }
}

/// Whether a rule names one of the link's own tables, one of its addresses or subnets, or its name.
fn concerns(rule: &Rule, link: &Link, addrs: &[Addr], routes: &[Route]) -> bool {
    let named = [&rule.iif, &rule.oif];
    let sides = [rule.src, rule.dst];
    named.iter().any(|side| side.as_ref() == Some(&link.name))
        || (!NO_TABLES.contains(&rule.table) && routes.iter().any(|r| r.table == rule.table))
        || sides.iter().flatten().any(|net| {
            let single = net.prefix_len() == net.family().bits();
            addrs.iter().any(|addr| {
                *net == addr.address.subnet() || (single && net.network() == addr.address.addr())
            })
        })
}

/// The parameters of a link in the calling thread's namespace that are not in `conf`.
fn in_files(name: &str, conf: Option<&Conf>) -> BTreeMap<String, String> {
    let below = |root: &str| format!("{root}/{name}");
    let mut found = BTreeMap::new();
    let mut keep = |root: &str, values: BTreeMap<String, String>| {
        let keyed = values
            .into_iter()
            .map(|(leaf, value)| (key(root, &leaf), value));
        found.extend(keyed);
    };
    if conf.is_some() {
        for (root, names) in conf::FILES {
            keep(root, sysctl::some_here(&below(root), names));
        }
    } else {
        for root in SYSCTLS {
            keep(root, sysctl::all_here(&below(root)));
        }
    }
    found
}

/// All sysctls of a snapshot, as their files show them, with the word `IF` for the link's name.
pub fn sysctls(snapshot: &Snapshot) -> BTreeMap<String, String> {
    let mut all = snapshot.sysctls.clone();
    for (family, leaf, value) in snapshot.conf.iter().flat_map(conf::named) {
        let root = match family {
            Family::V4 => "net/ipv4/conf",
            Family::V6 => "net/ipv6/conf",
        };
        all.insert(key(root, leaf), value);
    }
    all
}

/// The key of a parameter in a snapshot.
fn key(root: &str, leaf: &str) -> String {
    format!("{root}/{NAME}/{leaf}")
}

/// The same for the link of that name.
fn own(key: &str, name: &str) -> String {
    key.replacen(&format!("/{NAME}/"), &format!("/{name}/"), 1)
}

/// Writes what differs, all of it; the inner error is the first refusal. A parameter that this kernel does not have is passed
/// over.
fn set_sysctls(
    netns: &Netns,
    netlink: &mut Netlink,
    index: u32,
    wanted: &Snapshot,
) -> Result<Result<(), SysctlError>, RestoreError> {
    let found = netlink.with_conf(index)?;
    let (link, mut conf) = found.ok_or_else(|| no_link(netns, index))?;
    let name = &link.name;
    // A secret also sets how addresses are made, so it comes before the look.
    if let Some(secret) = wanted.sysctls.get(SECRET) {
        let key = own(SECRET, name);
        let set = netns.run(|| {
            let set = sysctl::read_here(&key).ok().as_ref() != Some(secret);
            if set {
                let _ = sysctl::write_here(&key, secret);
            }
            set
        })?;
        if set {
            conf = netlink.with_conf(index)?.and_then(|(_, conf)| conf);
        }
    }
    let written = netns.run(|| {
        let there = Snapshot {
            sysctls: in_files(name, conf.as_ref()),
            conf,
            ..Snapshot::default()
        };
        if there.sysctls == wanted.sysctls && there.conf == wanted.conf {
            return Ok(());
        }
        let there = sysctls(&there);
        let mut refused = Ok(());
        for (key, value) in sysctls(wanted) {
            if there.get(&key) == Some(&value) {
                continue;
            }
            match sysctl::write_here(&own(&key, name), &value) {
                Err(error) if !error.is_absent() && refused.is_ok() => refused = Err(error),
                _ => {}
            }
        }
        refused
    });
    Ok(written?)
}
