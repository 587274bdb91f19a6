//! The IPAM plugin `static`: the addresses that are written down. It keeps nothing, so DEL and GC have nothing to do.
//!
//! | source | what it does to what came before |
//! |---|---|
//! | `ipam.addresses` | – |
//! | `CNI_ARGS` `IP` | appends; `GATEWAY` is for the addresses in whose subnet it lies |
//! | `args.cni.ips` | replaces |
//! | `runtimeConfig.ips` | replaces |
//!
//! Called by the frame, for itself or on behalf of a main plugin. Easy to get wrong: addresses that replace have no gateway,
//! and routes without one then go to the link; the reference does the same.

use std::net::IpAddr;

use mooring_api::HostCidr;
use mooring_attach::cni::{CniError, CniResult, CniRoute, Dns, Ip, Request};

use super::asked::Asked;
use super::host_local::one_per_family;
use crate::call::Call;
use crate::plugin::Plugin;

/// The plugin.
#[derive(Debug)]
pub(crate) struct Static;

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Keys {
    addresses: Vec<Address>,
    routes: Vec<CniRoute>,
    dns: Dns,
}

#[derive(serde::Deserialize)]
struct Address {
    #[serde(default)]
    address: String,
    #[serde(default)]
    gateway: String,
}

impl Plugin for Static {
    fn about(&self) -> &'static str {
        "addresses that the configuration names"
    }

    fn add(&self, call: &Call<'_>) -> Result<CniResult, CniError> {
        wanted(call.request)
    }

    fn del(&self, _: &Call<'_>) -> Result<(), CniError> {
        Ok(())
    }

    /// Every address that is wanted is in prevResult, with its gateway.
    fn check(&self, call: &Call<'_>) -> Result<(), CniError> {
        let wanted = wanted(call.request)?;
        let Some(prev) = &call.request.config.prev else {
            return Err(CniError::config(
                "prevResult",
                "required prevResult missing",
            ));
        };
        for ip in &wanted.ips {
            let given = prev
                .ips
                .iter()
                .find(|p| p.address.addr() == ip.address.addr());
            let same = given.is_some_and(|p| ip.gateway.is_none() || ip.gateway == p.gateway);
            if !same {
                let ifname = call.request.ifname();
                let addr = ip.address.addr();
                return Err(CniError::internal(format!(
                    "static: Failed to match addr {addr} on interface {ifname}"
                )));
            }
        }
        Ok(())
    }

    /// An ADD succeeds whenever the configuration is sound.
    fn status(&self, call: &Call<'_>) -> Result<(), CniError> {
        wanted(call.request).map(drop)
    }

    fn gc(&self, _: &Call<'_>) -> Result<(), CniError> {
        Ok(())
    }
}

/// The result of an ADD: a function of the request.
fn wanted(request: &Request) -> Result<CniResult, CniError> {
    let config = &request.config;
    if config.ipam.is_none() {
        return Err(CniError::config("ipam", "missing"));
    }
    let keys: Keys = config.ipam_keys()?;
    let asked = Asked::new(request)?;
    let ips = if !asked.runtime.is_empty() {
        only("runtimeConfig.ips", &asked.runtime)?
    } else if !asked.config.is_empty() {
        only("args.cni.ips", &asked.config)?
    } else {
        appended(&keys.addresses, &asked)?
    };
    one_per_family(config.version, ips.iter().map(|ip| ip.address.family()))?;
    Ok(CniResult {
        ips,
        routes: keys.routes,
        dns: keys.dns,
        ..CniResult::default()
    })
}

fn only(path: &str, texts: &[String]) -> Result<Vec<Ip>, CniError> {
    let one = |text: &String| Ok(Ip::new(cidr(path, text)?, None));
    texts.iter().map(one).collect()
}

fn appended(configured: &[Address], asked: &Asked) -> Result<Vec<Ip>, CniError> {
    let mut ips = Vec::new();
    for (at, Address { address, gateway }) in configured.iter().enumerate() {
        let path = format!("ipam.addresses[{at}]");
        let gateway = match gateway.as_str() {
            "" => None,
            text => Some(addr(&format!("{path}.gateway"), text)?),
        };
        ips.push(Ip::new(cidr(&format!("{path}.address"), address)?, gateway));
    }
    let gateways = asked.gateways.iter();
    let gateways: Vec<IpAddr> = gateways
        .map(|text| addr("CNI_ARGS GATEWAY", text))
        .collect::<Result<_, _>>()?;
    for text in &asked.args {
        ips.push(Ip::new(cidr("CNI_ARGS IP", text)?, None));
    }
    for ip in &mut ips {
        let inside = gateways
            .iter()
            .find(|gateway| ip.address.subnet().contains(**gateway));
        // A gateway of the configuration stays: the reference asks for none of these addresses either.
        ip.gateway = ip.gateway.or(inside.copied());
    }
    Ok(ips)
}

fn cidr(path: &str, text: &str) -> Result<HostCidr, CniError> {
    text.parse().map_err(|_| {
        CniError::config(
            path,
            format!("{text:?} is not in CIDR notation, such as 10.1.2.20/24"),
        )
    })
}

fn addr(path: &str, text: &str) -> Result<IpAddr, CniError> {
    match text.parse::<IpAddr>() {
        Ok(addr) => Ok(addr.to_canonical()),
        Err(_) => Err(CniError::config(path, format!("{text:?} is no IP address"))),
    }
}

