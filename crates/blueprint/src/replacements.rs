//! apply-replacements: a value of one object is written into fields of others.
//!
//! ```text
//!  source  WorkloadCluster.spec.clusterName = edge-01
//!  target  NFDeployment.metadata.name       = upf-example ── delimiter '-', index 1 ──► upf-edge-01
//! ```
//!
//! The rules are those of kustomize's replacements; `package` calls this for the pipeline's function of that name and as a
//! KRM function. Easy to get wrong: what is written into a part of a text may itself contain the delimiter. Split
//! again, `upf-edge-01` has three parts, and the published function makes `upf-edge-01-01` of it at the next render, then
//! `upf-edge-01-01-01`. Here a value that stands in its place already is found as a whole; which value that was is noted on the
//! configuration ([`REPLACED`]), so that a package can also move from `edge-01` to `edge`.

mod path;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use mooring_api::{Code, Finding};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::bundle::{Bundle, Object};
use path::Path;

/// On the configuration: the values with a delimiter inside that were written last, by number of replacement.
pub const REPLACED: &str = "mooring.dev/replaced";

/// The kind of the configuration.
pub const KIND: &str = "ApplyReplacements";

#[derive(Debug, Deserialize)]
struct Config {
    #[serde(default)]
    replacements: Vec<Replacement>,
}

#[derive(Debug, Deserialize)]
struct Replacement {
    #[serde(default)]
    source: Option<Source>,
    #[serde(default)]
    targets: Vec<Target>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    #[serde(flatten)]
    select: Select,
    #[serde(default)]
    field_path: Option<String>,
    #[serde(default)]
    options: Options,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    #[serde(default)]
    select: Option<Select>,
    #[serde(default)]
    reject: Vec<Select>,
    #[serde(default)]
    field_paths: Vec<String>,
    #[serde(default)]
    options: Options,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Select {
    group: Option<String>,
    version: Option<String>,
    kind: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
    label_selector: Option<String>,
    annotation_selector: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Options {
    delimiter: String,
    index: i64,
    create: bool,
}

impl Select {
    fn takes(&self, object: &Object) -> bool {
        let same = |wanted: &Option<String>, has: &str| {
            wanted.as_deref().is_none_or(|w| w.is_empty() || w == has)
        };
        let version = object.api_version();
        let version = version.rsplit('/').next().unwrap_or_default();
        same(&self.group, object.group())
            && same(&self.version, version)
            && same(&self.kind, object.kind())
            && same(&self.name, object.name())
            && same(&self.namespace, object.namespace())
            && holds(self.label_selector.as_deref(), object, "labels")
            && holds(self.annotation_selector.as_deref(), object, "annotations")
    }

    fn said(&self) -> String {
        let parts = [&self.kind, &self.name].into_iter().flatten();
        let parts: Vec<&str> = parts.map(String::as_str).collect();
        if parts.is_empty() {
            "anything".to_owned()
        } else {
            parts.join(" ")
        }
    }
}

/// `key=value`, `key!=value` or `key`, comma separated.
fn holds(selector: Option<&str>, object: &Object, part: &str) -> bool {
    let map = object.value.pointer(&format!("/metadata/{part}"));
    let has = |key: &str| map.and_then(|m| m.get(key.trim())?.as_str());
    let parts = selector.unwrap_or_default().split(',');
    let mut parts = parts.map(str::trim).filter(|p| !p.is_empty());
    parts.all(|part| match part.split_once('=') {
        None => has(part).is_some(),
        Some((key, value)) => {
            let value = value.trim_start_matches('=').trim();
            match key.strip_suffix('!') {
                Some(key) => has(key) != Some(value),
                None => has(key) == Some(value),
            }
        }
    })
}

/// Applies what `config`, an ApplyReplacements object, lists. A source or a target that is missing is an error, and
/// then the package is as it was.
pub fn apply(bundle: &mut Bundle, config: &Object) -> Vec<Finding> {
    let mut objects = bundle.objects.to_vec();
    let mut work = Work {
        objects: &mut objects,
        config,
        before: remembered(bundle, config),
        noted: BTreeMap::new(),
        findings: Vec::new(),
    };
    work.run();
    let Work {
        noted, findings, ..
    } = work;
    if findings.iter().any(Finding::is_error) {
        return findings;
    }
    note(&mut objects, config, &noted);
    if objects[..] != bundle.objects[..] {
        // Made anew: a replacement may rename an object.
        bundle.objects = objects.into();
    }
    findings
}

type Noted = BTreeMap<usize, String>;

fn is_config(object: &Object, config: &Object) -> bool {
    object.kind() == KIND && object.name() == config.name()
}

/// What an earlier run noted, on the package's own copy of the configuration.
fn remembered(bundle: &Bundle, config: &Object) -> Noted {
    let own = bundle.objects.named(config.name());
    let own = own.into_iter().find(|o| is_config(o, config));
    let text = own.unwrap_or(config).annotation(REPLACED);
    let map: Map<String, Value> = text
        .and_then(|t| serde_json::from_str(t).ok())
        .unwrap_or_default();
    map.into_iter()
        .filter_map(|(k, v)| Some((k.parse().ok()?, v.as_str()?.to_owned())))
        .collect()
}

fn note(objects: &mut [Object], config: &Object, noted: &Noted) {
    let Some(own) = objects.iter_mut().find(|o| is_config(o, config)) else {
        return;
    };
    if noted.is_empty() {
        if own.annotation(REPLACED).is_some() {
            own.remove_annotation(REPLACED);
        }
        return;
    }
    let map: Map<String, Value> = noted
        .iter()
        .map(|(nth, value)| (nth.to_string(), json!(value)))
        .collect();
    own.set_annotation(REPLACED, &Value::Object(map).to_string());
}

struct Work<'a> {
    objects: &'a mut [Object],
    config: &'a Object,
    before: Noted,
    noted: Noted,
    findings: Vec<Finding>,
}

impl Work<'_> {
    fn refuse(&mut self, field: String, text: impl Into<String>) {
        let finding = Finding::error(Code::InvalidField, text)
            .on(&self.config.reference())
            .at(field)
            .help("Correct the replacement; nothing was replaced.");
        self.findings.push(finding);
    }

