//! The configuration that install may bring along: checked first, written last, removed first.
//!
//! Easy to get wrong: a runtime reads the first file of the directory and no other. A configuration behind
//! another one does nothing, and one in front takes the node's default network over.

use std::fs;
use std::path::{Path, PathBuf};

use mooring_attach::cni::{Version, check_network, check_plugin};
use mooring_host::doctor::{ENDINGS, in_order};
use mooring_host::file::write_atomic_mode;
use serde_json::{Value, json};

use super::place::{Place, clear, sync};
use super::{Install, InstallError, Report, file};
use crate::plugin;

/// A configuration that may be written.
pub(super) struct Conf {
    target: PathBuf,
    bytes: Vec<u8>,
    /// Who is read first before and after.
    notes: Vec<String>,
}

/// Reads it and refuses what would not work.
pub(super) fn read(source: &Path, wish: &Install) -> Result<Conf, InstallError> {
    let bad = |why: String| InstallError::Conf {
        path: source.to_owned(),
        why,
    };
    let bytes = fs::read(source).map_err(file("reading", source))?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|e| bad(e.to_string()))?;
    let name = source.file_name().unwrap_or_default();
    let ending = source
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or_default();
    if !ENDINGS.contains(&ending) {
        return Err(bad(
            "its name must end in .conflist, .conf or .json, or no runtime reads it".into(),
        ));
    }
    check(&value, ending, &wish.bin_dir, &wish.names).map_err(bad)?;
    let target = wish.conf_dir.join(name);
    let own = name.to_string_lossy().into_owned();
    let others: Vec<String> = in_order(&wish.conf_dir)
        .into_iter()
        .filter(|other| *other != own)
        .collect();
    let mut notes = Vec::new();
    if let Some(first) = others.first().filter(|first| **first < own) {
        let why = format!(
            "{first} in {} is read before it, so it would do nothing",
            wish.conf_dir.display()
        );
        if !wish.shadowed {
            return Err(bad(format!(
                "{why}; give it a name that sorts first, or say --shadowed"
            )));
        }
        notes.push(format!("warning: {why}"));
    } else if let Some(first) = others.first() {
        notes.push(format!(
            "it is read before {first}, which was the default network until now"
        ));
    }
    Ok(Conf {
        target,
        bytes,
        notes,
    })
}

/// A list or a single plugin, of a version we speak, whose plugins are there or will be.
fn check(value: &Value, ending: &str, bin_dir: &Path, ours: &[&str]) -> Result<(), String> {
    let text = |value: &Value, key: &str| {
        value
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    text(value, "cniVersion")
        .parse::<Version>()
        .map_err(|e| e.to_string())?;
    check_network(&text(value, "name")).map_err(|e| e.to_string())?;
    let list = value.get("plugins");
    let plugins = match (list, ending) {
        (Some(Value::Array(plugins)), "conflist") if !plugins.is_empty() => plugins.clone(),
        (Some(_), "conflist") => return Err("plugins is not a list of plugins".into()),
        (None, "conflist") => return Err("a .conflist has a list of plugins".into()),
        (Some(_), _) => return Err("a list of plugins must be named .conflist".into()),
        (None, _) => vec![value.clone()],
    };
    for plugin in &plugins {
        let mut types = vec![text(plugin, "type")];
        types.extend(
            plugin
                .pointer("/ipam/type")
                .and_then(Value::as_str)
                .map(str::to_owned),
        );
        for name in types {
            check_plugin("type", &name).map_err(|e| e.to_string())?;
            let known = ours.contains(&name.as_str()) || bin_dir.join(&name).is_file();
            // Addresses of our own are given in process, under whatever names we are installed.
            let in_process = plugin::find(&name).is_some_and(|e| e.kind == plugin::Kind::Ipam);
            if !known && !in_process {
                return Err(format!(
                    "plugin {name:?} is neither installed by this command nor in {}",
                    bin_dir.display()
                ));
            }
        }
    }
    Ok(())
}

impl Conf {
    /// Writes it and remembers what it replaced.
    pub(super) fn write(self, place: &Place, report: &mut Report) -> Result<(), InstallError> {
        let before = fs::read(&self.target).ok();
        let earlier = Record::load(place);
        // Written twice, the configuration replaces itself: what was there before the first time stays known.
        let replaced = match earlier {
            Some(record)
                if record.path == self.target && before.as_deref() == Some(&record.wrote) =>
            {
                record.replaced
            }
            _ => before,
        };
        let record = Record {
            path: self.target.clone(),
            wrote: self.bytes.clone(),
            replaced,
        };
        record.save(place)?;
        write_atomic_mode(&self.target, &self.bytes, 0o644)
            .map_err(file("writing", &self.target))?;
        report.line(format_args!("{}", self.target.display()));
        for note in self.notes {
            report.line(format_args!("  {note}"));
        }
        Ok(())
    }
}

/// Takes our configuration away, or brings the one back that it replaced.
pub(super) fn remove(place: &Place, report: &mut Report) -> Result<(), InstallError> {
    let Some(record) = Record::load(place) else {
        return Ok(());
    };
    let path = &record.path;
    let dir = path.parent().unwrap_or(Path::new("."));
    if !dir.is_dir() {
        // Such as the node's directory as a container saw it. Without the plugins it would be a network that cannot start.
        let why = "its directory is not to be seen from here: uninstall where it was installed, or make the directory if it is gone for good";
        let why = why.to_owned();
        let path = path.clone();
        return Err(InstallError::Conf { path, why });
    }
    if let Ok(now) = fs::read(path) {
        if now != record.wrote {
            // Somebody's work: out of the runtime's sight, not out of the world.
            let kept = PathBuf::from(format!("{}.kept", path.display()));
            fs::rename(path, &kept).map_err(file("keeping", path))?;
            report.line(format_args!(
                "{} was edited; it is {} now",
                path.display(),
                kept.display()
            ));
        }
        if let Some(old) = &record.replaced {
            write_atomic_mode(path, old, 0o644).map_err(file("bringing back", path))?;
            report.line(format_args!("{} is the old one again", path.display()));
        } else if now == record.wrote {
            clear(path)?;
            report.line(format_args!("{} removed", path.display()));
        }
        sync(dir)?;
    }
    clear(&Record::path(place))
}

/// Which configuration is ours, and what was there before.
struct Record {
    path: PathBuf,
    wrote: Vec<u8>,
    replaced: Option<Vec<u8>>,
}

impl Record {
    fn path(place: &Place) -> PathBuf {
        place.own.join("conf.json")
    }

    fn save(&self, place: &Place) -> Result<(), InstallError> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let value = json!({
            "path": self.path,
            "wrote": text(&self.wrote),
            "replaced": self.replaced.as_deref().map(text),
        });
        let path = Self::path(place);
        write_atomic_mode(
            &path,
            format!(
                "{value:#}
"
            )
            .as_bytes(),
            0o644,
        )
        .map_err(file("writing", &path))
    }

    fn load(place: &Place) -> Option<Self> {
        let value: Value = serde_json::from_slice(&fs::read(Self::path(place)).ok()?).ok()?;
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        Some(Self {
            path: text("path")?.into(),
            wrote: text("wrote")?.into(),
            replaced: text("replaced").map(Into::into),
        })
    }
}
