//! The acts that push.

use mooring_package::revision::addressed::Outcome;
use mooring_package::revision::{
    Base, Draft, Lifecycle, Origin, PackageName, Packages, Published, Pushed, Upstream, Which,
    Workspace, cloned, read_directory, skeleton,
};
use mooring_package::{PackageReport, Report};
use serde::Serialize;

use super::place::{Management, beside, packages};
use super::{package, workspace};
use crate::args::{
    ActOn, CloneArgs, DeleteArgs, Format, InitArgs, PushArgs, RejectArgs, RollbackArgs,
};
use crate::commands::render::{existing, got};
use crate::output::{Output, exit_of};
use crate::world::{Exit, Usage, World};

/// What an act came to.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    package: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lifecycle: Option<Lifecycle>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    changed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    packages: Vec<PackageReport>,
    findings: Vec<mooring_api::Finding>,
}

impl Shown {
    fn new(package: impl ToString, workspace: Option<&dyn ToString>) -> Self {
        Self {
            package: package.to_string(),
            workspace: workspace.map(ToString::to_string),
            ..Self::default()
        }
    }

    fn pushed(mut self, pushed: &Pushed, lifecycle: Lifecycle) -> Self {
        self.lifecycle = Some(lifecycle);
        self.commit = Some(pushed.commit.to_string());
        self.changed = !pushed.unchanged;
        self
    }

    fn published(mut self, published: &Published) -> Self {
        self.lifecycle = Some(Lifecycle::Published);
        self.version = Some(published.version);
        self.commit = Some(published.commit.to_string());
        self.changed = !published.unchanged;
        self
    }

    fn told(mut self, report: &Report) -> Self {
        self.packages.clone_from(&report.packages);
        self.findings.clone_from(&report.findings);
        self
    }

    /// Prints it, and says the sentence.
    fn show(self, format: Format, sentence: &str, output: &mut Output) -> anyhow::Result<Exit> {
        output.show(format, &self, |shown| got(&shown.packages))?;
        output.findings(&self.findings);
        output.say(sentence);
        Ok(exit_of(&self.findings))
    }
}

/// `, unchanged` where nothing had to be done.
fn was(unchanged: bool) -> &'static str {
    if unchanged { " already" } else { "" }
}

pub(super) fn init(args: &InitArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let (package, workspace) = (package(&args.package)?, workspace(&args.workspace)?);
    let packages = packages(&args.repository, world)?;
    let files = skeleton(&package, args.description.as_deref());
    let message = format!("Begin {package}");
    let pushed = packages.start(&package, &workspace, files, message)?;
    let sentence = format!(
        "{package}: draft {workspace} is there{}",
        was(pushed.unchanged)
    );
    Shown::new(&package, Some(&workspace))
        .pushed(&pushed, Lifecycle::Draft)
        .show(args.format.format, &sentence, output)
}

pub(super) fn clone(args: &CloneArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let (package, workspace) = (package(&args.package)?, workspace(&args.workspace)?);
    let packages = packages(&args.repository, world)?;
    let upstream = beside(&packages, &args.from);
    let path = args
        .path
        .as_deref()
        .unwrap_or(&args.package)
        .trim_matches('/');
    let there = super::package(path)?;
    let content = upstream.need(&there, &Which::Ref(args.reference.clone()))?;
    let from = Upstream {
        repository: args.from.clone(),
        directory: path.to_owned(),
        reference: args.reference.clone(),
        commit: content.commit.clone(),
    };
    let files = cloned(&content.files, &package, &from)?;
    let message = format!("Clone {package} from {} {}", args.from, args.reference);
    let pushed = packages.start(&package, &workspace, files, message)?;
    let sentence = format!(
        "{package}: draft {workspace} is{} a clone of {path} at {}",
        was(pushed.unchanged),
        args.reference
    );
    Shown::new(&package, Some(&workspace))
        .pushed(&pushed, Lifecycle::Draft)
        .show(args.format.format, &sentence, output)
}

