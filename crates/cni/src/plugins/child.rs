//! An interface that is the child of a link of the node: what macvlan, ipvlan and vlan have in common.
//!
//! ```text
//!  ADD:  check ─ hold the master ─ addresses ─ make the child in the pod ─ probe ─ configure ─ announce
//!  DEL:  remove the child ─ release addresses ─ let go of the master      each one, whatever became of the others
//! ```
//!
//! Easy to get wrong: `EEXIST` has three meanings. The name is taken in the pod by what an earlier ADD of the same attachment
//! left behind (removed, made again), in the pod by somebody else (an error), or on the node, where older kernels make the
//! link first (made under another name and renamed in the pod).

use std::net::IpAddr;

use mooring_api::net::{Link, LinkChange, LinkKind, NewLink, Route};
use mooring_api::{HostCidr, Mac};
use mooring_attach::cni::{CniError, CniResult, Interface};
use mooring_host::{
    Change, Netlink, NetlinkError, Netns, Probe, User, VlanError, Vlans, announce_with, fault,
    probe, sysctl,
};
use serde::Deserialize;

use crate::call::Call;
use crate::configure::{Dad, Options, check_configured, configure_with};
use crate::plugin::{Kind, find};

/// The keys that all three plugins have.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Keys {
    /// The link below; empty for the default route's.
    pub(crate) master: String,
    /// 0 for the master's.
    mtu: i64,
    /// The master is in the pod.
    pub(crate) link_in_container: bool,
    /// See [`Probe`].
    probe: String,
}

/// A child that was made and configured.
pub(crate) struct Made {
    pub(crate) pod: Netns,
    pub(crate) master: Link,
    pub(crate) link: Link,
    pub(crate) result: CniResult,
}

impl Keys {
    pub(crate) fn read(call: &Call) -> Result<Self, CniError> {
        call.config().keys()
    }

    /// What `probe` says.
    pub(crate) fn probe(&self) -> Result<Probe, CniError> {
        self.probe.parse().map_err(|e| CniError::config("probe", e))
    }

    /// The MTU, where one is asked for; `most` is the largest that is allowed.
    pub(crate) fn mtu(&self, most: Option<u32>) -> Result<Option<u32>, CniError> {
        let wrong = |most: &str| {
            let why = format!("invalid MTU {}, must be [0, {most}]", self.mtu);
            Err(CniError::config("mtu", why))
        };
        match (u32::try_from(self.mtu), most) {
            (Ok(0), _) => Ok(None),
            (Ok(mtu), Some(most)) if mtu > most => wrong(&format!("master MTU({most})")),
            (Ok(mtu), _) => Ok(Some(mtu)),
            (Err(_), Some(most)) => wrong(&format!("master MTU({most})")),
            (Err(_), None) => wrong("65535"),
        }
    }
}

/// A failure of the kernel or the node, with its causes.
pub(crate) fn failed(doing: impl std::fmt::Display, cause: &dyn std::error::Error) -> CniError {
    CniError::internal(doing.to_string()).because(cause)
}

/// A socket in the node's namespace.
pub(crate) fn open_node() -> Result<Netlink, CniError> {
    Netlink::open().map_err(|e| failed("cannot talk to the kernel", &e))
}

fn open_netlink(pod: &Netns) -> Result<Netlink, CniError> {
    pod.netlink()
        .map_err(|e| CniError::netns(pod.path().display(), "cannot be entered").because(&e))
}

/// The sub-interfaces that attachments of this node share.
pub(crate) fn vlans(call: &Call) -> Vlans {
    Vlans::new(call.paths.locks.join("vlan"))
}

/// Who holds something for this attachment.
pub(crate) fn user(call: &Call, pod: &Netns) -> User {
    User::new(&call.config().name, call.container(), call.ifname(), pod)
}

