//! `moor fleet DIR`: renders the variants of many blueprints and says what each package got.

use mooring_package::{Dialect, FileTexts, FleetReport, FleetRequest, Happened};

use super::render::{addresses, existing, summary};
use super::verify::diff::unified;
use crate::args::{DialectArg, FleetArgs, Format};
use crate::output::{Output, Progress, Table, exit_of};
use crate::world::{Access, Exit, Usage, World, entropy};

pub(crate) fn run(args: &FleetArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let request = check(args, world)?;
    let access = if request.check {
        Access::Read
    } else {
        Access::Write
    };
    // A fleet brings its pools along, and keeps its book beside them.
    let mgmt = request.mgmt.as_deref().unwrap_or(&request.source);
    let book = world.book(&args.book, Some(mgmt), access);
    let fleet = {
        let progress = Progress::start();
        let tell = |done, all| progress.tell(done, all);
        book.settle(|book| mooring_package::fleet(book, &request, &tell))?
    };
    if args.diff && args.format.format == Format::Table {
        for file in &fleet.texts {
            output.data(&diff(file))?;
        }
    } else {
        output.show(args.format.format, &fleet, table)?;
    }
    output.findings(&fleet.report.findings);
    output.say(&summary(&fleet.report, request.check));
    Ok(match exit_of(&fleet.report.findings) {
        Exit::Done if request.check && fleet.report.is_changed() => Exit::WouldChange,
        exit => exit,
    })
}

/// Raw arguments, checked.
fn check(args: &FleetArgs, world: &World) -> anyhow::Result<FleetRequest> {
    let directory = "DIR holds PackageVariant and PackageVariantSet objects";
    let source = existing(&args.source, directory)?;
    let blueprints = match &args.blueprints {
        Some(dir) => Some(existing(
            dir,
            "--blueprints names a directory with REPOSITORY/PACKAGE below it",
        )?),
        None => None,
    };
    if args.out.is_file() {
        let message = format!("--out {} is a file", args.out.display());
        let help = "--out names a directory; it is made where it is absent";
        return Err(Usage::new(message, help).into());
    }
    Ok(FleetRequest {
        source,
        blueprints,
        out: args.out.clone(),
        mgmt: world.mgmt(&args.mgmt)?,
        dialect: args.dialect.map(|dialect| match dialect {
            DialectArg::Native => Dialect::Native,
            DialectArg::Nephio => Dialect::Nephio,
        }),
        check: args.check || args.diff,
        allow_empty: args.allow_empty,
        draft: None,
        deploy_records: args.deploy_records,
        now: world.now,
        entropy: entropy()?,
    })
}

/// Who got what.
fn table(fleet: &FleetReport) -> Table {
    let mut table = Table::new([
        "package",
        "variant",
        "cluster",
        "interface",
        "address",
        "conditions",
        "change",
    ]);
    for row in &fleet.downstreams {
        let is_it = |path: &std::path::Path| path.ends_with(&row.path);
        let package = fleet.report.packages.iter().find(|p| is_it(&p.path));
        let what = match row.what {
            Happened::Created => "created",
            Happened::Updated => "updated",
            Happened::Unchanged => "unchanged",
            Happened::Removed => "removed",
            Happened::Orphaned => "orphaned",
        };
        let (met, all) = row.conditions;
        let conditions = if all == 0 {
            String::new()
        } else {
            format!("{met}/{all}")
        };
        let interfaces = package.map(|p| p.interfaces.as_slice()).unwrap_or_default();
        let mut cells = [
            row.path.clone(),
            row.variant.clone(),
            row.cluster.clone(),
            String::new(),
            String::new(),
            conditions,
            what.to_owned(),
        ];
        if interfaces.is_empty() {
            table.row(cells);
            continue;
        }
        for interface in interfaces {
            cells[3].clone_from(&interface.name);
            cells[4] = addresses(interface);
            table.row(cells.clone());
        }
    }
    table
}

fn diff(file: &FileTexts) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let name = file.path.display().to_string();
    unified(&name, &text(&file.before), &text(&file.after))
}
