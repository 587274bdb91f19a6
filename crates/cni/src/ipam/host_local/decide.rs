//! Which addresses an attachment gets from what is held already. Pure: it is given what the store holds, and says what to
//! write.
//!
//! Called under the store's lock. Easy to get wrong: an attachment that holds an address of a set already *is* a retry (an ADD that
//! was killed, or whose answer was lost). It gets that address again: a second one would leak, and an error, as the
//! reference gives it, would stay until somebody calls DEL.

use std::collections::BTreeMap;
use std::net::IpAddr;

use mooring_api::HostCidr;
use mooring_host::host_local::Owner;

use super::range::RangeSet;

/// What the store holds. An address whose file nobody can read for is held by somebody unknown, and stays so.
pub(super) type Held = BTreeMap<IpAddr, Option<Owner>>;

/// One address for the attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) set: usize,
    pub(super) address: HostCidr,
    pub(super) gateway: IpAddr,
    /// Whether it has to be reserved; otherwise it is the attachment's own already.
    pub(super) new: bool,
}

/// Why there is nothing. The texts begin as the reference's do: people and runbooks search for them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("failed to allocate for range {set}: no IP addresses available in range set: {ranges}")]
    Exhausted { set: usize, ranges: String },
    #[error("failed to allocate for range {set}: requested ip {addr} is subnet's gateway")]
    Gateway { set: usize, addr: IpAddr },
    #[error(
        "failed to allocate for range {set}: requested IP address {addr} is not available in range set {ranges}"
    )]
    Taken {
        set: usize,
        addr: IpAddr,
        ranges: String,
        by: Option<Owner>,
    },
    #[error(
        "failed to allocate for range {set}: {has} has been allocated to {container}, and {addr} is requested now"
    )]
    Another {
        set: usize,
        has: IpAddr,
        addr: IpAddr,
        container: String,
    },
    #[error("failed to allocate all requested IPs: {0}")]
    Outside(String),
}

/// One address of each set, requested ones first of all. `last` tells which address of a set was given last.
pub(super) fn grant(
    sets: &[RangeSet],
    requested: &[IpAddr],
    owner: &Owner,
    held: &Held,
    last: impl Fn(usize) -> Option<IpAddr>,
) -> Result<Vec<Grant>, Refusal> {
    let mut requested = requested.to_vec();
    let mut grants = Vec::with_capacity(sets.len());
    for (set, ranges) in sets.iter().enumerate() {
        let wanted = requested.iter().position(|addr| ranges.contains(*addr));
        let wanted = wanted.map(|at| {
            let addr = requested.remove(at);
            // The same address may be asked for by several sources.
            requested.retain(|other| *other != addr);
            addr
        });
        let own = held.iter().find_map(|(addr, by)| {
            let is_own = by.as_ref() == Some(owner) && ranges.contains(*addr);
            is_own.then_some(*addr)
        });
        let (addr, new) = match (wanted, own) {
            (Some(addr), _) if ranges.is_gateway(addr) => {
                return Err(Refusal::Gateway { set, addr });
            }
            (Some(addr), Some(has)) if addr != has => {
                let container = owner.container.clone();
                return Err(Refusal::Another {
                    set,
                    has,
                    addr,
                    container,
                });
            }
            (_, Some(own)) => (own, false),
            (Some(addr), None) => match held.get(&addr) {
                None => (addr, true),
                Some(by) => {
                    return Err(Refusal::Taken {
                        set,
                        addr,
                        ranges: ranges.to_string(),
                        by: by.clone(),
                    });
                }
            },
            (None, None) => {
                let next = ranges.next_free(last(set), |addr| held.contains_key(&addr));
                let (_, addr) = next.ok_or_else(|| exhausted(set, ranges))?;
                (addr, true)
            }
        };
        let range = ranges.range_of(addr).expect("it was found in this set");
        grants.push(Grant {
            set,
            address: range.subnet.host(addr),
            gateway: range.gateway,
            new,
        });
    }
    if requested.is_empty() {
        return Ok(grants);
    }
    let left: Vec<String> = requested.iter().map(IpAddr::to_string).collect();
    Err(Refusal::Outside(left.join(" ")))
}

