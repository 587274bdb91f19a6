//! ipam-fn and vlan-fn: claims become wishes to the book, and its answers become statuses.
//!
//! The book is met by `package`, between [`wants`] and [`answer`] (or [`refuse`]). Easy to get wrong: a claim that
//! carries the mark to go is asked for no more, but what it holds goes back only when its owner dropped it. A
//! package that is not ready for a moment keeps its addresses.

use mooring_api::kinds::nephio::ipam::{IPClaimSpec, IPClaimStatus, PrefixKind};
use mooring_api::kinds::nephio::vlan::{VLANClaimSpec, VLANClaimStatus};
use mooring_api::{Code, Family, Finding, HostCidr, label};
use mooring_ipam::{Claim, Holder, InstanceKey, Kind, Lease, Order, Pools, Thing, Want};
use serde_json::{Map, Value, json};

use super::engine::{self, done, fail, find, is_dropped, is_leaving};
use super::interface::put;
use super::kinds::{IP_CLAIM, VLAN_CLAIM};
use super::reference::{Gvk, Ref};
use super::{ACTION, Function, OWNER, VLAN_CLAIM_NAME};
use crate::Context;
use crate::bundle::{Bundle, Object, map_below};
use crate::claim::{Wish, claim_to_vlan, shown, vlan_holder};
use crate::pools::kind;

fn subject(function: Function) -> Gvk {
    match function {
        Function::Vlan => VLAN_CLAIM,
        _ => IP_CLAIM,
    }
}

fn named(wish: &Wish) -> Ref {
    let gvk = match wish.kind {
        "VLANClaim" => VLAN_CLAIM,
        _ => IP_CLAIM,
    };
    Ref {
        kind: gvk.kind.to_owned(),
        name: wish.name.clone(),
        api_version: gvk.api_version.to_owned(),
    }
}

/// Conditions whose claim is gone say so.
pub(super) fn miss(function: Function, bundle: &mut Bundle) -> Vec<Finding> {
    let gvk = subject(function);
    let conditions = bundle.marks.conditions.iter();
    let stated = conditions.filter_map(|c| Ref::parse(&c.kind).filter(|r| gvk.is(r)));
    let missing: Vec<Ref> = stated.filter(|r| find(bundle, r).is_none()).collect();
    for reference in missing {
        let text = "expected a for object but got nil";
        fail(&mut bundle.marks, &reference, text);
    }
    Vec::new()
}

/// What the function asks the book, in an order that does not depend on the documents'. A claim that cannot be read
/// fails by its condition.
pub fn wants(
    function: Function,
    bundle: &mut Bundle,
    ctx: &Context<'_>,
    findings: &mut Vec<Finding>,
) -> Vec<Wish> {
    let mut wishes = Vec::new();
    let mut failed = Vec::new();
    let gvk = subject(function);
    for object in bundle.objects.iter().filter(|o| gvk.has(o)) {
        if object.annotation(ACTION).is_some() || is_dropped(bundle, object) {
            continue;
        }
        match wish(function, bundle, object, ctx) {
            Ok(wish) => wishes.push(wish),
            Err(finding) => failed.push((Ref::of(object), finding)),
        }
    }
    for (reference, finding) in failed {
        fail(&mut bundle.marks, &reference, &finding.message);
        findings.push(finding);
    }
    // Who names what it wants comes first: nobody else of the package may take it by chance.
    wishes.sort_by(|a, b| {
        let key = |w: &Wish| !is_named(&w.claim);
        (key(a), &a.claim.holder, &a.name).cmp(&(key(b), &b.claim.holder, &b.name))
    });
    wishes
}

fn is_named(claim: &Claim) -> bool {
    claim.fixed.is_some() || matches!(claim.want, Want::Vlan { id: Some(_) })
}

/// Claims that their owner dropped: what they hold can go back.
pub fn leaving(function: Function, bundle: &Bundle, ctx: &Context<'_>) -> Vec<Wish> {
    let gvk = subject(function);
    let objects = bundle.objects.iter().filter(|o| gvk.has(o));
    objects
        .filter(|o| is_dropped(bundle, o))
        .filter_map(|o| wish(function, bundle, o, ctx).ok())
        .collect()
}

/// Removes a claim whose address went back, and its condition.
pub fn forget(bundle: &mut Bundle, wish: &Wish) {
    engine::remove(bundle, &named(wish));
}

fn wish(
    function: Function,
    bundle: &Bundle,
    object: &Object,
    ctx: &Context<'_>,
) -> Result<Wish, Finding> {
    match function {
        Function::Vlan => vlan_wish(bundle, object, ctx),
        _ => address_wish(object, ctx),
    }
}

