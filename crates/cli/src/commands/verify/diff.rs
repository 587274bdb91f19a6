//! Two texts as a unified diff: what `--fix --check` and `fleet --diff` show.
//!
//! Easy to get wrong: fixes are small and files may be large, so lines that are equal at both ends are put aside first; a
//! middle that is still too large to compare is shown as replaced.

use std::fmt::Write as _;

/// Lines around a change.
const CONTEXT: usize = 3;
/// Pairs of lines that are compared.
const MOST: usize = 4_000_000;

#[derive(Clone, Copy, PartialEq)]
enum Line<'a> {
    Same(&'a str),
    Gone(&'a str),
    New(&'a str),
}

/// The diff of one file; empty where nothing differs.
pub(crate) fn unified(name: &str, before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let lines = compare(&old, &new);
    let changed: Vec<usize> = (0..lines.len())
        .filter(|at| !matches!(lines[*at], Line::Same(_)))
        .collect();
    let mut out = String::new();
    let mut rest = changed.as_slice();
    while let Some(first) = rest.first() {
        // Changes that share their surroundings are one hunk.
        let mut count = 1;
        while count < rest.len() && rest[count] - rest[count - 1] <= 2 * CONTEXT {
            count += 1;
        }
        let from = first.saturating_sub(CONTEXT);
        let to = (rest[count - 1] + CONTEXT + 1).min(lines.len());
        if out.is_empty() {
            let _ = write!(out, "--- {name}\n+++ {name}\n");
        }
        hunk(&mut out, &lines, from, to);
        rest = &rest[count..];
    }
    out
}

fn hunk(out: &mut String, lines: &[Line<'_>], from: usize, to: usize) {
    let count = |part: &[Line<'_>], new: bool| {
        part.iter()
            .filter(|line| match line {
                Line::Same(_) => true,
                Line::Gone(_) => !new,
                Line::New(_) => new,
            })
            .count()
    };
    let (above, part) = (&lines[..from], &lines[from..to]);
    let side = |new: bool| {
        let (start, length) = (count(above, new), count(part, new));
        format!("{},{length}", start + usize::from(length > 0))
    };
    let _ = writeln!(out, "@@ -{} +{} @@", side(false), side(true));
    for line in part {
        let (mark, text) = match line {
            Line::Same(text) => (' ', text),
            Line::Gone(text) => ('-', text),
            Line::New(text) => ('+', text),
        };
        let _ = writeln!(out, "{mark}{text}");
    }
}

fn compare<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let ends = old_rest.iter().rev().zip(new_rest.iter().rev());
    let tail = ends.take_while(|(a, b)| a == b).count();
    let (a, b) = (
        &old_rest[..old_rest.len() - tail],
        &new_rest[..new_rest.len() - tail],
    );
    let mut out: Vec<Line<'a>> = old[..head].iter().map(|line| Line::Same(line)).collect();
    if a.len().saturating_mul(b.len()) > MOST {
        out.extend(a.iter().map(|line| Line::Gone(line)));
        out.extend(b.iter().map(|line| Line::New(line)));
    } else {
        out.extend(middle(a, b));
    }
    let tail = &old[old.len() - tail..];
    out.extend(tail.iter().map(|line| Line::Same(line)));
    out
}

/// The longest common lines.
fn middle<'a>(a: &[&'a str], b: &[&'a str]) -> Vec<Line<'a>> {
    let width = b.len() + 1;
    let mut best = vec![0_u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            best[i * width + j] = if a[i] == b[j] {
                best[(i + 1) * width + j + 1] + 1
            } else {
                best[(i + 1) * width + j].max(best[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut out = Vec::new();
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            out.push(Line::Same(a[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == b.len()
            || (i < a.len() && best[(i + 1) * width + j] >= best[i * width + j + 1])
        {
            out.push(Line::Gone(a[i]));
            i += 1;
        } else {
            out.push(Line::New(b[j]));
            j += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_what_stands_around_it() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let after = before.replace("e\n", "E\nE2\n");
        assert_eq!(
            unified("x.yaml", before, &after),
            "--- x.yaml\n+++ x.yaml\n@@ -2,7 +2,8 @@\n b\n c\n d\n-e\n+E\n+E2\n f\n g\n h\n"
        );
        assert_eq!(unified("x", before, before), "");
    }

    #[test]
    fn changes_far_apart_are_hunks_of_their_own() {
        let lines: Vec<String> = (0..30).map(|n| n.to_string()).collect();
        let before = lines.join("\n") + "\n";
        let after = before
            .replace("\n3\n", "\n")
            .replace("\n25\n", "\n25\nnew\n");
        let diff = unified("x", &before, &after);
        assert_eq!(diff.matches("@@ -").count(), 2, "{diff}");
        assert!(
            diff.contains("@@ -1,7 +1,6 @@\n 0\n 1\n 2\n-3\n 4\n"),
            "{diff}"
        );
        assert!(diff.contains("@@ -24,6 +23,7 @@\n"), "{diff}");
        assert_eq!(
            unified("x", "", "a\n"),
            "--- x\n+++ x\n@@ -0,0 +1,1 @@\n+a\n"
        );
    }
}
