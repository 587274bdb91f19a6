//! Measurements against the budgets, as a table of met and missed. Never part of CI: machines differ.
//!
//! ```text
//!  bench ─► for each name: cargo run --release … bench NAME --child ─► Report as JSON ─► docs/bench.md
//! ```
//!
//! Each bench runs in a process of its own, so that its peak memory is its own and it is built with optimisation
//! whatever profile `cargo xtask` has. To add one: a function in a module below that returns a [`Report`], and
//! its name in [`BENCHES`] and [`measure`]. Easy to get wrong: a ratio is taken in one run, side by side, never against a number
//! from another day.

#[cfg(feature = "bench")]
mod addresses;
#[cfg(feature = "bench")]
mod cni;
#[cfg(feature = "bench")]
mod control_plane;
#[cfg(feature = "bench")]
mod fleet;
#[cfg(feature = "bench")]
mod intents;
#[cfg(feature = "bench")]
mod kpt;
#[cfg(feature = "bench")]
mod measure;
#[cfg(feature = "bench")]
mod render;
#[cfg(feature = "bench")]
mod verify;

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::shell::{cargo, output, root};

const BENCHES: &[&str] = &[
    "ipam",
    "book",
    "render",
    "verify",
    "intents",
    "kpt",
    "control-plane",
    "cni",
];

/// Runs one bench in this process.
#[cfg(feature = "bench")]
fn measure(name: &str) -> Result<Report> {
    match name {
        "ipam" => addresses::ipam(),
        "book" => addresses::book(),
        "render" => render::render(),
        "verify" => verify::verify(),
        "intents" => intents::intents(),
        "kpt" => kpt::kpt(),
        "control-plane" => control_plane::control_plane(),
        "cni" => cni::cni(),
        // The same, in the namespace that it has made.
        "cni-inside" => cni::inside(),
        _ => bail!("no bench is called {name}"),
    }
}

#[cfg(not(feature = "bench"))]
fn measure(name: &str) -> Result<Report> {
    bail!("this build of xtask cannot measure {name}; it lacks the feature `bench`")
}

/// What one bench found.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Budgets.
    pub(crate) rows: Vec<Row>,
    /// How something grows.
    pub(crate) curves: Vec<Curve>,
    /// Peak resident memory of the whole bench.
    #[serde(default)]
    pub(crate) peak_kib: u64,
}

/// One budget.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    /// What was done.
    pub(crate) work: String,
    /// What it may cost.
    pub(crate) budget: String,
    /// What it cost.
    pub(crate) measured: String,
    /// Whether that is within the budget.
    pub(crate) met: bool,
    /// Whether the floor, which does only what anybody must, misses it as well.
    #[serde(default)]
    pub(crate) floor_misses: bool,
}

/// A table whose first column grows.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Curve {
    /// What is shown.
    pub(crate) title: String,
    /// Column names.
    pub(crate) columns: Vec<String>,
    /// Rows.
    pub(crate) points: Vec<Vec<String>>,
}

/// Runs all benches, or one. Missed budgets are printed and are no error.
pub(crate) fn run(name: Option<&str>) -> Result<()> {
    let chosen: Vec<&str> = BENCHES
        .iter()
        .copied()
        .filter(|b| name.is_none_or(|n| n == *b))
        .collect();
    if chosen.is_empty() {
        bail!("no such bench; there are {}", BENCHES.join(", "));
    }
    let path = root().join("docs/bench.md");
    let mut page = match name {
        Some(_) => fs::read_to_string(&path).context("cannot read docs/bench.md")?,
        None => HEADING.to_owned(),
    };
    let place = place()?;
    for bench in chosen {
        eprintln!("bench: {bench} …");
        let child = [
            "run",
            "--release",
            "--quiet",
            "-p",
            "xtask",
            "--features",
            "bench",
            "--",
        ];
        let json = output(cargo(&child).args(["bench", bench, "--child"]))?;
        let report: Report = serde_json::from_str(&json)
            .with_context(|| format!("bench {bench} printed no report"))?;
        for row in &report.rows {
            println!(
                "{}: {}: {} (budget {})",
                row.verdict(),
                row.work,
                row.measured,
                row.budget
            );
        }
        for curve in &report.curves {
            println!("{}", curve.markdown());
        }
        // After each: what was measured is kept when a later one fails.
        page = with_part(&page, bench, &report.markdown(bench, &place));
        fs::write(&path, &page).context("cannot write docs/bench.md")?;
    }
    println!("wrote docs/bench.md");
    Ok(())
}

/// The page with one part new: in its place, or at the end.
fn with_part(page: &str, name: &str, part: &str) -> String {
    let begin = format!("\n## {name}\n");
    let Some((head, rest)) = page.split_once(&begin) else {
        return format!("{page}{part}");
    };
    let tail = rest.find("\n## ").map_or("", |next| &rest[next..]);
    format!("{head}{part}{tail}")
}