/// Makes a child and gives it its addresses. `plan` says what to make on the master, `given` are addresses that come from an
/// earlier plugin of the list instead of an IPAM plugin.
pub(crate) fn add(
    call: &Call,
    keys: &Keys,
    plan: &dyn Fn(&Link) -> Result<NewLink, CniError>,
    given: Option<CniResult>,
) -> Result<Made, CniError> {
    let probe = keys.probe()?;
    let pod = call.open_netns()?;
    let mut inside = open_netlink(&pod)?;
    let mut node = open_node()?;
    let master = if keys.link_in_container {
        master_inside(&mut inside, &keys.master)?
    } else {
        hold_master(call, &mut node, keys, &pod)?
    };
    let mut attempt = Attempt {
        call,
        pod: &pod,
        inside: &mut inside,
        maker: (!keys.link_in_container).then_some(&mut node),
        probe,
    };
    let made = attempt.run(&master, plan, given);
    let (link, result) = match made {
        Ok(made) => made,
        Err(error) => {
            return Err(match let_go(call, &mut node) {
                Ok(()) => error,
                Err(more) => error.with_details(more.to_string()),
            });
        }
    };
    Ok(Made {
        pod,
        master,
        link,
        result,
    })
}

/// Undoes a child that was made, and returns the failure.
pub(crate) fn undo(call: &Call, made: &Made, mut failure: CniError) -> CniError {
    if let Ok(mut inside) = made.pod.netlink() {
        let _ = inside.apply(&[Change::DelLink(made.link.index)]);
    }
    if call.config().ipam.is_some() {
        failure = call.undo_ipam(failure);
    }
    if let Ok(mut node) = open_node() {
        let _ = let_go(call, &mut node);
    }
    failure
}

/// The master on the node; a sub-interface `<nic>.<vlan>` is made where it is not there.
fn hold_master(
    call: &Call,
    node: &mut Netlink,
    keys: &Keys,
    pod: &Netns,
) -> Result<Link, CniError> {
    if keys.master.is_empty() {
        return default_master(node)?.ok_or_else(|| {
            CniError::config(
                "master",
                "missing, and this node has no default route to take its interface from",
            )
        });
    }
    let held = vlans(call).hold(node, &keys.master, &user(call, pod));
    held.map_err(|error| match &error {
        VlanError::Absent { .. }
        | VlanError::ParentAbsent { .. }
        | VlanError::ParentDown { .. } => CniError::config("master", &error),
        _ => failed(format_args!("master {}", keys.master), &error),
    })
}

fn master_inside(inside: &mut Netlink, name: &str) -> Result<Link, CniError> {
    if name.is_empty() {
        let why = "missing; with linkInContainer there is no default";
        return Err(CniError::config("master", why));
    }
    let link = inside
        .link(name)
        .map_err(|e| failed("cannot look for the master", &e))?;
    link.ok_or_else(|| {
        CniError::config(
            "master",
            format!("there is no link {name} in the container"),
        )
    })
}

/// The link of the first default route, IPv4 first, as the reference plugins choose it.
pub(crate) fn default_master(node: &mut Netlink) -> Result<Option<Link>, CniError> {
    let routes = node
        .routes(None)
        .map_err(|e| failed("cannot read the routes", &e))?;
    let is_default = |route: &&Route| {
        route.dst.is_default() && route.table == mooring_api::net::TABLE_MAIN && route.oif.is_some()
    };
    let first = routes
        .iter()
        .filter(is_default)
        .min_by_key(|route| (route.family(), route.metric.unwrap_or(0)));
    match first.and_then(|route| route.oif) {
        Some(index) => node
            .link_at(index)
            .map_err(|e| failed("cannot look for the master", &e)),
        None => Ok(None),
    }
}

/// Lets go of what this attachment holds on the node.
pub(crate) fn let_go(call: &Call, node: &mut Netlink) -> Result<(), CniError> {
    vlans(call)
        .release(node, call.container(), call.ifname())
        .map_err(|e| failed("cannot let go of the master", &e))
}

/// One try of ADD between the master and the announcement; it undoes what it made.
struct Attempt<'a> {
    call: &'a Call<'a>,
    pod: &'a Netns,
    inside: &'a mut Netlink,
    /// The node's socket; `None` when the master is in the pod.
    maker: Option<&'a mut Netlink>,
    probe: Probe,
}

