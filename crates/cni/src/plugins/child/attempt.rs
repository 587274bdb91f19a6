//! One try of ADD between the master and the announcement; it undoes what it made.
//!
//! Called by [`super::add`]. Easy to get wrong: `EEXIST` has three meanings. The name is taken in the pod by what an earlier ADD
//! of the same attachment left behind (removed, made again), in the pod by somebody else (an error), or on the node, where
//! older kernels make the link first (made under another name and renamed in the pod). And it is not the only answer that a
//! leftover gives: those kernels do not see its name, and say of a second passthru child that its arguments are wrong (`EINVAL`).

use mooring_api::net::{Link, LinkChange, LinkKind, NewLink};
use mooring_attach::cni::{CniError, CniResult, Interface};
use mooring_host::{Change, Netlink, NetlinkError, Netns, fault};

use super::{failed, temporary_name};
use crate::call::Call;
use crate::configure::{NOTIFY, Options, configure};

/// One try of ADD between the master and the announcement; it undoes what it made.
pub(super) struct Attempt<'a> {
    pub(super) call: &'a Call<'a>,
    pub(super) pod: &'a Netns,
    pub(super) inside: &'a mut Netlink,
    /// The node's socket; `None` when the master is in the pod.
    pub(super) maker: Option<&'a mut Netlink>,
}

