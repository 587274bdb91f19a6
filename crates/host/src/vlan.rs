//! VLAN sub-interfaces of the node that attachments ask for by name: `master: eth1.100`.
//!
//! Called by macvlan, ipvlan, vlan and whoever else takes a master. Where the sub-interface is not there and its NIC is, it is made,
//! and it goes with its last user; the users are counted by `shared`.
//!
//! ```text
//!  hold:     lock ─ note the user ─ make the link, marked, up        in one netlink send
//!  release:  lock ─ nobody else? remove the link ─ take the note away
//! ```
//!
//! The mark is the link's alias. A link without it is somebody else's (made before us, or by hand): it is used and never
//! counted, never removed. An administrator who wants to keep one of ours changes its alias.
//!
//! Easy to get wrong: two networks may ask for one sub-interface at once, and a late DEL may come between two ADDs. Everything
//! that decides is read again under the object's lock.

use std::path::PathBuf;

use mooring_api::net::{Link, LinkChange, LinkKind, NewLink, VlanProtocol};
use mooring_api::{IfName, VlanId};

use crate::shared::{Object, Objects, SharedError, User, make_marked};
use crate::{Change, Netlink, NetlinkError, fault};

/// The alias of a sub-interface that we made.
pub const MARK: &str = "mooring.dev/vlan";

/// The sub-interfaces of this node.
#[derive(Clone, Debug)]
pub struct Vlans {
    objects: Objects,
}

/// Why a master is not to be had, or not to be given back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VlanError {
    /// There is no such link, and its name is not that of a sub-interface.
    #[error("there is no link {name} on this node")]
    Absent {
        /// The link.
        name: String,
    },
    /// The NIC is not there.
    #[error("cannot make {name}: there is no link {parent} on this node")]
    ParentAbsent {
        /// The sub-interface.
        name: String,
        /// The NIC.
        parent: String,
    },
    /// The NIC is down.
    #[error("cannot use {name}: {parent} is down; bring it up first")]
    ParentDown {
        /// The sub-interface.
        name: String,
        /// The NIC.
        parent: String,
    },
    /// The kernel refused to make it.
    #[error(
        "cannot make the VLAN sub-interface {name}; if its NIC has that VLAN under another name, take that name as master"
    )]
    Make {
        /// The sub-interface.
        name: String,
        /// Why.
        source: NetlinkError,
    },
    /// Reading or removing it.
    #[error("cannot {doing} the VLAN sub-interface {name}")]
    Netlink {
        /// What was being done.
        doing: &'static str,
        /// The sub-interface.
        name: String,
        /// Why.
        source: NetlinkError,
    },
    /// The notes of its users.
    #[error("cannot tell who uses a VLAN sub-interface")]
    Users(#[from] SharedError),
}

impl Vlans {
    /// Their users are noted under `root`, which a reboot should empty.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            objects: Objects::new(root),
        }
    }

    /// The link called `name`, for `user`. A sub-interface `<nic>.<vlan>` that is not there is made first; one of ours is
    /// kept until `user` releases it.
    pub fn hold(&self, node: &mut Netlink, name: &str, user: &User) -> Result<Link, VlanError> {
        if let Some(link) = look(node, name)?
            && !is_ours(&link)
        {
            return Ok(link);
        }
        let Some((nic, id)) = parse(name) else {
            return Err(VlanError::Absent {
                name: name.to_owned(),
            });
        };
        let Some(parent) = look(node, nic)? else {
            return Err(VlanError::ParentAbsent {
                name: name.to_owned(),
                parent: nic.to_owned(),
            });
        };
        if !parent.up {
            return Err(VlanError::ParentDown {
                name: name.to_owned(),
                parent: nic.to_owned(),
            });
        }
        let object = self.objects.lock(name)?;
        // Again under the lock: its last user may just have left, or somebody may have made it.
        match look(node, name)? {
            Some(link) if !is_ours(&link) => return Ok(link),
            Some(link) => {
                object.add(user)?;
                fault::point("vlan-user-noted");
                return ensure_up(node, link);
            }
            None => {}
        }
        object.add(user)?;
        fault::point("vlan-user-noted");
        let made = make(node, name, &parent, id);
        if made.is_err() {
            // Nothing is there to be kept; the error that counts is the kernel's.
            let _ = leave(node, &object, name, (&user.container, &user.ifname));
        }
        fault::point("vlan-made");
        made
    }

    /// Ends what an attachment holds, whatever it is called; the sub-interface goes with the last user. Nothing held is
    /// success.
    pub fn release(
        &self,
        node: &mut Netlink,
        container: &str,
        ifname: &str,
    ) -> Result<(), VlanError> {
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
    ) -> Result<(), VlanError> {
        let leave =
            |object: &Object, name: &str, user: (&str, &str)| leave(node, object, name, user);
        self.objects.collect(network, valid, leave)
    }
}

