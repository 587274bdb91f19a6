//! What the installed definitions have, compared with the fields that a role needs.
//!
//! Our chart never upgrades a definition of somebody else, so a field may be missing: the API server then drops it without
//! a word. Easy to get wrong: a status that is dropped too looks like a change at every pass; [`Schemas::prune`] it first.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};
use serde_json::{Map, Value};

use crate::error::Error;

/// The fields of a kind that a role reads or writes and that another's definition may lack.
#[derive(Debug)]
pub(crate) struct Need {
    /// The definition's name: `<plural>.<group>`.
    pub(crate) definition: &'static str,
    /// Paths such as `spec.ranges`.
    pub(crate) fields: &'static [&'static str],
}

/// The fields that are missing, by definition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Schemas(BTreeMap<&'static str, BTreeSet<&'static str>>);

impl Schemas {
    /// Reads the definitions. One that is not there, or that we may not read, lacks nothing.
    pub(crate) async fn compare(client: &Client, needs: &'static [Need]) -> Result<Self, Error> {
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let mut missing = BTreeMap::new();
        for need in needs {
            let definition = match api.get_opt(need.definition).await {
                Ok(Some(definition)) => definition,
                Ok(None) => continue,
                Err(kube::Error::Api(status)) if status.code == 403 => {
                    tracing::warn!(
                        need.definition,
                        "the definition may not be read; it is taken to be ours"
                    );
                    continue;
                }
                Err(error) => return Err(Error::api("read a definition")(error)),
            };
            let lacking = lacking(&definition, need.fields);
            if !lacking.is_empty() {
                tracing::warn!(need.definition, fields = ?lacking, "the installed definition lacks fields; write their annotation twins");
                missing.insert(need.definition, lacking);
            }
        }
        Ok(Self(missing))
    }

    /// The fields that a definition lacks.
    pub(crate) fn missing(&self, definition: &str) -> impl Iterator<Item = &'static str> + '_ {
        self.0.get(definition).into_iter().flatten().copied()
    }

    /// Removes the fields of a status that the server would drop.
    pub(crate) fn prune(&self, definition: &str, status: &mut Map<String, Value>) {
        for field in self.missing(definition) {
            if let Some(field) = field.strip_prefix("status.") {
                status.remove(field);
            }
        }
    }
}

fn lacking(
    definition: &CustomResourceDefinition,
    fields: &'static [&'static str],
) -> BTreeSet<&'static str> {
    let served = definition.spec.versions.iter().find(|v| v.served);
    let schema = served.and_then(|v| v.schema.as_ref()?.open_api_v3_schema.as_ref());
    let schema = schema.and_then(|s| serde_json::to_value(s).ok());
    let Some(schema) = schema else {
        return BTreeSet::new();
    };
    let fields = fields.iter().copied();
    fields.filter(|field| !has(&schema, field)).collect()
}

/// Whether a schema keeps a field.
fn has(schema: &Value, path: &str) -> bool {
    let keeps = |at: &Value| at["x-kubernetes-preserve-unknown-fields"] == true;
    let mut at = schema;
    for name in path.split('.') {
        if keeps(at) {
            return true;
        }
        match at.get("properties").and_then(|p| p.get(name)) {
            Some(next) => at = next,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_field_is_kept_where_it_is_listed_or_everything_is() {
        let schema = json!({ "properties": {
            "spec": { "properties": { "prefix": { "type": "string" } } },
            "status": { "x-kubernetes-preserve-unknown-fields": true },
        } });
        assert!(has(&schema, "spec.prefix"));
        assert!(!has(&schema, "spec.ranges"));
        assert!(has(&schema, "status.free"));
        assert!(!has(&schema, "other"));
    }

    #[test]
    fn what_the_server_drops_is_not_written() {
        let schemas = Schemas(BTreeMap::from([(
            "a.b",
            BTreeSet::from(["status.free", "spec.ranges"]),
        )]));
        let Value::Object(mut status) = json!({ "free": "1", "prefix": "10.0.0.0/8" }) else {
            return;
        };
        schemas.prune("a.b", &mut status);
        assert_eq!(Value::Object(status), json!({ "prefix": "10.0.0.0/8" }));
    }
}
