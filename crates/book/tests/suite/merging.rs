//! Two books become one: what is equal, new, in conflict, and who wins.

use mooring_api::{Code, Time};
use mooring_book::{
    Content, MemoryStore, Reservation, Side, Store, Text, Why, merge, read_text, rename,
};
use mooring_ipam::{Lease, State};

use super::made::{
    NOW, commit, holder, holder_of, instance, later, package, release, reserve, thing, win,
};

fn book(work: impl Fn(&MemoryStore)) -> Content {
    let store = MemoryStore::new();
    work(&store);
    Content::of(&store).unwrap()
}

fn ours() -> Content {
    book(|store| {
        commit(store, NOW, |txn| {
            win(txn, "10.0.0.1", &holder(1));
            win(txn, "10.0.0.2", &holder(2));
            win(txn, "10.0.0.3", &holder(3));
            txn.note_package(package("upf", "ours")).unwrap();
        });
        commit(store, later(5), |txn| release(txn, "10.0.0.3", 100));
    })
}

fn applied(content: &Content, merged: &mooring_book::Merge) -> Content {
    let store = MemoryStore::new();
    store
        .restore(&content.leases, &content.packages, NOW)
        .unwrap();
    store.amend(&merged.amendment, later(9)).unwrap();
    let mut after = Content::of(&store).unwrap();
    after.audit.clear();
    after
}

fn lines(content: &Content) -> Vec<String> {
    let line = |l: &Lease| format!("{} {} {}", l.thing, l.holder.package, l.holder.interface);
    content.leases.iter().map(line).collect()
}

#[test]
fn equal_entries_are_skipped_and_new_ones_are_added() {
    let theirs = book(|store| {
        commit(store, later(1), |txn| {
            win(txn, "10.0.0.1", &holder(1));
            win(txn, "10.0.0.9", &holder_of("amf", 1));
            win(txn, "vlan 100", &holder_of("amf", 2));
            txn.note_package(package("amf", "theirs")).unwrap();
        });
    });
    let merged = merge(&ours(), &theirs, None, later(9));
    assert_eq!((merged.same, merged.clashes.len()), (1, 0));
    let after = applied(&ours(), &merged);
    assert_eq!(
        lines(&after),
        [
            "10.0.0.1 upf n1",
            "10.0.0.2 upf n2",
            "10.0.0.3 upf n3",
            "10.0.0.9 amf n1",
            "VLAN 100 amf n2"
        ]
    );
    assert_eq!(after.packages.len(), 2);
    // Once more, and there is nothing to do.
    let again = merge(&after, &theirs, None, later(9));
    assert!(again.amendment.is_empty() && again.clashes.is_empty());
}

#[test]
fn a_conflict_names_both_holders_and_nothing_of_it_is_planned() {
    let theirs = book(|store| {
        commit(store, later(3), |txn| {
            // Somebody else has it; the holder has another one; it rests here for another.
            win(txn, "10.0.0.1", &holder_of("amf", 1));
            win(txn, "10.0.0.77", &holder(2));
            win(txn, "10.0.0.3", &holder_of("amf", 3));
            win(txn, "10.0.0.8", &holder_of("amf", 8));
        });
    });
    let merged = merge(&ours(), &theirs, None, later(9));
    let why: Vec<Why> = merged.clashes.iter().map(|c| c.why).collect();
    assert_eq!(why, [Why::Overlap, Why::Overlap, Why::Moved]);
    let when = |t: Time| format!("t{}", t.0 - NOW.0);
    let said: Vec<(Code, String)> = merged
        .clashes
        .iter()
        .map(|c| c.finding(when))
        .map(|f| (f.code, f.message))
        .collect();
    assert_eq!(
        said[0],
        (
            Code::DuplicateAddress,
            "10.0.0.1 in vpc-ran: this book has it for edge / upf / free5gc / n1 (since t0), the other for \
             edge / amf / free5gc / n1 (since t3)"
                .to_owned()
        )
    );
    assert_eq!(
        said[2],
        (
            Code::AddressDiffers,
            "edge / upf / free5gc / n2 in vpc-ran: this book gives it 10.0.0.2 since t0, the other 10.0.0.77 since t3"
                .to_owned()
        )
    );
    let put: Vec<String> = merged
        .amendment
        .put
        .iter()
        .map(|l| l.thing.to_string())
        .collect();
    assert_eq!(put, ["10.0.0.8"]);
    assert_eq!(merged.amendment.drop, []);

    let kept = applied(
        &ours(),
        &merge(&ours(), &theirs, Some(Side::Ours), later(9)),
    );
    assert_eq!(
        lines(&kept),
        [
            "10.0.0.1 upf n1",
            "10.0.0.2 upf n2",
            "10.0.0.3 upf n3",
            "10.0.0.8 amf n8"
        ]
    );
    let taken = merge(&ours(), &theirs, Some(Side::Theirs), later(9));
    assert_eq!(
        lines(&applied(&ours(), &taken)),
        [
            "10.0.0.1 amf n1",
            "10.0.0.3 amf n3",
            "10.0.0.8 amf n8",
            "10.0.0.77 upf n2"
        ]
    );
}

