//! A directory of files as a ResourceList.

use std::fs;
use std::path::{Path, PathBuf};

use mooring_krm::{File, emit};
use serde_json::{Value, json};

/// All files that do not begin with `_`, sorted by name; `config` is the functionConfig.
pub(crate) fn of(dir: &Path, config: Option<&str>) -> String {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            let yaml = path.extension().is_some_and(|e| e == "yaml" || e == "yml");
            path.is_file() && !name.starts_with('_') && (name == "Kptfile" || yaml)
        })
        .collect();
    files.sort();
    let items: Vec<Value> = files
        .iter()
        .flat_map(|f| documents(&fs::read_to_string(f).unwrap()))
        .collect();
    with(items, config)
}

/// A list of these items.
pub(crate) fn with(items: Vec<Value>, config: Option<&str>) -> String {
    let mut list = json!({ "apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList" });
    if let Some(config) = config {
        let mut objects = documents(config);
        list["functionConfig"] = match objects.len() {
            1 => objects.remove(0),
            _ => {
                json!({ "apiVersion": "v1", "kind": "List", "metadata": { "name": "pools" }, "items": objects })
            }
        };
    }
    list["items"] = json!(items);
    emit(&list)
}

/// The documents of a text that are not empty.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    let file = File::parse(text.as_bytes()).unwrap();
    let values = file.documents().iter().map(|d| d.value().clone());
    values.filter(|v| !v.is_null()).collect()
}