impl Attempt<'_> {
    pub(super) fn run(
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
            None if call.has_own_ipam() => call.ipam_add()?,
            None => None,
        };
        fault::point("child-addressed");
        let has_early = early.is_some();
        let kind = wanted.kind.clone();
        let made = self.make(wanted);
        fault::point("child-made");
        let link = made.map_err(|error| {
            // What an earlier ADD made may still answer for its address, which is this one's too: DEL gives that back.
            let free = has_early && !self.is_left(&kind);
            undo_if(call, free, error)
        })?;
        match self.finish(master, &link, early) {
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

    /// Addresses, configuration, announcement. With an error, whether there are addresses to give back.
    fn finish(
        &mut self,
        master: &Link,
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
        result.assign(0);
        if !call.config().dns.is_empty() {
            result.dns = call.config().dns.clone();
        }
        let outcome = self.settle(master, link, &result);
        outcome.map(|()| result).map_err(|e| (e, has_addresses))
    }

    fn settle(&mut self, master: &Link, link: &Link, result: &CniResult) -> Result<(), CniError> {
        // A child that shares its master's MAC gets an ARP answer only when it has the address already; the master gets all of them.
        // Without ARP (l3) it has nobody to ask.
        let shares = matches!(link.kind, LinkKind::Ipvlan { .. }) && link.arp;
        let node = match self.maker {
            Some(_) if shares => {
                Some(Netns::current().map_err(|e| failed("cannot look at the node", &e))?)
            }
            _ => None,
        };
        let home = node.as_ref().unwrap_or(self.pod);
        let options = Options {
            below: shares.then_some((home, master.name.as_str())),
            sysctls: &NOTIFY,
            ..Options::of(self.call)?
        };
        let ready = configure(self.pod, self.inside, link, result, options)?;
        fault::point("child-configured");
        ready.tell(self.call, self.pod, self.inside);
        Ok(())
    }

    /// Makes the link under its final name, or under another one and renames it.
    fn make(&mut self, wanted: NewLink) -> Result<Link, CniError> {
        let name = self.call.ifname();
        let cannot = |e: &NetlinkError| failed(format_args!("cannot make {name}"), e);
        let mut first = wanted.clone();
        name.clone_into(&mut first.name);
        let mut made = self.make_as(first.clone());
        // Whatever the kernel says: a leftover may be in the way by more than its name.
        if made.is_err() && self.clear_all(&wanted.kind)? {
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

    /// Removes what an earlier ADD of this attachment left in the pod, under either name; says whether there was something.
    fn clear_all(&mut self, kind: &LinkKind) -> Result<bool, CniError> {
        let named = self.clear(self.call.ifname(), kind)?;
        let temporary = self.clear(&temporary_name(self.call), kind)?;
        Ok(named || temporary)
    }

    /// Whether the interface of an earlier ADD is in the pod, or nobody can tell.
    fn is_left(&mut self, kind: &LinkKind) -> bool {
        let name = self.call.ifname();
        match self.inside.link(name) {
            Ok(seen) => seen.is_some_and(|link| is_own(&link, name, kind)),
            Err(_) => true,
        }
    }

    /// Removes what an earlier ADD of this attachment left under that name; says whether there was something. Another kind of
    /// link is somebody else's.
    fn clear(&mut self, name: &str, kind: &LinkKind) -> Result<bool, CniError> {
        let seen = self
            .inside
            .link(name)
            .map_err(|e| failed("cannot look into the pod", &e))?;
        let Some(link) = seen else {
            return Ok(false);
        };
        if !is_own(&link, name, kind) {
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

/// Whether a link that was found by that name is one that we made.
fn is_own(link: &Link, name: &str, kind: &LinkKind) -> bool {
    // The kernel finds a link by its further names too; under such a one it is not ours.
    link.kind.word() == kind.word() && link.name == name
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

#[cfg(test)]
mod tests {
    use mooring_attach::cni::{Env, Request, Verb};
    use mooring_host::Paths;
    use mooring_testkit::Sandbox;

    use super::*;

    /// The request of an ADD that a runtime would make.
    fn request(pod: &str) -> Request {
        let env = [
            ("CNI_CONTAINERID", "c1"),
            ("CNI_NETNS", pod),
            ("CNI_IFNAME", "net1"),
            ("CNI_PATH", "/nonexistent"),
        ];
        let env = env.map(|(name, value)| (name.into(), value.into()));
        let invocation = Env::new(env).call(Verb::Add).unwrap();
        let config = br#"{"cniVersion": "1.1.0", "name": "net", "type": "macvlan"}"#;
        Request::new(invocation, config).unwrap()
    }

    /// Kernels that make a link on the node first are not at hand; the way they need is walked by itself.
    #[test]
    fn a_child_made_under_another_name_ends_under_its_own_and_leaves_nothing() {
        let Some(sandbox) = Sandbox::new("a child renamed in the pod") else {
            return;
        };
        let (node, pod) = (sandbox.netns("node"), sandbox.netns("pod"));
        node.ip("link add eth1 type veth peer name away");
        let mut maker = Netns::open(node.path()).unwrap().netlink().unwrap();
        let netns = Netns::open(pod.path()).unwrap();
        let mut inside = netns.netlink().unwrap();
        let request = request(&pod.path());
        let paths = Paths::under(std::path::Path::new("/nonexistent"));
        let call = Call {
            request: &request,
            paths: &paths,
        };
        let master = maker.link("eth1").unwrap().unwrap();
        let kind = LinkKind::Macvlan {
            mode: mooring_api::net::MacvlanMode::Bridge,
            broadcast_queue: None,
        };
        let wanted = NewLink::new("", kind).on(master.index);
        let first = maker.apply(&[Change::NewLink(NewLink::veth("eth1", "x"))]);
        let first = first.unwrap_err();
        assert!(first.is_present(), "{first}");
        let mut attempt = Attempt {
            call: &call,
            pod: &netns,
            inside: &mut inside,
            maker: Some(&mut maker),
        };
        // What a killed ADD left behind does not matter.
        let mut left = wanted.clone();
        left.name = temporary_name(&call);
        attempt.make_as(left).unwrap();
        attempt.make_and_rename(wanted.clone(), &first).unwrap();
        let names = || pod.ip("-o link show type macvlan");
        assert!(
            names().contains("net1@") && names().lines().count() == 1,
            "{}",
            names()
        );
        // The name is taken after all: nothing is left under the other one.
        let error = attempt.make_and_rename(wanted.clone(), &first).unwrap_err();
        assert!(error.msg.contains("net1"), "{error}");
        assert_eq!(names().lines().count(), 1, "{}", names());
        // The one that is there keeps its address; another kind of link has none of ours.
        assert!(attempt.is_left(&wanted.kind));
        assert!(!attempt.is_left(&LinkKind::Dummy));
        assert!(attempt.clear_all(&wanted.kind).unwrap());
        assert!(!attempt.is_left(&wanted.kind));
    }
}
