//! What ties the chart to the sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::rendered::{chart, helm, list, objects, root};

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Every Rust file below, as one text.
fn sources(dir: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text += &sources(&path);
        } else if path.extension().is_some_and(|e| e == "rs") {
            text += &fs::read_to_string(&path).unwrap();
        }
    }
    text
}

fn everything_on() -> Option<Vec<Value>> {
    let values = root().join("xtask/tests/chart/cases/everything-optional-is-on/values.yaml");
    let text = helm()?.template(&values).unwrap_or_else(|e| panic!("{e}"));
    Some(objects(&text))
}

/// Words of a text that begin so.
fn words<'a>(text: &'a str, lead: &str) -> BTreeSet<&'a str> {
    let parts = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    parts.filter(|word| word.starts_with(lead)).collect()
}

#[test]
fn the_chart_has_the_version_of_the_workspace() {
    let chart: Value = serde_saphyr::from_str(&read("deploy/chart/mooring/Chart.yaml")).unwrap();
    let wanted = env!("CARGO_PKG_VERSION");
    assert_eq!(chart["version"], wanted);
    assert_eq!(chart["appVersion"], wanted);
}

#[test]
fn every_variable_of_a_container_is_one_that_the_program_reads() {
    let sources = sources(&root().join("crates/controller/src"));
    let mut text = String::new();
    for entry in fs::read_dir(chart().join("templates")).unwrap() {
        text += &fs::read_to_string(entry.unwrap().path()).unwrap();
    }
    let set = words(&text, "MOOR_CONTROLLER_");
    assert!(set.len() > 6, "{set:?}");
    for variable in set {
        assert!(sources.contains(&format!("\"{variable}\"")), "{variable}");
    }
}

#[test]
fn alerts_ask_for_metrics_and_findings_that_exist_and_say_what_to_do() {
    let Some(objects) = everything_on() else {
        return;
    };
    let metrics = read("crates/controller/src/metrics.rs");
    let rule = objects
        .iter()
        .find(|o| o["kind"] == "PrometheusRule")
        .unwrap();
    let alerts = list(rule, "/spec/groups/0/rules");
    let names: BTreeSet<&str> = alerts.iter().filter_map(|a| a["alert"].as_str()).collect();
    let wanted = [
        "Conflict",
        "DraftStuck",
        "NoLeader",
        "PoolAlmostFull",
        "PoolExhausted",
    ];
    assert_eq!(
        names,
        wanted
            .map(|n| format!("Mooring{n}"))
            .iter()
            .map(String::as_str)
            .collect()
    );
    for alert in alerts {
        let expression = alert["expr"].as_str().unwrap();
        let asked = words(expression, "mooring_");
        assert!(!asked.is_empty(), "{expression}");
        for metric in asked {
            let name = metric
                .trim_start_matches("mooring_")
                .trim_end_matches("_total");
            assert!(
                metrics.contains(&format!("\"{name}\"")),
                "{metric} is not measured"
            );
        }
        let runbook = alert["annotations"]["runbook"].as_str().unwrap_or_default();
        assert!(runbook.ends_with('.') && runbook.len() > 40, "{alert}");
        let codes = expression.split_once("outcome=~\"").map(|(_, rest)| rest);
        let codes = codes
            .and_then(|rest| rest.split('"').next())
            .unwrap_or_default();
        for code in codes.split('|').filter(|code| !code.is_empty()) {
            let page = root().join(format!("docs/findings/{code}.md"));
            assert!(page.is_file(), "no finding is called {code}");
        }
    }
}

#[test]
fn every_value_is_documented_and_known_to_the_schema() {
    let values: Value = serde_saphyr::from_str(&read("deploy/chart/mooring/values.yaml")).unwrap();
    let schema: Value =
        serde_json::from_str(&read("deploy/chart/mooring/values.schema.json")).unwrap();
    let readme = read("deploy/chart/mooring/README.md");
    let mut seen = 0;
    let mut rest = vec![(String::new(), &values, &schema)];
    while let Some((path, value, schema)) = rest.pop() {
        if readme.contains(&format!("| `{path}` |")) {
            seen += 1;
            continue;
        }
        let inner = value.as_object().filter(|o| !o.is_empty());
        let inner = inner.unwrap_or_else(|| panic!("{path} has no words above it"));
        let known: BTreeSet<&String> = schema["properties"].as_object().unwrap().keys().collect();
        for (key, value) in inner {
            assert!(known.contains(key), "{path}.{key} is not in the schema");
            let below = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            rest.push((below, value, &schema["properties"][key]));
        }
        for key in known.into_iter().filter(|key| *key != "global") {
            assert!(
                inner.contains_key(key),
                "{path}.{key} is only in the schema"
            );
        }
    }
    assert!(seen > 40, "only {seen} values were found");
}