pub(super) fn push(args: &PushArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let dir = existing(&args.dir, "DIR is a package: a directory with a Kptfile")?;
    let packages = packages(&args.repository, world)?;
    let origin = Origin::read(&dir);
    let known = origin
        .as_ref()
        .filter(|o| packages.is_copy_of(&dir, &o.package));
    let package = match (&args.package, known) {
        (Some(name), _) => package(name)?,
        (None, Some(origin)) => origin.package.clone(),
        (None, None) => {
            let message = format!("{} was not pulled from this repository", dir.display());
            return Err(
                Usage::new(message, "name the package: moor package push DIR PACKAGE").into(),
            );
        }
    };
    let known = known.filter(|origin| origin.package == package);
    let workspace = match (&args.workspace, known.and_then(|o| o.workspace.clone())) {
        (Some(name), _) => workspace(name)?,
        (None, Some(workspace)) => workspace,
        (None, None) => {
            let message = "no draft is named";
            return Err(Usage::new(message, "add --workspace NAME").into());
        }
    };
    let base = known.map_or(Base::New, |origin| Base::At(origin.commit.clone()));
    let draft = Draft {
        package: package.clone(),
        workspace: workspace.clone(),
        files: read_directory(&dir)?,
        base,
        onto_published: args.onto_published,
        message: args.message.clone(),
    };
    let outcome = match Management::read(&args.addresses, world)? {
        Some(mgmt) => mgmt.packages(&packages, world).push(&draft, Some(&dir))?,
        None => only_git(packages.write(&draft)?),
    };
    let shown = Shown::new(&package, Some(&workspace)).told(&outcome.report);
    let Some(pushed) = outcome.done else {
        return shown.show(args.format.format, "nothing was pushed", output);
    };
    packages.settle(&package, &workspace, &pushed.commit, (&dir, &draft.files))?;
    let sentence = if pushed.unchanged {
        format!("{package}: draft {workspace} is that already")
    } else {
        format!("{package}: draft {workspace} is pushed")
    };
    let shown = shown.pushed(&pushed, Lifecycle::Draft);
    shown.show(args.format.format, &sentence, output)
}

pub(super) fn propose(args: &ActOn, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let (package, workspace) = (package(&args.package)?, workspace(&args.workspace)?);
    let packages = packages(&args.repository, world)?;
    let outcome = match Management::read(&args.addresses, world)? {
        Some(mgmt) => mgmt
            .packages(&packages, world)
            .propose(&package, &workspace)?,
        None => only_git(packages.propose(&package, &workspace, None, None)?),
    };
    let shown = Shown::new(&package, Some(&workspace)).told(&outcome.report);
    let Some(pushed) = outcome.done else {
        return shown.show(args.format.format, "nothing was proposed", output);
    };
    let sentence = format!(
        "{package}: {workspace} is{} proposed",
        was(pushed.unchanged)
    );
    let shown = shown.pushed(&pushed, Lifecycle::Proposed);
    shown.show(args.format.format, &sentence, output)
}

pub(super) fn approve(args: &ActOn, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let (package, workspace) = (package(&args.package)?, workspace(&args.workspace)?);
    let packages = packages(&args.repository, world)?;
    let outcome = match Management::read(&args.addresses, world)? {
        Some(mgmt) => mgmt
            .packages(&packages, world)
            .approve(&package, &workspace)?,
        None => only_git(packages.approve(&package, &workspace, None, None)?),
    };
    let shown = Shown::new(&package, Some(&workspace)).told(&outcome.report);
    let Some(published) = outcome.done else {
        return shown.show(args.format.format, "nothing was published", output);
    };
    let (version, branch) = (published.version, &packages.repository.branch);
    let sentence = format!(
        "{package}: v{version} is{} on {branch}",
        was(published.unchanged)
    );
    shown
        .published(&published)
        .show(args.format.format, &sentence, output)
}

