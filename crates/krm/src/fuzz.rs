//! What the fuzz targets call: bytes in, a broken promise is a panic.

use serde_json::{Value, json};

use crate::{Change, Edit, FieldPath, File, ResourceList, diff, emit};

/// Reads, re-emits, edits.
#[doc(hidden)]
pub fn fuzz_yaml(data: &[u8]) {
    let Ok(file) = File::parse(data) else {
        return;
    };
    assert_eq!(file.text().as_bytes(), data, "the text is kept");
    for (i, document) in file.documents().iter().enumerate() {
        let value = document.value();
        assert_eq!(only_value(&emit(value)), *value, "emitted text reads back");
        // A refusal is fair for odd texts; a wrong result is not, and `rewrite` checks that itself.
        if value.is_object() {
            let path = FieldPath::keys(["metadata", "annotations", "mooring.dev/probe"]);
            let _ = file.apply(&[Change::Edit(i, Edit::set(path, "x"))]);
        }
        if let Some(key) = value.as_object().and_then(|map| map.keys().next()) {
            let _ = file.apply(&[Change::Edit(i, Edit::remove(FieldPath::root().key(key)))]);
        }
        if value.as_array().is_some_and(|items| !items.is_empty()) {
            let path = FieldPath::root().index(0);
            let _ = file.apply(&[Change::Edit(i, Edit::set(path, json!([null])))]);
        }
        let _ = file.apply(&[
            Change::RemoveDocument(i),
            Change::AppendDocument(json!({"a": 1})),
        ]);
        let mut patched = json!({"a": [1, {"name": "x"}], "b": {}});
        for edit in diff(&patched.clone(), value) {
            edit.apply_to(&mut patched)
                .expect("diff makes edits that apply");
        }
        assert_eq!(patched, *value, "diff leads to the new value");
    }
}

/// Reads a list and writes it back.
#[doc(hidden)]
pub fn fuzz_resource_list(data: &[u8]) {
    let Ok(list) = ResourceList::parse(data) else {
        return;
    };
    let mut items = list.items().to_vec();
    items.push(json!({"kind": "Probe", "metadata": {"name": "p"}}));
    if let Ok(text) = list.output(&items, list.results()) {
        let again = ResourceList::parse(text.as_bytes()).expect("our own output is a list");
        assert_eq!(again.items(), items, "items read back");
    }
}

fn only_value(text: &str) -> Value {
    let file = File::parse(text.as_bytes()).expect("emitted text is YAML");
    assert_eq!(file.documents().len(), 1, "emitted text is one document");
    file.documents()[0].value().clone()
}
