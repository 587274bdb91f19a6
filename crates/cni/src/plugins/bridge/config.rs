//! The bridge plugin's keys, checked before anything is touched.
//!
//! Read by every verb. Easy to get wrong: `isDefaultGateway` means `isGateway` too, and the MAC has three sources, of
//! which the runtime's is the last word.

use mooring_api::{IfName, Mac, VlanId};
use mooring_attach::cni::{CniError, Object, Request};
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Keys {
    bridge: String,
    is_gateway: bool,
    is_default_gateway: bool,
    force_address: bool,
    ip_masq: bool,
    ip_masq_backend: Option<String>,
    mtu: i64,
    hairpin_mode: bool,
    promisc_mode: bool,
    vlan: i64,
    vlan_trunk: Option<Vec<Trunk>>,
    preserve_default_vlan: bool,
    macspoofchk: bool,
    enabledad: bool,
    disable_container_interface: bool,
    port_isolation: bool,
}

/// One entry of `vlanTrunk`: a range, an id, or both.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Trunk {
    #[serde(rename = "minID")]
    min: Option<i64>,
    #[serde(rename = "maxID")]
    max: Option<i64>,
    id: Option<i64>,
}

/// What is to be done, with every default filled in.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) bridge: IfName,
    pub(super) gateway: bool,
    pub(super) default_gateway: bool,
    pub(super) force_address: bool,
    pub(super) masquerade: bool,
    /// 0 for the kernel's default, or the bridge's.
    pub(super) mtu: Option<u32>,
    pub(super) hairpin: bool,
    pub(super) promiscuous: bool,
    pub(super) vlan: Option<VlanId>,
    /// Ascending. `Some` without an id is what an empty `vlanTrunk` says: filtering is on, nothing is added.
    pub(super) trunk: Option<Vec<VlanId>>,
    pub(super) keep_default_vlan: bool,
    pub(super) spoof_check: bool,
    pub(super) dad: bool,
    pub(super) down: bool,
    pub(super) isolated: bool,
    pub(super) mac: Option<Mac>,
}

impl Wanted {
    pub(super) fn of(request: &Request) -> Result<Self, CniError> {
        let config = &request.config;
        let keys: Keys = config.keys()?;
        let bridge = if keys.bridge.is_empty() {
            "cni0"
        } else {
            &keys.bridge
        };
        let wanted = Self {
            bridge: name(bridge)?,
            gateway: keys.is_gateway || keys.is_default_gateway,
            default_gateway: keys.is_default_gateway,
            force_address: keys.force_address,
            masquerade: keys.ip_masq,
            mtu: mtu(keys.mtu)?,
            hairpin: keys.hairpin_mode,
            promiscuous: keys.promisc_mode,
            vlan: match keys.vlan {
                0 => None,
                id => Some(vlan("vlan", id)?),
            },
            trunk: match &keys.vlan_trunk {
                None => None,
                Some(list) => Some(trunk("vlanTrunk", list)?),
            },
            keep_default_vlan: keys.preserve_default_vlan,
            spoof_check: keys.macspoofchk,
            dad: keys.enabledad,
            down: keys.disable_container_interface,
            isolated: keys.port_isolation,
            mac: mac(request)?,
        };
        wanted.check(request, keys.ip_masq_backend.as_deref())?;
        Ok(wanted)
    }

    fn check(&self, request: &Request, backend: Option<&str>) -> Result<(), CniError> {
        if self.hairpin && self.promiscuous {
            return Err(CniError::config(
                "hairpinMode",
                "cannot be set together with promiscMode",
            ));
        }
        if self.down && request.config.ipam.is_some() {
            return Err(CniError::config(
                "disableContainerInterface",
                "an interface that stays down has no addresses; leave out ipam",
            ));
        }
        if let Some(backend) = backend
            && !["iptables", "nftables", ""].contains(&backend)
        {
            let why = format!("{backend:?} is neither \"nftables\" nor \"iptables\"");
            return Err(CniError::config("ipMasqBackend", why));
        }
        if self.gateway
            && let Some(id) = self.vlan
        {
            let name = self.vlan_gateway(id);
            name.parse::<IfName>().map_err(|_| {
                let why = format!("the gateway's interface {name} would have too long a name");
                CniError::config("bridge", why)
            })?;
        }
        Ok(())
    }

    /// Whether the bridge looks at tags.
    pub(super) fn filters(&self) -> bool {
        self.vlan.is_some() || self.trunk.is_some()
    }

    /// The interface that has the gateway's address in a VLAN.
    pub(super) fn vlan_gateway(&self, id: VlanId) -> String {
        format!("{}.{}", self.bridge.as_str(), id.get())
    }
}

fn name(text: &str) -> Result<IfName, CniError> {
    text.parse()
        .map_err(|e: mooring_api::BadValue| CniError::config("bridge", e))
}

