//! `ovs`: a pod's interface is one end of a pair, the other end is a port of an Open vSwitch bridge.
//!
//! The bridge is the administrator's; only ports come and go. ADD makes the pair, then the port, whose name and marks
//! follow from container and interface; so whatever a kill leaves, DEL and GC find it in the switch's database.
//! Easy to get wrong: that database outlives a reboot and the pair does not, so a port may be left that names no
//! interface any more.

mod config;
mod vsctl;

use mooring_api::net::{Link, LinkKind};
use mooring_attach::cni::{CniError, CniResult};
use mooring_host::{Netlink, Netns, fault};
use serde_json::Value;

use super::bridge::{
    Ends, Mark, Turn, all, interface, make, mark_of, node, pod, remove, remove_end, sweep,
};
use crate::call::Call;
use crate::configure::{self, Options};
use crate::plugin::Plugin;
use config::{Mode, Wanted};
use vsctl::Switch;

pub(crate) struct Ovs;

impl Plugin for Ovs {
    fn about(&self) -> &'static str {
        "puts the pod's interface on a bridge of Open vSwitch"
    }

    fn add(&self, call: &Call) -> Result<CniResult, CniError> {
        let wanted = Wanted::of(call.request, &call.paths.etc)?;
        let switch = Switch::new(wanted.database.clone());
        let (netns, mut pod) = pod(call)?;
        let mut node = node()?;
        let mark = mark_of(call);
        let turn = Turn::take(call, &mark)?;
        let addresses = call.ipam_add()?;
        fault::point("ovs-addresses");
        let namespaces = (&netns, &mut pod, &mut node);
        let made = turn.attempt(
            || attach(call, &wanted, &switch, namespaces, addresses),
            || detach(call, &switch, &mark),
        );
        made.map_err(|failure| call.undo_ipam(failure))
    }

    fn del(&self, call: &Call) -> Result<(), CniError> {
        let switch = Switch::new(config::database_of(call.request, &call.paths.etc));
        let mark = mark_of(call);
        let turn = Turn::take(call, &mark)?;
        let detached = turn.of(|| detach(call, &switch, &mark));
        all([detached, call.ipam_del()])
    }

    fn check(&self, call: &Call) -> Result<(), CniError> {
        call.ipam_check()?;
        let wanted = Wanted::of(call.request, &call.paths.etc)?;
        check(call, &wanted, &Switch::new(wanted.database.clone()))
    }

    fn status(&self, call: &Call) -> Result<(), CniError> {
        let wanted = Wanted::of(call.request, &call.paths.etc)?;
        let there = Switch::new(wanted.database.clone()).has(wanted.bridge.as_str());
        // Whatever the reason, no ADD can succeed.
        there.map_err(|e| CniError {
            code: CniError::UNAVAILABLE,
            ..e
        })?;
        call.ipam_status()
    }

    fn gc(&self, call: &Call) -> Result<(), CniError> {
        let network = &call.config().name;
        let valid = Mark::all(network, &call.config().valid);
        let switch = Switch::new(config::database_of(call.request, &call.paths.etc));
        let ports = if Switch::is_installed() {
            sweep_ports(&switch, network, &valid)
        } else {
            Ok(())
        };
        let ends = node().and_then(|mut node| sweep(&mut node, network, &valid));
        all([ports, ends, call.ipam_gc()])
    }
}

fn attach(
    call: &Call,
    wanted: &Wanted,
    switch: &Switch,
    (netns, pod, node): (&Netns, &mut Netlink, &mut Netlink),
    addresses: Option<CniResult>,
) -> Result<CniResult, CniError> {
    let mark = mark_of(call);
    let mut result = addresses.unwrap_or_default();
    result.assign(1);
    let ends = Ends {
        mac: wanted.mac,
        mtu: wanted.mtu,
        master: None,
    };
    let port = make(node, netns, &mark, ends)?;
    let sandbox = call.request.sandbox();
    switch.add_port(&port.name, wanted, &mark, &sandbox)?;
    fault::point("ovs-port");
    let own = look(pod, call.ifname())?;
    result.interfaces = vec![interface(&port), interface(&own)];
    result.interfaces[1].sandbox = Some(sandbox);
    let ready = configure::configure(netns, pod, &own, &result, Options::of(call)?)?;
    fault::point("ovs-configured");
    ready.tell(call, netns, pod);
    // The switch may have given the port another MAC.
    result.interfaces[0] = interface(&look(node, &port.name)?);
    if !call.config().dns.is_empty() {
        result.dns = call.config().dns.clone();
    }
    Ok(result)
}

