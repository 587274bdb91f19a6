//! macvlan: the pod gets a child of a link of the node, with a MAC of its own.
//!
//! Keys, defaults and precedence are the reference plugin's. Ours: `master` may be `<nic>.<vlan>`, `probe`, `hostReach`.
//!
//! Easy to get wrong: no `ipam` is not an error here but an interface for layer 2 only.

use std::net::IpAddr;

use mooring_api::Mac;
use mooring_api::net::{Link, LinkKind, MacvlanMode, NewLink};
use mooring_attach::cni::{CniError, CniResult, read};
use mooring_host::{Netlink, Netns, Reach, ShimError, Shims};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::child::{self, Made};
use crate::call::Call;
use crate::plugin::Plugin;

/// The plugin.
pub(crate) struct Macvlan;

/// Its own keys, beside those of every child.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Keys {
    mode: String,
    mac: String,
    #[serde(rename = "bcqueuelen")]
    broadcast_queue: Option<u32>,
    host_reach: HostReach,
}

/// `hostReach`: `true`, or an object with the node's addresses for it.
#[derive(Debug)]
enum HostReach {
    Wanted(bool),
    With(With),
}

#[derive(Debug, Deserialize)]
struct With {
    addresses: Vec<IpAddr>,
}

impl<'de> Deserialize<'de> for HostReach {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = match Value::deserialize(deserializer)? {
            Value::Bool(wanted) => Ok(Self::Wanted(wanted)),
            other => read(&other).map(Self::With),
        };
        read.map_err(D::Error::custom)
    }
}

impl Default for HostReach {
    fn default() -> Self {
        Self::Wanted(false)
    }
}

impl HostReach {
    fn is_wanted(&self) -> bool {
        !matches!(self, Self::Wanted(false))
    }

    fn addresses(&self) -> &[IpAddr] {
        match self {
            Self::Wanted(_) => &[],
            Self::With(with) => &with.addresses,
        }
    }
}

/// Everything that can be said before the kernel is asked.
struct Checked {
    child: child::Keys,
    mode: MacvlanMode,
    mac: Option<Mac>,
    broadcast_queue: Option<u32>,
    reach: HostReach,
}

impl Checked {
    fn read(call: &Call) -> Result<Self, CniError> {
        let keys: Keys = call.config().keys()?;
        let child = child::Keys::read(call)?;
        let mode = mode(&keys.mode)?;
        if keys.host_reach.is_wanted() {
            let why = if call.config().ipam.is_none() {
                Some("it needs ipam: the node routes to addresses")
            } else if mode != MacvlanMode::Bridge {
                Some("it needs mode bridge: in the others the node's shim does not see the pod")
            } else if child.link_in_container {
                Some("it does not go with linkInContainer: the master is not on the node")
            } else {
                None
            };
            if let Some(why) = why {
                return Err(CniError::config("hostReach", why));
            }
        }
        Ok(Self {
            child,
            mode,
            mac: mac(call, &keys.mac)?,
            broadcast_queue: keys.broadcast_queue,
            reach: keys.host_reach,
        })
    }

    fn kind(&self) -> LinkKind {
        LinkKind::Macvlan {
            mode: self.mode,
            broadcast_queue: self.broadcast_queue,
        }
    }
}

