//! `/etc/cni/tuning/allowlist.conf`: which sysctls a configuration may set, a regular expression per line.
//!
//! Asked by ADD before anything is written. Without the file everything below `net/` is allowed. A line matches anywhere
//! in the key unless it says `^` and `$`. Easy to get wrong: this is a fence, so a line that we cannot read is an error
//! and never a line that happens not to match.
//!
//! Understood: literals, `.`, `^`, `$`, `[…]`, `(…)`, `(?:…)`, `|`, `*`, `+`, `?`, `\d`, `\w`, and a backslash before
//! punctuation. That is what such files hold; a regular expression library would be most of this program's size.

use std::io;
use std::path::Path;

use mooring_attach::cni::CniError;

/// Refuses the first key that no line allows.
pub(super) fn check<'a>(
    file: &Path,
    keys: impl IntoIterator<Item = &'a str>,
) -> Result<(), CniError> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(CniError::io(format!("reading {}", file.display()), e)),
    };
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let patterns: Result<Vec<Pattern>, CniError> = lines
        .iter()
        .map(|line| {
            Pattern::parse(line).map_err(|why| {
                let what = format!("{}: {line:?}", file.display());
                CniError::decode(what, why)
            })
        })
        .collect();
    let patterns = patterns?;
    for key in keys {
        if !patterns.iter().any(|pattern| pattern.matches(key)) {
            let allowed = lines.join(" ");
            let why = format!("{key} is not allowed on this node");
            let only = format!("{} allows only [{allowed}]", file.display());
            return Err(CniError::config("sysctl", why).with_details(only));
        }
    }
    Ok(())
}

/// How many steps a match may take before it counts as none: a fence that stands still keeps no one out.
const STEPS: u32 = 200_000;

/// Names of sysctls are short, and so is what matches them; groups within groups are bounded by it.
const LINE_MAX: usize = 500;

#[derive(Debug)]
struct Pattern(Vec<Sequence>);

type Sequence = Vec<(Atom, Times)>;

#[derive(Debug)]
enum Atom {
    Any,
    One(char),
    Class {
        not: bool,
        ranges: Vec<(char, char)>,
    },
    Group(Vec<Sequence>),
    Start,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Times {
    Once,
    Maybe,
    Any,
    Some,
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, String> {
        if text.len() > LINE_MAX {
            return Err(format!("it is longer than {LINE_MAX} bytes"));
        }
        let mut parser = Parser {
            rest: text.chars().collect::<Vec<_>>().into_iter().peekable(),
        };
        let pattern = parser.alternatives()?;
        match parser.rest.next() {
            None => Ok(Self(pattern)),
            Some(c) => Err(format!("{c:?} has no beginning")),
        }
    }

    fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let mut matcher = Matcher {
            text: &text,
            steps: 0,
        };
        (0..=text.len()).any(|start| matcher.one_of(&self.0, start, &mut |_, _| true))
    }
}

struct Parser {
    rest: std::iter::Peekable<std::vec::IntoIter<char>>,
}

impl Parser {
    fn alternatives(&mut self) -> Result<Vec<Sequence>, String> {
        let mut all = vec![self.sequence()?];
        while self.rest.next_if_eq(&'|').is_some() {
            all.push(self.sequence()?);
        }
        Ok(all)
    }

    fn sequence(&mut self) -> Result<Sequence, String> {
        let mut sequence = Vec::new();
        while let Some(c) = self.rest.next_if(|c| !"|)".contains(*c)) {
            let atom = match c {
                '.' => Atom::Any,
                '^' => Atom::Start,
                '$' => Atom::End,
                '[' => self.class()?,
                '(' => self.group()?,
                '\\' => self.escaped()?,
                '*' | '+' | '?' | '{' => return Err(format!("{c:?} repeats nothing we know")),
                c => Atom::One(c),
            };
            let times = match self.rest.peek() {
                Some('*') => Times::Any,
                Some('+') => Times::Some,
                Some('?') => Times::Maybe,
                Some('{') => return Err("counted repetition is not understood".to_owned()),
                _ => Times::Once,
            };
            if times != Times::Once {
                self.rest.next();
                // Lazy or not, the same texts match.
                self.rest.next_if_eq(&'?');
            }
            sequence.push((atom, times));
        }
        Ok(sequence)
    }

