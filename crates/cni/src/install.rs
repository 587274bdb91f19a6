//! `moor-cni install` and `uninstall`: onto a node and off it, without a moment in which a plugin is missing.
//!
//! ```text
//!  bin-dir/moor-cni            the program, renamed into place
//!  bin-dir/macvlan, bridge …   further names of the same file
//!  bin-dir/.moor-cni/          old/<name>: what we replaced;  conf.json: which configuration is ours
//!  conf-dir/10-x.conflist      written last, removed first
//! ```
//!
//! Called by a person or an init container, never by a runtime. Every step is one rename, so a crash leaves
//! each name either old or new, and the same command again finishes.
//!
//! Easy to get wrong: a runtime may start a plugin at any instant, and a file that is open for writing
//! cannot be started ("text file busy"). Nothing is ever written in place.

mod conf;
mod place;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::plugin::TABLE;
use place::{Place, is_ours};

pub(crate) const BIN_DIR: &str = "/opt/cni/bin";
pub(crate) const CONF_DIR: &str = "/etc/cni/net.d";
/// The program's own name.
pub(crate) const PROGRAM: &str = "moor-cni";

/// What to install where.
pub(crate) struct Install {
    pub(crate) bin_dir: PathBuf,
    pub(crate) conf: Option<PathBuf>,
    pub(crate) conf_dir: PathBuf,
    /// The configuration may come after another one.
    pub(crate) shadowed: bool,
    pub(crate) names: Vec<&'static str>,
}

impl Default for Install {
    fn default() -> Self {
        Self {
            bin_dir: BIN_DIR.into(),
            conf: None,
            conf_dir: CONF_DIR.into(),
            shadowed: false,
            names: TABLE.iter().map(|entry| entry.name).collect(),
        }
    }
}

/// What to remove.
pub(crate) struct Uninstall {
    pub(crate) bin_dir: PathBuf,
}

impl Default for Uninstall {
    fn default() -> Self {
        Self {
            bin_dir: BIN_DIR.into(),
        }
    }
}

/// Why it did not work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstallError {
    /// A file or directory.
    #[error("{doing} {}: {cause}", path.display())]
    File {
        doing: &'static str,
        path: PathBuf,
        cause: io::Error,
    },
    /// The copy does not start.
    #[error("the copy at {} does not run here: {why}", path.display())]
    DoesNotRun { path: PathBuf, why: String },
    /// The configuration would not do what it is meant for.
    #[error("{}: {why}", path.display())]
    Conf { path: PathBuf, why: String },
}

/// For `map_err`: what was done to which path.
fn file<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> InstallError + 'a {
    move |cause| InstallError::File {
        doing,
        path: path.to_owned(),
        cause,
    }
}

/// Lines for the person.
#[derive(Default)]
struct Report(String);

impl Report {
    fn line(&mut self, text: fmt::Arguments) {
        self.0.push_str(&text.to_string());
        self.0.push('\n');
    }
}

/// Installs and says what was done.
pub(crate) fn install(wish: &Install) -> Result<String, InstallError> {
    // Everything that can be refused is refused before anything is touched.
    let conf = match &wish.conf {
        None => None,
        Some(path) => Some(conf::read(path, wish)?),
    };
    let own = std::env::current_exe().map_err(file("finding", Path::new(PROGRAM)))?;
    let place = Place::open(&wish.bin_dir)?;
    let mut report = Report::default();
    place.program(&own)?;
    report.line(format_args!("{}", place.dir.join(PROGRAM).display()));
    for name in &wish.names {
        let kept = place.name(name)?;
        let note = if kept { " (the old one is kept)" } else { "" };
        report.line(format_args!("{}{note}", place.dir.join(name).display()));
    }
    if let Some(conf) = conf {
        conf.write(&place, &mut report)?;
    }
    Ok(report.0)
}

/// Brings back what install replaced and says what was done.
pub(crate) fn uninstall(wish: &Uninstall) -> Result<String, InstallError> {
    let place = Place::open(&wish.bin_dir)?;
    let mut report = Report::default();
    conf::remove(&place, &mut report)?;
    for entry in TABLE {
        let path = place.dir.join(entry.name);
        let old = place.old.join(entry.name);
        let has_old = fs::symlink_metadata(&old).is_ok();
        if is_ours(&path) && has_old {
            fs::rename(&old, &path).map_err(file("bringing back", &path))?;
            report.line(format_args!("{} is the old one again", path.display()));
        } else if is_ours(&path) {
            fs::remove_file(&path).map_err(file("removing", &path))?;
            report.line(format_args!("{} removed", path.display()));
        } else if has_old {
            report.line(format_args!(
                "{} was replaced by somebody else and stays; what install had replaced is {}",
                path.display(),
                old.display()
            ));
        }
    }
    let program = place.dir.join(PROGRAM);
    if is_ours(&program) {
        fs::remove_file(&program).map_err(file("removing", &program))?;
        report.line(format_args!("{} removed", program.display()));
    }
    place.close()?;
    if report.0.is_empty() {
        report.line(format_args!(
            "nothing of moor-cni is in {}",
            place.dir.display()
        ));
    }
    Ok(report.0)
}
