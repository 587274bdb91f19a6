//! Which configuration the runtime takes: the first by name, and no other.

use std::fs;
use std::path::{Path, PathBuf};

use mooring_api::{Code, Finding};
use serde::Serialize;
use serde_json::{Map, Value};

use super::attachments::Attachment;
use super::kept::Who;
use crate::foreign::libcni;

/// What the names of files end in that runtimes look at.
pub const ENDINGS: [&str; 3] = ["conf", "conflist", "json"];

/// One file of the runtime's directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// The file.
    pub path: PathBuf,
    /// Whether it is the one that is taken.
    pub wins: bool,
    /// The network's name, where it can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// The plugins it names.
    pub plugins: Vec<String>,
    /// What is wrong with it, where something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// One plugin of a configuration that somebody has: a file of the runtime's directory, or an attachment.
pub(super) struct Known {
    /// The network.
    pub(super) network: String,
    /// Its keys.
    pub(super) plugin: Map<String, Value>,
    /// Whose it is, where it is an attachment's.
    pub(super) who: Option<Who>,
}

/// Every plugin that is known to be configured on this node, as far as it can be read.
pub(super) fn known(dir: &Path, attachments: &[Attachment]) -> Vec<Known> {
    let read = |name: String| serde_json::from_slice(&fs::read(dir.join(name)).ok()?).ok();
    let files = in_order(dir).into_iter().filter_map(read);
    let files = files.map(|configuration| (configuration, None));
    let cached = attachments.iter().filter_map(|a| {
        let who = Who::new(&a.network, &a.container, &a.ifname);
        Some((a.cached.configuration()?, Some(who)))
    });
    let mut known = Vec::new();
    for (configuration, who) in files.chain(cached) {
        let network = configuration.get("name").and_then(Value::as_str);
        let network = network.unwrap_or_default().to_owned();
        let plugins = libcni::plugins(&configuration).into_iter();
        let plugins = plugins.filter_map(|plugin| match plugin {
            Value::Object(plugin) => Some(plugin),
            _ => None,
        });
        known.extend(plugins.map(|plugin| Known {
            network: network.clone(),
            plugin,
            who: who.clone(),
        }));
    }
    known
}

/// The names of the files that runtimes look at, in their order.
pub fn in_order(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_one = |name: &String| {
        let ending = Path::new(name).extension().and_then(|e| e.to_str());
        ending.is_some_and(|e| ENDINGS.contains(&e))
    };
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(is_one).collect();
    names.sort();
    names
}

pub(super) fn read(dir: &Path, bin_dir: &Path) -> Vec<Configuration> {
    let names = in_order(dir).into_iter().enumerate();
    let one = |(nth, name): (usize, String)| configuration(&dir.join(name), nth == 0, bin_dir);
    names.map(one).collect()
}

fn configuration(path: &Path, wins: bool, bin_dir: &Path) -> Configuration {
    let mut configuration = Configuration {
        path: path.to_owned(),
        wins,
        network: None,
        plugins: Vec::new(),
        problem: None,
    };
    let read = fs::read(path).map_err(|error| error.to_string());
    let read = read.and_then(|b| serde_json::from_slice::<Value>(&b).map_err(|e| e.to_string()));
    let value = match read {
        Ok(value) => value,
        Err(why) => {
            configuration.problem = Some(why);
            return configuration;
        }
    };
    let text = |value: &Value, at: &str| value.pointer(at)?.as_str().map(ToOwned::to_owned);
    configuration.network = text(&value, "/name");
    let list = match value.get("plugins") {
        Some(Value::Array(plugins)) => plugins.clone(),
        _ => vec![value],
    };
    let mut started = Vec::new();
    for plugin in &list {
        let (main, ipam) = (text(plugin, "/type"), text(plugin, "/ipam/type"));
        configuration
            .plugins
            .extend(main.iter().chain(&ipam).cloned());
        started.extend(main);
        // Ours give these in process, under whatever names they are installed.
        started.extend(ipam.filter(|name| name != "static" && name != "host-local"));
    }
    let absent = |name: &&String| !bin_dir.join(name).is_file();
    let absent: Vec<&str> = started.iter().filter(absent).map(String::as_str).collect();
    if configuration.plugins.is_empty() {
        configuration.problem = Some("it names no plugin".to_owned());
    } else if !absent.is_empty() {
        let names = absent.join(", ");
        configuration.problem = Some(format!("{names} is not in {}", bin_dir.display()));
    }
    configuration
}

pub(super) fn judge(configurations: &[Configuration]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some((first, behind)) = configurations.split_first() else {
        return findings;
    };
    if let Some(problem) = &first.problem {
        let text = format!("the runtime takes {}, and {problem}", first.path.display());
        let help = "no pod of this node gets a network until this file is right or gone";
        findings.push(Finding::error(Code::ConfigurationBroken, text).help(help));
    }
    for file in behind {
        let text = format!(
            "{} does nothing: the runtime takes {} and no other",
            file.path.display(),
            first.path.display()
        );
        let help =
            "remove the one that is not wanted, or rename it so that the right one sorts first";
        findings.push(Finding::warning(Code::ConfigurationShadowed, text).help(help));
    }
    findings
}
