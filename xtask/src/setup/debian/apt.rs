//! What apt is asked: as this machine has it configured, or with lists of our own for another suite.
//!
//! Easy to get wrong: a second suite in the machine's own lists would change what the machine installs. Our lists lie in
//! the cache, and nothing of the machine is written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::shell::output;

/// Debian's keys, where its package of keys puts them.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

pub(super) struct Apt {
    options: Vec<String>,
    /// Where lists of our own are.
    dir: Option<PathBuf>,
}

impl Apt {
    /// As this machine has it.
    pub(super) fn machine() -> Self {
        Self {
            options: Vec::new(),
            dir: None,
        }
    }

    /// For one suite of Debian; its lists are in the cache until this value goes. A suite `x-backports` comes with `x` below it.
    pub(super) fn of_suite(suite: &str, cache: &Path) -> Result<Self> {
        let dir = cache.join(format!(".apt-{suite}-{}", std::process::id()));
        let lists = dir.join("lists");
        fs::create_dir_all(lists.join("partial"))
            .with_context(|| format!("cannot make {}", lists.display()))?;
        let mirror = mirror()?;
        let signed = if Path::new(KEYS).is_file() {
            format!("[signed-by={KEYS}] ")
        } else {
            String::new()
        };
        let base = suite.strip_suffix("-backports");
        let lines = base.into_iter().chain([suite]);
        let lines = lines.map(|suite| format!("deb {signed}{mirror} {suite} main\n"));
        let sources = dir.join("sources.list");
        fs::write(&sources, lines.collect::<String>())
            .with_context(|| format!("cannot write {}", sources.display()))?;
        let option = |key: &str, value: &str| format!("-o{key}={value}");
        let apt = Self {
            options: vec![
                option("Dir::Etc::sourcelist", &sources.to_string_lossy()),
                option("Dir::Etc::sourceparts", "-"),
                option("Dir::State::lists", &lists.to_string_lossy()),
                option("Dir::Cache", &dir.to_string_lossy()),
                option("APT::Default-Release", suite),
                // Descriptions in other languages are half of a suite's lists.
                option("Acquire::Languages", "none"),
                option(
                    "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled",
                    "false",
                ),
            ],
            dir: Some(dir),
        };
        apt.ask("apt-get", &["-q", "update"])?;
        Ok(apt)
    }

    /// The version that apt would install; a fresh machine has no lists, and fetches them.
    pub(super) fn version(&self, package: &str) -> Result<String> {
        if let Some(version) = self.candidate(package)? {
            return Ok(version);
        }
        self.ask("apt-get", &["-q", "update"])?;
        self.candidate(package)?
            .with_context(|| format!("apt knows no package {package}"))
    }

    fn candidate(&self, package: &str) -> Result<Option<String>> {
        let policy = self.ask("apt-cache", &["policy", package])?;
        let line = policy
            .lines()
            .find_map(|line| line.trim().strip_prefix("Candidate: "));
        Ok(line.filter(|v| *v != "(none)").map(str::to_owned))
    }

    /// The package itself, or the one that an empty package for the newest kernel depends on.
    pub(super) fn what_it_stands_for(&self, package: &str) -> Result<String> {
        if !package.starts_with("linux-image-") {
            return Ok(package.to_owned());
        }
        let depends = self.ask("apt-cache", &["depends", "--important", package])?;
        let kernel = depends
            .lines()
            .find_map(|line| line.trim().strip_prefix("Depends: "));
        kernel
            .map(str::to_owned)
            .with_context(|| format!("{package} stands for no kernel"))
    }

    pub(super) fn download(&self, packages: &[String], into: &Path) -> Result<()> {
        let mut command = self.command("apt-get");
        command.args(["-q", "download"]).args(packages);
        output(command.current_dir(into))?;
        Ok(())
    }

    fn ask(&self, program: &str, args: &[&str]) -> Result<String> {
        output(self.command(program).args(args))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(&self.options).env("LC_ALL", "C");
        command
    }
}

impl Drop for Apt {
    fn drop(&mut self) {
        if let Some(dir) = &self.dir {
            let _ = fs::remove_dir_all(dir);
        }
    }
}

/// Where this machine gets Debian from.
fn mirror() -> Result<String> {
    let ask = || {
        let args = [
            "indextargets",
            "--format",
            "$(ORIGIN) $(RELEASE) $(COMPONENT) $(REPO_URI)",
            "Created-By: Packages",
        ];
        output(Command::new("apt-get").args(args).env("LC_ALL", "C"))
    };
    if let Some(mirror) = debian_in(&ask()?) {
        return Ok(mirror);
    }
    // Whose files they are is known after the first look at them.
    output(Command::new("apt-get").args(["-q", "update"]))?;
    let targets = ask()?;
    let mirror = debian_in(&targets);
    ensure!(
        mirror.is_some(),
        "this machine has no source of Debian's packages"
    );
    mirror.context("a source was just seen")
}

/// The first source that is Debian's own and holds a release, not its security updates.
fn debian_in(targets: &str) -> Option<String> {
    targets.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["Debian", release, "main", uri] if !release.contains('-') => Some((*uri).to_owned()),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_one_of_a_release_of_debian_and_not_of_its_security_updates() {
        let targets = "\
Google cloud-sdk main https://example.invalid/packages/apt/
Debian bookworm-security main http://example.invalid/security/
Debian bookworm-updates main http://example.invalid/updates/
Debian bookworm main http://example.com/debian/
";
        assert_eq!(
            debian_in(targets).as_deref(),
            Some("http://example.com/debian/")
        );
        assert_eq!(
            debian_in("Google x main https://example.invalid/packages/"),
            None
        );
    }
}
