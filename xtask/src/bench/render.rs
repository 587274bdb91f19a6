//! Rendering: one blueprint as a whole process, a fleet, and packages that grow.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::fleet::Fleet;
use super::measure::seconds;
use super::{Curve, Report, Row, peak_kib};
use crate::shell::{cargo, output};

/// How often each is measured; the best run is the one that other programs disturbed least.
const RUNS: usize = 6;

/// What was measured of one kind of run.
#[derive(Clone, Copy, Default)]
struct Cost {
    wall: Duration,
    cpu: Duration,
    changes: usize,
}

/// To a fresh directory; in place; in place again, when nothing changes.
#[derive(Clone, Copy, Default)]
struct Costs {
    out: Cost,
    first: Cost,
    second: Cost,
    peak_kib: u64,
    floor: Duration,
}

pub(super) fn render() -> Result<Report> {
    let mut report = Report::default();
    let place = &tempfile::tempdir().context("cannot make a directory")?;
    // ext4 makes files slowly where others were removed minutes ago, by anybody. With this flag it puts each of our
    // directories elsewhere; where there is no such flag, nothing is lost.
    let _ = Command::new("chattr").arg("+T").arg(place.path()).status();
    process(&mut report, place)?;
    let columns = [
        "",
        "to --out",
        "CPU",
        "in place, first",
        "CPU",
        "again",
        "CPU",
        "peak memory",
        "files alone",
    ];
    let mut size = Curve::new("One package of so many interfaces", &columns);
    let mut count = Curve::new("So many packages of 4 interfaces", &columns);
    // Small before large: memory that was freed stays with the process, and peaks are only told apart when they rise.
    for (packages, interfaces) in [
        (1, 1),
        (1, 4),
        (25, 4),
        (1, 100),
        (250, 4),
        (1, 1_000),
        (2_500, 4),
        (1, 10_000),
    ] {
        let runs = if interfaces > 1_000 { 2 } else { RUNS };
        let costs = costs(place, packages, interfaces, runs)?;
        match (packages, interfaces) {
            (1, 4) => rows(
                &mut report,
                "one blueprint",
                Duration::from_millis(10),
                costs,
            ),
            (2_500, _) => rows(
                &mut report,
                "2,500 packages of 4 interfaces",
                Duration::from_secs(2),
                costs,
            ),
            (_, 1_000) => rows(
                &mut report,
                "one package of 1,000 interfaces",
                Duration::from_secs(1),
                costs,
            ),
            _ => {}
        }
        if interfaces == 4 {
            point(&mut count, packages, costs);
        } else {
            point(&mut size, interfaces, costs);
        }
    }
    report.curves.extend([size, count]);
    Ok(report)
}

/// A budget is for every way to render. Beside it stands what the disk alone takes for as many files.
fn rows(report: &mut Report, what: &str, budget: Duration, costs: Costs) {
    let ways = [
        ("to a fresh --out", costs.out),
        ("in place, first time", costs.first),
        ("in place, nothing to do", costs.second),
    ];
    for (way, cost) in ways {
        report.rows.push(Row::new(
            &format!("render {what}, {way}"),
            &format!("≤ {}", seconds(budget)),
            format!(
                "{} (CPU {}; {} files; a bare write of as many files and one sync: {})",
                seconds(cost.wall),
                seconds(cost.cpu),
                cost.changes,
                seconds(costs.floor),
            ),
            cost.wall <= budget,
        ));
    }
}

fn point(curve: &mut Curve, size: usize, costs: Costs) {
    curve.push([
        size.to_string(),
        seconds(costs.out.wall),
        seconds(costs.out.cpu),
        seconds(costs.first.wall),
        seconds(costs.first.cpu),
        seconds(costs.second.wall),
        seconds(costs.second.cpu),
        format!("{} MiB", costs.peak_kib.div_ceil(1024)),
        seconds(costs.floor),
    ]);
}

/// The best of several runs, each in fresh directories with fresh books.
fn costs(place: &TempDir, packages: usize, interfaces: usize, runs: usize) -> Result<Costs> {
    let mut best = Costs::default();
    for run in 0..runs {
        let fleet = Fleet::new(place, packages, interfaces)?;
        // What making the packages has written must not be waited for by what is measured.
        sync(fleet.path())?;
        forget_peak()?;
        let out = timed(|| fleet.render(Some("out"), "out.redb"))?;
        sync(fleet.path())?;
        let first = timed(|| fleet.render(None, "book.redb"))?;
        sync(fleet.path())?;
        let second = timed(|| fleet.render(None, "book.redb"))?;
        let peak_kib = peak_kib()?;
        ensure!(out.changes >= first.changes, "less was written to --out");
        ensure!(
            second.changes == 0,
            "a second render changed {} files",
            second.changes
        );
        let floor = files_alone(fleet.path(), out.changes)?;
        let now = Costs {
            out,
            first,
            second,
            peak_kib,
            floor,
        };
        best = if run == 0 { now } else { best.better(now) };
    }
    Ok(best)
}

