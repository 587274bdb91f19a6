//! What a CNI plugin would refuse in a NAD, said before a pod meets it.

use std::net::IpAddr;

use mooring_api::{Cidr, Code, Finding, HostCidr};
use serde_json::{Map, Value};

use super::{addresses, list, plugins, text, uses};
use crate::cni::member;
use crate::networks::Entry;

const FIELD: &str = "spec.config";

/// Findings about a configuration; none if every plugin we know would take it. The caller adds the
/// object. An empty text is fine: then the configuration is a file on the node.
pub fn check(config: &str) -> Vec<Finding> {
    if config.trim().is_empty() {
        return Vec::new();
    }
    let value: Value = match serde_json::from_str(config) {
        Ok(value) => value,
        Err(error) => return vec![not_json(config, &error)],
    };
    let mut out = Findings::default();
    match value.get("plugins") {
        _ if !value.is_object() => out.add("", "is not an object", "write {\"type\": …}"),
        Some(Value::Array(list)) if list.is_empty() => {
            out.add("plugins", "is empty", "name at least one plugin");
        }
        Some(Value::Array(list)) => {
            for (i, plugin) in list.iter().enumerate().filter(|(_, p)| !p.is_object()) {
                let what = format!("is {plugin}, not an object");
                out.add(&format!("plugins[{i}]"), what, "write {\"type\": …}");
            }
        }
        Some(_) => out.add("plugins", "is not a list", "write \"plugins\": [ … ]"),
        None => {}
    }
    for (path, plugin) in plugins(&value) {
        if text(plugin, "type").is_none() {
            let what = "is missing, so no plugin can be called";
            out.add(&format!("{path}type"), what, "name the CNI plugin");
        }
        match member(plugin, "ipam") {
            None | Some(Value::Null) => {}
            Some(Value::Object(ipam)) => out.ipam(&format!("{path}ipam"), ipam),
            Some(_) => out.add(&format!("{path}ipam"), "is not an object", ""),
        }
    }
    out.0
}

