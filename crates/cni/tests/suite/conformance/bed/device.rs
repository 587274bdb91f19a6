//! A device of the node that one attachment is to get: one end of a veth. For plugins of hardware a sysfs of our own shows it behind a PCI
//! function, for sriov behind a virtual one whose physical function has `eth1`.
//!
//! Easy to get wrong: a veth ends with its namespace and hardware does not. So for those plugins the end of a namespace first moves the
//! device to the node by hand, under the name that it has in the pod, as the kernel does; what cards really do is in the modules `qemu`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::shown::{addresses, routes};
use super::{Attachment, Bed, Shown as _, name};
use crate::conformance::shape::Wrong;
use crate::host_device::bed::sysfs;

/// The physical function of every VF.
const PF: &str = "0000:3b:00.0";

/// A device as it was before anybody asked for it.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    /// On the node.
    pub(crate) name: String,
    /// Its PCI function, for a plugin that asks by that.
    pub(crate) pci: Option<String>,
    /// All that is to be so again.
    pub(crate) before: Value,
}

impl Bed<'_> {
    /// Whether its plugin is for hardware.
    fn is_hardware(&self) -> bool {
        matches!(self.plugin, "amd-host-device" | "sriov")
    }

    /// A new device, with addresses of its own where the plugin takes them along.
    pub(super) fn device(&self, nth: u32) -> Device {
        let dev = format!("dev{nth}");
        // What it is plugged into is up: without carrier a plugin waits for it before it tells the neighbours.
        let mut commands =
            format!("link add {dev} type veth peer name peer{nth}\nlink set peer{nth} up\n");
        if self.is_hardware() {
            let _ = writeln!(commands, "link set {dev} mtu 1400 txqueuelen 77");
        }
        if self.plugin == "amd-host-device" {
            let net = own_net(nth);
            let _ = write!(
                commands,
                "link set {dev} up\naddr add {net}.2/24 dev {dev}\n\
                 route add {} via {net}.1 dev {dev}\n",
                own_route(nth)
            );
        }
        commands.push_str("addr show\nroute show table all\n");
        let before = picture(&self.node.batch(&commands), &dev);
        let pci = self.is_hardware().then(|| self.behind_pci(nth, &dev));
        Device {
            name: dev,
            pci,
            before: before.expect("it was just made"),
        }
    }

    /// A PCI function with the device; gives its address.
    fn behind_pci(&self, nth: u32, device: &str) -> String {
        let bdf = format!(
            "0000:{:02x}:{:02x}.{:x}",
            0x40 + nth / 256,
            nth / 8 % 32,
            nth % 8
        );
        let function = sysfs(&self.root(), &bdf, device);
        if self.plugin == "sriov" {
            let pf = sysfs(&self.root(), PF, "eth1");
            std::os::unix::fs::symlink(&pf, function.join("physfn")).unwrap();
            std::os::unix::fs::symlink(&function, pf.join(format!("virtfn{nth}"))).unwrap();
        }
        bdf
    }

    /// The device of an attachment as it is on the node now; none where it is elsewhere.
    pub(crate) fn seen(&self, device: &Device) -> Option<Value> {
        let shown = self.node.batch("addr show\nroute show table all\n");
        picture(&shown, &device.name)
    }

    /// What the kernel does with the hardware in a namespace that ends: it is on the node again, under the name that it had.
    pub(super) fn fall_back(&self, attachment: &Attachment) {
        let Some(bdf) = attachment.device.as_ref().and_then(|d| d.pci.as_ref()) else {
            return;
        };
        let node = name(&self.node);
        for link in attachment.pod.links() {
            let link = link["ifname"].as_str().unwrap();
            if link != "lo" {
                let commands = format!("link set {link} down\nlink set {link} netns {node}\n");
                attachment.pod.batch(&commands);
                self.called(bdf, link);
            }
        }
    }

    /// The device as it comes up with the node: a new one, under its own name and without anything that it had. The kernel takes an
    /// old pair away in its own time.
    pub(crate) fn boot(&self, device: &Device) -> Result<(), Wrong> {
        let (dev, peer) = (&device.name, peer(&device.name));
        self.node.run("ip", &["link", "del", &peer]);
        let add = ["link", "add", dev, "type", "veth", "peer", "name", &peer];
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let said = self.node.run("ip", &add);
            if said.code == Some(0) {
                break;
            }
            if Instant::now() > end {
                return Err(format!("{dev} cannot be made: {}", said.stderr));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.node.ip(&format!("link set {peer} up"));
        if let Some(bdf) = &device.pci {
            self.called(bdf, dev);
        }
        Ok(())
    }

    /// Takes a device out of the node for good.
    pub(crate) fn unplug(&self, device: &Device) {
        self.node.run("ip", &["link", "del", &device.name]);
        if let Some(bdf) = &device.pci {
            let _ = std::fs::remove_file(self.root().join("sys/bus/pci/devices").join(bdf));
            let _ = std::fs::remove_dir_all(self.function(bdf));
        }
    }

    /// What sysfs calls the interface of a function.
    fn called(&self, bdf: &str, interface: &str) {
        let net = self.function(bdf).join("net");
        std::fs::remove_dir_all(&net).unwrap();
        std::fs::create_dir_all(net.join(interface)).unwrap();
    }

    fn function(&self, bdf: &str) -> PathBuf {
        self.root().join("sys/devices/pci0000:00").join(bdf)
    }
}

/// What a device is plugged into.
fn peer(device: &str) -> String {
    device.replace("dev", "peer")
}

/// The network of a device with addresses of its own, without the last number.
pub(super) fn own_net(nth: u32) -> String {
    format!("10.{}.{}", 78 + nth / 200, nth % 200)
}

/// Where such a device's route goes: each its own, or they would need metrics, which results before 1.0.0 do not know.
pub(super) fn own_route(nth: u32) -> String {
    format!("198.{}.{}.0/24", 18 + nth / 200, nth % 200)
}

/// What is to be as it was, of `addr show` and `route show table all`.
pub(crate) fn picture(shown: &[Value], device: &str) -> Option<Value> {
    let links = shown[0].as_array()?;
    let link = links.iter().find(|link| link["ifname"] == device)?;
    let mut addresses = addresses(link);
    addresses.sort();
    let own = format!("\"{device}\"");
    let mut routes = routes(&shown[1]);
    routes.retain(|route| route.contains(&own));
    let flags = link["flags"].as_array().cloned().unwrap_or_default();
    Some(json!({
        "mac": link["address"], "mtu": link["mtu"], "txqlen": link["txqlen"], "alias": link["ifalias"],
        "up": flags.contains(&json!("UP")), "addresses": addresses, "routes": routes,
    }))
}
