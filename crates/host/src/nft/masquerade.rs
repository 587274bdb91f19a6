//! Where the rules of `ipMasq` are, and whose one is: the names and comments of the reference plugin's nftables backend.
//!
//! Easy to get wrong: a comment is cut at what nftables keeps, so the container at its end may be a beginning only.

use super::Table;

/// The table.
pub const TABLE: Table = Table {
    family: "inet",
    name: "cni_plugins_masquerade",
};
/// The chain that the kernel calls.
pub const BASE: &str = "postrouting";
/// The chain with a rule per address.
pub const CHECKS: &str = "masq_checks";

/// Network, interface and the beginning of the container, as a comment ends: `<hash>, net: n4, if: net1, id: 3f6c…`.
pub fn owner(comment: &str) -> Option<(&str, &str, &str)> {
    let (rest, container) = comment.rsplit_once(", id: ")?;
    let (rest, ifname) = rest.rsplit_once(", if: ")?;
    let (_, network) = rest.split_once(", net: ")?;
    (!container.is_empty()).then_some((network, ifname, container))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_tells_its_owner_unless_it_was_cut_before_that() {
        let comment = "c551a475f677799a-5bb1e0863ee62d24, net: n4, if: net1, id: c1";
        assert_eq!(owner(comment), Some(("n4", "net1", "c1")));
        assert_eq!(owner(&comment[..comment.len() - 2]), None);
        assert_eq!(owner("name: \"n4\""), None);
    }
}
