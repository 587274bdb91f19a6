//! The engine against a naive model, over random sequences.
//!
//! ```text
//!  commands ─► engine (Table, candidates) ─► answer ─┬─► equal to the model's (a list, a full scan)?
//!                                                    └─► allowed by the rules (no overlap, nothing barred)?
//! ```
//!
//! A run counts its outcomes and the test fails if one never occurs. Engines with a known defect must be
//! caught, once by comparison and once by the rules alone, else the checker proves nothing.

mod naive;
mod world;

use std::cell::RefCell;
use std::collections::BTreeMap;

use mooring_api::{Code, Time};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::{Candidate, Claim, Decision, Lease, Pools, Refusal, State, Table, Thing, candidates};
use naive::Naive;
use world::{Command, commands, pools};

/// What an engine says to a claim: everything it would offer, in order; one for a kept lease.
struct Answer {
    offers: Vec<Candidate>,
    kept: bool,
}

type Engine = fn(&Pools, &Table, &Claim, Time) -> Result<Answer, Refusal>;

fn real(pools: &Pools, table: &Table, claim: &Claim, now: Time) -> Result<Answer, Refusal> {
    Ok(match candidates(pools, table, claim, now)? {
        Decision::Keep(lease) => Answer {
            offers: vec![Candidate {
                thing: lease.thing,
                subnet: lease.subnet,
                gateway: lease.gateway,
            }],
            kept: true,
        },
        Decision::Offer(offers) => Answer {
            offers: offers.collect(),
            kept: false,
        },
    })
}

fn ignores_cooling(pools: &Pools, table: &Table, c: &Claim, now: Time) -> Result<Answer, Refusal> {
    let mut table = table.clone();
    let cooling = |l: &Lease| matches!(l.state, State::Cooling { .. }) && l.holder != c.holder;
    for lease in table.clone().leases().filter(cooling) {
        table.remove(&lease.thing);
    }
    real(pools, &table, c, now)
}

fn forgets_exclusions(
    pools: &Pools,
    table: &Table,
    c: &Claim,
    now: Time,
) -> Result<Answer, Refusal> {
    let mut pools = pools.clone();
    for prefix in &mut pools.prefixes {
        prefix.exclude.clear();
    }
    real(&pools, table, c, now)
}

fn forgets_the_gateway(
    pools: &Pools,
    table: &Table,
    c: &Claim,
    now: Time,
) -> Result<Answer, Refusal> {
    let mut pools = pools.clone();
    for prefix in &mut pools.prefixes {
        prefix.gateway = None;
    }
    real(&pools, table, c, now)
}

fn forgets_who_it_is(
    pools: &Pools,
    table: &Table,
    c: &Claim,
    now: Time,
) -> Result<Answer, Refusal> {
    let mut claim = c.clone();
    claim.holder.workload = "somebody".to_owned();
    real(pools, table, &claim, now)
}

fn sees_no_ranges(pools: &Pools, table: &Table, c: &Claim, now: Time) -> Result<Answer, Refusal> {
    let mut table = table.clone();
    for lease in table.clone().leases() {
        if matches!(lease.thing, Thing::Range(_)) && lease.holder != c.holder {
            table.remove(&lease.thing);
        }
    }
    real(pools, &table, c, now)
}

type Counts = BTreeMap<&'static str, u32>;

