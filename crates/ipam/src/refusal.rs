//! Why not: a refusal names each prefix, what did not match, how full it is and who holds most.
//!
//! [`Refusal`] is data, so that a caller may act on it; [`Refusal::finding`] is the text. The text is
//! bounded (five prefixes, three holders) because a condition and an Event have limits.

use std::fmt::{self, Write as _};

use mooring_api::{AddrRange, Cidr, Code, Finding, ObjectRef, Time};

use crate::{InstanceKey, Kind, Lease, State, Thing, Want};

/// Why a claim gets nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such instance.
    UnknownInstance {
        /// Asked for.
        instance: InstanceKey,
        /// What there is, the first few.
        known: Vec<InstanceKey>,
    },
    /// The instance has no prefix for this claim.
    NoMatchingPrefix {
        /// Where.
        instance: InstanceKey,
        /// For what.
        kind: Kind,
        /// How much.
        want: Want,
        /// Each prefix with what did not match, the first few.
        prefixes: Vec<Mismatch>,
        /// How many more there are.
        more: usize,
    },
    /// Prefixes match, and nothing is free.
    Exhausted {
        /// Where.
        instance: InstanceKey,
        /// How much was wanted.
        want: Want,
        /// Each matching prefix with what it is full of, the first few.
        prefixes: Vec<Fullness>,
        /// How many more there are.
        more: usize,
    },
    /// Somebody else has it.
    Held {
        /// What was wanted.
        thing: Thing,
        /// Whose it is.
        by: Box<Lease>,
    },
    /// Somebody else had it until recently.
    Cooling {
        /// What was wanted.
        thing: Thing,
        /// Whose it was.
        by: Box<Lease>,
        /// When it is free.
        until: Time,
    },
    /// `spec.allocations` keeps it for another claim.
    Kept {
        /// What was wanted.
        thing: Thing,
        /// What is kept.
        range: AddrRange,
        /// For which claim.
        claim: String,
        /// Of which cluster; empty means any.
        cluster: String,
    },
    /// It lies in no matching prefix.
    OutsidePrefix {
        /// What was wanted.
        thing: Thing,
        /// The matching prefixes, the first few.
        prefixes: Vec<Cidr>,
    },
    /// The order asked for the n-th address, and there are fewer.
    NoSuchIndex {
        /// Counted from 0.
        index: u32,
        /// In which prefix.
        prefix: Cidr,
        /// How many there are.
        size: u128,
    },
    /// It is one that nobody may have.
    NotUsable {
        /// What was wanted.
        thing: Thing,
        /// Of which prefix; None for a VLAN.
        prefix: Option<Cidr>,
        /// Why.
        why: Unusable,
    },
}

/// Why nobody may have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The network address.
    Network,
    /// The broadcast address.
    Broadcast,
    /// The gateway.
    Gateway,
    /// Excluded.
    Excluded(AddrRange),
    /// Another prefix of the instance lies there.
    Prefix(Cidr),
    /// Nothing new is handed out from the prefix.
    Drained,
}

/// A prefix that cannot serve a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Which.
    pub prefix: Cidr,
    /// Where it is written.
    pub origin: ObjectRef,
    /// What did not match.
    pub why: Vec<String>,
}

impl Mismatch {
    /// Whether it would serve, were it not being drained.
    fn only_drained(&self) -> bool {
        matches!(self.why.as_slice(), [one] if one == "is being drained")
    }
}

/// How full a prefix is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fullness {
    /// Which.
    pub prefix: Cidr,
    /// How many are taken: held, reserved or cooling.
    pub used: u128,
    /// Of how many that may be handed out.
    pub size: u128,
    /// How many of them rest after their release.
    pub cooling: u128,
    /// The most addresses in a row that are free.
    pub largest_gap: u128,
    /// Who holds most: `cluster / package` and how many, the first three.
    pub holders: Vec<(String, u128)>,
}

impl Refusal {
    /// For one thing that somebody has.
    pub fn blocked(thing: Thing, by: Lease) -> Self {
        let (state, by) = (by.state, Box::new(by));
        match state {
            State::Cooling { until } => Self::Cooling { thing, by, until },
            State::Held | State::Reserved { .. } => Self::Held { thing, by },
        }
    }

