//! The ovs plugin's keys, checked before anything is touched.
//!
//! The names are those of ovs-cni. Easy to get wrong: without `vlan` the port is a trunk, of all VLANs or of those that
//! `trunk` lists; with both, `vlan` is the native one.

use std::path::{Path, PathBuf};

use mooring_api::{IfName, Mac, VlanId};
use mooring_attach::cni::{CniError, Request, member};
use mooring_host::ovs::remote;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::plugins::bridge::{Trunk, mac, mtu, trunk, vlan};

/// Where the options of the node are looked for when the configuration names no file, below `/etc`.
const FLAT: [&str; 2] = [
    "kubernetes/cni/net.d/ovs.d/ovs.conf",
    "cni/net.d/ovs.d/ovs.conf",
];
/// The bridge that OVN integrates with.
const OVN_BRIDGE: &str = "br-int";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Keys {
    bridge: String,
    vlan: Option<i64>,
    trunk: Vec<Trunk>,
    mtu: i64,
    #[serde(rename = "deviceID")]
    device: String,
    ofport_request: i64,
    interface_type: String,
    configuration_path: String,
    socket_file: String,
}

/// What is to be done.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) bridge: IfName,
    pub(super) mode: Mode,
    pub(super) mtu: Option<u32>,
    pub(super) ofport: Option<u16>,
    pub(super) kind: String,
    pub(super) mac: Option<Mac>,
    /// The logical port of OVN that this is.
    pub(super) ovn_port: Option<String>,
    /// Where the switch's database is; `None` for the program's default.
    pub(super) database: Option<String>,
}

/// What the port does with VLANs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// One VLAN, untagged; 0 is none.
    Access(u16),
    /// Tagged VLANs; none listed is all.
    Trunk(Vec<VlanId>),
    /// Tagged VLANs and one untagged.
    Native(VlanId, Vec<VlanId>),
}

impl Wanted {
    pub(super) fn of(request: &Request, etc: &Path) -> Result<Self, CniError> {
        let keys: Keys = request.config.keys()?;
        if !keys.device.is_empty() {
            // A veth instead would be a pod on the slow path that believes to be on the fast one.
            return Err(CniError::unsupported("deviceID", &keys.device)
                .with_details("hardware offload is not done; leave out the resource name"));
        }
        let ovn_port = argument(request, "ovnPort");
        let bridge = match (keys.bridge.as_str(), &ovn_port) {
            ("", Some(_)) => OVN_BRIDGE,
            ("", None) => return Err(CniError::config("bridge", "missing")),
            (name, _) => name,
        };
        let mode = mode(keys.vlan, &trunk("trunk", &keys.trunk)?)?;
        let ofport = match keys.ofport_request {
            0 => None,
            n => {
                let fits = u16::try_from(n).ok().filter(|n| (1..=65_279).contains(n));
                let why =
                    || CniError::config("ofport_request", format!("{n} is not within 1 to 65279"));
                Some(fits.ok_or_else(why)?)
            }
        };
        let word = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if !keys.interface_type.chars().all(word) {
            let why = format!("{:?} is no type of interface", keys.interface_type);
            return Err(CniError::config("interface_type", why));
        }
        let bad = |e: mooring_api::BadValue| CniError::config("bridge", e);
        Ok(Self {
            bridge: bridge.parse().map_err(bad)?,
            mode,
            mtu: mtu(keys.mtu)?,
            ofport,
            kind: keys.interface_type,
            mac: mac(request)?,
            ovn_port,
            database: database(&keys.socket_file, &keys.configuration_path, etc)?,
        })
    }
}

/// Where the database is, from keys that can be read without the rest: what DEL and GC ask.
pub(super) fn database_of(request: &Request, etc: &Path) -> Option<String> {
    let text = |key: &str| request.config.raw.text(key).unwrap_or_default();
    database(text("socket_file"), text("configuration_path"), etc).ok()?
}

