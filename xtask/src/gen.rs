//! Generated files that come from the kinds in `mooring-api`: the CRDs, the schemas that files are checked against, the
//! reference of their fields, and what the chart has of them (`gen/chart.rs`). `cargo xtask gen` writes them; with
//! `--check` a stale file is named.
//!
//! Easy to get wrong: all must come out the same on every machine, so everything follows the order of
//! the table of kinds and of the structs, and nothing reads a clock.

// `gen` is a keyword, so main names this file by its path, and then so must this one.
#[path = "gen/chart.rs"]
mod chart;
#[path = "gen/reference.rs"]
mod reference;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use mooring_api::kinds::all;
use serde_json::Value;

const CRDS: &str = "deploy/crds";
const REFERENCE: &str = "docs/reference/crds.md";
const SCHEMAS: &str = "crates/api/src/kinds/schemas.txt";
const HEADER: &str = "# Written by `cargo xtask gen` from crates/api/src/kinds. Edit there.\n";

/// Writes every file that comes from the kinds, or says which one is stale.
pub(crate) fn run(check: bool) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let wanted = files(&root)?;
    let mut stale = Vec::new();
    for (path, text) in &wanted {
        let full = root.join(path);
        if fs::read_to_string(&full).is_ok_and(|old| old == *text) {
            continue;
        }
        if check {
            stale.push(path.display().to_string());
            continue;
        }
        let parent = full.parent().context("a generated file has a directory")?;
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        fs::write(&full, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote {}", path.display());
    }
    for path in leftovers(&root, &wanted)? {
        if check {
            stale.push(path.display().to_string());
        } else {
            fs::remove_file(root.join(&path))
                .with_context(|| format!("cannot remove {}", path.display()))?;
            println!("removed {}", path.display());
        }
    }
    if !stale.is_empty() {
        bail!("stale, run `cargo xtask gen`: {}", stale.join(", "));
    }
    Ok(())
}

/// What should stand where, below the root of the workspace.
fn files(root: &Path) -> Result<BTreeMap<PathBuf, String>> {
    let mut files = chart::files(root, all())?;
    for kind in all() {
        let name = file_name(kind.group(), kind.plural());
        files.insert(Path::new(CRDS).join(name), written(kind.crd())?);
    }
    files.insert(PathBuf::from(REFERENCE), reference::page(all()));
    let schemas = all().iter().map(|kind| kind.written() + "\n");
    files.insert(PathBuf::from(SCHEMAS), schemas.collect());
    Ok(files)
}

fn file_name(group: &str, plural: &str) -> String {
    format!("{group}_{plural}.yaml")
}

fn written(crd: &Value) -> Result<String> {
    let body = serde_saphyr::to_string(crd)
        .with_context(|| format!("cannot write the CRD {}", crd["metadata"]["name"]))?;
    Ok(format!("{HEADER}{body}"))
}

/// CRDs of kinds that are gone. Only files with our header: nobody else's file is touched.
fn leftovers(root: &Path, wanted: &BTreeMap<PathBuf, String>) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for dir in chart::directories()
        .into_iter()
        .chain([PathBuf::from(CRDS)])
    {
        // Not there yet: nothing in it is old.
        let Ok(entries) = fs::read_dir(root.join(&dir)) else {
            continue;
        };
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {}", dir.display()))?;
            let path = dir.join(entry.file_name());
            let ours = fs::read_to_string(root.join(&path)).is_ok_and(|t| t.starts_with(HEADER));
            if ours && !wanted.contains_key(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crd_file_reads_back_as_the_crd_it_was_written_from() {
        for kind in all() {
            let text = written(kind.crd()).unwrap();
            let read: Value = serde_saphyr::from_str(&text).unwrap();
            assert_eq!(&read, kind.crd(), "{}", kind.kind());
        }
    }

    #[test]
    fn a_kind_is_in_the_chart_once_as_ours_or_as_somebody_elses() {
        let files = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
        let [foreign, ours, alias] = chart::directories();
        let count = |dir: &Path| files.keys().filter(|p| p.parent() == Some(dir)).count();
        assert_eq!(count(&foreign) + count(&ours), all().len());
        assert!(count(&ours) >= 2, "leases and ledgers are ours");
        assert_eq!(count(&alias), 4, "the IPAM kinds, under the other group");
        let claim = &files[&alias.join("ipam.nephio.org_ipclaims.yaml")];
        assert!(
            claim.contains("name: ipclaims.ipam.nephio.org\n"),
            "{claim}"
        );
        assert!(claim.contains("group: ipam.nephio.org\n"), "{claim}");
    }

    #[test]
    fn there_is_one_file_per_kind_and_the_reference_names_every_field() {
        let files = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
        let crds = files.keys().filter(|path| path.starts_with(CRDS));
        assert_eq!(crds.count(), all().len());
        let page = &files[Path::new(REFERENCE)];
        for word in [
            "sriovSpec.pfName",
            "networkInterfaces[].sriovEnabled",
            "1 to 4094",
            "IPClaim",
        ] {
            assert!(page.contains(word), "{word}");
        }
    }
}
