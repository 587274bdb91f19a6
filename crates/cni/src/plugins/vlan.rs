//! vlan: the pod gets a VLAN of a link of the node, for itself alone.
//!
//! A VLAN of one NIC can be in one pod only. Pods that share a VLAN take macvlan or ipvlan with `master: <nic>.<vlan>`.
//!
//! Easy to get wrong: `vlanId` 0 is allowed. It is no VLAN but frames with a priority tag.

use mooring_api::net::{Link, LinkKind, NewLink, VlanProtocol};
use mooring_attach::cni::{CniError, CniResult};
use serde::Deserialize;

use super::child;
use crate::call::Call;
use crate::plugin::Plugin;

/// The plugin.
pub(crate) struct Vlan;

/// Its own keys, beside those of every child.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Keys {
    vlan_id: i64,
}

struct Checked {
    child: child::Keys,
    id: u16,
}

impl Checked {
    fn read(call: &Call) -> Result<Self, CniError> {
        let keys: Keys = call.config().keys()?;
        let child = child::Keys::read(call)?;
        if child.master.is_empty() {
            let why = "missing; it is the link whose VLAN the pod gets";
            return Err(CniError::config("master", why));
        }
        let id = u16::try_from(keys.vlan_id).ok().filter(|id| *id <= 4094);
        let id = id.ok_or_else(|| {
            let why = format!(
                "invalid VLAN ID {} (must be between 0 and 4094)",
                keys.vlan_id
            );
            CniError::config("vlanId", why)
        })?;
        Ok(Self { child, id })
    }
}

fn has_ipam(call: &Call) -> Result<(), CniError> {
    if call.config().ipam.is_some() {
        return Ok(());
    }
    let why = "missing; for layer 2 only use macvlan with master <nic>.<vlan>";
    Err(CniError::config("ipam", why))
}

impl Plugin for Vlan {
    fn about(&self) -> &'static str {
        "a VLAN of a link of the node, for one pod"
    }

    fn add(&self, call: &Call) -> Result<CniResult, CniError> {
        let checked = Checked::read(call)?;
        has_ipam(call)?;
        let plan = |master: &Link| {
            let kind = LinkKind::Vlan {
                id: checked.id,
                protocol: VlanProtocol::Dot1q,
            };
            let mut link = NewLink::new("", kind).on(master.index);
            link.set.mtu = checked.child.mtu(Some(master.mtu))?;
            Ok(link)
        };
        child::add(call, &checked.child, &plan, None).map(|made| made.result)
    }

    fn del(&self, call: &Call) -> Result<(), CniError> {
        let mut errors = Vec::new();
        child::del(call, "vlan", &mut errors);
        child::all(errors)
    }

    fn check(&self, call: &Call) -> Result<(), CniError> {
        let checked = Checked::read(call)?;
        let is_right = |link: &Link| match &link.kind {
            LinkKind::Vlan { id, .. } if *id == checked.id => Ok(()),
            LinkKind::Vlan { id, .. } => Err(CniError::internal(format!(
                "{} is VLAN {id}, the network says {}",
                link.name, checked.id
            ))),
            other => Err(CniError::internal(format!(
                "{} is no vlan but {:?}",
                link.name,
                other.word()
            ))),
        };
        child::check(call, &checked.child, &is_right)
    }

    fn status(&self, call: &Call) -> Result<(), CniError> {
        let checked = Checked::read(call)?;
        checked.child.mtu(None)?;
        has_ipam(call)?;
        let fits = |master: &Link| checked.child.mtu(Some(master.mtu)).map(drop);
        child::status(call, &checked.child, fits)
    }

    fn gc(&self, call: &Call) -> Result<(), CniError> {
        let mut errors = Vec::new();
        child::gc(call, &mut errors);
        child::all(errors)
    }
}