/// The child's side: measures in this process and prints the report.
pub(crate) fn measure_here(name: &str) -> Result<()> {
    let mut report = measure(name)?;
    report.peak_kib = peak_kib()?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

/// The most memory that this process has had at once.
pub(crate) fn peak_kib() -> Result<u64> {
    let status =
        fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
    high_water_mark(&status).context("/proc/self/status has no VmHWM")
}

fn high_water_mark(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Begins the page.
const HEADING: &str = "<!-- Written by `cargo xtask bench`; do not edit. -->\n\n# Benchmarks\n\n\
     Numbers of two machines do not compare; ratios are taken side by side in one run. Peak memory is that of a process\n\
     which ran this bench and nothing else. `cargo xtask bench NAME` writes its own part anew.\n";

/// Below a table in which it stands.
const BASE_TOO: &str = "\n*missed; base too*: the program that only tells the kernel what anybody must tell it misses this budget as well, so\n\
     the time is the kernel's, and no plugin on this machine could meet it.\n";

/// Where and on what something is measured.
fn place() -> Result<String> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unknown processor", |(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let commit = output(
        std::process::Command::new("git")
            .args(["rev-parse", "--short", "HEAD"])
            .current_dir(root()),
    )?;
    Ok(format!("On {model}, {cores} cores, at commit {commit}."))
}

impl Row {
    fn verdict(&self) -> &'static str {
        match (self.met, self.floor_misses) {
            (true, _) => "met",
            (false, true) => "missed; base too",
            (false, false) => "missed",
        }
    }
}

impl Curve {
    fn markdown(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "\n{}\n\n| {} |", self.title, self.columns.join(" | "));
        let _ = writeln!(out, "|{}", "---|".repeat(self.columns.len()));
        for point in &self.points {
            let _ = writeln!(out, "| {} |", point.join(" | "));
        }
        out
    }
}

impl Report {
    fn markdown(&self, name: &str, place: &str) -> String {
        let mut out = format!("\n## {name}\n\n{place}\n");
        if !self.rows.is_empty() {
            out.push_str("\n| work | budget | measured | |\n|---|---|---|---|\n");
        }
        for row in &self.rows {
            let Row {
                work,
                budget,
                measured,
                ..
            } = row;
            let _ = writeln!(
                out,
                "| {work} | {budget} | {measured} | {} |",
                row.verdict()
            );
        }
        if self.rows.iter().any(|row| !row.met && row.floor_misses) {
            out.push_str(BASE_TOO);
        }
        for curve in &self.curves {
            out.push_str(&curve.markdown());
        }
        let _ = writeln!(out, "\nPeak memory: {} MiB.", self.peak_kib.div_ceil(1024));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_written_in_its_place_or_at_the_end() {
        let page = "# B\n\n## ipam\n\nold\n\n## book\n\nkept\n";
        let new = with_part(page, "ipam", "\n## ipam\n\nnew\n");
        assert_eq!(new, "# B\n\n## ipam\n\nnew\n\n## book\n\nkept\n");
        let last = with_part(&new, "book", "\n## book\n\nanother\n");
        assert_eq!(last, "# B\n\n## ipam\n\nnew\n\n## book\n\nanother\n");
        assert!(with_part(&new, "cni", "\n## cni\n").ends_with("kept\n\n## cni\n"));
    }

    #[test]
    fn peak_memory_is_read_from_the_status_of_the_process() {
        assert_eq!(
            high_water_mark("Name:\tx\nVmHWM:\t  1234 kB\nVmRSS:\t 1 kB\n"),
            Some(1234)
        );
        assert_eq!(high_water_mark("Name:\tx\n"), None);
        assert!(peak_kib().unwrap() > 100);
    }

    #[test]
    fn a_report_survives_the_way_from_the_child() {
        let row = |met, floor_misses| Row {
            work: "render".to_owned(),
            budget: "≤ 10 ms".to_owned(),
            measured: "12 ms".to_owned(),
            met,
            floor_misses,
        };
        let report = Report {
            rows: vec![row(false, false), row(false, true), row(true, true)],
            curves: vec![Curve {
                title: "growth".to_owned(),
                columns: vec!["packages".to_owned(), "time".to_owned()],
                points: vec![vec!["10".to_owned(), "1 ms".to_owned()]],
            }],
            peak_kib: 2000,
        };
        let json = serde_json::to_string(&report).unwrap();
        let text = serde_json::from_str::<Report>(&json)
            .unwrap()
            .markdown("package", "Here.");
        for verdict in ["missed", "missed; base too", "met"] {
            let row = format!("| render | ≤ 10 ms | 12 ms | {verdict} |\n");
            assert_eq!(text.matches(&row).count(), 1, "{text}");
        }
        assert!(text.contains(BASE_TOO), "{text}");
        assert!(
            text.contains("| packages | time |\n|---|---|\n| 10 | 1 ms |"),
            "{text}"
        );
        assert!(text.contains("Peak memory: 2 MiB."), "{text}");
    }
}
