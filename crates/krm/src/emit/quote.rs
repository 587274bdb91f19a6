//! Which text may stand bare and how the rest is quoted.
//!
//! The rule is the union of what YAML 1.1 and 1.2 readers take for something else: `yes`, `on`, `0123`,
//! `1:30`, dates, `=`. Easy to get wrong: an address like 10.0.0.1 is no number and stays bare, a MAC
//! address of decimal digits is a base-60 number to a 1.1 reader and must be quoted.

use crate::scalar;

/// A text outside brackets.
pub(crate) fn plain_or_quoted(out: &mut String, text: &str) {
    if is_special(text) || text.chars().any(needs_escape) {
        double_quoted(out, text);
    } else if stands_bare(text) {
        out.push_str(text);
    } else {
        single_quoted(out, text);
    }
}

/// A text inside brackets.
pub(crate) fn flow_text(out: &mut String, text: &str, json: bool) {
    if json || is_special(text) || text.chars().any(needs_escape) {
        double_quoted(out, text);
    } else if stands_bare(text) && !text.contains([',', '[', ']', '{', '}', ':', '?']) {
        out.push_str(text);
    } else {
        single_quoted(out, text);
    }
}

/// Escapes that both JSON and YAML know.
pub(crate) fn double_quoted(out: &mut String, text: &str) {
    use std::fmt::Write as _;
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if needs_escape(c) => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    write!(out, "\\u{unit:04x}").expect("writing to a string cannot fail");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn single_quoted(out: &mut String, text: &str) {
    out.push('\'');
    out.push_str(&text.replace('\'', "''"));
    out.push('\'');
}

/// A float that YAML 1.1 readers also take for one: with a dot and a signed exponent.
pub(crate) fn float_text(value: f64) -> String {
    let text = serde_json::Number::from_f64(value).map_or_else(String::new, |n| n.to_string());
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    let dot = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['-', '+']) {
        ""
    } else {
        "+"
    };
    format!("{mantissa}{dot}e{sign}{exponent}")
}

/// Whether a text is better, and safely, written as a literal block.
pub(super) fn fits_literal(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    text.contains('\n')
        && !body.ends_with('\n')
        && body.contains(|c| c != '\n' && c != ' ' && c != '\t')
        && body
            .split('\n')
            .all(|line| line.is_empty() || !line.trim_matches([' ', '\t']).is_empty())
        && !text
            .chars()
            .any(|c| c != '\n' && c != '\t' && needs_escape(c))
}

/// Characters that do not survive unescaped in every reader.
fn needs_escape(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

/// Whether some reader takes this text for something that is not text.
fn is_special(text: &str) -> bool {
    if text.is_empty() || scalar::resolve_other(text).is_some() {
        return true;
    }
    let lower = text.to_ascii_lowercase();
    matches!(
        &*lower,
        "y" | "n"
            | "yes"
            | "no"
            | "on"
            | "off"
            | "true"
            | "false"
            | "null"
            | "~"
            | "="
            | "<<"
            | ".inf"
            | "-.inf"
            | "+.inf"
            | ".nan"
    ) || looks_numeric(&lower)
}

fn looks_numeric(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let Some(first) = digits.bytes().next() else {
        return false;
    };
    if !(first.is_ascii_digit() || first == b'.') {
        return false;
    }
    let is_date = digits.len() >= 8
        && digits.as_bytes()[4] == b'-'
        && digits.bytes().take(4).all(|b| b.is_ascii_digit());
    let dense: String = digits.chars().filter(|&c| c != '_' && c != ',').collect();
    is_date
        || scalar::is_float(&dense)
        || dense
            .strip_prefix("0x")
            .is_some_and(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))
        || dense
            .strip_prefix("0o")
            .is_some_and(|d| d.bytes().all(|b| b.is_ascii_digit()))
        || dense
            .strip_prefix("0b")
            .is_some_and(|d| d.bytes().all(|b| b.is_ascii_digit()))
        || (dense.contains(':')
            && dense
                .bytes()
                .all(|b| b.is_ascii_digit() || b == b':' || b == b'.'))
}

/// Whether the grammar lets this text stand without quotes, outside brackets.
fn stands_bare(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    let clear_start = match first {
        b'-' | b'?' | b':' => bytes.get(1).is_some_and(|&b| b != b' ') && !text.starts_with("---"),
        b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\''
        | b'"' | b'%' | b'@' | b'`' | b' ' => false,
        _ => !text.starts_with("..."),
    };
    clear_start && last != b' ' && last != b':' && !text.contains(": ") && !text.contains(" #")
}
