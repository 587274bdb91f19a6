//! Decides: what a pod gets of what its NIC had on the host. Pure.
//!
//! | of the host's | the pod gets |
//! |---|---|
//! | addresses | all but link-local, temporary, and those that another host has |
//! | routes of the main table through a router | all but default routes: the pod has one |
//! | gateway | the router of a default route in the address' subnet, in any table; else the other end of a /31, /127 or /30 |
//!
//! Easy to get wrong: the gateway of an address makes no route by itself. It is what a chained `sbr` takes.

use std::net::IpAddr;

use mooring_api::net::{Addr, Route, RouteKind, RouteProtocol, Scope, Snapshot, TABLE_MAIN};
use mooring_api::{Family, HostCidr};
use mooring_attach::cni::{CniResult, CniRoute, Ip};

/// Addresses and routes for the pod.
pub(super) fn of(before: &Snapshot) -> CniResult {
    let ips: Vec<Ip> = before
        .addrs
        .iter()
        .filter(|addr| is_given(addr))
        .map(|addr| Ip::new(addr.address, gateway(&addr.address, &before.routes)))
        .collect();
    let routes = before
        .routes
        .iter()
        .filter(|route| route.table == TABLE_MAIN)
        .filter_map(given_route)
        .collect();
    CniResult {
        ips,
        routes,
        ..CniResult::default()
    }
}

fn is_given(addr: &Addr) -> bool {
    let temporary = addr.address.family() == Family::V6 && addr.flags.secondary;
    addr.scope != Scope::LINK && addr.scope != Scope::HOST && !addr.flags.dad_failed && !temporary
}

fn given_route(route: &Route) -> Option<CniRoute> {
    let by_the_kernel =
        route.protocol == RouteProtocol::KERNEL || route.protocol == RouteProtocol::RA;
    if by_the_kernel || route.dst.is_default() || route.kind != RouteKind::UNICAST {
        return None;
    }
    // Several next hops are for several links; the pod has one of them.
    if !route.next_hops.is_empty() {
        return None;
    }
    Some(CniRoute {
        mtu: route.mtu,
        advmss: route.advmss,
        priority: route.metric,
        // Over the link where there is no router: else the address' gateway would be put in.
        scope: route.gateway.is_none().then_some(Scope::LINK.0),
        ..CniRoute::new(route.dst, route.gateway)
    })
}

/// The router of an address' subnet.
fn gateway(address: &HostCidr, routes: &[Route]) -> Option<IpAddr> {
    let subnet = address.subnet();
    let told = routes
        .iter()
        .filter(|route| route.dst.is_default())
        .filter_map(|route| route.gateway)
        .find(|router| subnet.contains(*router) && *router != address.addr());
    told.or_else(|| other_end(address))
}

/// The only other host of a point-to-point subnet.
fn other_end(address: &HostCidr) -> Option<IpAddr> {
    let family = address.family();
    let number = Family::number(address.addr());
    let other = match family.bits() - address.prefix_len() {
        1 => number ^ 1,
        // Of four addresses the outer ones are the network and the broadcast.
        2 if family == Family::V4 && matches!(number & 3, 1 | 2) => number ^ 3,
        _ => return None,
    };
    Some(family.addr(other))
}

#[cfg(test)]
mod tests {
    use mooring_api::Cidr;

    use super::*;

    fn addr(text: &str) -> Addr {
        Addr::new(3, text.parse().expect("an address"))
    }

