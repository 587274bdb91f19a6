//! A process that was stopped for longer than it may lead, and goes on: its late write changes nothing of anybody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mooring_api::Span;
use mooring_book::{Error, Filter, KubeOptions, Store};
use mooring_ipam::{State, Want};

use super::child::{Running, Told};
use super::writers::{claim, pools};
use super::{World, until};
use crate::made::{NOW, TTL, candidate, defects, holder, instance, later, release, thing, win};

/// Not a test of its own: takes, keeps and gives back one address, and says what came of it.
#[test]
#[ignore = "child: other tests start it as a process"]
fn child() {
    let told = Told::new();
    let store = &told.store;
    let outcome = (|| {
        let mut txn = store.begin(NOW)?;
        let won = txn.try_take(&instance(), &candidate("10.0.0.5"), &holder(1))?;
        println!(
            "\nSAID {}",
            if matches!(won, mooring_book::Outcome::Won(_)) {
                "won"
            } else {
                "lost"
            }
        );
        let id = txn.reserve(TTL)?;
        println!("\nSAID reserved");
        store.commit(id, NOW)?;
        println!("\nSAID committed");
        let mut txn = store.begin(NOW)?;
        if txn.held_by(&instance(), &holder(1))?.is_empty() {
            println!("\nSAID not ours");
            return Ok(());
        }
        release(&mut *txn, "10.0.0.5", 0);
        let id = txn.reserve(TTL)?;
        store.commit(id, NOW)?;
        println!("\nSAID released");
        Ok::<_, Error>(())
    })();
    println!(
        "\nSAID {}",
        outcome
            .err()
            .map_or("done".to_owned(), |e| e.reason().to_owned())
    );
}

#[test]
fn stopped_before_every_write_and_continued_when_another_has_the_address() {
    let (mut tried, mut refused) = (0, 0);
    loop {
        let Some(world) = World::new() else { return };
        let store = world.store();
        let child = Running::start_until(&world, "late::child", "", tried, "-STOP");
        until("the child stops, or ends", || child.is_stopped());
        let ended = child.is_stopped().is_ok()
            && std::fs::read_to_string(format!("/proc/{}/stat", child.child.id()))
                .is_ok_and(|stat| stat.contains(") Z"));
        // Its time is over; whatever it had reserved goes, and what it held is given back by who leads now.
        let much_later = later(TTL.0 * 20);
        store.tidy(much_later).unwrap();
        store
            .release_now(
                &instance(),
                &thing("10.0.0.5"),
                &holder(1),
                Span(0),
                much_later,
            )
            .unwrap();
        let mut txn = store.begin(much_later).unwrap();
        win(&mut *txn, "10.0.0.5", &holder(2));
        let id = txn.reserve(TTL).unwrap();
        store.commit(id, much_later).unwrap();
        let theirs = world.plane.kubectl(&[
            "get",
            "ipleases",
            "-o",
            "jsonpath={.items[*].metadata['uid','resourceVersion']}",
        ]);
        if !ended {
            child.signal("-CONT");
        }
        let (said, whole, errors) = child.join("SAID ");
        assert!(whole, "write {tried}: {errors}");
        let last = said.last().unwrap();
        refused += u32::from(last != "done" || said.contains(&"lost".to_owned()));
        // Not a byte of the other's lease has changed, and nothing else is there.
        let now = world.plane.kubectl(&[
            "get",
            "ipleases",
            "-o",
            "jsonpath={.items[*].metadata['uid','resourceVersion']}",
        ]);
        assert_eq!(now.ok(), theirs.ok(), "write {tried}: {said:?}");
        let fresh = world.store();
        store.tidy(much_later).unwrap();
        for store in [&store, &fresh] {
            let leases = store.leases(&Filter::default()).unwrap();
            assert_eq!(leases.len(), 1, "write {tried}: {leases:?}");
            assert_eq!(
                (&leases[0].holder, leases[0].state),
                (&holder(2), State::Held)
            );
        }
        drop(fresh.begin(later(TTL.0 * 40)).unwrap());
        assert_eq!(fresh.pending().unwrap(), [], "write {tried}");
        assert_eq!(defects(&fresh, much_later).unwrap(), [""; 0]);
        if ended {
            break;
        }
        tried += 1;
    }
    println!("{tried} points, {refused} late writes refused");
    assert!(
        tried > 8 && refused > 2,
        "{tried} points, {refused} refused"
    );
}

