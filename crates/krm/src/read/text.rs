//! Plain text over one or more lines, and block scalars (`|`, `>`).
//!
//! Easy to get wrong: a block scalar that ends with the file and has no last line break has no line
//! break in its value either; text added behind it would give it one (see `Parsed::unterminated`).

use super::{Props, Read, Reader};
use crate::node::{Kind, NodeId, Style, Text};
use crate::source::{is_blank, is_break};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomp {
    Strip,
    Clip,
    Keep,
}

impl Reader<'_> {
    /// Plain text. Lines that continue it stand right of `parent`.
    pub(super) fn plain(
        &mut self,
        props: Props,
        parent: Option<usize>,
        in_flow: bool,
    ) -> Read<NodeId> {
        let start = self.pos;
        let mut end = self.plain_line(start, in_flow);
        if end == start {
            return Err(self.unexpected());
        }
        let mut folded: Option<String> = None;
        loop {
            // `end` is behind the last character; the line goes on with blanks, then a break or a stop.
            let mut at = end;
            while self.byte(at).is_some_and(is_blank) {
                at += 1;
            }
            let mut breaks = 0;
            let mut line_start = self.line_start;
            while self.byte(at).is_some_and(is_break) {
                breaks += 1;
                at = self.after_break(at);
                line_start = at;
                while self.byte(at).is_some_and(is_blank) {
                    at += 1;
                }
            }
            let goes_on = breaks > 0
                && self.byte(at).is_some_and(|b| b != b'#')
                && !(at == line_start && (self.marker(at, b"---") || self.marker(at, b"...")))
                && (in_flow
                    || parent.is_none_or(|parent| {
                        self.s[line_start..]
                            .iter()
                            .take_while(|&&b| b == b' ')
                            .count()
                            > parent
                    }));
            let next = if goes_on {
                self.plain_line(at, in_flow)
            } else {
                at
            };
            if next == at {
                break;
            }
            let text = folded.get_or_insert_with(|| self.text[start..end].to_owned());
            if breaks == 1 {
                text.push(' ');
            } else {
                text.extend(std::iter::repeat_n('\n', breaks - 1));
            }
            text.push_str(&self.text[at..next]);
            self.line_start = line_start;
            end = next;
        }
        self.consume(end);
        Ok(match folded {
            None => self.add_plain(props, start, end),
            Some(text) => {
                let text = Text::Owned(text);
                self.add(
                    props,
                    start,
                    end,
                    Kind::Scalar {
                        style: Style::Plain,
                        text,
                    },
                )
            }
        })
    }

    /// Where the plain text of one line ends, without trailing blanks. `start` if there is none.
    fn plain_line(&self, start: usize, in_flow: bool) -> usize {
        let (mut at, mut end) = (start, start);
        while let Some(b) = self.byte(at) {
            match b {
                b':' if self.ends_token(at + 1) || (in_flow && self.flow_ends(at + 1)) => break,
                b'#' if at > start && is_blank(self.s[at - 1]) => break,
                b',' | b'[' | b']' | b'{' | b'}' if in_flow => break,
                _ if is_break(b) => break,
                _ => {
                    at += 1;
                    if !is_blank(b) {
                        end = at;
                    }
                }
            }
        }
        end
    }

    /// `|` and `>`. The content's column is right of `parent`.
    pub(super) fn block_scalar(&mut self, props: Props, parent: Option<usize>) -> Read<NodeId> {
        let start = self.pos;
        let folds = self.peek() == Some(b'>');
        let (mut chomp, mut increment) = (Chomp::Clip, None);
        let mut sign = start + 1..start + 1;
        let mut at = start + 1;
        while let Some(b) = self.byte(at) {
            match b {
                b'-' | b'+' if chomp == Chomp::Clip => {
                    chomp = if b == b'-' { Chomp::Strip } else { Chomp::Keep };
                    sign = at..at + 1;
                }
                b'1'..=b'9' if increment.is_none() => increment = Some(usize::from(b - b'0')),
                _ => break,
            }
            at += 1;
        }
        if chomp == Chomp::Clip {
            sign = at..at;
        }
        let header_end = at;
        self.consume(at);
        let line = self.line_start;
        while self.peek().is_some_and(is_blank) {
            self.pos += 1;
        }
        if self.peek() == Some(b'#') && self.pos > at {
            self.pos = self.eol(self.pos);
        }
        if self.peek().is_some_and(|b| !is_break(b)) {
            return Err(self.fault("unexpected text after `|` or `>`"));
        }
        let least = parent.map_or(0, |parent| parent + 1);
        let fixed = increment.map(|increment| parent.unwrap_or(0) + increment);
        let scanned = self.block_lines(self.pos, fixed, least, folds, chomp);
        self.tree.has_block_scalar = true;
        if scanned.open && chomp != Chomp::Strip {
            self.unterminated = Some(sign);
        }
        let end = scanned.end.unwrap_or(header_end);
        self.consume(end);
        self.line_start = if scanned.end.is_some() {
            scanned.line_start
        } else {
            line
        };
        let (style, text) = (Style::Block { header_end }, Text::Owned(scanned.text));
        Ok(self.add(props, start, end, Kind::Scalar { style, text }))
    }

    fn block_lines(
        &self,
        header: usize,
        fixed: Option<usize>,
        least: usize,
        folds: bool,
        chomp: Chomp,
    ) -> Lines {
        let mut lines = Lines::default();
        let mut indent = fixed;
        let (mut pending, mut blank_before) = (false, false);
        let mut empties = 0usize;
        let mut at = self.after_break(header);
        let mut empties_end = None;
        while at < self.s.len() {
            let spaces = self.s[at..].iter().take_while(|&&b| b == b' ').count();
            let eol = self.eol(at);
            let column = indent.unwrap_or(usize::MAX);
            if at + spaces == eol && spaces <= column {
                if eol == self.s.len() {
                    break;
                }
                empties += 1;
                empties_end = Some((eol, at));
                at = self.after_break(eol);
                continue;
            }
            if self.marker(at, b"---") || self.marker(at, b"...") {
                break;
            }
            let column = *indent.get_or_insert(spaces.max(least));
            if spaces < column {
                break;
            }
            let content = &self.text[at + column..eol];
            let blank = content.starts_with([' ', '\t']);
            if pending {
                if folds && !blank_before && !blank {
                    if empties == 0 {
                        lines.text.push(' ');
                    }
                } else {
                    lines.text.push('\n');
                }
            }
            lines.text.extend(std::iter::repeat_n('\n', empties));
            empties = 0;
            lines.text.push_str(content);
            blank_before = blank;
            lines.end = Some(eol);
            lines.line_start = at;
            pending = eol < self.s.len();
            lines.open = !pending;
            at = self.after_break(eol);
        }
        if pending && chomp != Chomp::Strip {
            lines.text.push('\n');
        }
        if chomp == Chomp::Keep {
            lines.text.extend(std::iter::repeat_n('\n', empties));
            if let (Some((eol, start)), true) = (empties_end, empties > 0) {
                lines.end = Some(eol);
                lines.line_start = start;
            }
        }
        lines
    }
}

#[derive(Default)]
struct Lines {
    text: String,
    /// Where the last line that belongs to the text ends.
    end: Option<usize>,
    line_start: usize,
    /// The last line has no break: the file ends there.
    open: bool,
}
