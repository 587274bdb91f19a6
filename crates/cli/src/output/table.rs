//! Aligned columns without borders, and the words that stand in them.

use std::fmt;

use comfy_table::{CellAlignment, ContentArrangement, presets};
use mooring_api::{Span, Time};

/// Rows under a header. An empty cell shows as `-`, so that columns can be cut by scripts.
pub(crate) struct Table {
    table: comfy_table::Table,
    rows: usize,
}

impl Table {
    /// A header; names that begin with `>` are aligned to the right, for numbers.
    pub(crate) fn new<const N: usize>(header: [&str; N]) -> Self {
        Self::of(&header)
    }

    /// The same, where the columns depend on the data.
    pub(crate) fn of(header: &[&str]) -> Self {
        let mut table = comfy_table::Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(
                header
                    .iter()
                    .map(|name| name.trim_start_matches('>').to_uppercase()),
            );
        for (column, name) in table.column_iter_mut().zip(header) {
            column.set_padding((0, 2));
            if name.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Self { table, rows: 0 }
    }

    /// One row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.cells(cells.to_vec());
    }

    /// The same, where the columns depend on the data.
    pub(crate) fn cells(&mut self, cells: Vec<String>) {
        let said = |c: String| if c.is_empty() { "-".to_owned() } else { c };
        let cells: Vec<String> = cells.into_iter().map(said).collect();
        self.table.add_row(cells);
        self.rows += 1;
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rows == 0 {
            return Ok(());
        }
        self.table
            .lines()
            .try_for_each(|line| writeln!(f, "{}", line.trim_end()))
    }
}

/// `1 file`, `2 files`.
pub(crate) fn count(number: usize, one: &str) -> String {
    match (number, one.strip_suffix('y')) {
        (1, _) => format!("1 {one}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) if one.ends_with("ss") => format!("{number} {one}es"),
        _ => format!("{number} {one}s"),
    }
}

/// Several values in one cell.
pub(crate) fn none_or<T: ToString>(values: &[T]) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    values.join(",")
}

/// How long ago, in its two largest units: `3d4h`.
pub(crate) fn age(since: Time, now: Time) -> String {
    let seconds = now.0.saturating_sub(since.0);
    let unit = [86_400, 3_600, 60, 1];
    let first = unit.iter().position(|u| seconds >= *u).unwrap_or(3);
    let smallest = unit[(first + 1).min(3)];
    Span(seconds / smallest * smallest).to_string()
}

/// A moment, as RFC 3339 in UTC.
pub(crate) fn rfc3339(time: Time) -> String {
    let seconds = i64::try_from(time.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| time.0.to_string(), |t| t.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_numbers_to_the_right_and_empty_cells_are_dashes() {
        let mut table = Table::new(["name", ">used", "note"]);
        table.row(["a".into(), "7".into(), String::new()]);
        table.row(["longer".into(), "1234".into(), "x".into()]);
        assert_eq!(
            table.to_string(),
            "NAME    USED  NOTE\na          7  -\nlonger  1234  x\n"
        );
    }

    #[test]
    fn a_table_without_rows_prints_nothing() {
        assert_eq!(Table::new(["name"]).to_string(), "");
    }

    #[test]
    fn ages_have_two_units_at_most() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (61, "1m1s"),
            (7_322, "2h2m"),
            (90_061, "1d1h"),
        ] {
            assert_eq!(age(Time(1_000), Time(1_000 + seconds)), text);
        }
    }

    #[test]
    fn a_clock_that_went_back_gives_no_negative_age() {
        assert_eq!(age(Time(2_000), Time(1_000)), "0s");
    }

    #[test]
    fn moments_are_rfc_3339_in_utc() {
        assert_eq!(rfc3339(Time(1_700_000_000)), "2023-11-14T22:13:20Z");
    }

    #[test]
    fn nouns_are_counted_in_english() {
        assert_eq!(count(1, "address"), "1 address");
        assert_eq!(count(2, "address"), "2 addresses");
        assert_eq!(count(0, "file"), "0 files");
        assert_eq!(count(3, "entry"), "3 entries");
    }
}
