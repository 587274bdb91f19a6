//! Random changes of random pools against the rules and against a naive model that scans every address.
//!
//! The rules: nobody gets what is taken, or what another one gets; what is kept, taken by hand or reserved does not
//! move; whoever moves lands where the new pools give something. The model says which place it is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mooring_api::{Family, Span, Time};

use super::*;
use crate::sample::{T0, addr, cidr, holder, pools, prefix, range};
use crate::{Kept, Kind, State};

/// The same numbers every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n.max(1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

struct Case {
    pools: Pools,
    leases: Vec<Lease>,
    change: Change,
    moves: bool,
}

fn host(net: &str, nth: u64) -> IpAddr {
    let first = Family::number(cidr(net).network());
    Family::V4.addr(first + u128::from(nth))
}

fn case(dice: &mut Dice) -> Case {
    let mut p = prefix("10.0.0.0/27");
    p.fill_gateway();
    p.cool_down = Span(dice.below(2) * 60);
    if dice.one_in(3) {
        p.ranges = vec![range("10.0.0.4-10.0.0.28")];
    }
    if dice.one_in(4) {
        p.exclude = vec![range("10.0.0.9-10.0.0.11")];
    }
    if dice.one_in(5) {
        let at = host("10.0.0.0/27", 5 + dice.below(20));
        p.kept = vec![Kept {
            range: AddrRange::single(at),
            claim: "kept".into(),
            cluster: String::new(),
        }];
    }
    let mut like = prefix("10.0.1.0/28");
    like.fill_gateway();
    let mut unlike = prefix("10.0.2.0/28");
    unlike.fill_gateway();
    if dice.one_in(2) {
        p.labels.insert("zone".into(), "a".into());
        like.labels.insert("zone".into(), "a".into());
    } else {
        unlike.labels.insert("zone".into(), "b".into());
    }
    let pools = pools(vec![p, like, unlike]);
    let mut taken = BTreeSet::new();
    let mut leases = Vec::new();
    let nets = ["10.0.0.0/27", "10.0.0.0/27", "10.0.1.0/28", "10.0.9.0/27"];
    for n in 0..dice.below(26) {
        let net = nets[usize::try_from(dice.below(4)).unwrap()];
        let size = cidr(net).range().count();
        let at = host(net, 2 + dice.below(u64::try_from(size).unwrap() - 3));
        if !taken.insert(at) {
            continue;
        }
        let mut who = holder(&format!("n{n}"));
        if dice.one_in(8) {
            who = Holder::outside(format!("leaf{n}"), "claim", Family::V4);
        }
        let state = match dice.below(10) {
            0 => State::Cooling {
                until: Time(T0.0 + dice.below(100)),
            },
            1 if dice.one_in(3) => State::Reserved {
                txn: crate::TxnId(1),
                until: Time(T0.0 + 100),
            },
            _ => State::Held,
        };
        leases.push(Lease {
            instance: crate::sample::instance(),
            thing: Thing::Addr(at),
            subnet: Some(cidr(net)),
            gateway: Some(cidr(net).hosts().first()),
            holder: who,
            state,
            since: T0,
        });
    }
    let change = match dice.below(9) {
        0 => Change::Grow {
            to: cidr("10.0.0.0/26"),
            ranges: None,
        },
        1 | 2 => Change::Shrink {
            to: Some(cidr(
                ["10.0.0.0/28", "10.0.0.16/28"][usize::try_from(dice.below(2)).unwrap()],
            )),
            ranges: Vec::new(),
            exclude: Vec::new(),
        },
        3 => Change::Shrink {
            to: None,
            ranges: vec![range("10.0.0.6-10.0.0.25")],
            exclude: vec![range("10.0.0.12-10.0.0.14")],
        },
        4 => Change::Split { len: 28 },
        5 => Change::Drain,
        6 => Change::Renumber {
            to: cidr("10.0.1.0/28"),
        },
        _ => Change::Renumber {
            to: cidr(["10.0.9.0/27", "10.0.9.0/28"][usize::try_from(dice.below(2)).unwrap()]),
        },
    };
    let moves = !dice.one_in(4);
    Case {
        pools,
        leases,
        change,
        moves,
    }
}

fn at(thing: Thing) -> IpAddr {
    thing.range().unwrap().first()
}

