//! Items of a ResourceList in the order that the published functions print: by apiVersion, kind, namespace and name.
//!
//! An item moves as the text it is, with its comments, once it is edited. Easy to get wrong: only a block list has a
//! text per item. Any other list (JSON, flow style) keeps the order it came in; orchestrators go by annotations.

use mooring_krm::{FieldPath, ResourceList};
use serde_json::Value;

/// The text with its items in order; None where it is in order, or cannot be taken apart.
pub(super) fn sorted(text: &str) -> Option<String> {
    let list = ResourceList::parse(text.as_bytes()).ok()?;
    let keys: Vec<String> = list.items().iter().map(key).collect();
    if keys.is_sorted() {
        return None;
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let starts = starts(&list, &lines)?;
    let last = *starts.last()?;
    let end = (last + 1..lines.len()).find(|at| ends_list(lines[*at]));
    let end = end.unwrap_or(lines.len());
    let mut order: Vec<usize> = (0..starts.len()).collect();
    order.sort_by_key(|nth| &keys[*nth]);
    let mut sorted: String = lines[..starts[0]].concat();
    for nth in &order {
        let next = starts.get(nth + 1).copied().unwrap_or(end);
        sorted += &lines[starts[*nth]..next].concat();
        if !sorted.ends_with('\n') {
            sorted.push('\n');
        }
    }
    sorted += &lines[end..].concat();
    // The text was cut by lines; what it means now must be what was meant.
    let again = ResourceList::parse(sorted.as_bytes()).ok()?;
    let wanted = order.iter().map(|nth| &list.items()[*nth]);
    let same = wanted.eq(again.items().iter())
        && list.function_config() == again.function_config()
        && list.results() == again.results();
    same.then_some(sorted)
}

fn key(item: &Value) -> String {
    let text = |path: &str| {
        let value = item.pointer(path).and_then(Value::as_str);
        value.unwrap_or_default()
    };
    let parts = [
        "/apiVersion",
        "/kind",
        "/metadata/namespace",
        "/metadata/name",
    ];
    parts.map(text).join(" ")
}

/// The first line of every item, its own comments included; None where an item does not begin a line.
fn starts(list: &ResourceList, lines: &[&str]) -> Option<Vec<usize>> {
    let mut starts: Vec<usize> = Vec::new();
    for nth in 0..list.items().len() {
        let at = list.locate(nth, &FieldPath::root())?;
        let mut line = usize::try_from(at.line).ok()?.checked_sub(1)?;
        let dash = lines.get(line)?;
        let indent = dash.len() - dash.trim_start().len();
        if !dash.trim_start().starts_with("- ") {
            return None;
        }
        let is_comment = |text: &str| {
            let rest = text.trim_start();
            rest.starts_with('#') && text.len() - rest.len() == indent
        };
        while line > 0 && nth > 0 && is_comment(lines[line - 1]) {
            line -= 1;
        }
        if starts.last().is_some_and(|before| *before >= line) {
            return None;
        }
        starts.push(line);
    }
    Some(starts)
}

/// Whether a line behind the last item is no part of it.
fn ends_list(line: &str) -> bool {
    let first = line.chars().next().unwrap_or('\n');
    line.starts_with("---")
        || line.starts_with("...")
        || !matches!(first, ' ' | '-' | '#' | '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_move_with_their_comments() {
        let text = "\
kind: ResourceList
items:
  # about b
  - apiVersion: v1
    kind: B
    metadata: {name: b} # b
    data:
      text: |
        - not an item

        # nor a comment
  # about a
  - apiVersion: v1
    kind: A
    metadata: {name: a}
results:
- message: kept
";
        let expected = "\
kind: ResourceList
items:
  # about b
  # about a
  - apiVersion: v1
    kind: A
    metadata: {name: a}
  - apiVersion: v1
    kind: B
    metadata: {name: b} # b
    data:
      text: |
        - not an item

        # nor a comment
results:
- message: kept
";
        assert_eq!(sorted(text).as_deref(), Some(expected));
    }

    #[test]
    fn other_lists_keep_their_order() {
        for text in [
            r#"{"kind": "ResourceList", "items": [{"kind": "B"}, {"kind": "A"}]}"#,
            "kind: ResourceList\nitems: [{kind: B}, {kind: A}]\n",
            "kind: ResourceList\nitems:\n-\n  kind: B\n-\n  kind: A\n",
            "kind: ResourceList\nitems:\n- kind: A\n- kind: B\n",
        ] {
            assert_eq!(sorted(text), None, "{text}");
        }
    }
}
