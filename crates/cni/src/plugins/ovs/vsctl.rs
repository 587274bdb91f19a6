//! The ports of this plugin in the database of Open vSwitch ([`mooring_host::ovs`]).
//!
//! Ports carry who they are for in `external_ids`, so that DEL and GC need nothing else. Easy to get wrong: a port that is made again
//! takes the place of one that an ADD before left, in one transaction.

use mooring_attach::cni::CniError;
use mooring_host::ovs::{self, Database, OTHER_OWNER, OWNER, Port, id, quoted};
use serde_json::Value;

use super::config::{Mode, Wanted};
use crate::plugins::bridge::Mark;

/// The switch of a call.
#[derive(Clone, Debug)]
pub(super) struct Switch(Database);

impl Switch {
    pub(super) fn new(database: Option<String>) -> Self {
        Self(Database::new(database))
    }

    /// Whether the node can have ports at all: without the program there is no switch, and nothing to clean up.
    pub(super) fn is_installed() -> bool {
        ovs::is_installed()
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
        Ok(self.0.del_port(name)?)
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
        let mut found = self.0.ports(&[
            ("owner", OWNER),
            ("moor-container", mark.container()),
            ("moor-ifname", mark.ifname()),
        ])?;
        if let Some(netns) = netns.filter(|n| !n.is_empty()) {
            found.extend(self.0.ports(&[
                ("owner", OTHER_OWNER),
                ("contNetns", netns),
                ("contIface", mark.ifname()),
            ])?);
        }
        Ok(found.into_iter().map(|port| port.name).collect())
    }

    /// The ports of a network.
    pub(super) fn ports_in(&self, network: &str) -> Result<Vec<Port>, CniError> {
        Ok(self
            .0
            .ports(&[("owner", OWNER), ("moor-network", network)])?)
    }

    fn ask(&self, words: &[&str]) -> Result<String, CniError> {
        Ok(self.0.ask(words)?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_the_switch_could_not_open_is_told_apart() {
        assert_eq!(trouble(r#"{"data":[[1,["set",[]]]]}"#), None);
        assert_eq!(trouble(r#"{"data":[[["set",[]],["set",[]]]]}"#), None);
        assert!(trouble(r#"{"data":[[-1,["set",[]]]]}"#).is_some());
        let said = r#"{"data":[[-1,"could not open network device x (No such device)"]]}"#;
        assert!(trouble(said).unwrap().contains("No such device"));
    }
}
