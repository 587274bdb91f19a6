//! The configuration on standard input: the keys that mean the same for every plugin, and everything else
//! untouched.
//!
//! Easy to get wrong: `text` is what a delegate gets. It is the runtime's bytes, not a rendering of what we
//! understood, so keys that we do not know and numbers that we cannot hold survive. What we read ourselves we read as Go
//! does, without regard to the case of keys ([`super::fold`]).

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::CniError;
use super::fold::{Object, read};
use super::result::{CniResult, Dns};
use super::text::check_network;
use super::verb::Verb;
use super::version::Version;

/// One plugin's configuration in one call.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `cniVersion`; absent is 0.1.0.
    pub version: Version,
    /// The network's name.
    pub name: String,
    /// `type`; empty where the runtime left it out and the program's name says it.
    pub plugin: String,
    /// Everything, as it came.
    pub raw: Object,
    /// `ipam`, when there is one with a type.
    pub ipam: Option<Object>,
    /// `dns`.
    pub dns: Dns,
    /// `runtimeConfig`.
    pub runtime: Object,
    /// `args.cni`.
    pub args_cni: Object,
    /// `prevResult`.
    pub prev: Option<CniResult>,
    /// `cni.dev/valid-attachments`: who may keep what, for GC.
    pub valid: Vec<Attachment>,
    text: String,
}

/// An attachment that a GC must leave alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Attachment {
    /// Whose.
    #[serde(rename = "containerID")]
    pub container: String,
    /// Which interface.
    pub ifname: String,
}

impl Config {
    /// A configuration that is larger is refused before it is parsed.
    pub const MAX_BYTES: usize = 8 << 20;

    /// Reads and checks the configuration for a verb.
    pub fn parse(verb: Verb, stdin: &[u8]) -> Result<Self, CniError> {
        if stdin.len() > Self::MAX_BYTES {
            return Err(CniError::decode(
                "the network configuration",
                format!("it is larger than {} bytes", Self::MAX_BYTES),
            ));
        }
        let decode =
            |why: &dyn std::fmt::Display| CniError::decode("the network configuration", why);
        let text = std::str::from_utf8(stdin).map_err(|e| decode(&e))?;
        let value: Value = serde_json::from_str(text).map_err(|e| decode(&e))?;
        let Value::Object(raw) = value else {
            return Err(decode(&"it is not a JSON object"));
        };
        Self::from_object(verb, raw.into(), text.to_owned())
    }

    fn from_object(verb: Verb, raw: Object, text: String) -> Result<Self, CniError> {
        let version: Version = string(&raw, "cniVersion")?.parse()?;
        if version < verb.since() {
            return Err(CniError::new(
                CniError::VERSION,
                format!("config version does not allow {verb}"),
            )
            .with_details(format!(
                "config is {version}, {verb} needs {}",
                verb.since()
            )));
        }
        let name = string(&raw, "name")?;
        check_network(name)?;
        let ipam = object(&raw, "ipam", "ipam")?;
        let args = object(&raw, "args", "args")?.unwrap_or_default();
        let prev = match present(&raw, "prevResult") {
            None => None,
            Some(value) => match CniResult::parse(value, version) {
                Ok(prev) => Some(prev),
                // A DEL serves without it, so a bad one is no reason to leave the attachment behind.
                Err(_) if verb == Verb::Del => None,
                Err(e) => return Err(e.while_doing("prevResult")),
            },
        };
        let config = Self {
            version,
            name: name.to_owned(),
            plugin: string(&raw, "type")?.to_owned(),
            ipam: ipam.filter(|i| !i.get("type").is_none_or(|t| t.is_null() || t == "")),
            dns: match present(&raw, "dns") {
                None => Dns::default(),
                Some(value) => read(value).map_err(|e| CniError::config("dns", e))?,
            },
            runtime: object(&raw, "runtimeConfig", "runtimeConfig")?.unwrap_or_default(),
            args_cni: object(&args, "cni", "args.cni")?.unwrap_or_default(),
            prev,
            valid: valid(verb, &raw)?,
            text,
            raw,
        };
        if let Some(ipam) = &config.ipam {
            string_at(ipam, "type", "ipam.type")?;
        }
        Ok(config)
    }

    /// The bytes for a delegate.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// `ipam.type`, when there is an `ipam`.
    pub fn ipam_type(&self) -> Option<&str> {
        self.ipam.as_ref()?.get("type")?.as_str()
    }

    /// The plugin's own keys. A bad value is code 7 with its path; `null` is absent.
    pub fn keys<T: DeserializeOwned>(&self) -> Result<T, CniError> {
        keys_of(&self.raw, "")
    }

