//! What is on this node, whose it is, and what is left over: `moor node doctor`, and `moor-cni doctor` in the one binary.
//!
//! ```text
//!  observe   attachments (libcni's cache) · kept (devices, VLANs, shims, addresses, VFs, tuning, rules, ports) · configurations
//!  judge     each owner lives, is gone, or is not known ─► findings          pure
//!  fix       only what is provably dead: brought home, taken away, given back
//! ```
//!
//! Called by the CLI and by the CNI program. Easy to get wrong: an owner that nobody knows of is not an owner that is gone.
//! Another runtime may keep its cache elsewhere; so what is merely unknown is shown and never touched.

mod attachments;
mod check;
mod configurations;
mod fix;
mod kept;
mod print;

use std::path::PathBuf;

use mooring_api::{Code, Finding};
use serde::Serialize;

use crate::record::Boot;
use crate::{Life, Paths};

pub use attachments::Attachment;
pub use check::Verdict;
pub use configurations::{Configuration, ENDINGS, in_order};
pub use kept::{Kept, Sort, Who};
use kept::{Seen, View};

/// Where to look.
#[derive(Clone, Debug)]
pub struct Doctor {
    /// Directories of state.
    pub paths: Paths,
    /// Where the runtime finds its configuration.
    pub conf_dir: PathBuf,
    /// Where plugins are.
    pub bin_dir: PathBuf,
    /// Whether every living attachment is asked for with CHECK, which starts its plugins.
    pub check: bool,
    /// Whether nftables and Open vSwitch are asked, by their programs.
    pub tools: bool,
}

/// What was seen.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Interfaces that a runtime remembers.
    pub attachments: Vec<Attachment>,
    /// What plugins keep on this node for somebody.
    pub kept: Vec<Kept>,
    /// The runtime's configurations, in the order in which it reads them.
    pub configurations: Vec<Configuration>,
    /// What a person should know.
    pub findings: Vec<Finding>,
    /// What `fix` did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<String>,
}

/// The node cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum DoctorError {
    /// The kernel does not say which boot this is.
    #[error("cannot tell this boot from the last one")]
    Boot(#[source] crate::record::RecordError),
    /// Devices and links are where the node is, and so is who may change them.
    #[error("what is left over is cleaned on the node itself, not from where it is seen at {}", .0.display())]
    Elsewhere(PathBuf),
}

impl Doctor {
    /// Looks, judges, and changes nothing.
    pub fn look(&self) -> Result<Report, DoctorError> {
        let boot = Boot::read(&self.paths.proc).map_err(DoctorError::Boot)?;
        let (mut attachments, unread) = attachments::read(&self.paths);
        let known = configurations::known(&self.conf_dir, &attachments);
        let view = View::new(&self.paths, &boot, &attachments, &known);
        let Seen {
            kept,
            broken,
            silent,
        } = kept::observe(&view, self.tools);
        if self.check {
            for attachment in attachments.iter_mut().filter(|a| a.life == Life::Alive) {
                attachment.verdict = Some(check::ask(attachment, &self.bin_dir));
            }
        }
        let mut report = Report {
            attachments,
            kept,
            configurations: configurations::read(&self.conf_dir, &self.bin_dir),
            ..Report::default()
        };
        let unreadable = unread.iter().chain(&broken).map(|path| {
            let text = format!("{} cannot be read as what it should be", path.display());
            let help = "look at the file; move it away when nobody needs what it says";
            Finding::warning(Code::StateUnreadable, text).help(help)
        });
        report.findings = unreadable.collect();
        report.findings.extend(silent.into_iter().map(|why| {
            let help = "run the doctor as root; what nobody can be asked about is not shown";
            Finding::warning(Code::StateUnreadable, why).help(help)
        }));
        report.findings.extend(judge(&report));
        Ok(report)
    }

    /// Looks, cleans what is provably dead, and looks again.
    pub fn fix(&self) -> Result<Report, DoctorError> {
        if !self.paths.is_home() {
            return Err(DoctorError::Elsewhere(self.paths.node.clone()));
        }
        let before = self.look()?;
        let fixed = fix::fix(self, &before);
        let mut after = self.look()?;
        let (done, failed): (Vec<_>, Vec<_>) = fixed.into_iter().partition(Result::is_ok);
        after.fixed = done.into_iter().flatten().collect();
        after
            .findings
            .extend(failed.into_iter().filter_map(Result::err));
        Ok(after)
    }
}

impl Report {
    /// Whether anything is wrong.
    pub fn is_well(&self) -> bool {
        !self.findings.iter().any(Finding::is_error)
    }

    /// What is said where nothing was found: owners that nobody knows of are no proof that all is well.
    pub fn verdict(&self) -> String {
        let lives = self.kept.iter().map(|k| &k.life);
        let lives = lives.chain(self.attachments.iter().map(|a| &a.life));
        match lives.filter(|life| **life == Life::Unknown).count() {
            0 => "nothing is left over".to_owned(),
            1 => "nothing is known to be left over; the owner of one is not known".to_owned(),
            many => format!("nothing is known to be left over; the owners of {many} are not known"),
        }
    }

    /// Tables for a person, without the findings.
    pub fn tables(&self) -> String {
        print::tables(self)
    }

    /// Tables and findings for a person.
    pub fn text(&self) -> String {
        print::text(self)
    }
}

/// What follows from what was seen.
fn judge(report: &Report) -> Vec<Finding> {
    let mut findings = Vec::new();
    for kept in &report.kept {
        if let Life::Gone { why } = &kept.life {
            let text = format!("{} is kept for {}, and {why}", kept.named(), kept.who);
            let help = kept.remedy.as_deref().unwrap_or("clean it up with --fix");
            findings.push(Finding::error(Code::StateLeftOver, text).help(help));
        }
    }
    for attachment in &report.attachments {
        if let Life::Gone { why } = &attachment.life {
            let text = format!("the runtime remembers {attachment}, and {why}");
            let help = "the runtime forgets it with its next DEL or GC; nothing else depends on it";
            findings.push(Finding::warning(Code::StateLeftOver, text).help(help));
        }
        if let Some(Verdict::Differs { plugin, said }) = &attachment.verdict {
            let text = format!("{attachment} is not as it was made: {plugin} says {said}");
            let help = "restart the pod; if it comes back, somebody else changes its interface";
            findings.push(Finding::error(Code::AttachmentDrifted, text).help(help));
        }
    }
    findings.extend(configurations::judge(&report.configurations));
    findings
}

#[cfg(test)]
mod tests;