impl Attempt<'_> {
    fn run(
        &mut self,
        master: &Link,
        plan: &dyn Fn(&Link) -> Result<NewLink, CniError>,
        given: Option<CniResult>,
    ) -> Result<(Link, CniResult), CniError> {
        let wanted = plan(master)?;
        let call = self.call;
        // Our own IPAM needs no interface, so an exhausted pool costs no link. A foreign one may: dhcp asks through it.
        let early = match given {
            Some(given) => Some(given),
            None if is_own_ipam(call) => call.ipam_add()?,
            None => None,
        };
        fault::point("child-addressed");
        let has_early = early.is_some();
        let made = self.make(wanted);
        fault::point("child-made");
        let link = made.map_err(|error| undo_if(call, has_early, error))?;
        match self.finish(&link, early) {
            Ok(result) => Ok((link, result)),
            Err((error, has_addresses)) => {
                let removed = self.inside.apply(&[Change::DelLink(link.index)]);
                let error = match removed {
                    Err(e) if !e.is_absent() => {
                        error.with_details(format!("and {} stays in the pod: {e}", link.name))
                    }
                    _ => error,
                };
                Err(undo_if(call, has_addresses, error))
            }
        }
    }

    /// Addresses, probe, configuration, announcement. With an error, whether there are addresses to give back.
    fn finish(
        &mut self,
        link: &Link,
        early: Option<CniResult>,
    ) -> Result<CniResult, (CniError, bool)> {
        let call = self.call;
        let found = match early {
            Some(early) => Some(early),
            None => call.ipam_add().map_err(|e| (e, false))?,
        };
        let has_addresses = found.is_some();
        let mut result = found.unwrap_or_default();
        result.interfaces = vec![Interface {
            name: link.name.clone(),
            mac: link.mac.map(|mac| mac.to_string()),
            mtu: Some(link.mtu),
            sandbox: Some(call.request.sandbox()),
            ..Interface::default()
        }];
        for ip in &mut result.ips {
            ip.interface = Some(0);
        }
        if !call.config().dns.is_empty() {
            result.dns = call.config().dns.clone();
        }
        let outcome = self.settle(link, &result);
        outcome.map(|()| result).map_err(|e| (e, has_addresses))
    }

    fn settle(&mut self, link: &Link, result: &CniResult) -> Result<(), CniError> {
        let name = link.name.as_str();
        let addresses: Vec<IpAddr> = result.ips.iter().map(|ip| ip.address.addr()).collect();
        if let Probe::Block(bound) = self.probe {
            let up = Change::SetLink {
                index: link.index,
                change: LinkChange::up(),
            };
            let up = self.inside.apply(&[up]);
            up.map_err(|e| failed(format_args!("cannot bring {name} up"), &e))?;
            let heard = probe(self.pod, name, &addresses, bound);
            let heard = heard.map_err(|e| failed("cannot probe the addresses", &e))?;
            if let Some(taken) = heard {
                return Err(CniError::try_again(format!(
                    "address {} is in use: {} answered on {name}",
                    taken.address, taken.by
                ))
                .with_details(
                    "find that host and take the address from it, or give this attachment another one",
                ));
            }
        }
        let settled = is_own_ipam(self.call) || matches!(self.probe, Probe::Block(_));
        let dad = if settled {
            Dad::Settled
        } else {
            Dad::default()
        };
        notify(self.pod, name);
        configure_with(self.pod, self.inside, name, result, Options { dad })?;
        fault::point("child-configured");
        let told = |a: &IpAddr| a.is_ipv4() || settled;
        let told: Vec<IpAddr> = addresses.into_iter().filter(told).collect();
        // An announcement that is not heard costs time, not the attachment.
        if let Err(error) = announce_with(self.pod, self.inside, name, &told) {
            self.call.log(format_args!("{error}"));
        }
        Ok(())
    }

    /// Makes the link under its final name, or under another one and renames it.
    fn make(&mut self, wanted: NewLink) -> Result<Link, CniError> {
        let name = self.call.ifname();
        let cannot = |e: &NetlinkError| failed(format_args!("cannot make {name}"), e);
        let mut first = wanted.clone();
        name.clone_into(&mut first.name);
        let mut made = self.make_as(first.clone());
        if let Err(error) = &made
            && error.is_present()
            && self.clear(name, &wanted.kind)?
        {
            made = self.make_as(first);
        }
        match made {
            Ok(()) => {}
            Err(error) if error.is_present() => self.make_and_rename(wanted, &error)?,
            Err(error) => return Err(cannot(&error)),
        }
        let link = self.inside.link(name).map_err(|e| cannot(&e))?;
        link.ok_or_else(|| CniError::internal(format!("{name} vanished while it was made")))
    }

    fn make_and_rename(
        &mut self,
        mut wanted: NewLink,
        first: &NetlinkError,
    ) -> Result<(), CniError> {
        let name = self.call.ifname();
        let cannot = |e: &NetlinkError| failed(format_args!("cannot make {name}"), e);
        let temporary = temporary_name(self.call);
        let kind = wanted.kind.clone();
        self.clear(&temporary, &kind)?;
        wanted.name.clone_from(&temporary);
        match self.make_as(wanted) {
            // Not the name, then: a VLAN of the master, or a passthru child, is there only once.
            Err(error) if error.is_present() => return Err(cannot(first).with_details(once(&kind))),
            made => made.map_err(|e| cannot(&e))?,
        }
        fault::point("child-made-temporarily");
        let seen = self.inside.link(&temporary).map_err(|e| cannot(&e))?;
        let Some(link) = seen else {
            return Err(cannot(first));
        };
        let rename = Change::SetLink {
            index: link.index,
            change: LinkChange {
                name: Some(name.to_owned()),
                ..LinkChange::default()
            },
        };
        self.inside.apply(&[rename]).map_err(|e| {
            let _ = self.inside.apply(&[Change::DelLink(link.index)]);
            cannot(&e)
        })
    }

    fn make_as(&mut self, link: NewLink) -> Result<(), NetlinkError> {
        match &mut self.maker {
            Some(node) => node.apply(&[Change::NewLinkIn {
                link,
                netns: Some(self.pod),
                peer: None,
            }]),
            None => self.inside.apply(&[Change::NewLink(link)]),
        }
    }

    /// Removes what an earlier ADD of this attachment left in the pod; says whether there was something. Another kind of link
    /// under that name is somebody else's.
    fn clear(&mut self, name: &str, kind: &LinkKind) -> Result<bool, CniError> {
        let seen = self
            .inside
            .link(name)
            .map_err(|e| failed("cannot look into the pod", &e))?;
        let Some(link) = seen else {
            return Ok(false);
        };
        if link.kind.word() != kind.word() {
            return Err(CniError::env(format!(
                "CNI_IFNAME: {name} exists in the container already and is no {}",
                kind.word()
            )));
        }
        match self.inside.apply(&[Change::DelLink(link.index)]) {
            Err(error) if !error.is_absent() => {
                Err(failed(format_args!("cannot replace {name}"), &error))
            }
            _ => Ok(true),
        }
    }
}

