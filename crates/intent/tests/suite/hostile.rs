//! Objects that somebody got wrong, in every place and every way: findings, never a panic, and the rest compiles.

use mooring_api::Finding;
use mooring_intent::{Answers, Prior};
use mooring_testkit::cases;
use serde_json::{Value, json};

use crate::cases::here;
use crate::{objects, run};

/// Paths of everything below a value, as JSON pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, child) in map {
                let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                found.push(at.clone());
                places(child, &at, found);
            }
        }
        Value::Array(items) => {
            for (n, child) in items.iter().enumerate() {
                let at = format!("{at}/{n}");
                found.push(at.clone());
                places(child, &at, found);
            }
        }
        _ => {}
    }
}

#[test]
fn values_of_every_type_in_every_place_are_survived() {
    let odd = [
        json!(null),
        json!(""),
        json!("0.0.0.0/0"),
        json!("::"),
        json!(0),
        json!(-1),
        json!(4_294_967_295_u32),
        json!([]),
        json!({}),
    ];
    let chosen = [
        "seed-4-2-without-sriov",
        "seed-4-3-bgpneighbor",
        "seed-4-5-collector",
        "low-level-kinds",
        "vrf-two-vrfs",
    ];
    let (mut tried, mut refused) = (0, 0);
    for case in cases(here())
        .iter()
        .filter(|c| chosen.contains(&c.name.as_str()))
    {
        let all = objects(&case.input());
        for (at, object) in all.iter().enumerate() {
            let mut found = Vec::new();
            for part in ["spec", "metadata"] {
                places(&object[part], &format!("/{part}"), &mut found);
            }
            for (n, place) in found.iter().enumerate() {
                // Two of the odd values at each place; which two moves on, so that all are everywhere.
                for value in odd.iter().cycle().skip(n + at).take(2) {
                    let mut wrong = all.clone();
                    *wrong[at].pointer_mut(place).unwrap() = value.clone();
                    let (compiled, _) = run(&wrong, &Answers::default(), &Prior::default());
                    tried += 1;
                    refused += usize::from(compiled.findings.iter().any(Finding::is_error));
                }
            }
        }
    }
    println!("{tried} objects got wrong, {refused} of them refused");
    assert!(
        tried > 500 && refused > tried / 4,
        "{tried} tried, {refused} refused"
    );
}

#[test]
fn answers_that_do_not_fit_are_as_good_as_none() {
    let case = cases(here())
        .into_iter()
        .find(|c| c.name == "layer2-dual")
        .unwrap();
    let objects = objects(&case.input());
    let inputs = mooring_intent::Inputs::read(&objects);
    let mut answers = Answers::default();
    for want in mooring_intent::wants(&inputs) {
        // IPv4 where IPv6 is wanted, and the other way round.
        let other = if want.key.contains("ipv4") {
            "2001:db8::1/128"
        } else {
            "10.0.0.1/32"
        };
        answers.give(want.key, other.parse().unwrap());
    }
    let compiled = mooring_intent::compile(&inputs, &answers, &Prior::default());
    let device = &compiled.nodes["worker-1"]
        .netplan
        .desired_state
        .network
        .vlans["l2.seg"];
    assert!(!device.contains_key("addresses"), "{device:?}");
}
