//! Open vSwitch through `ovs-vsctl`: one call is one transaction of its database.
//!
//! Ports carry who they are for in `external_ids`, so that DEL and GC need nothing else: the database outlives reboots
//! and interfaces. Easy to get wrong: every value is quoted as a string of the database, or a container id of digits is
//! read as a number; and `ovs-vsctl` waits for the switch for ever unless it is told not to.

use std::time::Duration;

use mooring_attach::cni::CniError;
use mooring_host::program;
use serde_json::Value;

use super::config::{Mode, Wanted};
use crate::plugins::bridge::Mark;

/// What `ovs-vsctl` is told, in seconds.
const TIMEOUT: &str = "--timeout=10";
/// A little more: it should be the one that gives up.
const BOUND: Duration = Duration::from_secs(12);
const OWNER: &str = "mooring.dev";
/// What ovs-cni writes.
const OTHER_OWNER: &str = "ovs-cni.network.kubevirt.io";

/// The switch's database.
#[derive(Clone, Debug)]
pub(super) struct Switch {
    database: Option<String>,
}

/// A port of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) container: String,
    pub(super) ifname: String,
}

impl Switch {
    pub(super) fn new(database: Option<String>) -> Self {
        Self { database }
    }

    /// Whether the node can have ports at all: without the program there is no switch, and nothing to clean up.
    pub(super) fn is_installed() -> bool {
        program::find("ovs-vsctl").is_ok()
    }

    /// Whether there is a switch with that bridge: what STATUS asks.
    pub(super) fn has(&self, bridge: &str) -> Result<(), CniError> {
        let bridges = self.ask(&["--bare", "list-br"])?;
        if bridges.lines().any(|name| name == bridge) {
            return Ok(());
        }
        let msg = format!("Open vSwitch has no bridge {bridge}");
        Err(CniError::unavailable(msg).with_details(format!("make it: ovs-vsctl add-br {bridge}")))
    }

