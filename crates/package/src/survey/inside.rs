//! The line inside a block of text that a finding is about.
//!
//! A NAD's configuration is one string of many lines to YAML, so its position is that of the `|`. A finding about an
//! address begins with that address: where the block has it, the finding points there.

use std::net::IpAddr;

use serde_json::Value;

/// Line and column of the address that `message` begins with, in a block that starts at `line`.
pub(super) fn inside(text: &str, line: u32, value: &Value, message: &str) -> Option<(u32, u32)> {
    let block = value.as_str().filter(|block| block.contains('\n'))?;
    let word = message.split([' ', ',', '-']).next()?;
    word.parse::<IpAddr>().ok()?;
    let first = line as usize;
    let rows = text.lines().enumerate().skip(first);
    let mut rows = rows.take(block.lines().count());
    rows.find_map(|(row, text)| {
        let at = whole(text, word)?;
        let column = text[..at].chars().count() + 1;
        Some((u32::try_from(row + 1).ok()?, u32::try_from(column).ok()?))
    })
}

/// Where `word` stands as a whole: 10.0.0.1 is not in 10.0.0.10.
fn whole(text: &str, word: &str) -> Option<usize> {
    let part = |c: char| c.is_ascii_hexdigit() || c == '.' || c == ':';
    let mut places = text.match_indices(word).map(|(at, _)| at);
    places.find(|at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_as_a_whole_and_only_inside_the_block() {
        let text =
            "a: 10.0.0.1\nconfig: |\n  \"10.0.0.10\"\n  \"x\", \"10.0.0.1/24\"\nb: 10.0.0.2\n";
        let block = Value::from("\"10.0.0.10\"\n\"x\", \"10.0.0.1/24\"\n");
        let at = |message: &str| inside(text, 2, &block, message);
        assert_eq!(at("10.0.0.1 is used twice"), Some((4, 9)));
        assert_eq!(at("10.0.0.10-10.0.0.99, handed out"), Some((3, 4)));
        assert_eq!(at("10.0.0.2 is used twice"), None);
        assert_eq!(at("x is used twice"), None);
        assert_eq!(
            inside(text, 2, &Value::from("10.0.0.1"), "10.0.0.1 is"),
            None
        );
    }
}
