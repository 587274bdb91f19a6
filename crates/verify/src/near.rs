//! Names that a person may have meant.

/// Up to three of `names` that look like `wanted`, the nearest first.
///
/// Short names are all alike (`n2`, `n3`), so a letter counts only from four letters on.
pub(crate) fn near<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<(usize, &str)> = names
        .filter(|name| *name != wanted)
        .filter_map(|name| Some((distance(wanted, name)?, name)))
        .collect();
    found.sort_unstable();
    found.dedup();
    found.truncate(3);
    found.into_iter().map(|(_, name)| name).collect()
}

/// How far apart; nothing for names that nobody would mix up.
fn distance(a: &str, b: &str) -> Option<usize> {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let rest = long.strip_prefix(short).is_some_and(|r| r.starts_with('-'))
        || long.strip_suffix(short).is_some_and(|r| r.ends_with('-'));
    if rest && short.len() > 3 {
        return Some(1);
    }
    let allowed = match short.len() {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    };
    if long.len() - short.len() > allowed {
        return None;
    }
    Some(edits(short.as_bytes(), long.as_bytes())).filter(|edits| *edits <= allowed)
}

/// Letters to insert, drop, change or swap with the next.
fn edits(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut next = vec![i + 1];
        for j in 0..b.len() {
            let change = row[j] + usize::from(a[i] != b[j]);
            let mut best = change.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before[j - 1] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_interface_is_not() {
        let there = ["amd-host-device-nad", "n3", "n2-network", "macvlan-core"];
        let said = |wanted| near(wanted, there.into_iter());
        assert_eq!(said("amd-host-device-nad-nic"), ["amd-host-device-nad"]);
        assert_eq!(said("n2"), [""; 0], "n2-oam beside n2 is no slip");
        assert_eq!(said("macvlan-croe"), ["macvlan-core"]);
        assert_eq!(said("macvaln-coer"), ["macvlan-core"]);
        assert_eq!(said("n4"), [""; 0]);
        assert_eq!(said("sriov-core"), [""; 0]);
    }
}
