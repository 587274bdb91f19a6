//! A unified diff of two texts, for test output. Small inputs only: time and memory are the product of the
//! two changed middles.

use std::fmt::Write as _;

const CONTEXT: usize = 3;

#[derive(Clone, Copy, PartialEq)]
enum Op {
    Keep,
    Remove,
    Add,
}

/// `left` is what was expected, `right` what was produced. Empty when they are equal.
pub fn unified(name: &str, left: &str, right: &str) -> String {
    if left == right {
        return String::new();
    }
    let (a, b) = (lines(left), lines(right));
    let script = script(&a, &b);
    let mut out = format!("--- {name} (expected)\n+++ {name} (produced)\n");
    for (from, to) in hunks(&script) {
        let first = |op: Op| {
            let before = script[..from]
                .iter()
                .filter(|(o, _)| *o == Op::Keep || *o == op);
            before.count() + 1
        };
        let _ = writeln!(out, "@@ -{} +{} @@", first(Op::Remove), first(Op::Add));
        for (op, line) in &script[from..to] {
            let sign = match op {
                Op::Keep => ' ',
                Op::Remove => '-',
                Op::Add => '+',
            };
            let _ = write!(out, "{sign}{line}");
            if !line.ends_with('\n') {
                out.push_str("\n\\ no newline at the end\n");
            }
        }
    }
    out
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Equal ends are stripped first; the longest common subsequence of the rest is found by the table.
fn script<'a>(a: &[&'a str], b: &[&'a str]) -> Vec<(Op, &'a str)> {
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (am, bm) = (&a[head..], &b[head..]);
    let tail = am
        .iter()
        .rev()
        .zip(bm.iter().rev())
        .take_while(|(x, y)| x == y)
        .count();
    let (am, bm) = (&am[..am.len() - tail], &bm[..bm.len() - tail]);

    let width = bm.len() + 1;
    let mut common = vec![0_u32; (am.len() + 1) * width];
    for i in (0..am.len()).rev() {
        for j in (0..bm.len()).rev() {
            common[i * width + j] = if am[i] == bm[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }

    let mut out: Vec<_> = a[..head].iter().map(|l| (Op::Keep, *l)).collect();
    let (mut i, mut j) = (0, 0);
    while i < am.len() || j < bm.len() {
        if i < am.len() && j < bm.len() && am[i] == bm[j] {
            out.push((Op::Keep, am[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == bm.len()
            || (i < am.len() && common[(i + 1) * width + j] >= common[i * width + j + 1])
        {
            out.push((Op::Remove, am[i]));
            i += 1;
        } else {
            out.push((Op::Add, bm[j]));
            j += 1;
        }
    }
    out.extend(a[a.len() - tail..].iter().map(|l| (Op::Keep, *l)));
    out
}

/// Half-open stretches of the script: changes with their context, merged where they touch.
fn hunks(script: &[(Op, &str)]) -> Vec<(usize, usize)> {
    let mut hunks: Vec<(usize, usize)> = Vec::new();
    for (at, _) in script
        .iter()
        .enumerate()
        .filter(|(_, (op, _))| *op != Op::Keep)
    {
        let (from, to) = (
            at.saturating_sub(CONTEXT),
            (at + 1 + CONTEXT).min(script.len()),
        );
        match hunks.last_mut() {
            Some(last) if from <= last.1 => last.1 = to,
            _ => hunks.push((from, to)),
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(unified("x", "a\nb\n", "a\nb\n"), "");
    }

    #[test]
    fn a_changed_line_is_shown_with_its_context() {
        let left = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let right = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n";
        assert_eq!(
            unified("f", left, right),
            "--- f (expected)\n+++ f (produced)\n@@ -2 +2 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        );
    }

    #[test]
    fn far_changes_make_two_hunks_with_their_own_line_numbers() {
        let left = (1..=20)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join("\n")
            + "\n";
        let right = format!("0\n{}", left.replace("\n18\n", "\n"));
        let diff = unified("f", &left, &right);
        assert!(diff.contains("@@ -1 +1 @@\n+0\n 1\n"), "{diff}");
        assert!(
            diff.contains("@@ -15 +16 @@\n 15\n 16\n 17\n-18\n 19\n 20\n"),
            "{diff}"
        );
    }

    #[test]
    fn a_missing_newline_at_the_end_is_said() {
        let diff = unified("f", "a\n", "a");
        assert!(
            diff.contains("-a\n+a\n\\ no newline at the end\n"),
            "{diff}"
        );
    }

    #[test]
    fn applying_the_script_gives_the_right_text() {
        let left = "a\nb\nc\nd\ne\n";
        let right = "b\nx\nd\ne\ne\n";
        let script = script(&lines(left), &lines(right));
        let side = |not: Op| -> String {
            script
                .iter()
                .filter(|(op, _)| *op != not)
                .map(|(_, l)| *l)
                .collect()
        };
        assert_eq!(
            (side(Op::Add).as_str(), side(Op::Remove).as_str()),
            (left, right)
        );
    }
}
