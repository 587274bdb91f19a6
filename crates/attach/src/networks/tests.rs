//! The annotation: what is read, what is refused and where, and that merging is safe to repeat.

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, RngSeed, TestRng, TestRunner};
use serde_json::json;

use super::*;

fn key(text: &str) -> Key {
    parse(text).unwrap().entries[0].key()
}

fn select(text: &str) -> Selection {
    let key = key(text);
    Selection {
        name: key.name,
        namespace: key.namespace,
        interface: key.interface.map(|i| i.parse().unwrap()),
        ..Selection::default()
    }
}

fn with_ip(text: &str, ip: &str) -> Selection {
    Selection {
        ips: vec![ip.parse().unwrap()],
        ..select(text)
    }
}

#[test]
fn the_short_form_reads_namespace_name_and_interface() {
    let networks = parse(" n2, oai-ran/n3 ,n4@my_if,a/b@c").unwrap();
    assert_eq!(networks.form, Form::Short);
    let shown: Vec<String> = networks
        .entries
        .iter()
        .map(|e| e.key().to_string())
        .collect();
    assert_eq!(shown, ["n2", "oai-ran/n3", "n4@my_if", "a/b@c"]);
    assert_eq!(networks.to_string(), "n2, oai-ran/n3, n4@my_if, a/b@c");
    assert!(parse("  ").unwrap().entries.is_empty());
}

#[test]
fn the_json_form_reads_the_seeds_entry_and_keeps_unknown_keys() {
    let text =
        "[{\n \"name\": \"n2-network\",\n \"interface\": \"n2\",\n \"ips\": [\"192.168.100.100/24\"],
        \"com.example/x\": {\"b\": 1, \"a\": [true, null]}}]\n";
    let networks = parse(text).unwrap();
    let entry = &networks.entries[0];
    assert_eq!(entry.name(), "n2-network");
    assert_eq!(entry.interface(), Some("n2"));
    assert_eq!(entry.ips(), ["192.168.100.100/24"]);
    assert_eq!(
        networks.to_string(),
        "[\n  {\"name\": \"n2-network\", \"interface\": \"n2\", \"ips\": [\"192.168.100.100/24\"], \
         \"com.example/x\": {\"b\": 1, \"a\": [true, null]}}\n]"
    );
}

#[test]
fn one_address_may_be_a_string_and_the_old_interface_key_is_read() {
    let text = r#"[{"name":"a","ips":"fd00::1","interfaceRequest":"x0","mac":"02:00:00:00:00:01",
        "default-route":["10.0.0.1"],"cni-args":{"k":"v"},"namespace":null}]"#;
    let entry = parse(text).unwrap().entries.remove(0);
    assert_eq!(entry.ips(), ["fd00::1"]);
    assert_eq!(entry.interface(), Some("x0"));
    assert_eq!(entry.mac(), Some("02:00:00:00:00:01"));
    assert_eq!(entry.default_route(), Some(vec!["10.0.0.1"]));
    assert_eq!(entry.namespace(), None);
}

/// Text, offset, a part of the message.
const REFUSED: &[(&str, usize, &str)] = &[
    ("n2,,n3", 3, "empty"),
    ("n2,", 3, "empty"),
    ("n1, a/b/c", 4, "name"),
    ("n2@a@b c", 0, "interface name"),
    ("N2", 0, "lower-case"),
    ("root@h/n2", 0, "interface name"),
    ("/n2", 0, "namespace"),
    ("ns/", 0, "name"),
    ("n2@", 0, "empty"),
    ("n2@a234567890123456", 0, "15 bytes"),
    ("a.b", 0, "dot"),
    ("[{\"name\": \"n2\"},]", 16, "trailing comma"),
    ("[\n  {\"name\": \"n2\"}  # why\n]", 20, "not JSON"),
    ("{\"name\": \"n2\"}", 0, "not a list"),
    ("[\"n2\"]", 1, "entry 1: it is not an object"),
    (
        "[{\"name\": \"a\"}, {\"interface\": \"x\"}]",
        16,
        "entry 2: it has no name",
    ),
    ("[{\"name\": \"[,{\"}, {}]", 1, "entry 1: name"),
    ("[{\"name\": \"a\", \"mac\": \"zz\"}]", 1, "mac"),
    (
        "[{\"name\": \"a\", \"ips\": [\"300.0.0.1\"]}]",
        1,
        "not an address",
    ),
    ("[{\"name\": \"a\", \"ips\": [7]}]", 1, "not a string"),
    (
        "[{\"name\": \"a\", \"default-route\": [\"true\"]}]",
        1,
        "gateway",
    ),
    (
        "[{\"name\": \"a\", \"default-route\": \"10.0.0.1\"}]",
        1,
        "list",
    ),
    ("[{\"name\": \"a\", \"cni-args\": 1}]", 1, "cni-args"),
    (
        "[{\"name\": \"a\", \"interface\": \"a b\"}]",
        1,
        "interface name",
    ),
    ("[{\"name\": 3}]", 1, "not a string"),
];

