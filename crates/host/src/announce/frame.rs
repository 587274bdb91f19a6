//! ARP and neighbour-discovery frames as bytes: announcements, probes, and what an answer says.
//!
//! Pure; called by `announce` and `probe`. Easy to get wrong: a gratuitous ARP *reply* repeats the sender's MAC as
//! target MAC (RFC 5944 4.6); Linux takes a reply for gratuitous only then. And IPv6 neighbour discovery is dropped unless
//! the hop limit is 255 (RFC 4861 7.1).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mooring_api::Mac;

const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;
const BROADCAST: [u8; 6] = [0xff; 6];
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ICMPV6: u8 = 58;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Ethernet's smallest frame without its checksum.
const SMALLEST: usize = 60;

/// What an ARP packet asks or says.
#[derive(Clone, Copy)]
enum Op {
    Request = 1,
    Reply = 2,
}

/// The frames that tell a segment where an address lives now.
pub(crate) fn announcements(mac: Mac, address: IpAddr) -> Vec<Vec<u8>> {
    match address {
        // Both forms: there are stacks and switches that learn only from one of them.
        IpAddr::V4(ip) => vec![
            arp(mac, Op::Request, ip, [0; 6], ip),
            arp(mac, Op::Reply, ip, mac.octets(), ip),
        ],
        IpAddr::V6(ip) => vec![advertisement(mac, ip)],
    }
}

/// The frame that asks whether somebody has an address already: an ARP probe (RFC 5227), or the solicitation of duplicate
/// address detection (RFC 4862). Neither puts the address into anybody's cache.
pub(crate) fn question(mac: Mac, address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(ip) => arp(mac, Op::Request, Ipv4Addr::UNSPECIFIED, [0; 6], ip),
        IpAddr::V6(ip) => solicitation(mac, ip),
    }
}

/// Who, in this frame, claims to have `address` or is about to take it. Frames of `own` say nothing.
pub(crate) fn claimant(frame: &[u8], address: IpAddr, own: Mac) -> Option<Mac> {
    let source = mac_at(frame, 6)?;
    let kind = u16::from_be_bytes(frame.get(12..14)?.try_into().ok()?);
    let body = frame.get(14..)?;
    let who = match (kind, address) {
        (ARP, IpAddr::V4(ip)) => arp_claimant(body, ip)?,
        (IPV6, IpAddr::V6(ip)) => discovery_claimant(body, ip, source)?,
        _ => return None,
    };
    (who != own && source != own).then_some(who)
}

fn arp_claimant(body: &[u8], ip: Ipv4Addr) -> Option<Mac> {
    if body.get(..6)? != [0, 1, 8, 0, 6, 4] {
        return None;
    }
    let sender = mac_at(body, 8)?;
    let said = Ipv4Addr::from(<[u8; 4]>::try_from(body.get(14..18)?).ok()?);
    let asked = Ipv4Addr::from(<[u8; 4]>::try_from(body.get(24..28)?).ok()?);
    // The second is another host's probe for the same address: RFC 5227 2.1.1 calls that a conflict too.
    (said == ip || (said.is_unspecified() && asked == ip)).then_some(sender)
}

fn discovery_claimant(body: &[u8], ip: Ipv6Addr, source: Mac) -> Option<Mac> {
    // Version 6, ICMPv6 directly behind the fixed header (discovery has no extension headers), hop limit 255.
    if body.first()? >> 4 != 6 || *body.get(6)? != ICMPV6 || *body.get(7)? != 255 {
        return None;
    }
    let from = Ipv6Addr::from(<[u8; 16]>::try_from(body.get(8..24)?).ok()?);
    let message = body.get(40..)?;
    let target = Ipv6Addr::from(<[u8; 16]>::try_from(message.get(8..24)?).ok()?);
    if target != ip {
        return None;
    }
    match *message.first()? {
        ADVERTISEMENT => Some(link_layer(message.get(24..)?, 2).unwrap_or(source)),
        // Another host that runs detection for the same address.
        SOLICITATION if from.is_unspecified() => Some(source),
        _ => None,
    }
}

/// The link-layer address in the options of a discovery message.
fn link_layer(mut options: &[u8], wanted: u8) -> Option<Mac> {
    while let [kind, length, ..] = *options {
        let bytes = usize::from(length) * 8;
        if bytes == 0 {
            return None;
        }
        if kind == wanted {
            return mac_at(options, 2);
        }
        options = options.get(bytes..)?;
    }
    None
}

fn mac_at(bytes: &[u8], at: usize) -> Option<Mac> {
    let octets: [u8; 6] = bytes.get(at..at + 6)?.try_into().ok()?;
    Some(Mac::from(octets))
}

fn arp(mac: Mac, op: Op, sender: Ipv4Addr, target_mac: [u8; 6], target: Ipv4Addr) -> Vec<u8> {
    let mut frame = ethernet(BROADCAST, mac, ARP);
    frame.extend([0, 1, 8, 0, 6, 4, 0, op as u8]);
    frame.extend(mac.octets());
    frame.extend(sender.octets());
    frame.extend(target_mac);
    frame.extend(target.octets());
    frame.resize(SMALLEST, 0);
    frame
}