/// The first set of which nothing is left.
pub(super) fn full(sets: &[RangeSet], held: &Held) -> Option<Refusal> {
    sets.iter().enumerate().find_map(|(set, ranges)| {
        let used = held
            .keys()
            .filter(|addr| ranges.contains(**addr) && !ranges.is_gateway(**addr));
        (used.count() as u128 >= ranges.capacity()).then(|| exhausted(set, ranges))
    })
}

fn exhausted(set: usize, ranges: &RangeSet) -> Refusal {
    Refusal::Exhausted {
        set,
        ranges: ranges.to_string(),
    }
}

/// What belongs to an attachment. Files of old plugins, which name the container only, count where nothing else does.
pub(super) fn owned<'a>(held: &'a Held, owner: &Owner) -> Vec<&'a IpAddr> {
    let whose = |wanted: &Owner| -> Vec<&'a IpAddr> {
        let of = held.iter().filter(|(_, by)| by.as_ref() == Some(wanted));
        of.map(|(addr, _)| addr).collect()
    };
    let exactly = whose(owner);
    if !exactly.is_empty() {
        return exactly;
    }
    whose(&Owner {
        container: owner.container.clone(),
        ifname: None,
    })
}

/// What belongs to none of the valid attachments. An owner that cannot be read is not known to be gone.
pub(super) fn stale<'a>(held: &'a Held, valid: &[Owner]) -> Vec<&'a IpAddr> {
    let gone = |by: &Option<Owner>| {
        by.as_ref()
            .is_some_and(|by| !valid.iter().any(|valid| by.may_be(valid)))
    };
    let of = held.iter().filter(|(_, by)| gone(by));
    of.map(|(addr, _)| addr).collect()
}

#[cfg(test)]
mod tests {
    use super::super::range::RangeKeys;
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn sets(subnets: &[&str]) -> Vec<RangeSet> {
        let one = |subnet: &&str| {
            let subnet = Some((*subnet).to_owned());
            RangeSet::new(&[RangeKeys {
                subnet,
                ..RangeKeys::default()
            }])
            .unwrap()
        };
        subnets.iter().map(one).collect()
    }

    fn held(files: &[(&str, &str)]) -> Held {
        let file = |(addr, by): &(&str, &str)| {
            let by = match by.split_once('/') {
                _ if by.is_empty() => None,
                Some((container, ifname)) => Some(Owner::new(container, ifname)),
                None => Some(Owner {
                    container: (*by).to_owned(),
                    ifname: None,
                }),
            };
            (ip(addr), by)
        };
        files.iter().map(file).collect()
    }

    fn give(sets: &[RangeSet], requested: &[&str], held: &Held) -> Result<Vec<String>, Refusal> {
        let requested: Vec<IpAddr> = requested.iter().map(|r| ip(r)).collect();
        let grants = grant(sets, &requested, &Owner::new("me", "net1"), held, |_| None)?;
        let show = |g: &Grant| format!("{}{}", g.address, if g.new { "" } else { " again" });
        Ok(grants.iter().map(show).collect())
    }

    #[test]
    fn each_set_gives_one_address_and_a_retry_gets_the_same_ones() {
        let sets = sets(&["10.0.0.0/29", "fd00::/64"]);
        let mut files = held(&[("10.0.0.2", "other/net1"), ("10.0.0.3", "me/net2")]);
        assert_eq!(
            give(&sets, &[], &files).unwrap(),
            ["10.0.0.4/29", "fd00::2/64"]
        );
        // Killed after the first of two files: the first is adopted, the second is made.
        files.insert(ip("10.0.0.5"), Some(Owner::new("me", "net1")));
        assert_eq!(
            give(&sets, &[], &files).unwrap(),
            ["10.0.0.5/29 again", "fd00::2/64"]
        );
    }