/// Whether a prefix gives this address, by a look at every rule.
fn gives(p: &Prefix, a: IpAddr) -> bool {
    let inside = p.ranges.is_empty() || p.ranges.iter().any(|r| r.contains(a));
    p.kind == Kind::Network
        && p.cidr.hosts().contains(a)
        && p.gateway != Some(a)
        && inside
        && !p.exclude.iter().any(|r| r.contains(a))
        && !p.kept.iter().any(|k| k.range.contains(a))
}

/// Whether this holder is never moved.
fn is_pinned(case: &Case, lease: &Lease) -> bool {
    let kept = &case.pools.prefixes[0].kept;
    lease.holder.package.is_empty()
        || lease.state != State::Held
        || kept.iter().any(|k| k.range.contains(at(lease.thing)))
}

/// Where everybody who moved should be: a full scan.
fn model(case: &Case, plan: &Plan) -> BTreeMap<IpAddr, Option<IpAddr>> {
    let new = plan.pools(&case.pools);
    let mut busy: BTreeSet<IpAddr> = BTreeSet::new();
    for lease in case.leases.iter().filter(|l| l.state.is_live(T0)) {
        busy.insert(at(lease.thing));
    }
    let scan = |p: &Prefix, from: IpAddr, busy: &BTreeSet<IpAddr>| {
        let (first, last) = (
            Family::number(p.cidr.network()),
            Family::number(p.cidr.last()),
        );
        let from = Family::number(from).clamp(first, last);
        let order = (from..=last).chain(first..from);
        let free = |a: &IpAddr| gives(p, *a) && !busy.contains(a);
        order.map(|n| Family::V4.addr(n)).find(free)
    };
    let moved = plan
        .effects
        .iter()
        .filter(|e| e.to.is_none_or(|to| to.thing != e.from.thing));
    let movers: Vec<IpAddr> = moved.map(|e| at(e.from.thing)).collect();
    let mut answer = BTreeMap::new();
    let leases: BTreeMap<IpAddr, &Lease> = case.leases.iter().map(|l| (at(l.thing), l)).collect();
    if let Change::Renumber { to } = case.change {
        let target = new.prefixes.iter().find(|p| p.cidr == to).unwrap();
        let exact = |a: IpAddr| {
            let offset = Family::number(a) - Family::number(plan.before.cidr.network());
            Family::V4.addr(Family::number(to.network()) + offset)
        };
        for who in movers.iter().filter(|w| !is_pinned(case, leases[*w])) {
            let wish = exact(*who);
            if gives(target, wish) && busy.insert(wish) {
                answer.insert(*who, Some(wish));
            }
        }
        for who in &movers {
            let pinned = is_pinned(case, leases[who]);
            if !answer.contains_key(who) {
                let found = scan(target, exact(*who), &busy).filter(|_| !pinned);
                busy.extend(found);
                answer.insert(*who, found);
            }
        }
        return answer;
    }
    for who in movers {
        let mut found = None;
        for p in &new.prefixes {
            let fits = match case.change {
                Change::Drain => {
                    let labels = &plan.before.labels;
                    p.cidr != plan.before.cidr
                        && labels.iter().all(|(k, v)| p.labels.get(k) == Some(v))
                }
                Change::Split { .. } => plan.after.contains(p) && p.cidr.contains(who),
                _ => plan.after.contains(p),
            };
            if fits && found.is_none() && !is_pinned(case, leases[&who]) {
                found = scan(p, p.cidr.network(), &busy);
            }
        }
        busy.extend(found);
        answer.insert(who, found);
    }
    answer
}

fn judge(case: &Case, plan: &Plan) -> Result<(), String> {
    let new = plan.pools(&case.pools);
    let mut got = BTreeSet::new();
    let busy = |a: IpAddr| {
        case.leases
            .iter()
            .find(|l| at(l.thing) == a && l.state.is_live(T0))
    };
    for effect in &plan.effects {
        let (from, to) = (at(effect.from.thing), effect.to.map(|to| at(to.thing)));
        let lease = busy(from).ok_or(format!("{from} is nobody's"))?;
        let Some(to) = to else { continue };
        if !got.insert(to) {
            return Err(format!("{to} is given twice"));
        }
        if to == from {
            continue;
        }
        if is_pinned(case, lease) {
            return Err(format!("{from} was moved"));
        }
        if let Some(other) = busy(to) {
            return Err(format!("{to} is taken by {}", other.holder));
        }
        if !new.prefixes.iter().any(|p| gives(p, to)) {
            return Err(format!("{to} is not to be handed out"));
        }
    }
    // Whoever is not spoken of lies in the new pools, where it lay before.
    for lease in case.leases.iter().filter(|l| l.state == State::Held) {
        let a = at(lease.thing);
        let spoken = plan.effects.iter().any(|e| at(e.from.thing) == a);
        if plan.before.cidr.contains(a)
            && !spoken
            && !new.prefixes.iter().any(|p| p.cidr.contains(a))
        {
            return Err(format!("{a} was forgotten"));
        }
    }
    if new.check().iter().any(Finding::is_error) {
        return Err("the new pools do not pass the check".to_owned());
    }
    Ok(())
}

