//! The arithmetic of `mooring-ipam` and the file book, on one instance with one `/8`.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use mooring_api::{Family, ObjectRef, Selector, Span, Time};
use mooring_book::{FileStore, Options, Store, allocate};
use mooring_ipam::{
    Candidate, Claim, Holder, Instance, InstanceKey, Kind, Lease, Order, Pools, Prefix, State,
    Table, Thing, Want, candidates,
};

use super::measure::{best_of, per_second, seconds};
use super::{Curve, Report, Row};

const NOW: Time = Time(1_700_000_000);
const HELD: u32 = 1_000_000;
const MORE: u32 = 100_000;

/// Budgets: 1 M allocations a second with 1 M held, 64 MiB of index, 100 bytes per owner.
pub(super) fn ipam() -> Result<Report> {
    let pools = pools()?;
    let mut report = Report::default();
    let mut curve = Curve::new(
        "Allocations a second by how many are held",
        &["held", "a second"],
    );
    let mut table = Table::new(instance());
    let mut next = 0;
    for held in [0, 10_000, 100_000, HELD] {
        while next < held {
            take(&pools, &mut table, &claim(next))?;
            next += 1;
        }
        let claims: Vec<Claim> = (next..next + MORE).map(claim).collect();
        let time = best_of(3, || {
            // On a copy, so that every run begins with as many held.
            let mut table = table.clone();
            let begin = Instant::now();
            claims
                .iter()
                .try_for_each(|c| take(&pools, &mut table, c))?;
            Ok(begin.elapsed())
        })?;
        let rate = per_second(MORE, time);
        curve.push([held.to_string(), format!("{rate:.0}")]);
        if held == HELD {
            report.rows.push(Row::new(
                "allocate in memory, 1 M addresses held, lowest first",
                "≥ 1,000,000 a second",
                format!("{rate:.0} a second"),
                rate >= 1_000_000.0,
            ));
        }
    }
    report.curves.push(curve);

    let owners = table.heap_bytes().owners / table.len();
    report.rows.push(Row::new(
        "owners of 1 M addresses",
        "≤ 100 B each",
        format!("{owners} B each"),
        owners <= 100,
    ));
    drop(table);
    // Every sixteenth address: neither full nor empty anywhere, which is what an index keeps worst.
    let mut scattered = Table::new(instance());
    for n in 0..HELD {
        let lease = lease(&claim(n), Ipv4Addr::from(0x0a00_0000 + n * 16));
        let taken = scattered.insert(lease);
        ensure!(taken.is_ok(), "an address of its own was refused");
    }
    let index = scattered.heap_bytes().free_space;
    report.rows.push(Row::new(
        "free-space index of a /8 with 1 M addresses scattered over it",
        "≤ 64 MiB",
        format!("{:.1} MiB", mebibytes(index)),
        index <= 64 << 20,
    ));
    Ok(report)
}

/// No budget of its own: what one render pays for its book.
pub(super) fn book() -> Result<Report> {
    let pools = pools()?;
    let dir = tempfile::tempdir().context("cannot make a directory")?;
    let columns = [
        "addresses in one transaction",
        "begin to commit",
        "addresses a second",
    ];
    let mut curve = Curve::new("The file book, on a fresh file each", &columns);
    for count in [4, 100, 1_000, 10_000] {
        let path = dir.path().join(format!("{count}.redb"));
        let claims: Vec<Claim> = (0..count).map(claim).collect();
        let store = FileStore::open(&path, &Options::default())?;
        let begin = Instant::now();
        let mut txn = store.begin(NOW)?;
        for claim in &claims {
            let taken = allocate(txn.as_mut(), &pools, claim)?;
            taken.map_err(|refusal| anyhow!("refused: {refusal:?}"))?;
        }
        let id = txn.reserve(Span(60))?;
        store.commit(id, NOW)?;
        let time = begin.elapsed();
        let rate = per_second(count, time);
        curve.push([count.to_string(), seconds(time), format!("{rate:.0}")]);
    }
    Ok(Report {
        curves: vec![curve],
        ..Report::default()
    })
}

fn instance() -> InstanceKey {
    InstanceKey::new("default", "bench")
}

fn pools() -> Result<Pools> {
    let cidr = "10.0.0.0/8".parse()?;
    let origin = ObjectRef::new("ipam.resource.nephio.org/v1alpha1", "IPPrefix", "bench");
    let key = instance();
    let mut pools = Pools::default();
    pools.instances.insert(
        key.clone(),
        Instance {
            origin: origin.clone(),
            key: key.clone(),
            isolated: false,
            aggregates: Vec::new(),
        },
    );
    pools.prefixes.push(Prefix {
        origin,
        field: "spec.prefix".to_owned(),
        instance: key,
        cidr,
        kind: Kind::Network,
        labels: std::collections::BTreeMap::new(),
        gateway: Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))),
        ranges: Vec::new(),
        exclude: Vec::new(),
        cool_down: Span(0),
        kept: Vec::new(),
    });
    Ok(pools)
}

/// Four interfaces per package, fifty packages per cluster.
fn claim(n: u32) -> Claim {
    Claim {
        holder: Holder {
            cluster: format!("cluster-{}", n / 200),
            package: format!("package-{}", n / 4),
            namespace: "core".to_owned(),
            workload: String::new(),
            interface: format!("n{}", n % 4),
            family: Family::V4,
            ordinal: 0,
        },
        instance: instance(),
        kind: Kind::Network,
        want: Want::Address,
        selector: Selector::default(),
        fixed: None,
        before: None,
        names: Vec::new(),
        order: Order::LowestFirst,
    }
}

fn take(pools: &Pools, table: &mut Table, claim: &Claim) -> Result<()> {
    let decision = candidates(pools, table, claim, NOW);
    let offer = decision
        .map_err(|refusal| anyhow!("refused: {refusal:?}"))?
        .first();
    let Some(Candidate {
        thing: Thing::Addr(IpAddr::V4(address)),
        ..
    }) = offer
    else {
        bail!("an address was wanted, and {offer:?} was offered");
    };
    let taken = table.insert(lease(claim, address));
    ensure!(matches!(taken, Ok(None)), "a free address was refused");
    Ok(())
}

fn lease(claim: &Claim, address: Ipv4Addr) -> Lease {
    Lease {
        instance: claim.instance.clone(),
        thing: Thing::Addr(IpAddr::V4(address)),
        subnet: "10.0.0.0/8".parse().ok(),
        gateway: None,
        holder: claim.holder.clone(),
        state: State::Held,
        since: NOW,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn mebibytes(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
