//! Findings as people read them: code, sentence, the line in the file, help, and where to read more.
//!
//! The file may have changed or gone since the finding was made; then the place is named without showing the line.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use mooring_api::{Code, Finding, Location, Severity};

use super::count;

/// A file above this is named, never read.
const LARGEST: u64 = 8 << 20;

/// How many remarks with one code are told; data output lists them all.
const ALIKE: usize = 3;

/// Every finding, and a last line that counts them.
pub(super) fn render_all(findings: &[Finding]) -> String {
    let mut explained = BTreeSet::new();
    let mut remarks = BTreeMap::new();
    let mut lines = Lines::default();
    let mut text = String::new();
    for finding in findings {
        if finding.severity == Severity::Info {
            let told = remarks.entry(finding.code).or_insert(0_usize);
            *told += 1;
            if *told <= ALIKE {
                text += &render_remark(finding);
                text += "\n";
            }
            continue;
        }
        let line = finding.location.as_ref().and_then(|place| lines.of(place));
        text += &render(finding, line, explained.insert(finding.code));
        text += "\n\n";
    }
    for (code, told) in remarks.into_iter().filter(|(_, told)| *told > ALIKE) {
        let more = format!("info[{code}]: and {} more like this\n", told - ALIKE);
        text += &more;
    }
    let number = |severity| findings.iter().filter(|f| f.severity == severity).count();
    let counts = [
        (number(Severity::Error), "error"),
        (number(Severity::Warning), "warning"),
        (number(Severity::Info), "remark"),
    ];
    let said: Vec<String> = counts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| count(number, word))
        .collect();
    if !said.is_empty() {
        text += &said.join(", ");
        text.push('\n');
    }
    text
}

/// An error without a place: usage, the book, the disk.
pub(super) fn render_plain(code: Option<&str>, message: &str, help: &str) -> String {
    let mut title = Level::ERROR.primary_title(message);
    if let Some(code) = code {
        title = title.id(code);
    }
    let mut group = Group::with_title(title);
    if !help.is_empty() {
        group = group.element(Level::HELP.message(help));
    }
    if let Some(code) = code.filter(|c| c.parse::<Code>().is_ok()) {
        group = group.element(Level::NOTE.message(format!("read more: moor explain {code}")));
    }
    Renderer::styled().render(&[group]) + "\n"
}

/// A remark is one line: it asks for nothing.
fn render_remark(finding: &Finding) -> String {
    let place = finding.location.as_ref();
    let place = place.map(|p| format!("{}:{}: ", p.file, p.line));
    let message = place.unwrap_or_default() + &finding.message;
    let title = Level::INFO.primary_title(message).id(finding.code.as_str());
    Renderer::styled().render(&[Group::with_title(title)])
}

fn render(finding: &Finding, line: Option<&str>, first_of_code: bool) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let code = finding.code.as_str();
    let mut group = Group::with_title(level.primary_title(&finding.message).id(code));
    group = match (&finding.location, line) {
        (Some(place), Some(line)) => group.element(
            Snippet::source(line)
                .line_start(place.line as usize)
                .path(&place.file)
                .annotation(AnnotationKind::Primary.span(marked(line, place.column))),
        ),
        (Some(place), None) => group.element(
            Origin::path(&place.file)
                .line(place.line as usize)
                .char_column(place.column as usize),
        ),
        (None, _) => group,
    };
    if let Some(about) = about(finding) {
        group = group.element(Level::NOTE.message(about));
    }
    if !finding.help.is_empty() {
        group = group.element(Level::HELP.message(&finding.help));
    }
    if first_of_code {
        group = group.element(Level::NOTE.message(format!("read more: moor explain {code}")));
    }
    Renderer::styled().render(&[group])
}

/// `Interface/n2 in oai-ran, spec.cniType`.
fn about(finding: &Finding) -> Option<String> {
    let object = finding.object.as_ref().map(ToString::to_string);
    let parts: Vec<String> = object.into_iter().chain(finding.field.clone()).collect();
    (!parts.is_empty()).then(|| format!("at {}", parts.join(", ")))
}

/// The bytes of the line to underline: from the column to the end of what is written.
fn marked(line: &str, column: u32) -> std::ops::Range<usize> {
    let end = line.trim_end().len();
    let skip = column.saturating_sub(1) as usize;
    let start = line.char_indices().nth(skip).map_or(end, |(at, _)| at);
    if start < end {
        start..end
    } else {
        last_char(line)..end
    }
}

/// Where the last character of the written text begins.
fn last_char(line: &str) -> usize {
    line.trim_end()
        .char_indices()
        .last()
        .map_or(0, |(at, _)| at)
}

/// Where the findings of a KRM function point. A file that happens to have this name is not meant.
const STDIN: &str = "stdin";

/// The file that the last finding pointed into: a dump of a cluster is one file with many findings.
#[derive(Default)]
struct Lines {
    file: String,
    lines: Vec<String>,
}

