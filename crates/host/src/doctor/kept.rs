//! What plugins keep on this node for somebody. Every sort is read where its plugin writes it.
//!
//! ```text
//!  devices    our records · AMD's mapping · the files of sriov-cni
//!  files      users of VLANs and shims · addresses of host-local · values of tuning
//!  programs   rules in nftables · ports of Open vSwitch
//! ```
//!
//! Easy to get wrong: some say neither namespace nor boot. Their owner is looked up in the runtime's cache; without an entry
//! there nothing is known. The age of a file proves nothing: a clock may have been wrong at boot.

pub(super) mod devices;
pub(super) mod files;
pub(super) mod programs;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::attachments::Attachment;
use super::configurations::Known;
use crate::record::{Boot, Record, Records};
use crate::{Life, Paths};

/// What it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Sort {
    /// A device of the host that is in a pod.
    Device,
    /// A VLAN sub-interface that pods share.
    Vlan,
    /// A shim through which the host reaches macvlan pods.
    Shim,
    /// An address of host-local.
    Address,
    /// An entry of AMD's file of NICs that are in pods.
    Mapping,
    /// A VF, as the SR-IOV plugin marks it.
    Function,
    /// What the SR-IOV plugin knows of a VF to restore.
    Cache,
    /// Values that tuning restores.
    Tuning,
    /// Rules in nftables.
    Rule,
    /// A port of Open vSwitch.
    Port,
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Device => "device",
            Self::Vlan => "VLAN",
            Self::Shim => "shim",
            Self::Address => "address",
            Self::Mapping => "AMD mapping",
            Self::Function => "VF",
            Self::Cache => "VF cache",
            Self::Tuning => "tuning",
            Self::Rule => "rule",
            Self::Port => "port",
        })
    }
}

/// For whom it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Who {
    /// The network, where that is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub network: String,
    /// The container.
    pub container: String,
    /// Its interface.
    pub ifname: String,
}

impl Who {
    pub(super) fn new(network: &str, container: &str, ifname: &str) -> Self {
        Self {
            network: network.to_owned(),
            container: container.to_owned(),
            ifname: ifname.to_owned(),
        }
    }

    /// Of an id `<container>-<ifname>`, which cannot be taken apart: both may have a dash. Somebody known has it, or it is
    /// guessed.
    fn of_id<'a>(id: &str, known: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let is_it = |(container, ifname): &(&str, &str)| {
            let rest = id.strip_prefix(container).and_then(|r| r.strip_prefix('-'));
            rest == Some(*ifname)
        };
        let found = known.into_iter().find(is_it);
        let (container, ifname) = found.or_else(|| id.rsplit_once('-')).unwrap_or((id, ""));
        Self::new("", container, ifname)
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short: String = self.container.chars().take(12).collect();
        match (short.is_empty(), self.ifname.is_empty()) {
            (true, _) => f.write_str("somebody"),
            (false, true) => f.write_str(&short),
            (false, false) => write!(f, "{} of {short}", self.ifname),
        }
    }
}

/// Something that is kept.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    /// What it is.
    pub sort: Sort,
    /// Its name.
    pub name: String,
    /// For whom.
    pub who: Who,
    /// Whether that one lives.
    #[serde(flatten)]
    pub life: Life,
    /// The file that says so; the table or the database where it is none.
    pub path: PathBuf,
    /// What else is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// What to do about it once its owner is gone, where `fix` does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Kept {
    fn new(sort: Sort, name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            sort,
            name: name.into(),
            who: Who::default(),
            life: Life::Unknown,
            path: path.into(),
            note: String::new(),
            remedy: None,
        }
    }

    /// Whether its owner is gone, and `fix` knows what to do.
    pub(super) fn is_garbage(&self) -> bool {
        self.remedy.is_none() && matches!(self.life, Life::Gone { .. })
    }

    /// Sort and name.
    pub(super) fn named(&self) -> String {
        format!("{} {}", self.sort, self.name)
    }
}

/// What is known before anything is looked at.
pub(super) struct View<'a> {
    pub(super) paths: &'a Paths,
    pub(super) boot: &'a Boot,
    pub(super) attachments: &'a [Attachment],
    pub(super) known: &'a [Known],
    /// Our device records with their keys.
    pub(super) records: Vec<(String, Record)>,
}

impl<'a> View<'a> {
    pub(super) fn new(
        paths: &'a Paths,
        boot: &'a Boot,
        attachments: &'a [Attachment],
        known: &'a [Known],
    ) -> Self {
        let records = Records::new(paths.own.join("devices")).all();
        Self {
            paths,
            boot,
            attachments,
            known,
            records: records.unwrap_or_default(),
        }
    }

    /// Whether the owner of a record lives.
    fn life_of(&self, record: &Record) -> Life {
        life(record, self.paths, self.boot)
    }

    /// As the runtime's cache says of somebody; unknown where it says nothing.
    pub(super) fn by_cache(&self, who: &Who) -> Life {
        let same = |a: &&Attachment| {
            a.container == who.container && (who.ifname.is_empty() || a.ifname == who.ifname)
        };
        best(self.attachments.iter().filter(same))
    }

    /// All attachments by container and interface.
    fn ids(&self) -> impl Iterator<Item = (&str, &str)> {
        let remembered = self.attachments.iter();
        let remembered = remembered.map(|a| (a.container.as_str(), a.ifname.as_str()));
        let owners = self.records.iter().map(|(_, record)| &record.owner);
        let owners = owners.map(|owner| (owner.holder.as_str(), owner.ifname.as_str()));
        remembered.chain(owners)
    }
}

/// Whether the owner of a record lives.
pub(super) fn life(record: &Record, paths: &Paths, boot: &Boot) -> Life {
    let owner = &record.owner;
    let id = Some(owner.netns_id);
    Life::of(&paths.node, &owner.netns, id, Some(&record.boot), &boot.id)
}

/// A container with a living interface lives.
fn best<'a>(found: impl Iterator<Item = &'a Attachment>) -> Life {
    let mut lives: Vec<&Life> = found.map(|a| &a.life).collect();
    lives.sort_by_key(|life| !matches!(life, Life::Alive));
    lives.first().map_or(Life::Unknown, |life| (*life).clone())
}

/// What was found.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) kept: Vec<Kept>,
    /// Files that cannot be read as what they should be.
    pub(super) broken: Vec<PathBuf>,
    /// Who did not answer, and why.
    pub(super) silent: Vec<String>,
}

/// Everything, in order. With `tools` nftables and Open vSwitch are asked.
pub(super) fn observe(view: &View<'_>, tools: bool) -> Seen {
    let mut seen = Seen::default();
    devices::records(view, &mut seen);
    devices::mapping(view, &mut seen);
    devices::functions(view, &mut seen);
    files::shared(view, &mut seen);
    files::addresses(view, &mut seen);
    files::tuning(view, &mut seen);
    if tools {
        programs::rules(view, &mut seen);
        programs::ports(view, &mut seen);
    }
    let key = |k: &Kept| (k.sort, k.name.clone(), k.path.clone(), k.note.clone());
    seen.kept.sort_by_cached_key(key);
    seen
}

/// What is in a directory, in order and without what is hidden. An absent one is empty.
fn listed(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let hidden = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with('.')
    };
    let mut files: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| !hidden(p)).collect();
    files.sort();
    files
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
