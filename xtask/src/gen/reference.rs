//! The reference page: per kind a table of fields, and the rules in plain words.

use std::fmt::Write;

use mooring_api::kinds::Kind;
use serde_json::Value;

/// The whole page.
pub(super) fn page(kinds: &[Kind]) -> String {
    let mut out = String::from(
        "<!-- Written by `cargo xtask gen` from crates/api/src/kinds. Edit there. -->\n\
         # Fields of the kinds\n\n\
         What `moor` reads and writes, by group. A field marked *required* must be there. `ipam.nephio.org`\n\
         is read as `ipam.resource.nephio.org`. Below each table stand the rules that tie fields together;\n\
         the API server enforces the same ones.\n\n\
         A *reference* has `name` and `namespace` (empty means `default`), and may carry the other fields of\n\
         an ObjectReference. A *condition* has `type`, `status` (True, False, Unknown), `reason`, `message`,\n\
         `lastTransitionTime` and `observedGeneration`.\n\n",
    );
    for kind in kinds {
        let name = format!("{} {}", kind.group(), kind.kind());
        let anchor: String = name
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || *c == ' ')
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        line(&mut out, &format!("- [{name}](#{anchor})"));
    }
    for kind in kinds {
        section(&mut out, kind);
    }
    out
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("a String takes everything");
}

fn section(out: &mut String, kind: &Kind) {
    let schema = kind.schema();
    line(out, &format!("\n## {} {}\n", kind.group(), kind.kind()));
    line(out, text(schema, "description"));
    let api_version = format!("{}/{}", kind.group(), kind.version());
    line(
        out,
        &format!("\n`apiVersion: {api_version}`, `kind: {}`", kind.kind()),
    );
    for part in ["spec", "status"] {
        let Some(part_schema) = schema["properties"].get(part) else {
            continue;
        };
        let mut rows = Vec::new();
        fields(part_schema, "", &mut rows);
        if rows.is_empty() {
            continue;
        }
        line(
            out,
            &format!("\n| {part} | type | meaning |\n|---|---|---|"),
        );
        for row in rows {
            line(out, &row);
        }
    }
    let mut rules = Vec::new();
    gather(schema, "", &mut rules);
    if !rules.is_empty() {
        line(out, "\nRefused, with what to do:\n");
        for rule in rules {
            line(out, &rule);
        }
    }
}

fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn fields(schema: &Value, at: &str, rows: &mut Vec<String>) {
    let required = |name: &str| {
        let list = schema.get("required").and_then(Value::as_array);
        list.is_some_and(|l| l.iter().any(|r| r == name))
    };
    let all = schema.get("properties").and_then(Value::as_object);
    for (name, child) in all.into_iter().flatten() {
        let path = format!("{at}{name}");
        let must = if required(name) { " *required*" } else { "" };
        let meaning = text(child, "description").replace('|', "\\|");
        rows.push(format!(
            "| `{path}` | {}{must} | {meaning}{} |",
            shape(child),
            limits(child)
        ));
        if is_reference(child) || child.get("items").is_some_and(is_condition) {
            continue;
        }
        fields(child, &format!("{path}."), rows);
        if let Some(items) = child.get("items").filter(|i| !is_reference(i)) {
            fields(items, &format!("{path}[]."), rows);
        }
    }
}

/// References and conditions are the same everywhere and said once, at the top.
fn is_reference(schema: &Value) -> bool {
    schema.pointer("/properties/resourceVersion").is_some()
}

fn is_condition(schema: &Value) -> bool {
    schema.pointer("/properties/lastTransitionTime").is_some()
}

fn shape(schema: &Value) -> String {
    if schema.get("x-kubernetes-int-or-string").is_some() {
        return "number or string".to_owned();
    }
    match text(schema, "type") {
        _ if is_reference(schema) => "reference".to_owned(),
        _ if is_condition(schema) => "condition".to_owned(),
        "array" => format!("list of {}", shape(&schema["items"])),
        "object" => match schema.get("additionalProperties") {
            Some(values) => format!("map of {}", shape(values)),
            None => "object".to_owned(),
        },
        other => other.to_owned(),
    }
}

/// What the schema says beyond the type.
fn limits(schema: &Value) -> String {
    let mut said = Vec::new();
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let named = choices
            .iter()
            .filter_map(Value::as_str)
            .filter(|c| !c.is_empty());
        said.push(
            named
                .map(|c| format!("`{c}`"))
                .collect::<Vec<_>>()
                .join(", "),
        );
    }
    match (schema.get("minimum"), schema.get("maximum")) {
        (Some(min), Some(max)) => said.push(format!("{min} to {max}")),
        (Some(min), None) => said.push(format!("{min} or more")),
        (None, Some(max)) => said.push(format!("{max} or less")),
        (None, None) => {}
    }
    if let Some(max) = schema.get("maxItems") {
        said.push(format!("at most {max}"));
    }
    if let Some(default) = schema.get("default").and_then(Value::as_str) {
        said.push(format!("default `{default}`"));
    }
    if said.is_empty() {
        String::new()
    } else {
        format!(" ({})", said.join("; "))
    }
}

fn gather(schema: &Value, at: &str, rules: &mut Vec<String>) {
    let own = schema
        .get("x-kubernetes-validations")
        .and_then(Value::as_array);
    for rule in own.into_iter().flatten() {
        let field = format!("{at}{}", text(rule, "fieldPath"));
        let said = text(rule, "message");
        let (what, help) = said.split_once("; ").unwrap_or((said, ""));
        let row = format!(
            "- `{field}` {what}{}",
            if help.is_empty() {
                String::new()
            } else {
                format!(": {help}")
            }
        );
        if !rules.contains(&row) {
            rules.push(row);
        }
    }
    for (name, child) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let path = if at.is_empty() {
            name.clone()
        } else {
            format!("{at}.{name}")
        };
        gather(child, &path, rules);
    }
    if let Some(items) = schema.get("items") {
        gather(items, &format!("{at}[]"), rules);
    }
}
