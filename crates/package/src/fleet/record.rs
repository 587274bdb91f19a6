//! What a fleet made: `fleet-record.yaml` in its output. Without it nobody could tell a package whose variant is
//! gone from one that was made by hand, nor a file that a blueprint dropped from one that a person added.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mooring_api::kinds::porch::DeletionPolicy;
use mooring_api::{Code, Finding};
use mooring_blueprint::variant::Variant;
use mooring_krm::{File, emit};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::disk::Tree;

/// Its name, in the root of the output.
pub(super) const RECORD: &str = "fleet-record.yaml";

const HEADER: &str = "# Written by moor fleet: which variant made which package, of which files. Keep it beside the packages.\n";

/// What a fleet made, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) packages: BTreeMap<String, Entry>,
}

/// One package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    /// `namespace/name`.
    pub(super) variant: String,
    /// What happens when the variant goes.
    #[serde(default)]
    pub(super) deletion_policy: DeletionPolicy,
    /// The files that came from the blueprint.
    pub(super) files: BTreeSet<String>,
}

/// How the record names a variant.
pub(super) fn name(variant: &Variant) -> String {
    format!("{}/{}", variant.namespace, variant.name)
}

impl Record {
    /// The record of an earlier run; empty where there was none.
    pub(super) fn read(out: &Tree, dir: &Path) -> Result<Self, Vec<Finding>> {
        let Some(bytes) = out.files.get(RECORD) else {
            return Ok(Self::default());
        };
        let shown = dir.join(RECORD).display().to_string();
        let refuse = |message: String, line, column| {
            vec![
                Finding::error(Code::YamlInvalid, message)
                    .located(shown.clone(), line, column)
                    .help("Bring the file back as the last run wrote it; nothing was written."),
            ]
        };
        let file = File::parse(bytes).map_err(|e| refuse(e.message, e.line, e.column))?;
        let value = file.documents().first().map(|d| d.value().clone());
        let packages = value.unwrap_or_default()["packages"].take();
        let packages = serde_json::from_value(packages)
            .map_err(|e| refuse(format!("this is no record of a fleet: {e}"), 1, 1))?;
        Ok(Self { packages })
    }

    /// What these variants make.
    pub(super) fn of(variants: &[Variant], files: &BTreeMap<String, BTreeSet<String>>) -> Self {
        let entry = |variant: &Variant| {
            let path = variant.path();
            let files = files.get(&path).cloned().unwrap_or_default();
            let entry = Entry {
                variant: name(variant),
                deletion_policy: variant.spec.deletion_policy.unwrap_or_default(),
                files,
            };
            (path, entry)
        };
        Self {
            packages: variants.iter().map(entry).collect(),
        }
    }

    /// As it is written.
    pub(super) fn text(&self) -> String {
        format!("{HEADER}{}", emit(&json!({ "packages": self.packages })))
    }
}
