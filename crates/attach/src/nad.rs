//! Reading a NAD's `spec.config`: what a plugin would refuse in it, and which addresses it carries.
//!
//! Called by `verify` and by `book rebuild`, on NADs that anybody may have written: one plugin or a
//! list, our dialect or another's. Unknown plugins and keys are somebody's business and pass.
//!
//! Keys are found as the plugins find them, without regard to case; `plugins` is the runtime's, who does not do that.
//!
//! Easy to get wrong: the text looks like YAML and people comment in it; JSON knows no comments, so the
//! pod hangs in ContainerCreating with a message about a `#`.

mod check;
#[cfg(test)]
mod tests;
mod uses;

use serde_json::{Map, Value};

use crate::cni::member;

pub use check::{check, check_selection};
pub use uses::{Use, Used, addresses};

/// The plugins of a configuration with the JSON path of each (`""` or `plugins[1].`).
fn plugins(config: &Value) -> Vec<(String, &Map<String, Value>)> {
    match config.get("plugins") {
        Some(Value::Array(list)) => list
            .iter()
            .enumerate()
            .filter_map(|(i, p)| Some((format!("plugins[{i}]."), p.as_object()?)))
            .collect(),
        Some(_) => Vec::new(),
        None => config
            .as_object()
            .map(|p| (String::new(), p))
            .into_iter()
            .collect(),
    }
}

/// Lists as the plugins read them: absent and null are empty.
fn list<'v>(map: &'v Map<String, Value>, key: &str) -> &'v [Value] {
    member(map, key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn text<'v>(map: &'v Map<String, Value>, key: &str) -> Option<&'v str> {
    member(map, key)?.as_str().filter(|t| !t.is_empty())
}