    /// The keys of `ipam`, in the same way.
    pub fn ipam_keys<T: DeserializeOwned>(&self) -> Result<T, CniError> {
        let empty = Object::default();
        keys_of(self.ipam.as_ref().unwrap_or(&empty), "ipam.")
    }

    /// The configuration with one key set or replaced, for a plugin that delegates with more than it was given.
    pub fn with(&self, verb: Verb, key: &str, value: Value) -> Result<Self, CniError> {
        let mut raw = self.raw.clone();
        raw.set(key, value);
        let text = Value::from(raw.clone()).to_string();
        Self::from_object(verb, raw, text)
    }
}

/// A member that is there and not `null`.
fn present<'a>(map: &'a Object, key: &str) -> Option<&'a Value> {
    map.get(key).filter(|v| !v.is_null())
}

fn string<'a>(map: &'a Object, key: &str) -> Result<&'a str, CniError> {
    string_at(map, key, key)
}

fn string_at<'a>(map: &'a Object, key: &str, path: &str) -> Result<&'a str, CniError> {
    match present(map, key) {
        None => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(CniError::config(
            path,
            format!("{} is not a string", short(other)),
        )),
    }
}

fn object(map: &Object, key: &str, path: &str) -> Result<Option<Object>, CniError> {
    match present(map, key) {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object.clone().into())),
        Some(other) => Err(CniError::config(
            path,
            format!("{} is not an object", short(other)),
        )),
    }
}

/// Both names: the specification's, and the one that the reference runtime wrote first (cni#1101).
fn valid(verb: Verb, raw: &Object) -> Result<Vec<Attachment>, CniError> {
    const KEYS: [&str; 2] = ["cni.dev/valid-attachments", "cni.dev/attachments"];
    if verb != Verb::Gc {
        return Ok(Vec::new());
    }
    let Some((key, list)) = KEYS.iter().find_map(|key| Some((key, raw.get(key)?))) else {
        // Without the list everything would be garbage, which nobody says by leaving a key out.
        return Err(CniError::config(
            KEYS[0],
            "missing; a GC must say what is valid, if only with an empty list",
        ));
    };
    if list.is_null() {
        return Ok(Vec::new());
    }
    read(list).map_err(|e| CniError::config(key, e))
}

fn keys_of<T: DeserializeOwned>(object: &Object, at: &str) -> Result<T, CniError> {
    object.read().map_err(|error| {
        let why = error.to_string();
        let value = Value::from(object.clone());
        let mut budget = 256;
        let field = culprit::<T>(&value, &why, &mut budget);
        if field.is_empty() {
            CniError::new(
                CniError::CONFIG,
                format!("invalid configuration: {}: {why}", at.trim_end_matches('.')),
            )
        } else {
            CniError::config(&format!("{at}{field}"), why)
        }
    })
}

/// The path of the value that serde refused, which its error does not say: the one whose removal changes the
/// error. Serde reports a bad value before a missing field, so the removal of another member never does.
fn culprit<T: DeserializeOwned>(value: &Value, why: &str, budget: &mut u32) -> String {
    let mut path = String::new();
    let mut at: Vec<Step> = Vec::new();
    loop {
        let Some(here) = descend(value, &at) else {
            return path;
        };
        let steps: Vec<Step> = match here {
            Value::Object(map) => map.keys().cloned().map(Step::Key).collect(),
            Value::Array(list) => (0..list.len()).map(Step::Item).collect(),
            _ => return path,
        };
        let blamed = steps.into_iter().find(|step| {
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            let mut without = value.clone();
            remove(&mut without, &at, step);
            read::<T>(&without)
                .err()
                .is_none_or(|e| e.to_string() != why)
        });
        let Some(step) = blamed else {
            return path;
        };
        match &step {
            Step::Key(key) if path.is_empty() => path.push_str(key),
            Step::Key(key) => path = format!("{path}.{key}"),
            Step::Item(index) => path = format!("{path}[{index}]"),
        }
        at.push(step);
    }
}

enum Step {
    Key(String),
    Item(usize),
}

fn descend<'a>(value: &'a Value, at: &[Step]) -> Option<&'a Value> {
    at.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Item(index) => value.get(index),
    })
}

fn remove(value: &mut Value, at: &[Step], step: &Step) {
    let parent = at.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Item(index) => value.get_mut(index),
    });
    match (parent, step) {
        (Some(Value::Object(map)), Step::Key(key)) => {
            map.shift_remove(key);
        }
        (Some(Value::Array(list)), Step::Item(index)) => {
            list.remove(*index);
        }
        _ => {}
    }
}

/// A value in a message, not the whole of it.
fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
