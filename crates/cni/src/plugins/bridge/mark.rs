//! Who an attachment is, in the short names that the kernel and nftables allow.
//!
//! Used by bridge and ovs. Everything here follows from network, container and interface name alone, so a DEL that knows
//! nothing else finds what an ADD made. Easy to get wrong: the two hashes are the reference plugin's, bit by bit
//! (SHA-512 in hex, cut at 16), because it looks for its own comments by them.

use std::fmt::Write as _;

use mooring_attach::cni::Attachment;
use sha2::{Digest as _, Sha512};

/// The kernel keeps 255 bytes of an alias.
const ALIAS_MAX: usize = 255;
/// nftables keeps 128 bytes of a comment, with the end of the string.
const COMMENT_MAX: usize = 127;

/// One attachment of one network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    network: String,
    container: String,
    ifname: String,
}

impl Mark {
    pub(crate) fn new(network: &str, container: &str, ifname: &str) -> Self {
        Self {
            network: network.to_owned(),
            container: container.to_owned(),
            ifname: ifname.to_owned(),
        }
    }

    /// The marks of a network's valid attachments.
    pub(crate) fn all(network: &str, valid: &[Attachment]) -> Vec<Self> {
        let mark = |a: &Attachment| Self::new(network, &a.container, &a.ifname);
        valid.iter().map(mark).collect()
    }

    /// `<container>-<ifname>`, as in the reference plugin's chain names.
    pub(crate) fn id(&self) -> String {
        format!("{}-{}", self.container, self.ifname)
    }

    /// The hash of network, then of interface and container: with what a comment of ours begins.
    pub(crate) fn hash(&self) -> String {
        format!("{}-{}", Self::network_hash(&self.network), self.instance())
    }

    /// The hash of interface and container, whatever the network is called.
    pub(super) fn instance(&self) -> String {
        hex16(&format!("{}:{}", self.ifname, self.container))
    }

    pub(crate) fn network_hash(network: &str) -> String {
        hex16(network)
    }

    /// The hash, then words for a reader; cut to what nftables keeps.
    pub(crate) fn comment(&self) -> String {
        let plain = |s: &str| s.replace('"', "");
        let mut comment = format!(
            "{}, net: {}, if: {}, id: {}",
            self.hash(),
            plain(&self.network),
            plain(&self.ifname),
            plain(&self.container)
        );
        let end = comment.floor_char_boundary(COMMENT_MAX);
        comment.truncate(end);
        comment
    }

    /// The name of the node's end of the pair: `veth` (which NetworkManager leaves alone) and 55 bits of a hash.
    pub(crate) fn host_end(&self) -> String {
        veth(&self.path())
    }

    /// The same hash as a number.
    pub(super) fn number(&self) -> u64 {
        bits(&self.path())
    }

    fn path(&self) -> String {
        format!("{}/{}", self.container, self.ifname)
    }

    /// What the node's end is labelled with, for GC and for people; none where it would not fit.
    pub(crate) fn alias(&self) -> Option<String> {
        let Self {
            network,
            container,
            ifname,
        } = self;
        let alias = format!("moor/{network}/{container}/{ifname}");
        (alias.len() <= ALIAS_MAX).then_some(alias)
    }

    /// The reverse of [`Mark::alias`].
    pub(crate) fn from_alias(alias: &str) -> Option<Self> {
        let mut words = alias.strip_prefix("moor/")?.split('/');
        let mark = Self::new(words.next()?, words.next()?, words.next()?);
        words.next().is_none().then_some(mark)
    }

    pub(crate) fn network(&self) -> &str {
        &self.network
    }

    pub(crate) fn container(&self) -> &str {
        &self.container
    }

    pub(crate) fn ifname(&self) -> &str {
        &self.ifname
    }
}

/// A device name that follows from what it is for.
pub(crate) fn veth(what: &str) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bits = bits(what);
    let mut name = "veth".to_owned();
    for nth in 0..11 {
        let letter = (bits >> (nth * 5)) & 31;
        name.push(char::from(
            LETTERS[usize::try_from(letter).expect("five bits fit")],
        ));
    }
    name
}

fn bits(what: &str) -> u64 {
    let sum = Sha512::digest(what.as_bytes());
    sum.iter().take(8).fold(0, |n, b| n << 8 | u64::from(*b))
}

fn hex16(text: &str) -> String {
    hex(text, 16)
}

/// The first digits of a SHA-512 in hex; an even number of them.
pub(super) fn hex(text: &str, digits: usize) -> String {
    let mut hex = String::new();
    for byte in Sha512::digest(text.as_bytes()).iter().take(digits / 2) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hashes_are_the_first_sixteen_digits_of_sha_512() {
        // `printf n4 | sha512sum`, `printf net1:c1 | sha512sum`.
        let mark = Mark::new("n4", "c1", "net1");
        assert_eq!(mark.hash(), "c551a475f677799a-5bb1e0863ee62d24");
        assert!(mark.comment().starts_with(&mark.hash()));
    }

    #[test]
    fn a_device_name_fits_the_kernel_and_differs_by_container_and_by_interface() {
        let name = Mark::new("n4", &"f".repeat(64), "net1").host_end();
        assert_eq!(name.len(), 15);
        assert_ne!(name, Mark::new("n4", &"f".repeat(64), "net2").host_end());
        assert_ne!(name, Mark::new("n4", &"e".repeat(64), "net1").host_end());
        // Another network cannot have the same container and interface.
        assert_eq!(name, Mark::new("n6", &"f".repeat(64), "net1").host_end());
    }

    #[test]
    fn an_alias_is_read_back_and_a_foreign_one_is_not_ours() {
        let mark = Mark::new("n4", "c1", "net1");
        assert_eq!(Mark::from_alias(&mark.alias().unwrap()), Some(mark));
        for foreign in ["", "uplink", "moor/a/b", "moor/a/b/c/d"] {
            assert_eq!(Mark::from_alias(foreign), None, "{foreign}");
        }
        assert_eq!(Mark::new(&"n".repeat(300), "c1", "net1").alias(), None);
    }

    #[test]
    fn a_long_comment_is_cut_where_a_letter_ends() {
        let comment = Mark::new(&"ü".repeat(100), "c1", "net1").comment();
        assert!(comment.len() <= COMMENT_MAX);
        assert!(comment.ends_with('ü'));
    }
}
