//! `moor node doctor`: what `moor-cni doctor` shows, for a machine that has this program.

use mooring_host::Paths;
use mooring_host::doctor::Doctor;

use crate::args::{DoctorArgs, Format, NodeCommand};
use crate::output::{Output, Table, exit_of};
use crate::world::Exit;

pub(crate) fn run(command: &NodeCommand, output: &mut Output) -> anyhow::Result<Exit> {
    match command {
        NodeCommand::Doctor(args) => doctor(args, output),
    }
}

fn doctor(args: &DoctorArgs, output: &mut Output) -> anyhow::Result<Exit> {
    let doctor = Doctor {
        paths: Paths::under(&args.root),
        conf_dir: args.conf_dir.clone(),
        bin_dir: args.bin_dir.clone(),
        check: !args.no_check,
        // What programs show is of the machine that they run on.
        tools: args.root == std::path::Path::new("/"),
    };
    let report = if args.fix {
        doctor.fix()?
    } else {
        doctor.look()?
    };
    match args.format.format {
        Format::Table => output.data(&report.tables())?,
        format => output.show(format, &report, |_| Table::new([]))?,
    }
    output.findings(&report.findings);
    if report.findings.is_empty() {
        output.say("nothing is left over");
    }
    Ok(exit_of(&report.findings))
}