    /// Its code, which is the condition's reason too.
    pub fn code(&self) -> Code {
        match self {
            Self::UnknownInstance { .. } => Code::UnknownNetworkInstance,
            Self::NoMatchingPrefix { .. } => Code::NoMatchingPrefix,
            Self::Exhausted { .. } => Code::PoolExhausted,
            Self::Held { .. } | Self::Kept { .. } => Code::AddressHeld,
            Self::Cooling { .. } => Code::AddressCooling,
            Self::OutsidePrefix { .. } | Self::NoSuchIndex { .. } => Code::AddressOutsidePrefix,
            Self::NotUsable { .. } => Code::AddressNotUsable,
        }
    }

    /// The refusal as a person reads it. The caller adds object and field.
    pub fn finding(&self) -> Finding {
        Finding::error(self.code(), self.to_string()).help(self.help())
    }

    fn help(&self) -> String {
        match self {
            Self::UnknownInstance { instance, .. } => format!(
                "add a NetworkInstance named {} in namespace {}, or correct the name",
                instance.name(),
                instance.namespace()
            ),
            Self::NoMatchingPrefix { prefixes, .. } if prefixes.is_empty() => {
                "add an IPPrefix to the instance".to_owned()
            }
            Self::NoMatchingPrefix { prefixes, .. } if prefixes.iter().any(Mismatch::only_drained) => {
                "add an IPPrefix with the same labels, or end the drain: moor pool drain PREFIX --undo".to_owned()
            }
            Self::NoMatchingPrefix { .. } => {
                "add an IPPrefix that fits, or change the labels of one of these or the claim's selector"
                    .to_owned()
            }
            Self::Exhausted { prefixes, .. } if prefixes.iter().any(|p| p.cooling > 0) => {
                "wait for the resting addresses, release what is not needed, or add a prefix with the same labels"
                    .to_owned()
            }
            Self::Exhausted { prefixes, .. } if prefixes.is_empty() => {
                "release a VLAN that is not needed".to_owned()
            }
            Self::Exhausted { .. } => {
                "release what is not needed, grow a prefix, or add one with the same labels".to_owned()
            }
            Self::Held { .. } => {
                "choose another one, or release it from its holder first".to_owned()
            }
            Self::Cooling { .. } => "wait, choose another one, or shorten the prefix's cool-down".to_owned(),
            Self::Kept { .. } => {
                "choose another one, or correct the prefix's spec.allocations".to_owned()
            }
            Self::OutsidePrefix { .. } => {
                "choose one inside a matching prefix, or add the prefix it lies in".to_owned()
            }
            Self::NoSuchIndex { .. } => "choose a smaller index, or grow the prefix".to_owned(),
            Self::NotUsable {
                why: Unusable::Excluded(_),
                ..
            } => "choose another one, or remove the exclusion from the prefix".to_owned(),
            Self::NotUsable {
                why: Unusable::Drained,
                ..
            } => "choose one of another prefix, or end the drain: moor pool drain PREFIX --undo".to_owned(),
            Self::NotUsable { .. } => "choose another one".to_owned(),
        }
    }
}

/// How a person says what is wanted.
fn wanted(want: Want) -> String {
    match want {
        Want::Address => "an address".to_owned(),
        Want::Block { len } => format!("a /{len}"),
        Want::Range { count } => format!("{count} addresses in a row"),
        Want::Vlan { .. } => "a VLAN".to_owned(),
    }
}