/// What a second one of a kind means.
fn once(kind: &LinkKind) -> String {
    match kind {
        LinkKind::Vlan { id, .. } => format!(
            "the master's VLAN {id} is in a pod or on the node already, and there is one of each; pods that share a VLAN use \
             macvlan or ipvlan with master <nic>.{id}"
        ),
        _ => String::new(),
    }
}

fn undo_if(call: &Call, has_addresses: bool, error: CniError) -> CniError {
    if has_addresses && call.config().ipam.is_some() {
        call.undo_ipam(error)
    } else {
        error
    }
}

/// Whether the addresses come from an IPAM plugin of this program. It needs no interface to ask through, and nobody else was
/// given the same addresses, so that duplicate detection would only cost time.
fn is_own_ipam(call: &Call) -> bool {
    let name = call.config().ipam_type();
    name.and_then(find)
        .is_some_and(|entry| entry.kind == Kind::Ipam)
}

/// The kernel tells neighbours by itself when the MAC changes later or the link comes back. Kernels without IPv6 lack half of
/// it, and nothing depends on it.
fn notify(pod: &Netns, name: &str) {
    let _ = pod.run(|| {
        let _ = sysctl::write_here(&format!("net/ipv4/conf/{name}/arp_notify"), "1");
        let _ = sysctl::write_here(&format!("net/ipv6/conf/{name}/ndisc_notify"), "1");
    });
}

