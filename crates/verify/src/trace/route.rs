//! A pod's routing table, as its kernel would have it.
//!
//! ```text
//!  own subnets      scope link        longest prefix first;
//!  NAD's routes     via their gateway   of equal ones the first that was added
//!  default          via eth0, unless the annotation's default-route moves it
//! ```
//!
//! Easy to get wrong: a default route in a NAD does nothing. The primary network has added its own before, and
//! the plugins pass over a route that is there already.

use std::net::IpAddr;

use mooring_api::Cidr;

use super::pod::{End, Interface};

/// Where a packet goes next.
#[derive(Clone, Copy)]
pub(super) struct Hop<'a> {
    /// The route that decided; none for the primary's default.
    to: Option<Cidr>,
    interface: Option<&'a Interface>,
    gateway: Option<IpAddr>,
}

impl<'a> Hop<'a> {
    /// The secondary interface; none where the packet leaves by the primary one.
    pub(super) fn interface(&self) -> Option<&'a Interface> {
        self.interface
    }

    pub(super) fn gateway(&self) -> Option<IpAddr> {
        self.gateway
    }

    /// The route's destination.
    pub(super) fn to(&self) -> Option<Cidr> {
        self.to
    }

    /// Whether the gateway, if there is one, can be asked for on the interface.
    pub(super) fn is_usable(&self) -> bool {
        let Some((interface, gateway)) = self.interface.zip(self.gateway) else {
            return true;
        };
        let own = &interface.addresses;
        own.iter().any(|a| a.host.subnet().contains(gateway))
    }
}

/// All routes of a pod.
pub(super) struct Table<'a>(Vec<Hop<'a>>);

impl<'a> Table<'a> {
    pub(super) fn of(end: &'a End) -> Self {
        let mut table = Vec::new();
        for interface in &end.interfaces {
            let connected = interface.addresses.iter().map(|address| Hop {
                to: Some(address.host.subnet()),
                interface: Some(interface),
                gateway: None,
            });
            table.extend(connected);
            let default = interface.defaults.iter().map(|gateway| Hop {
                to: Some(everything(*gateway)),
                interface: Some(interface),
                gateway: Some(*gateway),
            });
            table.extend(default);
            let routes = interface
                .routes
                .iter()
                .filter(|route| !route.to.is_default());
            table.extend(routes.map(|route| Hop {
                to: Some(route.to),
                interface: Some(interface),
                gateway: route.gateway,
            }));
        }
        Self(table)
    }

    /// The next hop for an address.
    pub(super) fn look_up(&self, address: IpAddr) -> Hop<'a> {
        const PRIMARY: Hop<'static> = Hop {
            to: None,
            interface: None,
            gateway: None,
        };
        let length = |hop: &Hop<'_>| hop.to.map_or(0, |to| to.prefix_len());
        let fits = |hop: &&Hop<'a>| hop.to.is_some_and(|to| to.contains(address));
        let mut best: Option<&Hop<'a>> = None;
        for hop in self.0.iter().filter(fits) {
            if best.is_none_or(|best| length(hop) > length(best)) {
                best = Some(hop);
            }
        }
        best.copied().unwrap_or(PRIMARY)
    }
}

fn everything(like: IpAddr) -> Cidr {
    Cidr::containing(like, 0)
}
