//! Days, moments and lengths of time as people type them.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use mooring_api::{Span, Time};

use crate::world::Usage;

/// A word for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A day in UTC: where it begins, and where the next one does.
    Day(Time, Time),
    /// A moment.
    At(Time),
    /// So long.
    Span(Span),
}

impl Moment {
    /// `2027-01-31`, `2027-01-31T12:00:00Z` or `30d`; `option` is where it was typed.
    pub(crate) fn parse(text: &str, option: &str) -> Result<Self, Usage> {
        if let Ok(span) = text.parse::<Span>() {
            return Ok(Self::Span(span));
        }
        let day = text.parse::<Date>().ok().and_then(|day| {
            let begin = |day: Date| day.to_zoned(TimeZone::UTC).ok().map(|z| z.timestamp());
            Some((begin(day)?, begin(day.tomorrow().ok()?)?))
        });
        // A date with a time is a date too, for that parser.
        let only_day = text.len() <= "2027-01-31".len();
        if let Some((begin, end)) = day.filter(|_| only_day) {
            return Ok(Self::Day(seconds(begin), seconds(end)));
        }
        let at = text.parse::<jiff::Timestamp>().map(seconds).map(Self::At);
        at.map_err(|_| {
            Usage::new(
                format!("{option} {text:?} is no time"),
                "write a day (2027-01-31), a moment (2027-01-31T12:00:00Z) or a length (30d, 12h)",
            )
        })
    }

    /// When something ends; a length counts from `from`.
    pub(crate) fn end(self, from: Time) -> Time {
        match self {
            Self::Day(_, end) => end,
            Self::At(at) => at,
            Self::Span(span) => from.after(span),
        }
    }

    /// When something begins; a length counts back from `now`.
    pub(crate) fn begin(self, now: Time) -> Time {
        match self {
            Self::Day(begin, _) => begin,
            Self::At(at) => at,
            Self::Span(span) => Time(now.0.saturating_sub(span.0)),
        }
    }
}

fn seconds(stamp: jiff::Timestamp) -> Time {
    Time(u64::try_from(stamp.as_second()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_the_whole_day_and_a_length_counts_from_where_it_is_said() {
        let day = Moment::parse("2027-01-31", "--until").unwrap();
        assert_eq!(day.begin(Time(0)), Time(1_801_353_600));
        assert_eq!(day.end(Time(0)), Time(1_801_353_600 + 86_400));
        let at = Moment::parse("2027-01-31T12:00:00Z", "--until").unwrap();
        assert_eq!(at, Moment::At(Time(1_801_353_600 + 43_200)));
        let span = Moment::parse("30d", "--until").unwrap();
        assert_eq!(span.end(Time(100)), Time(100 + 30 * 86_400));
        assert_eq!(span.begin(Time(31 * 86_400)), Time(86_400));
        for bad in ["", "soon", "2027-02-30", "30"] {
            assert!(Moment::parse(bad, "--until").is_err(), "{bad}");
        }
    }
}
