//! `macspoofchk`: a pod may only send with the MAC that its interface got.
//!
//! ```text
//!  bridge nat PREROUTING   iifname <host end> jump cni-br-iface-<container>-<ifname>
//!  cni-br-iface-…          jump cni-br-iface-…-mac
//!  cni-br-iface-…-mac      ether saddr <mac> return; drop
//! ```
//!
//! The names and the comment in PREROUTING are those of the reference plugin, so that either removes what the other
//! made. Easy to get wrong: they do not tell which network an attachment is of. The drop rule's comment does, and GC
//! asks that one.

use mooring_api::Mac;
use mooring_attach::cni::CniError;
use mooring_host::nft::spoof::{BASE, CHAIN, COMMENT, NAT, chain, removal};
use serde_json::{Value, json};

use super::mark::Mark;
use super::nft::{self, Rule};

/// Sets the rules of one attachment, instead of any it had.
pub(super) fn set(mark: &Mark, host: &str, mac: Mac) -> Result<(), CniError> {
    nft::again(|| {
        let stale = of(mark, NAT.rules(BASE)?);
        nft::apply(&commands(mark, host, mac, &stale))
    })
    .map_err(Into::into)
}

/// Removes the rules of one attachment; absent is success.
pub(super) fn remove(mark: &Mark) -> Result<(), CniError> {
    nft::again(|| {
        let rules = NAT.all_rules()?;
        let chain = chain(&mark.id());
        let there = rules.iter().any(|rule| rule.chain == chain);
        let stale = of(mark, rules);
        if stale.is_empty() && !there {
            return Ok(());
        }
        nft::apply(&removal(&chain, &stale))
    })
    .map_err(Into::into)
}

/// Whether the rules of one attachment are there, for this interface.
pub(super) fn is_set(mark: &Mark, host: &str) -> Result<bool, CniError> {
    let found = of(mark, NAT.rules(BASE)?);
    Ok(found
        .iter()
        .any(|rule| rule.iifname.as_deref() == Some(host)))
}

/// Removes what attachments of `network` left that are no longer valid, and what names an interface that is gone.
pub(super) fn sweep(
    network: &str,
    valid: &[Mark],
    exists: impl Fn(&str) -> bool,
) -> Result<(), CniError> {
    nft::again(|| {
        let rules = NAT.all_rules()?;
        let mut commands = Vec::new();
        for id in dead(network, valid, &rules, &exists) {
            let comment = format!("{COMMENT}{id}");
            let own = |rule: &&Rule| rule.chain == BASE && rule.comment == comment;
            let stale: Vec<Rule> = rules.iter().filter(own).cloned().collect();
            commands.extend(removal(&chain(&id), &stale));
        }
        if commands.is_empty() {
            return Ok(());
        }
        nft::apply(&commands)
    })
    .map_err(Into::into)
}

fn dead(
    network: &str,
    valid: &[Mark],
    rules: &[Rule],
    exists: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut ids = Vec::new();
    let of_network = format!("{}-", Mark::network_hash(network));
    for rule in rules {
        let id = if rule.chain == BASE {
            let gone = rule.iifname.as_deref().is_some_and(|name| !exists(name));
            rule.comment.strip_prefix(COMMENT).filter(|_| gone)
        } else {
            let is_valid = |hash: &str| valid.iter().any(|mark| mark.hash() == hash);
            let ours = rule.comment.starts_with(&of_network) && !is_valid(&rule.comment);
            let id = rule
                .chain
                .strip_prefix(CHAIN)
                .and_then(|c| c.strip_suffix("-mac"));
            id.filter(|_| ours)
        };
        if let Some(id) = id
            && !ids.iter().any(|known| known == id)
        {
            ids.push(id.to_owned());
        }
    }
    ids
}

fn of(mark: &Mark, rules: Vec<Rule>) -> Vec<Rule> {
    let comment = format!("{COMMENT}{}", mark.id());
    let ours = |rule: &Rule| rule.chain == BASE && rule.comment == comment;
    rules.into_iter().filter(ours).collect()
}

fn commands(mark: &Mark, host: &str, mac: Mac, stale: &[Rule]) -> Vec<Value> {
    let id = mark.id();
    let (chain, comment) = (chain(&id), format!("{COMMENT}{id}"));
    let check = format!("{chain}-mac");
    let jump = |to: &str| json!({"jump": {"target": to}});
    let equals =
        |left: Value, right: String| json!({"match": {"op": "==", "left": left, "right": right}});
    let from = equals(json!({"meta": {"key": "iifname"}}), host.to_owned());
    let source = json!({"payload": {"protocol": "ether", "field": "saddr"}});
    let own = equals(source, mac.to_string());
    let mut commands = vec![
        NAT.add(),
        NAT.add_base_chain(BASE, "filter", "prerouting", -300),
        NAT.add_chain(&chain),
        NAT.add_chain(&check),
        NAT.flush_chain(&chain),
        NAT.flush_chain(&check),
    ];
    commands.extend(stale.iter().map(|rule| NAT.delete_rule(rule)));
    commands.extend([
        NAT.add_rule(BASE, json!([from, jump(&chain)]), &comment),
        NAT.add_rule(&chain, json!([jump(&check)]), &comment),
        NAT.add_rule(&check, json!([own, {"return": null}]), &comment),
        NAT.add_rule(&check, json!([{"drop": null}]), &mark.hash()),
    ]);
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(network: &str, container: &str) -> Mark {
        Mark::new(network, container, "net1")
    }

    fn rules(mark: &Mark, host: &str) -> Vec<Rule> {
        let id = mark.id();
        let rule = |chain: String, comment: String, iifname: Option<&str>| Rule {
            chain,
            handle: 1,
            comment,
            iifname: iifname.map(str::to_owned),
        };
        vec![
            rule(BASE.to_owned(), format!("{COMMENT}{id}"), Some(host)),
            rule(format!("{CHAIN}{id}-mac"), mark.hash(), None),
        ]
    }

    #[test]
    fn a_sweep_takes_what_is_not_valid_of_its_own_network_and_what_names_a_dead_interface() {
        let (live, left) = (mark("a", "c1"), mark("a", "c2"));
        let (other, gone) = (mark("b", "c3"), mark("b", "c4"));
        let seen = [
            rules(&live, "veth1"),
            rules(&left, "veth2"),
            rules(&other, "veth3"),
            rules(&gone, "veth4"),
        ]
        .concat();
        let exists = |name: &str| name != "veth4";
        let dead = dead("a", &[live], &seen, exists);
        assert_eq!(dead, [left.id(), gone.id()]);
    }

    #[test]
    fn setting_the_rules_again_first_takes_away_the_jump_that_was_there() {
        let mark = mark("a", "c1");
        let stale = of(&mark, rules(&mark, "veth1"));
        let commands = commands(&mark, "veth1", Mac::from([2, 0, 0, 0, 0, 1]), &stale);
        let deleted: Vec<_> = commands
            .iter()
            .filter(|c| c.get("delete").is_some())
            .collect();
        assert_eq!(deleted.len(), 1);
        assert_eq!(deleted[0]["delete"]["rule"]["handle"], 1);
    }
}
