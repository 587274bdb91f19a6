//! A real blueprint, `moor render` beside `kpt fn render` that calls our functions by exec; and fleets that grow.
//!
//! Whole processes, from start to exit, in turns. The blueprint is a real one where the oracles are, else an example.
//! Easy to get wrong: kpt's pipeline has no step that meets a book (upstream, a controller does that between two renders), so
//! ours does more in the time that is shown.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::measure::seconds;
use super::{Curve, Report, Row};
use crate::setup;
use crate::shell::{cargo, output, root};

/// How often each is measured; the best run is the one that other programs disturbed least.
const RUNS: usize = 8;

/// The programs, and where to work.
struct Bench {
    moor: PathBuf,
    kpt: PathBuf,
    place: tempfile::TempDir,
}

pub(super) fn kpt() -> Result<Report> {
    output(&mut cargo(&[
        "build",
        "--release",
        "--quiet",
        "-p",
        "mooring-cli",
    ]))?;
    let bench = Bench {
        moor: std::env::current_exe()?.with_file_name("moor"),
        kpt: setup::place("kpt")?.join("bin/kpt"),
        place: tempfile::tempdir().context("cannot make a directory")?,
    };
    let mut report = Report::default();
    bench.one(&mut report)?;
    bench.side_by_side(&mut report)?;
    bench.fleets(&mut report)?;
    Ok(report)
}

/// A package to render: where it comes from, its management directory, and what to call it.
struct Blueprint {
    package: PathBuf,
    mgmt: PathBuf,
    what: String,
}

fn blueprint() -> Result<Blueprint> {
    let set = std::env::var_os("MOORING_ORACLES").map(PathBuf::from);
    let oracles = set.unwrap_or_else(|| root().join("../shared/oracles"));
    let package = oracles.join("nephio/blueprints/pkg-example-upf-bp");
    ensure!(
        package.is_dir(),
        "the real blueprints are not here; set MOORING_ORACLES to where they are"
    );
    Ok(Blueprint {
        package,
        mgmt: oracles.join("nephio/networks"),
        what: "the free5GC UPF blueprint".to_owned(),
    })
}

impl Bench {
    fn run(&self, program: &Path, dir: &Path, args: &[&str]) -> Result<Duration> {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(dir)
            .env("HOME", self.place.path())
            .env("MOOR_BOOK", dir.join("book.redb"))
            .env_remove("MOOR_MGMT");
        let begin = Instant::now();
        output(&mut command)?;
        Ok(begin.elapsed())
    }

    /// A copy of the blueprint for one cluster, with its management directory beside it.
    fn copy(&self, blueprint: &Blueprint, exec: bool) -> Result<PathBuf> {
        let dir = tempfile::tempdir_in(&self.place)?.keep();
        for (from, to) in [(&blueprint.package, "pkg"), (&blueprint.mgmt, "mgmt")] {
            let to = dir.join(to);
            fs::create_dir(&to)?;
            for entry in fs::read_dir(from)? {
                let path = entry?.path();
                let name = path.file_name().context("a file has a name")?;
                let mut text = fs::read_to_string(&path)?;
                if name == "Kptfile" && exec {
                    text = self.with_exec(&text);
                }
                if name == "workload-cluster.yaml" {
                    let spec =
                        "clusterName: edge01\n  cnis:\n  - macvlan\n  masterInterface: eth1\n";
                    text = text.replace("clusterName: example", spec);
                }
                fs::write(to.join(name), text)?;
            }
        }
        fs::write(dir.join("mgmt/edge01.yaml"), cluster("edge01"))?;
        Ok(dir)
    }

    /// Every image becomes our program under the same name.
    fn with_exec(&self, kptfile: &str) -> String {
        let line = |line: &str| match line.split_once("- image: ") {
            None => line.to_owned(),
            Some((indent, image)) => {
                let name = image.rsplit('/').next().unwrap_or(image);
                let name = name.split(':').next().unwrap_or(name);
                format!("{indent}- exec: {} fn {name}", self.moor.display())
            }
        };
        let lines: Vec<String> = kptfile.lines().map(line).collect();
        lines.join("\n") + "\n"
    }

