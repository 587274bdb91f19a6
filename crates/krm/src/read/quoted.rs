//! Quoted text, over any number of lines. Continuation lines need no indentation: hand-written
//! NetworkAttachmentDefinitions hold their JSON that way, and Kubernetes' reader takes it.
//!
//! Easy to get wrong: an escaped line break joins without a blank, an ordinary one folds to a blank.

use super::{Props, Read, Reader};
use crate::node::{Kind, NodeId, Style, Text};
use crate::source::{Fault, is_blank, is_break};

impl Reader<'_> {
    pub(super) fn quoted(&mut self, props: Props) -> Read<NodeId> {
        let start = self.pos;
        let quote = self.s[start];
        let style = if quote == b'"' {
            Style::Double
        } else {
            Style::Single
        };
        let special = |b: u8| b == quote || is_break(b) || (b == b'\\' && quote == b'"');
        let mut at = start + 1;
        while self.byte(at).is_some_and(|b| !special(b)) {
            at += 1;
        }
        let closes =
            self.byte(at) == Some(quote) && !(quote == b'\'' && self.byte(at + 1) == Some(b'\''));
        if closes {
            self.consume(at + 1);
            let text = Text::Slice(start + 1..at);
            return Ok(self.add(props, start, at + 1, Kind::Scalar { style, text }));
        }
        let (text, end) = self.quoted_lines(start, at, quote)?;
        self.consume(end);
        Ok(self.add(
            props,
            start,
            end,
            Kind::Scalar {
                style,
                text: Text::Owned(text),
            },
        ))
    }

    /// The long way: escapes and line breaks. `at` is the first byte that needs it.
    fn quoted_lines(&mut self, start: usize, mut at: usize, quote: u8) -> Read<(String, usize)> {
        let mut text = self.text[start + 1..at].to_owned();
        // Blanks before a line break are dropped, but not those that were escaped.
        let mut solid = 0;
        loop {
            let Some(b) = self.byte(at) else {
                return Err(Fault::syntax(start, "this quoted text is not closed"));
            };
            if b == quote {
                if quote == b'\'' && self.byte(at + 1) == Some(b'\'') {
                    text.push('\'');
                    at += 2;
                    continue;
                }
                return Ok((text, at + 1));
            }
            if b == b'\\' && quote == b'"' {
                at = self.escape(at, &mut text)?;
                solid = text.len();
                continue;
            }
            if is_break(b) {
                let keep = text.trim_end_matches([' ', '\t']).len().max(solid);
                text.truncate(keep);
                let breaks;
                (at, breaks) = self.fold(start, at)?;
                if breaks == 1 {
                    text.push(' ');
                } else {
                    text.extend(std::iter::repeat_n('\n', breaks - 1));
                }
                solid = text.len();
                continue;
            }
            let mut end = at + 1;
            while self
                .byte(end)
                .is_some_and(|b| b != quote && b != b'\\' && !is_break(b))
            {
                end += 1;
            }
            // A backslash means nothing between single quotes.
            if quote == b'\'' && b == b'\\' {
                end = at + 1;
            }
            text.push_str(&self.text[at..end]);
            at = end;
        }
    }

    /// Skips line breaks and the blanks around them; how many breaks there were.
    fn fold(&mut self, start: usize, mut at: usize) -> Read<(usize, usize)> {
        let mut breaks = 0;
        while self.byte(at).is_some_and(is_break) {
            breaks += 1;
            at = self.after_break(at);
            self.line_start = at;
            if at < self.s.len() && (self.marker(at, b"---") || self.marker(at, b"...")) {
                return Err(Fault::syntax(start, "this quoted text is not closed"));
            }
            while self.byte(at).is_some_and(is_blank) {
                at += 1;
            }
        }
        Ok((at, breaks))
    }

    fn escape(&mut self, at: usize, text: &mut String) -> Read<usize> {
        let fault = |message: &str| Fault::syntax(at, message);
        let Some(code) = self.byte(at + 1) else {
            return Err(fault("this quoted text is not closed"));
        };
        let hex = |len: usize| -> Read<(u32, usize)> {
            let digits = self
                .text
                .get(at + 2..at + 2 + len)
                .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
                .ok_or_else(|| fault("hexadecimal digits are expected after this backslash"))?;
            let value = u32::from_str_radix(digits, 16)
                .map_err(|_| fault("hexadecimal digits are expected after this backslash"))?;
            Ok((value, at + 2 + len))
        };
        let simple = match code {
            b'0' => '\0',
            b'a' => '\u{7}',
            b'b' => '\u{8}',
            b't' | b'\t' => '\t',
            b'n' => '\n',
            b'v' => '\u{b}',
            b'f' => '\u{c}',
            b'r' => '\r',
            b'e' => '\u{1b}',
            b' ' => ' ',
            b'"' => '"',
            b'/' => '/',
            b'\\' => '\\',
            b'N' => '\u{85}',
            b'_' => '\u{a0}',
            b'L' => '\u{2028}',
            b'P' => '\u{2029}',
            b'x' | b'u' | b'U' => {
                let len = match code {
                    b'x' => 2,
                    b'u' => 4,
                    _ => 8,
                };
                let (mut value, mut next) = hex(len)?;
                // JSON writes characters beyond the first plane as two halves.
                if (0xd800..0xdc00).contains(&value) && self.s[next..].starts_with(b"\\u") {
                    let low = self
                        .text
                        .get(next + 2..next + 6)
                        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
                        .filter(|low| (0xdc00..0xe000).contains(low));
                    if let Some(low) = low {
                        value = 0x1_0000 + ((value - 0xd800) << 10) + (low - 0xdc00);
                        next += 6;
                    }
                }
                text.push(char::from_u32(value).ok_or_else(|| fault("not a character"))?);
                return Ok(next);
            }
            _ if is_break(code) => {
                let (next, breaks) = self.fold(at, at + 1)?;
                text.extend(std::iter::repeat_n('\n', breaks - 1));
                return Ok(next);
            }
            _ => return Err(fault("an unknown escape; write `\\\\` for a backslash")),
        };
        text.push(simple);
        Ok(at + 2)
    }
}