/// Unsolicited advertisement: to all nodes, override set, solicited clear, with our link-layer address (RFC 4861 7.2.6).
fn advertisement(mac: Mac, ip: Ipv6Addr) -> Vec<u8> {
    let mut message = vec![ADVERTISEMENT, 0, 0, 0, 0x20, 0, 0, 0];
    message.extend(ip.octets());
    message.extend([2, 1]);
    message.extend(mac.octets());
    discovery(mac, ip, ALL_NODES, message)
}

/// From the unspecified address, and so without a source link-layer option (RFC 4862 5.4.2).
fn solicitation(mac: Mac, ip: Ipv6Addr) -> Vec<u8> {
    let mut message = vec![SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
    message.extend(ip.octets());
    let [.., x, y, z] = ip.octets();
    let group = Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, x, y, z]);
    discovery(mac, Ipv6Addr::UNSPECIFIED, group, message)
}

fn discovery(mac: Mac, from: Ipv6Addr, to: Ipv6Addr, mut message: Vec<u8>) -> Vec<u8> {
    let length = u8::try_from(message.len()).expect("a discovery message has at most 32 bytes");
    let sum = checksum(from, to, &message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let [.., w, x, y, z] = to.octets();
    let mut frame = ethernet([0x33, 0x33, w, x, y, z], mac, IPV6);
    frame.extend([0x60, 0, 0, 0, 0, length, ICMPV6, 255]);
    frame.extend(from.octets());
    frame.extend(to.octets());
    frame.extend(message);
    frame.resize(frame.len().max(SMALLEST), 0);
    frame
}

fn ethernet(to: [u8; 6], from: Mac, kind: u16) -> Vec<u8> {
    let mut frame = Vec::with_capacity(96);
    frame.extend(to);
    frame.extend(from.octets());
    frame.extend(kind.to_be_bytes());
    frame
}

/// The Internet checksum over pseudo-header and message, whose own checksum field is zero.
fn checksum(from: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> u16 {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut words: u32 = length + u32::from(ICMPV6);
    for bytes in [&from.octets()[..], &to.octets()[..], message] {
        for pair in bytes.chunks(2) {
            words += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        }
    }
    while words >> 16 != 0 {
        words = (words & 0xffff) + (words >> 16);
    }
    !u16::try_from(words).expect("the carries were folded in")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac(last: u8) -> Mac {
        Mac::from([2, 0, 0, 0, 0, last])
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_announcement_claims_its_address_in_every_form() {
        for (address, forms) in [("10.1.2.20", 2), ("2001:db8::20", 1)] {
            let frames = announcements(mac(1), ip(address));
            assert_eq!(frames.len(), forms);
            for frame in &frames {
                assert!(frame.len() >= SMALLEST);
                assert_eq!(claimant(frame, ip(address), mac(2)), Some(mac(1)));
                assert_eq!(claimant(frame, ip(address), mac(1)), None, "our own");
                assert_eq!(claimant(frame, ip("10.1.2.21"), mac(2)), None);
                assert_eq!(claimant(frame, ip("2001:db8::21"), mac(2)), None);
            }
        }
    }

    #[test]
    fn a_gratuitous_reply_repeats_the_senders_mac() {
        let reply = &announcements(mac(1), ip("10.1.2.20"))[1];
        assert_eq!(reply[20..22], [0, 2]);
        assert_eq!(reply[22..28], reply[32..38]);
        assert_eq!(reply[28..32], reply[38..42]);
    }

    #[test]
    fn two_hosts_that_probe_for_one_address_see_each_other() {
        for address in ["10.1.2.20", "2001:db8::20"] {
            let frame = question(mac(1), ip(address));
            assert_eq!(claimant(&frame, ip(address), mac(2)), Some(mac(1)));
            assert_eq!(claimant(&frame, ip(address), mac(1)), None);
        }
    }

    #[test]
    fn the_checksum_is_the_one_of_a_known_frame() {
        // An advertisement's checksum field makes the sum over everything zero.
        let frame = &announcements(mac(7), ip("fe80::1"))[0];
        let (from, to) = (&frame[22..38], &frame[38..54]);
        let from = Ipv6Addr::from(<[u8; 16]>::try_from(from).unwrap());
        let to = Ipv6Addr::from(<[u8; 16]>::try_from(to).unwrap());
        assert_eq!(checksum(from, to, &frame[54..86]), 0);
        assert_eq!(frame[..6], [0x33, 0x33, 0, 0, 0, 1]);
        assert_eq!(frame[21], 255, "hop limit");
    }

    #[test]
    fn a_frame_cut_anywhere_says_nothing_and_breaks_nothing() {
        for address in ["10.1.2.20", "2001:db8::20"] {
            let address = ip(address);
            let whole = announcements(mac(1), address).remove(0);
            let needed = if address.is_ipv4() { 42 } else { 78 };
            for cut in 0..needed {
                assert_eq!(claimant(&whole[..cut], address, mac(2)), None, "{cut}");
            }
            assert!(claimant(&whole, address, mac(2)).is_some());
        }
    }
}