#[test]
fn a_block_of_theirs_takes_the_place_of_every_address_under_it() {
    let theirs = book(|store| {
        commit(store, later(3), |txn| {
            win(txn, "10.0.0.0-10.0.0.7", &holder_of("amf", 1));
        });
    });
    let merged = merge(&ours(), &theirs, None, later(9));
    assert_eq!(merged.clashes.len(), 3);
    let taken = merge(&ours(), &theirs, Some(Side::Theirs), later(9));
    assert_eq!(
        lines(&applied(&ours(), &taken)),
        ["10.0.0.0-10.0.0.7 amf n1"]
    );
}

#[test]
fn what_an_open_transaction_counts_on_is_not_given_to_theirs() {
    let ours = book(|store| {
        reserve(store, NOW, |txn| {
            win(txn, "10.0.0.1", &holder(1));
        });
    });
    let theirs = book(|store| {
        commit(store, NOW, |txn| {
            win(txn, "10.0.0.1", &holder(2));
        });
    });
    let merged = merge(&ours, &theirs, Some(Side::Theirs), later(9));
    assert_eq!((merged.undecided, merged.clashes.len()), (1, 1));
    assert!(merged.amendment.is_empty());
}

#[test]
fn a_draft_of_theirs_rests_and_what_rested_there_is_left_out() {
    let theirs = book(|store| {
        commit(store, NOW, |txn| {
            win(txn, "10.0.0.40", &holder_of("amf", 1));
        });
        commit(store, NOW, |txn| release(txn, "10.0.0.40", 5));
        reserve(store, NOW, |txn| {
            win(txn, "10.0.0.41", &holder_of("amf", 2));
        });
    });
    let merged = merge(&ours(), &theirs, None, later(9));
    let [came] = &merged.amendment.put[..] else {
        panic!("{:?}", merged.amendment.put)
    };
    assert_eq!(came.thing, thing("10.0.0.41"));
    assert!(matches!(came.state, State::Cooling { .. }));
}

#[test]
fn a_renamed_cluster_keeps_every_address() {
    let before = ours();
    let merged = rename(&before, "edge", "west");
    assert!(merged.clashes.is_empty());
    let after = applied(&before, &merged);
    assert_eq!(lines(&after), lines(&before));
    let clusters: Vec<&str> = after.leases.iter().map(|l| &*l.holder.cluster).collect();
    assert_eq!(clusters, ["west"; 3]);
    let since = |c: &Content| {
        c.leases
            .iter()
            .map(|l| (l.since, l.state))
            .collect::<Vec<_>>()
    };
    assert_eq!(since(&after), since(&before));
    assert_eq!(after.packages[0].cluster, "west");
}

#[test]
fn a_rename_that_would_give_one_holder_two_addresses_is_a_conflict() {
    let mut before = ours();
    let mut twin = before.leases[0].clone();
    twin.thing = thing("10.0.0.50");
    twin.holder.cluster = "west".to_owned();
    before.leases.push(twin);
    let merged = rename(&before, "edge", "west");
    assert_eq!(merged.clashes.len(), 1);
    assert_eq!(merged.clashes[0].ours.thing, thing("10.0.0.50"));
}

fn everything() -> Content {
    let reservation = Reservation {
        instance: instance(),
        thing: thing("10.0.9.0-10.0.9.9"),
        owner: "netops".to_owned(),
        reason: "a \"quoted\": reason # not a comment".to_owned(),
        until: Some(later(5000)),
    };
    book(|store| {
        commit(store, NOW, |txn| {
            for (n, what) in ["10.0.0.1", "10.1.0.0/28", "10.2.0.4-10.2.0.9", "vlan 100"]
                .iter()
                .enumerate()
            {
                win(txn, what, &holder(u32::try_from(n).unwrap()));
            }
            let mut v6 = holder(66);
            v6.family = mooring_api::Family::V6;
            v6.ordinal = 2;
            win(txn, "fd00::7", &v6);
            win(txn, "10.0.0.2", &holder(22));
            let mut record = package("upf", "deployed/upf");
            record
                .workloads
                .insert("n1".to_owned(), "Deployment/upf".to_owned());
            record.vlans.insert(instance());
            txn.note_package(record).unwrap();
            txn.try_take(
                &instance(),
                &super::made::candidate("10.0.9.0-10.0.9.9"),
                &reservation.holder(),
            )
            .unwrap();
            txn.note_reservation(reservation.clone()).unwrap();
        });
        commit(store, later(1), |txn| release(txn, "10.0.0.2", 900));
    })
}

