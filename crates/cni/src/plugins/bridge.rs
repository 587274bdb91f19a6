//! `bridge`: a pod's interface is one end of a pair, the other end is a port of a bridge on the node.
//!
//! ```text
//!  pod  net1 ══ veth… ── cni0 (gateway's address) ── node, forwarding, masquerading
//!                 │
//!                 └ hairpin, isolation, VLANs; nftables: MAC check
//! ```
//!
//! ADD asks for addresses, then makes the pair (one message, the port included), then everything that is looked up by
//! the pair's name or by the attachment's mark; so a kill at any instant leaves nothing that DEL cannot name. The bridge
//! itself is shared and stays. Easy to get wrong: DEL may know neither namespace nor result, and the rules in nftables
//! outlive the interface.

mod check;
mod config;
mod ensure;
mod gateway;
mod legacy;
mod mark;
mod masquerade;
mod nft;
mod noted;
mod pair;
mod spoof;
mod turn;

use std::thread;
use std::time::{Duration, Instant};

use mooring_api::HostCidr;
use mooring_api::net::{Link, LinkKind, OperState};
use mooring_attach::cni::{CniError, CniResult, Interface};
use mooring_host::{Netlink, Netns, fault};

use crate::call::Call;
use crate::configure::{self, Options};
use crate::plugin::Plugin;
use config::Wanted;

pub(crate) use config::{Trunk, mac, mtu, trunk, vlan};
pub(crate) use gateway::default_of;
pub(crate) use mark::Mark;
pub(crate) use pair::{Ends, make, node, pod, remove, remove_end, sweep};
pub(crate) use turn::Turn;

/// How long a port may take to come up; it takes some milliseconds.
const CARRIER_BOUND: Duration = Duration::from_secs(2);

pub(crate) struct Bridge;

impl Plugin for Bridge {
    fn about(&self) -> &'static str {
        "puts the pod's interface on a bridge of the node"
    }

    fn add(&self, call: &Call) -> Result<CniResult, CniError> {
        call.request.args.check_known(&["MAC"])?;
        let wanted = Wanted::of(call.request)?;
        if wanted.spoof_check || wanted.masquerade && call.config().ipam.is_some() {
            nft::present()?;
        }
        let (netns, mut pod) = pod(call)?;
        let mut node = node()?;
        let mark = mark_of(call);
        let turn = Turn::take(call, &mark)?;
        let addresses = call.ipam_add()?;
        fault::point("bridge-addresses");
        let namespaces = (&netns, &mut pod, &mut node);
        let made = turn.attempt(
            || attach(call, &wanted, &mark, namespaces, addresses),
            || detach(call, &mark, Some(&wanted)),
        );
        made.map_err(|failure| call.undo_ipam(failure))
    }

    fn del(&self, call: &Call) -> Result<(), CniError> {
        // What cannot be read now could not be read by the ADD either, but addresses may be held.
        let wanted = Wanted::of(call.request).ok();
        let mark = mark_of(call);
        let turn = Turn::take(call, &mark)?;
        let detached = turn.of(|| detach(call, &mark, wanted.as_ref()));
        let released = call.ipam_del();
        all([detached, released])
    }

    fn check(&self, call: &Call) -> Result<(), CniError> {
        call.ipam_check()?;
        check::run(call, &Wanted::of(call.request)?, &mark_of(call))
    }

    fn status(&self, call: &Call) -> Result<(), CniError> {
        let wanted = Wanted::of(call.request)?;
        if wanted.spoof_check || wanted.masquerade {
            nft::present()?;
        }
        let name = wanted.bridge.as_str();
        let found = node()?.link(name);
        let found =
            found.map_err(|e| CniError::unavailable("cannot look for the bridge").because(&e))?;
        if found.is_some_and(|link| !matches!(link.kind, LinkKind::Bridge(_))) {
            let msg = format!("{name} is on this node and is not a bridge");
            return Err(CniError::unavailable(msg));
        }
        call.ipam_status()
    }

    fn gc(&self, call: &Call) -> Result<(), CniError> {
        let network = &call.config().name;
        let valid = Mark::all(network, &call.config().valid);
        let ends = node().and_then(|mut node| sweep(&mut node, network, &valid));
        let rules = if nft::present().is_ok() {
            let exists = |name: &str| node().is_ok_and(|mut n| !matches!(n.link(name), Ok(None)));
            let spoof = spoof::sweep(network, &valid, exists);
            all([spoof, masquerade::sweep(network, &valid)])
                .and_then(|()| noted::sweep(call, network, &valid))
        } else {
            Ok(())
        };
        all([ends, rules, call.ipam_gc()])
    }
}