impl Costs {
    fn better(self, other: Self) -> Self {
        let quicker = |a: Cost, b: Cost| if b.wall < a.wall { b } else { a };
        Self {
            out: quicker(self.out, other.out),
            first: quicker(self.first, other.first),
            second: quicker(self.second, other.second),
            peak_kib: self.peak_kib.min(other.peak_kib),
            floor: self.floor.min(other.floor),
        }
    }
}

fn timed(work: impl FnOnce() -> Result<mooring_package::Report>) -> Result<Cost> {
    let (begin, used) = (Instant::now(), cpu_of_process()?);
    let report = work()?;
    let (wall, cpu) = (begin.elapsed(), cpu_of_process()?.saturating_sub(used));
    let changes = report.changes.len();
    Ok(Cost { wall, cpu, changes })
}

/// What the disk takes: as many small files in directories of ten, and one sync.
fn files_alone(dir: &Path, count: usize) -> Result<Duration> {
    let dir = dir.join("floor");
    let begin = Instant::now();
    fs::create_dir(&dir)?;
    for number in 0..count {
        let dir = dir.join(format!("upf-{:05}", number / 15));
        if number % 15 == 0 {
            fs::create_dir(&dir)?;
        }
        File::create_new(dir.join(format!("ipclaim_{number}.yaml")))?.write_all(&[b'#'; 500])?;
    }
    sync(&dir)?;
    Ok(begin.elapsed())
}

/// `moor render` in place from start to exit, first and second time; with it what a few syncs take.
fn process(report: &mut Report, place: &TempDir) -> Result<()> {
    output(&mut cargo(&[
        "build",
        "--release",
        "--quiet",
        "-p",
        "mooring-cli",
    ]))?;
    let moor = std::env::current_exe()?.with_file_name("moor");
    let mut best = [Duration::MAX; 4];
    for _ in 0..RUNS * 2 {
        let fleet = Fleet::new(place, 1, 4)?;
        let package = fleet.source().join("upf-00000");
        sync(fleet.path())?;
        let first = moor_render(&moor, &fleet, &package)?;
        sync(fleet.path())?;
        let second = moor_render(&moor, &fleet, &package)?;
        let start = exit_at_once(&moor)?;
        let one_sync = bare_sync(fleet.path())?;
        for (best, now) in best.iter_mut().zip([first, second, start, one_sync]) {
            *best = (*best).min(now);
        }
    }
    let [first, second, start, one_sync] = best;
    let columns = [
        "the whole process, one blueprint of 4 interfaces, in place",
        "time",
    ];
    let mut curve = Curve::new("`moor render` from start to exit", &columns);
    for (what, time) in [
        ("first time, with a new book", first),
        ("nothing to do", second),
        ("`moor --version` alone", start),
        ("one file written and synced", one_sync),
    ] {
        curve.push([what.to_owned(), seconds(time)]);
    }
    report.curves.push(curve);
    Ok(())
}

fn moor_render(moor: &Path, fleet: &Fleet, package: &Path) -> Result<Duration> {
    let mut command = Command::new(moor);
    let book: PathBuf = fleet.path().join("book.redb");
    command
        .arg("render")
        .arg(package)
        .arg("--mgmt")
        .arg(fleet.mgmt());
    command.arg("--book").arg(book).env_remove("MOOR_BOOK");
    ran(&mut command)
}

fn exit_at_once(moor: &Path) -> Result<Duration> {
    ran(Command::new(moor).arg("--version"))
}

fn ran(command: &mut Command) -> Result<Duration> {
    let begin = Instant::now();
    output(command)?;
    Ok(begin.elapsed())
}

fn bare_sync(dir: &Path) -> Result<Duration> {
    let begin = Instant::now();
    let mut file = File::create_new(dir.join("synced"))?;
    file.write_all(&[b'#'; 500])?;
    file.sync_all()?;
    Ok(begin.elapsed())
}

/// Everything on the file system of `dir`, by the tool that every system has.
fn sync(dir: &Path) -> Result<()> {
    output(Command::new("sync").arg("-f").arg(dir)).map(drop)
}

/// User and system time of all threads so far, in the kernel's ticks of 10 ms.
fn cpu_of_process() -> Result<Duration> {
    let path = "/proc/self/stat";
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    // The name of the program comes first and may hold spaces.
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks = ticks.map(str::parse::<u64>).sum::<Result<u64, _>>();
    Ok(Duration::from_millis(
        ticks.with_context(|| format!("{path} has no times"))? * 10,
    ))
}

/// Peak memory is counted anew from here.
pub(super) fn forget_peak() -> Result<()> {
    fs::write("/proc/self/clear_refs", "5").context("cannot write /proc/self/clear_refs")
}
