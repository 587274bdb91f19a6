//! What an interface had before tuning changed it: `/run/cni/tuning/<container>_<ifname>.json`, as the reference plugin writes it.
//!
//! We add who it is for, which the reference skips over. Easy to get wrong: only what is changed is written down, so an absent key is left
//! alone and not reset.

use std::path::PathBuf;

use mooring_api::Mac;
use mooring_api::net::LinkChange;
use serde::{Deserialize, Serialize};

use crate::NetnsId;

/// The file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Backup {
    /// Empty where it was not changed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mac: String,
    /// Promiscuous mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promisc: Option<bool>,
    /// 0 where it was not changed.
    #[serde(skip_serializing_if = "is_zero")]
    pub mtu: u32,
    /// All-multicast mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allmulti: Option<bool>,
    /// The transmit queue's length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_q_len: Option<u32>,
    /// The network; empty in the reference's files, as are the next two.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub network: String,
    /// The container.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub container: String,
    /// Its interface.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ifname: String,
    /// Where that is, for GC; none in the reference's files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netns: Option<At>,
}

/// A namespace: the path may lead to another one by now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct At {
    /// Its path.
    pub path: PathBuf,
    /// Which one was there.
    pub id: NetnsId,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Backup {
    /// Any bytes; none where they say nothing: a file that was half written.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// As it is written.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("plain values")
    }

    /// Takes over what an earlier try wrote down: that was before any change.
    pub fn overruled_by(&mut self, first: Self) {
        if !first.mac.is_empty() {
            self.mac = first.mac;
        }
        if first.mtu != 0 {
            self.mtu = first.mtu;
        }
        self.promisc = first.promisc.or(self.promisc);
        self.allmulti = first.allmulti.or(self.allmulti);
        self.tx_q_len = first.tx_q_len.or(self.tx_q_len);
    }

    /// What puts it back: one by one, so that a refusal keeps nothing else from being restored.
    pub fn changes(&self) -> Vec<LinkChange> {
        let none = LinkChange::default;
        let mtu = (self.mtu != 0).then_some(self.mtu);
        let mac = self.mac.parse::<Mac>().ok();
        let all = [
            LinkChange { mtu, ..none() },
            LinkChange { mac, ..none() },
            LinkChange {
                promiscuous: self.promisc,
                ..none()
            },
            LinkChange {
                all_multicast: self.allmulti,
                ..none()
            },
            LinkChange {
                txqlen: self.tx_q_len,
                ..none()
            },
        ];
        all.into_iter()
            .filter(|change| !change.is_empty())
            .collect()
    }
}