impl Plugin for Macvlan {
    fn about(&self) -> &'static str {
        "a child of a link of the node, with a MAC of its own"
    }

    fn add(&self, call: &Call) -> Result<CniResult, CniError> {
        call.request.args.check_known(&["MAC"])?;
        let checked = Checked::read(call)?;
        let plan = |master: &Link| {
            let mut link = NewLink::new("", checked.kind()).on(master.index);
            link.set.mtu = checked.child.mtu(Some(master.mtu))?;
            link.set.mac = checked.mac;
            Ok(link)
        };
        let made = child::add(call, &checked.child, &plan, None)?;
        if checked.reach.is_wanted()
            && let Err(error) = reach(call, &made, checked.reach.addresses())
        {
            return Err(child::undo(call, &made, error));
        }
        Ok(made.result)
    }

    fn del(&self, call: &Call) -> Result<(), CniError> {
        let mut errors = Vec::new();
        let unreached = child::open_node().and_then(|mut node| {
            shims(call)
                .release(&mut node, call.container(), call.ifname())
                .map_err(|e| child::failed("cannot let go of the shim", &e))
        });
        if let Err(error) = unreached {
            errors.push(error);
        }
        child::del(call, "macvlan", &mut errors);
        child::all(errors)
    }

    fn check(&self, call: &Call) -> Result<(), CniError> {
        let checked = Checked::read(call)?;
        let is_right = |link: &Link| match &link.kind {
            LinkKind::Macvlan { mode, .. } if *mode == checked.mode => Ok(()),
            LinkKind::Macvlan { mode, .. } => Err(CniError::internal(format!(
                "{} is in mode {mode:?}, the network says {:?}",
                link.name, checked.mode
            ))),
            other => Err(CniError::internal(format!(
                "{} is no macvlan but {:?}",
                link.name,
                other.word()
            ))),
        };
        child::check(call, &checked.child, &is_right)?;
        if checked.reach.is_wanted() {
            check_reach(call, &checked.child.master)?;
        }
        Ok(())
    }

    fn status(&self, call: &Call) -> Result<(), CniError> {
        let checked = Checked::read(call)?;
        checked.child.mtu(None)?;
        let fits = |master: &Link| checked.child.mtu(Some(master.mtu)).map(drop);
        child::status(call, &checked.child, fits)
    }

    fn gc(&self, call: &Call) -> Result<(), CniError> {
        let mut errors = Vec::new();
        let collected = child::open_node().and_then(|mut node| {
            shims(call)
                .collect(&mut node, &call.config().name, &child::is_valid(call))
                .map_err(|e| child::failed("cannot let go of shims", &e))
        });
        if let Err(error) = collected {
            errors.push(error);
        }
        child::gc(call, &mut errors);
        child::all(errors)
    }
}

fn shims(call: &Call) -> Shims {
    Shims::new(call.paths.own.join("shim"))
}

fn reach(call: &Call, made: &Made, node_addresses: &[IpAddr]) -> Result<(), CniError> {
    let host = Netns::current().map_err(|e| child::failed("cannot reach the pod", &e))?;
    let mut node: Netlink = child::open_node()?;
    let reach = Reach {
        pod: &made.pod,
        link: &made.link,
        addresses: &child::addresses(&made.result),
        node: node_addresses,
    };
    let user = child::user(call, &made.pod);
    let held = shims(call).hold((&host, &mut node), &made.master, reach, user);
    held.map_err(|error| match &error {
        ShimError::NoAddress { .. } => CniError::config("hostReach", &error).with_details(
            "give the master one, or name the node's addresses in hostReach.addresses",
        ),
        _ => child::failed("cannot make the pod reachable from its node", &error),
    })
}

fn check_reach(call: &Call, master: &str) -> Result<(), CniError> {
    let mut node = child::open_node()?;
    let master = match master {
        "" => child::default_master(&mut node)?.map_or_else(String::new, |link| link.name),
        name => name.to_owned(),
    };
    let addresses = child::addresses(call.prev()?);
    let missing = shims(call).missing(&mut node, &master, &addresses);
    match missing.map_err(|e| child::failed("cannot look for the shim", &e))? {
        Some(missing) => Err(CniError::internal(missing)),
        None => Ok(()),
    }
}

fn mode(text: &str) -> Result<MacvlanMode, CniError> {
    Ok(match text {
        "" | "bridge" => MacvlanMode::Bridge,
        "private" => MacvlanMode::Private,
        "vepa" => MacvlanMode::Vepa,
        "passthru" => MacvlanMode::Passthru,
        other => {
            return Err(CniError::config(
                "mode",
                format!("unknown macvlan mode: {other:?}; it is bridge, private, vepa or passthru"),
            ));
        }
    })
}

/// The MAC that is asked for: the runtime's word, else `CNI_ARGS`, else the configuration's.
fn mac(call: &Call, configured: &str) -> Result<Option<Mac>, CniError> {
    let (field, text) = match (
        call.config().runtime.text("mac"),
        call.request.args.get("MAC"),
    ) {
        (Some(text), _) => ("runtimeConfig.mac", text),
        (None, Some(text)) => ("CNI_ARGS MAC", text),
        (None, None) => ("mac", configured),
    };
    if text.is_empty() {
        return Ok(None);
    }
    let mac: Mac = text.parse().map_err(|e| CniError::config(field, e))?;
    if mac.octets()[0] & 1 == 1 {
        return Err(CniError::config(
            field,
            format!("{mac} is a multicast address"),
        ));
    }
    Ok(Some(mac))
}