#[cfg(test)]
mod tests {
    use mooring_attach::cni::{CniArgs, Config, Verb};
    use serde_json::{Value, json};

    use super::*;

    fn request(version: &str, args: &str, more: &Value) -> Request {
        let mut config = json!({"cniVersion": version, "name": "net", "type": "static"});
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        Request {
            verb: Verb::Add,
            container: "c".to_owned(),
            netns: None,
            ifname: Some("net1".parse().unwrap()),
            args: CniArgs::parse(args),
            path: Vec::new(),
            own_netns_allowed: false,
            trace: None,
            config: Config::parse(Verb::Add, config.to_string().as_bytes()).unwrap(),
        }
    }

    fn ips(args: &str, more: Value) -> Result<Vec<String>, CniError> {
        let show = |ip: &Ip| match ip.gateway {
            None => ip.address.to_string(),
            Some(gateway) => format!("{} via {gateway}", ip.address),
        };
        let result = wanted(&request("1.0.0", args, &more))?;
        Ok(result.ips.iter().map(show).collect())
    }

    fn addresses() -> Value {
        json!({"type": "static", "addresses": [
            {"address": "10.0.0.2/24", "gateway": "10.0.0.1"}, {"address": "10.1.0.2/24"}]})
    }

    #[test]
    fn arguments_append_and_the_two_lists_replace() {
        let configured = ["10.0.0.2/24 via 10.0.0.1", "10.1.0.2/24"];
        assert_eq!(ips("", json!({"ipam": addresses()})).unwrap(), configured);
        assert_eq!(
            ips(
                "IP=10.2.0.2/24,fd00::2/64;GATEWAY=10.2.0.1,fd00::1",
                json!({"ipam": addresses()})
            )
            .unwrap(),
            [
                configured[0],
                configured[1],
                "10.2.0.2/24 via 10.2.0.1",
                "fd00::2/64 via fd00::1"
            ]
        );
        let mut more = json!({"ipam": addresses(), "args": {"cni": {"ips": ["10.3.0.2/24"]}}});
        assert_eq!(
            ips("IP=10.2.0.2/24", more.clone()).unwrap(),
            ["10.3.0.2/24"]
        );
        more["runtimeConfig"] = json!({"ips": ["10.4.0.2/24", "10.4.0.3/24"]});
        assert_eq!(
            ips("IP=10.2.0.2/24", more).unwrap(),
            ["10.4.0.2/24", "10.4.0.3/24"]
        );
    }

    #[test]
    fn a_gateway_of_the_arguments_serves_addresses_that_have_none() {
        assert_eq!(
            ips("GATEWAY=10.0.0.9,10.1.0.9", json!({"ipam": addresses()})).unwrap(),
            ["10.0.0.2/24 via 10.0.0.1", "10.1.0.2/24 via 10.1.0.9"]
        );
    }

    #[test]
    fn an_address_without_prefix_is_refused_in_every_source_with_its_place() {
        let bare = json!({"type": "static"});
        for (args, more, place) in [
            ("IP=10.0.0.2", json!({"ipam": bare}), "CNI_ARGS IP"),
            ("IP=10.0.0.2/33", json!({"ipam": bare}), "CNI_ARGS IP"),
            ("GATEWAY=10.0.0", json!({"ipam": bare}), "CNI_ARGS GATEWAY"),
            (
                "",
                json!({"ipam": bare, "args": {"cni": {"ips": ["10.0.0.2"]}}}),
                "args.cni.ips",
            ),
            (
                "",
                json!({"ipam": bare, "runtimeConfig": {"ips": ["x"]}}),
                "runtimeConfig.ips",
            ),
            (
                "",
                json!({"ipam": bare, "runtimeConfig": {"ips": [7]}}),
                "runtimeConfig.ips",
            ),
            (
                "",
                json!({"ipam": {"type": "static", "addresses": [{"address": "10.0.0.2/24"}, {}]}}),
                "ipam.addresses[1].address",
            ),
            (
                "",
                json!({"ipam": {"type": "static", "addresses": [{"address": "10.0.0.2/24", "gateway": "x"}]}}),
                "ipam.addresses[0].gateway",
            ),
            ("", json!({}), "ipam: missing"),
        ] {
            let error = ips(args, more).unwrap_err();
            assert_eq!(error.code, CniError::CONFIG, "{error}");
            assert!(error.msg.contains(place), "{error} does not say {place}");
        }
    }

    #[test]
    fn an_unknown_argument_is_refused_unless_it_is_to_be_ignored() {
        assert_eq!(
            ips("K8S_POD_NAME=p", json!({"ipam": addresses()}))
                .unwrap_err()
                .code,
            CniError::ENV
        );
        assert!(
            ips(
                "IgnoreUnknown=1;K8S_POD_NAME=p",
                json!({"ipam": addresses()})
            )
            .is_ok()
        );
    }

    #[test]
    fn no_address_at_all_is_a_result_and_two_of_a_family_need_a_newer_version() {
        assert_eq!(
            ips("", json!({"ipam": {"type": "static"}})).unwrap(),
            Vec::<String>::new()
        );
        assert!(wanted(&request("0.2.0", "", &json!({"ipam": addresses()}))).is_err());
        assert!(wanted(&request("0.3.1", "", &json!({"ipam": addresses()}))).is_ok());
    }
}
