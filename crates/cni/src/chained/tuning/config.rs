//! The tuning plugin's keys, from the configuration and from `args.cni`.
//!
//! Read by ADD, CHECK and STATUS. Easy to get wrong: a sysctl is a path below `/proc/sys`, and a container must not reach
//! anything there but `net/`, of which each namespace has its own.

use std::fmt;
use std::path::PathBuf;

use mooring_api::Mac;
use mooring_attach::cni::{CniError, Request, Verb, same};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

/// The longest name of a sysctl; the kernel's are far below.
const KEY_MAX: usize = 255;
/// More than the kernel has for one interface.
const SYSCTLS_MAX: usize = 1000;

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Keys {
    mac: Option<String>,
    promisc: Option<bool>,
    mtu: Option<i64>,
    tx_q_len: Option<i64>,
    allmulti: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Place {
    data_dir: String,
}

/// Where the files are, if the configuration says so: whatever else it says, and for calls about no interface.
pub(super) fn data(request: &Request) -> Option<PathBuf> {
    place(request).ok().flatten()
}

fn place(request: &Request) -> Result<Option<PathBuf>, CniError> {
    let Place { data_dir } = request.config.keys()?;
    Ok((!data_dir.is_empty()).then(|| PathBuf::from(data_dir)))
}

/// What is to be set; `None` and `false` leave things alone.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// In the order of the configuration: `all` may have to come before one interface.
    pub(super) sysctls: Vec<Sysctl>,
    pub(super) mac: Option<Mac>,
    pub(super) mtu: Option<u32>,
    pub(super) promiscuous: bool,
    pub(super) all_multicast: Option<bool>,
    pub(super) txqlen: Option<u32>,
}

/// One sysctl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sysctl {
    /// As it was written: what the allow list is asked.
    pub(super) key: String,
    /// Below `/proc/sys`.
    pub(super) path: String,
    pub(super) value: String,
}

impl Wanted {
    pub(super) fn of(request: &Request) -> Result<Self, CniError> {
        let config = &request.config;
        // STATUS is about no interface: then the word stands for itself.
        let ifname = match request.verb {
            Verb::Status => "IFNAME",
            _ => request.ifname(),
        };
        let keys: Keys = config.keys()?;
        // Whoever needs it asks for it; a bad one is refused here.
        place(request)?;
        let args: Keys = config
            .args_cni
            .read()
            .map_err(|e| CniError::config("args.cni", e))?;
        let runtime = config.runtime.text("mac");
        let old = request.args.get("MAC");
        let macs = [
            ("args.cni.mac", args.mac.as_deref()),
            ("runtimeConfig.mac", runtime),
            ("CNI_ARGS MAC", old),
            ("mac", keys.mac.as_deref()),
        ];
        Ok(Self {
            sysctls: sysctls(config.text(), ifname)?,
            mac: mac(&macs)?,
            mtu: number("mtu", args.mtu.or(keys.mtu))?.filter(|mtu| *mtu > 0),
            promiscuous: args.promisc.or(keys.promisc).unwrap_or_default(),
            all_multicast: args.allmulti.or(keys.allmulti),
            txqlen: number("txQLen", args.tx_q_len.or(keys.tx_q_len))?,
        })
    }

    /// Whether the link itself is changed, and has to be put back.
    pub(super) fn changes_link(&self) -> bool {
        self.mac.is_some()
            || self.mtu.is_some()
            || self.promiscuous
            || self.all_multicast.is_some()
            || self.txqlen.is_some()
    }
}

/// The first one that is there and not empty.
fn mac(sources: &[(&str, Option<&str>)]) -> Result<Option<Mac>, CniError> {
    let filled = sources.iter().find_map(|(field, text)| {
        let text = text.filter(|t| !t.is_empty())?;
        Some((field, text))
    });
    let Some((field, text)) = filled else {
        return Ok(None);
    };
    let mac = text
        .parse::<Mac>()
        .map_err(|e| CniError::config(field, e))?;
    Ok(Some(mac))
}

fn number(field: &str, value: Option<i64>) -> Result<Option<u32>, CniError> {
    let convert = |n: i64| {
        let bad = || CniError::config(field, format!("{n} is not within 0 to {}", i32::MAX));
        u32::try_from(n)
            .ok()
            .filter(|n| i32::try_from(*n).is_ok())
            .ok_or_else(bad)
    };
    value.map(convert).transpose()
}

fn sysctls(text: &str, ifname: &str) -> Result<Vec<Sysctl>, CniError> {
    let at = |path: &'static [&'static str]| {
        let mut text = serde_json::Deserializer::from_str(text);
        let found = Way(path).deserialize(&mut text);
        found.map_err(|e| CniError::config(&path.join("."), e))
    };
    let own = at(&["sysctl"])?;
    let args = at(&["args", "cni", "sysctl"])?;
    let mut all: Vec<Sysctl> = Vec::new();
    for (key, value) in own.0 {
        let path = path(&key, ifname)?;
        if let Some(other) = all.iter().find(|s| s.path == path) {
            let why = format!("{key} and {} are the same", other.key);
            return Err(CniError::config("sysctl", why));
        }
        all.push(Sysctl { key, path, value });
    }
    // What an attachment asks for replaces what its network says.
    for (key, value) in args.0 {
        let path = path(&key, ifname)?;
        all.retain(|s| s.path != path);
        all.push(Sysctl { key, path, value });
    }
    Ok(all)
}

