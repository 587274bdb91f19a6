//! From a tree to a value: aliases followed, merge keys resolved, duplicate keys refused.
//!
//! Called by `File::parse` after the weight of all aliases was found bearable.
//! Easy to get wrong: keys written on the map win over merged ones wherever `<<` stands.

use serde_json::{Map, Value};

use crate::node::{Kind, NodeId, Tree};
use crate::source::Fault;

pub(crate) fn compose(tree: &Tree, source: &str, id: NodeId) -> Result<Value, Fault> {
    match &tree.nodes[id].kind {
        Kind::Empty | Kind::Scalar { .. } => Ok(tree.scalar_value(source, id)),
        Kind::Alias { target } => compose(tree, source, *target),
        Kind::Seq { items, .. } => items
            .iter()
            .map(|item| compose(tree, source, item.value))
            .collect::<Result<Vec<_>, _>>()
            .map(Value::Array),
        Kind::Map { entries, .. } => {
            let mut map = Map::with_capacity(entries.len());
            let mut merge = None;
            for entry in entries {
                if entry.merge {
                    if merge.replace(entry.value).is_some() {
                        return Err(Fault::syntax(entry.start, "the key `<<` is given twice"));
                    }
                    continue;
                }
                let name = tree.key_name(source, entry.key).ok_or_else(|| {
                    Fault::syntax(entry.start, "a key must be text, not a list or a mapping")
                })?;
                if map.contains_key(&*name) {
                    let message = format!("the key `{name}` is given twice");
                    return Err(Fault::syntax(entry.start, message));
                }
                map.insert(name.into_owned(), compose(tree, source, entry.value)?);
            }
            if let Some(merge) = merge {
                for (key, value) in merged(tree, source, merge)? {
                    map.entry(key).or_insert(value);
                }
            }
            Ok(Value::Object(map))
        }
    }
}

fn merged(tree: &Tree, source: &str, id: NodeId) -> Result<Map<String, Value>, Fault> {
    let refuse = |id: NodeId| {
        let message = "`<<` takes a mapping or a list of mappings";
        Fault::syntax(tree.nodes[id].start, message)
    };
    match compose(tree, source, id)? {
        Value::Object(map) => Ok(map),
        Value::Array(maps) => {
            let mut all = Map::new();
            for map in maps {
                let Value::Object(map) = map else {
                    return Err(refuse(id));
                };
                for (key, value) in map {
                    all.entry(key).or_insert(value);
                }
            }
            Ok(all)
        }
        _ => Err(refuse(id)),
    }
}
