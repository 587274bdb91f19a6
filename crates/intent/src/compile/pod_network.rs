//! PodNetwork: pools of the CNI, and the way from their addresses to the VRFs.

use mooring_api::Cidr;
use mooring_api::kinds::schiff::{PodNetworkSpec, PodNetworkStatus};

use super::vrf_attachment::steer;
use super::{Context, Draft};
use crate::conflict::POOLS;
use crate::form::{Aggregate, CLUSTER, Item, PrefixRule, Side};
use crate::input::Object;
use crate::platform;

pub(super) fn contribute(object: &Object<PodNetworkSpec>, context: &Context<'_>) -> Draft {
    let spec = &object.spec;
    let mut draft = Draft::new(object);
    draft.network(context, &spec.network);
    let scope = draft.scope(context, &spec.worker_groups, spec.node_selector.as_ref());
    let mut reach = draft.reach(context, "spec.destinations", &spec.destinations, None);
    reach.add(&spec.routes);
    reach.speak(&spec.communities);
    let subnets: Vec<Cidr> = spec.network.subnets().collect();
    draft.apart(&subnets, &reach.prefixes(), "spec.network");
    for subnet in &subnets {
        let own = (POOLS.to_owned(), *subnet, object.id.to_string());
        draft.contribution.subnets.push(own);
    }
    let steered = steer(
        &mut draft,
        object,
        context,
        &reach,
        &scope,
        &subnets,
        false,
        "spec.network",
    );
    for (name, via) in &reach.vrfs {
        draft.lead(&scope, via, !steered);
        for subnet in &subnets {
            let own = object.id.to_string();
            draft
                .contribution
                .subnets
                .push((name.clone(), *subnet, own));
            let (vrf, prefix) = (name.clone(), *subnet);
            let item = Item::Aggregate(Aggregate { vrf, prefix });
            draft.put(
                &scope,
                item,
                "spec.network",
                "the subnet is announced as a whole",
            );
            // The CNI announces blocks and addresses of it.
            let item = via.leak(Side::Export, CLUSTER, PrefixRule::inside(*subnet));
            draft.put(&scope, item, "spec.network", "the own subnet is exported");
        }
        for rule in &via.exports {
            let item = via.leak(Side::Export, CLUSTER, rule.clone());
            draft.put(&scope, item, "spec.routes", "a route with direction export");
        }
    }
    let mut status = PodNetworkStatus::default();
    (status.destinations, status.vrfs) = reach.names();
    let config = &context.inputs.config;
    let made = platform::pods(config, &object.id, &subnets, &reach.prefixes());
    let pools = made.iter().filter(|o| o["kind"] == "IPPool");
    let names = pools.filter_map(|o| o["metadata"]["name"].as_str());
    status.ip_pools = names.map(str::to_owned).collect();
    draft.contribution.platform.extend(made);
    draft.contribution.status = crate::status::value(&status);
    draft
}
