//! `selectors` and `exclude` of a pipeline's function: which objects it sees.
//!
//! As kpt reads them: an object is seen when one of the selectors fits, or there are none, and no exclusion fits. All fields of a
//! selector must fit, by equality. What is not seen stays as it is. Easy to get wrong: an empty selector fits everything, an
//! empty exclusion nothing; and the Kptfile is an object like any other.

use std::collections::BTreeSet;

use mooring_api::ObjectRef;
use mooring_blueprint::{Bundle, Object};
use mooring_krm::kptfile;
use serde_json::Value;

use super::Act;

/// The objects that a function sees.
#[derive(Clone, Debug, Default)]
pub(crate) struct Only {
    selectors: Vec<Value>,
    exclude: Vec<Value>,
}

impl Only {
    /// What the pipeline says.
    pub(super) fn read(function: &kptfile::Function) -> Self {
        let list = |key: &str| {
            let list = function.value.get(key).and_then(Value::as_array);
            list.cloned().unwrap_or_default()
        };
        Self {
            selectors: list("selectors"),
            exclude: list("exclude"),
        }
    }

    /// Whether nothing is left out.
    pub(super) fn is_everything(&self) -> bool {
        self.selectors.is_empty() && self.exclude.is_empty()
    }

    /// The act, limited where it is.
    pub(super) fn limit(self, act: Act) -> Act {
        if self.is_everything() {
            act
        } else {
            Act::Only(self, Box::new(act))
        }
    }

    /// Whether an object is seen.
    pub(super) fn has(&self, object: &Value) -> bool {
        let selected = self.selectors.is_empty() || self.selectors.iter().any(|s| fits(s, object));
        let left_out = |s: &Value| !is_empty(s) && fits(s, object);
        selected && !self.exclude.iter().any(left_out)
    }

    /// Lets `act` work on what is seen. Its objects come first afterwards, so that a second time changes nothing.
    pub(super) fn within(&self, bundle: &mut Bundle, act: impl FnOnce(&mut Bundle)) {
        let all = std::mem::take(&mut bundle.objects);
        let (some, rest): (Vec<Object>, Vec<Object>) =
            all.iter().cloned().partition(|o| self.has(&o.value));
        bundle.objects = some.into();
        act(bundle);
        // What it could not see it may have made once more.
        let hidden: BTreeSet<ObjectRef> = rest.iter().map(Object::reference).collect();
        bundle.objects.retain(|o| !hidden.contains(&o.reference()));
        for object in rest {
            bundle.objects.push(object);
        }
    }
}

const TEXTS: [(&str, &str); 4] = [
    ("apiVersion", "/apiVersion"),
    ("kind", "/kind"),
    ("name", "/metadata/name"),
    ("namespace", "/metadata/namespace"),
];

const MAPS: [(&str, &str); 2] = [
    ("labels", "/metadata/labels"),
    ("annotations", "/metadata/annotations"),
];

fn text<'s>(selector: &'s Value, key: &str) -> &'s str {
    selector
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn pairs<'s>(selector: &'s Value, key: &str) -> impl Iterator<Item = (&'s String, &'s Value)> {
    let map = selector.get(key).and_then(Value::as_object);
    map.into_iter().flatten()
}

fn is_empty(selector: &Value) -> bool {
    TEXTS.iter().all(|(key, _)| text(selector, key).is_empty())
        && MAPS
            .iter()
            .all(|(key, _)| pairs(selector, key).next().is_none())
}

fn fits(selector: &Value, object: &Value) -> bool {
    let says = |(key, place): &(&str, &str)| {
        let wanted = text(selector, key);
        let found = object.pointer(place).and_then(Value::as_str);
        wanted.is_empty() || found.unwrap_or_default() == wanted
    };
    let has = |(key, place): &(&str, &str)| {
        pairs(selector, key).all(|(name, wanted)| {
            let found = object.pointer(place).and_then(|map| map.get(name));
            found == Some(wanted)
        })
    };
    TEXTS.iter().all(says) && MAPS.iter().all(has)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn only(selectors: &Value, exclude: &Value) -> Only {
        let list = |v: &Value| v.as_array().cloned().unwrap_or_default();
        Only {
            selectors: list(selectors),
            exclude: list(exclude),
        }
    }

    #[test]
    fn one_selector_is_enough_all_of_its_fields_count_and_exclusions_win() {
        let n3 = json!({ "apiVersion": "req.nephio.org/v1alpha1", "kind": "Interface",
            "metadata": { "name": "n3", "namespace": "core", "labels": { "a": "b" }, "annotations": { "c": "d" } } });
        let fitting = [
            json!({}),
            json!({ "kind": "Interface", "name": "n3" }),
            json!({ "apiVersion": "req.nephio.org/v1alpha1", "namespace": "core" }),
            json!({ "labels": { "a": "b" }, "annotations": { "c": "d" } }),
        ];
        let others = [
            json!({ "kind": "Interface", "name": "n4" }),
            json!({ "kind": "Interfac" }),
            json!({ "name": "n3", "namespace": "ran" }),
            json!({ "labels": { "a": "x" } }),
            json!({ "labels": { "x": "b" } }),
            json!({ "annotations": { "c": "" } }),
        ];
        for one in &fitting {
            assert!(only(&json!([one]), &Value::Null).has(&n3), "{one}");
            let excluded = !only(&Value::Null, &json!([one])).has(&n3);
            // An empty exclusion leaves nothing out.
            assert_eq!(excluded, *one != json!({}), "{one}");
        }
        for one in &others {
            assert!(!only(&json!([one]), &Value::Null).has(&n3), "{one}");
            assert!(only(&Value::Null, &json!([one])).has(&n3), "{one}");
            assert!(only(&json!([one, fitting[1]]), &Value::Null).has(&n3));
        }
        assert!(!only(&json!([fitting[1]]), &json!([fitting[3]])).has(&n3));
    }
}