pub(super) fn reject(
    args: &RejectArgs,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let RejectArgs { discard, act } = args;
    let (package, workspace) = (package(&act.package)?, workspace(&act.workspace)?);
    let packages = packages(&act.repository, world)?;
    let mgmt = Management::read(&act.addresses, world)?;
    if *discard {
        let (shown, sentence) = discarded(&package, &workspace, &packages, mgmt.as_ref(), world)?;
        return shown.show(act.format.format, &sentence, output);
    }
    let pushed = match mgmt {
        Some(mgmt) => mgmt
            .packages(&packages, world)
            .reject(&package, &workspace)?,
        None => packages.reject(&package, &workspace)?,
    };
    let sentence = format!("{package}: {workspace} is{} a draft", was(pushed.unchanged));
    Shown::new(&package, Some(&workspace))
        .pushed(&pushed, Lifecycle::Draft)
        .show(act.format.format, &sentence, output)
}

/// Removes a draft or a proposal.
fn discarded(
    package: &PackageName,
    workspace: &Workspace,
    packages: &Packages,
    mgmt: Option<&Management>,
    world: &World,
) -> anyhow::Result<(Shown, String)> {
    let there = match mgmt {
        Some(mgmt) => mgmt.packages(packages, world).discard(package, workspace)?,
        None => packages.discard(package, workspace)?,
    };
    let shown = Shown {
        changed: there,
        ..Shown::new(package, Some(workspace))
    };
    Ok((shown, gone(&format!("{package}: {workspace}"), there)))
}

/// What is said of something that is not there, and was or was not before.
fn gone(what: &str, there: bool) -> String {
    if there {
        format!("{what} is gone")
    } else {
        format!("{what} was not there")
    }
}

pub(super) fn rollback(
    args: &RollbackArgs,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let package = package(&args.package)?;
    let packages = packages(&args.repository, world)?;
    let outcome = match Management::read(&args.addresses, world)? {
        Some(mgmt) => mgmt
            .packages(&packages, world)
            .rollback(&package, args.to)?,
        None => only_git(packages.rollback(&package, args.to, None)?),
    };
    let shown = Shown::new(&package, None).told(&outcome.report);
    let Some(published) = outcome.done else {
        return shown.show(args.format.format, "nothing was published", output);
    };
    let sentence = format!(
        "{package}: v{} is{} what v{} was",
        published.version,
        was(published.unchanged),
        args.to
    );
    shown
        .published(&published)
        .show(args.format.format, &sentence, output)
}

pub(super) fn delete(
    args: &DeleteArgs,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let package = package(&args.package)?;
    let only = args.workspace.as_deref().map(workspace).transpose()?;
    let packages = packages(&args.repository, world)?;
    let mgmt = Management::read(&args.addresses, world)?;
    let repository = &packages.repository;
    let question = match &only {
        Some(workspace) => format!("Remove {workspace} of {package} from {repository}?"),
        None => format!("Remove {package} from {repository} with its drafts?"),
    };
    if !args.yes && !world.confirm(&question, output)? {
        output.say("nothing was changed");
        return Ok(Exit::Done);
    }
    if let Some(workspace) = &only {
        let (shown, sentence) = discarded(&package, workspace, &packages, mgmt.as_ref(), world)?;
        return shown.show(args.format.format, &sentence, output);
    }
    let there = match mgmt {
        Some(mgmt) => mgmt.packages(&packages, world).delete(&package)?,
        None => packages.delete(&package)?,
    };
    let sentence = gone(package.as_str(), there);
    let shown = Shown {
        changed: there,
        ..Shown::new(&package, None)
    };
    shown.show(args.format.format, &sentence, output)
}

/// Without a book there is nothing to tell.
fn only_git<T>(done: T) -> Outcome<T> {
    Outcome {
        done: Some(done),
        report: Report::default(),
    }
}
