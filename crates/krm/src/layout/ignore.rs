//! `.krmignore`: the part of gitignore's grammar that packages use.
//!
//! `#` comments, `!` takes back, a leading or inner `/` ties a pattern to the directory of its file, a
//! trailing `/` means a directory, `*` and `?` stop at `/`, `**` does not. Not read: `[a-z]`, `\` escapes
//! (such a pattern is compared letter by letter). Easy to get wrong: a pattern that matches a directory
//! takes out everything below it.

pub(super) struct Patterns(Vec<Pattern>);

struct Pattern {
    takes_back: bool,
    anchored: bool,
    directory: bool,
    glob: String,
}

impl Patterns {
    pub(super) fn parse(text: &str) -> Self {
        let lines = text.lines().map(str::trim_end);
        let patterns = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self(patterns.map(Pattern::parse).collect())
    }

    /// What the last matching pattern says about a path relative to this file's directory.
    pub(super) fn decide(&self, path: &str) -> Option<bool> {
        let last = self.0.iter().rev().find(|pattern| pattern.matches(path));
        last.map(|pattern| !pattern.takes_back)
    }
}

impl Pattern {
    fn parse(line: &str) -> Self {
        let (takes_back, line) = match line.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (directory, line) = match line.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        Self {
            takes_back,
            directory,
            anchored: line.contains('/'),
            glob: line.strip_prefix('/').unwrap_or(line).to_owned(),
        }
    }

    /// Whether it matches the path or a directory above it.
    fn matches(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(i, _)| (i, true));
        let mut ends = ends.chain([(path.len(), false)]);
        ends.any(|(end, is_directory)| {
            let part = &path[..end];
            let part = if self.anchored {
                part
            } else {
                part.rsplit_once('/').map_or(part, |(_, name)| name)
            };
            (is_directory || !self.directory) && glob(self.glob.as_bytes(), part.as_bytes())
        })
    }
}

/// `*` within a name, `**` over names. Remembers the last star of each kind only, so the time is bounded.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    let mut double: Option<(usize, usize)> = None;
    loop {
        if t == text.len() && p == pattern.len() {
            return true;
        }
        match pattern.get(p) {
            Some(b'*') if pattern.get(p + 1) == Some(&b'*') => {
                // `**/` also matches no directory at all.
                p += if pattern.get(p + 2) == Some(&b'/') {
                    3
                } else {
                    2
                };
                (double, star) = (Some((p, t)), None);
                continue;
            }
            Some(b'*') => {
                p += 1;
                star = Some((p, t));
                continue;
            }
            Some(&c) if t < text.len() && (c == text[t] || (c == b'?' && text[t] != b'/')) => {
                (p, t) = (p + 1, t + 1);
                continue;
            }
            _ => {}
        }
        match (star, double) {
            (Some((after, from)), _) if from < text.len() && text[from] != b'/' => {
                star = Some((after, from + 1));
                (p, t) = (after, from + 1);
            }
            (_, Some((after, from))) if from < text.len() => {
                (star, double) = (None, Some((after, from + 1)));
                (p, t) = (after, from + 1);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stop_at_slashes_unless_doubled() {
        for (pattern, text, expected) in [
            ("*.yaml", "a.yaml", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abcdf", false),
            ("dir/*", "dir/a", true),
            ("dir/*", "dir/a/b", false),
            ("dir/**", "dir/a/b", true),
            ("**/b", "b", true),
            ("**/b", "x/y/b", true),
            ("a/**/b", "a/b", true),
            ("a/**/*.x", "a/q/r/s.x", true),
            ("?.yaml", "ab.yaml", false),
            ("?.yaml", "a.yaml", true),
        ] {
            assert_eq!(
                glob(pattern.as_bytes(), text.as_bytes()),
                expected,
                "{pattern} {text}"
            );
        }
    }
}
