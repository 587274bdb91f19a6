//! `ipMasq`: what leaves a pod's own subnet leaves under the node's address.
//!
//! ```text
//!  inet cni_plugins_masquerade postrouting   multicast return; goto masq_checks
//!                              masq_checks   saddr <address> daddr != <its subnet> masquerade
//! ```
//!
//! Table, chains and comments are those of the reference plugin's nftables backend, so that either removes what the
//! other made. Its iptables backend is not written by us, but cleaned up after (`legacy`). Easy to get wrong: a rule
//! belongs to an attachment by its comment and not by its address, which another pod may have by now.

use mooring_api::{Family, HostCidr};
use mooring_attach::cni::CniError;
use mooring_host::nft::NftError;
use mooring_host::nft::masquerade::{BASE, CHECKS, TABLE};
use serde_json::{Value, json};

use super::mark::Mark;
use super::nft::{self, Rule};

/// The kernel's `srcnat` priority.
const SRCNAT: i32 = 100;

/// Masquerades these addresses for one attachment, instead of any it had.
pub(super) fn set(mark: &Mark, addresses: &[HostCidr]) -> Result<(), CniError> {
    nft::again(|| {
        let stale = of(mark, TABLE.rules(CHECKS)?);
        nft::apply(&commands(mark, addresses, &stale))
    })
    .map_err(Into::into)
}

/// Removes the rules of one attachment, and says whether there were any.
pub(super) fn remove(mark: &Mark) -> Result<bool, CniError> {
    nft::again(|| {
        let stale = of(mark, TABLE.rules(CHECKS)?);
        delete(&stale)
    })
    .map_err(Into::into)
}

/// How many rules an attachment has.
pub(super) fn count(mark: &Mark) -> Result<usize, CniError> {
    Ok(of(mark, TABLE.rules(CHECKS)?).len())
}

/// Removes what attachments of `network` left that are no longer valid.
pub(super) fn sweep(network: &str, valid: &[Mark]) -> Result<(), CniError> {
    let swept = nft::again(|| delete(&dead(network, valid, TABLE.rules(CHECKS)?)));
    Ok(swept.map(drop)?)
}

fn delete(stale: &[Rule]) -> Result<bool, NftError> {
    if stale.is_empty() {
        return Ok(false);
    }
    let commands: Vec<Value> = stale.iter().map(|rule| TABLE.delete_rule(rule)).collect();
    nft::apply(&commands)?;
    Ok(true)
}

fn of(mark: &Mark, rules: Vec<Rule>) -> Vec<Rule> {
    let hash = mark.hash();
    let ours = |rule: &Rule| rule.comment.starts_with(&hash);
    rules.into_iter().filter(ours).collect()
}

fn dead(network: &str, valid: &[Mark], rules: Vec<Rule>) -> Vec<Rule> {
    let of_network = format!("{}-", Mark::network_hash(network));
    let is_valid = |rule: &Rule| valid.iter().any(|m| rule.comment.starts_with(&m.hash()));
    let gone = |rule: &Rule| rule.comment.starts_with(&of_network) && !is_valid(rule);
    rules.into_iter().filter(gone).collect()
}

fn commands(mark: &Mark, addresses: &[HostCidr], stale: &[Rule]) -> Vec<Value> {
    let multicast = |protocol: &str, addr: &str, len: u8| {
        let to = matches("==", protocol, "daddr", prefix(addr, len));
        TABLE.add_rule(BASE, json!([to, {"return": null}]), "")
    };
    let mut commands = vec![
        TABLE.add(),
        TABLE.add_chain(CHECKS),
        TABLE.add_base_chain(BASE, "nat", "postrouting", SRCNAT),
        TABLE.flush_chain(BASE),
        multicast("ip", "224.0.0.0", 4),
        multicast("ip6", "ff00::", 8),
        TABLE.add_rule(BASE, json!([{"goto": {"target": CHECKS}}]), ""),
    ];
    commands.extend(stale.iter().map(|rule| TABLE.delete_rule(rule)));
    for address in addresses {
        let protocol = match address.family() {
            Family::V4 => "ip",
            Family::V6 => "ip6",
        };
        let subnet = address.subnet();
        let own = subnet.network().to_string();
        let from = matches("==", protocol, "saddr", json!(address.addr().to_string()));
        let to = matches("!=", protocol, "daddr", prefix(&own, subnet.prefix_len()));
        let rule = json!([from, to, {"masquerade": null}]);
        commands.push(TABLE.add_rule(CHECKS, rule, &mark.comment()));
    }
    commands
}

fn matches(op: &str, protocol: &str, field: &str, right: Value) -> Value {
    let left = json!({"payload": {"protocol": protocol, "field": field}});
    json!({"match": {"op": op, "left": left, "right": right}})
}

fn prefix(addr: &str, len: u8) -> Value {
    json!({"prefix": {"addr": addr, "len": len}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(mark: &Mark, handle: u64) -> Rule {
        Rule {
            chain: CHECKS.to_owned(),
            handle,
            comment: mark.comment(),
            iifname: None,
        }
    }

    #[test]
    fn a_sweep_leaves_valid_attachments_and_other_networks() {
        let valid = Mark::new("a", "c1", "net1");
        let (left, other) = (Mark::new("a", "c2", "net1"), Mark::new("b", "c2", "net1"));
        let rules = vec![
            rule(&valid, 1),
            rule(&left, 2),
            rule(&other, 3),
            rule(&left, 4),
        ];
        let handles: Vec<u64> = dead("a", &[valid], rules)
            .iter()
            .map(|r| r.handle)
            .collect();
        assert_eq!(handles, [2, 4]);
    }

    #[test]
    fn each_address_leaves_only_its_own_subnet_under_the_nodes_name() {
        let mark = Mark::new("a", "c1", "net1");
        let addresses = ["10.0.0.5/24", "fd00::5/64"].map(|a| a.parse().unwrap());
        let commands = commands(&mark, &addresses, &[rule(&mark, 9)]);
        let text = serde_json::to_string(&commands).unwrap();
        for part in [
            r#""right":"10.0.0.5""#,
            r#""right":{"prefix":{"addr":"10.0.0.0","len":24}}"#,
            r#""right":"fd00::5""#,
            r#""right":{"prefix":{"addr":"fd00::","len":64}}"#,
            r#"{"delete":{"rule":{"family":"inet","table":"cni_plugins_masquerade","chain":"masq_checks","handle":9}}}"#,
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
