//! The arithmetic of `mooring-ipam` and the file book, on one instance with one `/8`.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, ensure};
use mooring_api::{Family, ObjectRef, Selector, Span, Time};
use mooring_book::{FileStore, Options, Store, allocate};
use mooring_ipam::{
    Candidate, Claim, Grant, Holder, Instance, InstanceKey, Kind, Order, Pools, Prefix, State,
    Table, Thing, Want, candidates,
};

use super::measure::{cpu_time, per_second, seconds};
use super::{Curve, Report, Row};

const NOW: Time = Time(1_700_000_000);
/// How many more are taken, and timed, each time.
const MORE: u32 = 25_000;
/// Hosts of a /8 without its gateway.
const FULL: u32 = (1 << 24) - 3;
const RATE: f64 = 1_000_000.0;
const INDEX: usize = 64 << 20;
const OWNER: usize = 100;

/// Budgets: 1 M allocations a second with 1 M held, 64 MiB of index, 100 bytes per owner. Every claim is of a
/// new holder with a workload name of its own (22 bytes), the hard case: four to a package, fifty packages to a
/// cluster. A rate is of candidates, the first of them and its insert, in CPU time of the thread.
pub(super) fn ipam() -> Result<Report> {
    let pools = pools()?;
    let mut report = Report::default();
    let columns = ["addresses held", "how", "allocations a second"];
    let mut curve = Curve::new("Allocating in memory", &columns);
    let mut measure = |held: &str, how: &str, table: &mut Table, claims: &Claims| -> Result<f64> {
        let rate = rate(&pools, table, claims)?;
        curve.push([held.to_owned(), how.to_owned(), format!("{rate:.0}")]);
        Ok(rate)
    };
    let lowest = Claims(Family::V4, Order::LowestFirst);
    let others = [
        ("v4, rendezvous", Claims(Family::V4, Order::Rendezvous)),
        ("v6, lowest first", Claims(Family::V6, Order::LowestFirst)),
        ("v6, rendezvous", Claims(Family::V6, Order::Rendezvous)),
    ];
    let mut owners = Vec::new();
    for (how, claims) in others {
        let mut table = Table::new(instance());
        fill(&pools, &mut table, &claims, 1_000_000)?;
        measure("1 M", how, &mut table, &claims)?;
        owners.push((how, per_owner(&table)));
    }
    let mut table = Table::new(instance());
    for (held, shown) in [(1_000, "1 k"), (1_000_000, "1 M"), (16_000_000, "16 M")] {
        fill(&pools, &mut table, &lowest, held)?;
        if held == 1_000_000 {
            owners.insert(0, ("v4, lowest first", per_owner(&table)));
        }
        let rate = measure(shown, "v4, lowest first", &mut table, &lowest)?;
        if held == 1_000_000 {
            report.rows.push(Row::new(
                "allocate in memory, 1 M addresses held",
                "≥ 1,000,000 a second",
                format!("{rate:.0} a second"),
                rate >= RATE,
            ));
        }
    }
    for (how, bytes) in owners {
        report.rows.push(Row::new(
            &format!("an owner, with its names, among 1 M, {how}"),
            "≤ 100 B",
            format!("{bytes} B"),
            bytes <= OWNER,
        ));
    }
    fill(&pools, &mut table, &lowest, FULL)?;
    report.rows.push(index("full", &table));
    for n in (0..1 << 24).step_by(2) {
        table.remove(&Thing::Addr(IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + n))));
    }
    report
        .rows
        .push(index("with every second address free", &table));
    report.curves.push(curve);
    Ok(report)
}

/// Allocations a second. The best of 27 batches: the one that the machine disturbed least, and without a
/// table that grows in its middle.
fn rate(pools: &Pools, table: &mut Table, claims: &Claims) -> Result<f64> {
    let mut time = std::time::Duration::MAX;
    for _ in 0..27 {
        let from = u32::try_from(table.len())?;
        let claims: Vec<Claim> = (from..from + MORE).map(|n| claims.make(n)).collect();
        let begin = cpu_time()?;
        claims.iter().try_for_each(|c| take(pools, table, c))?;
        time = time.min(cpu_time()?.saturating_sub(begin));
    }
    Ok(per_second(MORE, time))
}

fn fill(pools: &Pools, table: &mut Table, claims: &Claims, count: u32) -> Result<()> {
    let held = u32::try_from(table.len())?;
    (held..count).try_for_each(|n| take(pools, table, &claims.make(n)))
}

fn per_owner(table: &Table) -> usize {
    table.heap_bytes().owners.div_ceil(table.len())
}

fn index(how: &str, table: &Table) -> Row {
    let bytes = table.heap_bytes().free_space;
    Row::new(
        &format!("free-space index of a /8, {how} ({} held)", table.len()),
        "≤ 64 MiB",
        format!("{:.1} MiB", mebibytes(bytes)),
        bytes <= INDEX,
    )
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
        let claims: Vec<Claim> = (0..count)
            .map(|n| Claims(Family::V4, Order::LowestFirst).make(n))
            .collect();
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
    for cidr in ["10.0.0.0/8", "fd00::/64"] {
        let mut prefix = Prefix {
            origin: origin.clone(),
            field: "spec.prefix".to_owned(),
            instance: key.clone(),
            cidr: cidr.parse()?,
            kind: Kind::Network,
            labels: std::collections::BTreeMap::new(),
            gateway: None,
            ranges: Vec::new(),
            exclude: Vec::new(),
            cool_down: Span(0),
            drain: false,
            kept: Vec::new(),
        };
        prefix.fill_gateway();
        pools.prefixes.push(prefix);
    }
    Ok(pools)
}

/// What the claims of one bench have in common.
struct Claims(Family, Order);

impl Claims {
    /// Four interfaces per package, fifty packages per cluster.
    fn make(&self, n: u32) -> Claim {
        Claim {
            holder: Holder {
                cluster: format!("cluster-{}", n / 200),
                package: format!("package-{}", n / 4),
                namespace: "core".to_owned(),
                workload: format!("StatefulSet/{n:010}"),
                interface: format!("n{}", n % 4),
                family: self.0,
                ordinal: 0,
            },
            instance: instance(),
            kind: Kind::Network,
            want: Want::Address,
            selector: Selector::default(),
            fixed: None,
            before: None,
            names: Vec::new(),
            order: self.1,
        }
    }
}

fn take(pools: &Pools, table: &mut Table, claim: &Claim) -> Result<()> {
    let decision = candidates(pools, table, claim, NOW);
    let offer = decision
        .map_err(|refusal| anyhow!("refused: {refusal:?}"))?
        .first();
    let Candidate {
        thing,
        subnet,
        gateway,
    } = offer.context("an offer is empty")?;
    let taken = table.grant(&Grant {
        thing,
        subnet,
        gateway,
        holder: &claim.holder,
        state: State::Held,
        since: NOW,
    });
    ensure!(matches!(taken, Ok(None)), "a free address was refused");
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn mebibytes(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
