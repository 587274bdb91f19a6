//! Finds devices: what a selector names on the host, and where the device of a record is now.
//!
//! Easy to get wrong: after a namespace ends, its devices are nowhere for a moment, until the kernel's clean-up has run.

use std::collections::BTreeSet;
use std::path::PathBuf;

use mooring_api::net::{Link, LinkKind};

use super::{DeviceError, Mover, Selector, refused};
use crate::pci::{Bdf, Devices};
use crate::record::decide::{Facts, Place};
use crate::record::{Identity, Record};
use crate::{Netlink, Netns};

/// A device in the host's namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its link.
    pub link: Link,
    /// Its PCI function.
    pub pci: Option<Bdf>,
    /// Which port of its function it is, from 0.
    pub port: u32,
}

impl Found {
    /// What tells it from others.
    pub fn identity(&self) -> Identity {
        Identity {
            port_number: self.port,
            ..Identity::of(&self.link, self.pci.clone())
        }
    }
}

/// What a selector names in the namespace of `host`. A name wins over what sysfs shows of another namespace.
pub fn look_up(
    selector: &Selector,
    host: &mut Netlink,
    devices: &Devices,
) -> Result<Option<Found>, DeviceError> {
    let asked = selector.to_string();
    let sysfs = |source| DeviceError::Sysfs {
        what: asked.clone(),
        source,
    };
    let names = match selector {
        Selector::Name(name) => vec![name.clone()],
        Selector::Mac(_) => Vec::new(),
        Selector::Path(path) => devices.interfaces_of_path(path).map_err(sysfs)?,
        Selector::Pci(bdf) => devices.interfaces_of_pci(bdf).map_err(sysfs)?,
        Selector::Auxiliary(name) => devices.interfaces_of_auxiliary(name).map_err(sysfs)?,
    };
    let mut link = None;
    for name in names {
        link = host.link(&name).map_err(refused("look for", &asked))?;
        if link.is_some() {
            break;
        }
    }
    // sysfs may be of another namespace; the kernel's own word over netlink is not.
    if link.is_none() && !matches!(selector, Selector::Name(_)) {
        let links = host.links().map_err(refused("look for", &asked))?;
        link = among(selector, links);
    }
    Ok(link.map(|link| {
        // sysfs has nothing to say of what is virtual.
        let hardware = link.kind == LinkKind::Device;
        let shown = || hardware.then(|| devices.pci_of(&link.name)).flatten();
        let pci = match selector {
            Selector::Pci(bdf) => Some(bdf.clone()),
            _ => function_of(link.device.as_deref(), shown),
        };
        let port = if hardware {
            devices.port_of(&link.name)
        } else {
            0
        };
        Found { link, pci, port }
    }))
}

/// The PCI function that is one NIC's alone, by its address on its bus and by what sysfs shows above it.
pub(super) fn function_of(bus: Option<&str>, shown: impl FnOnce() -> Option<Bdf>) -> Option<Bdf> {
    match bus {
        None => shown(),
        // All that its function is.
        Some(bus) if bus.starts_with("virtio") => shown(),
        // Others have a function above them that they share: a card's with its sub-functions, a controller's with what is
        // plugged in.
        Some(bus) => bus.parse().ok(),
    }
}

/// The link that is asked for. A MAC is shared by a NIC and its VLANs: the NIC is meant.
fn among(selector: &Selector, links: Vec<Link>) -> Option<Link> {
    let mut fit: Vec<Link> = links
        .into_iter()
        .filter(|link| {
            let pci = link.device.as_ref().and_then(|bus| bus.parse().ok());
            selector.selects(&Identity::of(link, pci))
        })
        .collect();
    fit.sort_by_key(|link| (link.device.is_none(), link.parent.is_some(), link.index));
    fit.into_iter().next()
}

/// The link among these that is a device. Of several ports of one function, the one with its MAC, then the one with the name that is
/// expected. What is virtual and has neither that name nor its own as alias must be the only one: MACs are not unique
/// (some networks give one to every veth).
pub(super) fn chosen(links: Vec<Link>, device: &Identity, expected: &str) -> Option<Link> {
    let mut fit: Vec<Link> = links.into_iter().filter(|link| device.is(link)).collect();
    let another_mac = |link: &Link| link.permanent_mac != device.permanent_mac;
    let named =
        |link: &Link| link.name == expected || link.alias.as_deref() == Some(device.name.as_str());
    fit.sort_by_key(|link| (another_mac(link), link.name != expected, link.index));
    if !device.is_hardware() && fit.len() > 1 {
        fit.retain(named);
    }
    fit.into_iter().next()
}

/// The link of a device in a socket's namespace, where it should have that name.
pub(super) fn seek(
    netlink: &mut Netlink,
    device: &Identity,
    expected: &str,
) -> Result<Option<Link>, DeviceError> {
    let named = netlink.link(expected);
    let named = named.map_err(refused("look for", &device.name))?;
    // Nearly always. It is the one that would be chosen, and a node with a thousand links need not tell of all.
    let surely = |link: &Link| {
        link.name == expected && device.is(link) && link.permanent_mac == device.permanent_mac
    };
    if let Some(link) = named.filter(surely) {
        return Ok(Some(link));
    }
    let links = netlink.links();
    let links = links.map_err(refused("look for", &device.name))?;
    Ok(chosen(links, device, expected))
}