    /// Makes the port, instead of any of that name.
    pub(super) fn add_port(
        &self,
        name: &str,
        wanted: &Wanted,
        mark: &Mark,
        netns: &str,
    ) -> Result<(), CniError> {
        let words = add_words(name, wanted, mark, netns);
        self.ask(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
        let answer = self.ask(&[
            "--format=json",
            "--columns=ofport,error",
            "list",
            "Interface",
            name,
        ])?;
        trouble(&answer).map_or(Ok(()), |why| {
            let msg = format!("Open vSwitch did not take the port {name}");
            Err(CniError::internal(msg).with_details(why))
        })
    }

    /// Removes a port; absent is success.
    pub(super) fn del_port(&self, name: &str) -> Result<(), CniError> {
        self.ask(&["--if-exists", "del-port", name]).map(drop)
    }

    /// What a port carries: mode, tag and trunks, as the database shows them.
    pub(super) fn vlans(&self, name: &str) -> Result<Value, CniError> {
        let answer = self.ask(&[
            "--format=json",
            "--columns=vlan_mode,tag,trunks",
            "list",
            "Port",
            name,
        ])?;
        let rows: Value =
            serde_json::from_str(&answer).map_err(|e| CniError::decode("ovs-vsctl", e))?;
        Ok(rows["data"][0].clone())
    }

    /// The bridge that a port is of.
    pub(super) fn bridge_of(&self, port: &str) -> Result<String, CniError> {
        Ok(self.ask(&["port-to-br", port])?.trim().to_owned())
    }

    /// The ports of one attachment: by our marks, or by those of ovs-cni, which knows namespaces instead of containers.
    pub(super) fn ports_of(
        &self,
        mark: &Mark,
        netns: Option<&str>,
    ) -> Result<Vec<String>, CniError> {
        let mut found = self.find(&[
            ("owner", OWNER),
            ("moor-container", mark.container()),
            ("moor-ifname", mark.ifname()),
        ])?;
        if let Some(netns) = netns.filter(|n| !n.is_empty()) {
            found.extend(self.find(&[
                ("owner", OTHER_OWNER),
                ("contNetns", netns),
                ("contIface", mark.ifname()),
            ])?);
        }
        Ok(found.into_iter().map(|port| port.name).collect())
    }

    /// The ports of a network.
    pub(super) fn ports_in(&self, network: &str) -> Result<Vec<Port>, CniError> {
        self.find(&[("owner", OWNER), ("moor-network", network)])
    }

    fn find(&self, ids: &[(&str, &str)]) -> Result<Vec<Port>, CniError> {
        let mut words: Vec<String> = [
            "--format=json",
            "--columns=name,external_ids",
            "find",
            "Port",
        ]
        .map(str::to_owned)
        .into();
        words.extend(ids.iter().map(|(key, value)| id(key, value)));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        ports(&self.ask(&words)?)
    }

    fn ask(&self, words: &[&str]) -> Result<String, CniError> {
        let away = |e: &program::ProgramError| {
            CniError::unavailable("Open vSwitch cannot be asked on this node").because(e)
        };
        let program = program::find("ovs-vsctl").map_err(|e| away(&e))?;
        let database = self.database.as_ref().map(|db| format!("--db={db}"));
        let mut args = vec![TIMEOUT];
        args.extend(database.as_deref());
        args.extend(words);
        let said = program::run(&program, &args, b"", BOUND).map_err(|e| away(&e))?;
        if said.ok {
            return Ok(said.stdout);
        }
        let why = said.stderr.trim();
        Err(if why.contains("no bridge named") {
            CniError::config("bridge", "the switch has no such bridge").with_details(why)
        } else if why.contains("database connection failed")
            || why.contains("Alarm clock")
            || why.is_empty()
        {
            CniError::try_again("Open vSwitch does not answer; is it running?").with_details(why)
        } else {
            CniError::internal("Open vSwitch refused").with_details(why)
        })
    }
}

fn add_words(name: &str, wanted: &Wanted, mark: &Mark, netns: &str) -> Vec<String> {
    // One that an ADD before left, perhaps on another bridge, goes in the same transaction: the switch then opens the
    // interface of today.
    let again = ["--if-exists", "del-port", name, "--", "add-port"];
    let mut words: Vec<String> = again.map(str::to_owned).into();
    words.extend([wanted.bridge.as_str().to_owned(), name.to_owned()]);
    let mut set = |table: &str, columns: Vec<String>| {
        words.extend(["--", "set", table, name].map(str::to_owned));
        words.extend(columns);
    };
    let list = |ids: &[mooring_api::VlanId]| {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        format!("trunks=[{}]", ids.join(","))
    };
    let mut port = match &wanted.mode {
        Mode::Access(0) => vec!["vlan_mode=access".to_owned()],
        Mode::Access(tag) => vec!["vlan_mode=access".to_owned(), format!("tag={tag}")],
        Mode::Trunk(ids) => vec!["vlan_mode=trunk".to_owned(), list(ids)],
        Mode::Native(tag, ids) => {
            vec![
                "vlan_mode=native-untagged".to_owned(),
                format!("tag={tag}"),
                list(ids),
            ]
        }
    };
    port.extend([
        id("owner", OWNER),
        id("moor-network", mark.network()),
        id("moor-container", mark.container()),
        id("moor-ifname", mark.ifname()),
        // What tools for ovs-cni look for.
        id("contIface", mark.ifname()),
        id("contNetns", netns),
    ]);
    set("Port", port);
    let mut interface = Vec::new();
    if !wanted.kind.is_empty() {
        interface.push(format!("type={}", quoted(&wanted.kind)));
    }
    interface.extend(wanted.ofport.map(|n| format!("ofport_request={n}")));
    interface.extend(wanted.ovn_port.as_deref().map(|port| id("iface-id", port)));
    if !interface.is_empty() {
        set("Interface", interface);
    }
    words
}

fn id(key: &str, value: &str) -> String {
    format!("external_ids:{key}={}", quoted(value))
}

/// A string of the database is written as one of JSON.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// What the switch says about an interface that it could not open.
fn trouble(answer: &str) -> Option<String> {
    let rows: Value = serde_json::from_str(answer).ok()?;
    let row = &rows["data"][0];
    let error = row[1].as_str().unwrap_or_default();
    if error.is_empty() && row[0].as_i64() != Some(-1) {
        return None;
    }
    Some(
        if error.is_empty() {
            "it has no OpenFlow port"
        } else {
            error
        }
        .to_owned(),
    )
}

/// Rows of name and `external_ids`: `["map", [[key, value], …]]`.
fn ports(answer: &str) -> Result<Vec<Port>, CniError> {
    let rows: Value = serde_json::from_str(answer).map_err(|e| CniError::decode("ovs-vsctl", e))?;
    let read = |row: &Value| {
        let ids = row[1][1].as_array()?;
        let get = |key: &str| {
            let pair = ids.iter().find(|pair| pair[0] == key)?;
            pair[1].as_str().map(str::to_owned)
        };
        Some(Port {
            name: row[0].as_str()?.to_owned(),
            container: get("moor-container").unwrap_or_default(),
            ifname: get("moor-ifname").unwrap_or_default(),
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
        let answer = r#"{"data":[["v0",["map",[["moor-container","12"],["moor-ifname","net1"]]]],["v1",["map",[]]]],"headings":["name","external_ids"]}"#;
        let found = ports(answer).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(
            (
                found[0].name.as_str(),
                found[0].container.as_str(),
                found[0].ifname.as_str()
            ),
            ("v0", "12", "net1")
        );
        assert!(ports(r#"{"data":[],"headings":[]}"#).unwrap().is_empty());
        assert!(ports("").is_err());
    }

    #[test]
    fn an_interface_that_the_switch_could_not_open_is_told_apart() {
        assert_eq!(trouble(r#"{"data":[[1,["set",[]]]]}"#), None);
        assert_eq!(trouble(r#"{"data":[[["set",[]],["set",[]]]]}"#), None);
        assert!(trouble(r#"{"data":[[-1,["set",[]]]]}"#).is_some());
        let said = r#"{"data":[[-1,"could not open network device x (No such device)"]]}"#;
        assert!(trouble(said).unwrap().contains("No such device"));
    }

    #[test]
    fn a_value_that_looks_like_a_column_stays_a_value() {
        assert_eq!(id("k", r#"a" b=c"#), r#"external_ids:k="a\" b=c""#);
        assert_eq!(id("k", "12"), r#"external_ids:k="12""#);
    }
}
