//! nad-fn: when all claims of an Interface are answered, its NAD is written.
//!
//! The configuration is a list of plugins without a name, in the published order of keys. Easy to get wrong: the
//! function begins with the NAD's *condition*, which interface-fn makes; and some of what is published would be
//! refused by a plugin (an address `{}`, an empty configuration, a master `.100`). It is written all the same,
//! because packages are compared with what the published function writes, and said as a warning.

use mooring_api::{Code, Family, Finding, HostCidr};
use serde::Serialize;
use serde_json::{Value, json};

use super::engine::{Failure, Input, Rule, Updated, Watch};
use super::interface::{POD_NETWORK, network_instance, text};
use super::kinds::{CLUSTER, INTERFACE, IP_CLAIM, NAD, NETWORK, VLAN_CLAIM};
use super::seen::Seen;
use super::{NAMESPACE, function_name};
use crate::bundle::Object;

/// For NADs.
pub(super) const RULE: Rule = Rule {
    subject: NAD,
    owns: &[],
    watches: &[
        (CLUSTER, Watch::Global),
        (NETWORK, Watch::Global),
        (IP_CLAIM, Watch::Owned),
        (VLAN_CLAIM, Watch::Owned),
        (INTERFACE, Watch::Owned),
    ],
    root: false,
    one_per_owner: true,
    populate: |_, _| Ok(Vec::new()),
    update,
};

#[derive(Serialize)]
struct Config {
    #[serde(rename = "cniVersion")]
    version: &'static str,
    plugins: Vec<Plugin>,
}

/// In the order in which the published function prints its keys.
#[derive(Default, Serialize)]
struct Plugin {
    #[serde(rename = "type")]
    kind: String,
    capabilities: Capabilities,
    #[serde(skip_serializing_if = "String::is_empty")]
    master: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    mode: &'static str,
    ipam: Ipam,
    #[serde(rename = "vlanId", skip_serializing_if = "Option::is_none")]
    vlan: Option<u64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    bridge: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
}

#[derive(Default, Serialize)]
struct Capabilities {
    #[serde(skip_serializing_if = "is_false")]
    ips: bool,
    #[serde(skip_serializing_if = "is_false")]
    mac: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

#[derive(Default, Serialize)]
struct Ipam {
    #[serde(rename = "type", skip_serializing_if = "str::is_empty")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<Address>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routes: Vec<Route>,
}

#[derive(Serialize)]
struct Address {
    #[serde(skip_serializing_if = "String::is_empty")]
    address: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    gateway: String,
}

#[derive(Serialize)]
struct Route {
    dst: String,
    gw: String,
}

fn update(input: &Input<'_>) -> Result<Updated, Failure> {
    let seen = input.seen;
    let cluster = seen.cluster()?;
    let interfaces = input.all(INTERFACE);
    let Some(interface) = interfaces.first() else {
        let text = "expected Interface object to generate the nad";
        return Err(Failure::new(Code::UnknownWorkload, text));
    };
    let function = function_name(interface);
    let namespace = interface.annotation(NAMESPACE).unwrap_or_default();
    if function.is_empty() || namespace.is_empty() {
        let text = format!(
            "expecting a for name and for namespace, got forName: {function}, forNamespace: {namespace}"
        );
        return Err(Failure::new(Code::InvalidAnnotation, text).at("metadata.annotations"));
    }
    let (_, network) = network_instance(interface)?;
    if network == POD_NETWORK {
        return Ok(Updated::default());
    }
    let (claims, vlans) = (input.all(IP_CLAIM), input.all(VLAN_CLAIM));
    if claims.is_empty() && vlans.is_empty() {
        let text = "expected one of IPClaim or VLANClaim objects to generate the nad";
        return Err(Failure::new(Code::InvalidNad, text));
    }
    let vlan = vlans.last().and_then(|claim| {
        let id = claim.value.pointer("/status/vlanID")?.as_u64();
        id.filter(|id| *id != 0)
    });
    let config = if claims.is_empty() {
        String::new()
    } else {
        let cni = text(interface, "cniType");
        cluster.offers(cni)?;
        let mut plugins = plugins(cni, &cluster.master, vlan)?;
        plugins[0].ipam.addresses = addresses(&claims);
        plugins[0].ipam.routes = routes(&claims, seen)?;
        let config = Config {
            version: "0.3.1",
            plugins,
        };
        serde_json::to_string(&config).expect("it has string keys only")
    };
    let value = json!({
        "apiVersion": NAD.api_version,
        "kind": NAD.kind,
        "metadata": {
            "name": format!("{function}-{}", interface.name()),
            "namespace": namespace,
            "annotations": {},
        },
        "spec": { "config": config },
    });
    let object = Object {
        value,
        source: None,
    };
    let said = warnings(&object, &config, &cluster.master);
    Ok(Updated {
        object: Some(object),
        said,
    })
}

/// One plugin, and for macvlan a second one that lets the pod choose its MAC.
fn plugins(cni: &str, master: &str, vlan: Option<u64>) -> Result<Vec<Plugin>, Failure> {
    let mut plugin = Plugin {
        kind: cni.to_owned(),
        ..Plugin::default()
    };
    plugin.ipam.kind = "static";
    if !matches!(cni, "vlan" | "bridge") {
        plugin.capabilities.ips = true;
        plugin.mode = if cni == "ipvlan" { "l2" } else { "bridge" };
    }
    if cni == "bridge" {
        let Some(vlan) = vlan else {
            return Err(Failure::new(Code::VlanMissing, "unknown vlanID"));
        };
        plugin.bridge = format!("cni{vlan}");
        plugin.name.clone_from(&plugin.bridge);
    } else {
        plugin.master = match vlan.filter(|_| cni != "vlan") {
            Some(vlan) => format!("{master}.{vlan}"),
            None => master.to_owned(),
        };
        // The published library leaves it out, and no published case holds that.
        plugin.vlan = vlan.filter(|_| cni == "vlan");
        if plugin.master.is_empty() {
            let text = "unknown nad master interface";
            return Err(Failure::new(Code::NoFittingNic, text));
        }
    }
    let mut plugins = vec![plugin];
    if cni == "macvlan" {
        let mut tuning = Plugin {
            kind: "tuning".to_owned(),
            ..Plugin::default()
        };
        tuning.capabilities.mac = true;
        plugins.push(tuning);
    }
    Ok(plugins)
}

fn answer<'a>(claim: &'a Object, key: &str) -> &'a str {
    let status = claim.value.get("status").and_then(|s| s.get(key));
    status.and_then(Value::as_str).unwrap_or_default()
}

