//! The environment of a call: which variables a verb needs, and what they may say.
//!
//! Called by `moor-cni` before it reads standard input, so a call that cannot be served waits for nothing.
//!
//! Easy to get wrong: a variable is checked only where the verb needs it. A GC with a bad `CNI_IFNAME` is
//! fine, a runtime may leave old values in place.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use mooring_api::IfName;

use super::args::CniArgs;
use super::error::CniError;
use super::text::check_container;
use super::verb::Verb;

/// The variables that concern us, by name.
#[derive(Clone, Debug, Default)]
pub struct Env(BTreeMap<String, OsString>);

/// The environment of one verb, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// What to do.
    pub verb: Verb,
    /// Whose interface; empty for STATUS and GC.
    pub container: String,
    /// Where; a DEL may come without.
    pub netns: Option<PathBuf>,
    /// Which interface; none for STATUS and GC.
    pub ifname: Option<IfName>,
    /// `CNI_ARGS`.
    pub args: CniArgs,
    /// Where plugins are looked up.
    pub path: Vec<PathBuf>,
    /// `CNI_NETNS_OVERRIDE`: the namespace may be the plugin's own.
    pub own_netns_allowed: bool,
    /// `TRACEPARENT`, for log lines, when it has the grammar of one.
    pub trace: Option<String>,
}

/// `CNI_COMMAND` aside, what a verb must be given.
fn required(verb: Verb) -> &'static [&'static str] {
    match verb {
        Verb::Add | Verb::Check => &["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"],
        Verb::Del => &["CNI_CONTAINERID", "CNI_IFNAME", "CNI_PATH"],
        Verb::Status | Verb::Gc => &["CNI_PATH"],
        Verb::Version => &[],
    }
}

impl Env {
    /// Keeps what concerns CNI.
    pub fn new(vars: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let ours = |name: &str| name.starts_with("CNI_") || name == "TRACEPARENT";
        let named = vars.into_iter().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            ours(&name).then_some((name, value))
        });
        Self(named.collect())
    }

    /// An empty variable is an absent one, as for the reference library.
    fn raw(&self, name: &str) -> Option<&OsStr> {
        let value = self.0.get(name).map(OsString::as_os_str);
        value.filter(|v| !v.is_empty())
    }

    fn text(&self, name: &str) -> Result<Option<&str>, CniError> {
        let Some(value) = self.raw(name) else {
            return Ok(None);
        };
        let text = value.to_str();
        text.map(Some)
            .ok_or_else(|| CniError::env(format!("{name} is not UTF-8")))
    }

    /// `CNI_COMMAND`; `None` when there is none, which a person at a shell means.
    pub fn verb(&self) -> Result<Option<Verb>, CniError> {
        let Some(text) = self.text("CNI_COMMAND")? else {
            return Ok(None);
        };
        let verb = Verb::parse(text);
        verb.map(Some)
            .ok_or_else(|| CniError::env(format!("unknown CNI_COMMAND: {text}")))
    }

    /// Everything a verb needs, or the names of all that is missing.
    pub fn call(&self, verb: Verb) -> Result<Invocation, CniError> {
        let needs = required(verb);
        let missing: Vec<&str> = needs
            .iter()
            .copied()
            .filter(|n| self.raw(n).is_none())
            .collect();
        if !missing.is_empty() {
            return Err(CniError::env(format!(
                "required env variables [{}] missing",
                missing.join(",")
            )));
        }
        let attachment = verb.is_attachment();
        let (container, ifname) = if attachment {
            let container = self.text("CNI_CONTAINERID")?.unwrap_or_default();
            check_container(container)?;
            let name = self.text("CNI_IFNAME")?.unwrap_or_default();
            let name = name.parse::<IfName>();
            let name = name.map_err(|e| CniError::env(format!("CNI_IFNAME: {e}")))?;
            (container.to_owned(), Some(name))
        } else {
            (String::new(), None)
        };
        let args = if attachment {
            CniArgs::parse(self.text("CNI_ARGS")?.unwrap_or_default())
        } else {
            CniArgs::default()
        };
        Ok(Invocation {
            verb,
            container,
            netns: self
                .raw("CNI_NETNS")
                .filter(|_| attachment)
                .map(PathBuf::from),
            ifname,
            args,
            path: self.path(),
            own_netns_allowed: self.flag("CNI_NETNS_OVERRIDE"),
            trace: self.trace(),
        })
    }

    /// `CNI_PATH`, split; empty parts are nothing (not the working directory).
    fn path(&self) -> Vec<PathBuf> {
        let Some(path) = self.raw("CNI_PATH") else {
            return Vec::new();
        };
        let parts = std::env::split_paths(path);
        parts.filter(|p| !p.as_os_str().is_empty()).collect()
    }

    fn flag(&self, name: &str) -> bool {
        let text = self.raw(name).and_then(OsStr::to_str).unwrap_or_default();
        text == "1" || text.eq_ignore_ascii_case("true")
    }

    /// `00-<32 hex>-<16 hex>-<2 hex>`; anything else is dropped, since it is copied into log lines.
    fn trace(&self) -> Option<String> {
        let text = self.raw("TRACEPARENT")?.to_str()?;
        let lengths: Vec<usize> = text.split('-').map(str::len).collect();
        let hex = text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit());
        (hex && lengths == [2, 32, 16, 2]).then(|| text.to_owned())
    }
}
