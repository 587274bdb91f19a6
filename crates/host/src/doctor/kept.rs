//! What plugins keep on this node for somebody: devices that are away, VLANs and shims that are shared, addresses, VFs,
//! values to restore. Every sort is read where its plugin writes it.
//!
//! Easy to get wrong: host-local says neither namespace nor boot. Its owner is looked up in the runtime's cache; without an
//! entry there nothing is known. The age of the file proves nothing: a clock may have been wrong at boot.

use std::fmt;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::attachments::Attachment;
use crate::host_local::{self, Content};
use crate::record::{Boot, Records};
use crate::shared::{Objects, SharedError};
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
    /// A VF, as the SR-IOV plugin marks it.
    Function,
    /// Values that tuning restores.
    Tuning,
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Device => "device",
            Self::Vlan => "VLAN",
            Self::Shim => "shim",
            Self::Address => "address",
            Self::Function => "VF",
            Self::Tuning => "tuning",
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
    /// The file that says so.
    pub path: PathBuf,
    /// What else is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Kept {
    /// Sort and name.
    pub(super) fn named(&self) -> String {
        format!("{} {}", self.sort, self.name)
    }
}

/// Everything, in order; and the files that cannot be read.
pub(super) fn observe(
    paths: &Paths,
    boot: &Boot,
    attachments: &[Attachment],
) -> (Vec<Kept>, Vec<PathBuf>) {
    let mut all = Vec::new();
    let mut broken = Vec::new();
    devices(paths, boot, &mut all, &mut broken);
    for (sort, dir) in [(Sort::Vlan, "vlan"), (Sort::Shim, "shim")] {
        let dir = paths.own.join(dir);
        if shared(sort, &dir, boot, &mut all).is_err() {
            broken.push(dir);
        }
    }
    addresses(&paths.data.join("networks"), attachments, &mut all);
    functions(&paths.data.join("sriov/pci"), &mut all);
    tuning(&paths.run.join("tuning"), attachments, &mut all);
    all.sort_by(|a, b| (a.sort, &a.name, &a.path).cmp(&(b.sort, &b.name, &b.path)));
    (all, broken)
}

fn devices(paths: &Paths, boot: &Boot, all: &mut Vec<Kept>, broken: &mut Vec<PathBuf>) {
    let dir = paths.own.join("devices");
    let records = Records::new(&dir).all().unwrap_or_default();
    let is_known = |path: &PathBuf| {
        let key = path
            .file_stem()
            .and_then(|s| s.to_str())
            .unwrap_or_default();
        records.iter().any(|(known, _)| known == key)
    };
    let json = files(&dir)
        .into_iter()
        .filter(|p| p.extension().is_some_and(|e| e == "json"));
    broken.extend(json.filter(|path| !is_known(path)));
    for (key, record) in &records {
        let owner = &record.owner;
        let life = Life::of(
            &owner.netns,
            Some(owner.netns_id),
            Some(&record.boot),
            &boot.id,
        );
        all.push(Kept {
            sort: Sort::Device,
            name: record.device.name.clone(),
            who: Who {
                network: owner.group.clone(),
                container: owner.holder.clone(),
                ifname: owner.ifname.clone(),
            },
            life,
            path: dir.join(format!("{key}.json")),
            note: format!("{:?}", record.phase).to_lowercase(),
        });
    }
}

fn shared(sort: Sort, dir: &Path, boot: &Boot, all: &mut Vec<Kept>) -> Result<(), SharedError> {
    let objects = Objects::new(dir);
    for name in objects.names()? {
        for (file, user) in objects.peek(&name)? {
            let life = user.as_ref().map_or(Life::Unknown, |user| {
                Life::of(&user.netns, Some(user.netns_id), Some(&user.boot), &boot.id)
            });
            let who = user.map(|user| Who {
                network: user.network,
                container: user.container,
                ifname: user.ifname,
            });
            all.push(Kept {
                sort,
                name: name.clone(),
                who: who.unwrap_or_default(),
                life,
                path: file,
                note: String::new(),
            });
        }
    }
    Ok(())
}

fn addresses(dir: &Path, attachments: &[Attachment], all: &mut Vec<Kept>) {
    for network in files(dir).into_iter().filter(|p| p.is_dir()) {
        let name = network.file_name().unwrap_or_default().to_string_lossy();
        for path in files(&network) {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let Ok(address) = file.parse::<IpAddr>() else {
                continue;
            };
            let (who, life) = match host_local::content(&path) {
                Content::Gone => continue,
                Content::Nothing => (Who::default(), Life::gone("its file is empty")),
                Content::Unknown => (Who::default(), Life::Unknown),
                Content::Owned(owner) => {
                    let who = Who {
                        network: name.to_string(),
                        container: owner.container,
                        ifname: owner.ifname.unwrap_or_default(),
                    };
                    let life = by_cache(&who, attachments).unwrap_or(Life::Unknown);
                    (who, life)
                }
            };
            all.push(Kept {
                sort: Sort::Address,
                name: address.to_string(),
                who,
                life,
                path,
                note: String::new(),
            });
        }
    }
}

/// As the runtime's cache says; None where it says nothing.
fn by_cache(who: &Who, attachments: &[Attachment]) -> Option<Life> {
    let same = |a: &&Attachment| {
        a.container == who.container && (who.ifname.is_empty() || a.ifname == who.ifname)
    };
    let mut found: Vec<&Life> = attachments.iter().filter(same).map(|a| &a.life).collect();
    // A container with a living interface lives.
    found.sort_by_key(|life| !matches!(life, Life::Alive));
    found.first().map(|life| (*life).clone())
}

fn functions(dir: &Path, all: &mut Vec<Kept>) {
    for path in files(dir).into_iter().filter(|p| p.is_file()) {
        let netns = fs::read_to_string(&path).unwrap_or_default();
        let netns = netns.trim();
        let life = if netns.is_empty() {
            Life::Unknown
        } else {
            Life::of(Path::new(netns), None, None, "")
        };
        all.push(Kept {
            sort: Sort::Function,
            name: path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            who: Who::default(),
            life,
            note: netns.to_owned(),
            path,
        });
    }
}

fn tuning(dir: &Path, attachments: &[Attachment], all: &mut Vec<Kept>) {
    for path in files(dir) {
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let is_json = path.extension().is_some_and(|e| e == "json");
        let Some((container, ifname)) = name.rsplit_once('_').filter(|_| is_json) else {
            continue;
        };
        let who = Who {
            network: String::new(),
            container: container.to_owned(),
            ifname: ifname.to_owned(),
        };
        let life = by_cache(&who, attachments).unwrap_or(Life::Unknown);
        all.push(Kept {
            sort: Sort::Tuning,
            name: ifname.to_owned(),
            who,
            life,
            path,
            note: String::new(),
        });
    }
}

/// What is in a directory, in order and without what is hidden. An absent one is empty.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let hidden = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with('.')
    };
    let mut files: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| !hidden(p)).collect();
    files.sort();
    files
}
