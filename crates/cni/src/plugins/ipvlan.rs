//! ipvlan: the pod gets a child of a link of the node that shares its MAC.
//!
//! Stands alone with an IPAM plugin, or in a list behind another plugin; then the interface of the earlier result is the master
//! unless the configuration names one, and its addresses are taken over unless there is an IPAM plugin.
//!
//! Easy to get wrong: DEL must not look for the master. It may be gone, and with it the default route that would name it.

use mooring_api::net::{IpvlanFlag, IpvlanMode, Link, LinkKind, NewLink};
use mooring_attach::cni::{CniError, CniResult};
use serde::Deserialize;

use super::child;
use crate::call::Call;
use crate::plugin::Plugin;

/// The plugin.
pub(crate) struct Ipvlan;

/// Its own keys, beside those of every child.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Keys {
    mode: String,
}

struct Checked {
    child: child::Keys,
    mode: IpvlanMode,
    /// Addresses of an earlier plugin of the list.
    given: Option<CniResult>,
}

impl Checked {
    fn read(call: &Call) -> Result<Self, CniError> {
        let keys: Keys = call.config().keys()?;
        let mut child = child::Keys::read(call)?;
        let mode = mode(&keys.mode)?;
        child.mtu(None)?;
        let given = given(call);
        if child.master.is_empty()
            && let Some(prev) = &call.config().prev
        {
            child.master = chained_master(prev)?;
        }
        Ok(Self { child, mode, given })
    }
}

/// The addresses of `prevResult`, where no IPAM plugin is asked.
fn given(call: &Call) -> Option<CniResult> {
    let prev = call.config().prev.as_ref()?;
    (call.config().ipam.is_none() && !prev.ips.is_empty()).then(|| prev.clone())
}

fn chained_master(prev: &CniResult) -> Result<String, CniError> {
    match prev.interfaces.as_slice() {
        [one] if !one.name.is_empty() => Ok(one.name.clone()),
        some => Err(CniError::config(
            "master",
            format!(
                "missing, and prevResult has {} interfaces; name the master, or chain behind a plugin that makes one",
                some.len()
            ),
        )),
    }
}

impl Plugin for Ipvlan {
    fn about(&self) -> &'static str {
        "a child of a link of the node that shares its MAC"
    }

    fn add(&self, call: &Call) -> Result<CniResult, CniError> {
        let checked = Checked::read(call)?;
        if call.config().ipam.is_none() && checked.given.is_none() {
            return Err(CniError::config(
                "ipam",
                "missing; ipvlan needs addresses, from ipam or from an earlier plugin of the list",
            ));
        }
        let plan = |master: &Link| {
            let kind = LinkKind::Ipvlan {
                mode: checked.mode,
                flag: IpvlanFlag::default(),
            };
            let mut link = NewLink::new("", kind).on(master.index);
            link.set.mtu = checked.child.mtu(None)?;
            Ok(link)
        };
        let given = checked.given.clone();
        child::add(call, &checked.child, &plan, given).map(|made| made.result)
    }

    fn del(&self, call: &Call) -> Result<(), CniError> {
        let mut errors = Vec::new();
        child::del(call, "ipvlan", &mut errors);
        child::all(errors)
    }

    fn check(&self, call: &Call) -> Result<(), CniError> {
        let mode = mode(&call.config().keys::<Keys>()?.mode)?;
        let keys = child::Keys::read(call)?;
        let is_right = |link: &Link| match &link.kind {
            LinkKind::Ipvlan { mode: seen, .. } if *seen == mode => Ok(()),
            LinkKind::Ipvlan { mode: seen, .. } => Err(CniError::internal(format!(
                "{} is in mode {seen:?}, the network says {mode:?}",
                link.name
            ))),
            other => Err(CniError::internal(format!(
                "{} is no ipvlan but {:?}",
                link.name,
                other.word()
            ))),
        };
        child::check(call, &keys, &is_right)
    }

    fn status(&self, call: &Call) -> Result<(), CniError> {
        mode(&call.config().keys::<Keys>()?.mode)?;
        let keys = child::Keys::read(call)?;
        keys.mtu(None)?;
        if keys.master.is_empty() {
            // In a list it takes the interface that the plugin before it makes, and there is none yet. Nothing here says whether
            // it stands in one, and a node must not be called unfit for want of a default route that nobody needs.
            return call.ipam_status();
        }
        child::status(call, &keys, |_| Ok(()))
    }

    fn gc(&self, call: &Call) -> Result<(), CniError> {
        let mut errors = Vec::new();
        child::gc(call, &mut errors);
        child::all(errors)
    }
}

fn mode(text: &str) -> Result<IpvlanMode, CniError> {
    Ok(match text {
        "" | "l2" => IpvlanMode::L2,
        "l3" => IpvlanMode::L3,
        "l3s" => IpvlanMode::L3s,
        other => {
            return Err(CniError::config(
                "mode",
                format!("unknown ipvlan mode: {other:?}; it is l2, l3 or l3s"),
            ));
        }
    })
}