    fn run(&mut self) {
        if self.config.kind() != KIND {
            let text = format!(
                "the configuration is a {}, not an {KIND}",
                self.config.kind()
            );
            return self.refuse("kind".to_owned(), text);
        }
        let config = match Config::deserialize(&self.config.value) {
            Ok(config) => config,
            Err(error) => {
                return self.refuse(
                    "replacements".to_owned(),
                    format!("cannot be read: {error}"),
                );
            }
        };
        for (nth, replacement) in config.replacements.iter().enumerate() {
            let Some(value) = self.value(nth, replacement.source.as_ref()) else {
                continue;
            };
            for (at, target) in replacement.targets.iter().enumerate() {
                self.write(nth, at, target, &value);
            }
        }
    }

    /// The value of the source.
    fn value(&mut self, nth: usize, source: Option<&Source>) -> Option<Value> {
        let field = format!("replacements[{nth}].source");
        let Some(source) = source else {
            self.refuse(field, "the replacement has no source");
            return None;
        };
        let mut found = self.objects.iter().filter(|o| source.select.takes(o));
        let (first, more) = (found.next(), found.next().is_some());
        let Some(object) = first.filter(|_| !more) else {
            let count = if more { "more than one" } else { "no" };
            let text = format!("{count} object is {}", source.select.said());
            self.refuse(field, text);
            return None;
        };
        let path = source.field_path.as_deref().unwrap_or("metadata.name");
        let mut value = object.value.clone();
        let read = Path::parse(path).places(&mut value, false);
        let Some(value) = read.into_iter().next().map(|v| v.clone()) else {
            let text = format!("{} has no field {path}", source.select.said());
            self.refuse(format!("{field}.fieldPath"), text);
            return None;
        };
        if source.options.delimiter.is_empty() {
            return Some(value);
        }
        let text = scalar(&value).unwrap_or_default();
        let part = usize::try_from(source.options.index)
            .ok()
            .and_then(|index| text.split(&source.options.delimiter).nth(index));
        if part.is_none() {
            let text = format!("{text:?} has no part {}", source.options.index);
            self.refuse(format!("{field}.options.index"), text);
        }
        part.map(|part| json!(part))
    }

