//! QEMU: a machine of software with PCI and two SR-IOV cards, and the machine's files as its root. It boots in a quarter
//! of a minute.
//!
//! ```text
//!  0000:01:00.0  igb, seven VFs (0000:01:10.0, .2, .4 …) --+
//!                                                          hub
//!  0000:02:00.0  igb, seven VFs (0000:02:10.0, .2, .4 …) --+
//! ```
//!
//! Every instruction is emulated, so a program runs some twenty times slower than it does outside. `igb` knows no VF link
//! state and no 802.1ad. Easy to get wrong: its first root holds only what mounts the second one, the machine's files over
//! 9p; a module that is needed before that must be in [`FIRST`].

mod cpio;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::kernel::{self, Console, Guest};
use crate::{Said, must};
use cpio::{Cpio, Kind};

/// Modules without which the machine's files cannot be reached.
const FIRST: &[&str] = &["virtio_pci", "9pnet_virtio", "9p"];

/// What the tests use of it, loaded at boot. `rdma_rxe` asks for the checksum only when a device is made.
const MODULES: &[&str] = &[
    "8021q",
    "bonding",
    "bridge",
    "crc32_generic",
    "dummy",
    "igb",
    "igbvf",
    "ipvlan",
    "macvlan",
    "rdma_rxe",
    "veth",
    "vfio-pci",
    "vrf",
];

/// The kernel's command line. It tries its timer against a delay loop, and panics when no tick comes in time: so it was once, on a machine
/// that had more to do than to emulate this one.
const KERNEL: &str = "console=ttyS0 quiet panic=-1 intel_iommu=on no_timer_check";

/// How long one boot may take, with everything that runs in it.
const BOUND: Duration = Duration::from_mins(20);

/// QEMU and its kernel, where they were set up.
#[derive(Debug)]
pub struct Qemu {
    qemu: PathBuf,
    linux: PathBuf,
}

/// Boots once and runs all tests of this binary there that lie in modules called `qemu`; fails when one of them does, or
/// when there is none. An absent machine is a counted skip.
///
/// One ordinary test of a test binary calls it.
#[track_caller]
pub fn qemu_suite() {
    if let Some(qemu) = Qemu::find("tests that need QEMU") {
        kernel::suite("qemu", |script| qemu.boot(script));
    }
}

impl Qemu {
    /// The machine, or a counted skip and `None`.
    pub fn find(what: &str) -> Option<Self> {
        let qemu = crate::component("qemu", what)?;
        let linux = crate::component("linux", what)?;
        Some(Self { qemu, linux })
    }

    /// Boots it, runs a shell script in it as root, and takes it away. Its stdout and stderr are one; what the kernel
    /// itself said is in the other.
    #[track_caller]
    pub fn run(&self, script: &str) -> Said {
        self.boot(script).into()
    }

    #[track_caller]
    fn boot(&self, script: &str) -> Console {
        let work = tempfile::tempdir();
        let work = work.unwrap_or_else(|e| panic!("cannot make a directory: {e}"));
        let file = |name: &str| work.path().join(name);
        let modules = self.modules();
        let guest = Guest {
            kernel: "qemu",
            work: work.path(),
            modules: &modules,
            kmod: &self.linux.join("bin/kmod"),
            load: MODULES,
        };
        let (first, second, root) = (file("first"), file("second"), file("root.cpio"));
        let write = |path: &Path, bytes: &[u8]| must(fs::write(path, bytes), "write", path);
        write(&first, guest.first(&second).as_bytes());
        write(&second, guest.second(script).as_bytes());
        write(&root, &self.first_root(&modules, &first));
        must(fs::create_dir(file("room")), "make", &file("room"));
        kernel::watch(&self.machine(&root), &file("stderr"), BOUND, kernel::say)
    }