    #[test]
    fn requested_addresses_go_to_the_set_that_contains_them_and_none_is_left_over() {
        let sets = sets(&["10.0.0.0/29", "fd00::/64"]);
        let none = Held::new();
        assert_eq!(
            give(&sets, &["fd00::9", "10.0.0.6", "fd00::9"], &none).unwrap(),
            ["10.0.0.6/29", "fd00::9/64"]
        );
        let refused =
            |requested: &[&str], held: &Held| give(&sets, requested, held).unwrap_err().to_string();
        assert_eq!(
            refused(&["10.0.0.6", "10.0.0.5", "192.0.2.1"], &none),
            "failed to allocate all requested IPs: 10.0.0.5 192.0.2.1"
        );
        assert_eq!(
            refused(&["10.0.0.1"], &none),
            "failed to allocate for range 0: requested ip 10.0.0.1 is subnet's gateway"
        );
        let files = held(&[("10.0.0.6", "other/net1"), ("10.0.0.4", "me/net1")]);
        assert_eq!(
            refused(&["fd00::1"], &Held::new()),
            "failed to allocate for range 1: requested ip fd00::1 is subnet's gateway"
        );
        assert!(refused(&["10.0.0.6"], &files).contains("10.0.0.4 has been allocated to me"));
        let files = held(&[("10.0.0.6", "other/net1")]);
        assert_eq!(
            refused(&["10.0.0.6"], &files),
            "failed to allocate for range 0: requested IP address 10.0.0.6 is not available in range set \
             10.0.0.1-10.0.0.6"
        );
        let mine = held(&[("10.0.0.6", "me/net1")]);
        assert_eq!(
            give(&sets, &["10.0.0.6"], &mine).unwrap(),
            ["10.0.0.6/29 again", "fd00::2/64"]
        );
    }

    #[test]
    fn exhaustion_keeps_the_words_that_people_search_for() {
        let sets = sets(&["fd00::/64", "10.0.0.0/30"]);
        let files = held(&[("10.0.0.2", "")]);
        let text = "failed to allocate for range 1: no IP addresses available in range set: 10.0.0.1-10.0.0.2";
        assert_eq!(give(&sets, &[], &files).unwrap_err().to_string(), text);
        assert_eq!(full(&sets, &files).unwrap().to_string(), text);
        // The gateway's file is nobody's address: it neither fills the set nor frees it.
        assert_eq!(full(&sets, &held(&[("10.0.0.1", "x/y")])), None);
    }

    #[test]
    fn an_attachment_owns_its_files_and_old_ones_only_where_there_are_no_others() {
        let files = held(&[
            ("10.0.0.2", "me/net1"),
            ("10.0.0.3", "me/net2"),
            ("10.0.0.4", "me"),
            ("10.0.0.5", "other/net1"),
        ]);
        let of = |ifname| owned(&files, &Owner::new("me", ifname));
        assert_eq!(of("net1"), [&ip("10.0.0.2")]);
        assert_eq!(of("net3"), [&ip("10.0.0.4")]);
        assert!(owned(&files, &Owner::new("nobody", "net1")).is_empty());
    }

    #[test]
    fn garbage_is_what_no_valid_attachment_may_own() {
        let files = held(&[
            ("10.0.0.2", "alive/net1"),
            ("10.0.0.3", "alive/net2"),
            ("10.0.0.4", "alive"),
            ("10.0.0.5", "dead"),
            ("10.0.0.6", ""),
        ]);
        let valid = [Owner::new("alive", "net1")];
        assert_eq!(stale(&files, &valid), [&ip("10.0.0.3"), &ip("10.0.0.5")]);
        assert_eq!(stale(&files, &[]).len(), 4);
    }
}