pub(crate) fn mtu(value: i64) -> Result<Option<u32>, CniError> {
    match u32::try_from(value) {
        Ok(0) => Ok(None),
        Ok(mtu) if mtu <= 65_535 => Ok(Some(mtu)),
        _ => Err(CniError::config(
            "mtu",
            format!("{value} is not within 0 to 65535"),
        )),
    }
}

pub(crate) fn vlan(field: &str, id: i64) -> Result<VlanId, CniError> {
    let number = u16::try_from(id).ok();
    let found = number.and_then(|id| VlanId::try_from(id).ok());
    found.ok_or_else(|| CniError::config(field, format!("{id} is not within 1 to 4094")))
}

/// The ids of a trunk, ascending, each once.
pub(crate) fn trunk(field: &str, list: &[Trunk]) -> Result<Vec<VlanId>, CniError> {
    let most = usize::from(VlanId::MAX.get());
    if list.len() > most {
        return Err(CniError::config(
            field,
            format!("has more than {most} entries"),
        ));
    }
    let mut ids = vec![false; most + 1];
    for (nth, entry) in list.iter().enumerate() {
        let at = |key: &str| format!("{field}[{nth}].{key}");
        match (entry.min, entry.max) {
            (Some(min), Some(max)) => {
                let (first, last) = (vlan(&at("minID"), min)?, vlan(&at("maxID"), max)?);
                if last < first {
                    return Err(CniError::config(&at("minID"), "is greater than maxID"));
                }
                ids[first.get().into()..=last.get().into()].fill(true);
            }
            (None, Some(_)) => {
                return Err(CniError::config(&at("minID"), "missing beside maxID"));
            }
            (Some(_), None) => {
                return Err(CniError::config(&at("maxID"), "missing beside minID"));
            }
            (None, None) => {}
        }
        if let Some(id) = entry.id {
            ids[usize::from(vlan(&at("id"), id)?.get())] = true;
        }
    }
    let listed = (1..).zip(ids.into_iter().skip(1)).filter(|(_, is)| *is);
    Ok(listed
        .filter_map(|(id, _)| VlanId::try_from(id).ok())
        .collect())
}

/// `CNI_ARGS`, then `args.cni.mac`, then `runtimeConfig.mac`: the last one that is there.
pub(crate) fn mac(request: &Request) -> Result<Option<Mac>, CniError> {
    let config = &request.config;
    let text = |map: &Object, field| match map.get("mac") {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(serde_json::Value::String(text)) => Ok(Some(text.clone()).filter(|t| !t.is_empty())),
        Some(_) => Err(CniError::config(field, "is not a string")),
    };
    let runtime = text(&config.runtime, "runtimeConfig.mac")?.map(|t| ("runtimeConfig.mac", t));
    let args = text(&config.args_cni, "args.cni.mac")?.map(|t| ("args.cni.mac", t));
    let old = request
        .args
        .get("MAC")
        .map(|t| ("CNI_ARGS MAC", t.to_owned()));
    let Some((field, text)) = runtime.or(args).or(old) else {
        return Ok(None);
    };
    let bad = |e: mooring_api::BadValue| CniError::config(field, e);
    text.parse().map(Some).map_err(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> Vec<Trunk> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_trunk_is_its_ranges_and_ids_ascending_and_each_once() {
        let list = entry(
            r#"[{"minID": 20, "maxID": 22}, {"id": 5}, {"id": 21}, {"id": 7, "minID": 1, "maxID": 1}]"#,
        );
        let ids: Vec<u16> = trunk("vlanTrunk", &list)
            .unwrap()
            .iter()
            .map(|v| v.get())
            .collect();
        assert_eq!(ids, [1, 5, 7, 20, 21, 22]);
    }

    #[test]
    fn a_bad_trunk_is_refused_by_its_field() {
        for (text, field) in [
            (r#"[{"id": 0}]"#, "vlanTrunk[0].id"),
            (r#"[{"id": 1}, {"id": 4095}]"#, "vlanTrunk[1].id"),
            (r#"[{"minID": 5}]"#, "vlanTrunk[0].maxID"),
            (r#"[{"maxID": 5}]"#, "vlanTrunk[0].minID"),
            (r#"[{"minID": 6, "maxID": 5}]"#, "vlanTrunk[0].minID"),
            (r#"[{"minID": -1, "maxID": 5}]"#, "vlanTrunk[0].minID"),
            (r#"[{"minID": 1, "maxID": 70000}]"#, "vlanTrunk[0].maxID"),
        ] {
            let error = trunk("vlanTrunk", &entry(text)).unwrap_err();
            assert_eq!(error.code, CniError::CONFIG);
            assert!(error.msg.contains(&format!("{field}:")), "{text}: {error}");
        }
    }

    #[test]
    fn an_mtu_is_absent_or_what_the_kernel_counts_in() {
        assert_eq!(mtu(0).unwrap(), None);
        assert_eq!(mtu(9000).unwrap(), Some(9000));
        assert!(mtu(-1).is_err());
        assert!(mtu(65_536).is_err());
    }
}
