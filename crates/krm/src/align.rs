//! Which elements of two lists are the same element: by identity (`name`, `type`, `key`,
//! `conditionType`, or a whole object's kind and name), else by place or by equality.
//!
//! Called by `diff` and by `rewrite`, so that an inserted condition does not rewrite its neighbours.
//! Easy to get wrong: kept pairs must be in order in both lists; what moved is removed and inserted.

use std::collections::BTreeMap;

use serde_json::Value;

/// What to do with a list, in the order of the result. Indices are into the old and the new list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Keep { old: usize, new: usize },
    Remove { old: usize },
    Insert { new: usize },
}

const LCS_CELLS: usize = 40_000;

pub(crate) fn align(old: &[Value], new: &[Value]) -> Vec<Op> {
    let pairs = match (identities(old), identities(new)) {
        (Some(old), Some(new)) => by_identity(&old, &new),
        _ => by_content(old, new),
    };
    let mut ops = Vec::with_capacity(old.len().max(new.len()));
    let (mut o, mut n) = (0, 0);
    for (old_at, new_at) in pairs.into_iter().chain([(old.len(), new.len())]) {
        ops.extend((o..old_at).map(|old| Op::Remove { old }));
        ops.extend((n..new_at).map(|new| Op::Insert { new }));
        if old_at < old.len() {
            ops.push(Op::Keep {
                old: old_at,
                new: new_at,
            });
        }
        (o, n) = (old_at + 1, new_at + 1);
    }
    ops
}

type Identity<'v> = [&'v str; 5];

fn identity(value: &Value) -> Option<Identity<'_>> {
    let map = value.as_object()?;
    let text = |key: &str| map.get(key).and_then(Value::as_str);
    if let (Some(kind), Some(meta)) = (text("kind"), map.get("metadata")) {
        let meta = |key: &str| meta.get(key).and_then(Value::as_str).unwrap_or("");
        let version = text("apiVersion").unwrap_or("");
        return Some(["object", version, kind, meta("namespace"), meta("name")]);
    }
    ["name", "type", "conditionType", "key"]
        .into_iter()
        .find_map(|key| text(key).map(|value| [key, value, "", "", ""]))
}

/// The identity of every element, if each has one and no two share it.
fn identities(values: &[Value]) -> Option<Vec<Identity<'_>>> {
    let all: Vec<_> = values.iter().map(identity).collect::<Option<_>>()?;
    let mut sorted = all.clone();
    sorted.sort_unstable();
    sorted.windows(2).all(|w| w[0] != w[1]).then_some(all)
}

fn by_identity(old: &[Identity<'_>], new: &[Identity<'_>]) -> Vec<(usize, usize)> {
    let places: BTreeMap<_, _> = new.iter().enumerate().map(|(i, id)| (id, i)).collect();
    let pairs: Vec<_> = old
        .iter()
        .enumerate()
        .filter_map(|(i, id)| places.get(id).map(|&j| (i, j)))
        .collect();
    longest_rise(&pairs)
}

/// The longest run of pairs that rises in the second place.
fn longest_rise(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut tails: Vec<usize> = Vec::new();
    let mut before = vec![None; pairs.len()];
    for (i, pair) in pairs.iter().enumerate() {
        let at = tails.partition_point(|&t| pairs[t].1 < pair.1);
        before[i] = at.checked_sub(1).map(|p| tails[p]);
        if at == tails.len() {
            tails.push(i);
        } else {
            tails[at] = i;
        }
    }
    let mut run = Vec::with_capacity(tails.len());
    let mut at = tails.last().copied();
    while let Some(i) = at {
        run.push(pairs[i]);
        at = before[i];
    }
    run.reverse();
    run
}

fn by_content(old: &[Value], new: &[Value]) -> Vec<(usize, usize)> {
    if old.len() == new.len() {
        return (0..old.len()).map(|i| (i, i)).collect();
    }
    let shorter = old.len().min(new.len());
    let head = (0..shorter).take_while(|&i| old[i] == new[i]).count();
    let tail = (0..shorter - head)
        .take_while(|&i| old[old.len() - 1 - i] == new[new.len() - 1 - i])
        .count();
    let (old_mid, new_mid) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut pairs: Vec<_> = (0..head).map(|i| (i, i)).collect();
    if old_mid.len() * new_mid.len() <= LCS_CELLS {
        let middle = longest_common(old_mid, new_mid);
        pairs.extend(middle.into_iter().map(|(i, j)| (i + head, j + head)));
    } else {
        pairs.extend((0..old_mid.len().min(new_mid.len())).map(|i| (i + head, i + head)));
    }
    pairs.extend(
        (0..tail)
            .rev()
            .map(|i| (old.len() - 1 - i, new.len() - 1 - i)),
    );
    pairs
}

fn longest_common(old: &[Value], new: &[Value]) -> Vec<(usize, usize)> {
    let width = new.len() + 1;
    let mut best = vec![0u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            best[i * width + j] = if old[i] == new[j] {
                best[(i + 1) * width + j + 1] + 1
            } else {
                best[(i + 1) * width + j].max(best[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if best[(i + 1) * width + j] >= best[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_inserted_condition_keeps_its_neighbours() {
        let old = json!([{"type": "a", "x": 1}, {"type": "b"}]);
        let new = json!([{"type": "a", "x": 2}, {"type": "c"}, {"type": "b"}]);
        assert_eq!(
            align(old.as_array().unwrap(), new.as_array().unwrap()),
            [
                Op::Keep { old: 0, new: 0 },
                Op::Insert { new: 1 },
                Op::Keep { old: 1, new: 2 }
            ]
        );
    }

    #[test]
    fn a_moved_element_is_removed_and_inserted_once() {
        let old = json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]);
        let new = json!([{"name": "c"}, {"name": "a"}, {"name": "b"}]);
        let ops = align(old.as_array().unwrap(), new.as_array().unwrap());
        let kept = ops
            .iter()
            .filter(|op| matches!(op, Op::Keep { .. }))
            .count();
        assert_eq!((kept, ops.len()), (2, 4));
    }

    #[test]
    fn plain_lists_of_other_length_keep_what_is_common() {
        let old = json!(["a", "b", "c", "d"]);
        let new = json!(["a", "c", "x", "d", "e"]);
        let ops = align(old.as_array().unwrap(), new.as_array().unwrap());
        let kept = ops
            .iter()
            .filter(|op| matches!(op, Op::Keep { .. }))
            .count();
        assert_eq!(kept, 3);
    }
}
