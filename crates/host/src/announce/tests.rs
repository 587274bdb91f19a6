//! Announcements and probes on a real segment: two hosts on one bridge, the second one listens.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use mooring_testkit::{Netns as Testns, Sandbox};

use super::packet::Packet;
use mooring_api::Mac;

use super::*;
use crate::{Heard, Taken, probe};

/// How long a listener waits for frames that never come; a test that passes does not wait.
const BOUND: Duration = Duration::from_secs(10);

fn open(netns: &Testns) -> Netns {
    Netns::open(netns.path()).unwrap()
}

fn link(netns: &Netns, name: &str) -> Link {
    netns.netlink().unwrap().link(name).unwrap().unwrap()
}

/// What the frames of `from` say that reach `eth1` of `to` while `act` runs: as many as `wanted`, or those within the bound.
fn heard(to: &Netns, from: Mac, wanted: usize, act: impl FnOnce()) -> Vec<String> {
    let index = link(to, "eth1").index;
    let (ready, is_ready) = mpsc::channel();
    thread::scope(|scope| {
        let listener = scope.spawn(move || {
            to.run(move || {
                let packet = Packet::open(index, true).unwrap();
                ready.send(()).unwrap();
                let began = Instant::now();
                let mut heard = Vec::new();
                let mut buffer = [0; 256];
                while heard.len() < wanted && began.elapsed() < BOUND {
                    let wait = Duration::from_millis(100);
                    let Some(frame) = packet.next(&mut buffer, wait).unwrap() else {
                        continue;
                    };
                    if frame[6..12] == from.octets()
                        && let Some(text) = told(frame)
                    {
                        heard.push(text);
                    }
                }
                heard
            })
            .unwrap()
        });
        is_ready.recv().unwrap();
        act();
        listener.join().unwrap()
    })
}

/// A frame in words; `None` for what the kernel says by itself (router solicitations, multicast reports).
fn told(frame: &[u8]) -> Option<String> {
    match (&frame[12..14], frame[20], frame[21]) {
        ([8, 6], 0, op) => Some(format!(
            "arp {op} sender {}.{}.{}.{} target {}.{}.{}.{}",
            frame[28], frame[29], frame[30], frame[31], frame[38], frame[39], frame[40], frame[41]
        )),
        ([0x86, 0xdd], 58, 255) if frame[54] == 136 => {
            let target = <[u8; 16]>::try_from(&frame[62..78]).unwrap();
            let target = std::net::Ipv6Addr::from(target);
            Some(format!("advertisement of {target} flags {:#x}", frame[58]))
        }
        _ => None,
    }
}

fn segment(what: &str) -> Option<(Sandbox, Testns, Testns)> {
    let sandbox = Sandbox::new(what)?;
    let fabric = sandbox.fabric("fabric");
    let one = sandbox.plugged(&fabric, "one");
    let two = sandbox.plugged(&fabric, "two");
    Some((sandbox, one, two))
}

#[test]
fn a_neighbour_hears_an_address_in_every_form() {
    let Some((_sandbox, one, two)) = segment("announcements on a segment") else {
        return;
    };
    let (one, two) = (open(&one), open(&two));
    let mac = link(&one, "eth1").mac.unwrap();
    let addresses: Vec<IpAddr> = vec![
        "10.1.2.20".parse().unwrap(),
        "2001:db8::20".parse().unwrap(),
    ];
    let heard = heard(&two, mac, 3, || {
        let sent = announce(&one, "eth1", &addresses).unwrap();
        assert_eq!(sent, Announced::Sent(3));
    });
    assert_eq!(
        heard,
        [
            "arp 1 sender 10.1.2.20 target 10.1.2.20",
            "arp 2 sender 10.1.2.20 target 10.1.2.20",
            "advertisement of 2001:db8::20 flags 0x20",
        ]
    );
}

