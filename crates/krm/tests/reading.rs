//! What texts mean, one row per form of YAML that people write.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::format_push_string,
    clippy::format_collect,
    reason = "a test reports by panicking and printing"
)]

use mooring_krm::File;
use serde_json::{Value, json};

fn values(text: &str) -> Vec<Value> {
    let file = File::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    assert_eq!(file.text(), text);
    file.documents().iter().map(|d| d.value().clone()).collect()
}

#[test]
fn texts_mean_what_the_table_says() {
    for (text, value) in [
        ("a: b", json!({"a": "b"})),
        (
            "a:\n- b\n- c: 1\n  d: 2\n",
            json!({"a": ["b", {"c": 1, "d": 2}]}),
        ),
        (
            "a:\n  - b\n  -   c: 1\n      d: 2\n",
            json!({"a": ["b", {"c": 1, "d": 2}]}),
        ),
        (
            "- - a\n  - b\n-\n  c: d\n- \n",
            json!([["a", "b"], {"c": "d"}, null]),
        ),
        ("a:\nb: ~\nc: ''\n", json!({"a": null, "b": null, "c": ""})),
        (
            "a: x # no\nb: x#yes\nc: 'x # yes'\n",
            json!({"a": "x", "b": "x#yes", "c": "x # yes"}),
        ),
        (
            "a: http://x:80/y\nb::c: d\n",
            json!({"a": "http://x:80/y", "b::c": "d"}),
        ),
        (
            "a: one\n  two\n\n  three\nb: 1\n",
            json!({"a": "one two\nthree", "b": 1}),
        ),
        ("a: one\n  - two\n", json!({"a": "one - two"})),
        (
            "a: 'it''s\n  here\n\n  now'\n",
            json!({"a": "it's here\nnow"}),
        ),
        (
            "a: \"x\\ty \\\n   z\\u00e9\\U0001F600\\ud83d\\ude00\\/\"\n",
            json!({"a": "x\ty zé😀😀/"}),
        ),
        (
            "a: |\n  x\n   y\n\n  z\n\nb: 1\n",
            json!({"a": "x\n y\n\nz\n", "b": 1}),
        ),
        (
            "a: |-\n  x\nb: |+\n  y\n\nc: |\n",
            json!({"a": "x", "b": "y\n\n", "c": ""}),
        ),
        ("a: |2\n    x\n  y\n", json!({"a": "  x\ny\n"})),
        ("a:\n- |1-\n  x\n", json!({"a": [" x"]})),
        (
            "a: >\n  x\n  y\n\n  z\n   more\n  w\n",
            json!({"a": "x y\nz\n more\nw\n"}),
        ),
        (
            "a: |\n  x # text\n # comment\nb: 1\n",
            json!({"a": "x # text\n", "b": 1}),
        ),
        ("a: | # why\n  x\n", json!({"a": "x\n"})),
        ("a: |\n  x", json!({"a": "x"})),
        ("a: |\n\n\n  x\n", json!({"a": "\n\nx\n"})),
        (
            "{a: b, 'c':d, e, f: [1, g: h, ], }",
            json!({"a": "b", "c": "d", "e": null, "f": [1, {"g": "h"}]}),
        ),
        ("a: [\n1, # one\n2\n]\n", json!({"a": [1, 2]})),
        (
            "{\"a\":{\"b\":[1,2.5,null,true]},\t\"c\":\"\\n\"}",
            json!({"a": {"b": [1, 2.5, null, true]}, "c": "\n"}),
        ),
        (
            "a: {b: http://x/y, c: x y\n z}\n",
            json!({"a": {"b": "http://x/y", "c": "x y z"}}),
        ),
        ("? a\n: b\n? c\n", json!({"a": "b", "c": null})),
        ("? a\n: - x\n  - y\n", json!({"a": ["x", "y"]})),
        (
            "a: &x {p: 1, q: 2}\nb: *x\nc:\n  <<: *x\n  q: 3\n",
            json!({"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 2}, "c": {"p": 1, "q": 3}}),
        ),
        (
            "a: &x\n  p: 1\nb: &y {p: 2, q: 2}\nc:\n  <<: [*x, *y]\n",
            json!({"a": {"p": 1}, "b": {"p": 2, "q": 2}, "c": {"p": 1, "q": 2}}),
        ),
        (
            "&k a: 1\nb: *k\n*k : 2\n".trim_end_matches("*k : 2\n"),
            json!({"a": 1, "b": "a"}),
        ),
        ("a: &x\nb: *x\n", json!({"a": null, "b": null})),
        ("- &x a: 1\n- *x\n", json!([{"a": 1}, "a"])),
        (
            "a: !!str 1\nb: !custom x\nc: !!int '7'\nd: ! 1\n",
            json!({"a": "1", "b": "x", "c": 7, "d": "1"}),
        ),
        (
            "1: a\nyes: b\nnull: c\n0755: d\n'1.0': e\n",
            json!({"1": "a", "true": "b", "null": "c", "493": "d", "1.0": "e"}),
        ),
        ("'a b' : 1\n\"c\\td\": 2\n", json!({"a b": 1, "c\td": 2})),
        ("-1\n", json!(-1)),
        ("-a: 1\n?b: 2\n:c: 3\n", json!({"-a": 1, "?b": 2, ":c": 3})),
        ("a:\t1\nb: 2\t# c\n", json!({"a": 1, "b": 2})),
        ("\u{feff}a: 1\n", json!({"a": 1})),
        (
            "a:\n    b:\n        c: 1\n    d: 2\n",
            json!({"a": {"b": {"c": 1}, "d": 2}}),
        ),
        (
            "a: x\r\nb: |\r\n  y\r\n  z\r\n",
            json!({"a": "x", "b": "y\nz\n"}),
        ),
        ("a:\n  # c\n\n  b: 1\n# d\n", json!({"a": {"b": 1}})),
        ("a: !!map\n  b: 1\n", json!({"a": {"b": 1}})),
        ("a: &l\n- x\nb: *l\n", json!({"a": ["x"], "b": ["x"]})),
        ("é: ü # ö\n", json!({"é": "ü"})),
    ] {
        assert_eq!(values(text), [value], "{text:?}");
    }
}

#[test]
fn quoted_json_needs_no_indentation() {
    let text = "spec:\n  config: '{\n\"cniVersion\": \"0.3.1\",\n\n  \"type\": \"macvlan\"\n}'\nb: \"x\ny\"\n";
    let value = &values(text)[0];
    let config: Value = serde_json::from_str(value["spec"]["config"].as_str().unwrap()).unwrap();
    assert_eq!(config, json!({"cniVersion": "0.3.1", "type": "macvlan"}));
    assert_eq!(value["b"], "x y");
}

#[test]
fn documents_are_kept_even_when_empty() {
    for (text, expected) in [
        ("", json!([null])),
        ("# only a comment\n", json!([null])),
        ("a: 1\n---\nb: 2\n", json!([{"a": 1}, {"b": 2}])),
        (
            "# head\n---\na: 1\n---\n# nothing\n---\nb: 2\n---\n",
            json!([{"a": 1}, null, {"b": 2}, null]),
        ),
        (
            "--- # c\na: 1\n...\n---\nb: 2\n...\n# end\n",
            json!([{"a": 1}, {"b": 2}]),
        ),
        ("%YAML 1.2\n---\na: 1\n", json!([{"a": 1}])),
        (
            "--- text\n--- {a: b}\n--- |\n x\n--- !!str\n",
            json!(["text", {"a": "b"}, "x\n", ""]),
        ),
        (
            "a: |\n  x\n---\nb: >-\n  y\n",
            json!([{"a": "x\n"}, {"b": "y"}]),
        ),
        ("a: x---y\n---b: 1\n", json!([{"a": "x---y", "---b": 1}])),
    ] {
        assert_eq!(json!(values(text)), expected, "{text:?}");
    }
}

#[test]
fn fields_are_found_by_line_and_column_of_the_whole_file() {
    let text = "# head\na: 1\n---\nspec:\n  list:\n  - name: x\n    'é': {p: q}\n  - y\n  empty:\nmetadata:\n  annotations:\n    mooring.dev/routes: |\n      x\n";
    let file = File::parse(text.as_bytes()).unwrap();
    let at = |document: usize, path: &str| {
        let found = file.documents()[document]
            .locate(&path.parse().unwrap())
            .unwrap();
        (
            found.line,
            found.column,
            &text[found.offset..found.offset + found.length],
        )
    };
    assert_eq!(at(0, "a"), (2, 4, "1"));
    assert_eq!(at(1, "spec"), (4, 1, "spec"));
    assert_eq!(at(1, "spec.list[0].name"), (6, 11, "x"));
    assert_eq!(at(1, "spec.list[0].é.p"), (7, 14, "q"));
    assert_eq!(at(1, "spec.list[1]"), (8, 5, "y"));
    assert_eq!(at(1, "spec.list[7].name"), (5, 3, "list"));
    assert_eq!(at(1, "spec.empty"), (9, 3, "empty"));
    assert_eq!(at(1, "spec.missing.deep"), (4, 1, "spec"));
    assert_eq!(
        at(1, "metadata.annotations[mooring.dev/routes]"),
        (12, 25, "|")
    );
    assert_eq!(at(1, "").0, 4);
    assert!(
        File::parse(b"# x\n").unwrap().documents()[0]
            .locate(&"a".parse().unwrap())
            .is_none()
    );
}