    fn cidr(text: &str) -> Cidr {
        text.parse().expect("a prefix")
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn told(addrs: Vec<Addr>, routes: Vec<Route>) -> CniResult {
        of(&Snapshot {
            addrs,
            routes,
            ..Snapshot::default()
        })
    }

    #[test]
    fn the_other_end_of_a_small_subnet_is_its_router() {
        for (address, router) in [
            ("10.0.0.0/31", Some("10.0.0.1")),
            ("10.0.0.7/31", Some("10.0.0.6")),
            ("10.0.0.1/30", Some("10.0.0.2")),
            ("10.0.0.6/30", Some("10.0.0.5")),
            ("10.0.0.1/29", None),
            ("10.0.0.1/32", None),
            ("2001:db8::2/127", Some("2001:db8::3")),
            ("2001:db8::2/126", None),
            ("2001:db8::2/64", None),
        ] {
            let result = told(vec![addr(address)], Vec::new());
            assert_eq!(result.ips[0].gateway, router.map(ip), "{address}");
        }
    }

    #[test]
    fn a_default_route_of_the_host_names_the_router_in_any_table_and_any_subnet() {
        let routes = vec![
            Route::to(cidr("0.0.0.0/0")).via(ip("10.9.0.1")).dev(3),
            Route::to(cidr("0.0.0.0/0"))
                .via(ip("10.0.0.254"))
                .dev(3)
                .table(101),
            Route::to(cidr("::/0"))
                .via(ip("2001:db8::ff"))
                .dev(3)
                .table(101),
        ];
        let addrs = vec![
            addr("10.0.0.5/24"),
            addr("2001:db8::5/64"),
            addr("10.7.0.5/24"),
        ];
        let result = told(addrs, routes);
        let gateways: Vec<_> = result.ips.iter().map(|ip| ip.gateway).collect();
        assert_eq!(
            gateways,
            [Some(ip("10.0.0.254")), Some(ip("2001:db8::ff")), None]
        );
        assert!(
            result.routes.is_empty(),
            "a pod keeps its own default route"
        );
    }

    #[test]
    fn routes_of_the_main_table_go_along_and_those_of_the_kernel_do_not() {
        let mut kernel = Route::to(cidr("10.0.0.0/24")).dev(3);
        kernel.protocol = RouteProtocol::KERNEL;
        let mut advertised = Route::to(cidr("2001:db8:1::/64")).via(ip("fe80::1")).dev(3);
        advertised.protocol = RouteProtocol::RA;
        let mut spread = Route::to(cidr("10.3.0.0/16"));
        spread.next_hops = vec![mooring_api::net::NextHop {
            oif: 3,
            gateway: None,
            weight: 1,
            onlink: false,
            extra: Vec::new(),
        }];
        let mut small = Route::to(cidr("10.1.0.0/16"))
            .via(ip("10.0.0.1"))
            .dev(3)
            .metric(7);
        small.mtu = Some(1400);
        let routes = vec![
            kernel,
            advertised,
            spread,
            small,
            Route::to(cidr("10.2.0.0/16")).dev(3),
            Route::to(cidr("10.4.0.0/16"))
                .via(ip("10.0.0.1"))
                .dev(3)
                .table(101),
        ];
        let result = told(vec![addr("10.0.0.5/24")], routes);
        let given: Vec<_> = result
            .routes
            .iter()
            .map(|r| (r.dst, r.gw, r.priority, r.mtu))
            .collect();
        let wanted = [
            (
                cidr("10.1.0.0/16"),
                Some(ip("10.0.0.1")),
                Some(7),
                Some(1400),
            ),
            (cidr("10.2.0.0/16"), None, None, None),
        ];
        assert_eq!(given, wanted);
    }

    #[test]
    fn link_local_temporary_and_failed_addresses_stay_behind() {
        let mut local = addr("fe80::1/64");
        local.scope = Scope::LINK;
        let mut temporary = addr("2001:db8::7/64");
        temporary.flags.secondary = true;
        let mut failed = addr("2001:db8::8/64");
        failed.flags.dad_failed = true;
        let mut second = addr("10.0.0.6/24");
        second.flags.secondary = true;
        let result = told(
            vec![local, temporary, failed, second, addr("2001:db8::9/64")],
            Vec::new(),
        );
        let given: Vec<String> = result.ips.iter().map(|ip| ip.address.to_string()).collect();
        assert_eq!(given, ["10.0.0.6/24", "2001:db8::9/64"]);
    }
}
