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
    /// Its `conf` and `neigh` sysctls: `net/ipv4/conf/IF/arp_notify` to value, with the word `IF` for its name.
    pub sysctls: BTreeMap<String, String>,
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