    fn one(&self, report: &mut Report) -> Result<()> {
        let blueprint = blueprint()?;
        let mut best = [Duration::MAX; 6];
        let mut steps = 0;
        for _ in 0..RUNS {
            let ours = self.copy(&blueprint, false)?;
            let theirs = self.copy(&blueprint, true)?;
            let kptfile = fs::read_to_string(theirs.join("pkg/Kptfile"))?;
            steps = kptfile.matches("- exec: ").count();
            let render = ["render", "pkg", "--mgmt", "mgmt", "--cluster", "edge01"];
            let render = [&render[..], &["--dialect", "nephio"]].concat();
            let kpt = ["fn", "render", "pkg", "--allow-exec"];
            let times = [
                self.run(&self.moor, &ours, &render)?,
                self.run(&self.kpt, &theirs, &kpt)?,
                self.run(&self.moor, &ours, &render)?,
                self.run(&self.kpt, &theirs, &kpt)?,
                self.run(&self.moor, &ours, &["--version"])?,
                self.run(&self.kpt, &theirs, &["--version"])?,
            ];
            for (best, now) in best.iter_mut().zip(times) {
                *best = (*best).min(now);
            }
        }
        let [first, kpt_first, again, kpt_again, start, kpt_start] = best;
        let Blueprint { what, .. } = &blueprint;
        let most = Duration::from_millis(10);
        for (way, time) in [("first", first), ("again", again)] {
            report.rows.push(Row::new(
                &format!("{what}, {way}: `moor render` from start to exit"),
                &seconds(most),
                seconds(time),
                time <= most,
            ));
        }
        for (way, ours, theirs) in [("first", first, kpt_first), ("again", again, kpt_again)] {
            let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
            let times = format!("{} beside {}", seconds(ours), seconds(theirs));
            report.rows.push(Row::new(
                &format!("{what}, {way}: `moor render` beside `kpt fn render` with {steps} of our functions by exec"),
                "less than kpt",
                format!("{times}: kpt takes {ratio:.0} times as long"),
                ours < theirs,
            ));
        }
        let mut curve = Curve::new("From start to exit", &["", "moor", "kpt"]);
        for (what, ours, theirs) in [
            (format!("{what}, first"), first, kpt_first),
            (format!("{what}, again"), again, kpt_again),
            ("`--version` alone".to_owned(), start, kpt_start),
        ] {
            curve.push([what, seconds(ours), seconds(theirs)]);
        }
        report.curves.push(curve);
        Ok(())
    }

    /// Many packages: one `moor render` over all of them, one `kpt fn render` for each.
    fn side_by_side(&self, report: &mut Report) -> Result<()> {
        let blueprint = blueprint()?;
        let columns = ["packages", "moor", "each", "kpt", "each", "kpt takes"];
        let title = format!("{}, so many times, ten to a cluster", blueprint.what);
        let mut curve = Curve::new(&title, &columns);
        for packages in [10_u32, 100, 1_000] {
            let ours = self.packages(&blueprint, packages, false)?;
            let render = ["render", "fleet", "--mgmt", "mgmt", "--dialect", "nephio"];
            let moor = self.run(&self.moor, &ours, &render)?;
            let theirs = self.packages(&blueprint, packages, true)?;
            let mut kpt = Duration::ZERO;
            for nth in 0..packages {
                let package = format!("fleet/upf-{nth:04}");
                kpt += self.run(
                    &self.kpt,
                    &theirs,
                    &["fn", "render", &package, "--allow-exec"],
                )?;
            }
            curve.push([
                packages.to_string(),
                seconds(moor),
                seconds(moor / packages),
                seconds(kpt),
                seconds(kpt / packages),
                format!(
                    "{:.0} times as long",
                    kpt.as_secs_f64() / moor.as_secs_f64()
                ),
            ]);
        }
        report.curves.push(curve);
        Ok(())
    }