    fn group(&mut self) -> Result<Atom, String> {
        if self.rest.next_if_eq(&'?').is_some() && self.rest.next() != Some(':') {
            return Err("of groups with ?, only (?:…) is understood".to_owned());
        }
        let inner = self.alternatives()?;
        match self.rest.next() {
            Some(')') => Ok(Atom::Group(inner)),
            _ => Err("a group has no end".to_owned()),
        }
    }

    fn escaped(&mut self) -> Result<Atom, String> {
        match self.rest.next() {
            Some('d') => Ok(class(&[('0', '9')])),
            Some('w') => Ok(class(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')])),
            Some(c) if c.is_ascii_punctuation() => Ok(Atom::One(c)),
            Some(c) => Err(format!("\\{c} is not understood")),
            None => Err("a backslash at the end".to_owned()),
        }
    }

    fn class(&mut self) -> Result<Atom, String> {
        let open = || "a class has no end".to_owned();
        let not = self.rest.next_if_eq(&'^').is_some();
        let mut ranges = Vec::new();
        loop {
            let first = match self.rest.next().ok_or_else(open)? {
                ']' if !ranges.is_empty() => return Ok(Atom::Class { not, ranges }),
                '[' if self.rest.peek() == Some(&':') => {
                    return Err("named classes are not understood".to_owned());
                }
                '\\' => self.literal()?,
                c => c,
            };
            let mut last = first;
            if self.rest.next_if_eq(&'-').is_some() {
                match self.rest.next().ok_or_else(open)? {
                    ']' => {
                        ranges.extend([(first, first), ('-', '-')]);
                        return Ok(Atom::Class { not, ranges });
                    }
                    '\\' => last = self.literal()?,
                    c => last = c,
                }
            }
            if last < first {
                return Err(format!("{first}-{last} is no range"));
            }
            ranges.push((first, last));
        }
    }

    fn literal(&mut self) -> Result<char, String> {
        match self.escaped()? {
            Atom::One(c) => Ok(c),
            _ => Err("a class within a class is not understood".to_owned()),
        }
    }
}

fn class(ranges: &[(char, char)]) -> Atom {
    Atom::Class {
        not: false,
        ranges: ranges.to_vec(),
    }
}

struct Matcher<'a> {
    text: &'a [char],
    steps: u32,
}

/// What has to match after the part at hand: called with the place where that ended.
type Next<'n> = &'n mut dyn FnMut(&mut Matcher, usize) -> bool;

impl Matcher<'_> {
    fn one_of(&mut self, all: &[Sequence], at: usize, next: Next) -> bool {
        all.iter().any(|sequence| self.sequence(sequence, at, next))
    }

    fn sequence(&mut self, sequence: &[(Atom, Times)], at: usize, next: Next) -> bool {
        self.steps += 1;
        if self.steps > STEPS {
            return false;
        }
        let Some(((atom, times), rest)) = sequence.split_first() else {
            return next(self, at);
        };
        match times {
            Times::Once => self.atom(atom, at, &mut |m, end| m.sequence(rest, end, next)),
            Times::Maybe => {
                self.atom(atom, at, &mut |m, end| m.sequence(rest, end, next))
                    || self.sequence(rest, at, next)
            }
            Times::Any => self.repeat(atom, rest, at, next),
            Times::Some => self.atom(atom, at, &mut |m, end| m.repeat(atom, rest, end, next)),
        }
    }

    fn repeat(&mut self, atom: &Atom, rest: &[(Atom, Times)], at: usize, next: Next) -> bool {
        // An empty repetition would repeat for ever.
        self.atom(atom, at, &mut |m, end| {
            end > at && m.repeat(atom, rest, end, next)
        }) || self.sequence(rest, at, next)
    }

