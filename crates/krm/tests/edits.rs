//! Edits by example: whole texts before and after. Only the lines of an edit may differ.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::format_push_string,
    clippy::format_collect,
    reason = "a test reports by panicking and printing"
)]

use mooring_krm::{Change, Edit, EditError, FieldPath, File, diff, emit};
use serde_json::{Value, json};

fn path(text: &str) -> FieldPath {
    text.parse().unwrap()
}

fn set(at: &str, value: Value) -> Edit {
    Edit::set(path(at), value)
}

fn remove(at: &str) -> Edit {
    Edit::remove(path(at))
}

fn append(at: &str, value: Value) -> Edit {
    Edit::append(path(at), value)
}

fn edited(text: &str, edits: &[Edit]) -> String {
    let file = File::parse(text.as_bytes()).unwrap();
    let edits: Vec<_> = edits.iter().map(|edit| (0, edit.clone())).collect();
    file.edit(&edits)
        .unwrap_or_else(|error| panic!("{text:?} {edits:?}: {error}"))
}

#[test]
fn edits_touch_only_their_own_lines() {
    let mut wrong = Vec::new();
    let insert = |at: &str, value: Value| Edit::Insert {
        path: path(at),
        value,
    };
    for (before, edits, after) in [
        // Scalars keep what stands around them.
        (
            "a:   1   # one\nb: 2\n",
            vec![set("a", json!(3))],
            "a: 3   # one\nb: 2\n",
        ),
        (
            "a: 'x'\nb: 2",
            vec![set("b", json!("yes"))],
            "a: 'x'\nb: \"yes\"",
        ),
        (
            "a: x\n  y # c\nb: 2\n",
            vec![set("a", json!("z"))],
            "a: z # c\nb: 2\n",
        ),
        (
            "a: # c\nb: 2\n",
            vec![set("a", json!("z"))],
            "a: z # c\nb: 2\n",
        ),
        (
            "a:\n  x\nb: 2\n",
            vec![set("a", json!("z"))],
            "a: z\nb: 2\n",
        ),
        (
            "\"a b\": 1\n'c': 2\n",
            vec![set("[a b]", json!(5)), remove("c")],
            "\"a b\": 5\n",
        ),
        // Keys come last, also in nested maps, also without a last line break.
        (
            "a:\n  b: 1\nc: 2",
            vec![set("a.x", json!(1)), set("d", json!({"e": [1]}))],
            "a:\n  b: 1\n  x: 1\nc: 2\nd:\n  e:\n  - 1",
        ),
        (
            "a:\r\n  b: 1\r\n",
            vec![set("a.x.w", json!("z"))],
            "a:\r\n  b: 1\r\n  x:\r\n    w: z\r\n",
        ),
        (
            "a:\n    b: 1\n",
            vec![set("c.d", json!(1))],
            "a:\n    b: 1\nc:\n    d: 1\n",
        ),
        (
            "a:\n  b: 1 # last\n\n# about c\nc: 1\n",
            vec![set("a.x", json!(1))],
            "a:\n  b: 1 # last\n  x: 1\n\n# about c\nc: 1\n",
        ),
        // Empty values become collections.
        (
            "annotations:\nb: 1\n",
            vec![set("annotations.x", json!("y"))],
            "annotations:\n  x: \"y\"\nb: 1\n",
        ),
        (
            "annotations: {} # none\nb: 1\n",
            vec![set("annotations.x", json!("y"))],
            "annotations: # none\n  x: \"y\"\nb: 1\n",
        ),
        (
            "l: []\n",
            vec![append("l", json!({"name": "a", "v": 1}))],
            "l:\n- name: a\n  v: 1\n",
        ),
        ("- a:\n", vec![set("[0].a.b", json!(1))], "- a:\n    b: 1\n"),
        // Scalar to map and back.
        (
            "a: 1 # c\nb: 2\n",
            vec![set("a", json!({"x": {"w": 1}}))],
            "a: # c\n  x:\n    w: 1\nb: 2\n",
        ),
        (
            "a: # c\n  x: 1\n  y: 2\nb: 2\n",
            vec![set("a", json!("s"))],
            "a: s # c\nb: 2\n",
        ),
        (
            "a:\n- x: 1\n  y: 2\n- z\n",
            vec![set("a[0]", json!("s"))],
            "a:\n- s\n- z\n",
        ),
        // Block text.
        (
            "a: |\n  x\n  y\nb: 1\n",
            vec![set("a", json!("z"))],
            "a: z\nb: 1\n",
        ),
        (
            "a: | # c\n  x\nb: 1\n",
            vec![set("a", json!("p\nq\n"))],
            "a: | # c\n  p\n  q\nb: 1\n",
        ),
        (
            "a: 1\nb: 1\n",
            vec![set("a", json!("{\n  \"x\": 1\n}"))],
            "a: |-\n  {\n    \"x\": 1\n  }\nb: 1\n",
        ),
        ("a: |\n  x", vec![set("b", json!(1))], "a: |-\n  x\nb: 1"),
        ("a: |+\n  x", vec![set("b", json!(1))], "a: |-\n  x\nb: 1"),
        (
            "a: 1",
            vec![set("b", json!("x\ny\n"))],
            "a: 1\nb: \"x\\ny\\n\"",
        ),
        ("a: |\n  x\nb: 1", vec![remove("b")], "a: |\n  x\n"),
        (
            "a: |+\n  x\n\nb: 1\n",
            vec![set("c", json!(1)), remove("b")],
            "a: |+\n  x\n\nc: 1\n",
        ),
        // Lists keep their style.
        (
            "a:\n  - x\nb: 1\n",
            vec![append("a", json!("w")), set("c", json!(["z"]))],
            "a:\n  - x\n  - w\nb: 1\nc:\n  - z\n",
        ),
        (
            "a:\n- x # c\n- y\n",
            vec![insert("a[1]", json!("m"))],
            "a:\n- x # c\n- m\n- y\n",
        ),
        (
            "a:\n- x\n# about y\n- y\n",
            vec![insert("a[0]", json!({"p": 1, "q": 2}))],
            "a:\n- p: 1\n  q: 2\n- x\n# about y\n- y\n",
        ),
        (
            "- - a\n  - b\n",
            vec![remove("[0][0]"), insert("[0][0]", json!("m"))],
            "- - m\n  - b\n",
        ),
        (
            "a:\n- x\n# about y\n- y\n- z\n",
            vec![remove("a[1]")],
            "a:\n- x\n# about y\n- z\n",
        ),
        ("a:\n- x\n", vec![remove("a[0]")], "a: []\n"),
        (
            "a:\n- b: 1 # one\n  # about c\n  c: 2\n",
            vec![remove("a[0].b")],
            "a:\n-\n  # about c\n  c: 2\n",
        ),
        (
            "a:\n- b: 1\n  c: 2\n  d: 3\n",
            vec![remove("a[0].b"), remove("a[0].c")],
            "a:\n- d: 3\n",
        ),
        (
            "a:\n- name: x\n  v: 1\n- name: y\n  v: 2\n",
            vec![
                set("a[1].v", json!(3)),
                insert("a[1]", json!({"name": "m"})),
            ],
            "a:\n- name: x\n  v: 1\n- name: m\n- name: y\n  v: 3\n",
        ),
        // Removing.
        (
            "a: 1\n# about b\nb: 2\nc: 3",
            vec![remove("c")],
            "a: 1\n# about b\nb: 2",
        ),
        ("a: 1\nb: 2\n", vec![remove("a")], "b: 2\n"),
        ("a:\n  b: 1\nc: 1\n", vec![remove("a.b")], "a: {}\nc: 1\n"),
        ("a: 1\n", vec![remove("nothing.here")], "a: 1\n"),
        // Brackets.
        (
            "a: {b: c, d: e} # x\n",
            vec![set("a.d", json!("f g")), set("a.h", json!([1, "on"]))],
            "a: {b: c, d: f g, h: [1, \"on\"]} # x\n",
        ),
        (
            "a: {b: c, d: e, f: g}\n",
            vec![remove("a.d"), remove("a.f"), set("a.z", json!("1"))],
            "a: {b: c, z: \"1\"}\n",
        ),
        ("a: {b: c, d: e}\n", vec![remove("a.b")], "a: {d: e}\n"),
        (
            "a: [x, y, ]\n",
            vec![append("a", json!("p, q"))],
            "a: [x, y, 'p, q', ]\n",
        ),
        (
            "a: [x, z]\n",
            vec![insert("a[1]", json!("m"))],
            "a: [x, m, z]\n",
        ),
        (
            "a: {b, c: }\n",
            vec![set("a.b", json!(1)), set("a.c", json!(2))],
            "a: {b: 1, c: 2 }\n",
        ),
        ("a: [k: v]\n", vec![set("a[0].k", json!(2))], "a: [k: 2]\n"),
        (
            "a: [k: v]\n",
            vec![set("a[0].l", json!(2))],
            "a: [{k: v, l: 2}]\n",
        ),
        (
            "{\n  \"a\": 1,\n  \"b\": [\n    1\n  ]\n}\n",
            vec![set("c", json!("x")), append("b", json!(2))],
            "{\n  \"a\": 1,\n  \"b\": [\n    1,\n    2\n  ],\n  \"c\": \"x\"\n}\n",
        ),
        // Anchors and aliases: one use changes, the others do not.
        (
            "a: &x {p: 1}\nb: *x\nc: *x\n",
            vec![set("b.q", json!(2))],
            "a: &x {p: 1}\nb:\n  p: 1\n  q: 2\nc: *x\n",
        ),
        (
            "a: &x 1\nb: *x\n",
            vec![set("a", json!(2))],
            "a: &x 2\nb: 1\n",
        ),
        (
            "a: &x 1\nb: *x\n",
            vec![set("a", json!(2)), set("b", json!(2))],
            "a: &x 2\nb: *x\n",
        ),
        (
            "a: &x\n  p: 1\nb: *x\nc: 1\n",
            vec![remove("a")],
            "b:\n  p: 1\nc: 1\n",
        ),
        (
            "a: &x\n  p: 1\nb:\n  <<: *x\n  q: 2\n",
            vec![set("b.p", json!(5))],
            "a: &x\n  p: 1\nb:\n  <<: *x\n  q: 2\n  p: 5\n",
        ),
        (
            "a: &x\n  p: 1\nb:\n  <<: *x\n  q: 2\n",
            vec![remove("b.p")],
            "a: &x\n  p: 1\nb:\n  q: 2\n",
        ),
        (
            "a: &x\n  p: 1\nb:\n  <<: *x\n",
            vec![set("a.p", json!(2))],
            "a: &x\n  p: 2\nb:\n  <<: *x\n  p: 1\n",
        ),
        ("a: !!str 1\n", vec![set("a", json!(2))], "a: 2\n"),
        // The root.
        ("# c\n", vec![set("a", json!(1))], "# c\na: 1\n"),
        ("", vec![set("a", json!(1))], "a: 1\n"),
        (
            "--- {a: 1}\n",
            vec![set("", json!({"b": {"c": 1}}))],
            "--- \n{\"b\": {\"c\": 1}}\n",
        ),
        ("- a\n", vec![set("", json!({"b": 1}))], "b: 1\n"),
        ("a: 1\n...\n", vec![set("b", json!(1))], "a: 1\nb: 1\n...\n"),
    ] {
        let got = edited(before, &edits);
        if got != after {
            wrong.push(format!(
                "{before:?}\n  {edits:?}\n  got    {got:?}\n  wanted {after:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_collection_behind_an_anchor_in_a_list_begins_on_a_line_of_its_own() {
    let two_keys = json!({"k": "v", "l": 1});
    for (before, new, after) in [
        // `- &x - a` cannot be read; `- &x k: v` can, and `*x` would then be `k`.
        ("- &x t\n", json!(["a"]), "- &x\n  - a\n"),
        ("- &x t\n", json!([null]), "- &x\n  - null\n"),
        ("- &x t\n", json!([["a"], "b"]), "- &x\n  - - a\n  - b\n"),
        ("- &x t\n", json!({"k": "v"}), "- &x\n  k: v\n"),
        ("- &x t # c\n", two_keys, "- &x # c\n  k: v\n  l: 1\n"),
        ("- &x t", json!(["a"]), "- &x\n  - a"),
        ("- &x t\r\n", json!(["a"]), "- &x\r\n  - a\r\n"),
        ("-\n  &x t\n", json!(["a"]), "- &x\n  - a\n"),
        ("- &x |\n  t\n", json!(["a"]), "- &x\n  - a\n"),
        ("- &x\n", json!(["a"]), "- &x\n  - a\n"),
        // What needs no line of its own gets none.
        ("- &x t\n", json!([]), "- &x []\n"),
        ("- &x t\n", json!("a\nb\n"), "- &x |\n  a\n  b\n"),
        ("- &x [t]\n", json!(["a"]), "- &x [a]\n"),
        ("- !!str t\n", json!(["a"]), "- - a\n"),
        ("- !!str &x t\n", json!(["a"]), "- - a\n"),
    ] {
        assert_eq!(edited(before, &[set("[0]", new)]), after, "{before:?}");
    }
    assert_eq!(
        edited("- - &x t\n  - *x\n", &[set("[0][0]", json!(["a"]))]),
        "- - &x\n    - a\n  - t\n"
    );
}

#[test]
fn an_alias_follows_its_anchor_to_a_collection() {
    for new in [json!(["a"]), json!({"k": "v"}), json!([["a"], {"k": []}])] {
        let edits = [set("[0]", new.clone()), set("[1]", new)];
        let after = edited("- &x t\n- *x\n- 1\n", &edits);
        assert!(after.starts_with("- &x\n  "), "{after}");
        assert!(after.ends_with("\n- *x\n- 1\n"), "{after}");
    }
    // Only one of them changes: the other keeps its value, not its alias.
    assert_eq!(
        edited("- &x t\n- *x\n", &[set("[0]", json!({"k": "v"}))]),
        "- &x\n  k: v\n- t\n"
    );
    assert_eq!(
        edited(
            "a: &x t\nb: *x\n",
            &[set("a", json!(["a"])), set("b", json!(["a"]))]
        ),
        "a: &x\n- a\nb: *x\n"
    );
}

#[test]
fn documents_come_and_go() {
    let file = File::parse(b"# head\na: 1\n--- # two\nb: 2\n---\nc: 3").unwrap();
    let apply = |changes: &[Change]| file.apply(changes).unwrap();
    let add = Change::AppendDocument(json!({"d": 4}));
    assert_eq!(
        apply(std::slice::from_ref(&add)),
        "# head\na: 1\n--- # two\nb: 2\n---\nc: 3\n---\nd: 4\n"
    );
    assert_eq!(
        apply(&[Change::RemoveDocument(1)]),
        "# head\na: 1\n---\nc: 3"
    );
    assert_eq!(
        apply(&[Change::RemoveDocument(2)]),
        "# head\na: 1\n--- # two\nb: 2\n"
    );
    assert_eq!(
        apply(&[
            Change::RemoveDocument(0),
            Change::Edit(1, set("b", json!(5))),
            add
        ]),
        "--- # two\nb: 5\n---\nc: 3\n---\nd: 4\n"
    );
    let all = [0, 1, 2].map(Change::RemoveDocument);
    assert_eq!(apply(&all), "");
    let empty = File::parse(b"").unwrap();
    assert_eq!(
        empty
            .apply(&[Change::AppendDocument(json!({"a": "b\nc"}))])
            .unwrap(),
        "a: |-\n  b\n  c\n"
    );
    assert_eq!(
        file.apply(&[Change::RemoveDocument(9)]),
        Err(EditError::NoSuchDocument {
            document: 9,
            len: 3
        })
    );
}

#[test]
fn impossible_edits_are_refused() {
    let file = File::parse(b"a: 1\nl: [1]\n").unwrap();
    let refused = |edit: Edit| file.edit(&[(0, edit)]).unwrap_err();
    assert!(matches!(
        refused(set("a.b", json!(1))),
        EditError::WrongShape { .. }
    ));
    assert!(matches!(
        refused(set("a[0]", json!(1))),
        EditError::WrongShape { .. }
    ));
    assert!(matches!(
        refused(append("a", json!(1))),
        EditError::WrongShape { .. }
    ));
    assert!(matches!(
        refused(set("l[5]", json!(1))),
        EditError::NoSuchIndex { len: 1, .. }
    ));
}

#[test]
fn ten_thousand_edits_are_one_pass() {
    let mut text = String::new();
    for i in 0..10_000 {
        text.push_str(&format!("key{i}: value # comment {i}\n"));
    }
    let file = File::parse(text.as_bytes()).unwrap();
    let edits: Vec<_> = (0..10_000)
        .map(|i| (0, set(&format!("key{i}"), json!(i))))
        .collect();
    let after = file.edit(&edits).unwrap();
    let expected: String = (0..10_000)
        .map(|i| format!("key{i}: {i} # comment {i}\n"))
        .collect();
    assert_eq!(after, expected);
    let edits: Vec<_> = (1..10_000)
        .map(|i| (0, remove(&format!("key{i}"))))
        .collect();
    assert_eq!(file.edit(&edits).unwrap(), "key0: value # comment 0\n");
    // A list of as many documents as there are edits, each edited in its own place.
    let text = "a: 1 # c\n---\n".repeat(10_000);
    let file = File::parse(text.as_bytes()).unwrap();
    let edits: Vec<_> = (0..10_000).map(|i| (i, set("a", json!(2)))).collect();
    assert_eq!(file.edit(&edits).unwrap(), text.replace("a: 1", "a: 2"));
}

#[test]
fn a_diff_names_only_what_changed() {
    let old = json!({"c": [{"type": "a", "status": "x"}, {"type": "b"}], "gone": 1, "s": [1, 2]});
    let new = json!({"c": [{"type": "n"}, {"type": "a", "status": "y"}, {"type": "b"}, {"type": "z"}], "s": [1, 3]});
    assert_eq!(
        diff(&old, &new),
        [
            remove("gone"),
            Edit::Insert {
                path: path("c[0]"),
                value: json!({"type": "n"})
            },
            append("c", json!({"type": "z"})),
            set("c[1].status", json!("y")),
            set("s[1]", json!(3)),
        ]
    );
}

#[test]
fn emitted_text_reads_well() {
    let value = json!({
        "b": {"yes": "yes", "n": "0123", "d": "2024-01-01", "ip": "10.0.0.1", "cidr": "10.0.0.0/24", "v6": "::1",
              "mac": "52:54:00:12:34:56", "big": 1e100, "f": 1.0, "e": "", "json": "{\"a\": 1}"},
        "a": [{"name": "x", "l": [[1, []], {}]}, null, true],
        "config": "{\n  \"type\": \"macvlan\"\n}",
        "text": "a\nb\n", "lead": " a\nb", "tail": "a\n\n", "tab": "a\tb", "c1": "\u{85}\u{7}",
    });
    let expected = "\
b:
  \"yes\": \"yes\"
  \"n\": \"0123\"
  d: \"2024-01-01\"
  ip: 10.0.0.1
  cidr: 10.0.0.0/24
  v6: ::1
  mac: \"52:54:00:12:34:56\"
  big: 1.0e+100
  f: 1.0
  e: \"\"
  json: '{\"a\": 1}'
a:
- name: x
  l:
  - - 1
    - []
  - {}
- null
- true
config: |-
  {
    \"type\": \"macvlan\"
  }
text: |
  a
  b
lead: |2-
   a
  b
tail: \"a\\n\\n\"
tab: \"a\\tb\"
c1: \"\\u0085\\u0007\"
";
    assert_eq!(emit(&value), expected);
    assert_eq!(
        File::parse(expected.as_bytes()).unwrap().documents()[0].value(),
        &value
    );
}
