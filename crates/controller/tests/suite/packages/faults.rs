//! What breaks: Git, the program, another pusher. Nothing is lost, nothing leaks, everything is there at the end.

use std::collections::BTreeSet;

use super::scene::Stage;
use crate::harness::{Controller, until, until_within};

const ALWAYS: &str = "  annotations: {approval.nephio.org/policy: always}";

#[test]
fn git_away_is_a_condition_and_goes_when_git_is_back() {
    let Some(stage) = Stage::own() else {
        return;
    };
    let scene = stage.scene("away", 141);
    scene.variant("before", "upf-a", ALWAYS);
    scene.awaits("before", "Published", ("True", "Published"));
    stage.git.stop();
    scene.variant("upf", "upf-b", ALWAYS);
    let variant = scene.awaits("upf", "Stalled", ("True", "GitUnreachable"));
    assert!(
        variant["status"].to_string().contains("tried again"),
        "{}",
        variant["status"]
    );
    assert_eq!(
        scene.leases().len(),
        1,
        "nothing is taken for what cannot be pushed"
    );
    stage.git.start_again();
    scene.awaits("upf", "Published", ("True", "Published"));
    scene.awaits("upf", "Stalled", ("False", "Valid"));
    scene.awaits_leases(&[(20, "held"), (21, "held")]);
}

#[test]
fn two_programs_and_somebody_else_who_pushes_make_every_package_once() {
    let Some(stage) = Stage::own() else {
        return;
    };
    let scene = stage.scene("both", 142);
    let second = Controller::start(&stage.cluster, &["packages"], &["--git-poll=1s"]);
    let names: Vec<String> = (0..6).map(|n| format!("upf-{n}")).collect();
    let pushing = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut nth = 0;
            while pushing.load(std::sync::atomic::Ordering::SeqCst) {
                scene.packages("blueprints"); // a person works elsewhere too
                let mut files = scene.blueprint();
                files.remove("interface-n3.yaml");
                files.remove("deployment.yaml");
                files.insert("README.md".into(), format!("{nth}\n").into_bytes());
                let workspace = format!("edit-{nth}");
                scene.draft("edge", "notes", &workspace, &files);
                // The program may have specialised it meanwhile: then the next one is theirs.
                let packages = scene.packages("edge");
                let (package, workspace) = ("notes".parse().unwrap(), workspace.parse().unwrap());
                let proposed = packages.propose(&package, &workspace, None, None);
                let _ = proposed.and_then(|_| packages.approve(&package, &workspace, None, None));
                nth += 1;
            }
        });
        for name in &names {
            scene.variant(name, name, ALWAYS);
        }
        for name in &names {
            scene.awaits(name, "Published", ("True", "Published"));
        }
        pushing.store(false, std::sync::atomic::Ordering::SeqCst);
    });
    until("six addresses, all held", || {
        let leases = scene.leases();
        let held = leases.iter().filter(|(_, state)| state == "held").count();
        (held == 6 && leases.len() == 6)
            .then_some(())
            .ok_or(format!("{leases:?}"))
    });
    for name in &names {
        assert_eq!(
            scene.look(name).newest.unwrap().version,
            1,
            "{name} was published once"
        );
    }
    drop(second);
}

#[test]
fn a_program_that_is_killed_again_and_again_leaks_nothing() {
    let Some(stage) = Stage::own() else {
        return;
    };
    let scene = stage.scene("killed", 143);
    let names: Vec<String> = (0..8).map(|n| format!("upf-{n}")).collect();
    for (nth, name) in names.iter().enumerate() {
        let policy = if nth % 2 == 0 { ALWAYS } else { "" };
        scene.variant(name, name, policy);
    }
    let mut states = BTreeSet::new();
    for round in 0..12 {
        // Not a wait for a state: the point of the kill is to be anywhere.
        std::thread::sleep(std::time::Duration::from_millis(150 + 170 * round));
        let mut controller = stage.controller();
        states.insert(scene.leases().len());
        controller.kill();
        controller.restart();
    }
    println!("killed 12 times, with {states:?} leases at the time");
    let bound = std::time::Duration::from_mins(2);
    until_within(bound, "every package is there", || {
        for (nth, name) in names.iter().enumerate() {
            let seen = scene.look(name);
            let wanted = if nth % 2 == 0 {
                seen.deployed.is_some()
            } else {
                seen.open.len() == 1
            };
            if !wanted {
                return Err(format!("{name}: {seen:?}"));
            }
        }
        Ok(())
    });
    until_within(bound, "four held, four reserved, and no other", || {
        let leases = scene.leases();
        let count = |wanted: &str| leases.iter().filter(|(_, state)| state == wanted).count();
        let right = (count("held"), count("reserved"), leases.len()) == (4, 4, 8);
        right.then_some(()).ok_or(format!("{leases:?}"))
    });
    for name in &names {
        stage.cluster.delete(&scene.path(name));
    }
    let mut controller = stage.controller();
    controller.kill();
    controller.restart();
    drop(controller);
    until_within(bound, "every variant is gone", || {
        let left: Vec<_> = names
            .iter()
            .filter(|name| scene.get(name).is_some())
            .collect();
        left.is_empty().then_some(()).ok_or(format!("{left:?}"))
    });
    until_within(bound, "no lease is left", || {
        let leases = scene.leases();
        leases.is_empty().then_some(()).ok_or(format!("{leases:?}"))
    });
}
