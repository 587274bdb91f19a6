//! Whether a draft may go on by itself: the policy, the delay and the gates. Pure.
//!
//! ```text
//!  approval.nephio.org/policy: always   every draft          approval.nephio.org/delay: 10m   not before the draft is that old
//!                              initial  only the first one
//!  none                        a person approves
//! ```
//!
//! Both are read from the variant's `spec.annotations`, then from its metadata, as Nephio's controller reads the
//! PackageRevision that Porch copies them to. Easy to get wrong: a value that cannot be read approves nothing.

use std::collections::BTreeMap;

use mooring_api::{Code, Finding, Span, Time};

pub(super) const POLICY: &str = "approval.nephio.org/policy";
pub(super) const DELAY: &str = "approval.nephio.org/delay";

/// Who approves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// A person.
    Person,
    /// The policy, when there is no version yet.
    Initial,
    /// The policy, always.
    Always,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Approval {
    pub(super) policy: Policy,
    pub(super) delay: Span,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A person decides.
    Person,
    /// Not before the gates are met: these are not.
    Gates(Vec<String>),
    /// Not before this time.
    Wait(Time),
    /// Now.
    Approve,
}

/// Reads the policy: from the variant's `spec.annotations`, then from its metadata.
pub(super) fn read(
    spec: &BTreeMap<String, String>,
    metadata: &BTreeMap<String, String>,
) -> Result<Approval, Finding> {
    let get = |key: &str| {
        let written = spec.get(key).map(|v| (v, "spec.annotations"));
        written.or_else(|| metadata.get(key).map(|v| (v, "metadata.annotations")))
    };
    let wrong = |message: String, place: &str, key: &str, help: &str| {
        Finding::error(Code::InvalidAnnotation, message)
            .at(format!("{place}[{key}]"))
            .help(help.to_owned())
    };
    let policy = match get(POLICY) {
        None => Policy::Person,
        Some((text, _)) if text == "initial" => Policy::Initial,
        Some((text, _)) if text == "always" => Policy::Always,
        Some((text, place)) => {
            let message = format!("{POLICY} is {text:?}; it must be initial or always");
            let help = "Write one of the two, or take it away: then a person approves.";
            return Err(wrong(message, place, POLICY, help));
        }
    };
    let delay = match get(DELAY) {
        None => Span(0),
        Some((text, place)) => text.parse().map_err(|error| {
            wrong(
                format!("{DELAY}: {error}"),
                place,
                DELAY,
                "Write it like 90s or 10m.",
            )
        })?,
    };
    Ok(Approval { policy, delay })
}

impl Approval {
    /// What comes next for a draft of this age.
    pub(super) fn next(&self, published: bool, unmet: &[&str], made: Time, now: Time) -> Next {
        let applies = match self.policy {
            Policy::Person => false,
            Policy::Initial => !published,
            Policy::Always => true,
        };
        let due = made.after(self.delay);
        if !applies {
            Next::Person
        } else if !unmet.is_empty() {
            Next::Gates(unmet.iter().map(|gate| (*gate).to_owned()).collect())
        } else if now < due {
            Next::Wait(due)
        } else {
            Next::Approve
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn spec_annotations_come_before_metadata() {
        let spec = map(&[(POLICY, "initial")]);
        let metadata = map(&[(POLICY, "always"), (DELAY, "1h30m")]);
        let read = read(&spec, &metadata).expect("both can be read");
        assert_eq!(read.policy, Policy::Initial);
        assert_eq!(read.delay, Span(5400));
    }

    #[test]
    fn initial_is_for_the_first_version_only() {
        let approval = |text| read(&map(&[(POLICY, text)]), &map(&[])).expect("it can be read");
        let next = |text, published| approval(text).next(published, &[], Time(5), Time(5));
        assert_eq!(next("initial", false), Next::Approve);
        assert_eq!(next("initial", true), Next::Person);
        assert_eq!(next("always", true), Next::Approve);
    }

    #[test]
    fn gates_come_before_the_delay_and_the_delay_counts_from_the_draft() {
        let annotations = map(&[(POLICY, "always"), (DELAY, "10m")]);
        let approval = read(&annotations, &map(&[])).expect("it can be read");
        let unmet = Next::Gates(vec!["x".to_owned()]);
        assert_eq!(approval.next(false, &["x"], Time(0), Time(9999)), unmet);
        assert_eq!(
            approval.next(false, &[], Time(100), Time(699)),
            Next::Wait(Time(700))
        );
        assert_eq!(
            approval.next(false, &[], Time(100), Time(700)),
            Next::Approve
        );
    }

    #[test]
    fn a_word_that_nobody_knows_approves_nothing() {
        let refused = read(&map(&[(POLICY, "sometimes")]), &map(&[])).expect_err("no such policy");
        assert_eq!(refused.code, Code::InvalidAnnotation);
        assert!(read(&map(&[]), &map(&[(DELAY, "soon")])).is_err());
        let nobody = read(&map(&[]), &map(&[])).expect("nothing is asked for");
        assert_eq!(nobody.next(false, &[], Time(0), Time(1)), Next::Person);
    }
}
