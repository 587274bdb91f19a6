//! nftables through the `nft` program, in its JSON form: nothing of a name is ever parsed as a rule.
//!
//! Called by the bridge plugin for `ipMasq` and `macspoofchk`, and by the doctor; [`masquerade`] and [`spoof`] are the names that both
//! look for. One [`apply`] is one kernel transaction: a process that is killed leaves all of it
//! or nothing. Easy to get wrong: `nft` refuses to delete what is absent; so a chain is *added* (which does nothing where
//! it exists), flushed, and deleted in the same transaction.

pub mod masquerade;
pub mod note;
pub mod spoof;

use std::time::Duration;

use mooring_attach::cni::CniError;
use serde_json::{Value, json};

use crate::program::{self, ProgramError, Said};

/// `nft` takes milliseconds; a node where it takes this long is in trouble.
const BOUND: Duration = Duration::from_secs(10);

/// A table of one family.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its family.
    pub family: &'static str,
    /// Its name.
    pub name: &'static str,
}

/// Why nftables did not do it.
#[derive(Debug, thiserror::Error)]
pub enum NftError {
    /// The program.
    #[error("nftables is not to be had; macspoofchk and ipMasq need it on the node")]
    Program(#[from] ProgramError),
    /// It said no.
    #[error("nft refused the rules: {0}")]
    Refused(String),
    /// It said something else.
    #[error("nft answered what is no rule set: {0}")]
    Answer(String),
}

impl From<NftError> for CniError {
    fn from(error: NftError) -> Self {
        match &error {
            NftError::Program(source) => Self::unavailable(error.to_string()).because(source),
            NftError::Refused(why) => Self::io("nft refused the rules", why),
            NftError::Answer(why) => Self::io("nft answered what is no rule set", why),
        }
    }
}

/// What is read of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its chain.
    pub chain: String,
    /// Its number in the table.
    pub handle: u64,
    /// Its comment; may be empty.
    pub comment: String,
    /// The interface by whose name it matches, where it does.
    pub iifname: Option<String>,
}

impl Table {
    /// Makes the table.
    pub fn add(self) -> Value {
        json!({"add": {"table": {"family": self.family, "name": self.name}}})
    }

    /// Makes a chain.
    pub fn add_chain(self, name: &str) -> Value {
        json!({"add": {"chain": self.chain(name)}})
    }

    /// A chain that the kernel calls itself.
    pub fn add_base_chain(self, name: &str, kind: &str, hook: &str, prio: i32) -> Value {
        let mut chain = self.chain(name);
        chain["type"] = kind.into();
        chain["hook"] = hook.into();
        chain["prio"] = prio.into();
        chain["policy"] = "accept".into();
        json!({"add": {"chain": chain}})
    }

    /// Empties a chain.
    pub fn flush_chain(self, name: &str) -> Value {
        json!({"flush": {"chain": self.chain(name)}})
    }

    /// Removes a chain, which must be empty.
    pub fn delete_chain(self, name: &str) -> Value {
        json!({"delete": {"chain": self.chain(name)}})
    }

    /// Appends a rule.
    pub fn add_rule(self, chain: &str, expr: Value, comment: &str) -> Value {
        let Self { family, name } = self;
        let mut rule = json!({"family": family, "table": name, "chain": chain, "expr": expr});
        if !comment.is_empty() {
            rule["comment"] = comment.into();
        }
        json!({"add": {"rule": rule}})
    }

    /// Removes a rule.
    pub fn delete_rule(self, rule: &Rule) -> Value {
        let Self { family, name } = self;
        let Rule { chain, handle, .. } = rule;
        json!({"delete": {"rule": {"family": family, "table": name, "chain": chain, "handle": handle}}})
    }

    fn chain(self, name: &str) -> Value {
        json!({"family": self.family, "table": self.name, "name": name})
    }

    /// The rules of one chain; none where the table or the chain is absent.
    pub fn rules(self, chain: &str) -> Result<Vec<Rule>, NftError> {
        list(&["list", "chain", self.family, self.name, chain])
    }

