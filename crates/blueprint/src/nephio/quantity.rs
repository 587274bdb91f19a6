//! Kubernetes quantities in the form that the published types print them: `1000M` is `1G`, `0` is `"0"`.

use serde_json::{Value, json};

const SUFFIXES: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

/// A decimal quantity in its shortest exact form; anything else as it is written.
pub(super) fn canonical(value: &Value) -> Value {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return value.clone(),
    };
    json!(shortest(&text).unwrap_or(text))
}

fn shortest(text: &str) -> Option<String> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let (_, scale) = SUFFIXES.iter().find(|(s, _)| *s == suffix)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 || fraction.contains('.') {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some("0".to_owned());
    }
    let kept = digits.trim_end_matches('0');
    let zeros = i32::try_from(digits.len() - kept.len()).ok()?;
    let exponent = scale - i32::try_from(fraction.len()).ok()? + zeros;
    let (suffix, at) = SUFFIXES.iter().rev().find(|(_, at)| *at <= exponent)?;
    let pad = usize::try_from(exponent - at).ok()?;
    Some(format!("{sign}{kept}{}{suffix}", "0".repeat(pad)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_take_their_shortest_form() {
        for (written, printed) in [
            (json!("10G"), "10G"),
            (json!("1000M"), "1G"),
            (json!("1.5G"), "1500M"),
            (json!(0), "0"),
            (json!(10_000_000_000_u64), "10G"),
            (json!("2Gi"), "2Gi"),
            (json!("1e3"), "1e3"),
            (json!("0.5"), "500m"),
            (json!("007k"), "7k"),
        ] {
            assert_eq!(canonical(&written), json!(printed), "{written}");
        }
    }
}
