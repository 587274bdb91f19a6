//! A sandbox of network namespaces: what a test makes in it, the machine never sees.
//!
//! ```text
//!  fabric    a bridge, as the switch would be
//!  ran, core nodes: eth1 is one end of a veth, the other is a port of the bridge
//!  pods      empty namespaces that a CNI plugin fills
//! ```
//!
//! Namespaces have names of their own (process, number, word), and go when the [`Sandbox`] is dropped, also by a
//! panic. Every program has a bound, so nothing waits for ever. Easy to get wrong: `ip netns exec` of a
//! plugin runs it in the *node's* namespace; the pod's is only named to it.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::Said;
use crate::bounded::bounded;

/// How long any one program may take.
const BOUND: Duration = Duration::from_secs(20);

/// Namespaces that end with this value.
#[derive(Debug)]
pub struct Sandbox {
    prefix: String,
    names: RefCell<Vec<String>>,
}

/// One namespace of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Netns {
    name: String,
}

impl Sandbox {
    /// A fresh one. Where `ip` is absent, or may not make namespaces (that takes root), it is a counted skip, and `None`.
    pub fn new(what: &str) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let sandbox = Self {
            prefix: format!("moor-{}-{nth}", std::process::id()),
            names: RefCell::default(),
        };
        let first = format!("{}-first", sandbox.prefix);
        let Ok(output) = Command::new("ip").args(["netns", "add", &first]).output() else {
            crate::skip("ip-absent", what);
            return None;
        };
        sandbox.names.borrow_mut().push(first);
        if !output.status.success() {
            crate::skip("no-netns", what);
            return None;
        }
        Some(sandbox)
    }

    /// A new namespace with its loopback up.
    #[track_caller]
    pub fn netns(&self, word: &str) -> Netns {
        let name = format!("{}-{word}", self.prefix);
        // Noted first: a namespace that is half made goes too.
        self.names.borrow_mut().push(name.clone());
        must(&["netns", "add", &name]);
        let netns = Netns { name };
        netns.ip("link set lo up");
        netns
    }

    /// A namespace with a bridge `br0`.
    #[track_caller]
    pub fn fabric(&self, word: &str) -> Netns {
        let netns = self.netns(word);
        netns.ip("link add br0 type bridge");
        netns.ip("link set br0 up");
        netns
    }

    /// A namespace whose `eth1` is plugged into the fabric's bridge.
    #[track_caller]
    pub fn plugged(&self, fabric: &Netns, word: &str) -> Netns {
        let netns = self.netns(word);
        // The port has the word's name: the kernel takes 15 bytes.
        let port: String = word.chars().take(15).collect();
        let name = &netns.name;
        fabric.ip(&format!(
            "link add {port} type veth peer name eth1 netns {name}"
        ));
        fabric.ip(&format!("link set {port} master br0 up"));
        netns.ip("link set eth1 up");
        netns
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // Teardown goes on after a failure, and absent is success.
        for name in self.names.borrow().iter().rev() {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

impl Netns {
    /// Where the kernel shows it: what a runtime hands to a plugin.
    pub fn path(&self) -> String {
        format!("/run/netns/{}", self.name)
    }

    /// Runs `ip` in it; failing is a failed test.
    #[track_caller]
    pub fn ip(&self, words: &str) -> String {
        let mut args = vec!["-n", &self.name];
        args.extend(words.split_whitespace());
        must(&args)
    }

    /// Runs a program in it.
    #[track_caller]
    pub fn run<S: AsRef<OsStr>>(&self, program: impl AsRef<OsStr>, args: &[S]) -> Said {
        self.run_with(program, args, &[], "")
    }

    /// The same with variables and with text on its stdin; it sees `PATH` and nothing else of our environment.
    #[track_caller]
    pub fn run_with<S: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        args: &[S],
        variables: &[(&str, String)],
        stdin: &str,
    ) -> Said {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.name])
            .arg(program.as_ref())
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(variables.iter().cloned());
        bounded(&mut command, stdin, BOUND)
            .unwrap_or_else(|e| panic!("cannot run {}: {e}", program.as_ref().display()))
    }
}

#[track_caller]
fn must(args: &[&str]) -> String {
    let said = bounded(Command::new("ip").args(args), "", BOUND);
    let said = said.unwrap_or_else(|e| panic!("cannot start ip: {e}"));
    assert_eq!(said.code, Some(0), "ip {}: {}", args.join(" "), said.stderr);
    said.stdout
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> String {
        must(&["netns", "list"])
    }

    #[test]
    fn a_sandbox_takes_its_namespaces_along_also_by_a_panic() {
        let Some(sandbox) = Sandbox::new("namespaces that go with their sandbox") else {
            return;
        };
        let prefix = sandbox.prefix.clone();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let fabric = sandbox.fabric("fabric");
            let node = sandbox.plugged(&fabric, "node");
            assert!(list().contains(&sandbox.prefix));
            assert!(node.ip("-o link show eth1").contains("state UP"));
            node.ip("link show eth9");
        }));
        assert!(outcome.is_err(), "eth9 is not there");
        assert!(!list().contains(&prefix), "{}", list());
    }

    #[test]
    fn a_program_sees_its_namespace_and_its_stdin() {
        let Some(sandbox) = Sandbox::new("programs in a namespace") else {
            return;
        };
        let netns = sandbox.netns("alone");
        let script = ["-c", "cat; echo $WORD; ls /sys/class/net; exit 3"];
        let said = netns.run_with("sh", &script, &[("WORD", "here".to_owned())], "in\n");
        assert_eq!(said.code, Some(3));
        assert_eq!(said.stdout, "in\nhere\nlo\n");
    }
}