type Planner = fn(&Case, &Table) -> Result<Plan, Refused>;

fn real(case: &Case, table: &Table) -> Result<Plan, Refused> {
    plan(&case.pools, table, 0, &case.change, case.moves, T0)
}

fn ignores_cooling(case: &Case, table: &Table) -> Result<Plan, Refused> {
    let mut table = table.clone();
    for lease in &case.leases {
        if matches!(lease.state, State::Cooling { .. }) {
            table.remove(&lease.thing);
        }
    }
    real(case, &table)
}

fn moves_everybody(case: &Case, table: &Table) -> Result<Plan, Refused> {
    let mut bare = Table::new(crate::sample::instance());
    for mut lease in table.leases() {
        if lease.holder.package.is_empty() {
            lease.holder.package = "p".to_owned();
        }
        bare.insert(lease).unwrap();
    }
    real(case, &bare)
}

fn run(planner: Planner, compare: bool, cases: u32) -> Result<BTreeMap<&'static str, u32>, String> {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut counts: BTreeMap<&'static str, u32> = BTreeMap::new();
    for _ in 0..cases {
        let case = case(&mut dice);
        let mut table = Table::new(crate::sample::instance());
        for lease in &case.leases {
            table.insert(lease.clone()).unwrap();
        }
        let mut count = |what| *counts.entry(what).or_default() += 1;
        let plan = match planner(&case, &table) {
            Ok(plan) => plan,
            Err(no) => {
                let text = no
                    .findings
                    .first()
                    .map(|f| f.message.clone())
                    .unwrap_or_default();
                count(match text {
                    t if t.contains("kept never moves") || t.contains("spec.allocations") => "kept",
                    t if t.contains("by hand") => "by hand",
                    t if t.contains("has not ended") => "reserved",
                    t if t.contains("has no place") => "refused to move",
                    t if t.contains("has room") => "no room",
                    t => return Err(format!("nobody asked for: {t}")),
                });
                continue;
            }
        };
        judge(&case, &plan).map_err(|e| format!("{e}\n{:?}\n{plan:#?}", case.change))?;
        for effect in &plan.effects {
            count(match effect.to {
                None => "stays",
                Some(_) if !effect.is_move() => "mask",
                Some(_) if effect.why == "the same place" => "same place",
                Some(_) => "moved",
            });
        }
        let looked = !matches!(case.change, Change::Drain) || case.moves;
        if compare && looked {
            let moved = plan
                .effects
                .iter()
                .filter(|e| e.is_move() || e.to.is_none());
            let got: BTreeMap<IpAddr, Option<IpAddr>> = moved
                .map(|e| (at(e.from.thing), e.to.map(|to| at(to.thing))))
                .collect();
            let wanted = model(&case, &plan);
            if got != wanted {
                return Err(format!(
                    "{:?}: the model says {wanted:?}, the plan {got:?}",
                    case.change
                ));
            }
        }
    }
    Ok(counts)
}

#[test]
fn plans_agree_with_the_model_and_every_outcome_occurs() {
    let counts = run(real, true, 6_000).unwrap_or_else(|e| panic!("{e}"));
    println!("outcomes: {counts:?}");
    for outcome in [
        "kept",
        "by hand",
        "reserved",
        "refused to move",
        "no room",
        "stays",
        "mask",
        "same place",
        "moved",
    ] {
        assert!(
            counts.contains_key(outcome),
            "{outcome} never occurred: {counts:?}"
        );
    }
}

#[test]
fn a_planner_with_a_defect_is_caught_by_the_rules() {
    assert!(run(ignores_cooling, false, 3_000).is_err());
    assert!(run(moves_everybody, false, 3_000).is_err());
    assert!(run(real, false, 3_000).is_ok());
    // What the sample world says about addresses.
    assert_eq!(host("10.0.0.0/27", 5), addr("10.0.0.5"));
}
