//! An interface that is the child of a link of the node: what macvlan, ipvlan and vlan have in common.
//!
//! ```text
//!  ADD:  check ─ hold the master ─ addresses ─ make the child in the pod ─ probe ─ configure ─ announce
//!  DEL:  remove the child ─ release addresses ─ let go of the master      each one, whatever became of the others
//! ```
//!
//! Easy to get wrong: what is held on the node (a sub-interface, a shim) is let go by every failure of ADD and by DEL, whatever
//! the configuration says by then.

mod after;
mod attempt;

use mooring_api::HostCidr;
use mooring_api::net::{Link, NewLink, Route};
use mooring_attach::cni::{CniError, CniResult};
use mooring_host::{Change, Netlink, Netns, User, VlanError, Vlans};
use serde::Deserialize;

pub(crate) use self::after::{check, del, gc, is_valid, status};
use self::attempt::Attempt;
use crate::call::Call;

/// The keys that all three plugins have.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Keys {
    /// The link below; empty for the default route's, in the pod where the master is there.
    pub(crate) master: String,
    /// 0 for the master's.
    mtu: i64,
    /// The master is in the pod.
    pub(crate) link_in_container: bool,
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
    Vlans::new(call.paths.own.join("vlan"))
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
    let pod = call.open_netns()?;
    let mut inside = open_netlink(&pod)?;
    let mut node = open_node()?;
    let master = if keys.link_in_container {
        master_inside(call, &mut inside, &keys.master)?
    } else {
        hold_master(call, &mut node, keys, &pod)?
    };
    let mut attempt = Attempt {
        call,
        pod: &pod,
        inside: &mut inside,
        maker: (!keys.link_in_container).then_some(&mut node),
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
        VlanError::Absent { .. } | VlanError::ParentAbsent { .. } => {
            CniError::config("master", &error)
        }
        VlanError::ParentDown { .. } => CniError::try_again(error.to_string()),
        _ => failed(format_args!("master {}", keys.master), &error),
    })
}

/// The master in the pod; where none is named, the link of the pod's default route.
fn master_inside(call: &Call, inside: &mut Netlink, name: &str) -> Result<Link, CniError> {
    let mut find = |name: &str| {
        let link = inside.link(name);
        link.map_err(|e| failed("cannot look for the master", &e))
    };
    let own = call.ifname();
    if name.is_empty() {
        // What an earlier ADD of this attachment left behind may have a default route too.
        let left = find(own)?.filter(|link| link.name == own);
        return default_link(inside, left.map(|link| link.index))?.ok_or_else(|| {
            CniError::config(
                "master",
                "missing, and the container has no default route to take its interface from",
            )
        });
    }
    match find(name)? {
        None => {
            let why = format!("there is no link {name} in the container");
            Err(CniError::config("master", why))
        }
        // It would be taken for a leftover, and be removed.
        Some(link) if link.name == own => {
            let why = format!("{own} is the interface itself, by CNI_IFNAME");
            Err(CniError::config("master", why))
        }
        Some(link) => Ok(link),
    }
}

/// The link of the node's first default route, IPv4 first, as the reference plugins choose it.
pub(crate) fn default_master(node: &mut Netlink) -> Result<Option<Link>, CniError> {
    default_link(node, None)
}

/// The link of the first default route of the socket's namespace that leaves by another link than `but`.
fn default_link(netlink: &mut Netlink, but: Option<u32>) -> Result<Option<Link>, CniError> {
    let routes = netlink
        .routes(None)
        .map_err(|e| failed("cannot read the routes", &e))?;
    let is_default = |route: &&Route| {
        route.dst.is_default()
            && route.table == mooring_api::net::TABLE_MAIN
            && route.oif.is_some()
            && route.oif != but
    };
    let first = routes
        .iter()
        .filter(is_default)
        .min_by_key(|route| (route.family(), route.metric.unwrap_or(0)));
    match first.and_then(|route| route.oif) {
        Some(index) => netlink
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
