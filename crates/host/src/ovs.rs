//! The database of Open vSwitch through `ovs-vsctl`: one call is one transaction.
//!
//! Called by the ovs plugin and by the doctor. Ports carry who they are for in `external_ids`, and the database outlives reboots and
//! interfaces. Easy to get wrong: every value is quoted as a string of the database, or a container id of digits is read as a number; and
//! `ovs-vsctl` waits for the switch for ever unless it is told not to.

use std::time::Duration;

use mooring_attach::cni::CniError;
use serde_json::Value;

use crate::program::{self, ProgramError};

/// What our ports say about whose they are.
pub const OWNER: &str = "mooring.dev";
/// What those of ovs-cni say.
pub const OTHER_OWNER: &str = "ovs-cni.network.kubevirt.io";

/// How long `ovs-vsctl` may look for the switch, in seconds.
const PATIENCE: u64 = 10;
/// A little more: it should be the one that gives up.
const MORE: u64 = 2;

/// A switch's database.
#[derive(Clone, Debug)]
pub struct Database {
    remote: Option<String>,
    patience: u64,
}

/// A port that somebody has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// The network; empty for ports of ovs-cni, as is the container.
    pub network: String,
    /// The container.
    pub container: String,
    /// Its interface.
    pub ifname: String,
    /// The namespace, as the runtime named it.
    pub netns: String,
}

/// Why the switch did not do it.
#[derive(Debug, thiserror::Error)]
pub enum OvsError {
    /// The program.
    #[error("Open vSwitch cannot be asked on this node")]
    Program(#[from] ProgramError),
    /// There is no such bridge.
    #[error("the switch has no such bridge: {0}")]
    NoBridge(String),
    /// Nobody answers.
    #[error("Open vSwitch does not answer; is it running? {0}")]
    Silent(String),
    /// It said no.
    #[error("Open vSwitch refused: {0}")]
    Refused(String),
    /// It said something else.
    #[error("ovs-vsctl answered what is no table")]
    Answer(#[source] serde_json::Error),
}

impl From<OvsError> for CniError {
    fn from(error: OvsError) -> Self {
        match error {
            OvsError::Program(source) => {
                Self::unavailable("Open vSwitch cannot be asked on this node").because(&source)
            }
            OvsError::NoBridge(why) => {
                Self::config("bridge", "the switch has no such bridge").with_details(why)
            }
            OvsError::Silent(why) => {
                Self::try_again("Open vSwitch does not answer; is it running?").with_details(why)
            }
            OvsError::Refused(why) => Self::internal("Open vSwitch refused").with_details(why),
            OvsError::Answer(source) => Self::decode("ovs-vsctl", source),
        }
    }
}

/// Whether the node can have ports at all: without the program there is no switch.
pub fn is_installed() -> bool {
    program::find("ovs-vsctl").is_ok()
}

impl Database {
    /// At a place, as [`remote`] writes it; the program's own without one.
    pub fn new(remote: Option<String>) -> Self {
        Self {
            remote,
            patience: PATIENCE,
        }
    }

    /// The same for those who only look: it is not waited for.
    #[must_use]
    pub fn briefly(self) -> Self {
        Self {
            patience: 2,
            ..self
        }
    }

    /// What `ovs-vsctl` answers.
    pub fn ask(&self, words: &[&str]) -> Result<String, OvsError> {
        let program = program::find("ovs-vsctl")?;
        let mut args = vec![format!("--timeout={}", self.patience)];
        args.extend(self.remote.as_ref().map(|remote| format!("--db={remote}")));
        args.extend(words.iter().map(|word| (*word).to_owned()));
        let bound = Duration::from_secs(self.patience + MORE);
        let said = program::run(&program, &args, b"", bound)?;
        if said.ok {
            return Ok(said.stdout);
        }
        let why = said.stderr.trim().to_owned();
        Err(if why.contains("no bridge named") {
            OvsError::NoBridge(why)
        } else if why.contains("database connection failed")
            || why.contains("Alarm clock")
            || why.is_empty()
        {
            OvsError::Silent(why)
        } else {
            OvsError::Refused(why)
        })
    }

    /// The ports that have all these among their `external_ids`.
    pub fn ports(&self, ids: &[(&str, &str)]) -> Result<Vec<Port>, OvsError> {
        let head = [
            "--format=json",
            "--columns=name,external_ids",
            "find",
            "Port",
        ];
        let ids: Vec<String> = ids.iter().map(|(key, value)| id(key, value)).collect();
        let mut words = head.to_vec();
        words.extend(ids.iter().map(String::as_str));
        ports_of(&self.ask(&words)?)
    }

    /// Removes a port; absent is success.
    pub fn del_port(&self, name: &str) -> Result<(), OvsError> {
        self.ask(&["--if-exists", "del-port", name]).map(drop)
    }
}

/// A path alone is a local socket.
pub fn remote(text: &str) -> String {
    let kinds = ["unix:", "tcp:", "ssl:"];
    if kinds.iter().any(|kind| text.starts_with(kind)) {
        text.to_owned()
    } else {
        format!("unix:{text}")
    }
}

/// One of `external_ids`, as a condition or to be set.
pub fn id(key: &str, value: &str) -> String {
    format!("external_ids:{key}={}", quoted(value))
}

/// A string of the database is written as one of JSON.
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Any text that should be rows of name and `external_ids`: `["map", [[key, value], …]]`.
pub fn ports_of(answer: &str) -> Result<Vec<Port>, OvsError> {
    let rows: Value = serde_json::from_str(answer).map_err(OvsError::Answer)?;
    let read = |row: &Value| {
        let ids = row[1][1].as_array()?;
        let get = |key: &str| {
            let pair = ids.iter().find(|pair| pair[0] == key)?;
            pair[1].as_str().map(str::to_owned)
        };
        let ifname = get("moor-ifname").or_else(|| get("contIface"));
        Some(Port {
            name: row[0].as_str()?.to_owned(),
            network: get("moor-network").unwrap_or_default(),
            container: get("moor-container").unwrap_or_default(),
            ifname: ifname.unwrap_or_default(),
            netns: get("contNetns").unwrap_or_default(),
        })
    };
    let rows = rows["data"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    Ok(rows.iter().filter_map(read).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_with_their_marks() {
        let answer = r#"{"data":[["v0",["map",[["moor-container","12"],["moor-ifname","net1"],["contNetns","/run/netns/a"]]]],["v1",["map",[]]]],"headings":["name","external_ids"]}"#;
        let found = ports_of(answer).unwrap();
        assert_eq!(found.len(), 2);
        let first = Port {
            name: "v0".to_owned(),
            container: "12".to_owned(),
            ifname: "net1".to_owned(),
            netns: "/run/netns/a".to_owned(),
            ..Port::default()
        };
        assert_eq!(found[0], first);
        assert!(ports_of(r#"{"data":[],"headings":[]}"#).unwrap().is_empty());
        assert!(ports_of("").is_err());
    }

    #[test]
    fn a_value_that_looks_like_a_column_stays_a_value() {
        assert_eq!(id("k", r#"a" b=c"#), r#"external_ids:k="a\" b=c""#);
        assert_eq!(id("k", "12"), r#"external_ids:k="12""#);
    }
}