impl Lines {
    /// The line a finding points at, if the file is still there and has it.
    fn of(&mut self, place: &Location) -> Option<&str> {
        if self.file != place.file {
            self.file.clone_from(&place.file);
            self.lines = read(&place.file).unwrap_or_default();
        }
        let number = (place.line as usize).checked_sub(1)?;
        let line = self.lines.get(number)?;
        (!line.trim().is_empty()).then_some(line)
    }
}

fn read(file: &str) -> Option<Vec<String>> {
    if file == STDIN {
        return None;
    }
    let path = Path::new(file);
    let small = fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() <= LARGEST);
    let text = small.then(|| fs::read_to_string(path).ok()).flatten()?;
    Some(text.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use mooring_api::ObjectRef;

    use super::*;

    const TWO_DOCUMENTS: &str = "kind: Interface\nmetadata:\n  name: n2\n---\nkind: Interface\n\
        metadata:\n  name: n3\nspec:\n  cniType: sriov\n  sriovSpec:\n    pfName: ens9   # typo\n";

    fn finding(file: &str) -> Finding {
        let object = ObjectRef::new("req.nephio.org/v1alpha1", "Interface", "n3").within("oai-ran");
        Finding::error(
            Code::UnknownPhysicalFunction,
            "edge-cluster-1 has no NIC ens9",
        )
        .on(&object)
        .at("spec.sriovSpec.pfName")
        .located(file, 11, 13)
        .help("its SR-IOV NICs are ens4")
    }

    #[test]
    fn a_finding_shows_code_sentence_place_line_help_and_where_to_read_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("interfaces.yaml");
        let file = path.to_str().unwrap();
        #[expect(clippy::disallowed_methods, reason = "a test makes its own input")]
        fs::write(&path, TWO_DOCUMENTS).unwrap();
        let text = render_all(&[finding(file)]).replace(file, "gnb/interfaces.yaml");
        assert_eq!(
            strip_str(&text).to_string(),
            "\
error[UnknownPhysicalFunction]: edge-cluster-1 has no NIC ens9
  --> gnb/interfaces.yaml:11:13
   |
11 |     pfName: ens9   # typo
   |             ^^^^^^^^^^^^^
   |
   = note: at Interface/n3 in oai-ran, spec.sriovSpec.pfName
   = help: its SR-IOV NICs are ens4
   = note: read more: moor explain UnknownPhysicalFunction

1 error
"
        );
    }

    #[test]
    fn a_file_that_is_gone_is_named_without_its_line() {
        let text = render_all(&[finding("gone/interfaces.yaml")]);
        let text = strip_str(&text).to_string();
        assert!(text.contains("gone/interfaces.yaml:11:13"), "{text}");
        assert!(text.contains("help: its SR-IOV NICs are ens4"), "{text}");
    }

    #[test]
    fn where_to_read_more_is_said_once_per_code() {
        let text = render_all(&[
            finding("a"),
            finding("b"),
            Finding::warning(Code::VfIndexIgnored, "x"),
        ]);
        assert_eq!(
            text.matches("moor explain UnknownPhysicalFunction").count(),
            1
        );
        assert_eq!(text.matches("moor explain VfIndexIgnored").count(), 1);
        assert!(text.ends_with("2 errors, 1 warning\n"), "{text}");
    }

    #[test]
    fn a_remark_is_one_line() {
        let remark = Finding::info(Code::RecreateSet, "strategy set to Recreate").located(
            "gnb/d.yaml",
            6,
            1,
        );
        let text = render_all(&[remark]);
        assert_eq!(
            strip_str(&text).to_string(),
            "info[RecreateSet]: gnb/d.yaml:6: strategy set to Recreate\n1 remark\n"
        );
    }

    #[test]
    fn many_remarks_of_one_kind_are_counted_and_errors_never_are() {
        let remark = |n: usize| Finding::info(Code::RecreateSet, format!("number {n}"));
        let mut many: Vec<Finding> = (1..=5).map(remark).collect();
        many.extend((1..=5).map(|n| Finding::error(Code::AddressHeld, format!("held {n}"))));
        let text = strip_str(&render_all(&many)).to_string();
        assert!(
            text.contains("number 3") && !text.contains("number 4"),
            "{text}"
        );
        assert!(
            text.contains("info[RecreateSet]: and 2 more like this\n"),
            "{text}"
        );
        assert!(text.contains("held 5"), "{text}");
        assert!(text.ends_with("5 errors, 5 remarks\n"), "{text}");
    }

    #[test]
    fn no_findings_say_nothing() {
        assert_eq!(render_all(&[]), "");
    }

    #[test]
    fn a_column_beyond_the_line_or_between_wide_characters_does_not_fail() {
        assert_eq!(marked("name: n2  ", 7), 6..8);
        assert_eq!(marked("name: n2", 99), 7..8);
        assert_eq!(marked("größe: ü", 8), 9..11);
        assert_eq!(marked("größe: ü", 99), 9..11);
        assert_eq!(marked("x", 0), 0..1);
    }
}
