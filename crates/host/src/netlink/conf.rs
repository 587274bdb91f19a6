//! The parameters of a link that its own message carries: what the files of `net/ipv4/conf/IF` and `net/ipv6/conf/IF` show, as
//! two lists of numbers.
//!
//! Used for snapshots: one message instead of a hundred files is a millisecond less of every move, and a move that is late for
//! the kernel's next tick waits for a grace period more. Easy to get wrong: the lists grow with the kernel, and a new parameter may be
//! in a file alone. A kernel that is newer than these tables, or that tells more than they know, is asked by files.

use mooring_api::Family;
use mooring_api::net::Conf;

use super::wire;

/// The newest kernel whose parameters are all in [`V4`], [`V6`] and [`UNTOLD`]. A test compares them with the files.
const KNOWN: (u32, u32) = (7, 2);

const AF_SPEC: u16 = 26;
const INET: u16 = 2;
const INET_CONF: u16 = 1;
const INET6: u16 = 10;
const INET6_CONF: u16 = 2;
/// Of a link message.
const HEADER: usize = 16;

/// In the order of the kernel's `IPV4_DEVCONF_*`.
const V4: [&str; 33] = [
    "forwarding",
    "mc_forwarding",
    "proxy_arp",
    "accept_redirects",
    "secure_redirects",
    "send_redirects",
    "shared_media",
    "rp_filter",
    "accept_source_route",
    "bootp_relay",
    "log_martians",
    "tag",
    "arp_filter",
    "medium_id",
    "disable_xfrm",
    "disable_policy",
    "force_igmp_version",
    "arp_announce",
    "arp_ignore",
    "promote_secondaries",
    "arp_accept",
    "arp_notify",
    "accept_local",
    "src_valid_mark",
    "proxy_arp_pvlan",
    "route_localnet",
    "igmpv2_unsolicited_report_interval",
    "igmpv3_unsolicited_report_interval",
    "ignore_routes_with_linkdown",
    "drop_unicast_in_l2_multicast",
    "drop_gratuitous_arp",
    "bc_forwarding",
    "arp_evict_nocarrier",
];

/// In the order of the kernel's `DEVCONF_*`.
const V6: [&str; 60] = [
    "forwarding",
    "hop_limit",
    "mtu",
    "accept_ra",
    "accept_redirects",
    "autoconf",
    "dad_transmits",
    "router_solicitations",
    "router_solicitation_interval",
    "router_solicitation_delay",
    "use_tempaddr",
    "temp_valid_lft",
    "temp_prefered_lft",
    "regen_max_retry",
    "max_desync_factor",
    "max_addresses",
    "force_mld_version",
    "accept_ra_defrtr",
    "accept_ra_pinfo",
    "accept_ra_rtr_pref",
    "router_probe_interval",
    "accept_ra_rt_info_max_plen",
    "proxy_ndp",
    "optimistic_dad",
    "accept_source_route",
    "mc_forwarding",
    "disable_ipv6",
    "accept_dad",
    "force_tllao",
    "ndisc_notify",
    "mldv1_unsolicited_report_interval",
    "mldv2_unsolicited_report_interval",
    "suppress_frag_ndisc",
    "accept_ra_from_local",
    "use_optimistic",
    "accept_ra_mtu",
    "stable_secret",
    "use_oif_addrs_only",
    "accept_ra_min_hop_limit",
    "ignore_routes_with_linkdown",
    "drop_unicast_in_l2_multicast",
    "drop_unsolicited_na",
    "keep_addr_on_down",
    "router_solicitation_max_interval",
    "seg6_enabled",
    "seg6_require_hmac",
    "enhanced_dad",
    "addr_gen_mode",
    "disable_policy",
    "accept_ra_rt_info_min_plen",
    "ndisc_tclass",
    "rpl_seg_enabled",
    "ra_defrtr_metric",
    "ioam6_enabled",
    "ioam6_id",
    "ioam6_id_wide",
    "ndisc_evict_nocarrier",
    "accept_untracked_na",
    "accept_ra_min_lft",
    "force_forwarding",
];

/// Milliseconds in the message, seconds in the file.
const SECONDS: [&str; 4] = [
    "router_solicitation_interval",
    "router_solicitation_delay",
    "router_solicitation_max_interval",
    "router_probe_interval",
];
/// Numbers without a sign.
const UNSIGNED: [&str; 2] = ["ra_defrtr_metric", "ioam6_id_wide"];

/// Those of IPv6 that are in files alone. The secret has a place in the list, and is not told there.
const UNTOLD: [&str; 4] = [
    "ra_honor_pio_life",
    "ra_honor_pio_pflag",
    "regen_min_advance",
    "stable_secret",
];

/// What `net/ipv4/neigh/IF` and `net/ipv6/neigh/IF` have. Three more show one of these in a coarser unit: `base_reachable_time`,
/// `retrans_time` and `unres_qlen`.
const NEIGH: [&str; 14] = [
    "anycast_delay",
    "app_solicit",
    "base_reachable_time_ms",
    "delay_first_probe_time",
    "gc_stale_time",
    "interval_probe_time_ms",
    "locktime",
    "mcast_resolicit",
    "mcast_solicit",
    "proxy_delay",
    "proxy_qlen",
    "retrans_time_ms",
    "ucast_solicit",
    "unres_qlen_bytes",
];

