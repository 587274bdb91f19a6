//! What sysfs says about devices: PCI functions, their drivers, their VFs, and the network interfaces that they make.
//!
//! Called by the device lookup ([`crate::device`]) and by whoever sets up a VF. The root is an argument, so a test builds a
//! tree of its own. Easy to get wrong: sysfs shows the interfaces of the network namespace in which *it was mounted*. A NIC
//! that is in a pod has an empty `net` directory here; netlink in the pod's namespace finds it (`device::find`).

use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use mooring_api::BadValue;
use serde::{Deserialize, Serialize};

use crate::sysfs::Sysfs;

/// Drivers that hand the device to a program in user space: there is no interface to move.
const USERSPACE: [&str; 3] = ["vfio-pci", "uio_pci_generic", "igb_uio"];

/// The address of a PCI function, written `0000:3b:00.1`. Also the name of its directory, so it is parsed at the door.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Bdf(String);

impl Bdf {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Bdf {
    type Err = BadValue;

    fn from_str(s: &str) -> Result<Self, BadValue> {
        let bad = || BadValue::new("a PCI address", s, "write it like 0000:3b:00.1");
        let hex = |part: &str, len: std::ops::RangeInclusive<usize>| {
            len.contains(&part.len()) && part.bytes().all(|b| b.is_ascii_hexdigit())
        };
        let (rest, function) = s.rsplit_once('.').ok_or_else(bad)?;
        let mut parts = rest.splitn(3, ':');
        let (domain, bus, device) = (parts.next(), parts.next(), parts.next());
        // A domain behind an Intel VMD bridge has five digits.
        let well = domain.is_some_and(|d| hex(d, 4..=8))
            && bus.is_some_and(|b| hex(b, 2..=2))
            && device.is_some_and(|d| hex(d, 2..=2))
            && hex(function, 1..=1);
        well.then(|| Self(s.to_ascii_lowercase())).ok_or_else(bad)
    }
}

impl TryFrom<String> for Bdf {
    type Error = BadValue;

    fn try_from(s: String) -> Result<Self, BadValue> {
        s.parse()
    }
}

impl From<Bdf> for String {
    fn from(bdf: Bdf) -> Self {
        bdf.0
    }
}

impl fmt::Display for Bdf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a VF belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VfOf {
    /// The physical function.
    pub pf: Bdf,
    /// Its interfaces that this sysfs shows, the first port first.
    pub names: Vec<String>,
    /// The number of the VF, as netlink counts.
    pub index: u32,
}

/// What [`Sysfs`] shows about devices.
#[derive(Clone, Debug, Default)]
pub struct Devices {
    sysfs: Sysfs,
}

impl Devices {
    /// Devices of the sysfs at `root`, which is `/sys` on a node.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            sysfs: Sysfs::new(root),
        }
    }

    /// Whether there is such a PCI function.
    pub fn has_pci(&self, bdf: &Bdf) -> bool {
        self.sysfs.exists(pci(bdf))
    }

    /// Whether there is such a device on the auxiliary bus (a scalable function, for example).
    pub fn has_auxiliary(&self, name: &str) -> bool {
        auxiliary(name).is_some_and(|path| self.sysfs.exists(path))
    }

    /// The driver that a PCI function is bound to.
    pub fn driver(&self, bdf: &Bdf) -> io::Result<Option<String>> {
        self.sysfs.link_name(pci(bdf).join("driver"))
    }

    /// The driver, where it is one that hands the device to user space.
    pub fn userspace_driver(&self, bdf: &Bdf) -> io::Result<Option<String>> {
        let driver = self.driver(bdf)?;
        Ok(driver.filter(|driver| USERSPACE.contains(&driver.as_str())))
    }

    /// Interfaces of a PCI function, or of the virtio device in it.
    pub fn interfaces_of_pci(&self, bdf: &Bdf) -> io::Result<Vec<String>> {
        let device = pci(bdf);
        let own = self.interfaces(&device)?;
        if !own.is_empty() {
            return Ok(own);
        }
        let mut found = Vec::new();
        for entry in self.sysfs.list(&device)? {
            if entry.starts_with("virtio") {
                found.extend(self.interfaces(&device.join(entry))?);
            }
        }
        Ok(found)
    }

    /// Interfaces of an auxiliary device.
    pub fn interfaces_of_auxiliary(&self, name: &str) -> io::Result<Vec<String>> {
        auxiliary(name).map_or_else(|| Ok(Vec::new()), |path| self.interfaces(&path))
    }

    /// Interfaces below a path that starts with `/sys/devices/`; none where it leaves that directory.
    pub fn interfaces_of_path(&self, path: &Path) -> io::Result<Vec<String>> {
        let Ok(below) = path.strip_prefix("/sys/devices") else {
            return Ok(Vec::new());
        };
        let plain = |c| matches!(c, Component::Normal(_));
        if !below.components().all(plain) {
            return Ok(Vec::new());
        }
        self.interfaces(&Path::new("devices").join(below))
    }

    /// The PCI function behind an interface that this sysfs shows: its device, or the one that a virtio or auxiliary device is in.
    pub fn pci_of(&self, ifname: &str) -> Option<Bdf> {
        let device = Path::new("class/net").join(ifname).join("device");
        let path = std::fs::canonicalize(self.sysfs.path(device)).ok()?;
        path.ancestors()
            .find_map(|dir| dir.file_name()?.to_str()?.parse().ok())
    }

    /// Which port of its function an interface is, from 0.
    pub fn port_of(&self, ifname: &str) -> u32 {
        let path = Path::new("class/net").join(ifname).join("dev_port");
        let port = self.sysfs.read(path).ok().flatten();
        port.and_then(|p| p.parse().ok()).unwrap_or(0)
    }

    /// The physical function of a VF and the VF's number. None where the function is no VF.
    pub fn vf_of(&self, vf: &Bdf) -> io::Result<Option<VfOf>> {
        let physical = self.sysfs.link_name(pci(vf).join("physfn"))?;
        let Some(pf) = physical.and_then(|name| name.parse().ok()) else {
            return Ok(None);
        };
        let dir = pci(&pf);
        for entry in self.sysfs.list(&dir)? {
            let Some(index) = entry.strip_prefix("virtfn").and_then(|n| n.parse().ok()) else {
                continue;
            };
            if self.sysfs.link_name(dir.join(&entry))?.as_deref() == Some(vf.as_str()) {
                let names = self.interfaces_of_pci(&pf)?;
                return Ok(Some(VfOf { pf, names, index }));
            }
        }
        Ok(None)
    }

    /// Interfaces of a device directory, by port and then by name: a function with two ports answers the same each time.
    fn interfaces(&self, device: &Path) -> io::Result<Vec<String>> {
        let net = device.join("net");
        let mut names = Vec::new();
        for name in self.sysfs.list(&net)? {
            let port = self.sysfs.read(net.join(&name).join("dev_port"))?;
            let port = port.and_then(|p| p.parse::<u32>().ok());
            names.push((port.unwrap_or(u32::MAX), name));
        }
        names.sort();
        Ok(names.into_iter().map(|(_, name)| name).collect())
    }
}

fn pci(bdf: &Bdf) -> PathBuf {
    Path::new("bus/pci/devices").join(bdf.as_str())
}

/// The directory of an auxiliary device; none where the name is no file name.
fn auxiliary(name: &str) -> Option<PathBuf> {
    let plain = !name.is_empty()
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    plain.then(|| Path::new("bus/auxiliary/devices").join(name))
}

#[cfg(test)]
mod tests;
