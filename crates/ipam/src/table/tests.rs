//! What a table gives back, and what it costs.

use std::net::IpAddr;

use mooring_api::{Time, VlanId};

use crate::sample::{T0, addr, cidr, holder, instance, range, table};
use crate::{Lease, State, Thing, TxnId};

#[test]
fn a_table_gives_back_every_lease_as_it_was() {
    let mut table = table();
    let leases = [
        (
            Thing::Addr(addr("10.0.0.9")),
            Some("10.0.0.0/24"),
            State::Held,
            5,
        ),
        (
            Thing::Addr(addr("fd00::9")),
            Some("fd00::/64"),
            State::Cooling { until: Time(9) },
            u64::MAX,
        ),
        (
            Thing::Addr(addr("fd00:0:0:7:8:9:a:b")),
            Some("fd00::/32"),
            State::Held,
            6,
        ),
        (Thing::Addr(addr("fd01::1:0:0:1")), None, State::Held, 7),
        (
            Thing::Block(cidr("10.1.0.0/24")),
            Some("10.1.0.0/16"),
            State::Held,
            7,
        ),
        (
            Thing::Range(range("10.0.0.20-10.0.0.30")),
            Some("10.0.0.0/24"),
            State::Reserved {
                txn: TxnId(3),
                until: Time(99),
            },
            8,
        ),
        (Thing::Vlan(VlanId::MAX), None, State::Held, 9),
    ]
    .map(|(thing, subnet, state, since)| Lease {
        instance: instance(),
        thing,
        subnet: subnet.map(cidr),
        gateway: None,
        holder: holder(&thing.to_string()),
        state,
        since: Time(since),
    });
    for lease in leases.iter().rev() {
        assert_eq!(table.insert(lease.clone()), Ok(None));
    }
    assert_eq!(table.leases().collect::<Vec<_>>(), leases);
    for lease in &leases {
        assert_eq!(table.get(&lease.thing).as_ref(), Some(lease));
        assert_eq!(table.held_by(&lease.holder), std::slice::from_ref(lease));
    }
    assert_eq!(table.covering(addr("10.0.0.25")).as_ref(), Some(&leases[5]));
    assert_eq!(table.covering(addr("10.1.0.25")).as_ref(), Some(&leases[4]));
    assert_eq!(table.covering(addr("10.2.0.25")), None);
    let mut stranger = leases[0].clone();
    stranger.holder = holder("stranger");
    assert_eq!(table.insert(stranger), Err(Box::new(leases[0].clone())));
    assert_eq!(table.check(), Vec::<String>::new());
    for lease in leases {
        assert_eq!(table.remove(&lease.thing), Some(lease));
    }
    assert!(table.is_empty());
    assert_eq!(table.check(), Vec::<String>::new());
}

#[test]
fn owners_stay_within_their_budget() {
    let mut table = table();
    let count: u32 = 40_000;
    for i in 0..count {
        let mut holder = holder("n2");
        holder.workload = format!("Deployment/upf-{i:06}");
        let lease = Lease {
            instance: instance(),
            thing: Thing::Addr(IpAddr::from((0x0a00_0000 + i).to_be_bytes())),
            subnet: Some(cidr("10.0.0.0/8")),
            gateway: None,
            holder,
            state: State::Held,
            since: T0,
        };
        table.insert(lease).unwrap();
        // The budget of DESIGN §10, whatever was grown last; a small table has a page to spare.
        let each = table.heap_bytes().owners / table.len();
        assert!(
            each <= 100 || table.len() < 20_000,
            "{each} bytes per owner of {}, each with a name of its own",
            table.len()
        );
    }
    assert!(table.heap_bytes().free_space < 1 << 16);
    // Names of holders that are gone do not pile up.
    for i in 0..count {
        table.remove(&Thing::Addr(IpAddr::from((0x0a00_0000 + i).to_be_bytes())));
    }
    let full = table.heap_bytes().owners;
    let lease = Lease {
        instance: instance(),
        thing: Thing::Vlan(VlanId::MAX),
        subnet: None,
        gateway: None,
        holder: holder("x"),
        state: State::Held,
        since: T0,
    };
    table.insert(lease.clone()).unwrap();
    let names = count as usize * "Deployment/upf-000000".len();
    let left = table.heap_bytes().owners;
    assert!(left + names < full, "{left} of {full} bytes are left");
    assert_eq!(table.held_by(&lease.holder), [lease]);
    assert_eq!(table.check(), Vec::<String>::new());
}