/// The attachment of a call.
pub(crate) fn mark_of(call: &Call) -> Mark {
    Mark::new(&call.config().name, call.container(), call.ifname())
}

/// Everything after the addresses.
fn attach(
    call: &Call,
    wanted: &Wanted,
    mark: &Mark,
    (netns, pod, node): (&Netns, &mut Netlink, &mut Netlink),
    addresses: Option<CniResult>,
) -> Result<CniResult, CniError> {
    let layer3 = addresses.is_some();
    let mut result = addresses.unwrap_or_default();
    let gateways = gateway::settle(&mut result, wanted.gateway, wanted.default_gateway)?;
    result.assign(2);
    let locks = &call.paths.own;
    let bridge = ensure::bridge(node, wanted, locks)?;
    let ends = Ends {
        mac: wanted.mac,
        mtu: wanted.mtu,
        master: Some(bridge.index),
    };
    let port = make(node, netns, mark, ends)?;
    ensure::port(node, &bridge, port.index, wanted)?;
    fault::point("bridge-port");
    let mut gateway = None;
    if !gateways.is_empty() {
        let link = ensure::gateway(node, &bridge, &gateways, wanted, locks)?;
        gateway = wanted.vlan.map(|_| link);
    }
    let own = container_end(pod, mark)?;
    let sandbox = call.request.sandbox();
    result.interfaces = vec![interface(&bridge), interface(&port), interface(&own)];
    result.interfaces[2].sandbox = Some(sandbox);
    result.interfaces.extend(gateway.as_ref().map(interface));
    if wanted.spoof_check || wanted.masquerade && layer3 {
        noted::write(call, mark)?;
        fault::point("bridge-noted");
    }
    if wanted.spoof_check {
        let mac = own
            .mac
            .ok_or_else(|| CniError::internal("the pair has no MAC"))?;
        spoof::set(mark, &port.name, mac)?;
        fault::point("bridge-spoof-check");
    }
    if wanted.masquerade && layer3 {
        let own: Vec<HostCidr> = result.ips.iter().map(|ip| ip.address).collect();
        masquerade::set(mark, &own)?;
        fault::point("bridge-masquerade");
    }
    if !wanted.down {
        let options = Options {
            sysctls: sysctls(layer3, wanted.dad),
            // The key's default is the reference's: a bridge of the node has pods of the node.
            detect: false,
            ..Options::of(call)?
        };
        let ready = configure::configure(netns, pod, &own, &result, options)?;
        fault::point("bridge-configured");
        result.interfaces[1] = interface(&await_carrier(node, &port.name)?);
        // A pair has carrier at both ends or at none.
        ready.tell_from(call, netns, &own);
    }
    if follows(&bridge, &port)
        && let Ok(Some(link)) = node.link(&bridge.name)
    {
        result.interfaces[0] = interface(&link);
    }
    if !call.config().dns.is_empty() {
        result.dns = call.config().dns.clone();
    }
    Ok(result)
}

/// Everything but the addresses; each step runs whatever became of the others.
fn detach(call: &Call, mark: &Mark, wanted: Option<&Wanted>) -> Result<(), CniError> {
    let ends = node().and_then(|mut node| remove(&mut node, mark, call.request.netns.as_deref()));
    fault::point("bridge-pair-removed");
    all([ends, unrule(call, mark, wanted)])
}

