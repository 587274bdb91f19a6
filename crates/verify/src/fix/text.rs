//! Small changes of JSON that somebody wrote by hand: only the characters that must go, go.
//!
//! Easy to get wrong: `#` and `//` inside a string are text. Every result is parsed again, and refused where it
//! does not say exactly what it should.

use std::ops::Range;

use serde_json::Value;

/// The text without comments and without commas before a closing bracket; nothing where it is fine already, or is not JSON even then.
pub(super) fn cleaned(text: &str) -> Option<String> {
    if serde_json::from_str::<Value>(text).is_ok() {
        return None;
    }
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let end = line.trim_end_matches(['\n', '\r']).len();
        let (body, ending) = line.split_at(end);
        match comment(body) {
            // A line of its own goes as a whole.
            Some(at) if body[..at].trim().is_empty() => {}
            Some(at) => out.extend([body[..at].trim_end(), ending]),
            None => out.push_str(line),
        }
    }
    let out = without_commas(&out);
    let value: Value = serde_json::from_str(&out).ok()?;
    (value.is_object() || value.is_array()).then_some(out)
}

/// Where a comment begins. A string never spans lines in JSON.
fn comment(line: &str) -> Option<usize> {
    let mut marks = Marks::new(line);
    marks.find_map(|(at, c)| {
        let is_comment = c == '#' || line[at..].starts_with("//");
        is_comment.then_some(at)
    })
}

fn without_commas(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    let marks: Vec<(usize, char)> = Marks::new(text).collect();
    let solid: Vec<&(usize, char)> = marks.iter().filter(|(_, c)| !c.is_whitespace()).collect();
    for pair in solid.windows(2) {
        let ((at, comma), (_, next)) = (*pair[0], *pair[1]);
        // A string in between is no mark, but then its quotes are.
        if comma == ',' && matches!(next, ']' | '}') {
            out.push_str(&text[from..at]);
            from = at + 1;
        }
    }
    out.push_str(&text[from..]);
    out
}

/// The text without a key of the nth object of a list.
pub(super) fn without(text: &str, nth: usize, key: &str) -> Option<String> {
    let mut wanted: Value = serde_json::from_str(text).ok()?;
    wanted.get_mut(nth)?.as_object_mut()?.shift_remove(key)?;
    let span = member(text, nth, key)?;
    let out = format!("{}{}", &text[..span.start], &text[span.end..]);
    let is = serde_json::from_str::<Value>(&out).ok()?;
    (is == wanted).then_some(out)
}

/// From the comma before a member (or the key itself, where it is the first) to its end (or to the next key).
fn member(text: &str, nth: usize, key: &str) -> Option<Range<usize>> {
    let (mut depth, mut object) = (0_usize, 0_usize);
    let mut comma = None;
    let mut begin: Option<(usize, bool)> = None;
    for (at, c) in Marks::new(text) {
        if let Some((start, first)) = begin.filter(|_| depth == 2)
            && matches!(c, ',' | '}')
        {
            return Some(if first && c == ',' {
                let next = at + 1;
                let gap = text[next..].len() - text[next..].trim_start().len();
                start..next + gap
            } else {
                let end = text[..at].trim_end().len();
                start..end
            });
        }
        match c {
            '[' | '{' => {
                depth += 1;
                if depth == 2 {
                    comma = None;
                }
            }
            ']' | '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 1 {
                    object += 1;
                }
            }
            ',' if depth == 2 => comma = Some(at),
            '"' if depth == 2 && object == nth && begin.is_none() => {
                let name = format!("\"{key}\"");
                let rest = text[at..].strip_prefix(name.as_str());
                if rest.is_some_and(|rest| rest.trim_start().starts_with(':')) {
                    begin = Some((comma.unwrap_or(at), comma.is_none()));
                }
            }
            _ => {}
        }
    }
    None
}

/// The characters that stand outside of strings, and the quote that begins each string.
struct Marks<'t> {
    chars: std::str::CharIndices<'t>,
}

impl<'t> Marks<'t> {
    fn new(text: &'t str) -> Self {
        let chars = text.char_indices();
        Self { chars }
    }
}

impl Iterator for Marks<'_> {
    type Item = (usize, char);

    fn next(&mut self) -> Option<(usize, char)> {
        let (at, c) = self.chars.next()?;
        if c == '"' {
            let mut escaped = false;
            for (_, c) in self.chars.by_ref() {
                match c {
                    _ if escaped => escaped = false,
                    '\\' => escaped = true,
                    '"' => break,
                    _ => {}
                }
            }
        }
        Some((at, c))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_stray_commas_go_and_nothing_else_does() {
        let text = "{\n  \"a\": \"# no // comment\",   # a comment\n  // and a line of its own\n  \"b\": [1, 2,], \n}\n";
        let clean = cleaned(text).unwrap();
        assert_eq!(
            clean,
            "{\n  \"a\": \"# no // comment\",\n  \"b\": [1, 2] \n}\n"
        );
        assert_eq!(cleaned(&clean), None, "it is fine now");
        assert_eq!(cleaned("{\"a\": ...}"), None, "an outline stays");
        assert_eq!(cleaned("n2, n3 # two"), None, "the short form is no JSON");
        assert_eq!(cleaned("{\"a\": \"x # y\n\"}"), None);
    }

    #[test]
    fn a_member_goes_with_its_comma_wherever_it_stands() {
        let cut = |text: &str, nth| without(text, nth, "ips");
        assert_eq!(
            cut(r#"[{"name": "n2", "ips": ["1/2"], "mac": "x"}]"#, 0).unwrap(),
            r#"[{"name": "n2", "mac": "x"}]"#
        );
        assert_eq!(
            cut(r#"[{"ips": ["1,2}"], "name": "n2"}]"#, 0).unwrap(),
            r#"[{"name": "n2"}]"#
        );
        assert_eq!(
            cut("[{\n  \"name\": \"n2\",\n  \"ips\": [\"1\"]\n}]\n", 0).unwrap(),
            "[{\n  \"name\": \"n2\"\n}]\n"
        );
        assert_eq!(
            cut(
                r#"[{"name": "ips"}, {"name": "b", "cni-args": {"ips": 1}, "ips": "x"}]"#,
                1
            )
            .unwrap(),
            r#"[{"name": "ips"}, {"name": "b", "cni-args": {"ips": 1}}]"#
        );
        assert_eq!(cut(r#"[{"name": "n2"}]"#, 0), None);
        assert_eq!(cut(r#"[{"name": "n2", "ips": []}]"#, 1), None);
        assert_eq!(cut("n2", 0), None);
    }
}
