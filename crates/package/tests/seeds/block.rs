//! Finds the blocks of a seed: fences, and objects that are drawn in boxes inside a fence.
//!
//! ```text
//!  │  ┌──────────────────────────┐   │
//!  │  │ kind: IPPrefix           │   │     a box starts at `apiVersion:` or `kind: Kind`,
//!  │  │ metadata:                │   │     and ends where its left border does
//!  │  └──────────────────────────┘   │
//! ```

use mooring_krm::File;
use serde_json::Value;

/// A fenced block or a box.
#[derive(Debug)]
pub(crate) struct Block {
    /// Line of the fence, or of the box's first text; from 1.
    pub(crate) line: usize,
    /// Language of the fence, `text` without one; `box:Kind` for a drawn object.
    pub(crate) what: String,
    text: String,
}

impl Block {
    /// What stands in it.
    #[allow(
        dead_code,
        reason = "the rules of verify read seeds with this file too, JSON included"
    )]
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The objects in it.
    pub(crate) fn objects(&self) -> Vec<Value> {
        parse(&self.text)
    }
}

/// The documents of a YAML text; empty where it is not YAML. An object that begins without `---` after
/// another one, as the seeds have it, is a document of its own.
pub(crate) fn parse(text: &str) -> Vec<Value> {
    let mut documents = String::new();
    for (nth, line) in text.lines().enumerate() {
        if nth > 0 && line.starts_with("apiVersion:") && !documents.trim_end().ends_with("---") {
            documents.push_str("---\n");
        }
        documents.push_str(line);
        documents.push('\n');
    }
    let file = File::parse(documents.as_bytes()).ok();
    let values = file
        .iter()
        .flat_map(File::documents)
        .map(|d| d.value().clone());
    values
        .filter(|v| v.as_object().is_some_and(|o| !o.is_empty()))
        .collect()
}

/// Every block, in order.
pub(crate) fn find(text: &str) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().collect();
    let mut blocks = Vec::new();
    let mut open: Option<usize> = None;
    for (at, line) in lines.iter().enumerate() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            continue;
        };
        let Some(start) = open.take() else {
            open = Some(at);
            let what = if language.is_empty() {
                "text"
            } else {
                language
            };
            blocks.push(Block {
                line: at + 1,
                what: what.to_owned(),
                text: String::new(),
            });
            continue;
        };
        let inside = &lines[start + 1..at];
        if let Some(block) = blocks.last_mut() {
            block.text = inside.join("\n");
        }
        blocks.extend(boxes(inside, start + 2));
    }
    assert!(open.is_none(), "a fence is never closed");
    blocks
}

/// Objects drawn in boxes among `lines`, the first of which is line number `first`.
fn boxes(lines: &[&str], first: usize) -> Vec<Block> {
    let lines: Vec<Vec<char>> = lines.iter().map(|l| l.chars().collect()).collect();
    let mut blocks = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        for column in (0..line.len()).filter(|c| line[*c] == '│') {
            let cell = cell(line, column);
            let begins = cell.trim_start().starts_with("apiVersion:") || kind(&cell).is_some();
            let goes_on = at > 0 && is_key(&self::cell(&lines[at - 1], column), "apiVersion:");
            if !begins || goes_on {
                continue;
            }
            let cells: Vec<String> = lines[at..]
                .iter()
                .map_while(|l| Some(self::cell(l, border(l, column)?)))
                .collect();
            let Some(kind) = cells.iter().find_map(|c| kind(c)) else {
                continue;
            };
            blocks.push(Block {
                line: first + at,
                what: format!("box:{kind}"),
                text: yaml(&cells),
            });
        }
    }
    blocks
}

/// Where the left border goes on: the drawing is off by one in places.
fn border(line: &[char], column: usize) -> Option<usize> {
    let near = [column, column.wrapping_sub(1), column + 1];
    let ends = line.get(column) == Some(&'└');
    near.into_iter()
        .find(|c| !ends && line.get(*c) == Some(&'│'))
}

/// Text between a border and the next border or arrow.
fn cell(line: &[char], column: usize) -> String {
    if line.get(column) != Some(&'│') {
        return String::new();
    }
    let ends = |c: &&char| !"│◄┼┌┐└┘".contains(**c);
    let text: String = line[column + 1..].iter().take_while(ends).collect();
    text.trim_end().to_owned()
}

fn is_key(cell: &str, key: &str) -> bool {
    cell.trim_start().starts_with(key)
}

/// `kind: Kind` at the top of an object; a list's `- kind: interface` is something else.
fn kind(cell: &str) -> Option<String> {
    let kind = cell.trim_start().strip_prefix("kind: ")?;
    let upper = kind.starts_with(|c: char| c.is_ascii_uppercase());
    (upper && kind.chars().all(char::is_alphanumeric)).then(|| kind.to_owned())
}

/// What a box says, as YAML: without the drawing's margin, shortened API versions, notes, and with an
/// annotation that was too wide for the box put together again.
fn yaml(cells: &[String]) -> String {
    let margin = cells[0].len() - cells[0].trim_start().len();
    let mut text = String::new();
    let mut whole = true;
    for cell in cells {
        let line = cell.get(margin..).unwrap_or_default();
        if line.trim_start().starts_with("Note:") {
            break;
        }
        if line.starts_with("apiVersion:") && line.contains("...") {
            continue;
        }
        let line = if whole { line } else { line.trim_start() };
        text.push_str(line);
        whole = !line.ends_with('/');
        if whole {
            text.push('\n');
        }
    }
    text
}