#[test]
fn an_escaped_quote_does_not_hide_where_an_entry_begins() {
    for text in [
        r#"[{"name": "a", "x": "\\\"},{"}, {"name": ""}]"#,
        r#"[{"name": "a", "x": "\\"}, {"name": ""}]"#,
    ] {
        assert_eq!(parse(text).unwrap_err().offset, text.rfind('{').unwrap());
    }
}

#[test]
fn what_multus_refuses_is_refused_with_its_place() {
    for &(text, offset, part) in REFUSED {
        let error = parse(text).expect_err(text);
        assert_eq!(error.offset, offset, "{text}: {error}");
        assert!(error.message.contains(part), "{text}: {error}");
    }
}

#[test]
fn a_new_annotation_has_one_entry_per_line() {
    let merged = merge(
        None,
        "oai-ran",
        &[select("n2@n2"), with_ip("n3@n3", "10.1.3.20/24")],
        &[],
    );
    assert_eq!(
        merged.unwrap().unwrap(),
        "[\n  {\"name\": \"n2\", \"interface\": \"n2\"},\n  {\"name\": \"n3\", \"interface\": \"n3\", \"ips\": [\"10.1.3.20/24\"]}\n]"
    );
    assert_eq!(merge(None, "", &[], &[]).unwrap(), None);
}

#[test]
fn entries_of_the_user_keep_their_place_and_keys() {
    let existing = r#"[{"x": 1, "name": "theirs", "bandwidth": {"ingressRate": 9}},
                       {"name": "n2", "interface": "n2", "com.example/y": "kept", "ips": ["10.1.2.9/24"]},
                       {"name": "last", "namespace": "other"}]"#;
    let wanted = [with_ip("n2@n2", "10.1.2.20/24"), select("n3@n3")];
    let merged = merge(Some(existing), "ns", &wanted, &[]).unwrap().unwrap();
    assert_eq!(
        merged,
        r#"[
  {"x": 1, "name": "theirs", "bandwidth": {"ingressRate": 9}},
  {"name": "n2", "interface": "n2", "com.example/y": "kept", "ips": ["10.1.2.20/24"]},
  {"name": "last", "namespace": "other"},
  {"name": "n3", "interface": "n3"}
]"#
    );
}

#[test]
fn an_address_that_moved_to_the_nad_leaves_the_annotation() {
    let existing =
        r#"[{"name":"n2","interface":"n2","ips":["10.1.2.9/24"],"mac":"02:00:00:00:00:01"}]"#;
    let merged = merge(Some(existing), "", &[select("n2@n2")], &[]).unwrap();
    assert_eq!(
        merged.unwrap(),
        "[\n  {\"name\": \"n2\", \"interface\": \"n2\"}\n]"
    );
}

#[test]
fn a_short_entry_without_interface_is_the_same_attachment() {
    let merged = merge(Some("n2, mine"), "ns", &[select("n2@n2")], &[]).unwrap();
    assert_eq!(
        merged.unwrap(),
        "[\n  {\"name\": \"n2\", \"interface\": \"n2\"},\n  {\"name\": \"mine\"}\n]"
    );
    // Beside an exact match it is somebody's second attachment.
    let text = "n2, n2@n2";
    assert_eq!(
        merge(Some(text), "ns", &[select("n2@n2")], &[])
            .unwrap()
            .unwrap(),
        text
    );
}

