//! Links on the wire: asking for them, making and changing them. Reading them is in `link/read.rs`.

mod kind;
pub(super) mod read;

use std::os::fd::{AsFd, AsRawFd, RawFd};

use mooring_api::net::{AddrGenMode, LinkChange, NewLink, Peer};
use netlink_packet_core::DefaultNla;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoData, InfoVeth, LinkAttribute, LinkExtentMask,
    LinkFlags, LinkInfo, LinkMessage, Prop,
};

use crate::Netns;

const IFALIAS: u16 = 20;
const ALT_IFNAME: u16 = 53;
/// The longest name that is no alternative name.
const NAME: usize = 15;

/// Asks for one link; its VFs only when wanted, since a PF with many of them answers with much.
pub(super) fn get(which: &Which<'_>, vfs: bool) -> RouteNetlinkMessage {
    let mut message = LinkMessage::default();
    match which {
        Which::Index(index) => message.header.index = *index,
        Which::Name(name) if name.len() <= NAME => {
            message
                .attributes
                .push(LinkAttribute::IfName((*name).to_owned()));
        }
        Which::Name(name) => {
            let mut bytes = name.as_bytes().to_vec();
            bytes.push(0);
            message
                .attributes
                .push(LinkAttribute::Other(DefaultNla::new(ALT_IFNAME, bytes)));
        }
    }
    message.attributes.push(LinkAttribute::ExtMask(mask(vfs)));
    RouteNetlinkMessage::GetLink(message)
}

pub(super) enum Which<'a> {
    Index(u32),
    Name(&'a str),
}

pub(super) fn dump() -> RouteNetlinkMessage {
    let mut message = LinkMessage::default();
    message.attributes.push(LinkAttribute::ExtMask(mask(false)));
    RouteNetlinkMessage::GetLink(message)
}

fn mask(vfs: bool) -> Vec<LinkExtentMask> {
    let mut mask = vec![LinkExtentMask::SkipStats];
    if vfs {
        mask.push(LinkExtentMask::Vf);
    }
    mask
}

pub(super) fn make(link: &NewLink, netns: Option<&Netns>, peer: Option<&Netns>) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = link.index.unwrap_or(0);
    message
        .attributes
        .push(LinkAttribute::IfName(link.name.clone()));
    if let Some(parent) = link.parent {
        message.attributes.push(LinkAttribute::Link(parent));
    }
    if let Some(netns) = netns {
        message.attributes.push(LinkAttribute::NetNsFd(fd(netns)));
    }
    set(&mut message, &link.set);
    let mut info = kind::info(&link.kind);
    if let Some(end) = &link.peer {
        // The kernel puts a peer without a namespace beside its link only when the link stays with the socket.
        let peer = other_end(end, peer.or(netns));
        info.push(LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))));
    }
    message.attributes.push(LinkAttribute::LinkInfo(info));
    message
}

fn other_end(peer: &Peer, netns: Option<&Netns>) -> LinkMessage {
    let mut message = LinkMessage::default();
    message
        .attributes
        .push(LinkAttribute::IfName(peer.name.clone()));
    if let Some(netns) = netns {
        message.attributes.push(LinkAttribute::NetNsFd(fd(netns)));
    }
    let change = LinkChange {
        // The kernel configures this end before it ties the pair, and refuses to open half of one (ENOTCONN).
        up: None,
        ..peer.set.clone()
    };
    set(&mut message, &change);
    message
}

pub(super) fn change(index: u32, change: &LinkChange) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    if let Some(name) = &change.name {
        message.attributes.push(LinkAttribute::IfName(name.clone()));
    }
    set(&mut message, change);
    if let Some(kind) = &change.kind {
        message
            .attributes
            .push(LinkAttribute::LinkInfo(kind::info(kind)));
    }
    message
}

/// An alias for the link of that name: without `NLM_F_CREATE` the kernel makes none.
pub(super) fn label(name: &str, alias: &str) -> LinkMessage {
    let mut message = LinkMessage::default();
    message
        .attributes
        .push(LinkAttribute::IfName(name.to_owned()));
    message.attributes.push(alias_attribute(alias));
    message
}

pub(super) fn relocate(index: u32, netns: &Netns, name: Option<&String>) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.attributes.push(LinkAttribute::NetNsFd(fd(netns)));
    if let Some(name) = name {
        message.attributes.push(LinkAttribute::IfName(name.clone()));
    }
    message
}

pub(super) fn delete(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}

pub(super) fn alt_name(index: u32, name: &str) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    let names = vec![Prop::AltIfName(name.to_owned())];
    message.attributes.push(LinkAttribute::PropList(names));
    message
}

/// Without the zero byte that ends a string: the kernel would keep it, and an empty alias must have no byte.
fn alias_attribute(alias: &str) -> LinkAttribute {
    LinkAttribute::Other(DefaultNla::new(IFALIAS, alias.as_bytes().to_vec()))
}

fn fd(netns: &Netns) -> RawFd {
    netns.as_fd().as_raw_fd()
}

fn set(message: &mut LinkMessage, change: &LinkChange) {
    let flags = [
        (change.up, LinkFlags::Up),
        (change.promiscuous, LinkFlags::Promisc),
        (change.all_multicast, LinkFlags::Allmulti),
        (change.arp.map(|on| !on), LinkFlags::Noarp),
        (change.multicast, LinkFlags::Multicast),
    ];
    for (wanted, flag) in flags {
        if let Some(on) = wanted {
            message.header.change_mask |= flag;
            message.header.flags.set(flag, on);
        }
    }
    let attributes = &mut message.attributes;
    if let Some(mac) = change.mac {
        attributes.push(LinkAttribute::Address(mac.octets().to_vec()));
    }
    if let Some(mtu) = change.mtu {
        attributes.push(LinkAttribute::Mtu(mtu));
    }
    if let Some(length) = change.txqlen {
        attributes.push(LinkAttribute::TxQueueLen(length));
    }
    if let Some(alias) = &change.alias {
        attributes.push(alias_attribute(alias));
    }
    if let Some(master) = change.master {
        attributes.push(LinkAttribute::Controller(master));
    }
    if let Some(group) = change.group {
        attributes.push(LinkAttribute::Group(group));
    }
    if let Some(mode) = change.addr_gen {
        let mode = match mode {
            AddrGenMode::Eui64 => In6AddrGenMode::Eui64,
            AddrGenMode::None => In6AddrGenMode::None,
            AddrGenMode::StablePrivacy => In6AddrGenMode::StablePrivacy,
            AddrGenMode::Random => In6AddrGenMode::Random,
        };
        let inet6 = AfSpecUnspec::Inet6(vec![AfSpecInet6::AddrGenMode(mode)]);
        attributes.push(LinkAttribute::AfSpecUnspec(vec![inet6]));
    }
}
