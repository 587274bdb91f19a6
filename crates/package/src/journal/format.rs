//! The journal's bytes: readable by a person, and torn or whole beyond doubt.
//!
//! ```text
//!  mooring-journal 1
//!  {"txn":7,"changes":2}
//!  {"path":"nads/n3.yaml","before":"9f86…","after":412}
//!  <412 bytes>
//!  {"path":"old.yaml","before":"2c26…"}
//!  end <SHA-256 of everything above>
//! ```
//!
//! Easy to get wrong: only the `end` line makes a journal. Every reader checks it before it believes
//! a single path.

use std::io::Write as _;

use mooring_ipam::TxnId;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Change;

const MAGIC: &[u8] = b"mooring-journal 1\n";
const END: &[u8] = b"end ";

/// One change, as it stands in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step<'a> {
    /// Where, relative to the root.
    pub(super) path: std::borrow::Cow<'a, str>,
    /// SHA-256 of the bytes that the act found; `None` where there was no file.
    pub(super) before: Option<String>,
    /// The new bytes; `None` for a removal.
    pub(super) after: Option<&'a [u8]>,
}

impl<'a> From<&'a Change> for Step<'a> {
    fn from(change: &'a Change) -> Self {
        Self {
            path: change.path().into(),
            before: None,
            after: change.after(),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Head {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    txn: Option<TxnId>,
    changes: usize,
}

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    path: std::borrow::Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<usize>,
}

/// Why bytes are not a journal.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadJournal {
    #[error("it was written by another version")]
    Version,
    #[error("it is incomplete or damaged")]
    Torn,
}

pub(super) fn encode(txn: Option<TxnId>, steps: &[Step<'_>]) -> Vec<u8> {
    let size: usize = steps.iter().map(|s| s.after.map_or(0, <[u8]>::len)).sum();
    let mut out = Vec::with_capacity(size + 256 * (steps.len() + 1));
    out.extend_from_slice(MAGIC);
    let changes = steps.len();
    line(&mut out, &Head { txn, changes });
    for step in steps {
        let path = step.path.as_ref().into();
        let before = step.before.clone();
        let after = step.after.map(<[u8]>::len);
        line(
            &mut out,
            &Line {
                path,
                before,
                after,
            },
        );
        if let Some(bytes) = step.after {
            out.extend_from_slice(bytes);
            out.push(b'\n');
        }
    }
    let sum = digest(&out);
    out.extend_from_slice(END);
    out.extend_from_slice(sum.as_bytes());
    out.push(b'\n');
    out
}

/// The reservation and the changes of a whole journal.
pub(super) fn decode(bytes: &[u8]) -> Result<(Option<TxnId>, Vec<Step<'_>>), BadJournal> {
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        let known = MAGIC.starts_with(bytes) || !bytes.starts_with(b"mooring-journal ");
        return Err(if known {
            BadJournal::Torn
        } else {
            BadJournal::Version
        });
    };
    // `end `, 64 digits, a line end.
    let at = bytes
        .len()
        .checked_sub(END.len() + 65)
        .ok_or(BadJournal::Torn)?;
    let (body, end) = bytes.split_at(at);
    let sum = end
        .strip_prefix(END)
        .and_then(|sum| sum.strip_suffix(b"\n"))
        .ok_or(BadJournal::Torn)?;
    if sum != digest(body).as_bytes() {
        return Err(BadJournal::Torn);
    }
    let mut rest = &rest[..rest.len() - end.len()];
    let head: Head = take_line(&mut rest)?;
    let mut steps = Vec::with_capacity(head.changes.min(rest.len()));
    for _ in 0..head.changes {
        let line: Line<'_> = take_line(&mut rest)?;
        let after = match line.after {
            None => None,
            Some(len) => {
                let (bytes, more) = rest.split_at_checked(len).ok_or(BadJournal::Torn)?;
                rest = more.strip_prefix(b"\n").ok_or(BadJournal::Torn)?;
                Some(bytes)
            }
        };
        let (path, before) = (line.path, line.before);
        steps.push(Step {
            path,
            before,
            after,
        });
    }
    Ok((head.txn, steps))
}

/// SHA-256 in hexadecimal.
pub(super) fn digest(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        for half in [byte >> 4, byte & 15] {
            text.push(char::from(b"0123456789abcdef"[usize::from(half)]));
        }
    }
    text
}

fn line(out: &mut Vec<u8>, value: &impl Serialize) {
    let text = serde_json::to_vec(value).expect("strings and numbers are always JSON");
    out.write_all(&text).expect("memory takes every byte");
    out.push(b'\n');
}

fn take_line<'a, T: Deserialize<'a>>(rest: &mut &'a [u8]) -> Result<T, BadJournal> {
    let end = rest
        .iter()
        .position(|b| *b == b'\n')
        .ok_or(BadJournal::Torn)?;
    let (line, more) = rest.split_at(end);
    *rest = &more[1..];
    serde_json::from_slice(line).map_err(|_| BadJournal::Torn)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let steps = [
            Step {
                path: "a \"quoted\"\nname.yaml".into(),
                before: None,
                after: Some(b"end of line\nend "),
            },
            Step {
                path: "sub/b.yaml".into(),
                before: Some(digest(b"old")),
                after: None,
            },
            Step {
                path: "empty.yaml".into(),
                before: Some(digest(b"old")),
                after: Some(b""),
            },
        ];
        let bytes = encode(Some(TxnId(7)), &steps);
        assert_eq!(decode(&bytes).unwrap(), (Some(TxnId(7)), steps.to_vec()));
        bytes
    }

    #[test]
    fn a_journal_cut_anywhere_is_torn() {
        let whole = sample();
        for len in 0..whole.len() {
            assert!(
                matches!(decode(&whole[..len]), Err(BadJournal::Torn)),
                "{len} bytes"
            );
        }
    }

    #[test]
    fn a_journal_with_any_byte_changed_is_refused() {
        let whole = sample();
        for at in 0..whole.len() {
            let mut bad = whole.clone();
            bad[at] ^= 0x01;
            assert!(decode(&bad).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_journal_of_another_version_says_so() {
        let whole = sample();
        let text = [b"mooring-journal 2\n", &whole[MAGIC.len()..]].concat();
        assert!(matches!(decode(&text), Err(BadJournal::Version)));
    }
}