#[test]
fn both_ways_out_put_the_same_frame_on_the_wire() {
    let Some((_sandbox, one, two)) = segment("two ways to send a frame") else {
        return;
    };
    let (one, two) = (open(&one), open(&two));
    let seen = link(&one, "eth1");
    let mac = seen.mac.unwrap();
    let frame = &frame::announcements(mac, "10.1.2.20".parse().unwrap())[0];
    let by_packet = heard(&two, mac, 1, || {
        let sent = one.run(|| {
            let mut out = Out {
                index: seen.index,
                injector: None,
                packet: None,
            };
            out.send(frame)
        });
        sent.unwrap().unwrap();
    });
    assert_eq!(by_packet, ["arp 1 sender 10.1.2.20 target 10.1.2.20"]);
    let has_bpf = one
        .run(|| inject::Injector::to(seen.index).is_ok())
        .unwrap();
    if !has_bpf {
        mooring_testkit::skip("bpf-absent", "frames sent by BPF");
        return;
    }
    let by_bpf = heard(&two, mac, 1, || {
        let sent = one.run(|| inject::Injector::to(seen.index)?.send(frame));
        sent.unwrap().unwrap();
    });
    assert_eq!(by_bpf, by_packet);
}

#[test]
fn nobody_is_told_without_neighbours_or_without_carrier() {
    let Some(sandbox) = Sandbox::new("announcements without carrier") else {
        return;
    };
    let alone = sandbox.netns("alone");
    alone.ip("link add eth1 type veth peer name away");
    alone.ip("link set eth1 up");
    let netns = open(&alone);
    let address: [IpAddr; 1] = ["10.1.2.20".parse().unwrap()];
    assert_eq!(announce(&netns, "lo", &address).unwrap(), Announced::Nobody);
    assert_eq!(announce(&netns, "eth1", &[]).unwrap(), Announced::Nobody);
    assert_eq!(
        announce(&netns, "eth1", &address).unwrap(),
        Announced::NoCarrier
    );
    alone.ip("link set eth1 down");
    assert_eq!(
        announce(&netns, "eth1", &address).unwrap(),
        Announced::NoCarrier
    );
    let error = announce(&netns, "eth9", &address).unwrap_err();
    assert!(matches!(error, AnnounceError::Absent { .. }), "{error}");
    for (link, addresses) in [("lo", &address[..]), ("eth1", &[]), ("eth1", &address)] {
        let heard = probe(&netns, link, addresses, BOUND).unwrap();
        assert_eq!(heard, Heard::NotAsked, "{link}: silence would say too much");
    }
}

#[test]
fn carrier_that_comes_late_is_waited_for() {
    let Some(sandbox) = Sandbox::new("announcements after late carrier") else {
        return;
    };
    let alone = sandbox.netns("alone");
    alone.ip("link add eth1 type veth peer name away");
    alone.ip("link set eth1 up");
    let netns = open(&alone);
    let mut netlink = netns.netlink().unwrap();
    let before = with_carrier(&mut netlink, "eth1", Duration::ZERO)
        .unwrap()
        .unwrap();
    assert!(!before.carrier);
    let after = thread::scope(|scope| {
        scope.spawn(|| alone.ip("link set away up"));
        with_carrier(&mut netlink, "eth1", BOUND).unwrap().unwrap()
    });
    assert!(after.carrier);
}

#[test]
fn a_probe_names_who_has_the_address() {
    let Some((_sandbox, one, two)) = segment("address probes") else {
        return;
    };
    two.ip("addr add 10.1.2.20/24 dev eth1");
    two.ip("addr add 2001:db8::20/64 dev eth1 nodad");
    let by = link(&open(&two), "eth1").mac.unwrap();
    let asking = open(&one);
    for (taken, free) in [("10.1.2.20", "10.1.2.21"), ("2001:db8::20", "2001:db8::21")] {
        let (address, free): (IpAddr, IpAddr) = (taken.parse().unwrap(), free.parse().unwrap());
        let heard = probe(&asking, "eth1", &[free, address], BOUND).unwrap();
        assert_eq!(heard, Heard::Taken(Taken { address, by }));
        let heard = probe(&asking, "eth1", &[free], Duration::from_millis(60)).unwrap();
        assert_eq!(heard, Heard::Silence);
    }
    // Nobody learns the asking host's MAC for the address from a probe.
    let known = two.ip("-j neigh show dev eth1");
    assert!(!known.contains("10.1.2.2"), "{known}");
}
