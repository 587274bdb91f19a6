//! The packets of the user's document: a gNB in one cluster and an AMF in another, on one switch, through `moor-cni`.
//!
//! ```text
//!  ran: gnb 192.168.100.50                core: amf 192.168.100.100, upf 192.168.101.100
//!        └ eth1 ────────── br0 ────────── eth1 ┘
//!                           ├── gateway 192.168.100.1, 192.168.101.1
//!                           └── probe 192.168.100.9, which asks who has an address
//! ```
//!
//! Told twice: with TCP on the machine's kernel, and with SCTP, as N2 has it, on one that speaks it. Nothing here looks at
//! a clock: that nothing was lost is read from the kernel's counters, since a lost first packet is sent again.

mod carrier;
mod uml;

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;

use mooring_testkit::{Netns, component};
use serde_json::{Value, json};

use crate::segment::mac;
use crate::stage::{Pod, Stage};
use carrier::Carrier;

const GNB: &str = "192.168.100.50";
const AMF: &str = "192.168.100.100";
const UPF: &str = "192.168.101.100";
/// Where N2 listens.
const N2: u16 = 38412;

#[test]
fn pods_of_two_clusters_talk_and_one_that_restarts_is_found_at_once() {
    if let Some(world) = World::new("the packets of two clusters") {
        world.tell(Carrier::Tcp);
    }
}

/// Two nodes, a gateway and a probe on one switch.
struct World {
    ran: Stage,
    core: Stage,
    gateway: Netns,
    probe: Netns,
    arping: PathBuf,
}

impl World {
    /// None is a counted skip.
    fn new(what: &str) -> Option<Self> {
        let arping = component("iputils-arping", what)?.join("usr/bin/arping");
        let (ran, core) = (Stage::new(what)?, Stage::new(what)?);
        let fabric = ran.sandbox.fabric("fabric");
        for (stage, port) in [(&ran, "ran"), (&core, "core")] {
            let path = stage.node.path();
            let node = path.rsplit('/').next().unwrap();
            fabric.ip(&format!(
                "link add {port} type veth peer name eth1 netns {node}"
            ));
            fabric.ip(&format!("link set {port} master br0 up"));
            stage.node.ip("link set eth1 up");
        }
        let gateway = ran.sandbox.plugged(&fabric, "gateway");
        let probe = ran.sandbox.plugged(&fabric, "probe");
        gateway.ip("addr add 192.168.100.1/24 dev eth1");
        gateway.ip("addr add 192.168.101.1/24 dev eth1");
        probe.ip("addr add 192.168.100.9/24 dev eth1");
        // A gateway with both subnets on one wire would send hosts past itself: not what is told here.
        let settings = "echo 1 >net/ipv4/ip_forward; echo 0 >net/ipv4/conf/all/send_redirects; \
                        echo 0 >net/ipv4/conf/eth1/send_redirects";
        let settings = format!("cd /proc/sys; {settings}");
        gateway.run("sh", &["-c", &settings]).ok();
        Some(Self {
            ran,
            core,
            gateway,
            probe,
            arping,
        })
    }

    fn tell(&self, carrier: Carrier) {
        let gnb = pod(&self.ran, "gnb", GNB);
        let amf = pod(&self.core, "amf", AMF);
        gnb.add();
        amf.add();

        // Each address has one owner, whom everybody can ask.
        assert_eq!(self.owners(GNB), BTreeSet::from([mac(&gnb)]));
        assert_eq!(self.owners(AMF), BTreeSet::from([mac(&amf)]));

        // One subnet: by ARP and directly. The AMF sees the gNB's own address, and the gateway carries nothing.
        let server = carrier.listen(&amf.netns, AMF, N2);
        let mut call = Call::new(carrier, &gnb, &server, AMF);
        assert_eq!(talk(&mut call), "hello");
        assert_eq!(neighbour(&gnb, AMF), Some(mac(&amf)));
        assert_eq!(self.carried(), 0);

        // Another subnet: through the gateway, whose MAC is all that the gNB learns; still nobody's address is changed.
        let upf = pod(&self.core, "upf", UPF);
        upf.add();
        let other = carrier.listen(&upf.netns, UPF, N2);
        let mut far = Call::new(carrier, &gnb, &other, UPF);
        assert_eq!(talk(&mut far), "hello");
        assert!(self.carried() > 0);
        assert_eq!(neighbour(&gnb, UPF), None);
        assert!(neighbour(&gnb, "192.168.100.1").is_some());

        // The AMF goes without a goodbye: first its interface, then its sockets.
        let before = mac(&amf);
        amf.del();
        drop(server);
        call.there = None;
        assert_eq!(self.owners(AMF), BTreeSet::new());

        // It is made again, with its address and another MAC. The gNB sent nothing, and knows the new one.
        let amf = pod(&self.core, "amf-again", AMF);
        let result = amf.add();
        let now = mac(&amf);
        assert_ne!(now, before, "{result}");
        learns(&gnb, AMF, &now);
        assert_eq!(self.owners(AMF), BTreeSet::from([now.clone()]));

        // What the gNB had open ends when it speaks, with an answer of the new AMF and not by waiting for the old one.
        let server = carrier.listen(&amf.netns, AMF, N2);
        let error = speak_into_the_void(&mut call.here);
        assert!(carrier.is_refusal(&error), "{error}");
        // And the next call is answered at its first packet.
        let mut again = Call::new(carrier, &gnb, &server, AMF);
        assert_eq!(talk(&mut again), "hello");
        assert_eq!(neighbour(&gnb, AMF), Some(now));
        // The call through the gateway never noticed.
        assert_eq!(talk(&mut far), "hello");

        // The AMF's node dies, and nobody calls DEL. On the other node it has its address too, beside the gNB.
        self.core.node.ip("link set eth1 down");
        let moved = pod(&self.ran, "amf-moved", AMF);
        moved.add();
        learns(&gnb, AMF, &mac(&moved));
        assert_eq!(self.owners(AMF), BTreeSet::from([mac(&moved)]));
        let server = carrier.listen(&moved.netns, AMF, N2);
        let error = speak_into_the_void(&mut again.here);
        assert!(carrier.is_refusal(&error), "{error}");
        let mut last = Call::new(carrier, &gnb, &server, AMF);
        assert_eq!(talk(&mut last), "hello");

        // The node comes back. The runtime cleans up what it had, and the address stays where it is.
        for pod in [&amf, &upf] {
            pod.del();
        }
        self.core.node.ip("link set eth1 up");
        assert_eq!(self.owners(AMF), BTreeSet::from([mac(&moved)]));
        for pod in [gnb, moved] {
            pod.del();
        }
        assert_eq!(self.owners(AMF), BTreeSet::new());
    }

