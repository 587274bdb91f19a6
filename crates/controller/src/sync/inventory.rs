//! What a RootSync has put into the cluster: a ConfigMap per RootSync in the controller's namespace.
//!
//! It is written *before* anything is applied, with everything that will be; so a process that dies in between leaves
//! nothing in the cluster that nobody remembers. Whether an object was there before us is decided then, too: such an object is
//! *adopted*, and when it leaves Git we give our fields up and delete nothing.

use serde::{Deserialize, Serialize};

use super::object::Key;

/// The version of the shape.
const FORMAT: u32 = 1;

/// What is remembered of one RootSync.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Inventory {
    format: u32,
    /// In order of key.
    pub(crate) entries: Vec<Entry>,
}

/// One object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    #[serde(flatten)]
    pub(crate) key: Key,
    /// The version that it was last written in.
    pub(crate) version: String,
    /// Whether it was surely applied; false while it is only about to be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) applied: bool,
    /// Whether it was there before us.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) adopted: bool,
}

impl Default for Inventory {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl Inventory {
    /// In order.
    pub(crate) fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        entries.dedup_by(|a, b| a.key == b.key);
        Self {
            format: FORMAT,
            entries,
        }
    }

    /// What is remembered of an object.
    pub(crate) fn get(&self, key: &Key) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|entry| entry.key.cmp(key));
        at.ok().map(|at| &self.entries[at])
    }

    /// As text. Equal inventories have equal texts.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).expect("its keys are strings")
    }

    /// From text. A newer shape is refused: who guesses may remove what is still wanted.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let inventory: Self = serde_json::from_str(text).map_err(|e| e.to_string())?;
        if inventory.format > FORMAT {
            return Err(format!(
                "a newer version wrote it (format {})",
                inventory.format
            ));
        }
        Ok(Self::new(inventory.entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> Entry {
        let key = Key {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: "a".to_owned(),
            name: name.to_owned(),
        };
        Entry {
            key,
            version: "v1".to_owned(),
            applied: true,
            adopted: false,
        }
    }

    #[test]
    fn an_inventory_reads_back_in_order() {
        let inventory = Inventory::new(vec![entry("b"), entry("a")]);
        assert_eq!(inventory.entries[0].key.name, "a");
        assert_eq!(Inventory::parse(&inventory.text()), Ok(inventory.clone()));
        assert_eq!(inventory.get(&entry("b").key), Some(&entry("b")));
        assert_eq!(inventory.get(&entry("c").key), None);
    }

    #[test]
    fn a_newer_or_broken_inventory_is_refused() {
        assert!(Inventory::parse(r#"{"format": 2, "entries": []}"#).is_err());
        assert!(Inventory::parse("{").is_err());
    }
}
