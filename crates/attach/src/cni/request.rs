//! One call, complete: the environment and the configuration that go together.

use std::path::{Path, PathBuf};

use mooring_api::IfName;

use super::args::CniArgs;
use super::config::Config;
use super::env::Invocation;
use super::error::CniError;
use super::verb::Verb;

/// What a plugin is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
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
    /// `TRACEPARENT`, for log lines.
    pub trace: Option<String>,
    /// Standard input.
    pub config: Config,
}

impl Request {
    /// Reads the configuration for the verb; the error is what the plugin prints.
    pub fn new(invocation: Invocation, stdin: &[u8]) -> Result<Self, CniError> {
        let config = Config::parse(invocation.verb, stdin)?;
        let Invocation {
            verb,
            container,
            netns,
            ifname,
            args,
            path,
            own_netns_allowed,
            trace,
        } = invocation;
        Ok(Self {
            verb,
            container,
            netns,
            ifname,
            args,
            path,
            own_netns_allowed,
            trace,
            config,
        })
    }

    /// The interface's name; empty for STATUS and GC.
    pub fn ifname(&self) -> &str {
        self.ifname.as_ref().map_or("", IfName::as_str)
    }

    /// The namespace's path as text for results, or empty.
    pub fn sandbox(&self) -> String {
        let path = self.netns.as_deref().unwrap_or(Path::new(""));
        path.to_string_lossy().into_owned()
    }
}
