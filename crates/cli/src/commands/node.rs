//! `moor node doctor`: what `moor-cni doctor` shows, for a machine that has this program.

use mooring_host::Paths;
use mooring_host::doctor::{Doctor, DoctorError};

use crate::args::{DoctorArgs, Format, NodeCommand};
use crate::output::{Output, Table, exit_of};
use crate::world::{Exit, Usage};

pub(crate) fn run(command: &NodeCommand, output: &mut Output) -> anyhow::Result<Exit> {
    match command {
        NodeCommand::Doctor(args) => doctor(args, output),
    }
}

fn doctor(args: &DoctorArgs, output: &mut Output) -> anyhow::Result<Exit> {
    let root = args.root.as_deref();
    let paths = root.map_or_else(Paths::from_env, Paths::of_node_at);
    // What programs and plugins say is of the machine that they run on.
    let is_home = paths.is_home();
    let doctor = Doctor {
        paths,
        conf_dir: args.conf_dir.clone(),
        bin_dir: args.bin_dir.clone(),
        check: is_home && !args.no_check,
        tools: is_home,
    };
    let looked = if args.fix {
        doctor.fix()
    } else {
        doctor.look()
    };
    let report = looked.map_err(|error| match error {
        DoctorError::Elsewhere(_) => {
            let help = "run it there, such as by nsenter -t 1 -m -n moor-cni doctor --fix";
            Usage::new(error.to_string(), help).into()
        }
        error @ DoctorError::Boot(_) => anyhow::Error::from(error),
    })?;
    match args.format.format {
        Format::Table => output.data(&report.tables())?,
        format => output.show(format, &report, |_| Table::new([]))?,
    }
    output.findings(&report.findings);
    if report.findings.is_empty() {
        output.say(&report.verdict());
    }
    Ok(exit_of(&report.findings))
}
