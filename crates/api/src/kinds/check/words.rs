//! How a refusal sounds: near names, values shown short, what a pattern means.

use serde_json::Value;

use super::node::{Node, Type};
use super::path::Path;

/// The patterns of our schemas in words. A test fails when a schema has a pattern that is not here.
const PATTERNS: [(&str, &str); 17] = [
    (r"^[^\s/:]{1,15}$", INTERFACE),
    (r"^([^\s/:]{1,15})?$", INTERFACE),
    (r"(?:[[:xdigit:]]{2}:){5}[[:xdigit:]]{2}", MAC),
    (r"^([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}$", MAC),
    (
        r"^((([0-9]{1,3}\.){3}[0-9]{1,3})|(([0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}))$",
        "an address, such as 192.0.2.1 or 2001:db8::1",
    ),
    (
        r"^([0-9]+[hms])+$|^0$",
        "a span of time, such as 30s or 1m30s",
    ),
    (
        r"^([1-9][0-9]*)?$",
        "an AS number, such as 64512, or nothing",
    ),
    (
        r"^[0-9]{1,5}:[0-9]{1,5}$",
        "a BGP community, such as 64500:999",
    ),
    (
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        "a name of small letters, digits and dashes, such as edge-1",
    ),
    (
        r"^[a-zA-Z0-9][a-zA-Z0-9_.-]*$",
        "a name of letters, digits, dots, dashes and underscores that begins with a letter or digit",
    ),
    (
        r"^[a-z][a-z0-9-]*$",
        "a name of small letters, digits and dashes that begins with a letter",
    ),
    (
        "^[0-9a-f][26ae](:[0-9a-f]{2}){2}$",
        "the first half of a MAC that is nobody's own, such as 02:4d:52",
    ),
    (
        r"^([0-9]{1,10}|([0-9]{1,3}\.){3}[0-9]{1,3}):[0-9]{1,10}$",
        "a route target, such as 64512:1000 or 192.0.2.1:1000",
    ),
    (
        r"^[0-9]{1,4}(:[0-9]{1,4})?$",
        "a number of VLANs (10) or a range of them (100:199)",
    ),
    (
        r"^[A-Z][A-Za-z0-9]*/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        "a workload as Kind/name, such as Deployment/upf",
    ),
    (
        r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
        "a device plugin resource as domain/name, such as mooring.dev/ens4",
    ),
    (
        r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$",
        "a quantity, such as 10G",
    ),
];

const MAC: &str = "a MAC address, such as 02:00:5e:10:00:01";
const INTERFACE: &str =
    "an interface name: at most 15 characters, no slash, no colon, no white space";

/// What a pattern asks for.
pub(super) fn pattern(source: &str) -> String {
    let known = PATTERNS.iter().find(|(p, _)| *p == source);
    known.map_or_else(
        || format!("of the form {source}"),
        |(_, said)| (*said).to_owned(),
    )
}

/// A value as it is named in a refusal.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => n.to_string(),
        Value::String(s) if s.chars().count() > 40 => {
            format!("the text {:?}…", s.chars().take(40).collect::<String>())
        }
        Value::String(s) => format!("the text {s:?}"),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// What to do where text was wanted.
pub(super) fn quote(value: &Value) -> String {
    match value {
        Value::Bool(_) | Value::Number(_) => format!("write it in quotes: \"{value}\""),
        _ => "write one line of text".to_owned(),
    }
}

/// What to do about a value of another type.
pub(super) fn retype(node: &Node, value: &Value, path: &Path<'_>) -> String {
    match (node.kind, value) {
        (Type::String, _) => quote(value),
        (Type::Integer | Type::Number, Value::String(s)) if s.parse::<f64>().is_ok() => {
            format!("write it without quotes: {s}")
        }
        (Type::Boolean, Value::String(s)) if s == "true" || s == "false" => {
            format!("write it without quotes: {s}")
        }
        (Type::Object, Value::String(s)) if node.fields.contains_key("name") => {
            format!("write {path} with `name: {s}` below it")
        }
        (Type::Array, Value::Object(_) | Value::String(_)) => {
            "write it as a list, with `- ` before each entry".to_owned()
        }
        _ => node.description.clone(),
    }
}

/// The nearest of the known names, when one is near enough to be meant.
pub(super) fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase().replace(['-', '_'], "");
    let allowed = (wanted.chars().count() / 4).clamp(1, 3);
    let scored = known.map(|k| {
        (
            distance(&wanted, &k.to_lowercase().replace(['-', '_'], "")),
            k,
        )
    });
    let best = scored.min_by_key(|(d, _)| *d)?;
    (best.0 <= allowed).then_some(best.1)
}

/// Insertions, deletions, changes and swaps of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1)
                .min(rows[i][j - 1] + 1)
                .min(rows[i - 1][j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let known = || ["networkInstance", "cniType", "sriovSpec", "mtu"].into_iter();
        assert_eq!(near("cnitype", known()), Some("cniType"));
        assert_eq!(near("sriovSpce", known()), Some("sriovSpec"));
        assert_eq!(near("network-instance", known()), Some("networkInstance"));
        assert_eq!(near("gateway", known()), None);
        assert_eq!(near("x", known()), None);
    }

    #[cfg(all(
        feature = "configsync",
        feature = "mooring",
        feature = "multus",
        feature = "nephio",
        feature = "porch",
        feature = "schiff"
    ))]
    #[test]
    fn every_pattern_of_a_schema_has_words_and_is_used() {
        fn patterns(schema: &Value, found: &mut Vec<String>) {
            match schema {
                Value::Object(map) => {
                    if let Some(Value::String(p)) = map.get("pattern") {
                        found.push(p.clone());
                    }
                    map.values().for_each(|v| patterns(v, found));
                }
                Value::Array(items) => items.iter().for_each(|v| patterns(v, found)),
                _ => {}
            }
        }
        let mut found = Vec::new();
        for kind in crate::kinds::all() {
            patterns(kind.schema(), &mut found);
        }
        found.sort();
        found.dedup();
        let known = |pattern: &String| PATTERNS.iter().any(|(p, _)| p == pattern);
        let unknown: Vec<&String> = found.iter().filter(|p| !known(p)).collect();
        assert!(unknown.is_empty(), "{unknown:#?}");
        for (pattern, _) in PATTERNS {
            assert!(found.iter().any(|p| p == pattern), "unused: {pattern}");
        }
    }
}