/// Runs commands; the error is the first rule that was broken.
fn run(
    engine: Engine,
    compare: bool,
    commands: &[Command],
    counts: &mut Counts,
) -> Result<(), String> {
    let pools = pools();
    let mut table = Table::new(crate::sample::instance());
    let mut stale = table.clone();
    let mut naive = Naive::default();
    let mut now = Time(1_000);
    let mut count = |what| *counts.entry(what).or_default() += 1;
    for command in commands {
        match command {
            Command::Pass { seconds } => {
                now = Time(now.0 + seconds);
                let gone = table.expire(now).len();
                if gone != naive.expire(now) {
                    return Err("the engine and the model let different leases end".to_owned());
                }
                if gone > 0 {
                    count("cool-down passed");
                }
            }
            Command::Look => stale = table.clone(),
            Command::Release { nth, cool_down } => {
                let Some(lease) = naive.nth(*nth) else {
                    continue;
                };
                let state = State::Cooling {
                    until: Time(now.0 + cool_down),
                };
                if *cool_down == 0 {
                    table.remove(&lease.thing);
                    naive.remove(&lease.thing);
                } else {
                    table.set_state(&lease.thing, state);
                    naive.set_state(&lease.thing, state);
                }
                count("released");
            }
            Command::Claim { claim, from_stale } => {
                let view = if *from_stale { &stale } else { &table };
                let answer = engine(&pools, view, claim, now);
                if compare && !from_stale {
                    naive.agrees(&pools, claim, now, &answer)?;
                }
                let answer = match answer {
                    Ok(answer) => answer,
                    Err(refusal) => {
                        count(match refusal.code() {
                            Code::PoolExhausted => "exhausted",
                            Code::AddressHeld => "fixed-held",
                            Code::AddressCooling => "cooling",
                            Code::AddressNotUsable => "not usable",
                            Code::AddressOutsidePrefix => "outside",
                            other => return Err(format!("nobody asked for {other}")),
                        });
                        continue;
                    }
                };
                for candidate in &answer.offers {
                    naive.allows(&pools, claim, candidate)?;
                    let lease = crate::sample::lease(claim, *candidate);
                    let blocker = naive.blocker(claim, &candidate.thing);
                    let has = naive.holds(claim, now);
                    match (table.insert(lease.clone()), blocker) {
                        (Ok(_), None) => {
                            if !from_stale && has.is_some_and(|has| has != candidate.thing) {
                                return Err(format!("{} moved", claim.holder));
                            }
                            naive.insert(lease);
                            count(if answer.kept { "kept" } else { "won" });
                            count(Naive::note(&pools, claim, candidate));
                            break;
                        }
                        (Err(_), Some(_)) if *from_stale => count("conflict"),
                        (Err(by), Some(_)) => {
                            return Err(format!("{} offered, held by {}", by.thing, by.holder));
                        }
                        (Ok(_), Some(_)) => return Err(format!("{} twice", candidate.thing)),
                        (Err(by), None) => return Err(format!("{} is free", by.thing)),
                    }
                }
            }
        }
        let wrong = table.check();
        if !wrong.is_empty() {
            return Err(wrong.join("; "));
        }
        if !table.leases().eq(naive.leases()) {
            return Err("the engine and the model keep different leases".to_owned());
        }
    }
    Ok(())
}

fn runner(cases: u32) -> TestRunner {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    // The same sequences every time: a property that fails does so for everybody.
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

#[test]
fn the_engine_agrees_with_the_model_and_every_outcome_occurs() {
    let counts = RefCell::new(Counts::new());
    let result = runner(256).run(&commands(), |commands| {
        run(real, true, &commands, &mut counts.borrow_mut())
            .map_err(proptest::test_runner::TestCaseError::fail)
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let counts = counts.into_inner();
    println!("outcomes: {counts:?}");
    for outcome in [
        "won",
        "kept",
        "exhausted",
        "conflict",
        "cooling",
        "cool-down passed",
        "spill-over",
        "fixed-held",
        "not usable",
        "outside",
        "kept-for",
        "released",
        "range",
        "block",
        "vlan",
        "address",
    ] {
        let seen = counts.get(outcome).copied().unwrap_or(0);
        assert!(seen > 0, "{outcome} never occurred: {counts:?}");
    }
}

fn is_caught(engine: Engine, compare: bool) -> bool {
    let mut counts = Counts::new();
    let strategy = commands();
    let mut runner = runner(1);
    (0..60).any(|_| {
        let tree = proptest::strategy::Strategy::new_tree(&strategy, &mut runner);
        let commands = proptest::strategy::ValueTree::current(&tree.expect("commands are made"));
        run(engine, compare, &commands, &mut counts).is_err()
    })
}

#[test]
fn an_engine_with_a_defect_is_caught_by_the_model_and_by_the_rules() {
    let defects: [(&str, Engine); 5] = [
        ("ignores cooling", ignores_cooling),
        ("forgets exclusions", forgets_exclusions),
        ("forgets the gateway", forgets_the_gateway),
        ("forgets who it is", forgets_who_it_is),
        ("sees no ranges", sees_no_ranges),
    ];
    for (name, engine) in defects {
        assert!(is_caught(engine, true), "the model does not catch: {name}");
        assert!(is_caught(engine, false), "the rules do not catch: {name}");
    }
    assert!(!is_caught(real, true));
    assert!(!is_caught(real, false));
}