    fn atom(&mut self, atom: &Atom, at: usize, next: Next) -> bool {
        self.steps += 1;
        let here = self.text.get(at).copied();
        let taken = match atom {
            Atom::Start => return at == 0 && next(self, at),
            Atom::End => return here.is_none() && next(self, at),
            Atom::Group(inner) => return self.one_of(inner, at, next),
            Atom::Any => here.is_some(),
            Atom::One(c) => here == Some(*c),
            Atom::Class { not, ranges } => here.is_some_and(|c| {
                let inside = ranges.iter().any(|(a, z)| (*a..=*z).contains(&c));
                inside != *not
            }),
        };
        taken && next(self, at + 1)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_the_regular_expression_it_is() {
        let redirects = "net.ipv4.conf.eth0.accept_redirects";
        for (line, key, allowed) in [
            (
                r"^net.ipv4.conf.IFNAME.accept_redirects$",
                "net.ipv4.conf.IFNAME.accept_redirects",
                true,
            ),
            (
                r"^net.ipv4.conf.IFNAME.accept_redirects$",
                "net.ipv4.conf.IFNAME.accept_redirectss",
                false,
            ),
            (r"ipv4", redirects, true),
            (r"^ipv4", redirects, false),
            (
                r"^net\.ipv[46]\.conf\.[a-z0-9]+\.accept_.*$",
                redirects,
                true,
            ),
            (
                r"^net\.ipv[46]\.conf\.[^.]+\.accept_.*$",
                "net.ipv4.conf.a.b.accept_x",
                false,
            ),
            (
                r"^net\.(ipv4|ipv6)\.(?:conf|neigh)\.\w+\.\w+$",
                "net.ipv6.neigh.eth0.base",
                true,
            ),
            (
                r"^net\.(ipv4|ipv6)\.(?:conf|neigh)\.\w+\.\w+$",
                "net.core.somaxconn",
                false,
            ),
            (r"^(a|b)*c?$", "ababa", true),
            (r"^(a|b)*c?$", "abcc", false),
            (r"^(a*)*$", "aaab", false),
            (r"^x+y$", "y", false),
            (r"^[]-]$", "]", true),
            (r"^\d\d$", "42", true),
            ("", redirects, true),
        ] {
            let pattern = Pattern::parse(line).unwrap();
            assert_eq!(pattern.matches(key), allowed, "{line} {key}");
        }
    }

    #[test]
    fn a_line_that_is_not_understood_is_an_error_and_no_fence() {
        for line in [
            "(",
            "a)",
            "[",
            "[z-a]",
            "*",
            "a{2}",
            r"\b",
            r"a\",
            "(?i)a",
            "[[:alpha:]]",
            r"[\d]",
        ] {
            assert!(Pattern::parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_match_that_would_take_for_ever_is_no_match() {
        let pattern = Pattern::parse("^(a*)*(a*)*(a*)*(a*)*b$").unwrap();
        assert!(!pattern.matches(&"a".repeat(64)));
    }

    #[test]
    fn whatever_stands_in_a_line_and_in_a_key_there_is_an_answer() {
        let letters: Vec<char> = r"ab.^$[]()|*+?\-dw{}:é".chars().collect();
        let (mut state, mut read, mut refused) = (1u64, 0, 0);
        let mut next = |bound: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            usize::try_from(state >> 33).unwrap() % bound
        };
        for _ in 0..20_000 {
            let length = next(12);
            let line: String = (0..length).map(|_| letters[next(letters.len())]).collect();
            match Pattern::parse(&line) {
                Ok(pattern) => {
                    read += 1;
                    pattern.matches("abab.d-w");
                    pattern.matches("");
                }
                Err(_) => refused += 1,
            }
        }
        assert!(read > 1000 && refused > 1000, "{read} {refused}");
        assert!(Pattern::parse(&"(".repeat(10_000)).is_err());
        let deep = format!("{}a{}", "(".repeat(200), ")".repeat(200));
        assert!(Pattern::parse(&deep).unwrap().matches("a"));
    }

    #[test]
    fn without_a_file_everything_is_allowed_and_with_one_only_what_it_says() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("allowlist.conf");
        check(&file, ["net.core.somaxconn"]).unwrap();
        std::fs::write(&file, "\n  ^net.ipv4.conf.IFNAME.log_martians$  \n\n").unwrap();
        check(&file, ["net.ipv4.conf.IFNAME.log_martians"]).unwrap();
        let error = check(
            &file,
            ["net.ipv4.conf.IFNAME.log_martians", "net.core.somaxconn"],
        )
        .unwrap_err();
        assert!(error.msg.contains("net.core.somaxconn"), "{error}");
        std::fs::write(&file, "^(net\n").unwrap();
        assert_eq!(
            check(&file, ["net.core.somaxconn"]).unwrap_err().code,
            CniError::DECODE
        );
        std::fs::write(&file, "").unwrap();
        assert!(check(&file, ["net.core.somaxconn"]).is_err());
    }
}
