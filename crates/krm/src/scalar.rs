//! What a plain scalar means to Kubernetes: YAML 1.1 booleans and leading-zero octal, as its Go reader
//! has them. Called by the tree (to read) and by `emit` (to know what must be quoted).
//!
//! Easy to get wrong: infinity and not-a-number have no JSON form; they stay text here.

use serde_json::{Number, Value};

/// The value of a scalar. `plain` is false for quoted and block text.
pub(crate) fn resolve(text: &str, plain: bool, tag: Option<&str>) -> Value {
    match tag {
        Some("!!str" | "!!binary" | "!!timestamp" | "!") => Value::String(text.to_owned()),
        Some("!!int" | "!!float" | "!!bool" | "!!null") => {
            resolve_other(text).unwrap_or_else(|| Value::String(text.to_owned()))
        }
        _ if plain => resolve_other(text).unwrap_or_else(|| Value::String(text.to_owned())),
        _ => Value::String(text.to_owned()),
    }
}

/// What a plain text is when it is not a string.
pub(crate) fn resolve_other(text: &str) -> Option<Value> {
    let first = *text.as_bytes().first().unwrap_or(&b'~');
    match first {
        b'0'..=b'9' | b'+' | b'-' | b'.' => number(text).map(Value::Number),
        b'~' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'y' | b'Y' | b'o' | b'O' => match text {
            "" | "~" | "null" | "Null" | "NULL" => Some(Value::Null),
            "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => {
                Some(Value::Bool(true))
            }
            "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
                Some(Value::Bool(false))
            }
            _ => None,
        },
        _ => None,
    }
}

fn number(text: &str) -> Option<Number> {
    let stripped;
    let text = if text.contains('_') {
        stripped = text.replace('_', "");
        &stripped
    } else {
        text
    };
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    integer(negative, digits).or_else(|| float(text, digits))
}

fn integer(negative: bool, digits: &str) -> Option<Number> {
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    if !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        0i64.checked_sub_unsigned(magnitude).map(Number::from)
    } else {
        Some(Number::from(magnitude))
    }
}

/// `[0-9]* .? [0-9]* ([eE][+-]?[0-9]+)?` with at least one digit in front.
fn float(text: &str, digits: &str) -> Option<Number> {
    if !is_float(digits) {
        return None;
    }
    // A leading zero with an 8 or 9 is no octal number; Go reads it as decimal.
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Number::from(whole));
    }
    text.parse().ok().and_then(Number::from_f64)
}

pub(crate) fn is_float(digits: &str) -> bool {
    let bytes = digits.as_bytes();
    let run = |from: usize| {
        bytes[from..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count()
    };
    let whole = run(0);
    let mut at = whole;
    if bytes.get(at) == Some(&b'.') {
        let fraction = run(at + 1);
        if whole + fraction == 0 {
            return false;
        }
        at += 1 + fraction;
    } else if whole == 0 {
        return false;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(bytes.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        let exponent = run(at);
        if exponent == 0 {
            return false;
        }
        at += exponent;
    }
    at == bytes.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_scalars_mean_what_kubernetes_takes_them_for() {
        for (text, value) in [
            ("yes", json!(true)),
            ("Off", json!(false)),
            ("oN", json!("oN")),
            ("y", json!("y")),
            ("~", json!(null)),
            ("", json!(null)),
            ("0755", json!(493)),
            ("0o755", json!(493)),
            ("-0755", json!(-493)),
            ("0x1F", json!(31)),
            ("0b101", json!(5)),
            ("089", json!(89)),
            ("0", json!(0)),
            ("+12", json!(12)),
            ("1_000", json!(1000)),
            ("18446744073709551615", json!(u64::MAX)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("1.5", json!(1.5)),
            (".5", json!(0.5)),
            ("1e3", json!(1000.0)),
            ("1.", json!(1.0)),
            (".", json!(".")),
            ("-", json!("-")),
            ("0x", json!("0x")),
            ("0x-1", json!("0x-1")),
            ("10.0.0.1", json!("10.0.0.1")),
            ("10.0.0.0/24", json!("10.0.0.0/24")),
            ("12:30", json!("12:30")),
            ("2024-01-01", json!("2024-01-01")),
            (".inf", json!(".inf")),
            ("1e", json!("1e")),
        ] {
            assert_eq!(resolve(text, true, None), value, "{text}");
        }
        assert_eq!(resolve("1", true, Some("!!str")), json!("1"));
        assert_eq!(resolve("1", false, Some("!!int")), json!(1));
        assert_eq!(resolve("1", false, None), json!("1"));
    }
}