    fn machine(&self, root: &Path) -> Command {
        let libraries = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];
        let libraries = libraries.map(|dir| self.qemu.join(dir).display().to_string());
        // Only this program is to find its libraries there, not one that starts it.
        let mut machine = Command::new("env");
        machine
            .arg(format!("LD_LIBRARY_PATH={}", libraries.join(":")))
            .arg(self.qemu.join("usr/bin/qemu-system-x86_64"))
            .args(["-nodefaults", "-no-user-config", "-no-reboot"])
            .args(["-display", "none", "-serial", "stdio"])
            .args(["-machine", "q35,accel=tcg", "-cpu", "max", "-m", "1G"])
            // Without one no function can be given to vfio.
            .args(["-device", "intel-iommu"])
            .arg("-kernel")
            .arg(self.linux.join("vmlinuz"))
            .arg("-initrd")
            .arg(root)
            .args(["-append", KERNEL])
            .args([
                "-fsdev",
                "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap",
            ])
            .args(["-device", "virtio-9p-pci,fsdev=host,mount_tag=host"]);
        for data in ["usr/share/qemu", "usr/share/seabios"] {
            machine.arg("-L").arg(self.qemu.join(data));
        }
        for card in 1..=2 {
            machine
                .arg("-device")
                .arg(format!(
                    "pcie-root-port,id=port{card},chassis={card},slot={card}"
                ))
                .arg("-netdev")
                .arg(format!("hubport,id=net{card},hubid=0"))
                .arg("-device")
                .arg(format!(
                    "igb,bus=port{card},netdev=net{card},mac=52:54:00:00:00:0{card},romfile="
                ));
        }
        machine
    }

    fn modules(&self) -> PathBuf {
        let all = self.linux.join("lib/modules");
        let entries = must(fs::read_dir(&all), "read", &all);
        let release = entries.filter_map(Result::ok).map(|e| e.path()).max();
        release.unwrap_or_else(|| panic!("{} is empty", all.display()))
    }

    /// A root that mounts the machine's files and goes on there.
    fn first_root(&self, modules: &Path, script: &Path) -> Vec<u8> {
        let index = modules.join("modules.dep");
        let index = must(fs::read_to_string(&index), "read", &index);
        let mut cpio = Cpio::default();
        for dir in ["bin", "host", "modules"] {
            cpio.add(dir, Kind::Directory, &[]);
        }
        let busybox = self.linux.join("bin/busybox");
        let busybox = must(fs::read(&busybox), "read", &busybox);
        cpio.add("bin/busybox", Kind::Program, &busybox);
        let mut init = String::from("#!/bin/busybox sh\n");
        for (nth, path) in in_order(FIRST, &index).iter().enumerate() {
            let module = modules.join(path);
            let name = format!("modules/{nth}.ko");
            cpio.add(&name, Kind::File, &must(fs::read(&module), "read", &module));
            let _ = writeln!(init, "/bin/busybox insmod /{name}");
        }
        init += "/bin/busybox mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose host /host\n";
        let _ = writeln!(
            init,
            "exec /bin/busybox switch_root /host /bin/sh {}",
            script.display()
        );
        cpio.add("init", Kind::Program, init.as_bytes());
        cpio.finish()
    }
}

/// The files of modules with all that they need, each after what it needs; by depmod's index.
fn in_order(names: &[&str], index: &str) -> Vec<String> {
    fn visit(path: &str, index: &str, done: &mut Vec<String>) {
        if done.iter().any(|d| d == path) {
            return;
        }
        let line = index
            .lines()
            .find_map(|line| line.strip_prefix(path)?.strip_prefix(':'));
        for needed in line.unwrap_or_default().split_whitespace() {
            visit(needed, index, done);
        }
        done.push(path.to_owned());
    }
    let mut done = Vec::new();
    for name in names {
        let file = format!("/{name}.ko");
        let paths = index
            .lines()
            .filter_map(|line| Some(line.split_once(':')?.0));
        let path = paths.into_iter().find(|path| path.ends_with(&file));
        let path = path.unwrap_or_else(|| panic!("the kernel has no module {name}"));
        visit(path, index, &mut done);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_comes_after_what_it_needs_and_once() {
        let index = "net/p9.ko: fs/netfs.ko\nfs/9p.ko: net/p9.ko fs/netfs.ko\nfs/netfs.ko:\n";
        assert_eq!(
            in_order(&["9p", "p9"], index),
            ["fs/netfs.ko", "net/p9.ko", "fs/9p.ko"]
        );
    }

    #[test]
    fn what_needs_qemu_runs_there() {
        qemu_suite();
    }

    mod qemu {
        use std::fs;
        use std::path::Path;

        #[test]
        #[ignore = "kernel: qemu"]
        fn a_card_has_functions_that_appear_and_go() {
            let card = Path::new("/sys/bus/pci/devices/0000:01:00.0");
            let read = |name: &str| fs::read_to_string(card.join(name)).expect("an SR-IOV card");
            assert_eq!(read("sriov_totalvfs").trim(), "7");
            fs::write(card.join("sriov_numvfs"), "2").expect("functions");
            let function = Path::new("/sys/bus/pci/devices/0000:01:10.2/net");
            assert_eq!(fs::read_dir(function).expect("a VF with a link").count(), 1);
            fs::write(card.join("sriov_numvfs"), "0").expect("no functions");
            assert!(!function.exists());
        }
    }
}
