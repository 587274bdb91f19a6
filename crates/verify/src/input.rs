//! What is judged, and where it came from.

use std::fmt;

use mooring_api::ObjectRef;
use serde_json::Value;

/// Where an object stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The cluster it is, or will be, on.
    pub cluster: String,
    /// The package it came in; empty for an object read from a cluster.
    pub package: String,
    /// The file, or empty.
    pub file: String,
    /// Which object.
    pub object: ObjectRef,
}

/// One object.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// Where it stands.
    pub origin: Origin,
    /// The isolated routing domain that its addresses belong to. `None` is the one that all others
    /// share. A pod takes the scope of the NADs that it names.
    pub scope: Option<String>,
    /// The object.
    pub value: &'a Value,
}

/// `NetworkAttachmentDefinition/n2 in oai-ran (cluster edge01, package gnb, gnb/nad_n2.yaml)`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)?;
        let named = |what: &str, value: &str| {
            let lead = if what.is_empty() { "" } else { " " };
            (!value.is_empty()).then(|| format!("{what}{lead}{value}"))
        };
        let parts: Vec<String> = [
            named("cluster", &self.cluster),
            named("package", &self.package),
            named("", &self.file),
        ]
        .into_iter()
        .flatten()
        .collect();
        if parts.is_empty() {
            return Ok(());
        }
        write!(f, " ({})", parts.join(", "))
    }
}
