//! The names of leases, ledgers and records, and the labels that they are listed by.
//!
//! ```text
//!  IPLease       <first 10 hex of SHA-256 of namespace/name of the instance>-<8 or 32 hex of the address>, …-v<id>
//!  PrefixLedger  <the same 10 hex>
//! ```
//!
//! Easy to get wrong: the name is the lock. A second way to write an address (`::ffff:10.0.0.1`, another case) would be a
//! second lock, so it is made from the number and from nothing that a person wrote.

use std::collections::BTreeMap;
use std::net::IpAddr;

use mooring_api::kinds::mooring::label;
use mooring_ipam::{Holder, InstanceKey, Thing, TxnId};
use sha2::{Digest as _, Sha256};

/// The journal's ConfigMap.
pub(super) const JOURNAL: &str = "mooring-book";

/// The first digits of a text's SHA-256, in hexadecimal.
fn hash(text: &str, digits: usize) -> String {
    let sum = Sha256::digest(text.as_bytes());
    let number = sum
        .iter()
        .take(16)
        .fold(0u128, |n, b| n << 8 | u128::from(*b));
    let mut hex = format!("{number:032x}");
    hex.truncate(digits);
    hex
}

/// Of a PrefixLedger, and the first part of a lease's.
pub(super) fn of_instance(instance: &InstanceKey) -> String {
    let (namespace, name) = (instance.namespace(), instance.name());
    hash(&format!("{namespace}/{name}"), 10)
}

/// Of the lease of an address or a VLAN; None for what is kept in a ledger.
pub(super) fn of_lease(instance: &InstanceKey, thing: &Thing) -> Option<String> {
    let instance = of_instance(instance);
    match thing {
        Thing::Addr(IpAddr::V4(a)) => Some(format!("{instance}-{:08x}", u32::from(*a))),
        Thing::Addr(IpAddr::V6(a)) => Some(format!("{instance}-{:032x}", u128::from(*a))),
        Thing::Vlan(vlan) => Some(format!("{instance}-v{vlan}")),
        Thing::Block(_) | Thing::Range(_) => None,
    }
}

/// Of a transaction's record.
pub(super) fn of_txn(txn: TxnId) -> String {
    format!("mooring-txn-{}", txn.0)
}

/// Of a package's record.
pub(super) fn of_package(cluster: &str, id: &str) -> String {
    format!(
        "mooring-package-{}",
        hash(&format!("{cluster}\u{1f}{id}"), 20)
    )
}

/// A text as a label's value: itself where Kubernetes takes it, else a hash.
fn value(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric();
    let inner = text.chars().all(|c| plain(c) || "-_.".contains(c));
    let ends = text.starts_with(plain) && text.ends_with(plain);
    if text.is_empty() || (inner && ends && text.len() <= 63) {
        text.to_owned()
    } else {
        format!("sha-{}", hash(text, 16))
    }
}

/// The labels of a lease.
pub(super) fn labels(instance: &InstanceKey, holder: &Holder) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([
        (label::INSTANCE.to_owned(), of_instance(instance)),
        (label::HOLDER.to_owned(), hash(&holder.key(), 16)),
    ]);
    let named = [
        (label::PACKAGE, &holder.package),
        (label::CLUSTER, &holder.cluster),
    ];
    for (key, text) in named.into_iter().filter(|(_, text)| !text.is_empty()) {
        labels.insert(key.to_owned(), value(text));
    }
    labels
}

/// What finds the leases of one instance.
pub(super) fn selector(instance: &InstanceKey) -> String {
    format!("{}={}", label::INSTANCE, of_instance(instance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_hash_of_the_instance_and_the_number_of_the_address() {
        let instance = InstanceKey::new("", "vpc-ran");
        let name = |thing: Thing| of_lease(&instance, &thing);
        // printf 'default/vpc-ran' | sha256sum
        let at = hash("default/vpc-ran", 10);
        assert_eq!(of_instance(&instance), at);
        assert_eq!(at, "342e57c245");
        let v4 = Thing::Addr("10.1.2.20".parse().unwrap());
        assert_eq!(name(v4), Some(format!("{at}-0a010214")));
        let v6 = Thing::Addr("fd00::1".parse().unwrap());
        let digits = "fd000000000000000000000000000001";
        assert_eq!(name(v6), Some(format!("{at}-{digits}")));
        let vlan = Thing::Vlan(100.try_into().unwrap());
        assert_eq!(name(vlan), Some(format!("{at}-v100")));
        assert_eq!(name(Thing::Block("10.0.0.0/8".parse().unwrap())), None);
    }

    #[test]
    fn a_text_that_is_no_label_value_stands_as_a_hash() {
        assert_eq!(value("edge-01"), "edge-01");
        assert!(value("a b").starts_with("sha-"));
        assert!(value("-a").starts_with("sha-"));
        assert!(value(&"x".repeat(64)).starts_with("sha-"));
    }
}
