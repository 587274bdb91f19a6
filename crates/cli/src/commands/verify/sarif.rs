//! Findings as SARIF 2.1.0, which code review tools show beside the lines.
//!
//! A rule is the code of a finding: its sentence, and its page as help. Easy to get wrong: paths are URI references, so
//! what is no plain letter is escaped, and `ruleIndex` counts in the list of rules of this very log.

use anyhow::Context as _;
use mooring_api::{Code, Finding, Severity};
use serde_json::{Value, json};

use crate::embedded;

/// The whole log, as text.
pub(super) fn log(findings: &[Finding]) -> anyhow::Result<String> {
    let mut codes: Vec<Code> = findings.iter().map(|f| f.code).collect();
    codes.sort_by_key(|code| code.as_str());
    codes.dedup();
    let results: Vec<Value> = findings.iter().map(|f| result(f, &codes)).collect();
    let rules: Vec<Value> = codes.iter().map(|code| rule(*code)).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "moor",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    let text = serde_json::to_string_pretty(&log).context("cannot write SARIF")?;
    Ok(text + "\n")
}

fn rule(code: Code) -> Value {
    let mut rule = json!({
        "id": code.as_str(),
        "shortDescription": {"text": code.summary()},
        "help": {"text": code.summary()},
    });
    if let Some(page) = embedded::finding_page(code) {
        rule["help"]["markdown"] = page.into();
    }
    rule
}

fn result(finding: &Finding, codes: &[Code]) -> Value {
    let level = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    };
    let mut text = finding.message.clone();
    if !finding.help.is_empty() {
        text = format!("{text}\nhelp: {}", finding.help);
    }
    let mut result = json!({
        "ruleId": finding.code.as_str(),
        "ruleIndex": codes.iter().position(|code| *code == finding.code),
        "level": level,
        "message": {"text": text},
    });
    let mut location = json!({});
    if let Some(place) = &finding.location {
        location["physicalLocation"] = json!({
            "artifactLocation": {"uri": uri(&place.file)},
            "region": {"startLine": place.line, "startColumn": place.column},
        });
    }
    if let Some(object) = &finding.object {
        let mut name = object.to_string();
        if let Some(field) = &finding.field {
            name = format!("{name}: {field}");
        }
        location["logicalLocations"] = json!([{"fullyQualifiedName": name}]);
    }
    if location != json!({}) {
        result["locations"] = json!([location]);
    }
    result
}

/// A path as a URI reference.
fn uri(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/@!$&'()*+,;=".contains(&byte);
    let escaped = |byte: u8| {
        if plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    path.bytes().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_escaped_where_a_uri_would_read_it_otherwise() {
        assert_eq!(uri("./a/b c#1.yaml"), "a/b%20c%231.yaml");
        assert_eq!(uri("größe:x"), "gr%C3%B6%C3%9Fe%3Ax");
    }

    #[test]
    fn every_result_points_at_its_own_rule() {
        let all = [
            Finding::warning(Code::MissingRoute, "b"),
            Finding::error(Code::DuplicateAddress, "a").located("x.yaml", 3, 5),
            Finding::warning(Code::MissingRoute, "c"),
        ];
        let log: Value = serde_json::from_str(&log(&all).unwrap()).unwrap();
        let run = &log["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        assert_eq!(rules.len(), 2);
        for result in run["results"].as_array().unwrap() {
            let at = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(rules[at]["id"], result["ruleId"]);
        }
        let place = &run["results"][1]["locations"][0]["physicalLocation"];
        assert_eq!(place["region"], json!({"startLine": 3, "startColumn": 5}));
    }
}
