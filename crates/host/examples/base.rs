//! The floor under a CNI plugin: a program that only sends the netlink messages of one call, for `cargo xtask bench cni`.
//!
//! ```text
//!  base macvlan|bridge|host-device add|del NETNS IFNAME LINK ADDRESS GATEWAY
//! ```
//!
//! `LINK` is the parent, the bridge (which is there) or the device. No configuration, no result, no state, no address that
//! somebody keeps: what a plugin takes beyond this is its own. Easy to get wrong: it must send what the plugins send, so it is
//! changed together with them.

use std::error::Error;

use mooring_api::Cidr;
use mooring_api::net::{Addr, LinkChange, LinkKind, MacvlanMode, NewLink, Route};
use mooring_host::{Change, Netlink, Netns};

fn macvlan() -> LinkKind {
    LinkKind::Macvlan {
        mode: MacvlanMode::Bridge,
        broadcast_queue: None,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    mooring_host::visit_in_person();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [plugin, verb, netns, ifname, link, address, gateway] = &args[..] else {
        return Err("base PLUGIN add|del NETNS IFNAME LINK ADDRESS GATEWAY".into());
    };
    let pod = Netns::open(netns)?;
    let mut inside = pod.netlink()?;
    let mut node = Netlink::open()?;
    if verb == "del" {
        let own = inside.link(ifname)?.ok_or("no such interface")?;
        let index = own.index;
        if plugin != "host-device" {
            return Ok(inside.apply(&[Change::DelLink(index)])?);
        }
        let home = Netns::current()?;
        let name = Some(link.clone());
        return Ok(inside.apply(&[Change::Move {
            index,
            netns: &home,
            name,
        }])?);
    }
    let there = node.link(link)?.ok_or("no such link")?;
    match plugin.as_str() {
        "macvlan" => node.apply(&[Change::NewLinkIn {
            link: NewLink::new(ifname, macvlan()).on(there.index),
            netns: Some(&pod),
            peer: None,
        }])?,
        "bridge" => {
            let mut pair = NewLink::veth(format!("base-{}", std::process::id()), ifname);
            pair.set = LinkChange {
                master: Some(there.index),
                up: Some(true),
                ..LinkChange::default()
            };
            node.apply(&[Change::NewLinkIn {
                link: pair,
                netns: None,
                peer: Some(&pod),
            }])?;
        }
        _ => {
            let name = Some(ifname.clone());
            let index = there.index;
            node.apply(&[Change::Move {
                index,
                netns: &pod,
                name,
            }])?;
        }
    }
    let own = inside.link(ifname)?.ok_or("no interface")?;
    let index = own.index;
    let addr = Addr::new(index, address.parse()?);
    let addr = if address.contains(':') {
        addr.optimistic()
    } else {
        addr
    };
    let everything: Cidr = if address.contains(':') {
        "::/0"
    } else {
        "0.0.0.0/0"
    }
    .parse()?;
    let mut route = Route::to(everything).dev(index);
    route.gateway = Some(gateway.parse()?);
    Ok(inside.apply(&[
        Change::SetAddr(addr),
        Change::SetLink {
            index,
            change: LinkChange::up(),
        },
        Change::PrependRoute(route),
    ])?)
}
