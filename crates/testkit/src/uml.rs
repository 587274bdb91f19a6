//! User-mode Linux: a kernel that is a program, with the machine's files as its root. It boots in two seconds.
//!
//! ```text
//!  uml::Uml::run("ip link add x type dummy")     one script, by itself
//!  uml_suite()                                   all `uml` tests of this binary, in one boot
//! ```
//!
//! It has no PCI and one processor. Easy to get wrong: it finds its loader and library in its working directory
//! (`xtask/src/setup/kernels.rs` says why), so it must be started there.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::kernel::{self, Console, Guest};
use crate::{Said, must};

/// What the tests use of it, loaded at boot.
const MODULES: &[&str] = &[
    "8021q",
    "act_gact",
    "act_mirred",
    "act_vlan",
    "bonding",
    "bridge",
    "cls_flower",
    "dummy",
    "ifb",
    "ip_gre",
    "ipvlan",
    "macvlan",
    "nf_tables",
    "openvswitch",
    "sch_ingress",
    "sctp",
    "tun",
    "veth",
    "vrf",
    "vxlan",
];

/// How long one boot may take, with everything that runs in it.
const BOUND: Duration = Duration::from_mins(15);

/// User-mode Linux, where it was set up.
#[derive(Debug)]
pub struct Uml {
    /// The directory of the program, its library and its modules.
    place: PathBuf,
    kmod: PathBuf,
}

/// Boots once and runs all tests of this binary there that lie in modules called `uml`; fails when one of them does, or
/// when there is none. An absent kernel is a counted skip.
///
/// One ordinary test of a test binary calls it.
#[track_caller]
pub fn uml_suite() {
    if let Some(uml) = Uml::find("tests that need User-mode Linux") {
        kernel::suite("uml", |script| uml.boot(script));
    }
}

impl Uml {
    /// The kernel, or a counted skip and `None`.
    pub fn find(what: &str) -> Option<Self> {
        let place = crate::component("user-mode-linux", what)?.join("uml");
        let kmod = crate::component("kmod", what)?.join("bin/kmod");
        Some(Self { place, kmod })
    }

    /// Boots it, runs a shell script in it as root, and halts it. Its stdout and stderr are one; what the kernel itself
    /// said is in the other.
    #[track_caller]
    pub fn run(&self, script: &str) -> Said {
        self.boot(script).into()
    }

    #[track_caller]
    fn boot(&self, script: &str) -> Console {
        let work = tempfile::tempdir();
        let work = work.unwrap_or_else(|e| panic!("cannot make a directory: {e}"));
        let guest = Guest {
            kernel: "uml",
            work: work.path(),
            modules: &self.modules(),
            kmod: &self.kmod,
            load: MODULES,
        };
        let (first, second) = (work.path().join("first"), work.path().join("second"));
        let write = |path: &PathBuf, text: String| must(fs::write(path, text), "write", path);
        write(&first, guest.first(&second));
        write(&second, guest.second(script));
        let room = work.path().join("room");
        must(fs::create_dir(&room), "make", &room);
        // Only this program is to find its library here, not one that starts it.
        let mut machine = Command::new("env");
        machine
            .args(["LD_LIBRARY_PATH=.", "./linux", "mem=768M", "quiet", "ro"])
            .args(["root=/dev/root", "rootfstype=hostfs", "rootflags=/"])
            .args(["con=null", "con0=fd:0,fd:1", "seccomp=auto"])
            .arg(format!("uml_dir={}", work.path().join("uml").display()))
            .arg("init=/bin/sh")
            .arg("--")
            .arg(&first)
            .current_dir(&self.place);
        kernel::watch(&machine, &work.path().join("stderr"), BOUND, kernel::say)
    }

    fn modules(&self) -> PathBuf {
        let all = self.place.join("modules");
        let entries = must(fs::read_dir(&all), "read", &all);
        let release = entries.filter_map(Result::ok).map(|e| e.path()).max();
        release.unwrap_or_else(|| panic!("{} is empty", all.display()))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_needs_user_mode_linux_runs_there() {
        super::uml_suite();
    }

    mod uml {
        use crate::Sandbox;

        #[test]
        #[ignore = "kernel: uml"]
        fn links_that_this_machine_may_not_have_are_there() {
            let sandbox =
                Sandbox::new("links in a kernel of our own").expect("root, with namespaces");
            let netns = sandbox.netns("alone");
            netns.ip("link add d0 type dummy");
            netns.ip("link add link d0 name d0.5 type vlan id 5");
            netns.ip("link add link d0 name i0 type ipvlan mode l3s");
            netns.ip("link add red type vrf table 10");
            netns.ip("link add br0 type bridge vlan_filtering 1");
            let links = netns.ip("-o -br link");
            for name in ["d0.5@d0", "i0@d0", "red", "br0"] {
                assert!(links.contains(name), "{links}");
            }
            assert!(!links.contains("gre0"), "{links}");
        }

        #[test]
        #[ignore = "kernel: uml"]
        fn files_may_be_written_and_the_machine_keeps_its_own() {
            let path = crate::workspace_root().join("target/written-in-a-kernel-of-our-own");
            std::fs::write(&path, "x").expect("the root is writable");
            assert_eq!(std::env::var("MOOR_KERNEL").as_deref(), Ok("uml"));
        }
    }
}