    /// Copies of the blueprint in `fleet`, each with its cluster filled in, ten to a cluster.
    fn packages(&self, blueprint: &Blueprint, packages: u32, exec: bool) -> Result<PathBuf> {
        let dir = tempfile::tempdir_in(&self.place)?.keep();
        fs::create_dir(dir.join("fleet"))?;
        for nth in 0..packages {
            let one = self.copy(blueprint, exec)?;
            let package = dir.join(format!("fleet/upf-{nth:04}"));
            fs::rename(one.join("pkg"), &package)?;
            let file = package.join("workload-cluster.yaml");
            let text = fs::read_to_string(&file)?;
            let name = format!("clusterName: edge{:02}", nth / 10);
            fs::write(&file, text.replace("clusterName: edge01", &name))?;
            if nth == 0 {
                fs::rename(one.join("mgmt"), dir.join("mgmt"))?;
            }
        }
        Ok(dir)
    }

    fn fleets(&self, report: &mut Report) -> Result<()> {
        let columns = ["packages", "first", "each", "again", "each"];
        let mut curve = Curve::new("`moor fleet`: one blueprint for so many clusters", &columns);
        for packages in [10, 100, 1_000] {
            let mut best = [Duration::MAX; 2];
            for _ in 0..3 {
                let dir = self.fleet(packages)?;
                let fleet = [
                    "fleet",
                    "mgmt",
                    "--blueprints",
                    "blueprints",
                    "--out",
                    "out",
                ];
                let first = self.run(&self.moor, &dir, &fleet)?;
                let made = fs::read_dir(dir.join("out"))?.count();
                ensure!(made >= packages, "only {made} of {packages} were made");
                let again = self.run(&self.moor, &dir, &fleet)?;
                best = [best[0].min(first), best[1].min(again)];
            }
            let [first, again] = best;
            let each = |time: Duration| {
                let count = u32::try_from(packages).unwrap_or(u32::MAX);
                seconds(time / count)
            };
            curve.push([
                packages.to_string(),
                seconds(first),
                each(first),
                seconds(again),
                each(again),
            ]);
        }
        report.curves.push(curve);
        Ok(())
    }

    /// The example of variants, for so many clusters.
    fn fleet(&self, packages: usize) -> Result<PathBuf> {
        let dir = tempfile::tempdir_in(&self.place)?.keep();
        let example = root().join("examples/variants");
        let blueprint = "blueprints/catalog/upf";
        for sub in [blueprint, "mgmt"] {
            fs::create_dir_all(dir.join(sub))?;
            for entry in fs::read_dir(example.join(sub))? {
                let path = entry?.path();
                let name = path.file_name().context("a file has a name")?;
                fs::copy(&path, dir.join(sub).join(name))?;
            }
        }
        let mut text = String::new();
        for nth in 0..packages {
            let name = format!("edge{nth:04}");
            let _ = write!(
                text,
                "{}---\napiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata:\n  name: {name}\nspec:\n  \
                 type: git\n---\n",
                cluster(&name)
            );
        }
        fs::write(dir.join("mgmt/clusters.yaml"), text)?;
        let pools = dir.join("mgmt/pools.yaml");
        let text = fs::read_to_string(&pools)?;
        let text = text.replace("10.30.0.0/24", "10.30.0.0/16");
        fs::write(
            &pools,
            text.replace("10.30.0.20-10.30.0.250", "10.30.0.20-10.30.255.250"),
        )?;
        Ok(dir)
    }
}

fn cluster(name: &str) -> String {
    format!(
        "apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: {name}\n  labels:\n    \
         nephio.org/site-type: edge\n    nephio.org/region: east\nspec:\n  clusterName: {name}\n  cnis:\n  - macvlan\n  \
         masterInterface: eth1\n"
    )
}