fn address_wish(object: &Object, ctx: &Context<'_>) -> Result<Wish, Finding> {
    let spec: IPClaimSpec = object.spec()?;
    let status: IPClaimStatus = object.status().unwrap_or_default();
    let instance = InstanceKey::new(
        &spec.network_instance.namespace,
        &spec.network_instance.name,
    );
    let labels = &spec.selector.match_labels;
    let cluster = labels.get(label::CLUSTER_NAME).cloned();
    let family = family(&spec, status.prefix, &instance, ctx.pools);
    let block = spec.create_prefix.is_some() || spec.kind == PrefixKind::Pool;
    let want = match (block, spec.prefix_length, spec.prefix) {
        (true, Some(len), _) => Want::Block { len },
        (true, None, Some(prefix)) => Want::Block {
            len: prefix.prefix_len(),
        },
        (true, None, None) => {
            let text = "a prefix is asked for, but prefixLength is missing";
            return Err(Finding::warning(Code::InvalidField, text)
                .on(&object.reference())
                .at("spec.prefixLength")
                .help("Write prefixLength, or the prefix itself."));
        }
        (false, ..) => Want::Address,
    };
    let before = status.prefix.map(|p| match want {
        Want::Block { .. } => Thing::Block(p.subnet()),
        _ => Thing::Addr(p.addr()),
    });
    Ok(Wish {
        kind: "IPClaim",
        name: object.name().to_owned(),
        object: object.reference(),
        claim: Claim {
            holder: holder(object, cluster.unwrap_or_default(), family, ctx),
            instance,
            kind: kind(spec.kind),
            want,
            selector: spec.selector,
            fixed: spec.prefix,
            before,
            names: vec![object.name().to_owned()],
            order: spec.index.map_or(Order::BestFit, Order::Index),
        },
        answered: false,
        kept: None,
    })
}

/// The claim's name begins with the network function's, so it says who it is within the package.
fn holder(object: &Object, cluster: String, family: Family, ctx: &Context<'_>) -> Holder {
    Holder {
        cluster,
        package: ctx.package.to_owned(),
        namespace: object.namespace().to_owned(),
        workload: String::new(),
        interface: object.name().to_owned(),
        family,
        ordinal: 0,
    }
}

/// As the selector or the spec says; else that of what it had or wants; else of the first prefix that would match.
pub(crate) fn family(
    spec: &IPClaimSpec,
    had: Option<HostCidr>,
    instance: &InstanceKey,
    pools: &Pools,
) -> Family {
    let labels = &spec.selector.match_labels;
    match labels.get(label::ADDRESS_FAMILY).map(String::as_str) {
        Some("ipv6") => return Family::V6,
        Some("ipv4") => return Family::V4,
        _ => {}
    }
    let said = spec.address_family.or(spec.prefix.map(|p| p.family()));
    let matching = || {
        let wanted = |p: &&mooring_ipam::Prefix| {
            p.instance == *instance && labels.iter().all(|(k, v)| p.labels.get(k) == Some(v))
        };
        pools.prefixes.iter().find(wanted).map(|p| p.cidr.family())
    };
    said.or(had.map(|p| p.family()))
        .or_else(matching)
        .unwrap_or(Family::V4)
}

/// One VLAN per network and cluster, shared by all network functions there, of either dialect.
fn vlan_wish(bundle: &Bundle, object: &Object, ctx: &Context<'_>) -> Result<Wish, Finding> {
    let spec: VLANClaimSpec = object.spec()?;
    let status: VLANClaimStatus = object.status().unwrap_or_default();
    let index = spec.vlan_index.unwrap_or_default();
    let network = network(bundle, object, &index.name);
    let holder = match network {
        Some(network) => vlan_holder(&network, &index.name),
        None => holder(object, index.name.clone(), Family::V4, ctx),
    };
    Ok(Wish {
        kind: "VLANClaim",
        name: object.name().to_owned(),
        object: object.reference(),
        claim: claim_to_vlan(
            holder,
            InstanceKey::new(&index.namespace, &index.name),
            (spec.vlan_id, status.vlan_id),
        ),
        answered: false,
        kept: None,
    })
}