    /// The rules of all its chains.
    pub fn all_rules(self) -> Result<Vec<Rule>, NftError> {
        list(&["list", "table", self.family, self.name])
    }
}

/// Whether the program is there: what STATUS asks.
pub fn present() -> Result<(), NftError> {
    Ok(program::find("nft").map(drop)?)
}

/// All of these, or none.
pub fn apply(commands: &[Value]) -> Result<(), NftError> {
    let text = json!({"nftables": commands}).to_string();
    let said = nft(&["-j", "-f", "-"], text.as_bytes())?;
    if said.ok { Ok(()) } else { Err(refused(&said)) }
}

/// A rule that another process removed between the look and the change fails the transaction: look again, once.
pub fn again<T>(step: impl Fn() -> Result<T, NftError>) -> Result<T, NftError> {
    step().or_else(|_| step())
}

fn list(words: &[&str]) -> Result<Vec<Rule>, NftError> {
    let args: Vec<&str> = [&["-j"], words].concat();
    let said = nft(&args, b"")?;
    if said.ok {
        return rules_of(&said.stdout);
    }
    if is_absent(&said) {
        return Ok(Vec::new());
    }
    Err(refused(&said))
}

fn nft(args: &[&str], stdin: &[u8]) -> Result<Said, NftError> {
    let program = program::find("nft")?;
    Ok(program::run(&program, args, stdin, BOUND)?)
}

fn refused(said: &Said) -> NftError {
    NftError::Refused(said.stderr.trim().to_owned())
}

fn is_absent(said: &Said) -> bool {
    said.stderr.contains("No such file or directory")
}

/// Any text that should be the answer of `nft -j list`.
pub fn rules_of(text: &str) -> Result<Vec<Rule>, NftError> {
    let bad = |why: &str| NftError::Answer(why.to_owned());
    let answer: Value = serde_json::from_str(text).map_err(|e| bad(&e.to_string()))?;
    let items = answer["nftables"].as_array().ok_or_else(|| bad(text))?;
    let rules = items.iter().filter_map(|item| item.get("rule"));
    let read = |rule: &Value| {
        Some(Rule {
            chain: rule["chain"].as_str()?.to_owned(),
            handle: rule["handle"].as_u64()?,
            comment: rule["comment"].as_str().unwrap_or_default().to_owned(),
            iifname: iifname(&rule["expr"]),
        })
    };
    Ok(rules.filter_map(read).collect())
}

fn iifname(expr: &Value) -> Option<String> {
    let matches = expr.as_array()?.iter().filter_map(|e| e.get("match"));
    let by_name = |m: &&Value| m["left"]["meta"]["key"] == "iifname";
    let name = matches.into_iter().find(by_name)?["right"].as_str()?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAT: Table = Table {
        family: "bridge",
        name: "nat",
    };

    #[test]
    fn a_rule_is_read_back_with_its_handle_its_comment_and_its_interface() {
        let text = json!({"nftables": [
            {"metainfo": {"version": "1.0.6"}},
            {"chain": {"family": "bridge", "table": "nat", "name": "PREROUTING", "handle": 1}},
            {"rule": {"chain": "PREROUTING", "handle": 4, "comment": "mine", "expr": [
                {"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": "veth1"}},
                {"jump": {"target": "c1"}}]}},
            {"rule": {"chain": "c1", "handle": 5, "expr": [{"drop": null}]}},
        ]});
        let rules = rules_of(&text.to_string()).unwrap();
        assert_eq!(rules.len(), 2);
        assert_eq!((rules[0].handle, rules[0].comment.as_str()), (4, "mine"));
        assert_eq!(rules[0].iifname.as_deref(), Some("veth1"));
        assert_eq!(
            (rules[1].chain.as_str(), rules[1].iifname.as_deref()),
            ("c1", None)
        );
        assert!(rules_of("[]").is_err());
        assert!(rules_of("").is_err());
    }

    #[test]
    fn a_name_that_looks_like_a_rule_stays_a_name() {
        let chain = NAT.add_chain("x { } ; flush ruleset");
        assert_eq!(chain["add"]["chain"]["name"], "x { } ; flush ruleset");
    }
}