fn mode(tag: Option<i64>, trunk: &[VlanId]) -> Result<Mode, CniError> {
    Ok(match (tag, trunk.is_empty()) {
        (None | Some(0), false) | (None, true) => Mode::Trunk(trunk.to_vec()),
        (Some(0), true) => Mode::Access(0),
        (Some(id), true) => Mode::Access(vlan("vlan", id)?.get()),
        (Some(id), false) => Mode::Native(vlan("vlan", id)?, trunk.to_vec()),
    })
}

/// The configuration's own socket, else that of the file it names, else that of the node's file.
fn database(own: &str, named: &str, etc: &Path) -> Result<Option<String>, CniError> {
    if !own.is_empty() {
        return Ok(Some(remote(own)));
    }
    let places: Vec<PathBuf> = if named.is_empty() {
        let root = etc.parent().unwrap_or(etc);
        FLAT.iter().map(|file| root.join(file)).collect()
    } else {
        vec![PathBuf::from(named)]
    };
    for file in places {
        let text = match std::fs::read(&file) {
            Ok(text) => text,
            Err(_) if named.is_empty() => continue,
            Err(e) => return Err(CniError::io(format!("reading {}", file.display()), e)),
        };
        let map: Map<String, Value> =
            serde_json::from_slice(&text).map_err(|e| CniError::decode(file.display(), e))?;
        let socket = member(&map, "socket_file").and_then(Value::as_str);
        return Ok(socket.filter(|s| !s.is_empty()).map(remote));
    }
    Ok(None)
}

/// A word about one attachment, in `CNI_ARGS` or `args.cni`, in any case of letters.
fn argument(request: &Request, key: &str) -> Option<String> {
    let pairs = request.args.pairs();
    let old = pairs.filter(|(k, v)| k.eq_ignore_ascii_case(key) && !v.is_empty());
    let old = old.last().map(|(_, v)| v.to_owned());
    let new = request.config.args_cni.text(key);
    old.or_else(|| new.map(str::to_owned))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
mod tests {
    use super::*;

    fn ids(list: &[u16]) -> Vec<VlanId> {
        list.iter()
            .map(|id| VlanId::try_from(*id).unwrap())
            .collect()
    }

    #[test]
    fn a_port_is_an_access_port_a_trunk_or_a_trunk_with_a_native_vlan() {
        let id = |id| VlanId::try_from(id).unwrap();
        assert_eq!(mode(None, &[]).unwrap(), Mode::Trunk(vec![]));
        assert_eq!(mode(Some(100), &[]).unwrap(), Mode::Access(100));
        assert_eq!(mode(Some(0), &[]).unwrap(), Mode::Access(0));
        assert_eq!(mode(None, &ids(&[5])).unwrap(), Mode::Trunk(ids(&[5])));
        assert_eq!(
            mode(Some(7), &ids(&[5])).unwrap(),
            Mode::Native(id(7), ids(&[5]))
        );
        assert!(mode(Some(4095), &[]).is_err());
        assert!(mode(Some(-1), &[]).is_err());
    }

    #[test]
    fn the_database_is_the_configurations_then_the_named_files_then_the_nodes() {
        let root = tempfile::tempdir().unwrap();
        let etc = root.path().join("cni");
        let node = root.path().join("cni/net.d/ovs.d/ovs.conf");
        std::fs::create_dir_all(node.parent().unwrap()).unwrap();
        assert_eq!(database("", "", &etc).unwrap(), None);
        std::fs::write(&node, r#"{"socket_file": "/run/a.sock"}"#).unwrap();
        assert_eq!(database("", "", &etc).unwrap().unwrap(), "unix:/run/a.sock");
        let named = root.path().join("other");
        assert!(database("", named.to_str().unwrap(), &etc).is_err());
        std::fs::write(&named, r#"{"socket_file": "tcp:10.0.0.1:6640"}"#).unwrap();
        assert_eq!(
            database("", named.to_str().unwrap(), &etc)
                .unwrap()
                .unwrap(),
            "tcp:10.0.0.1:6640"
        );
        assert_eq!(
            database("/b", named.to_str().unwrap(), &etc)
                .unwrap()
                .unwrap(),
            "unix:/b"
        );
    }
}