#[test]
fn what_needs_no_change_is_not_reprinted() {
    for (text, wanted) in [
        ("n2@n2 ,  other", vec![select("n2@n2")]),
        ("ns/n2@n2", vec![select("n2@n2")]),
        (
            r#"[ {"interface":"n2" ,"name":"n2"}]"#,
            vec![select("n2@n2")],
        ),
        (
            r#"[{"name":"n2","interface":"n2","ips":"10.1.2.20/24"}]"#,
            vec![with_ip("n2@n2", "10.1.2.20/24")],
        ),
        (
            r#"[{"name":"n2","interfaceRequest":"n2"}]"#,
            vec![select("n2@n2")],
        ),
        (" a,b ", vec![]),
        ("", vec![]),
    ] {
        let merged = merge(Some(text), "ns", &wanted, &[key("gone@gone")]);
        assert_eq!(merged.unwrap().as_deref(), Some(text));
    }
}

#[test]
fn another_namespace_is_another_network() {
    let merged = merge(Some("a/n2@x"), "ns", &[select("b/n2@y")], &[])
        .unwrap()
        .unwrap();
    assert_eq!(parse(&merged).unwrap().entries.len(), 2);
    assert!(merged.contains("\"namespace\": \"b\""));
}

#[test]
fn what_we_owned_goes_and_the_last_one_takes_the_annotation_along() {
    let gone = [key("n2@n2"), key("n3@n3")];
    let text = "n2@n2, keep, n3@n3";
    assert_eq!(merge(Some(text), "", &[], &gone).unwrap().unwrap(), "keep");
    assert_eq!(merge(Some("n2@n2"), "", &[], &gone).unwrap(), None);
    // Wanted wins over removed.
    let merged = merge(Some(text), "", &[select("n3@n3")], &gone).unwrap();
    assert_eq!(merged.unwrap(), "keep, n3@n3");
    // The user's own attachment of the same NAD under another name stays.
    assert_eq!(
        merge(Some("n2@mine"), "", &[], &gone).unwrap().unwrap(),
        "n2@mine"
    );
}

#[test]
fn an_interface_asked_for_twice_is_an_error_that_names_both() {
    let error = merge(Some("theirs@n2"), "", &[select("n2@n2")], &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "theirs@n2 and n2@n2 both ask for interface \"n2\""
    );
    let unreadable = merge(Some("[}"), "", &[select("n2@n2")], &[]).unwrap_err();
    assert!(
        matches!(
            unreadable,
            MergeError::Unreadable(ParseError { offset: 1, .. })
        ),
        "{unreadable:?}"
    );
}

#[test]
fn the_fuzz_entry_point_takes_anything() {
    for data in [
        &b"\xff\xfe"[..],
        b"[{\"name\":\"a\",\"x\":1e308}]",
        "[{\"name\":\"\u{e9}\"".as_bytes(),
        "n\u{e9}, [".as_bytes(),
        b"[",
        b"\"",
        b"",
    ] {
        fuzz_networks(data);
    }
    let deep = "[".repeat(4000);
    fuzz_networks(deep.as_bytes());
    for (text, _, _) in REFUSED {
        fuzz_networks(text.as_bytes());
    }
}

fn entry_text() -> impl Strategy<Value = String> {
    let name = "[ab]";
    let ns = prop::option::of("[xy]");
    let interface = prop::option::of("[ab][0-9]");
    (ns, name, interface).prop_map(|(ns, name, interface)| {
        let ns = ns.map_or(String::new(), |n| format!("{n}/"));
        let interface = interface.map_or(String::new(), |i| format!("@{i}"));
        format!("{ns}{name}{interface}")
    })
}