#[test]
fn text_in_both_forms_says_everything_and_twice_the_same() {
    let content = everything();
    let yaml = serde_saphyr::to_string(&Text::from(&content)).unwrap();
    let json = serde_json::to_string_pretty(&Text::from(&content)).unwrap();
    for text in [&yaml, &json] {
        let read = read_text(text, "book").unwrap();
        // The trail is told and not imported.
        let expected = Content {
            audit: Vec::new(),
            ..content.clone()
        };
        assert_eq!(read, expected);
    }
    let again = serde_saphyr::to_string(&Text::from(&everything())).unwrap();
    assert_eq!(yaml, again);
    assert!(yaml.contains("event: released"), "{yaml}");
}

#[test]
fn a_hostile_text_is_a_finding_with_line_and_field() {
    let good = serde_saphyr::to_string(&Text::from(&ours())).unwrap();
    let line_of = |text: &str, what: &str| {
        let at = text.lines().position(|l| l.contains(what)).unwrap();
        u32::try_from(at + 1).unwrap()
    };
    let twice = good.replacen("\"10.0.0.2\"", "10.0.0.1", 1);
    let overlapping = good.replacen("\"10.0.0.2\"", "10.0.0.0-10.0.0.9", 1);
    let cases = [
        ("{\"format\": ", Code::ImportInvalid, 1, None),
        ("- just\n- a list\n", Code::ImportInvalid, 1, None),
        ("kind: Deployment\n", Code::ImportInvalid, 1, Some("format")),
        (
            &good.replace("version: 1", "version: 2"),
            Code::BookNewer,
            1,
            Some("version"),
        ),
        (
            &good.replace("version: 1", "version: 0"),
            Code::ImportInvalid,
            1,
            Some("version"),
        ),
        (
            &twice,
            Code::ImportInvalid,
            line_of(&good, "10.0.0.2"),
            Some("leases[1].what"),
        ),
        (
            &overlapping,
            Code::ImportInvalid,
            line_of(&good, "10.0.0.2"),
            Some("leases[1].what"),
        ),
        (
            &good.replacen("\"10.0.0.2\"", "fd00::2", 1),
            Code::ImportInvalid,
            line_of(&good, "n2") + 1,
            Some("leases[1].holder.family"),
        ),
        (
            &good.replacen("\"10.0.0.2\"", "10.9.0.2", 1),
            Code::ImportInvalid,
            line_of(&good, "10.0.0.2") + 1,
            Some("leases[1].subnet"),
        ),
        (
            &good.replacen("\"10.0.0.2\"", "10.0.0.256", 1),
            Code::ImportInvalid,
            line_of(&good, "10.0.0.2"),
            Some("leases[1].what"),
        ),
        (
            &good.replace("state: cooling", "state: lost"),
            Code::ImportInvalid,
            line_of(&good, "state: cooling"),
            Some("leases[2].state"),
        ),
        (
            &good.replacen("  since:", "  surprise: 1\n  since:", 1),
            Code::ImportInvalid,
            line_of(&good, "since:"),
            None,
        ),
        (
            "format: &a mooring.dev/book\nversion: 1\nleases: [*a, *a]\n",
            Code::ImportInvalid,
            1,
            None,
        ),
    ];
    for (text, code, line, field) in cases {
        assert_ne!(text, good, "the case spoils nothing");
        let findings = read_text(text, "their.yaml").unwrap_err();
        let first = &findings[0];
        assert_eq!(first.code, code, "{first} in\n{text}");
        let place = first.location.as_ref().unwrap();
        assert_eq!((&*place.file, place.line), ("their.yaml", line), "{first}");
        assert_eq!(first.field.as_deref(), field, "{first}");
        assert!(!first.help.is_empty() && first.is_error());
    }
}

#[test]
fn a_file_that_is_wrong_everywhere_is_not_told_line_by_line() {
    let row = "- network: x\n  what: nonsense\n  holder: {interface: a, family: ipv4}\n  state: held\n  since: now\n";
    let text = format!(
        "format: mooring.dev/book\nversion: 1\nleases:\n{}",
        row.repeat(1000)
    );
    let findings = read_text(&text, "f").unwrap_err();
    assert_eq!(findings.len(), 21);
    assert!(
        findings[20].message.contains("980 more"),
        "{}",
        findings[20]
    );
}
