//! The story in sentences.

use super::pod::{Address, End, Interface};
use super::route::Hop;
use super::{Reason, Step, Story, Verdict, Way, via};

pub(super) fn tell(from: &End, to: &End, way: Option<&Way<'_>>) -> Story {
    let Some(way) = way else {
        return nothing(from, to);
    };
    let here = way.here.or_else(|| from.addresses().next());
    if here.is_none() {
        return nothing(from, to);
    }
    let mut steps = Vec::new();
    send(from, to, way, &mut steps);
    let travels = matches!(
        way.reason,
        Reason::Direct | Reason::Routed | Reason::NoReturnRoute
    );
    if travels && let Some((source, address)) = way.here {
        travel(from, to, way, source, &mut steps);
        back(to, way, address, &mut steps);
    }
    Story {
        from: from.shown(way.here),
        to: to.shown(Some(way.there)),
        shared: Vec::new(),
        steps,
        verdict: verdict(from, to, way),
    }
}

/// A pod without an address.
fn nothing(from: &End, to: &End) -> Story {
    let without = if to.addresses().next().is_none() {
        to
    } else {
        from
    };
    let text = format!(
        "{} has no secondary interface with an address",
        without.place()
    );
    let help = "give its Interface an address with `moor render`, or write ips into its networks annotation";
    Story {
        from: from.shown(None),
        to: to.shown(None),
        shared: Vec::new(),
        steps: Vec::new(),
        verdict: Verdict {
            reached: false,
            reason: Reason::NoAddress,
            text,
            help: help.to_owned(),
        },
    }
}

fn step(what: &'static str, text: String, steps: &mut Vec<Step>) {
    steps.push(Step { what, text });
}

fn send(from: &End, to: &End, way: &Way<'_>, steps: &mut Vec<Step>) {
    let (target, address) = way.there;
    let text = format!(
        "{} sends to {}, which is {} of {}",
        from.short(),
        plain(address),
        target.name,
        to.short()
    );
    step("send", text, steps);
    step("route", decision(&way.out, "its routes"), steps);
}

/// What a routing table says.
fn decision(hop: &Hop<'_>, whose: &str) -> String {
    match (hop.interface(), hop.to()) {
        (Some(interface), Some(to)) => {
            let shown = if to.is_default() {
                "default".to_owned()
            } else {
                to.to_string()
            };
            let why = match hop.gateway() {
                Some(_) => "another subnet, so through the gateway",
                None => "the same subnet, so no gateway",
            };
            format!("{shown} {}: {why}", via(hop.gateway(), &interface.name))
        }
        _ => format!("{whose} lead nowhere but to the default route of the primary interface"),
    }
}

fn travel(from: &End, to: &End, way: &Way<'_>, source: &Interface, steps: &mut Vec<Step>) {
    let (target, address) = way.there;
    let asks = if address.addr().is_ipv4() {
        "ARP"
    } else {
        "neighbour discovery"
    };
    let next = way.out.gateway();
    let wanted = next.unwrap_or(address.addr());
    let answer = match (next, &target.mac) {
        (Some(_), _) => "the gateway answers with its MAC".to_owned(),
        (None, Some(mac)) => format!("{} answers {mac}", to.short()),
        (None, None) => format!("{} answers with its MAC", to.short()),
    };
    let text = format!("{} asks who has {wanted} ({asks}); {answer}", source.name);
    step("neighbour", text, steps);
    let text = format!(
        "{} ({}) of a node of {}",
        source.name,
        tagged(source),
        from.cluster()
    );
    step("out", text, steps);
    let text = match next {
        Some(gateway) => format!(
            "{gateway} forwards it towards {}; that it knows the way is not to be seen here",
            address.host.subnet()
        ),
        None => "forwards by destination MAC: no NAT, no tunnel, no cluster boundary".to_owned(),
    };
    step(
        if next.is_some() { "router" } else { "switch" },
        text,
        steps,
    );
    let text = format!(
        "{} ({}) of a node of {}",
        target.name,
        tagged(target),
        to.cluster()
    );
    step("in", text, steps);
}

fn tagged(interface: &Interface) -> String {
    match interface.vlan {
        Some(vlan) => format!("{}, VLAN {vlan}", interface.link),
        None => interface.link.clone(),
    }
}

