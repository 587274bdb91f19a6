//! The deployed packages that a Dependency of another one may mean: by the name of their directory, or of their Kptfile.
//!
//! Easy to get wrong: [`Packages::neighbours`] fetches, [`Packages::known_neighbours`] reads what the last fetch brought. The second is for a
//! caller that looks at the repository again and again, and begins again when it changed.

use std::collections::BTreeSet;

use mooring_krm::{Document, File};
use serde_json::Value;

use super::{Error, PackageName, Packages, Which, read};
use crate::git::Mirror;
use crate::neighbour::{Neighbour, has};

impl Packages {
    /// The packages of these names on the deployment branch, as it is now, in the order of their directories.
    pub fn neighbours(&self, names: &BTreeSet<String>) -> Result<Vec<Neighbour>, Error> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        self.named(&self.open()?, names)
    }

    /// The same as of the last fetch, without asking the server; fetched where nothing is known yet.
    pub fn known_neighbours(&self, names: &BTreeSet<String>) -> Result<Vec<Neighbour>, Error> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        self.named(&self.git.known(&self.repository)?, names)
    }

    fn named(&self, mirror: &Mirror, names: &BTreeSet<String>) -> Result<Vec<Neighbour>, Error> {
        let Some(main) = mirror.branch(&self.repository.branch) else {
            return Ok(Vec::new());
        };
        let mut all = Vec::new();
        for (directory, kptfile) in
            mirror.kptfile_texts(&main.commit, &self.repository.directory)?
        {
            let Ok(package) = directory.parse::<PackageName>() else {
                continue;
            };
            if !names.contains(package.last()) && !is_called(&kptfile, names) {
                continue;
            }
            let content = read(mirror, &package, &Which::Deployed)?;
            all.extend(content.map(|content| Neighbour {
                place: self.repository.place(package.as_str()),
                shown: package.to_string(),
                files: content.files,
            }));
        }
        Ok(all)
    }
}

/// Whether a Kptfile has one of these names.
fn is_called(kptfile: &[u8], names: &BTreeSet<String>) -> bool {
    // Thousands of packages are looked at, and nearly all are somebody else.
    if !names.iter().any(|name| has(kptfile, name.as_bytes())) {
        return false;
    }
    let Ok(file) = File::parse(kptfile) else {
        return false;
    };
    let mut values = file.documents().iter().map(Document::value);
    let name = values.find_map(|v| v.pointer("/metadata/name").and_then(Value::as_str));
    name.is_some_and(|name| names.contains(name))
}
