//! Which nodes: a label selector in one canonical form, so that two ways to say the same are one scope.

use std::collections::BTreeMap;
use std::sync::Arc;

use mooring_api::{Expression, Operator, Selector};
use serde::{Deserialize, Serialize, Serializer};

/// Nodes by label. The empty scope is all nodes. Every item has one, so a copy costs nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(from = "Selector")]
pub struct Scope(Arc<Selector>);

impl From<Selector> for Scope {
    fn from(selector: Selector) -> Self {
        Self(Arc::new(selector))
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_ref().serialize(serializer)
    }
}

impl Scope {
    /// Every node.
    pub fn all() -> Self {
        Self::default()
    }

    /// The nodes that a selector selects; all without one.
    pub fn of(selector: Option<&Selector>) -> Self {
        let Some(selector) = selector else {
            return Self::all();
        };
        let pairs = selector.match_labels.iter().map(|(key, value)| Expression {
            key: key.clone(),
            operator: Operator::In,
            values: vec![value.clone()],
        });
        let written = selector.match_expressions.iter().cloned();
        Self::from_expressions(pairs.chain(written).collect())
    }

    /// The nodes of worker groups; all without any.
    pub fn of_groups(label: &str, groups: &[String]) -> Self {
        if groups.is_empty() {
            return Self::all();
        }
        Self::from_expressions(vec![Expression {
            key: label.to_owned(),
            operator: Operator::In,
            values: groups.to_vec(),
        }])
    }

    fn from_expressions(mut all: Vec<Expression>) -> Self {
        for expression in &mut all {
            expression.values.sort();
            expression.values.dedup();
        }
        all.sort();
        all.dedup();
        Self::from(Selector {
            match_labels: BTreeMap::new(),
            match_expressions: all,
        })
    }

    /// Nodes that are in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        if other.is_all() || self == other {
            return self.clone();
        }
        if self.is_all() {
            return other.clone();
        }
        let both = [&self.0, &other.0];
        let all = both.into_iter().flat_map(|s| s.match_expressions.clone());
        Self::from_expressions(all.collect())
    }

    /// Whether it is every node.
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a node with these labels is in it.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.matches(labels)
    }

    /// As a selector that a person would write; none for all nodes.
    pub fn selector(&self) -> Option<Selector> {
        if self.is_all() {
            return None;
        }
        let mut written = Selector::default();
        for expression in &self.0.match_expressions {
            let plain = expression.operator == Operator::In
                && expression.values.len() == 1
                && !written.match_labels.contains_key(&expression.key);
            if plain {
                let value = expression.values[0].clone();
                written.match_labels.insert(expression.key.clone(), value);
            } else {
                written.match_expressions.push(expression.clone());
            }
        }
        Some(written)
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_all() {
            return f.write_str("all nodes");
        }
        let said = self.0.match_expressions.iter().map(ToString::to_string);
        f.write_str(&said.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_and_a_label_that_say_the_same_are_one_scope() {
        let selector: Selector =
            serde_json::from_str(r#"{"matchLabels":{"group":"wg1"}}"#).unwrap();
        let written = Scope::of(Some(&selector));
        assert_eq!(written, Scope::of_groups("group", &["wg1".to_owned()]));
        assert_eq!(written.selector(), Some(selector));
        assert_eq!(written.and(&written), written);
        assert!(Scope::of(None).is_all());
    }
}