/// Removes the rules in nftables: those that were noted, whatever the configuration says by now, and those that it speaks of,
/// which the plugin before us may have made.
fn unrule(call: &Call, mark: &Mark, wanted: Option<&Wanted>) -> Result<(), CniError> {
    let noted = noted::of(call, mark);
    // Without nft no rule was made here; one from before it was removed must not keep the pod from ending.
    if let Some(mark) = &noted
        && nft::present().is_ok()
    {
        let check = spoof::remove(mark);
        all([check, masquerade::remove(mark).map(drop)])?;
        fault::point("bridge-rules-removed");
        return noted::remove(call, mark);
    }
    let check = if wanted.is_some_and(|w| w.spoof_check) && nft::present().is_ok() {
        spoof::remove(mark)
    } else {
        Ok(())
    };
    let masquerade = if wanted.is_some_and(|w| w.masquerade) && call.config().ipam.is_some() {
        unmasquerade(mark)
    } else {
        Ok(())
    };
    all([check, masquerade])
}

fn unmasquerade(mark: &Mark) -> Result<(), CniError> {
    // Without nft there are no rules of ours, but there may be those of the plugin before us.
    let had = nft::present().is_ok() && masquerade::remove(mark)?;
    if had { Ok(()) } else { legacy::remove(mark) }
}

/// A pod whose address is its own need not ask for a second whether it is.
fn sysctls(layer3: bool, detection: bool) -> &'static [(&'static str, &'static str, &'static str)] {
    const NOTIFY: (&str, &str, &str) = ("ipv4", "arp_notify", "1");
    match (layer3, detection) {
        (false, _) => &[],
        (true, true) => &[
            ("ipv6", "accept_dad", "1"),
            ("ipv6", "enhanced_dad", "1"),
            NOTIFY,
        ],
        (true, false) => &[("ipv6", "accept_dad", "0"), NOTIFY],
    }
}

fn container_end(pod: &mut Netlink, mark: &Mark) -> Result<Link, CniError> {
    let found = pod.link(mark.ifname());
    let found = found.map_err(|e| CniError::internal("cannot look into the pod").because(&e))?;
    found.ok_or_else(|| CniError::try_again(format!("{} vanished", mark.ifname())))
}

/// The port, once it is up.
fn await_carrier(node: &mut Netlink, port: &str) -> Result<Link, CniError> {
    let deadline = Instant::now() + CARRIER_BOUND;
    let mut pause = Duration::from_micros(200);
    loop {
        let seen = node.link(port);
        let seen = seen.map_err(|e| CniError::internal("cannot look at the port").because(&e))?;
        let state = seen
            .as_ref()
            .map_or(OperState::NotPresent, |link| link.state);
        match seen {
            Some(link) if state == OperState::Up => return Ok(link),
            _ if Instant::now() < deadline => thread::sleep(pause),
            _ => {
                let msg = format!("bridge port in error state: {state:?}");
                return Err(CniError::try_again(msg).with_details(format!("port {port}")));
            }
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Whether a bridge may look otherwise once it has this port: somebody else's takes the lowest MAC and the lowest MTU of its
/// ports. One that was up has ports already and is as they made it; carrier does not tell, for a new bridge has it without any.
fn follows(bridge: &Link, port: &Link) -> bool {
    bridge.state != OperState::Up || port.mac < bridge.mac || port.mtu < bridge.mtu
}

/// A link as a result shows it.
pub(crate) fn interface(link: &Link) -> Interface {
    Interface {
        name: link.name.clone(),
        mac: link.mac.map(|mac| mac.to_string()),
        mtu: Some(link.mtu),
        ..Interface::default()
    }
}

/// All failures as one.
pub(crate) fn all<const N: usize>(outcomes: [Result<(), CniError>; N]) -> Result<(), CniError> {
    let errors = outcomes.into_iter().filter_map(Result::err).collect();
    CniError::all(errors).map_or(Ok(()), Err)
}