/// The name under which a child is made before it is renamed: always the same for an attachment, so that a DEL after a crash
/// finds it.
fn temporary_name(call: &Call) -> String {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let bytes = call
        .container()
        .bytes()
        .chain([b':'])
        .chain(call.ifname().bytes());
    format!("moor{:08x}", bytes.fold(0x811c_9dc5, step))
}

/// Removes the child and lets go of the master; collects what fails and goes on. Never looks at the master.
pub(crate) fn del(call: &Call, word: &str, others: &mut Vec<CniError>) {
    // A foreign plugin may say goodbye through the interface, as dhcp does. With our own nobody is given the address while the
    // interface still answers for it.
    let first = (!is_own_ipam(call)).then(|| call.ipam_del());
    fault::point("child-released-first");
    let removed = remove(call, word);
    fault::point("child-removed");
    let released = first.unwrap_or_else(|| call.ipam_del());
    fault::point("child-released");
    others.extend(removed.err());
    others.extend(released.err());
    let gone = open_node().and_then(|mut node| let_go(call, &mut node));
    if let Err(error) = gone {
        others.push(error);
    }
}

fn remove(call: &Call, word: &str) -> Result<(), CniError> {
    let Some(path) = call.request.netns.as_deref() else {
        return Ok(());
    };
    let pod = match Netns::open(path) {
        Err(error) if error.is_gone() => return Ok(()),
        pod => pod.map_err(|e| CniError::netns(path.display(), &e))?,
    };
    let mut inside = open_netlink(&pod)?;
    for name in [call.ifname(), &temporary_name(call)] {
        let seen = inside
            .link(name)
            .map_err(|e| failed("cannot look into the pod", &e))?;
        let Some(link) = seen.filter(|link| link.kind.word() == word) else {
            continue;
        };
        match inside.apply(&[Change::DelLink(link.index)]) {
            Err(error) if !error.is_absent() => {
                return Err(failed(format_args!("cannot remove {name}"), &error));
            }
            // The other name is only there when this one is not.
            _ => return Ok(()),
        }
    }
    Ok(())
}

/// Whether the attachment is what `prevResult` says; `is_right` judges the link, which is returned.
pub(crate) fn check(
    call: &Call,
    keys: &Keys,
    is_right: &dyn Fn(&Link) -> Result<(), CniError>,
) -> Result<(), CniError> {
    let prev = call.prev()?;
    let name = call.ifname();
    let pod = call.open_netns()?;
    let here = |i: &&Interface| i.name == name && i.sandbox.is_some();
    let Some(listed) = prev.interfaces.iter().find(here) else {
        let why = format!("it lists no interface {name} in the container");
        return Err(CniError::config("prevResult", why));
    };
    if listed.sandbox.as_deref() != Some(call.request.sandbox().as_str()) {
        let why = format!("its {name} is in another namespace");
        return Err(CniError::config("prevResult", why));
    }
    let mut inside = open_netlink(&pod)?;
    let seen = inside
        .link(name)
        .map_err(|e| failed("cannot look into the pod", &e))?;
    let Some(link) = seen else {
        return Err(CniError::internal(format!(
            "{name} is not in the container"
        )));
    };
    is_right(&link)?;
    if let Some(mac) = listed.mac.as_deref().and_then(|m| m.parse::<Mac>().ok())
        && link.mac != Some(mac)
    {
        let now = link
            .mac
            .map_or_else(|| "none".to_owned(), |m| m.to_string());
        return Err(CniError::internal(format!(
            "{name} had MAC {mac} and has {now}"
        )));
    }
    if keys.link_in_container {
        master_inside(&mut inside, &keys.master)?;
    } else {
        check_master(keys, &link)?;
    }
    check_configured(&pod, name, prev)?;
    call.ipam_check()
}

