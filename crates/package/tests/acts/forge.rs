//! A bare repository beside a [`Place`], and git as a person types it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mooring_api::Time;
use mooring_package::git::{Credentials, Files, Git, Repository};
use mooring_package::revision::{Base, Draft, PackageName, Packages, Pushed, Workspace};

use crate::fleet::Place;

/// The time of every act.
pub(crate) const NOW: Time = Time(1_800_000_000);

/// A repository with one commit on `main`.
pub(crate) struct Forge {
    pub(crate) place: Place,
}

impl Forge {
    pub(crate) fn new() -> Self {
        let forge = Self::empty();
        forge.place.write("person/README.md", "Packages.\n");
        forge.git("person", &["add", "."]);
        forge.git("person", &["commit", "-qm", "begin"]);
        forge.git("person", &["push", "-q", "origin", "main"]);
        forge
    }

    /// Without any commit.
    pub(crate) fn empty() -> Self {
        let place = Place::new();
        let forge = Self { place };
        let origin = forge.url();
        git(
            &forge.place.path("."),
            &["init", "-q", "--bare", "-b", "main", &origin],
        );
        let person = forge.place.path("person");
        git(
            &forge.place.path("."),
            &["init", "-q", "-b", "main", &person.display().to_string()],
        );
        forge.git("person", &["remote", "add", "origin", &origin]);
        forge
    }

    pub(crate) fn url(&self) -> String {
        self.place.path("origin.git").display().to_string()
    }

    /// git in a directory of the place; what it says on stdout.
    pub(crate) fn git(&self, dir: &str, args: &[&str]) -> String {
        git(&self.place.path(dir), args)
    }

    /// What a ref of the repository has at a path; None where it has nothing.
    pub(crate) fn show(&self, at: &str) -> Option<String> {
        let output = command(&self.place.path("origin.git"), &["show", at])
            .output()
            .unwrap();
        output
            .status
            .success()
            .then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// Every branch and tag.
    pub(crate) fn refs(&self) -> Vec<String> {
        let said = self.git("origin.git", &["for-each-ref", "--format=%(refname:short)"]);
        said.lines().map(ToOwned::to_owned).collect()
    }

    /// A person commits a file to `main`, on what it is now.
    pub(crate) fn commit(&self, path: &str, text: &str) {
        self.git("person", &["fetch", "-q", "origin"]);
        self.git("person", &["checkout", "-q", "-B", "main", "origin/main"]);
        self.place.write(&format!("person/{path}"), text);
        self.git("person", &["add", "."]);
        self.git("person", &["commit", "-qm", "by hand"]);
        self.git("person", &["push", "-q", "origin", "main"]);
    }

    pub(crate) fn how(&self) -> Git {
        let mut git = Git::new(self.place.path("cache"), NOW);
        git.timeout = Duration::from_mins(1);
        git.pause = Arc::new(|_| Duration::ZERO);
        git
    }

    pub(crate) fn repository(&self) -> Repository {
        Repository {
            credentials: Credentials::None,
            ..Repository::new(self.url())
        }
    }

    pub(crate) fn packages(&self) -> Packages {
        Packages::new(self.how(), self.repository())
    }

    /// The same, with something that happens between the first decision and its push.
    pub(crate) fn disturbed(
        &self,
        act: impl Fn(u32) + Send + Sync + 'static,
    ) -> (Packages, Arc<AtomicU32>) {
        let mut packages = self.packages();
        let tries = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&tries);
        packages.git.before_push = Some(Arc::new(move |nth| {
            counted.fetch_add(1, Ordering::SeqCst);
            act(nth);
        }));
        (packages, tries)
    }

    /// A hook of the server.
    pub(crate) fn hook(&self, name: &str, script: &str) {
        let path = self.place.path(&format!("origin.git/hooks/{name}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        mooring_testkit::script(&path, &format!("#!/bin/sh\n{script}\n"));
    }

    /// Writes, proposes and approves.
    pub(crate) fn publish(&self, package: &str, workspace: &str, files: &Files) -> u32 {
        let packages = self.packages();
        push(&packages, package, workspace, files, Base::Any);
        let (name, workspace) = (name(package), self::workspace(workspace));
        packages.propose(&name, &workspace, None, None).unwrap();
        packages
            .approve(&name, &workspace, None, None)
            .unwrap()
            .version
    }
}

pub(crate) fn push(
    packages: &Packages,
    package: &str,
    workspace: &str,
    files: &Files,
    base: Base,
) -> Pushed {
    packages
        .write(&draft(package, workspace, files, base))
        .unwrap()
}

pub(crate) fn draft(package: &str, workspace: &str, files: &Files, base: Base) -> Draft {
    Draft {
        package: name(package),
        workspace: self::workspace(workspace),
        files: files.clone(),
        base,
        onto_published: false,
        message: None,
    }
}

pub(crate) fn name(text: &str) -> PackageName {
    text.parse().unwrap()
}

pub(crate) fn workspace(text: &str) -> Workspace {
    text.parse().unwrap()
}

/// A package with a Kptfile and these files.
pub(crate) fn files(name: &str, more: &[(&str, &str)]) -> Files {
    let kptfile = format!("apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {name}\n");
    let mut files = Files::from([("Kptfile".to_owned(), kptfile.into_bytes())]);
    let more = more
        .iter()
        .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
    files.extend(more);
    files
}

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "A Person")
        .env("GIT_AUTHOR_EMAIL", "person@example.org")
        .env("GIT_COMMITTER_NAME", "A Person")
        .env("GIT_COMMITTER_EMAIL", "person@example.org");
    command
}

/// git, as a person types it.
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let output = command(dir, args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "git {args:?} in {}: {said}",
        dir.display()
    );
    String::from_utf8(output.stdout).unwrap()
}