/// `eth1.100` as its NIC and its VLAN. The number has no zero in front: `eth1.0100` is another name.
pub fn parse(name: &str) -> Option<(&str, VlanId)> {
    name.parse::<IfName>().ok()?;
    let (nic, number) = name.rsplit_once('.')?;
    let id = VlanId::try_from(number.parse::<u16>().ok()?).ok()?;
    (!nic.is_empty() && id.to_string() == number).then_some((nic, id))
}

/// Whether we made it.
fn is_ours(link: &Link) -> bool {
    matches!(link.kind, LinkKind::Vlan { .. }) && link.alias.as_deref() == Some(MARK)
}

fn look(node: &mut Netlink, name: &str) -> Result<Option<Link>, VlanError> {
    node.link(name).map_err(|source| VlanError::Netlink {
        doing: "look for",
        name: name.to_owned(),
        source,
    })
}

fn make(node: &mut Netlink, name: &str, nic: &Link, id: VlanId) -> Result<Link, VlanError> {
    let kind = LinkKind::Vlan {
        id: id.get(),
        protocol: VlanProtocol::Dot1q,
    };
    let wish = NewLink::new(name, kind).on(nic.index);
    let set = LinkChange {
        alias: Some(MARK.to_owned()),
        up: Some(true),
        ..LinkChange::default()
    };
    let made = make_marked(node, wish, set).map_err(|source| VlanError::Make {
        name: name.to_owned(),
        source,
    })?;
    made.ok_or_else(|| VlanError::Absent {
        name: name.to_owned(),
    })
}

/// Somebody may have taken it down; its children would have no carrier.
fn ensure_up(node: &mut Netlink, mut link: Link) -> Result<Link, VlanError> {
    if !link.up {
        let up = Change::SetLink {
            index: link.index,
            change: LinkChange::up(),
        };
        node.apply(&[up]).map_err(|source| VlanError::Netlink {
            doing: "bring up",
            name: link.name.clone(),
            source,
        })?;
        link.up = true;
    }
    Ok(link)
}

/// Takes a user away, and before it the link when nobody else is left.
fn leave(
    node: &mut Netlink,
    object: &Object,
    name: &str,
    (container, ifname): (&str, &str),
) -> Result<(), VlanError> {
    if !object.has_others(container, ifname)?
        && let Some(link) = look(node, name)?
        && is_ours(&link)
    {
        match node.apply(&[Change::DelLink(link.index)]) {
            Err(source) if !source.is_absent() => {
                return Err(VlanError::Netlink {
                    doing: "remove",
                    name: name.to_owned(),
                    source,
                });
            }
            _ => {}
        }
        fault::point("vlan-removed");
    }
    object.remove(container, ifname)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sub_interface_is_a_nic_a_dot_and_a_vlan() {
        let id = |n: u16| VlanId::try_from(n).unwrap();
        assert_eq!(parse("eth1.100"), Some(("eth1", id(100))));
        assert_eq!(parse("a.b.4094"), Some(("a.b", id(4094))));
        for other in [
            "eth1",
            "eth1.",
            ".100",
            "eth1.0",
            "eth1.4095",
            "eth1.0100",
            "eth1.+1",
            "eth1.1a",
            "",
            "a23456789012345.1",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