/// The port, then the pair; each whatever became of the other.
fn detach(call: &Call, switch: &Switch, mark: &Mark) -> Result<(), CniError> {
    let netns = call.request.netns.as_deref();
    let ports = if Switch::is_installed() {
        drop_ports(switch, mark, netns.and_then(|path| path.to_str()))
    } else {
        Ok(())
    };
    fault::point("ovs-port-removed");
    let ends = node().and_then(|mut node| remove(&mut node, mark, netns));
    all([ports, ends])
}

fn drop_ports(switch: &Switch, mark: &Mark, netns: Option<&str>) -> Result<(), CniError> {
    let found = switch.ports_of(mark, netns)?;
    let dropped = found.iter().map(|name| switch.del_port(name));
    let errors: Vec<CniError> = dropped.filter_map(Result::err).collect();
    CniError::all(errors).map_or(Ok(()), Err)
}

fn sweep_ports(switch: &Switch, network: &str, valid: &[Mark]) -> Result<(), CniError> {
    for port in switch.ports_in(network)? {
        let mark = Mark::new(network, &port.container, &port.ifname);
        if !valid.contains(&mark) {
            switch.del_port(&port.name)?;
            let gone = remove_end(&mut node()?, &port.name);
            gone.map_err(|e| CniError::internal("cannot remove a port's interface").because(&e))?;
        }
    }
    Ok(())
}

fn check(call: &Call, wanted: &Wanted, switch: &Switch) -> Result<(), CniError> {
    let prev = call.prev()?;
    let mark = mark_of(call);
    let (netns, mut inside) = pod(call)?;
    let own = look(&mut inside, call.ifname())?;
    if own.kind != LinkKind::Veth {
        let msg = format!("{} in the pod is no end of a pair", own.name);
        return Err(CniError::internal(msg));
    }
    let found = switch.ports_of(&mark, Some(&call.request.sandbox()))?;
    let [port] = found.as_slice() else {
        let msg = format!("Open vSwitch has {} ports for {}", found.len(), own.name);
        return Err(CniError::internal(msg));
    };
    let bridge = switch.bridge_of(port)?;
    if bridge != wanted.bridge.as_str() {
        let msg = format!(
            "the port {port} is on {bridge}, not on {}",
            wanted.bridge.as_str()
        );
        return Err(CniError::internal(msg));
    }
    let seen = switch.vlans(port)?;
    if seen != vlans(&wanted.mode) {
        let msg = format!(
            "the VLANs of the port {port} are {seen}, not {}",
            vlans(&wanted.mode)
        );
        return Err(CniError::internal(msg));
    }
    let end = look(&mut node()?, port)?;
    if own.parent != Some(end.index) {
        let msg = format!("the port {port} is not the other end of {}", own.name);
        return Err(CniError::internal(msg));
    }
    configure::check_configured(&netns, call.ifname(), prev).map(drop)
}

/// Mode, tag and trunks as the database shows them: a single value is itself, any other number of them is a set.
fn vlans(mode: &Mode) -> Value {
    let set = |ids: &[mooring_api::VlanId]| match ids {
        [one] => Value::from(one.get()),
        ids => {
            let ids: Vec<u16> = ids.iter().map(|id| id.get()).collect();
            serde_json::json!(["set", ids])
        }
    };
    let none = || set(&[]);
    match mode {
        Mode::Access(0) => serde_json::json!(["access", none(), none()]),
        Mode::Access(tag) => serde_json::json!(["access", tag, none()]),
        Mode::Trunk(ids) => serde_json::json!(["trunk", none(), set(ids)]),
        Mode::Native(tag, ids) => serde_json::json!(["native-untagged", tag.get(), set(ids)]),
    }
}

fn look(netlink: &mut Netlink, name: &str) -> Result<Link, CniError> {
    let found = netlink.link(name);
    let found =
        found.map_err(|e| CniError::internal(format!("cannot look for {name}")).because(&e))?;
    found.ok_or_else(|| CniError::internal(format!("{name} is gone")))
}
