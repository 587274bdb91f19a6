//! A rule that chooses a routing table.

use serde::{Deserialize, Serialize};

use super::Attribute;
use crate::{Cidr, Family};

/// A rule that chooses a routing table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// Its family.
    pub family: Family,
    /// Lower comes first; `None` lets the kernel put it before the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Packets from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub src: Option<Cidr>,
    /// Packets to there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst: Option<Cidr>,
    /// Packets that came in by that link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iif: Option<String>,
    /// Packets of sockets bound to that link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oif: Option<String>,
    /// Packets with that mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fwmark: Option<u32>,
    /// Which bits of the mark count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fwmask: Option<u32>,
    /// The table to look in.
    #[serde(default)]
    pub table: u32,
    /// What is done.
    #[serde(default)]
    pub action: RuleAction,
    /// Packets that do not match, instead.
    #[serde(default)]
    pub invert: bool,
    /// Packets of that type of service.
    #[serde(default)]
    pub tos: u8,
    /// Who made it (0 unknown, 2 the kernel).
    #[serde(default)]
    pub protocol: u8,
    /// What else the kernel said and takes back: ports, uid range, l3mdev, suppression, goto.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<Attribute>,
}

impl Rule {
    /// A rule that sends everything to a table; narrow it before use.
    pub fn lookup(family: Family, table: u32) -> Self {
        Self {
            family,
            priority: None,
            src: None,
            dst: None,
            iif: None,
            oif: None,
            fwmark: None,
            fwmask: None,
            table,
            action: RuleAction::LOOKUP,
            invert: false,
            tos: 0,
            protocol: 0,
            extra: Vec::new(),
        }
    }

    /// A rule that sends packets from there to a table.
    pub fn from(src: Cidr, table: u32) -> Self {
        Self {
            src: Some(src),
            ..Self::lookup(src.family(), table)
        }
    }

    /// The same at that priority.
    #[must_use]
    pub fn priority(mut self, priority: u32) -> Self {
        self.priority = Some(priority);
        self
    }
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RuleAction(pub u8);

impl RuleAction {
    /// Looks in a table.
    pub const LOOKUP: Self = Self(1);
    /// Goes on at another rule.
    pub const GOTO: Self = Self(2);
    /// Drops the packet.
    pub const BLACKHOLE: Self = Self(6);
}

impl Default for RuleAction {
    fn default() -> Self {
        Self::LOOKUP
    }
}
