//! Everything about one link, so that it can be put back as it was.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Addr, BridgeVlan, Link, Neighbour, Route, Rule};

/// Everything about one link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Snapshot {
    /// The link itself.
    pub link: Link,
    /// Its addresses, in the kernel's order: of a subnet the first one is the primary.
    pub addrs: Vec<Addr>,
    /// Every route of every table that leaves by it.
    pub routes: Vec<Route>,
    /// The rules that name one of its tables, one of its addresses, or its name.
    pub rules: Vec<Rule>,
    /// Permanent neighbours and proxies.
    pub neighbours: Vec<Neighbour>,
    /// VLANs it carries as a port of a bridge.
    pub vlans: Vec<BridgeVlan>,
    /// Its sysctls: `net/ipv4/conf/IF/arp_notify` to value, with the word `IF` for its name. Not those in `conf`.
    pub sysctls: BTreeMap<String, String>,
    /// Its `conf` sysctls, where the kernel tells them as numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conf: Option<Conf>,
}

/// The numbers behind a link's `conf` sysctls. They have no names: which is which depends on the kernel that told them, and is
/// asked only while that kernel runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conf {
    /// Of IPv4.
    pub v4: Vec<u32>,
    /// Of IPv6; empty where the link has none.
    pub v6: Vec<u32>,
}

impl Snapshot {
    /// The same for a link that came back under another index and another name.
    #[must_use]
    pub fn moved_to(mut self, index: u32, name: &str) -> Self {
        let old = self.link.index;
        let old_name = std::mem::replace(&mut self.link.name, name.to_owned());
        self.link.index = index;
        for addr in &mut self.addrs {
            addr.index = index;
            // The kernel wants a label to be the link's name, or that and a colon.
            if let Some(label) = &mut addr.label
                && let Some(rest) = label.strip_prefix(&old_name)
            {
                *label = format!("{name}{rest}");
            }
        }
        for route in &mut self.routes {
            if route.oif == Some(old) {
                route.oif = Some(index);
            }
            for hop in &mut route.next_hops {
                if hop.oif == old {
                    hop.oif = index;
                }
            }
        }
        for rule in &mut self.rules {
            for side in [&mut rule.iif, &mut rule.oif] {
                if side.as_deref() == Some(old_name.as_str()) {
                    *side = Some(name.to_owned());
                }
            }
        }
        for neighbour in &mut self.neighbours {
            neighbour.index = index;
        }
        for vlan in &mut self.vlans {
            vlan.index = index;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::NextHop;

    #[test]
    fn a_link_that_moved_takes_its_own_along_and_leaves_others() {
        let hop = |oif| NextHop {
            oif,
            gateway: None,
            weight: 1,
            onlink: false,
            extra: Vec::new(),
        };
        let mut many = Route::to("10.9.0.0/16".parse().unwrap());
        many.next_hops = vec![hop(5), hop(6)];
        let mut labelled = Addr::new(5, "10.0.0.5/24".parse().unwrap());
        labelled.label = Some("ens3:one".into());
        let mut rule = Rule::from("10.0.0.5/32".parse().unwrap(), 100);
        rule.iif = Some("ens3".into());
        rule.oif = Some("ens4".into());
        let before = Snapshot {
            link: Link {
                index: 5,
                name: "ens3".into(),
                ..Link::default()
            },
            addrs: vec![labelled],
            routes: vec![many, Route::to("10.8.0.0/16".parse().unwrap()).dev(5)],
            rules: vec![rule],
            neighbours: vec![Neighbour::proxy(5, "10.0.0.9".parse().unwrap())],
            vlans: vec![BridgeVlan::tagged(5, 7)],
            ..Snapshot::default()
        };
        let after = before.clone().moved_to(9, "net1");
        assert_eq!((after.link.index, after.link.name.as_str()), (9, "net1"));
        assert_eq!(after.addrs[0].index, 9);
        assert_eq!(after.addrs[0].label.as_deref(), Some("net1:one"));
        assert_eq!(after.routes[0].next_hops, [hop(9), hop(6)]);
        assert_eq!(after.routes[1].oif, Some(9));
        assert_eq!(after.rules[0].iif.as_deref(), Some("net1"));
        assert_eq!(after.rules[0].oif.as_deref(), Some("ens4"));
        assert_eq!((after.neighbours[0].index, after.vlans[0].index), (9, 9));
        assert_eq!(after.moved_to(5, "ens3"), before);
    }

    #[test]
    fn what_an_older_release_wrote_is_read() {
        let text = r#"{"link": {"index": 5, "name": "ens3", "kind": "device"},
            "addrs": [{"index": 5, "address": "10.0.0.5/24"}],
            "routes": [{"dst": "0.0.0.0/0", "gateway": "10.0.0.1", "oif": 5}]}"#;
        let snapshot: Snapshot = serde_json::from_str(text).unwrap();
        let mut plain = Addr::new(5, "10.0.0.5/24".parse().unwrap());
        plain.broadcast = None;
        assert_eq!(snapshot.addrs, [plain]);
        let default = Route::to("0.0.0.0/0".parse().unwrap()).via("10.0.0.1".parse().unwrap());
        assert_eq!(snapshot.routes, [default.dev(5)]);
    }
}
