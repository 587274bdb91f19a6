//! `moor render DIR`: specialises packages and says what each interface got.

use std::path::PathBuf;

use mooring_package::{Changed, Dialect, InterfaceReport, PackageReport, Report, Request};

use crate::args::{DialectArg, Format, RenderArgs};
use crate::output::{Output, Progress, Table, count, exit_of, none_or};
use crate::world::{Access, Exit, Usage, World, entropy};

pub(crate) fn run(args: &RenderArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let request = check(args, world)?;
    let access = if request.check {
        Access::Read
    } else {
        Access::Write
    };
    let book = world.book(&args.book, request.mgmt.as_deref(), access);
    let report = {
        let progress = Progress::start();
        let tell = |done, all| progress.tell(done, all);
        book.settle(|book| mooring_package::render(book, &request, &tell))?
    };
    if request.check && args.format.format == Format::Table {
        output.data(&got(&report.packages).to_string())?;
        let changes = changes(&report);
        if !changes.is_empty() {
            output.data(&format!("\n{changes}"))?;
        }
    } else {
        output.show(args.format.format, &report, |r| got(&r.packages))?;
    }
    output.findings(&report.findings);
    output.say(&summary(&report, request.check));
    Ok(match exit_of(&report.findings) {
        Exit::Done if request.check && report.is_changed() => Exit::WouldChange,
        exit => exit,
    })
}

/// Raw arguments, checked.
fn check(args: &RenderArgs, world: &World) -> anyhow::Result<Request> {
    let help = "DIR is a package (a directory with a Kptfile) or a directory of packages";
    let source = existing(&args.source, help)?;
    if let Some(out) = args.out.as_ref().filter(|out| out.is_file()) {
        let message = format!("--out {} is a file", out.display());
        return Err(Usage::new(
            message,
            "--out names a directory; it is made where it is absent",
        )
        .into());
    }
    Ok(Request {
        source,
        out: args.out.clone(),
        mgmt: world.mgmt(&args.mgmt)?,
        published: args.published.clone(),
        cluster: args.cluster.clone(),
        dialect: args.dialect.map(|dialect| match dialect {
            DialectArg::Native => Dialect::Native,
            DialectArg::Nephio => Dialect::Nephio,
        }),
        check: args.check,
        new_id: args.new_id,
        draft: None,
        pinned: false,
        deploy_records: args.deploy_records,
        now: world.now,
        entropy: entropy()?,
    })
}

pub(super) fn existing(dir: &std::path::Path, help: &str) -> Result<PathBuf, Usage> {
    if dir.is_dir() {
        return Ok(dir.to_owned());
    }
    let what = if dir.exists() {
        "is not a directory"
    } else {
        "does not exist"
    };
    Err(Usage::new(format!("{} {what}", dir.display()), help))
}

/// Who got what.
pub(super) fn got(packages: &[PackageReport]) -> Table {
    let mut table = Table::new([
        "cluster",
        "package",
        "interface",
        "network",
        "cni",
        "on",
        "address",
        "gateway",
        "workload",
    ]);
    for package in packages {
        for interface in &package.interfaces {
            table.row([
                package.cluster.clone(),
                package.name.clone(),
                interface.name.clone(),
                interface.network.clone(),
                interface.cni.clone(),
                interface.on.clone(),
                addresses(interface),
                none_or(&interface.gateways),
                interface.workload.clone().unwrap_or_default(),
            ]);
        }
    }
    table
}

pub(super) fn addresses(interface: &InterfaceReport) -> String {
    if interface.addresses.is_empty() {
        none_or(&interface.ranges)
    } else {
        none_or(&interface.addresses)
    }
}

fn changes(report: &Report) -> String {
    let mut table = Table::new(["change", "file"]);
    for change in &report.changes {
        let what = match change.what {
            Changed::Created => "create",
            Changed::Updated => "update",
            Changed::Removed => "remove",
        };
        table.row([what.to_owned(), change.path.display().to_string()]);
    }
    table.to_string()
}

/// The last sentence: what was done, or would be.
pub(super) fn summary(report: &Report, check: bool) -> String {
    let interfaces: usize = report.packages.iter().map(|p| p.interfaces.len()).sum();
    let size = format!(
        "{}, {}",
        count(report.packages.len(), "package"),
        count(interfaces, "interface")
    );
    if report.has_errors() {
        return "nothing was written".to_owned();
    }
    if !report.is_changed() {
        return format!("{size}: unchanged");
    }
    let mut done = changed_files(report);
    if report.book_changed {
        done.push("book updated".to_owned());
    }
    let would = if check { "would change: " } else { "" };
    format!("{size}: {would}{}", done.join(", "))
}

/// `12 files created`, `1 file updated`.
fn changed_files(report: &Report) -> Vec<String> {
    let kinds = [
        (Changed::Created, "created"),
        (Changed::Updated, "updated"),
        (Changed::Removed, "removed"),
    ];
    let number = |what| report.changes.iter().filter(|c| c.what == what).count();
    kinds
        .into_iter()
        .map(|(what, word)| (number(what), word))
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{} {word}", count(number, "file")))
        .collect()
}