/// Where a record's device is, with the namespace and the link.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) place: Place,
    pub(super) owner_alive: bool,
    /// The namespace it is in and a socket there, unless that is the host's.
    pub(super) netns: Option<(Netns, Netlink)>,
    pub(super) link: Option<Link>,
}

impl Mover {
    /// Where the device of a record is now.
    pub(super) fn locate(&self, record: &Record) -> Result<Located, DeviceError> {
        let owner = Netns::open(&record.owner.netns).ok();
        let owner = owner.filter(|netns| netns.id() == record.owner.netns_id);
        let owner_alive = owner.is_some();
        let at = |place, netns, link| {
            Ok(Located {
                place,
                owner_alive,
                netns,
                link,
            })
        };
        if !record.has_link() {
            return at(Place::Host, None, None);
        }
        let Record {
            device, owner: had, ..
        } = record;
        if let Some(netns) = owner
            && netns.id() != self.host.id()
        {
            let mut inside = netns.netlink()?;
            if let Some(link) = seek(&mut inside, device, &had.ifname)? {
                return at(Place::Owner, Some((netns, inside)), Some(link));
            }
        }
        if let Some(link) = self.at_home(record)? {
            return at(Place::Host, None, Some(link));
        }
        // Only what is one of its kind on this node is looked for among strangers: every pod may have a link with a MAC that
        // another pod has too.
        if record.device.is_hardware() {
            for netns in self.other_namespaces(record) {
                if let Ok(mut inside) = netns.netlink()
                    && let Ok(Some(link)) = seek(&mut inside, device, &had.ifname)
                {
                    return at(Place::Elsewhere, Some((netns, inside)), Some(link));
                }
            }
        }
        at(Place::Nowhere, None, None)
    }

    /// The facts for a decision.
    pub(super) fn facts(&self, record: &Record, located: &Located, selected: bool) -> Facts {
        let on_bus = record
            .device
            .pci
            .as_ref()
            .is_none_or(|bdf| self.devices.has_pci(bdf));
        Facts {
            same_boot: record.boot == self.boot.id,
            owner_alive: located.owner_alive,
            place: located.place,
            can_return: record.device.is_hardware() && on_bus,
            selected,
        }
    }

    /// The link of a record's device on the host.
    pub(super) fn at_home(&self, record: &Record) -> Result<Option<Link>, DeviceError> {
        let device = &record.device;
        seek(&mut self.host.netlink()?, device, &device.name)
    }

    /// Every other namespace that a path or a process leads to. One with the owner's id is not asked: without its path nobody can tell
    /// the owner's from a stranger's that has the number by now.
    fn other_namespaces(&self, record: &Record) -> Vec<Netns> {
        let mut seen = BTreeSet::from([self.host.id(), record.owner.netns_id]);
        let mut paths: Vec<PathBuf> = Vec::new();
        let names = |dir: &std::path::Path| {
            std::fs::read_dir(dir)
                .into_iter()
                .flatten()
                .filter_map(|entry| Some(entry.ok()?.path()))
        };
        paths.extend(names("/run/netns".as_ref()));
        paths.extend(
            names(&self.proc)
                .filter(|path| {
                    path.file_name()
                        .is_some_and(|n| n.as_encoded_bytes().iter().all(u8::is_ascii_digit))
                })
                .map(|path| path.join("ns/net")),
        );
        let mut found = Vec::new();
        for path in paths {
            if let Ok(netns) = Netns::open(&path)
                && seen.insert(netns.id())
            {
                found.push(netns);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn veth(index: u32, name: &str) -> Link {
        Link {
            index,
            name: name.to_owned(),
            kind: LinkKind::Veth,
            mac: "ee:ee:ee:ee:ee:ee".parse().ok(),
            ..Link::default()
        }
    }

    #[test]
    fn one_mac_on_every_veth_leads_to_none_but_the_named_one() {
        let device = Identity::of(&veth(3, "dev0"), None);
        let others = vec![veth(4, "cali1"), veth(5, "cali2")];
        assert_eq!(chosen(others.clone(), &device, "net1"), None);
        let with = |link: Link| [others.clone(), vec![link]].concat();
        let named = veth(9, "net1");
        assert_eq!(chosen(with(named.clone()), &device, "net1"), Some(named));
        let mut renamed = veth(9, "weird0");
        renamed.alias = Some("dev0".to_owned());
        assert_eq!(
            chosen(with(renamed.clone()), &device, "net1"),
            Some(renamed)
        );
        assert_eq!(
            chosen(vec![veth(9, "x")], &device, "net1"),
            Some(veth(9, "x"))
        );
    }

    #[test]
    fn of_two_ports_of_one_function_the_mac_decides_and_then_the_name() {
        let port = |index, name: &str, mac: &str| Link {
            device: Some("0000:01:00.0".to_owned()),
            permanent_mac: mac.parse().ok(),
            kind: LinkKind::Device,
            ..veth(index, name)
        };
        let (one, two) = ("02:00:00:00:00:01", "02:00:00:00:00:02");
        let device = Identity::of(&port(3, "eth2", two), "0000:01:00.0".parse().ok());
        let links = vec![port(4, "eth1", one), port(5, "net1", two)];
        assert_eq!(chosen(links, &device, "eth2"), Some(port(5, "net1", two)));
        // A VF whose MAC was set by its physical function.
        let links = vec![port(4, "net1", "02:00:00:00:00:a7")];
        assert_eq!(
            chosen(links.clone(), &device, "net1"),
            Some(links[0].clone())
        );
    }
}
