//! Kernels of our own, for what this machine's kernel cannot do: a test boots one, the machine's files are its root, and
//! what it writes is gone when it halts.
//!
//! Two machines: [`Uml`](crate::Uml) (seconds; ipvlan, vlan, vrf, sctp, openvswitch) and [`Qemu`](crate::Qemu) (a
//! quarter of a minute; SR-IOV cards). A boot costs more than a test, so tests are not booted one by one: their bodies are ordinary
//! tests that the everyday run leaves out, and one test of the binary runs all of them inside ([`suite`]).
//!
//! ```text
//!  #[ignore = "kernel: uml"] tests in modules called `uml`     <- listed by this binary
//!        |  one boot; the same binary again for each of them
//!        v
//!  console: `@moor test NAME`, what it said, `@moor code 0`    -> one verdict for each
//! ```
//!
//! Easy to get wrong: everything comes out through one console, so what the machine says to us stands on lines of its
//! own that begin with [`MARK`], and a test that prints such a line confuses the reader.

mod console;
mod guest;
mod suite;

pub(crate) use console::{Console, watch};
pub(crate) use guest::Guest;
pub(crate) use suite::{say, suite};

/// Begins every line that is meant for us.
pub(crate) const MARK: &str = "@moor";