    fn write(&mut self, nth: usize, at: usize, target: &Target, value: &Value) {
        let field = format!("replacements[{nth}].targets[{at}]");
        let Some(select) = &target.select else {
            return self.refuse(field, "the target has no select");
        };
        let default = ["metadata.name".to_owned()];
        let paths = match target.field_paths.as_slice() {
            [] => &default[..],
            paths => paths,
        };
        let Options {
            delimiter, create, ..
        } = &target.options;
        let new = scalar(value);
        if !delimiter.is_empty() {
            let Some(new) = &new else {
                let text = "only a text can be written into a part of a text";
                return self.refuse(format!("{field}.options.delimiter"), text);
            };
            if new.contains(delimiter.as_str()) {
                self.warn(nth, at, new, delimiter);
            }
        }
        let before = self.before.get(&nth).cloned();
        let mut missing = None;
        for object in self.objects.iter_mut() {
            if !select.takes(object) || target.reject.iter().any(|r| r.takes(object)) {
                continue;
            }
            let shown = object.reference();
            for text in paths {
                let path = Path::parse(text);
                let places = path.places(&mut object.value, *create);
                if places.is_empty() && !path.is_wild() {
                    missing = Some(format!("{shown} has no field {text}"));
                }
                for place in places {
                    let wanted = match &new {
                        Some(new) if !delimiter.is_empty() => {
                            let old = scalar(place).unwrap_or_default();
                            json!(part(&old, new, before.as_deref(), &target.options))
                        }
                        _ => value.clone(),
                    };
                    if *place != wanted {
                        *place = wanted;
                    }
                }
            }
        }
        if let Some(text) = missing {
            self.refuse(format!("{field}.fieldPaths"), text);
        }
    }

    /// The value contains the delimiter: noted, and told once per replacement.
    fn warn(&mut self, nth: usize, at: usize, value: &str, delimiter: &str) {
        if self.noted.insert(nth, value.to_owned()).is_some() {
            return;
        }
        self.findings.push(
            Finding::warning(
                Code::DelimiterInValue,
                format!(
                    "{value:?} contains the delimiter {delimiter:?}; it is replaced as a whole here, but the published \
                     apply-replacements would make the names longer at every render"
                ),
            )
            .on(&self.config.reference())
            .at(format!("replacements[{nth}].targets[{at}].options.delimiter"))
            .help("Render this package with moor only, or choose a name without the delimiter."),
        );
    }
}

/// A scalar as text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null => Some(String::new()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// `old` with its part replaced by `new`. `before` is what was written there last, as far as is known.
fn part(old: &str, new: &str, before: Option<&str>, options: &Options) -> String {
    let delimiter = options.delimiter.as_str();
    let Ok(index) = usize::try_from(options.index) else {
        return prepended(old, new, before, delimiter);
    };
    let Some(head) = head(old, delimiter, index) else {
        return appended(old, new, before, delimiter);
    };
    let (front, rest) = old.split_at(head);
    for known in before.into_iter().chain([new]) {
        if let Some(tail) = begins(rest, known, delimiter) {
            return format!("{front}{new}{tail}");
        }
    }
    let end = rest.find(delimiter).unwrap_or(rest.len());
    format!("{front}{new}{}", &rest[end..])
}

/// Where part `index` begins; None where there are fewer parts.
fn head(text: &str, delimiter: &str, index: usize) -> Option<usize> {
    let mut at = 0;
    for _ in 0..index {
        at += text[at..].find(delimiter)? + delimiter.len();
    }
    Some(at)
}

/// What follows `known`, where `text` begins with it as a whole part or several.
fn begins<'t>(text: &'t str, known: &str, delimiter: &str) -> Option<&'t str> {
    let tail = text.strip_prefix(known)?;
    (tail.is_empty() || tail.starts_with(delimiter)).then_some(tail)
}

fn prepended(old: &str, new: &str, before: Option<&str>, delimiter: &str) -> String {
    for known in before.into_iter().chain([new]) {
        if let Some(tail) = old.strip_prefix(&format!("{known}{delimiter}")) {
            return format!("{new}{delimiter}{tail}");
        }
    }
    format!("{new}{delimiter}{old}")
}

fn appended(old: &str, new: &str, before: Option<&str>, delimiter: &str) -> String {
    for known in before.into_iter().chain([new]) {
        if let Some(front) = old.strip_suffix(&format!("{delimiter}{known}")) {
            return format!("{front}{delimiter}{new}");
        }
    }
    format!("{old}{delimiter}{new}")
}
