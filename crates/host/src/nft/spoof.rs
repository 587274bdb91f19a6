//! Where the rules of `macspoofchk` are: the names and comments of the reference plugin.
//!
//! Easy to get wrong: `<container>-<ifname>` cannot be taken apart, because both may have a dash; it is compared whole.

use serde_json::Value;

use super::{Rule, Table};

/// The table.
pub const NAT: Table = Table {
    family: "bridge",
    name: "nat",
};
/// The chain that the kernel calls.
pub const BASE: &str = "PREROUTING";
/// With what the comment of a jump begins; `<container>-<ifname>` follows.
pub const COMMENT: &str = "macspoofchk-";
/// With what the name of an attachment's chain begins; the same follows.
pub const CHAIN: &str = "cni-br-iface-";

/// The chain of an attachment.
pub fn chain(id: &str) -> String {
    format!("{CHAIN}{id}")
}

/// Removes an attachment's two chains, after the jumps that lead there.
pub fn removal(chain: &str, jumps: &[Rule]) -> Vec<Value> {
    let check = format!("{chain}-mac");
    let mut commands: Vec<Value> = jumps.iter().map(|rule| NAT.delete_rule(rule)).collect();
    commands.extend([
        NAT.add_chain(chain),
        NAT.add_chain(&check),
        NAT.flush_chain(chain),
        NAT.flush_chain(&check),
        NAT.delete_chain(chain),
        NAT.delete_chain(&check),
    ]);
    commands
}
