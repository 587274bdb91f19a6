//! `CNI_ARGS`: `KEY=VALUE;KEY=VALUE`, the old way to say something about one attachment.
//!
//! Easy to get wrong: runtimes pass keys of their own (`K8S_POD_NAME` …), so an unknown key is refused only
//! where the plugin reads arguments at all and `IgnoreUnknown` is not set.

use super::error::CniError;

/// The pairs, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CniArgs {
    pairs: Vec<(String, String)>,
    /// The first pair that is none, kept for the plugin that minds.
    malformed: Option<String>,
}

impl CniArgs {
    /// Splits the text. A pair that is none is kept aside: most plugins read no arguments, and
    /// a DEL must not fail for them.
    pub fn parse(text: &str) -> Self {
        let mut args = Self::default();
        if text.is_empty() {
            return args;
        }
        for pair in text.split(';') {
            match pair.split_once('=') {
                Some((key, value)) if !value.contains('=') => {
                    args.pairs.push((key.to_owned(), value.to_owned()));
                }
                _ => args.malformed = args.malformed.or_else(|| Some(pair.to_owned())),
            }
        }
        args
    }

    /// The last value of a key; an empty one is no value.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.pairs.iter().rev().find(|(k, _)| k == key);
        found.map(|(_, v)| v.as_str()).filter(|v| !v.is_empty())
    }

    /// All pairs.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// The reference library's rules for a plugin that reads `known`: every pair has exactly one `=`, and
    /// nothing else is said unless `IgnoreUnknown` is true.
    pub fn check_known(&self, known: &[&str]) -> Result<(), CniError> {
        if let Some(pair) = &self.malformed {
            return Err(CniError::env(format!(
                "CNI_ARGS: invalid pair {pair:?}: write KEY=VALUE"
            )));
        }
        let ignore = match self.get("IgnoreUnknown") {
            None => false,
            Some(text) => boolean(text).ok_or_else(|| {
                CniError::env(format!("CNI_ARGS: IgnoreUnknown={text:?} is no boolean"))
            })?,
        };
        let unknown = |key: &str| key != "IgnoreUnknown" && !known.contains(&key);
        let others: Vec<&str> = self
            .pairs()
            .map(|(k, _)| k)
            .filter(|k| unknown(k))
            .collect();
        if ignore || others.is_empty() {
            return Ok(());
        }
        Err(CniError::env(format!(
            "CNI_ARGS: unknown args [{}]; this plugin reads [{}], and the rest with IgnoreUnknown=1",
            others.join(" "),
            known.join(" ")
        )))
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    }
}
