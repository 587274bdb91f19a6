//! What a run found, and the document that says what it finds.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::cases::CASES;
use super::shape::Wrong;

/// Failures of one implementation.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// How many questions there were.
    pub(super) asked: usize,
    /// By case, then plugin: the versions in which it failed, and what the first one said.
    pub(super) failed: BTreeMap<&'static str, BTreeMap<&'static str, Failure>>,
}

#[derive(Debug, Default)]
pub(super) struct Failure {
    versions: Vec<&'static str>,
    said: Wrong,
}

impl Report {
    pub(super) fn note(
        &mut self,
        plugin: &'static str,
        case: &'static str,
        version: &'static str,
        outcome: Result<(), Wrong>,
    ) {
        self.asked += 1;
        if let Err(said) = outcome {
            let failure = self
                .failed
                .entry(case)
                .or_default()
                .entry(plugin)
                .or_default();
            failure.versions.push(version);
            if failure.said.is_empty() {
                failure.said = said;
            }
        }
    }

    /// What was found about other plugins.
    pub(super) fn add(&mut self, other: Self) {
        self.asked += other.asked;
        for (case, plugins) in other.failed {
            self.failed.entry(case).or_default().extend(plugins);
        }
    }

    /// For a person who reads the test's output.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (case, plugins) in &self.failed {
            for (plugin, failure) in plugins {
                let versions = failure.versions.join(" ");
                let _ = writeln!(text, "{case} {plugin} [{versions}]: {}", failure.said);
            }
        }
        text
    }

    /// The part of the document that is about one implementation.
    fn markdown(&self) -> String {
        let mut text =
            String::from("| rule | case | plugins, and in which versions |\n|---|---|---|\n");
        for case in CASES {
            let Some(plugins) = self.failed.get(case.name) else {
                continue;
            };
            let list: Vec<String> = plugins
                .iter()
                .map(|(plugin, failure)| format!("{plugin} ({})", span(&failure.versions)))
                .collect();
            let _ = writeln!(
                text,
                "| {} | `{}` | {} |",
                case.rule,
                case.name,
                list.join(", ")
            );
        }
        text
    }

    /// Compares with the document, or writes it.
    pub(super) fn compare(&self, part_of: &str) {
        let path = mooring_testkit::workspace_root().join("docs/reference/conformance.md");
        let document = std::fs::read_to_string(&path).unwrap_or_default();
        let begin = format!("<!-- {part_of} -->\n");
        let end = "<!-- end -->\n";
        let found = document.split_once(&begin).and_then(|(head, rest)| {
            let (part, tail) = rest.split_once(end)?;
            Some((head, part, tail))
        });
        let (head, part, tail) =
            found.unwrap_or_else(|| panic!("no part {begin:?} in {}", path.display()));
        let now = self.markdown();
        if std::env::var_os("MOOR_UPDATE").is_some_and(|v| v == "1") {
            let text = format!("{head}{begin}{now}{end}{tail}");
            std::io::Write::write_all(&mut std::fs::File::create(&path).unwrap(), text.as_bytes())
                .unwrap();
            return;
        }
        assert!(
            part == now,
            "{} fails otherwise than {} says; MOOR_UPDATE=1 writes it, one implementation at a time\n{}\n{}",
            part_of,
            path.display(),
            mooring_testkit::unified("conformance.md", part, &now),
            self.text()
        );
    }
}

fn span(versions: &[&str]) -> String {
    match versions {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first, .., last] => format!("{first} – {last}"),
    }
}
