//! The configuration of host-local, checked. Pure.
//!
//! Range sets come from three places, in this order: `runtimeConfig.ipRanges`, the keys of one range directly in `ipam` (the
//! old style), `ipam.ranges`. Their position is their number, also in the store (`last_reserved_ip.N`). Easy to get wrong:
//! DEL and GC must work with a configuration that an ADD would refuse, so they read [`place`] only.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use mooring_api::{Family, HostCidr};
use mooring_attach::cni::{CniError, CniRoute, Config, Request, Version, read};
use serde_json::Value;

use super::range::{RangeKeys, RangeSet};
use crate::ipam::asked::Asked;

/// What an ADD needs to know.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) sets: Vec<RangeSet>,
    pub(super) requested: Vec<IpAddr>,
    pub(super) routes: Vec<CniRoute>,
    pub(super) resolv_conf: Option<PathBuf>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Keys {
    ranges: Vec<Vec<RangeKeys>>,
    routes: Vec<CniRoute>,
    resolv_conf: String,
}

impl Settings {
    pub(super) fn new(request: &Request) -> Result<Self, CniError> {
        let sets = sets(&request.config)?;
        let keys = keys(&request.config)?;
        Ok(Self {
            sets,
            requested: requested(&Asked::new(request)?)?,
            routes: keys.routes,
            resolv_conf: (!keys.resolv_conf.is_empty()).then(|| keys.resolv_conf.into()),
        })
    }
}

fn keys(config: &Config) -> Result<Keys, CniError> {
    if config.ipam.is_none() {
        return Err(CniError::config("ipam", "missing"));
    }
    config.ipam_keys()
}

/// The directory of a network: `dataDir`, else the node's own, and the network's name.
pub(super) fn place(config: &Config, default: &Path) -> PathBuf {
    let set = config.ipam.as_ref().and_then(|ipam| ipam.text("dataDir"));
    // The name has no slash and is no dot: the configuration was refused otherwise.
    set.map_or(default, Path::new).join(&config.name)
}

/// All range sets, in the order of their numbers.
pub(super) fn sets(config: &Config) -> Result<Vec<RangeSet>, CniError> {
    let keys = keys(config)?;
    let mut written: Vec<(String, Vec<RangeKeys>)> = Vec::new();
    for (at, set) in at_runtime(config)?.into_iter().enumerate() {
        written.push((format!("runtimeConfig.ipRanges[{at}]"), set));
    }
    let one: RangeKeys = config.ipam_keys()?;
    if one.subnet.as_ref().is_some_and(|s| !s.is_empty()) {
        written.push(("ipam".to_owned(), vec![one]));
    }
    for (at, set) in keys.ranges.into_iter().enumerate() {
        written.push((format!("ipam.ranges[{at}]"), set));
    }
    if written.is_empty() {
        return Err(CniError::config("ipam.ranges", "no IP ranges specified"));
    }
    let mut sets: Vec<RangeSet> = Vec::with_capacity(written.len());
    for (path, ranges) in &written {
        let set = RangeSet::new(ranges).map_err(|(range, bad)| {
            let at = if path == "ipam" || ranges.is_empty() {
                path.clone()
            } else {
                format!("{path}[{range}]")
            };
            CniError::config(&format!("{at}.{}", bad.key), bad.why)
        })?;
        if let Some(other) = sets.iter().position(|other| other.overlaps(&set)) {
            let why = format!("range set {other} overlaps with {}", sets.len());
            return Err(CniError::config(path, why));
        }
        sets.push(set);
    }
    one_per_family(config.version, sets.iter().map(RangeSet::family))?;
    Ok(sets)
}

fn at_runtime(config: &Config) -> Result<Vec<Vec<RangeKeys>>, CniError> {
    match config.runtime.get("ipRanges") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(value) => read(value).map_err(|e| CniError::config("runtimeConfig.ipRanges", e)),
    }
}

/// Results before 0.3.0 have room for one address of a family.
pub(in crate::ipam) fn one_per_family(
    version: Version,
    families: impl Iterator<Item = Family>,
) -> Result<(), CniError> {
    let mut seen = Vec::new();
    for family in families {
        if version < Version::V0_3_0 && seen.contains(&family) {
            let why =
                format!("CNI version {version} does not support more than 1 address per family");
            return Err(CniError::config("ipam", why));
        }
        seen.push(family);
    }
    Ok(())
}

/// All sources together; a prefix length is no part of the wish.
fn requested(asked: &Asked) -> Result<Vec<IpAddr>, CniError> {
    let all = [
        ("CNI_ARGS IP", &asked.args),
        ("args.cni.ips", &asked.config),
        ("runtimeConfig.ips", &asked.runtime),
    ];
    let mut requested = Vec::new();
    for (source, texts) in all {
        for text in texts {
            let addr = text.parse::<IpAddr>().ok();
            let addr = addr.or_else(|| Some(text.parse::<HostCidr>().ok()?.addr()));
            let addr =
                addr.ok_or_else(|| CniError::config(source, format!("{text:?} is no IP address")))?;
            requested.push(addr.to_canonical());
        }
    }
    Ok(requested)
}

