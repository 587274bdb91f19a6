//! Asks the plugins of an attachment whether it is still as they made it: CHECK, as a runtime would.
//!
//! Easy to get wrong: the configuration in the cache is what the runtime read, a list or one plugin; each plugin of a list
//! gets the list's name and version, the result, and of the runtime's arguments only what it declares.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use mooring_attach::cni::Version;
use serde::Serialize;
use serde_json::{Map, Value};

use super::attachments::Attachment;
use crate::foreign::libcni::plugins;
use crate::program;

/// A CHECK looks at a handful of netlink answers.
const BOUND: Duration = Duration::from_secs(30);

/// What CHECK said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// As it was made.
    Good,
    /// Not as it was made.
    Differs {
        /// Who says so.
        plugin: String,
        /// What is different.
        said: String,
    },
    /// It could not be asked.
    Unasked {
        /// Why not.
        why: String,
    },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Good => f.write_str("good"),
            Self::Differs { .. } => f.write_str("differs"),
            Self::Unasked { why } => write!(f, "not asked: {why}"),
        }
    }
}

/// Asks every plugin in its order, until one has something to say.
pub(super) fn ask(attachment: &Attachment, bin_dir: &Path) -> Verdict {
    let unasked = |why: &str| Verdict::Unasked {
        why: why.to_owned(),
    };
    let Some(conf) = attachment.cached.configuration() else {
        return unasked("its configuration cannot be read");
    };
    let version = text(&conf, "cniVersion").unwrap_or_default();
    match version.parse::<Version>() {
        Ok(version) if version >= Version::V0_4_0 => {}
        _ => return unasked("its version has no CHECK"),
    }
    if conf.get("disableCheck") == Some(&Value::Bool(true)) {
        return unasked("its configuration forbids CHECK");
    }
    for plugin in plugins(&conf) {
        let Value::Object(plugin) = plugin else {
            return unasked("its configuration cannot be read");
        };
        let name = text(&plugin, "type").unwrap_or_default();
        if mooring_attach::cni::check_plugin("type", &name).is_err() {
            return unasked("its configuration names no plugin");
        }
        let stdin = input(plugin, &conf, attachment);
        match one(&name, &stdin, attachment, bin_dir) {
            Ok(None) => {}
            Ok(Some(said)) => return Verdict::Differs { plugin: name, said },
            Err(why) => return Verdict::Unasked { why },
        }
    }
    Verdict::Good
}

fn text(map: &Map<String, Value>, key: &str) -> Option<String> {
    map.get(key)?.as_str().map(ToOwned::to_owned)
}

/// What one plugin reads.
fn input(mut plugin: Map<String, Value>, conf: &Map<String, Value>, of: &Attachment) -> String {
    for key in ["cniVersion", "name"] {
        if let Some(value) = conf.get(key) {
            plugin.insert(key.to_owned(), value.clone());
        }
    }
    let declared = plugin.remove("capabilities");
    let declares = |key: &String| {
        let declared = declared.as_ref().and_then(|d| d.get(key));
        declared == Some(&Value::Bool(true))
    };
    let mut runtime = of.cached.capability_args.clone();
    runtime.retain(|key, _| declares(key));
    if !runtime.is_empty() {
        plugin.insert("runtimeConfig".to_owned(), Value::Object(runtime));
    }
    plugin.insert("prevResult".to_owned(), of.cached.result.clone());
    Value::Object(plugin).to_string()
}

/// None where it finds nothing; an error where it could not be asked.
fn one(name: &str, stdin: &str, of: &Attachment, bin_dir: &Path) -> Result<Option<String>, String> {
    let args: Vec<String> = of
        .cached
        .cni_args
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    let args = args.join(";");
    let variables: [(&str, &OsStr); 6] = [
        ("CNI_COMMAND", "CHECK".as_ref()),
        ("CNI_CONTAINERID", of.container.as_ref()),
        ("CNI_NETNS", of.netns.as_os_str()),
        ("CNI_IFNAME", of.ifname.as_ref()),
        ("CNI_ARGS", args.as_ref()),
        ("CNI_PATH", bin_dir.as_os_str()),
    ];
    let program = bin_dir.join(name);
    let said = program::run_with::<&str>(&program, &[], &variables, stdin.as_bytes(), BOUND);
    let said = said.map_err(|error| format!("{error}"))?;
    if said.ok {
        return Ok(None);
    }
    let error: Value = serde_json::from_str(&said.stdout).unwrap_or_default();
    let msg = error.get("msg").and_then(Value::as_str);
    let msg = msg.map_or_else(|| said.stderr.trim().to_owned(), ToOwned::to_owned);
    Ok(Some(msg))
}