/// The directories of files that no message tells of, with the names in them.
pub(crate) const FILES: [(&str, &[&str]); 3] = [
    ("net/ipv6/conf", &UNTOLD),
    ("net/ipv4/neigh", &NEIGH),
    ("net/ipv6/neigh", &NEIGH),
];

/// What a link message tells; `None` when the files have to be asked, all of them.
pub(super) fn read(body: &[u8]) -> Option<Conf> {
    let mut conf = Conf::default();
    let spec = wire::attributes(body.get(HEADER..)?).find(|(kind, _)| *kind == AF_SPEC);
    for (family, nested) in wire::attributes(spec?.1) {
        let (into, list) = match family {
            INET => (&mut conf.v4, INET_CONF),
            INET6 => (&mut conf.v6, INET6_CONF),
            _ => continue,
        };
        let (_, list) = wire::attributes(nested).find(|(kind, _)| *kind == list)?;
        let numbers = list.chunks_exact(size_of::<u32>());
        into.extend(numbers.filter_map(wire::u32));
    }
    is_known(&conf).then_some(conf)
}

/// Whether every number has a name, and a file that can show it.
fn is_known(conf: &Conf) -> bool {
    let mut v6 = V6.iter().zip(&conf.v6);
    conf.v4.len() <= V4.len()
        && conf.v6.len() <= V6.len()
        && v6.all(|(name, number)| !SECONDS.contains(name) || number.is_multiple_of(1000))
}

/// The parameters behind the numbers: family, name, and what the file shows. There may be some that this kernel has no file for.
pub(crate) fn named(conf: &Conf) -> impl Iterator<Item = (Family, &'static str, String)> {
    let v4 = V4.iter().zip(&conf.v4);
    let v4 = v4.map(|(name, number)| (Family::V4, *name, shown(name, *number)));
    let v6 = V6.iter().zip(&conf.v6);
    let v6 = v6.map(|(name, number)| (Family::V6, *name, shown(name, *number)));
    v4.chain(v6).filter(|(_, name, _)| !UNTOLD.contains(name))
}

fn shown(name: &str, number: u32) -> String {
    if SECONDS.contains(&name) {
        (number / 1000).to_string()
    } else if UNSIGNED.contains(&name) {
        number.to_string()
    } else {
        number.cast_signed().to_string()
    }
}

/// Whether the running kernel is one of those that the tables were made for.
pub(super) fn is_known_kernel() -> bool {
    let release = nix::sys::utsname::uname();
    release.is_ok_and(|name| is_known_release(&name.release().to_string_lossy()))
}

fn is_known_release(release: &str) -> bool {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) <= KNOWN,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An attribute with its padding.
    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = u16::try_from(value.len() + 4).expect("small");
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(value);
        bytes.resize(wire::aligned(bytes.len()), 0);
        bytes
    }

    fn message(family: u16, list: u16, numbers: &[u32]) -> Vec<u8> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_ne_bytes()).collect();
        let spec = attribute(family, &attribute(list, &bytes));
        [vec![0; HEADER], attribute(AF_SPEC, &spec)].concat()
    }

    #[test]
    fn numbers_are_shown_as_their_files_show_them() {
        let mut numbers = [0; V6.len()];
        let at = |name| V6.iter().position(|n| *n == name).expect("it has a place");
        numbers[at("router_solicitations")] = u32::MAX;
        numbers[at("router_solicitation_interval")] = 4000;
        numbers[at("ra_defrtr_metric")] = u32::MAX;
        let told = read(&message(INET6, INET6_CONF, &numbers)).expect("known");
        let value = |name| {
            let mut found = named(&told).filter(|(_, n, _)| *n == name);
            found.next().map(|(_, _, value)| value)
        };
        let is = |name, text: &str| assert_eq!(value(name).as_deref(), Some(text));
        is("router_solicitations", "-1");
        is("router_solicitation_interval", "4");
        is("ra_defrtr_metric", "4294967295");
        assert_eq!(value("stable_secret"), None);
        assert_eq!(named(&told).count(), V6.len() - 1);
    }

    #[test]
    fn a_shorter_list_is_an_older_kernels_and_a_longer_one_is_not_known() {
        let told = |n| read(&message(INET, INET_CONF, &vec![1; n]));
        let count = |n| told(n).map(|conf| named(&conf).count());
        assert_eq!(count(30), Some(30));
        assert_eq!(count(V4.len()), Some(V4.len()));
        assert_eq!(told(V4.len() + 1), None);
        // Half a second is in no file.
        let mut numbers = [0; V6.len()];
        numbers[8] = 500;
        assert_eq!(read(&message(INET6, INET6_CONF, &numbers)), None);
        assert_eq!(read(&[0; HEADER]), None);
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn only_kernels_that_the_tables_were_made_for_are_known() {
        for known in ["7.2.0-1", "6.18.44-fc-v445", "5.10.0-30-amd64", "4.19"] {
            assert!(is_known_release(known), "{known}");
        }
        for unknown in ["7.3.0-rc1", "8.0", "10.2.1", "", "linux"] {
            assert!(!is_known_release(unknown), "{unknown}");
        }
    }
}