/// One per prefix, ordered as text.
fn addresses(claims: &[&Object]) -> Vec<Address> {
    let mut addresses: Vec<Address> = Vec::new();
    for claim in claims {
        let address = answer(claim, "prefix");
        if addresses.iter().all(|a| a.address != address) {
            addresses.push(Address {
                address: address.to_owned(),
                gateway: answer(claim, "gateway").to_owned(),
            });
        }
    }
    addresses.sort_by(|a, b| a.address.cmp(&b.address));
    addresses
}

/// To every prefix of the claim's routing table that is of its family, by the claim's gateway; ordered as text.
fn routes(claims: &[&Object], seen: &Seen) -> Result<Vec<Route>, Failure> {
    let mut routes: Vec<Route> = Vec::new();
    for claim in claims {
        let (address, gateway) = (answer(claim, "prefix"), answer(claim, "gateway"));
        if address.is_empty() || gateway.is_empty() {
            continue;
        }
        let instance = claim.value.pointer("/spec/networkInstance/name");
        let instance = instance.and_then(Value::as_str).unwrap_or_default();
        for table in seen.tables.iter().filter(|t| t.name == instance) {
            for prefix in &table.prefixes {
                let same = family(prefix)? == family(address)?;
                if same && routes.iter().all(|r| r.dst != *prefix) {
                    routes.push(Route {
                        dst: prefix.clone(),
                        gw: gateway.to_owned(),
                    });
                }
            }
        }
    }
    routes.sort_by(|a, b| a.dst.cmp(&b.dst));
    Ok(routes)
}

fn family(prefix: &str) -> Result<Family, Failure> {
    let read: Result<HostCidr, _> = prefix.parse();
    read.map(|p| p.family())
        .map_err(|error| Failure::new(Code::InvalidField, error.to_string()))
}

/// What a plugin would refuse when the pod starts.
fn warnings(nad: &Object, config: &str, master: &str) -> Vec<Finding> {
    let mut said = Vec::new();
    let mut warn = |text: &str, help: &str| {
        let finding = Finding::warning(Code::InvalidNad, text).on(&nad.reference());
        said.push(finding.at("spec.config").help(help));
    };
    if config.is_empty() {
        warn(
            "the configuration is empty, since the Interface has a VLAN and no address",
            "Give the Interface an address, or remove it.",
        );
    } else if config.contains("[{}") || config.contains(",{}") {
        warn(
            "an address is empty, since its claim has no answer; the static plugin refuses it",
            "Run ipam-fn, then nad-fn again.",
        );
    }
    if master.is_empty() && !config.is_empty() {
        warn(
            "the master has no name in front of its VLAN",
            "Set masterInterface of the WorkloadCluster.",
        );
    }
    said
}
