//! Which prefixes serve a claim.

use mooring_api::{Code, Family, label};

use crate::sample::{T0, addr, claim, first, instance, pools, prefix, table, take};
use crate::{Claim, Pools, candidates};

#[test]
fn a_full_prefix_spills_over_into_the_next_that_matches() {
    let mut second = prefix("10.0.1.0/30");
    second.gateway = Some(addr("10.0.1.1"));
    let pools = pools(vec![prefix("10.0.0.0/30"), second]);
    let mut table = table();
    let mut got = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let claim = claim(name, "10.0.0.0/30");
        match first(&pools, &table, &claim) {
            Ok(candidate) => {
                got.push((candidate.thing.to_string(), candidate.gateway));
                take(&mut table, &claim, candidate);
            }
            Err(refusal) => {
                let text = refusal.to_string();
                assert!(
                    text.contains("10.0.0.0/30 has 2 of 2 taken (edge / pkg: 2)"),
                    "{text}"
                );
                assert!(text.contains("10.0.1.0/30 has 1 of 1 taken"), "{text}");
            }
        }
    }
    let gateway = Some(addr("10.0.1.1"));
    assert_eq!(
        got,
        [
            ("10.0.0.1".into(), None),
            ("10.0.0.2".into(), None),
            ("10.0.1.2".into(), gateway)
        ]
    );
}

#[test]
fn a_network_name_is_the_label_else_the_instance_else_the_only_prefix() {
    let table = table();
    let mut c = claim("n2", "");
    c.selector = mooring_api::Selector::labels([(label::NETWORK_NAME, "n2")]);
    let labelled = |net: &str, name: &str| {
        let mut p = prefix(net);
        p.labels.insert(label::NETWORK_NAME.into(), name.into());
        p
    };
    let got = |pools: &Pools, c: &Claim| first(pools, &table, c).map(|c| c.thing.to_string());
    let two = pools(vec![
        labelled("10.0.0.0/24", "n3"),
        labelled("10.0.1.0/24", "n2"),
    ]);
    assert_eq!(got(&two, &c).unwrap(), "10.0.1.1");
    let only = pools(vec![prefix("10.0.2.0/24"), prefix("fd00::/64")]);
    assert_eq!(got(&only, &c).unwrap(), "10.0.2.1");
    let unclear = pools(vec![prefix("10.0.2.0/24"), prefix("10.0.3.0/24")]);
    let refusal = got(&unclear, &c).unwrap_err();
    assert_eq!(refusal.code(), Code::NoMatchingPrefix);
    assert!(
        refusal
            .to_string()
            .contains("has no label nephio.org/network-name=n2"),
        "{refusal}"
    );
    c.selector = mooring_api::Selector::labels([(label::NETWORK_NAME, instance().name())]);
    assert_eq!(got(&unclear, &c).unwrap(), "10.0.2.1");
    let other = pools(vec![labelled("10.0.0.0/24", "n3")]);
    let text = got(&other, &c).unwrap_err().to_string();
    assert!(
        text.contains("has nephio.org/network-name=n3, not vpc"),
        "{text}"
    );
}

#[test]
fn the_prefix_of_another_cluster_is_not_used_unless_asked_for() {
    let table = table();
    let mut p = prefix("10.0.0.0/24");
    p.labels.insert(label::CLUSTER_NAME.into(), "core".into());
    let pools = pools(vec![p]);
    let mut c = claim("n2", "");
    let text = first(&pools, &table, &c).unwrap_err().to_string();
    assert!(text.contains("belongs to cluster core"), "{text}");
    c.selector = mooring_api::Selector::labels([
        (label::CLUSTER_NAME, "core"),
        (label::ADDRESS_FAMILY, "ipv4"),
    ]);
    assert!(first(&pools, &table, &c).is_ok());
    c.selector = mooring_api::Selector::default();
    c.holder.cluster = "core".into();
    assert!(first(&pools, &table, &c).is_ok());
}

#[test]
fn an_unknown_instance_and_long_lists_stay_short() {
    let table = table();
    let mut c = claim("n2", "");
    c.instance = crate::InstanceKey::new("", "vpx");
    let pools = pools((0..20).map(|i| prefix(&format!("10.0.{i}.0/24"))).collect());
    let refusal = candidates(&pools, &table, &c, T0).unwrap_err();
    assert_eq!(refusal.code(), Code::UnknownNetworkInstance);
    assert!(refusal.to_string().contains("known are vpc"), "{refusal}");
    c.instance = instance();
    c.holder.family = Family::V6;
    let finding = candidates(&pools, &table, &c, T0).unwrap_err().finding();
    assert!(finding.message.ends_with("; and 15 more"), "{finding}");
    assert!(!finding.help.is_empty());
}