fn annotation() -> impl Strategy<Value = String> {
    let short = prop::collection::vec(entry_text(), 0..5).prop_map(|e| e.join(", "));
    let extra = prop_oneof![
        Just(json!(null)),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,4}".prop_map(Value::from)
    ];
    let json_entry = (entry_text(), extra, any::<bool>()).prop_map(|(text, extra, front)| {
        let mut map = Map::new();
        if front {
            map.insert("com.example/k".into(), extra.clone());
        }
        map.extend(parse(&text).unwrap().entries.remove(0).0);
        map.insert("com.example/k".into(), extra);
        Value::Object(map)
    });
    let json = prop::collection::vec(json_entry, 0..5).prop_map(|e| Value::Array(e).to_string());
    prop_oneof![short, json]
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn any_text_parses_or_is_refused_inside_itself(text in "[\\[\\]{}\":,@/a-c \\n0é\\\\]{0,40}") {
        fuzz_networks(text.as_bytes());
    }

    #[test]
    fn printing_keeps_the_value(text in annotation()) {
        fuzz_networks(text.as_bytes());
    }
}

/// How often each outcome of [`merge`] was met; a property that never met one proves nothing about it.
#[derive(Debug, Default)]
struct Met {
    unchanged: u32,
    changed: u32,
    gone: u32,
    refused: u32,
}

#[test]
fn merging_twice_is_merging_once_and_loses_nothing() {
    let inputs = (
        prop::option::of(annotation()),
        prop::collection::btree_set(entry_text(), 0..3),
        prop::collection::vec(entry_text(), 0..3),
        prop::option::of(Just("10.0.0.1/24")),
    );
    let met = std::cell::RefCell::new(Met::default());
    let settings = ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(settings, rng);
    let run = runner.run(&inputs, |(text, wanted, removed, ip)| {
        let mut met = met.borrow_mut();
        let wanted: Vec<Selection> = wanted
            .iter()
            .map(|w| ip.map_or_else(|| select(w), |ip| with_ip(w, ip)))
            .collect();
        let removed: Vec<Key> = removed.iter().map(|r| key(r)).collect();
        let Ok(once) = merge(text.as_deref(), "x", &wanted, &removed) else {
            met.refused += 1;
            return Ok(());
        };
        match &once {
            _ if once == text => met.unchanged += 1,
            None => met.gone += 1,
            Some(_) => met.changed += 1,
        }
        let twice = merge(once.as_deref(), "x", &wanted, &removed).unwrap();
        prop_assert_eq!(&once, &twice);

        // Nothing of the user's is lost, and it keeps its order.
        let entries = |text: &Option<String>| {
            text.as_deref()
                .map_or(vec![], |t| parse(t).unwrap().entries)
        };
        let (before, after) = (entries(&text), entries(&once));
        let named = |e: &Entry| {
            wanted.iter().any(|w| w.name == e.name()) || removed.iter().any(|r| r.name == e.name())
        };
        let theirs: Vec<&Entry> = before.iter().filter(|e| !named(e)).collect();
        let kept: Vec<&Entry> = after.iter().filter(|e| !named(e)).collect();
        prop_assert_eq!(theirs, kept);
        // Everything wanted is there, with its address; nothing removed is, unless wanted.
        let normal = |k: Key| Key {
            namespace: k.namespace.filter(|n| n != "x"),
            ..k
        };
        let wanted_keys: Vec<Key> = wanted.iter().map(|w| normal(w.key())).collect();
        for key in &wanted_keys {
            let found = after
                .iter()
                .find(|e| normal(e.key()) == *key && e.ips() == ip.into_iter().collect::<Vec<_>>());
            prop_assert!(found.is_some(), "{key} is missing in {after:?}");
        }
        for key in removed.into_iter().map(normal) {
            let found = after.iter().any(|e| normal(e.key()) == key);
            let stays = wanted_keys.contains(&key);
            prop_assert!(stays || !found, "{key} is still in {after:?}");
        }
        Ok(())
    });
    run.unwrap();
    let met = met.into_inner();
    let least = [met.unchanged, met.changed, met.gone, met.refused]
        .into_iter()
        .min();
    assert!(least > Some(2), "an outcome was hardly ever met: {met:?}");
}