/// Whether the child is still that of the master. Where the configuration names none, the default route or the earlier plugin
/// that did may say something else today, and the attachment is none the worse for it.
fn check_master(keys: &Keys, child: &Link) -> Result<(), CniError> {
    if keys.master.is_empty() {
        return Ok(());
    }
    let mut node = open_node()?;
    let found = node
        .link(&keys.master)
        .map_err(|e| failed("cannot look for the master", &e))?;
    let why = match found {
        None => "is no longer there for",
        Some(master) if child.parent.is_some_and(|index| index != master.index) => {
            "is another link than the one below"
        }
        Some(_) => return Ok(()),
    };
    Err(CniError::internal(format!(
        "master {} {why} {}",
        keys.master, child.name
    )))
}

/// Whether an ADD could find its master now, and addresses.
pub(crate) fn status(call: &Call, keys: &Keys) -> Result<(), CniError> {
    keys.probe()?;
    if !keys.link_in_container {
        let mut node = open_node()?;
        let mut is_there = |name: &str| {
            let link = node
                .link(name)
                .map_err(|e| failed("cannot look for the master", &e));
            link.map(|link| link.is_some())
        };
        let found = match keys.master.as_str() {
            "" => default_master(&mut node)?.is_some(),
            name => {
                is_there(name)?
                    || match mooring_host::vlan_of(name) {
                        Some((nic, _)) => is_there(nic)?,
                        None => false,
                    }
            }
        };
        if !found {
            let master = match keys.master.as_str() {
                "" => "interface of a default route",
                name => name,
            };
            return Err(CniError::unavailable(format!(
                "this node has no {master}, which the network {:?} takes as its master",
                call.config().name
            )));
        }
    }
    call.ipam_status()
}

/// What no valid attachment holds goes, here and at the IPAM plugin.
pub(crate) fn gc(call: &Call, others: &mut Vec<CniError>) {
    if let Err(error) = call.ipam_gc() {
        others.push(error);
    }
    let valid = is_valid(call);
    let collected = open_node().and_then(|mut node| {
        vlans(call)
            .collect(&mut node, &call.config().name, &valid)
            .map_err(|e| failed("cannot let go of masters", &e))
    });
    if let Err(error) = collected {
        others.push(error);
    }
}

/// Whether a GC must leave an attachment alone.
pub(crate) fn is_valid<'a>(call: &Call<'a>) -> impl Fn(&str, &str) -> bool + use<'a> {
    let valid = &call.config().valid;
    move |container, ifname| {
        valid
            .iter()
            .any(|a| a.container == container && a.ifname == ifname)
    }
}

/// All failures as one.
pub(crate) fn all(errors: Vec<CniError>) -> Result<(), CniError> {
    CniError::all(errors).map_or(Ok(()), Err)
}

/// The addresses of a result.
pub(crate) fn addresses(result: &CniResult) -> Vec<HostCidr> {
    result.ips.iter().map(|ip| ip.address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_mtu_lies_between_zero_and_the_masters() {
        let keys = |mtu| Keys {
            mtu,
            ..Keys::default()
        };
        assert_eq!(keys(0).mtu(Some(1500)).unwrap(), None);
        assert_eq!(keys(1500).mtu(Some(1500)).unwrap(), Some(1500));
        assert_eq!(keys(9000).mtu(None).unwrap(), Some(9000));
        for (mtu, most) in [
            (1501, Some(1500)),
            (-1, Some(1500)),
            (-1, None),
            (1 << 40, None),
        ] {
            let error = keys(mtu).mtu(most).unwrap_err();
            assert_eq!(error.code, CniError::CONFIG, "{mtu}");
            assert!(error.msg.contains(&mtu.to_string()), "{}", error.msg);
        }
    }
}
