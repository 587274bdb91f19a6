//! Moving refs on the server: all of them in one atomic push, or none.

use super::run::shortened;
use super::{Error, Mirror, Oid};

/// What happens to a ref. Names are full: `refs/heads/main`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// It must not be there yet.
    Create {
        /// Which.
        name: String,
        /// Where it points.
        to: Oid,
    },
    /// It moves forward, to a descendant of what it is.
    Advance {
        /// Which.
        name: String,
        /// Where it points.
        to: Oid,
    },
    /// It moves forward from what was seen, to a descendant of that; where somebody removed it, it stays removed.
    Follow {
        /// Which.
        name: String,
        /// What was seen.
        seen: Oid,
        /// Where it points.
        to: Oid,
    },
    /// It goes, if it still is what was seen.
    Delete {
        /// Which.
        name: String,
        /// What was seen.
        seen: Oid,
    },
}

impl Update {
    fn name(&self) -> &str {
        match self {
            Self::Create { name, .. }
            | Self::Advance { name, .. }
            | Self::Follow { name, .. }
            | Self::Delete { name, .. } => name,
        }
    }
}

impl Mirror {
    /// Pushes. [`Error::Moved`] means that somebody was faster and nothing was changed: fetch, decide again, push again.
    pub fn push(&self, updates: &[Update]) -> Result<(), Error> {
        if updates.is_empty() {
            return Ok(());
        }
        let mut leases = Vec::new();
        let mut specs = Vec::new();
        for update in updates {
            match update {
                Update::Create { name, to } => {
                    leases.push(format!("--force-with-lease={name}:"));
                    specs.push(format!("{to}:{name}"));
                }
                Update::Advance { name, to } => specs.push(format!("{to}:{name}")),
                Update::Follow { name, seen, to } => {
                    leases.push(format!("--force-with-lease={name}:{seen}"));
                    specs.push(format!("{to}:{name}"));
                }
                Update::Delete { name, seen } => {
                    leases.push(format!("--force-with-lease={name}:{seen}"));
                    specs.push(format!(":{name}"));
                }
            }
        }
        let said = self
            .call("push")
            .args(["--atomic", "--porcelain", "--no-verify", "--no-signed"])
            .args(["--no-follow-tags", "--recurse-submodules=no"])
            .args(leases)
            .args(["--", self.repository.url.as_str()])
            .args(specs)
            .remote()
            .ask()?;
        if said.ok {
            return Ok(());
        }
        self.explain(
            updates,
            &String::from_utf8_lossy(&said.out),
            &said.complaint,
        )
    }

    fn explain(&self, updates: &[Update], out: &str, complaint: &str) -> Result<(), Error> {
        let lost = out.lines().filter_map(|line| line.strip_prefix("!\t"));
        let mut moved = Vec::new();
        let mut refused = None;
        for line in lost {
            let (spec, why) = line.split_once('\t').unwrap_or((line, ""));
            let name = spec.rsplit(':').next().unwrap_or(spec);
            if is_race(why) {
                moved.push((name.to_owned(), why.to_owned()));
            } else if !why.contains("atomic push") && refused.is_none() {
                refused = Some(format!("{name} {why}"));
            }
        }
        let url = self.repository.to_string();
        if let Some((_, why)) = moved.first() {
            let said = why.clone();
            let refs = moved.into_iter().map(|(name, _)| name).collect();
            return Err(Error::Moved { refs, said });
        }
        if let Some(line) = refused {
            let hint = shortened(complaint);
            let said = if hint == "it said nothing" {
                line
            } else {
                format!("{line}: {hint}")
            };
            return Err(Error::Refused { url, said });
        }
        // Without a line per ref the server was never asked.
        if complaint.contains("does not support --atomic") {
            let said = "the server cannot push several refs at once".to_owned();
            return Err(Error::Refused { url, said });
        }
        let names: Vec<&str> = updates.iter().map(Update::name).collect();
        Err(super::run::failed_push(&self.repository, complaint, &names))
    }
}

/// Whether a rejection comes from somebody else's push.
fn is_race(why: &str) -> bool {
    let words = [
        "fetch first",
        "non-fast-forward",
        "stale info",
        "already exists",
        "cannot lock ref",
        "failed to update ref",
        "incorrect old value",
        "reference already exists",
        "failed to lock",
        "atomic transaction failed",
        "needs force",
    ];
    words.iter().any(|word| why.contains(word))
}
