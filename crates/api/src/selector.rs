//! A label selector: matchLabels, matchExpressions, and the bare map of seed 001.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Labels to match. A bare map (`selector: {nephio.org/network-name: n2}`) reads as `matchLabels`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Selector {
    /// Every pair must be there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Every expression must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Expression>,
}

/// `key operator values`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "kinds", schemars(extend("x-kubernetes-validations" = [
    { "rule": "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
      "message": "do not fit the operator; In and NotIn need values, Exists and DoesNotExist have none", "fieldPath": ".values" }])))]
pub struct Expression {
    /// Label key.
    pub key: String,
    /// How to compare.
    pub operator: Operator,
    /// For In and NotIn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// The four operators of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
pub enum Operator {
    /// The value is one of them.
    In,
    /// The key is absent or its value is none of them.
    NotIn,
    /// The key is there.
    Exists,
    /// The key is not there.
    DoesNotExist,
}

impl Selector {
    /// A selector for exactly these labels.
    pub fn labels<K: Into<String>, V: Into<String>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        Self {
            match_labels: pairs
                .into_iter()
                .map(|(k, v)| (k.into(), v.into()))
                .collect(),
            match_expressions: Vec::new(),
        }
    }

    /// Whether nothing is asked for. Such a selector matches everything.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Whether `labels` satisfy every part.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        // Asked very often, and mostly answered with no: nothing is written for it.
        self.match_labels
            .iter()
            .all(|(k, v)| labels.get(k) == Some(v))
            && self.match_expressions.iter().all(|e| e.holds(labels))
    }

    /// The parts that `labels` do not satisfy, as a person would write them: what a refusal shows.
    pub fn unmet<'a>(
        &'a self,
        labels: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = String> + 'a {
        let pairs = self
            .match_labels
            .iter()
            .filter(|(k, v)| labels.get(*k) != Some(v))
            .map(|(k, v)| format!("{k}={v}"));
        let expressions = self
            .match_expressions
            .iter()
            .filter(|e| !e.holds(labels))
            .map(ToString::to_string);
        pairs.chain(expressions)
    }
}

impl Expression {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            Operator::In => value.is_some_and(|v| self.values.contains(v)),
            Operator::NotIn => value.is_none_or(|v| !self.values.contains(v)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.values.join(", ");
        match self.operator {
            Operator::In => write!(f, "{} in ({values})", self.key),
            Operator::NotIn => write!(f, "{} not in ({values})", self.key),
            Operator::Exists => write!(f, "{} exists", self.key),
            Operator::DoesNotExist => write!(f, "{} does not exist", self.key),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    #[serde(rename_all = "camelCase")]
    Full(Full),
    Bare(BTreeMap<String, String>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Full {
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
    #[serde(default)]
    match_expressions: Vec<Expression>,
}

impl<'de> Deserialize<'de> for Selector {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(match Written::deserialize(d)? {
            Written::Full(f) => Self {
                match_labels: f.match_labels,
                match_expressions: f.match_expressions,
            },
            Written::Bare(match_labels) => Self {
                match_labels,
                match_expressions: Vec::new(),
            },
        })
    }
}

/// Structural: an object with the two known keys; other keys are the bare map, so they are strings
/// and preserved.
#[cfg(feature = "kinds")]
impl schemars::JsonSchema for Selector {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Selector".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(g: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let expression = g.subschema_for::<Expression>();
        schemars::json_schema!({
            "type": "object",
            "description": "Labels to match. A bare map of labels reads as matchLabels.",
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": {
                "matchLabels": { "type": "object", "additionalProperties": { "type": "string" } },
                "matchExpressions": { "type": "array", "maxItems": 16, "items": expression }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn a_bare_map_reads_as_match_labels() {
        let bare: Selector = serde_json::from_str(r#"{"nephio.org/network-name":"n2"}"#).unwrap();
        let full: Selector =
            serde_json::from_str(r#"{"matchLabels":{"nephio.org/network-name":"n2"}}"#).unwrap();
        assert_eq!(bare, full);
    }

    #[test]
    fn expressions_count_and_the_unmet_part_is_named() {
        let s: Selector = serde_json::from_str(
            r#"{"matchExpressions":[{"key":"zone","operator":"NotIn","values":["b"]},
                {"key":"site","operator":"Exists"}]}"#,
        )
        .unwrap();
        assert!(s.matches(&labels(&[("site", "x")])));
        assert_eq!(
            s.unmet(&labels(&[("zone", "b")])).collect::<Vec<_>>(),
            ["zone not in (b)", "site exists"]
        );
    }
}