    /// The MACs that answer for an address.
    fn owners(&self, address: &str) -> BTreeSet<String> {
        let said = self.probe.run(
            &self.arping,
            &["-b", "-c", "2", "-w", "2", "-I", "eth1", address],
        );
        let macs = said.stdout.lines().filter_map(|line| {
            let (_, rest) = line.strip_prefix("Unicast reply from ")?.split_once('[')?;
            Some(rest.split_once(']')?.0.to_lowercase())
        });
        macs.collect()
    }

    /// How many packets the gateway has carried from one of its sides to the other.
    fn carried(&self) -> u64 {
        carrier::counter(&self.gateway, "/proc/net/snmp", "Ip:", "ForwDatagrams")
    }
}

/// A connection, by both of its ends.
struct Call {
    here: TcpStream,
    there: Option<TcpStream>,
}

impl Call {
    /// One that is taken; not one of its first packets may be lost.
    #[track_caller]
    fn new(carrier: Carrier, from: &Pod, server: &TcpListener, to: &str) -> Self {
        let lost = carrier.first_packets_lost(&from.netns);
        let here = carrier.connect(&from.netns, to, N2);
        let (there, peer) = carrier::accept(server);
        let peer = peer.ip().to_string();
        assert_eq!(peer, GNB, "an address was changed on the way");
        assert_eq!(carrier.first_packets_lost(&from.netns), lost);
        Self {
            here,
            there: Some(there),
        }
    }
}

/// A pod whose `net1` has a fixed address and a default route through its subnet's gateway.
fn pod(stage: &Stage, container: &str, address: &str) -> Pod {
    let (subnet, _) = address.rsplit_once('.').unwrap();
    let ipam = json!({"type": "static",
        "addresses": [{"address": format!("{address}/24"), "gateway": format!("{subnet}.1")}],
        "routes": [{"dst": "0.0.0.0/0"}]});
    stage.pod(
        container,
        json!({"type": "macvlan", "master": "eth1", "ipam": ipam}),
    )
}

/// Says something and gives what the other side heard, which said it back.
#[track_caller]
fn talk(call: &mut Call) -> String {
    let there = call.there.as_mut().unwrap();
    let mut heard = [0; 5];
    call.here.write_all(b"hello").unwrap();
    there.read_exact(&mut heard).unwrap();
    there.write_all(&heard).unwrap();
    call.here.read_exact(&mut heard).unwrap();
    String::from_utf8(heard.to_vec()).unwrap()
}

/// Speaks on a connection whose other end is gone, until it is told so.
#[track_caller]
fn speak_into_the_void(stream: &mut TcpStream) -> std::io::Error {
    let mut heard = [0; 5];
    if let Err(error) = stream.write_all(b"hello") {
        return error;
    }
    match stream.read(&mut heard) {
        Err(error) => error,
        Ok(0) => std::io::ErrorKind::UnexpectedEof.into(),
        Ok(n) => panic!("somebody answered: {:?}", &heard[..n]),
    }
}

/// The MAC that a pod knows for an address; none while it asks, or after nobody answered.
fn neighbour(pod: &Pod, address: &str) -> Option<String> {
    let shown = pod.netns.ip(&format!("-j neigh show {address} dev net1"));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    Some(shown[0]["lladdr"].as_str()?.to_owned())
}

/// Waits until a pod knows an address at that MAC, and fails with what it knew last.
#[track_caller]
fn learns(pod: &Pod, address: &str, mac: &str) {
    let mut last = None;
    for _ in 0..200 {
        last = neighbour(pod, address);
        if last.as_deref() == Some(mac) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(25));
    }
    panic!("{address} is at {last:?} for it, and not at {mac}");
}

/// For carriers: an address with a port.
fn at(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap(), port)
}