/// `net.ipv4.conf.IFNAME.x`, or with slashes, where a dot is part of a name as for sysctl(8).
fn path(key: &str, ifname: &str) -> Result<String, CniError> {
    let bad = |why: &str| CniError::config("sysctl", format!("{key:?}: {why}"));
    if key.len() > KEY_MAX {
        return Err(CniError::config(
            "sysctl",
            format!("a key is longer than {KEY_MAX} bytes"),
        ));
    }
    if ifname.contains('/') {
        return Err(bad("the interface's name has a path separator"));
    }
    let slashes = key
        .find(['.', '/'])
        .is_some_and(|at| key[at..].starts_with('/'));
    let path = if slashes {
        key.to_owned()
    } else {
        key.replace('.', "/")
    };
    let path = path.replacen("IFNAME", ifname, 1);
    let mut parts = path.split('/');
    if parts.next() != Some("net") || parts.clone().next().is_none() {
        return Err(bad("only sysctls of net can be set"));
    }
    if parts.any(|part| part.is_empty() || part == "." || part == "..") || path.contains('\0') {
        return Err(bad("is no path to a sysctl"));
    }
    Ok(path)
}

/// The sysctls at the end of a way through objects: from the text, because a map would forget that a key was there twice.
/// Names are matched as everywhere; the last one counts, and `null` says nothing.
struct Way(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Way {
    type Value = Once;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Once, D::Error> {
        match self.0 {
            [] => Option::deserialize(deserializer).map(Option::unwrap_or_default),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Way {
    type Value = Once;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<Once, E> {
        Ok(Once::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Once, A::Error> {
        let mut found = Once::default();
        while let Some(key) = map.next_key::<String>()? {
            match self.0 {
                [name, rest @ ..] if same(&key, name) => {
                    let seen = map.next_value_seed(Way(rest))?;
                    if !seen.0.is_empty() {
                        found = seen;
                    }
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

/// String to string, in order, each key once.
#[derive(Debug, Default)]
struct Once(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Once;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Once, A::Error> {
                let mut pairs: Vec<(String, String)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, String>()? {
                    if pairs.len() == SYSCTLS_MAX {
                        return Err(A::Error::custom(format!("more than {SYSCTLS_MAX} of them")));
                    }
                    if pairs.iter().any(|(known, _)| *known == key) {
                        return Err(A::Error::custom(format!("{key:?} is there twice")));
                    }
                    pairs.push((key, value));
                }
                Ok(Once(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_becomes_a_path_below_net_with_the_interface_in_its_place() {
        for (key, ifname, wanted) in [
            ("net.core.somaxconn", "net1", "net/core/somaxconn"),
            (
                "net.ipv4.conf.IFNAME.arp_filter",
                "net1",
                "net/ipv4/conf/net1/arp_filter",
            ),
            (
                "net.ipv4.conf.IFNAME.arp_filter",
                "bond0.7",
                "net/ipv4/conf/bond0.7/arp_filter",
            ),
            (
                "net/ipv4/conf/bond0.7/arp_filter",
                "net1",
                "net/ipv4/conf/bond0.7/arp_filter",
            ),
            (
                "net/ipv4/conf/IFNAME/arp_filter",
                "net1",
                "net/ipv4/conf/net1/arp_filter",
            ),
        ] {
            assert_eq!(path(key, ifname).unwrap(), wanted, "{key}");
        }
    }

    #[test]
    fn a_key_outside_of_net_or_with_a_way_out_is_refused() {
        for key in [
            "kernel.hostname",
            "net",
            "net.",
            "",
            "/net/core/somaxconn",
            "net/../kernel/hostname",
            "net/./core/somaxconn",
            "net..core.somaxconn",
            "network.core",
            "net/core/somaxconn/",
            "net/core/a\0b",
            &format!("net/{}", "a".repeat(300)),
        ] {
            assert!(path(key, "net1").is_err(), "{key:?}");
        }
        assert!(path("net.ipv4.conf.IFNAME.x", "../../kernel").is_err());
        assert!(path("net.ipv4.conf.IFNAME.x", "..").is_err());
    }

    #[test]
    fn a_sysctl_that_is_there_twice_is_refused_in_either_spelling() {
        let twice = r#"{"sysctl": {"net.core.a": "1", "net.core.a": "2"}}"#;
        assert!(sysctls(twice, "net1").unwrap_err().msg.contains("twice"));
        let spelled = r#"{"sysctl": {"net.core.a": "1", "net/core/a": "2"}}"#;
        assert!(
            sysctls(spelled, "net1")
                .unwrap_err()
                .msg
                .contains("the same")
        );
        let number = r#"{"sysctl": {"net.core.a": 1}}"#;
        assert!(sysctls(number, "net1").is_err());
    }

    #[test]
    fn what_the_attachment_asks_for_replaces_what_the_network_says() {
        let text = r#"{"sysctl": {"net.core.b": "1", "net.core.a": "1"}, "args": {"cni": {"sysctl": {"net.core.b": "2"}}}}"#;
        let all = sysctls(text, "net1").unwrap();
        let pairs: Vec<_> = all
            .iter()
            .map(|s| (s.path.as_str(), s.value.as_str()))
            .collect();
        assert_eq!(pairs, [("net/core/a", "1"), ("net/core/b", "2")]);
        assert!(sysctls("{}", "net1").unwrap().is_empty());
        assert!(sysctls(r#"{"sysctl": null}"#, "net1").unwrap().is_empty());
    }
}