/// Findings about one attachment and the NAD it names: an address has one carrier.
///
/// Multus appends the annotation's `ips` to the addresses in the NAD unless a plugin declares
/// `capabilities.ips`; the pod then has both, or the same one twice and does not start.
pub fn check_selection(config: &str, entry: &Entry) -> Vec<Finding> {
    let Ok(value) = serde_json::from_str::<Value>(config) else {
        return Vec::new();
    };
    let replaces = plugins(&value).iter().any(|(_, plugin)| {
        let wished = member(plugin, "capabilities").and_then(Value::as_object);
        let ips = wished.and_then(|wished| wished.get("ips"));
        ips.and_then(Value::as_bool) == Some(true)
    });
    let stands = addresses(config)
        .into_iter()
        .find_map(|used| match used.what {
            uses::Use::Address(host) => Some(host),
            uses::Use::Range { .. } => None,
        });
    match (stands, entry.ips().first()) {
        (Some(host), Some(ip)) if !replaces => vec![
            Finding::error(
                Code::InvalidNad,
                format!(
                    "network {} carries {host} and the annotation asks for {ip}: the pod would get both",
                    entry.name()
                ),
            )
            .at(FIELD)
            .help("keep the address in one place: remove ips from the annotation or addresses from the NAD"),
        ],
        _ => Vec::new(),
    }
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, path: &str, what: impl Into<String>, help: &str) {
        let subject = if path.is_empty() { "it" } else { path };
        let message = format!(
            "the CNI configuration is refused: {subject} {}",
            what.into()
        );
        let finding = Finding::error(Code::InvalidNad, message);
        self.0.push(finding.at(FIELD).help(help));
    }

    fn ipam(&mut self, path: &str, ipam: &Map<String, Value>) {
        for key in ["addresses", "ranges", "ipRanges", "routes", "exclude"] {
            if member(ipam, key).is_some_and(|v| !v.is_null() && !v.is_array()) {
                self.add(&format!("{path}.{key}"), "is not a list", "");
            }
        }
        match text(ipam, "type") {
            // Chained plugins of other generators carry an empty object.
            None if ipam.is_empty() => return,
            None => self.add(
                &format!("{path}.type"),
                "is missing, so nobody hands out addresses",
                "name the IPAM plugin: static, host-local, whereabouts, moor",
            ),
            Some("static") => self.addresses(path, ipam),
            Some("host-local") => {
                let sets = list(ipam, "ranges");
                if sets.is_empty() && text(ipam, "subnet").is_none() {
                    self.add(path, "has neither ranges nor subnet", "write \"ranges\"");
                }
                self.subnet(path, ipam);
                for (i, set) in sets.iter().enumerate() {
                    let Some(set) = set.as_array() else {
                        let path = format!("{path}.ranges[{i}]");
                        self.add(&path, "is not a list", "ranges is a list of lists");
                        continue;
                    };
                    for (j, range) in set.iter().enumerate() {
                        let path = format!("{path}.ranges[{i}][{j}]");
                        match range.as_object() {
                            Some(range) if text(range, "subnet").is_none() => {
                                self.add(&format!("{path}.subnet"), "is missing", "");
                            }
                            Some(range) => self.subnet(&path, range),
                            None => self.add(&path, "is not an object", ""),
                        }
                    }
                }
            }
            Some("whereabouts") => {
                self.addresses(path, ipam);
                if text(ipam, "range").is_none() && list(ipam, "ipRanges").is_empty() {
                    let help = "write \"range\"; the key for several is \"ipRanges\"";
                    self.add(path, "has neither range nor ipRanges", help);
                }
                if ipam.keys().any(|k| k.starts_with("etcd_")) {
                    self.add(
                        path,
                        "names an etcd, which whereabouts no longer reads: clusters would not see each other's addresses",
                        "give each cluster its own range, or use ipam-flavour moor with a hub",
                    );
                }
            }
            Some(_) => return,
        }
        self.routes(path, ipam);
    }

    fn addresses(&mut self, path: &str, ipam: &Map<String, Value>) {
        for (i, entry) in list(ipam, "addresses").iter().enumerate() {
            let path = format!("{path}.addresses[{i}]");
            let Some(entry) = entry.as_object() else {
                self.add(&path, "is not an object", "write {\"address\": …}");
                continue;
            };
            let address = text(entry, "address").unwrap_or_default();
            let Ok(host) = address.parse::<HostCidr>() else {
                let what = if address.parse::<IpAddr>().is_ok() {
                    format!("{address:?} has no length")
                } else {
                    format!("{address:?} is not an address")
                };
                let help = "write ADDRESS/LENGTH, such as 10.1.2.20/24";
                self.add(&format!("{path}.address"), what, help);
                continue;
            };
            if let Some(gateway) = text(entry, "gateway") {
                self.gateway(&path, gateway, host.subnet());
            }
        }
    }

    fn subnet(&mut self, path: &str, range: &Map<String, Value>) {
        let Some(written) = text(range, "subnet") else {
            return;
        };
        let subnet = match written.parse::<Cidr>() {
            Ok(subnet) => subnet,
            Err(error) => {
                let path = format!("{path}.subnet");
                return self.add(&path, format!("cannot be used: {error}"), "");
            }
        };
        if subnet.prefix_len() + 2 > subnet.family().bits() {
            let what = format!("{subnet} is too small for host-local");
            let help = "host-local needs a /30, or a /126, at least";
            self.add(&format!("{path}.subnet"), what, help);
        }
        for key in ["rangeStart", "rangeEnd"] {
            let Some(end) = text(range, key) else {
                continue;
            };
            if !end.parse().is_ok_and(|addr| subnet.contains(addr)) {
                let what = format!("{end:?} is not inside {subnet}");
                self.add(&format!("{path}.{key}"), what, "");
            }
        }
        if let Some(gateway) = text(range, "gateway") {
            self.gateway(path, gateway, subnet);
        }
    }

    fn gateway(&mut self, path: &str, gateway: &str, subnet: Cidr) {
        let path = format!("{path}.gateway");
        match gateway.parse::<IpAddr>() {
            Ok(addr) if subnet.contains(addr) => {}
            Ok(addr) => self.add(
                &path,
                format!("{addr} is outside {subnet}"),
                "the pod cannot reach it on this link; use an address of the subnet",
            ),
            Err(_) => self.add(&path, format!("{gateway:?} is not an address"), ""),
        }
    }

    fn routes(&mut self, path: &str, ipam: &Map<String, Value>) {
        for (i, route) in list(ipam, "routes").iter().enumerate() {
            let of = |key| route.as_object().and_then(|route| text(route, key));
            let dst = of("dst").unwrap_or_default();
            // The plugins mask host bits away themselves.
            if dst.parse::<HostCidr>().is_err() {
                let what = format!("{dst:?} is not a network");
                let help = "write NETWORK/LENGTH, such as 10.2.0.0/16";
                self.add(&format!("{path}.routes[{i}].dst"), what, help);
            }
            if let Some(gw) = of("gw")
                && gw.parse::<IpAddr>().is_err()
            {
                let what = format!("{gw:?} is not an address");
                self.add(&format!("{path}.routes[{i}].gw"), what, "");
            }
        }
    }
}

/// Says what people do: comment in it, or leave a comma behind.
fn not_json(config: &str, error: &serde_json::Error) -> Finding {
    let lines: Vec<&str> = config.lines().collect();
    // The parser stops at the token after a stray comma, which may be a line below it.
    let number = error.line().clamp(1, lines.len().max(1));
    let line = lines.get(number - 1).copied().unwrap_or_default().trim();
    let at = error.column().saturating_sub(1);
    let rest = lines
        .get(number - 1)
        .and_then(|l| l.get(at..))
        .unwrap_or_default();
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or(&reason);
    let (what, help) = if rest.starts_with('#') || rest.starts_with("//") {
        (
            "a comment stands in it".to_owned(),
            "JSON has no comments: remove it, or put it above `config:`",
        )
    } else if reason.contains("trailing comma") {
        (
            "a comma stands before a closing bracket".to_owned(),
            "remove the comma",
        )
    } else {
        (reason.to_owned(), "correct the JSON")
    };
    Finding::error(
        Code::InvalidNad,
        format!("the CNI configuration is not JSON: {what}, in line {number} of the text: {line}"),
    )
    .at(FIELD)
    .help(help)
}
