//! The table's grammar: `seed line what verdict`.

/// What became of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes into a case.
    Input { case: String, but: Option<String> },
    /// It comes out of a case.
    Output { case: String, but: Option<String> },
    /// It is about something else.
    NotOurs,
}

impl Verdict {
    /// The case that is named.
    pub(crate) fn case(&self) -> Option<&str> {
        match self {
            Self::Input { case, .. } | Self::Output { case, .. } => Some(case),
            Self::NotOurs => None,
        }
    }
}

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// `000`, `001`.
    pub(crate) seed: String,
    /// Where the block starts, from 1.
    pub(crate) line: usize,
    /// Language of the fence, `text` without one; `box:Kind` for a drawn object.
    pub(crate) what: String,
    /// What became of it.
    pub(crate) verdict: Verdict,
}

/// Every row; a line that is none panics.
pub(crate) fn parse(text: &str) -> Vec<Row> {
    let lines = text
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines
        .map(|line| row(line).unwrap_or_else(|| panic!("{line:?} is not a row")))
        .collect()
}

fn row(line: &str) -> Option<Row> {
    let (seed, rest) = line.split_once(' ')?;
    let (number, rest) = rest.trim_start().split_once(' ')?;
    let (what, rest) = rest.trim_start().split_once(' ')?;
    Some(Row {
        seed: seed.to_owned(),
        line: number.parse().ok()?,
        what: what.to_owned(),
        verdict: verdict(rest.trim())?,
    })
}

fn verdict(text: &str) -> Option<Verdict> {
    if let Some(reason) = text.strip_prefix("not ours: ") {
        return (!reason.is_empty()).then_some(Verdict::NotOurs);
    }
    let (text, but) = match text.split_once("; but ") {
        Some((text, but)) => (text, Some(but.to_owned())),
        None => (text, None),
    };
    let named = |case: &str| !case.is_empty() && !case.contains(' ');
    if let Some(case) = text.strip_prefix("input of ").filter(|c| named(c)) {
        let case = case.to_owned();
        return Some(Verdict::Input { case, but });
    }
    let case = text.strip_prefix("output of ").filter(|c| named(c))?;
    let case = case.to_owned();
    Some(Verdict::Output { case, but })
}
