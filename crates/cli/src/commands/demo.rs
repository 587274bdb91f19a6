//! `moor demo`: an example fleet in three clusters, rendered and read back, in seconds and on a laptop.
//!
//! ```text
//!  OUT/.inputs/{mgmt,gnb,amf,upf,edge-gnb}   the example, yours to change
//!  OUT/.moor/book.redb                       who holds what
//!  OUT/<cluster>/<package>/                  what each cluster would apply
//! ```
//!
//! Easy to get wrong: a file that is there already belongs to the user. The demo renders around it and lets its own check
//! speak, so a planted duplicate is found and not repaired.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use mooring_api::Finding;
use mooring_book::Options;
use mooring_package::{PackageReport, Request};
use serde::Serialize;

use super::render::got;
use crate::args::{DemoArgs, Format};
use crate::embedded::FLEET;
use crate::output::{Output, count, exit_of};
use crate::world::{Access, Book, Exit, Usage, World, entropy};

/// Package and cluster, in the order they are rendered.
const PLAN: [(&str, &str); 4] = [
    ("gnb", "my-ran"),
    ("amf", "my-core"),
    ("upf", "my-core"),
    ("edge-gnb", "edge-cluster-1"),
];

/// What the demo found, for `-o json` and `-o yaml`.
#[derive(Serialize)]
struct Shown {
    packages: Vec<PackageReport>,
    findings: Vec<Finding>,
    changed: bool,
    verified: Option<Counts>,
}

#[derive(Clone, Copy, Serialize)]
struct Counts {
    addresses: usize,
    clusters: usize,
    packages: usize,
}

pub(crate) fn run(args: &DemoArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let out = check(&args.out)?;
    for path in materialise(&out)? {
        output.say(&format!("kept as you changed it: {}", path.display()));
    }
    let mut shown = render(&out, world)?;
    let broken = shown.findings.iter().any(Finding::is_error);
    if !broken {
        let clusters: Vec<PathBuf> = clusters().map(|name| out.join(name)).collect();
        let verified = mooring_package::verify(&clusters, Some(&out.join(".inputs/mgmt")));
        shown.verified = Some(Counts {
            addresses: verified.addresses,
            clusters: verified.clusters,
            packages: verified.packages,
        });
        shown.findings.extend(verified.findings);
    }
    output.show(args.format.format, &shown, |s| got(&s.packages))?;
    output.findings(&shown.findings);
    let (exit, verdict) = verdict(&shown);
    if args.format.format == Format::Table {
        output.data(&format!("\n{verdict}\n"))?;
    }
    output.say(&farewell(&world.program, &out, &shown, exit));
    Ok(exit)
}

/// An empty or new directory, or one that an earlier demo made.
fn check(out: &Path) -> Result<PathBuf, Usage> {
    let ours = out.join(".inputs").is_dir();
    let empty = match fs::read_dir(out) {
        Ok(mut entries) => entries.next().is_none(),
        Err(e) => e.kind() == ErrorKind::NotFound,
    };
    if ours || empty {
        return Ok(out.to_owned());
    }
    Err(Usage::new(
        format!("{} is there already, and no demo made it", out.display()),
        "choose another directory with --out",
    ))
}

/// Writes the example's inputs where they are absent; returns those that differ from the example.
fn materialise(out: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut kept = Vec::new();
    for (name, text) in FLEET {
        let path = out.join(".inputs").join(name);
        let parent = path.parent().expect("a joined path has a parent");
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        match File::create_new(&path) {
            Ok(mut file) => file
                .write_all(text.as_bytes())
                .with_context(|| format!("cannot write {}", path.display()))?,
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                let there =
                    fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                if there != text.as_bytes() {
                    kept.push(path);
                }
            }
            Err(e) => return Err(e).with_context(|| format!("cannot write {}", path.display())),
        }
    }
    Ok(kept)
}

/// Renders the plan, up to the first package that has an error.
fn render(out: &Path, world: &World) -> anyhow::Result<Shown> {
    let inputs = out.join(".inputs");
    let path = out.join(".moor/book.redb");
    let book = Book::at(path, Access::Write, Options::default());
    let mut shown = Shown {
        packages: Vec::new(),
        findings: Vec::new(),
        changed: false,
        verified: None,
    };
    for (package, cluster) in PLAN {
        let request = Request {
            source: inputs.join(package),
            out: Some(out.join(cluster).join(package)),
            mgmt: Some(inputs.join("mgmt")),
            cluster: Some(cluster.to_owned()),
            dialect: None,
            check: false,
            new_id: false,
            draft: None,
            pinned: false,
            published: Vec::new(),
            deploy_records: false,
            now: world.now,
            entropy: entropy()?,
        };
        let report = book.settle(|book| mooring_package::render(book, &request, &|_, _| ()))?;
        let stop = report.has_errors();
        shown.changed |= report.is_changed();
        shown.packages.extend(report.packages);
        shown.findings.extend(report.findings);
        if stop {
            break;
        }
    }
    Ok(shown)
}

/// The clusters of the plan, each once.
fn clusters() -> impl Iterator<Item = &'static str> {
    let plan = PLAN.iter().enumerate();
    plan.filter(|(at, (_, name))| !PLAN[..*at].iter().any(|(_, n)| n == name))
        .map(|(_, (_, name))| *name)
}

/// What the files say, read back. Reading back less than was handed out proves nothing, and is not called success.
fn verdict(shown: &Shown) -> (Exit, String) {
    let Some(counts) = shown.verified else {
        return (
            Exit::Wrong,
            "the fleet is not complete: see the errors".to_owned(),
        );
    };
    let interfaces = shown.packages.iter().flat_map(|p| &p.interfaces);
    let given: usize = interfaces.map(|i| i.addresses.len()).sum();
    let seen = format!(
        "read back {} of {} in {}",
        count(counts.addresses, "address"),
        count(counts.packages, "package"),
        count(counts.clusters, "cluster"),
    );
    if exit_of(&shown.findings) != Exit::Done {
        return (
            Exit::Wrong,
            format!("{seen}: something is wrong, see the errors"),
        );
    }
    if given == 0 || counts.addresses < given {
        return (Exit::Wrong, format!("{seen}, but {given} were handed out"));
    }
    (
        Exit::Done,
        format!("{seen}: no two clusters share an address"),
    )
}

fn farewell(moor: &str, out: &Path, shown: &Shown, exit: Exit) -> String {
    if exit != Exit::Done {
        return format!(
            "nothing of yours was changed; the files are in {}",
            out.display()
        );
    }
    let out = out.display();
    let state = if shown.changed {
        "written to"
    } else {
        "nothing changed in"
    };
    format!(
        "{state} {out}\n\nTry next:\n  \
         {moor} who-has 192.168.100.50 --book {out}/.moor/book.redb\n  \
         {moor} pool list --mgmt {out}/.inputs/mgmt --book {out}/.moor/book.redb\n  \
         cat {out}/edge-cluster-1/edge-gnb/networkattachmentdefinition_n2.yaml"
    )
}