#[test]
fn a_process_that_does_not_lead_any_more_writes_nothing() {
    let Some(world) = World::new() else { return };
    let leads = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&leads);
    let options = KubeOptions {
        fence: Some(Arc::new(move || asked.load(Ordering::SeqCst))),
        ..KubeOptions::default()
    };
    let store = world.store_with(options);
    let wants = claim(holder(1), Want::Address);
    let lease = store
        .take_now(&pools(), &wants, None, NOW)
        .unwrap()
        .unwrap();
    let mut txn = store.begin(NOW).unwrap();
    win(&mut *txn, "10.0.3.1", &holder(3));
    let id = txn.reserve(TTL).unwrap();
    leads.store(false, Ordering::SeqCst);
    let before = world.plane.kubectl(&[
        "get",
        "ipleases,prefixledgers,configmaps",
        "-A",
        "-o",
        "name",
    ]);
    let fenced = |outcome: Result<(), Error>| {
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Fenced { .. }), "{error}");
        assert!(error.is_transient());
    };
    let other = claim(holder(2), Want::Address);
    fenced(store.take_now(&pools(), &other, None, NOW).map(|_| ()));
    fenced(
        store
            .take_now(
                &pools(),
                &claim(holder(4), Want::Range { count: 4 }),
                None,
                NOW,
            )
            .map(|_| ()),
    );
    fenced(
        store
            .release_now(&instance(), &lease.thing, &holder(1), Span(0), NOW)
            .map(|_| ()),
    );
    fenced(store.commit(id, NOW));
    fenced(store.abort(id, NOW));
    // What it has is still told: that is no write.
    assert_eq!(
        store
            .take_now(&pools(), &wants, None, NOW)
            .unwrap()
            .unwrap(),
        lease
    );
    let after = world.plane.kubectl(&[
        "get",
        "ipleases,prefixledgers,configmaps",
        "-A",
        "-o",
        "name",
    ]);
    assert_eq!(after, before);
    leads.store(true, Ordering::SeqCst);
    store.commit(id, NOW).unwrap();
    assert_eq!(store.leases(&Filter::default()).unwrap().len(), 2);
}

#[test]
fn a_server_that_is_away_is_transient_and_comes_back() {
    let Some(plane) = mooring_testkit::ControlPlane::start() else {
        return;
    };
    plane.install_crds(&super::crds());
    let options = KubeOptions {
        request: std::time::Duration::from_secs(2),
        ..KubeOptions::default()
    };
    let store = mooring_book::KubeStore::from_kubeconfig(plane.kubeconfig(), options).unwrap();
    let wants = claim(holder(1), Want::Address);
    let lease = store
        .take_now(&pools(), &wants, None, NOW)
        .unwrap()
        .unwrap();
    plane.stop_api_server();
    let away = store.take_now(&pools(), &claim(holder(2), Want::Address), None, NOW);
    let error = away.unwrap_err();
    assert!(
        matches!(error, Error::Unreachable { .. }) && error.is_transient(),
        "{error}"
    );
    plane.start_api_server();
    let again = until("the server answers again", || {
        let outcome = store.take_now(&pools(), &wants, None, NOW);
        outcome.map_err(|e| e.to_string())
    });
    assert_eq!(again.unwrap(), lease);
    let blocked = mooring_book::KubeStore::from_kubeconfig(
        std::path::Path::new("/nonexistent"),
        KubeOptions::default(),
    );
    assert!(matches!(blocked.err(), Some(Error::Unusable { .. })));
}