fn back(to: &End, way: &Way<'_>, address: &Address, steps: &mut Vec<Step>) {
    let Some(back) = &way.back else { return };
    let decided = decision(back, &format!("the routes of {}", to.short()));
    let (target, _) = way.there;
    let other = back.interface().filter(|i| i.name != target.name);
    let text = match other {
        Some(other) => format!(
            "{} answers {}: {decided}; it leaves by {}, not by {} where it was asked, which a strict rp_filter refuses",
            to.short(),
            plain(address),
            other.name,
            target.name
        ),
        None => format!("{} answers {}: {decided}", to.short(), plain(address)),
    };
    step("back", text, steps);
}

fn verdict(from: &End, to: &End, way: &Way<'_>) -> Verdict {
    let (target, address) = way.there;
    let subnet = address.host.subnet();
    let own = way.here.map(|(_, own)| own.host.subnet());
    let own = own.map_or_else(String::new, |own| own.to_string());
    let route = |to: &str, end: &End| {
        format!(
            "add {{\"dst\": \"{to}\", \"gw\": ROUTER}} to the routes of the NAD of {}, or annotation mooring.dev/routes: \
             {to} via ROUTER to its Interface",
            end.short()
        )
    };
    let (text, help) = match way.reason {
        Reason::Direct => (format!("directly, on {subnet}"), String::new()),
        Reason::Routed => {
            let mut gateways = vec![way.out.gateway(), way.back.and_then(|b| b.gateway())];
            gateways.dedup();
            let gateways: Vec<String> = gateways
                .into_iter()
                .flatten()
                .map(|g| g.to_string())
                .collect();
            (format!("through {}", gateways.join(" and ")), String::new())
        }
        Reason::NoReturnRoute => (
            format!(
                "{} has no usable route back to {own}: the answer is lost",
                to.short()
            ),
            route(&own, to),
        ),
        Reason::NoRoute => (
            format!(
                "{} has no route to {subnet}: the packet leaves by the primary interface and is lost",
                from.short()
            ),
            route(&subnet.to_string(), from),
        ),
        Reason::GatewayOutsideSubnet => {
            let gateway = way
                .out
                .gateway()
                .map_or_else(String::new, |g| g.to_string());
            (
                format!(
                    "the gateway {gateway} is in no subnet of its interface: the kernel refuses the route"
                ),
                format!("name a gateway inside {own}"),
            )
        }
        Reason::OtherVlan => (
            format!(
                "{} of {} is on another VLAN, so nobody answers for {}",
                target.name,
                to.short(),
                plain(address)
            ),
            "give both NADs the same VLAN, or each network a subnet of its own".to_owned(),
        ),
        Reason::NoCommonNetwork => apart(from, to),
        Reason::SameAddress => (
            format!(
                "both have {}: the packet never leaves {}",
                plain(address),
                from.short()
            ),
            "give one of them another address; moor verify finds all of these".to_owned(),
        ),
        Reason::NoAddress => (String::new(), String::new()),
    };
    Verdict {
        reached: matches!(way.reason, Reason::Direct | Reason::Routed),
        reason: way.reason,
        text,
        help,
    }
}

/// An instance as people write it.
pub(super) fn name(instance: &str) -> String {
    let name = instance.strip_prefix("default/").unwrap_or(instance);
    name.to_owned()
}

/// Why two pods have nothing in common, and what to do.
fn apart(from: &End, to: &End) -> (String, String) {
    let names = |end: &End| {
        let names = end.networks().unwrap_or_default();
        let names: Vec<String> = names.into_iter().map(name).collect();
        names.join(", ")
    };
    let (own, other) = (names(from), names(to));
    let mut text = format!("{} and {} share no network", from.short(), to.short());
    if own != other && !own.is_empty() && !other.is_empty() {
        text = format!("{text}: {own} here, {other} there");
    }
    (text, "attach both to one network instance".to_owned())
}

/// The address without its length, or what it will be one of.
fn plain(address: &Address) -> String {
    if address.is_fixed {
        address.addr().to_string()
    } else {
        address.shown.clone()
    }
}
