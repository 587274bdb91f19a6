//! The text of a file with its lines, and what goes wrong while reading it.
//!
//! Easy to get wrong: offsets are bytes; lines and columns count from 1, columns in characters.

use std::fmt;

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line in the whole file, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// First byte.
    pub offset: usize,
    /// Bytes on that line that belong to it; 0 for an empty value.
    pub length: usize,
}

/// Why a file was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// Not YAML, or YAML that Kubernetes would not take.
    Syntax,
    /// Larger than [`crate::MAX_BYTES`].
    TooLarge,
    /// Aliases expand to more than [`crate::MAX_EXPANDED`].
    AliasBomb,
    /// Not UTF-8.
    NotUtf8,
}

/// A file that was not read. The text has no file name; the caller knows it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// What is wrong.
    pub message: String,
    /// Which kind of wrong.
    pub kind: ParseErrorKind,
}

impl ParseError {
    pub(crate) fn at_start(kind: ParseErrorKind, message: String) -> Self {
        Self {
            line: 1,
            column: 1,
            message,
            kind,
        }
    }
}

/// What the reader stumbled over, before it is turned into lines and columns.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) offset: usize,
    pub(crate) message: String,
    pub(crate) kind: ParseErrorKind,
}

impl Fault {
    pub(crate) fn syntax(offset: usize, message: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
            kind: ParseErrorKind::Syntax,
        }
    }
}

/// Text and where its lines begin.
pub(crate) struct Source {
    pub(crate) text: String,
    line_starts: Vec<usize>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({} bytes)", self.text.len())
    }
}

impl Source {
    pub(crate) fn new(text: String) -> Self {
        let mut line_starts = vec![0];
        let bytes = text.as_bytes();
        for (i, &b) in bytes.iter().enumerate() {
            if b == b'\n' || (b == b'\r' && bytes.get(i + 1) != Some(&b'\n')) {
                line_starts.push(i + 1);
            }
        }
        Self { text, line_starts }
    }

    pub(crate) fn position(&self, offset: usize, end: usize) -> Position {
        let offset = offset.min(self.text.len());
        let line = self.line_starts.partition_point(|&s| s <= offset);
        let start = self.line_starts[line - 1];
        let column = self.text[start..offset].chars().count() + 1;
        Position {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
            offset,
            length: end.min(self.eol(offset)).saturating_sub(offset),
        }
    }

    pub(crate) fn error(&self, fault: Fault) -> ParseError {
        let mut offset = fault.offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let at = self.position(offset, offset);
        ParseError {
            line: at.line,
            column: at.column,
            message: fault.message,
            kind: fault.kind,
        }
    }

    /// The first line break at or after this offset, or the end of the text.
    pub(crate) fn eol(&self, offset: usize) -> usize {
        let bytes = self.text.as_bytes();
        (offset..bytes.len())
            .find(|&i| is_break(bytes[i]))
            .unwrap_or(bytes.len())
    }

    /// The first byte of the line that holds this offset.
    pub(crate) fn line_start(&self, offset: usize) -> usize {
        self.line_starts[self.line_starts.partition_point(|&s| s <= offset) - 1]
    }

    /// Just behind the line break that begins at `eol`.
    pub(crate) fn after_break(&self, eol: usize) -> usize {
        let bytes = self.text.as_bytes();
        match bytes.get(eol) {
            Some(b'\r') if bytes.get(eol + 1) == Some(&b'\n') => eol + 2,
            Some(_) => eol + 1,
            None => eol,
        }
    }

    /// Whether only blanks stand before this offset on its line.
    pub(crate) fn is_first_on_line(&self, offset: usize) -> bool {
        self.text[self.line_start(offset)..offset]
            .bytes()
            .all(is_blank)
    }
}

pub(crate) fn is_break(b: u8) -> bool {
    b == b'\n' || b == b'\r'
}

pub(crate) fn is_blank(b: u8) -> bool {
    b == b' ' || b == b'\t'
}
