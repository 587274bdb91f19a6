//! Whether a text has the shape that the specification gives it: results of every version, errors.
//!
//! Written from the specification and not from our own types, so that the two can disagree.

use mooring_testkit::Said;
use serde_json::Value;

/// Every version, oldest first.
pub(crate) const VERSIONS: [&str; 7] = [
    "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0",
];

/// What a case finds wrong.
pub(crate) type Wrong = String;

/// Fails with a text unless the condition holds.
pub(crate) fn want(condition: bool, wrong: impl Into<Wrong>) -> Result<(), Wrong> {
    if condition { Ok(()) } else { Err(wrong.into()) }
}

/// A success without words.
pub(crate) fn silent(said: &Said) -> Result<(), Wrong> {
    want(said.code == Some(0), format!("it failed: {}", brief(said)))?;
    want(
        said.stdout.trim().is_empty(),
        format!("it printed {}", brief(said)),
    )
}

/// A success with a result of that version.
pub(crate) fn result(said: &Said, version: &str) -> Result<Value, Wrong> {
    want(said.code == Some(0), format!("it failed: {}", brief(said)))?;
    let value: Value = serde_json::from_str(&said.stdout)
        .map_err(|e| format!("no JSON ({e}): {}", brief(said)))?;
    want(
        value["cniVersion"] == version,
        format!("cniVersion is {}", value["cniVersion"]),
    )?;
    if version < "0.3.0" {
        old(&value)?;
    } else {
        newer(&value, version)?;
    }
    Ok(value)
}

fn old(value: &Value) -> Result<(), Wrong> {
    only("the result", value, &["cniVersion", "ip4", "ip6", "dns"])?;
    want(
        value["ip4"].is_object() || value["ip6"].is_object(),
        "no address",
    )?;
    for (key, colon) in [("ip4", false), ("ip6", true)] {
        let Some(part) = value.get(key) else { continue };
        only(key, part, &["ip", "gateway", "routes"])?;
        let ip = part["ip"].as_str().unwrap_or_default();
        want(
            ip.contains('/') && ip.contains(':') == colon,
            format!("{key}.ip is {ip:?}"),
        )?;
        routes(part, &["dst", "gw"])?;
    }
    Ok(())
}

fn newer(value: &Value, version: &str) -> Result<(), Wrong> {
    only(
        "the result",
        value,
        &["cniVersion", "interfaces", "ips", "routes", "dns"],
    )?;
    let empty = Vec::new();
    let interfaces = value["interfaces"].as_array().unwrap_or(&empty);
    for interface in interfaces {
        let known: &[&str] = match version {
            "1.0.0" | "1.1.0" => &["name", "mac", "mtu", "sandbox", "socketPath", "pciID"],
            _ => &["name", "mac", "sandbox"],
        };
        only("an interface", interface, known)?;
        let name = interface["name"].as_str().unwrap_or_default();
        want(!name.is_empty(), "an interface has no name")?;
    }
    for ip in value["ips"].as_array().unwrap_or(&empty) {
        let address = ip["address"].as_str().unwrap_or_default();
        want(address.contains('/'), format!("an address is {address:?}"))?;
        let family = if address.contains(':') { "6" } else { "4" };
        if version < "1.0.0" {
            only(
                "an address",
                ip,
                &["version", "address", "gateway", "interface"],
            )?;
            want(
                ip["version"] == family,
                format!("{address} says version {}", ip["version"]),
            )?;
        } else {
            only("an address", ip, &["address", "gateway", "interface"])?;
        }
        if let Some(index) = ip.get("interface") {
            let index = index.as_u64().and_then(|n| usize::try_from(n).ok());
            let inside = index.is_some_and(|n| n < interfaces.len());
            want(
                inside,
                format!(
                    "{address} is of interface {index:?} of {}",
                    interfaces.len()
                ),
            )?;
        }
    }
    let extras = ["dst", "gw", "mtu", "advmss", "priority", "table", "scope"];
    routes(
        value,
        if version < "1.0.0" {
            &extras[..2]
        } else {
            &extras
        },
    )?;
    only_if_there(
        "dns",
        value,
        &["nameservers", "domain", "search", "options"],
    )
}

fn routes(of: &Value, known: &[&str]) -> Result<(), Wrong> {
    for route in of["routes"].as_array().unwrap_or(&Vec::new()) {
        only("a route", route, known)?;
        let dst = route["dst"].as_str().unwrap_or_default();
        want(dst.contains('/'), format!("a route goes to {dst:?}"))?;
    }
    Ok(())
}

fn only_if_there(key: &str, of: &Value, known: &[&str]) -> Result<(), Wrong> {
    of.get(key).map_or(Ok(()), |value| only(key, value, known))
}

fn only(what: &str, value: &Value, known: &[&str]) -> Result<(), Wrong> {
    let object = value
        .as_object()
        .ok_or_else(|| format!("{what} is {value}"))?;
    let unknown = object.keys().find(|key| !known.contains(&key.as_str()));
    unknown.map_or(Ok(()), |key| Err(format!("{what} has {key:?}")))
}

/// A failure with an error object; gives its code and text.
pub(crate) fn error(said: &Said) -> Result<(u64, String), Wrong> {
    want(said.code != Some(0), "it succeeded")?;
    want(
        said.code.is_some(),
        format!("it was ended by a signal: {}", brief(said)),
    )?;
    let value: Value = serde_json::from_str(&said.stdout)
        .map_err(|e| format!("no JSON ({e}): {}", brief(said)))?;
    let code = value["code"].as_u64().ok_or("the error has no code")?;
    let msg = value["msg"].as_str().unwrap_or_default();
    want(!msg.is_empty(), "the error has no msg")?;
    let details = value["details"].as_str().unwrap_or_default();
    Ok((code, format!("{msg} {details}")))
}

/// A failure with that code.
pub(crate) fn refused(said: &Said, wanted: u64) -> Result<String, Wrong> {
    let (code, text) = error(said)?;
    want(code == wanted, format!("code {code} instead of {wanted}"))?;
    Ok(text)
}

/// One line of what a program said.
pub(crate) fn brief(said: &Said) -> String {
    let text = format!("{} {}", said.stdout, said.stderr);
    let text: Vec<&str> = text.split_whitespace().collect();
    text.join(" ").chars().take(300).collect()
}
