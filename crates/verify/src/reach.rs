//! Routes between the subnets of one network: where each cluster has a subnet of its own, a pod needs a
//! route to the others, because its default route leads through the primary interface.
//!
//! Easy to get wrong: a subnet that nobody uses yet needs no route; only what another cluster's pods have
//! counts, and only inside one network instance.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::{Cidr, Code, Finding};
use mooring_attach::nad::Use;

use crate::carried::Carried;
use crate::report::Found;
use crate::route::{self, Route};
use crate::world::{Nad, World};

/// Routing domain and instance.
type Network<'a> = (Option<&'a str>, &'a str);

/// The clusters that have each subnet of a network.
type Subnets<'a> = BTreeMap<Network<'a>, BTreeMap<Cidr, BTreeSet<&'a str>>>;

/// What one interface has of one instance.
struct Here<'a> {
    one: &'a Carried<'a>,
    subnets: BTreeSet<Cidr>,
}

pub(crate) fn judge(world: &World<'_>, carried: &[Carried<'_>], out: &mut Vec<Found>) {
    let mut subnets = Subnets::new();
    let mut places: BTreeMap<(Network<'_>, usize, &str), Here<'_>> = BTreeMap::new();
    for one in carried.iter().filter(|one| one.nad.is_some()) {
        let (addr, subnet) = match one.what {
            Use::Address(host) => (host.addr(), host.subnet()),
            Use::Range { range, subnet } => (range.first(), subnet),
        };
        let Some(instance) = world.instances.of(one.scope, addr) else {
            continue;
        };
        let all = subnets.entry((one.scope, instance)).or_default();
        all.entry(subnet).or_default().insert(&one.origin.cluster);
        let place = ((one.scope, instance), one.id, one.user.as_str());
        let subnets = BTreeSet::new();
        let here = places.entry(place).or_insert(Here { one, subnets });
        here.subnets.insert(subnet);
    }
    // Interfaces of one cluster mostly have the same routes, so the same answer.
    let mut answers = BTreeMap::new();
    for ((network, _, _), here) in places {
        let siblings = &subnets[&network];
        let Some(nad) = here.one.nad.filter(|_| siblings.len() > 1) else {
            continue;
        };
        let mine = here.one.origin.cluster.as_str();
        let known = routes(&world.nads[nad]);
        let answer = answers
            .entry((network, mine, here.subnets, known))
            .or_insert_with_key(|(_, _, own, known)| missing(siblings, mine, own, known));
        if let Some((first, more)) = *answer {
            let finding = say(first, more, network.1);
            out.push(Found::at(finding, here.one.origin, &here.one.field));
        }
    }
}

/// The first subnet that no route leads to, and how many more there are.
fn missing(
    siblings: &BTreeMap<Cidr, BTreeSet<&str>>,
    mine: &str,
    own: &BTreeSet<Cidr>,
    known: &BTreeSet<Cidr>,
) -> Option<(Cidr, usize)> {
    let mut missing = siblings.iter().filter(|(subnet, clusters)| {
        let other = clusters.iter().any(|cluster| *cluster != mine);
        let family = own.iter().any(|own| own.family() == subnet.family());
        // A fleet of many clusters has a route to each, so the exact one is looked for first.
        let reached =
            known.contains(subnet) || own.iter().chain(known).any(|net| net.covers(subnet));
        other && family && !reached
    });
    let (first, _) = missing.next()?;
    Some((*first, missing.count()))
}

fn say(first: Cidr, more: usize, instance: &str) -> Finding {
    let more = match more {
        0 => String::new(),
        1 => " and to another subnet".to_owned(),
        more => format!(" and to {more} other subnets"),
    };
    let name = instance.strip_prefix("default/").unwrap_or(instance);
    let message = format!(
        "there is no route to {first}{more} of network {name}: answers leave by the primary interface and are lost"
    );
    let help = format!(
        "add {{\"dst\": \"{first}\", \"gw\": ROUTER}} to the NAD's routes, or annotation mooring.dev/routes: {first} via ROUTER"
    );
    Finding::warning(Code::MissingRoute, message).help(help)
}

/// Where the NAD's routes lead; a default route counts where a packet would take it.
fn routes(nad: &Nad<'_>) -> BTreeSet<Cidr> {
    let all = route::routes(nad).into_iter();
    all.filter(Route::leads).map(|route| route.to).collect()
}