/// The network of a VLAN claim: its Interface's, else what the claim's other name says, `<network>-<cluster>-bd`.
fn network(bundle: &Bundle, object: &Object, cluster: &str) -> Option<InstanceKey> {
    let owner = object.annotation(OWNER).and_then(Ref::parse);
    let owner = owner.and_then(|r| find(bundle, &r));
    let instance = owner.and_then(|o| o.value.pointer("/spec/networkInstance"));
    let text = |key: &str| instance.and_then(|i| i.get(key)?.as_str());
    if let Some(name) = text("name") {
        return Some(InstanceKey::new(
            text("namespace").unwrap_or_default(),
            name,
        ));
    }
    let name = object.annotation(VLAN_CLAIM_NAME)?;
    let name = name.strip_suffix(&format!("-{cluster}-bd"))?;
    Some(InstanceKey::new("", name))
}

/// Writes the book's answer into a claim. One that is marked to go keeps what it says.
pub fn answer(bundle: &mut Bundle, wish: &Wish, lease: &Lease) {
    let mut status = Map::new();
    match lease.thing {
        Thing::Addr(addr) => {
            status.insert("prefix".into(), json!(shown(addr, lease, wish.claim.kind)));
            if let Some(gateway) = lease.gateway.filter(|_| wish.claim.kind == Kind::Network) {
                status.insert("gateway".into(), json!(gateway));
            }
        }
        Thing::Block(block) => drop(status.insert("prefix".into(), json!(block))),
        Thing::Range(range) => drop(status.insert("prefix".into(), json!(range.to_string()))),
        Thing::Vlan(id) => drop(status.insert("vlanID".into(), json!(id))),
    }
    write(bundle, &named(wish), &status);
}

fn write(bundle: &mut Bundle, reference: &Ref, answer: &Map<String, Value>) {
    let Some(object) = find(bundle, reference) else {
        return;
    };
    if is_leaving(object) {
        return;
    }
    let mut object = object.clone();
    let status = map_below(&mut object.value, &["status"]);
    for key in ["prefix", "gateway", "vlanID"] {
        put(status, key, answer.get(key).cloned());
    }
    engine::write(bundle, object);
    done(&mut bundle.marks, reference);
}

/// The book refused: the claim waits, and says why.
pub fn refuse(bundle: &mut Bundle, wish: &Wish, finding: &Finding) {
    let reference = named(wish);
    if find(bundle, &reference).is_some_and(|o| !is_leaving(o)) {
        fail(&mut bundle.marks, &reference, &finding.message);
    }
}

/// A claim that asks for the address of another one, perhaps of another package: `nephio.org/action: get`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The claim that asks.
    pub name: String,
    /// The claim whose address is asked for.
    pub wanted: String,
    /// Where.
    pub instance: InstanceKey,
    /// Which family; None for any.
    pub family: Option<Family>,
}

/// The label by which the published backend names the claim of an address.
const CLAIM_NAME: &str = "nephio.org/nsn-name";

/// The claims that look an address up.
pub fn lookups(bundle: &Bundle) -> Vec<Lookup> {
    let asks = |o: &&Object| IP_CLAIM.has(o) && o.annotation(ACTION).is_some() && !is_leaving(o);
    let read = |object: &Object| {
        let spec: IPClaimSpec = object.spec().ok()?;
        let labels = &spec.selector.match_labels;
        Some(Lookup {
            name: object.name().to_owned(),
            wanted: labels.get(CLAIM_NAME)?.clone(),
            instance: InstanceKey::new(
                &spec.network_instance.namespace,
                &spec.network_instance.name,
            ),
            family: match labels.get(label::ADDRESS_FAMILY).map(String::as_str) {
                Some("ipv6") => Some(Family::V6),
                Some("ipv4") => Some(Family::V4),
                _ => None,
            },
        })
    };
    bundle
        .objects
        .iter()
        .filter(asks)
        .filter_map(read)
        .collect()
}

/// Writes what a lookup found, or that it waits.
pub fn found(bundle: &mut Bundle, lookup: &Lookup, lease: Option<&Lease>) -> Option<Finding> {
    let reference = Ref {
        kind: IP_CLAIM.kind.to_owned(),
        name: lookup.name.clone(),
        api_version: IP_CLAIM.api_version.to_owned(),
    };
    let addr = lease.and_then(|l| match l.thing {
        Thing::Addr(addr) => Some(addr),
        _ => None,
    });
    if let Some(addr) = addr {
        let mut status = Map::new();
        status.insert("prefix".into(), json!(HostCidr::single(addr)));
        write(bundle, &reference, &status);
        return None;
    }
    let text = format!("waits for the address of IPClaim {}", lookup.wanted);
    fail(&mut bundle.marks, &reference, &text);
    Some(
        Finding::warning(Code::NoMatchingPrefix, text)
            .on(&reference.object())
            .at("spec.selector")
            .help("Render the package that the claim belongs to first."),
    )
}