fn list<T: fmt::Display>(things: &[T]) -> String {
    things
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

impl fmt::Display for Fullness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} has {} of {} taken",
            self.prefix, self.used, self.size
        )?;
        if self.cooling > 0 {
            write!(f, ", {} of them resting", self.cooling)?;
        }
        if self.largest_gap > 0 {
            write!(f, ", at most {} free in a row", self.largest_gap)?;
        }
        if !self.holders.is_empty() {
            let holders = self.holders.iter().map(|(name, n)| format!("{name}: {n}"));
            write!(f, " ({})", holders.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network => f.write_str("is the network address"),
            Self::Broadcast => f.write_str("is the broadcast address"),
            Self::Gateway => f.write_str("is the gateway"),
            Self::Excluded(range) => write!(f, "is excluded ({range})"),
            Self::Prefix(other) => write!(f, "overlaps the prefix {other}"),
            Self::Drained => f.write_str("cannot be taken: nothing new is handed out"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownInstance { instance, known } => {
                write!(f, "there is no network instance {instance}")?;
                if !known.is_empty() {
                    write!(f, "; known are {}", list(known))?;
                }
                Ok(())
            }
            Self::NoMatchingPrefix {
                instance,
                kind,
                want,
                prefixes,
                more,
            } => {
                let kind = kind.as_str();
                let want = wanted(*want);
                write!(f, "no prefix of {instance} can give {want} for kind {kind}")?;
                let mut lead = ": ";
                for p in prefixes {
                    let (prefix, origin) = (p.prefix, &p.origin);
                    write!(f, "{lead}{prefix} ({origin}) {}", p.why.join(", "))?;
                    lead = "; ";
                }
                rest(f, *more)
            }
            Self::Exhausted {
                instance,
                want,
                prefixes,
                more,
            } => {
                write!(f, "{instance} has no room for {}", wanted(*want))?;
                let mut lead = ": ";
                for p in prefixes {
                    write!(f, "{lead}{p}")?;
                    lead = "; ";
                }
                rest(f, *more)
            }
            Self::Held { thing, by } => {
                write!(f, "{thing} is held by {}", by.holder)?;
                if by.thing != *thing {
                    write!(f, ", who has {}", by.thing)?;
                }
                Ok(())
            }
            Self::Cooling { thing, by, until } => write!(
                f,
                "{thing} rests after {} released it; it is free for others at {}",
                by.holder,
                Utc(*until)
            ),
            Self::Kept {
                thing,
                range,
                claim,
                cluster,
            } => {
                write!(f, "{thing} is kept for claim {claim}")?;
                if !cluster.is_empty() {
                    write!(f, " of cluster {cluster}")?;
                }
                if *thing != Thing::Addr(range.first()) {
                    write!(f, " ({range})")?;
                }
                Ok(())
            }
            Self::OutsidePrefix { thing, prefixes } => {
                write!(f, "{thing} lies in no matching prefix")?;
                if !prefixes.is_empty() {
                    write!(f, "; there is {}", list(prefixes))?;
                }
                Ok(())
            }
            Self::NoSuchIndex {
                index,
                prefix,
                size,
            } => write!(
                f,
                "{prefix} has no address with index {index}: it has {size}, counted from 0"
            ),
            Self::NotUsable { thing, prefix, why } => {
                write!(f, "{thing} {why}")?;
                match prefix {
                    Some(prefix) => write!(f, " of {prefix}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for Refusal {}

fn rest(f: &mut fmt::Formatter<'_>, more: usize) -> fmt::Result {
    if more > 0 {
        write!(f, "; and {more} more")?;
    }
    Ok(())
}

/// A time as `2026-01-31T12:00:00Z`.
struct Utc(Time);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, seconds) = (self.0.0 / 86_400, self.0.0 % 86_400);
        let mut text = String::new();
        // Days since 0000-03-01, in eras of 400 years: a leap day is then the last day of a year.
        let z = days + 719_468;
        let (era, day) = (z / 146_097, z % 146_097);
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let in_year = day - (365 * year + year / 4 - year / 100);
        let shifted = (5 * in_year + 2) / 153;
        let month_day = in_year - (153 * shifted + 2) / 5 + 1;
        let month = if shifted < 10 {
            shifted + 3
        } else {
            shifted - 9
        };
        let year = era * 400 + year + u64::from(month <= 2);
        write!(text, "{year:04}-{month:02}-{month_day:02}T")?;
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(text, "{hour:02}:{minute:02}:{second:02}Z")?;
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (1_798_761_600, "2027-01-01T00:00:00Z"),
        ] {
            assert_eq!(Utc(Time(seconds)).to_string(), text);
        }
    }
}
