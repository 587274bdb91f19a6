//! Readers against bytes that no kernel sends: they pass over them, and neither panic nor read on for ever.

use mooring_api::net::{BridgeVlan, Neighbour, NewLink, NextHop, Rule};
use netlink_packet_route::RouteNetlinkMessage as Message;

use super::*;

/// A small generator with a fixed start: the same bytes in every run.
struct Bytes(u64);

impl Bytes {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
}

/// One good message of each object, as the encoders write it.
fn good() -> Vec<Vec<u8>> {
    let addr = Addr::new(5, "fd00::5/64".parse().unwrap()).nodad();
    let mut route = Route::to("10.0.0.0/8".parse().unwrap()).metric(7);
    route.mtu = Some(1400);
    let hop = |oif| NextHop {
        oif,
        gateway: Some("10.0.0.1".parse().unwrap()),
        weight: 2,
        onlink: true,
        extra: Vec::new(),
    };
    route.next_hops = vec![hop(5), hop(6)];
    let mac = "02:00:00:00:00:01".parse().unwrap();
    let near = Neighbour::permanent(5, "10.0.0.1".parse().unwrap(), mac);
    let rule = Rule::from("10.0.0.0/8".parse().unwrap(), 100).priority(5);
    let change = mooring_api::net::VfChange {
        mac: Some(mac),
        rate: Some(mooring_api::net::VfRate { min: 1, max: 2 }),
        ..Default::default()
    };
    let veth = NewLink::veth("a0", "b0");
    let messages = [
        Message::NewAddress(addr::add(&addr)),
        Message::NewRoute(route::add(&route)),
        Message::NewNeighbour(neighbour::encode(&near)),
        Message::NewRule(rule::encode(&rule)),
        Message::SetLink(vf::change(5, 3, &change)),
        Message::NewLink(link::make(&veth, None, None)),
        Message::SetLink(bridge::vlan(&BridgeVlan::range(5, 10, 20))),
    ];
    messages.into_iter().map(socket::bytes_of).collect()
}

/// Every reader over the same bytes; how many found something.
fn read_all(bytes: &[u8]) -> usize {
    [
        addr::read(bytes).is_some(),
        route::read(bytes).is_some(),
        neighbour::read(bytes).is_some(),
        rule::read(bytes).is_some(),
        link::read::link(bytes).is_some(),
        bridge::read(bytes).is_some_and(|vlans| !vlans.is_empty()),
    ]
    .into_iter()
    .filter(|found| *found)
    .count()
}

#[test]
fn what_is_written_is_read() {
    for (nth, bytes) in good().iter().enumerate() {
        // The change of a VF names no link, so it reads as none.
        assert!(nth == 4 || read_all(bytes) > 0, "{nth}");
    }
}

#[test]
fn no_bytes_make_a_reader_panic() {
    let mut random = Bytes(0x9e37_79b9_7f4a_7c15);
    let good = good();
    let (mut read, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes = good[random.below(good.len())].clone();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len());
            bytes[at] = u8::try_from(random.below(256)).unwrap();
        }
        bytes.truncate(random.below(bytes.len()) + 1);
        if read_all(&bytes) > 0 {
            read += 1;
        } else {
            refused += 1;
        }
    }
    // Both happen, so the readers were reached and their refusals too.
    assert!(
        read > 1000 && refused > 1000,
        "{read} read, {refused} refused"
    );
}
