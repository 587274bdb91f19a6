//! The acts that only look: list, diff, pull.

use std::collections::BTreeSet;

use mooring_package::revision::{Deployment, Lifecycle, PackageName, Revision, Which};
use serde::Serialize;

use super::place::packages;
use super::{package, workspace};
use crate::args::{DiffArgs, Format, PullArgs, RevisionListArgs};
use crate::commands::verify::diff::unified;
use crate::output::{Output, Table, age, count};
use crate::world::{Exit, World};

/// A revision, and whether the cluster that follows it has it.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    revision: Revision,
    #[serde(skip_serializing_if = "Option::is_none")]
    deployment: Option<Deployment>,
}

pub(super) fn list(
    args: &RevisionListArgs,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let only = args.package.as_deref().map(package).transpose()?;
    let named = args.workspace.as_deref().map(workspace).transpose()?;
    let packages = packages(&args.repository, world)?;
    let mut revisions = packages.list()?;
    revisions.retain(|revision| {
        only.as_ref().is_none_or(|only| revision.package == *only)
            && (named.is_none() || revision.workspace == named)
    });
    let there = revisions.iter().filter(|revision| revision.deployed);
    let there: Vec<PackageName> = there.map(|revision| revision.package.clone()).collect();
    let said = packages.deployments(&there)?;
    let revisions = revisions.into_iter().map(|revision| Listed {
        deployment: said
            .get(&revision.package)
            .filter(|said| revision.deployed && !said.is_silent())
            .cloned(),
        revision,
    });
    let revisions: Vec<Listed> = revisions.collect();
    output.show(args.format.format, &revisions, |all| table(all, world))?;
    for said in revisions
        .iter()
        .filter_map(|listed| listed.deployment.as_ref())
    {
        if !said.deployed {
            output.say(&said.message);
        }
    }
    if revisions.is_empty() {
        let what = if only.is_some() || named.is_some() {
            "nothing of that name"
        } else {
            "no packages"
        };
        output.say(&format!("{} holds {what}", packages.repository));
    }
    Ok(Exit::Done)
}

fn table(revisions: &[Listed], world: &World) -> Table {
    let mut table = Table::new([
        "package",
        "workspace",
        "lifecycle",
        ">version",
        "commit",
        "age",
        "note",
        "cluster",
    ]);
    for Listed {
        revision,
        deployment,
    } in revisions
    {
        let note = match (revision.lifecycle, revision.deployed, revision.outdated) {
            (Lifecycle::Published, true, true) => "deployed, changed since",
            (Lifecycle::Published, true, false) => "deployed",
            (Lifecycle::Published, false, _) => "",
            (_, _, true) => "outdated: the package changed since it began",
            (_, _, false) => "",
        };
        let workspace = revision.workspace.as_ref();
        table.row([
            revision.package.to_string(),
            workspace.map(ToString::to_string).unwrap_or_default(),
            revision.lifecycle.to_string(),
            revision.version.map(|v| v.to_string()).unwrap_or_default(),
            revision.commit.short().to_owned(),
            age(revision.at, world.now),
            note.to_owned(),
            deployment.as_ref().map(short).unwrap_or_default(),
        ]);
    }
    table
}

/// `edge01 Synced`.
fn short(said: &Deployment) -> String {
    format!("{} {}", said.cluster, said.reason)
        .trim_start()
        .to_owned()
}

/// A file that differs.
#[derive(Serialize)]
struct Differs {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

pub(super) fn diff(args: &DiffArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let (package, workspace) = (package(&args.package)?, workspace(&args.workspace)?);
    let packages = packages(&args.repository, world)?;
    let after = packages.need(&package, &Which::Workspace(workspace))?;
    let before = match args.version {
        Some(number) => Some(packages.need(&package, &Which::Version(number))?),
        None => packages.read(&package, &Which::Deployed)?,
    };
    let before = before.map(|content| content.files).unwrap_or_default();
    let names: BTreeSet<&String> = before.keys().chain(after.files.keys()).collect();
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let differs = names.into_iter().filter_map(|path| {
        let (old, new) = (before.get(path), after.files.get(path));
        (old != new).then(|| Differs {
            path: path.clone(),
            before: old.map(text),
            after: new.map(text),
        })
    });
    let differs: Vec<Differs> = differs.collect();
    if args.format.format == Format::Table {
        for file in &differs {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let name = format!("{package}/{}", file.path);
            output.data(&unified(&name, &text(&file.before), &text(&file.after)))?;
        }
    } else {
        output.show(args.format.format, &differs, |_| Table::new(["path"]))?;
    }
    output.say(&format!("changes {}", count(differs.len(), "file")));
    Ok(Exit::Done)
}

/// What a pull did.
#[derive(Serialize)]
struct Pulled {
    package: String,
    directory: String,
    commit: String,
    lifecycle: Lifecycle,
    files: usize,
    changed: usize,
}

pub(super) fn pull(args: &PullArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let package = package(&args.package)?;
    let which = match (&args.workspace, args.version) {
        (Some(name), _) => Which::Workspace(workspace(name)?),
        (None, Some(number)) => Which::Version(number),
        (None, None) => Which::Deployed,
    };
    let packages = packages(&args.repository, world)?;
    let pulled = packages.pull(&package, &which, &args.dir)?;
    let shown = Pulled {
        package: package.to_string(),
        directory: args.dir.display().to_string(),
        commit: pulled.content.commit.to_string(),
        lifecycle: pulled.content.lifecycle,
        files: pulled.content.files.len(),
        changed: pulled.changed,
    };
    if args.format.format != Format::Table {
        output.show(args.format.format, &shown, |_| Table::new(["package"]))?;
    }
    output.say(&format!(
        "{package}: {} in {}",
        count(shown.files, "file"),
        args.dir.display()
    ));
    Ok(Exit::Done)
}