#[cfg(test)]
mod tests {
    use mooring_attach::cni::{CniArgs, Verb};
    use serde_json::json;

    use super::*;

    fn config(version: &str, ipam: Value, runtime: Value) -> Config {
        let text = json!({"cniVersion": version, "name": "net", "type": "host-local",
            "ipam": ipam, "runtimeConfig": runtime});
        Config::parse(Verb::Add, text.to_string().as_bytes()).unwrap()
    }

    fn show(sets: &[RangeSet]) -> Vec<String> {
        sets.iter().map(RangeSet::to_string).collect()
    }

    #[test]
    fn range_sets_are_those_of_the_runtime_then_the_old_style_then_the_list() {
        let ipam = json!({"type": "host-local", "subnet": "10.1.0.0/30", "gateway": null,
            "ranges": [[{"subnet": "10.2.0.0/30"}, {"subnet": "10.3.0.0/30"}]]});
        let runtime = json!({"ipRanges": [[{"subnet": "10.9.0.0/30", "rangeStart": "10.9.0.2"}]]});
        assert_eq!(
            show(&sets(&config("1.0.0", ipam, runtime)).unwrap()),
            [
                "10.9.0.2-10.9.0.2",
                "10.1.0.1-10.1.0.2",
                "10.2.0.1-10.2.0.2,10.3.0.1-10.3.0.2"
            ]
        );
    }

    #[test]
    fn a_bad_range_is_refused_with_its_path() {
        let cases = [
            (json!({"type": "x"}), "ipam.ranges: no IP ranges specified"),
            (
                json!({"type": "x", "ranges": [[]]}),
                "ipam.ranges[0].subnet: empty range set",
            ),
            (
                json!({"type": "x", "ranges": [[{"subnet": "10.0.0.0/24"}], [{"subnet": "10.1.0.1/24"}]]}),
                "ipam.ranges[1][0].subnet: 10.1.0.1/24 has host bits set; the network is 10.1.0.0/24",
            ),
            (
                json!({"type": "x", "subnet": "10.0.0.0/24", "rangeEnd": "10.1.0.1"}),
                "ipam.rangeEnd: 10.1.0.1 is not in 10.0.0.0/24",
            ),
            (
                json!({"type": "x", "subnet": "10.0.0.0/24", "ranges": [[{"subnet": "10.0.0.0/25"}]]}),
                "ipam.ranges[0]: range set 0 overlaps with 1",
            ),
        ];
        for (ipam, why) in cases {
            let error = sets(&config("1.0.0", ipam, json!({}))).unwrap_err();
            assert_eq!(error.code, CniError::CONFIG);
            assert_eq!(error.msg, format!("invalid configuration: {why}"));
        }
    }

    #[test]
    fn an_old_result_has_room_for_one_address_of_a_family() {
        let two = json!({"type": "x", "ranges": [[{"subnet": "10.0.0.0/24"}], [{"subnet": "10.1.0.0/24"}]]});
        let both = json!({"type": "x", "ranges": [[{"subnet": "10.0.0.0/24"}], [{"subnet": "fd00::/64"}]]});
        assert!(sets(&config("0.2.0", two.clone(), json!({}))).is_err());
        assert!(sets(&config("0.3.0", two, json!({}))).is_ok());
        assert!(sets(&config("0.1.0", both, json!({}))).is_ok());
    }

    #[test]
    fn wishes_of_all_sources_count_with_and_without_prefix_and_in_lists() {
        let text = json!({"cniVersion": "1.0.0", "name": "net", "type": "host-local",
            "ipam": {"type": "host-local", "subnet": "10.0.0.0/24"},
            "args": {"cni": {"ips": ["10.0.0.3"]}}, "runtimeConfig": {"ips": ["10.0.0.4/24"]}});
        let request = Request {
            verb: Verb::Add,
            container: "c".to_owned(),
            netns: None,
            ifname: None,
            args: CniArgs::parse("IP=10.0.0.2/24, fd00::1"),
            path: Vec::new(),
            own_netns_allowed: false,
            trace: None,
            config: Config::parse(Verb::Add, text.to_string().as_bytes()).unwrap(),
        };
        let settings = Settings::new(&request).unwrap();
        let requested: Vec<String> = settings.requested.iter().map(IpAddr::to_string).collect();
        assert_eq!(requested, ["10.0.0.2", "fd00::1", "10.0.0.3", "10.0.0.4"]);
        let request = Request {
            args: CniArgs::parse("IP=10.0.0.x"),
            ..request
        };
        let error = Settings::new(&request).unwrap_err();
        assert!(error.msg.contains("CNI_ARGS IP"), "{error}");
    }

    #[test]
    fn the_place_is_the_data_directory_and_the_network() {
        let default = Path::new("/var/lib/cni/networks");
        let of = |ipam| place(&config("1.0.0", ipam, json!({})), default);
        assert_eq!(of(json!({"type": "x"})), default.join("net"));
        assert_eq!(of(json!({"type": "x", "dataDir": ""})), default.join("net"));
        assert_eq!(
            of(json!({"type": "x", "dataDir": "/d"})),
            Path::new("/d/net")
        );
    }
}
