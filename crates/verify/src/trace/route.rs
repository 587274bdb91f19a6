//! A pod's routing table, as its kernel would have it.
//!
//! ```text
//!  own subnets      scope link          longest prefix first;
//!  NAD's routes     via their gateway     of equal ones the route that a plugin added last (IPv4)
//!  default          via eth0, unless the annotation's default-route or a NAD moves it
//! ```
//!
//! Easy to get wrong: which routes of a NAD count is decided in [`crate::route`], for the rules too. Where
//! the annotation moves the default route, the meta plugin takes those of the NADs away.

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
    /// It was put before what was there.
    is_prepended: bool,
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
            let hop = |to, gateway, is_prepended| Hop {
                to: Some(to),
                interface: Some(interface),
                gateway,
                is_prepended,
            };
            let own = interface.addresses.iter();
            table.extend(own.map(|address| hop(address.host.subnet(), None, false)));
            let moved = interface.defaults.iter();
            table.extend(moved.map(|gateway| hop(everything(*gateway), Some(*gateway), false)));
            let routes = interface.routes.iter().filter(|route| route.leads());
            let routes = routes.filter(|route| !(route.to.is_default() && is_moved(end, route.to)));
            table.extend(routes.map(|route| {
                let before = route.to.network().is_ipv4();
                hop(route.to, route.gateway, before)
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
            is_prepended: false,
        };
        let length = |hop: &Hop<'_>| hop.to.map_or(0, |to| to.prefix_len());
        let fits = |hop: &&Hop<'a>| hop.to.is_some_and(|to| to.contains(address));
        let mut best: Option<&Hop<'a>> = None;
        for hop in self.0.iter().filter(fits) {
            let wins = |best: &Hop<'a>| {
                let (new, old) = (length(hop), length(best));
                new > old || (new == old && hop.is_prepended)
            };
            if best.is_none_or(wins) {
                best = Some(hop);
            }
        }
        best.copied().unwrap_or(PRIMARY)
    }
}

/// Whether the annotation moves the default route of this family.
fn is_moved(end: &End, to: Cidr) -> bool {
    let mut all = end.interfaces.iter().flat_map(|i| &i.defaults);
    all.any(|gateway| gateway.is_ipv4() == to.network().is_ipv4())
}

fn everything(like: IpAddr) -> Cidr {
    Cidr::containing(like, 0)
}
