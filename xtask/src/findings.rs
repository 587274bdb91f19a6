//! The findings index `docs/reference/findings.md`, from the table of codes in `mooring-api`; and the check that
//! every code has its page and every page its code.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result, bail, ensure};
use mooring_api::Code;

use crate::shell::root;

const INDEX: &str = "docs/reference/findings.md";
const PAGES: &str = "docs/findings";

/// Writes the index, or fails when it is out of date.
pub(crate) fn run(check: bool) -> Result<()> {
    let pages = pages()?;
    let complaints = mismatches(&pages);
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    let path = root().join(INDEX);
    let wanted = index();
    let present = fs::read_to_string(&path).unwrap_or_default();
    if present == wanted {
        return Ok(());
    }
    if check {
        bail!("{INDEX} is out of date; run `cargo xtask gen`");
    }
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    fs::write(&path, wanted).with_context(|| format!("cannot write {INDEX}"))?;
    println!("wrote {INDEX}");
    Ok(())
}

/// Names of the pages, without `.md`.
fn pages() -> Result<BTreeSet<String>> {
    let dir = root().join(PAGES);
    let mut pages = BTreeSet::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("cannot read {PAGES}"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let page = name.strip_suffix(".md");
        pages.insert(
            page.with_context(|| format!("{PAGES}/{name} is not a page"))?
                .to_owned(),
        );
    }
    Ok(pages)
}

fn mismatches(pages: &BTreeSet<String>) -> Vec<String> {
    let codes: BTreeSet<String> = Code::ALL.iter().map(|c| c.as_str().to_owned()).collect();
    let missing = codes
        .difference(pages)
        .map(|c| format!("{c} has no page {PAGES}/{c}.md"));
    let orphans = pages
        .difference(&codes)
        .map(|p| format!("{PAGES}/{p}.md has no code"));
    missing.chain(orphans).collect()
}

fn index() -> String {
    let mut text = String::from(
        "<!-- Written by `cargo xtask gen` from the table of codes; do not edit. -->\n\n\
         # Findings\n\n\
         A code is also the reason of the condition it sets.\n\n\
         | code | meaning |\n|---|---|\n",
    );
    let mut codes = Code::ALL.to_vec();
    codes.sort_by_key(|c| c.as_str());
    for code in codes {
        let _ = writeln!(
            text,
            "| [{code}](../findings/{code}.md) | {} |",
            code.summary()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_without_page_and_a_page_without_code_are_both_named() {
        let mut pages: BTreeSet<String> = Code::ALL.iter().map(ToString::to_string).collect();
        assert!(mismatches(&pages).is_empty());
        pages.remove("PoolExhausted");
        pages.insert("Nonsense".to_owned());
        assert_eq!(
            mismatches(&pages),
            [
                "PoolExhausted has no page docs/findings/PoolExhausted.md",
                "docs/findings/Nonsense.md has no code"
            ]
        );
    }

    #[test]
    fn the_index_has_one_row_per_code() {
        let rows = index().lines().filter(|l| l.starts_with("| [")).count();
        assert_eq!(rows, Code::ALL.len());
    }
}
