//! MetalLB: a pool per inbound connection, and how its addresses are made known.

use std::net::IpAddr;

use mooring_api::ObjectRef;
use mooring_api::kinds::mooring::{DefaultAdvertisement, LoadBalancer, OperatorConfigSpec};
use mooring_api::kinds::schiff::Advertisement;
use serde_json::{Value, json};

use super::{host, object};
use crate::Scope;

/// An inbound connection.
pub(crate) struct Inbound<'a> {
    pub(crate) owner: &'a ObjectRef,
    pub(crate) name: &'a str,
    pub(crate) scope: &'a Scope,
    pub(crate) addresses: &'a [IpAddr],
    pub(crate) advertisement: Option<Advertisement>,
}

pub(crate) fn inbound(config: &OperatorConfigSpec, inbound: &Inbound<'_>) -> Vec<Value> {
    if config.platform.load_balancer == LoadBalancer::None || inbound.addresses.is_empty() {
        return Vec::new();
    }
    let namespace = Some(config.namespaces.metallb.as_str());
    let addresses: Vec<String> = inbound.addresses.iter().map(|a| host(*a)).collect();
    let pool = object(
        ("metallb.io/v1beta1", "IPAddressPool"),
        namespace,
        inbound.name,
        inbound.owner,
        json!({ "addresses": addresses }),
    );
    let mut spec = json!({ "ipAddressPools": [inbound.name] });
    if let Some(selector) = inbound.scope.selector() {
        spec["nodeSelectors"] = json!([selector]);
    }
    let kind = match inbound.advertisement {
        Some(Advertisement::Bgp) => "BGPAdvertisement",
        Some(Advertisement::L2) => "L2Advertisement",
        Some(Advertisement::None) => return vec![pool],
        None => match config.platform.advertisement {
            DefaultAdvertisement::Bgp => "BGPAdvertisement",
            DefaultAdvertisement::L2 => "L2Advertisement",
            DefaultAdvertisement::None => return vec![pool],
        },
    };
    let kind = ("metallb.io/v1beta1", kind);
    let advertisement = object(kind, namespace, inbound.name, inbound.owner, spec);
    vec![pool, advertisement]
}
