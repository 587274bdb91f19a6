//! Random values and random texts: what is written reads back, edits lead where they should, comments
//! beside what did not change stay.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::format_push_string,
    clippy::format_collect,
    reason = "a test reports by panicking and printing"
)]

use std::cell::Cell;
use std::fmt::Write as _;
use std::process::Command;

use mooring_krm::{File, diff, emit};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::{Map, Value, json};

const SOAK_CASES: u32 = 20_000;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{1,6}",
        2 => prop::sample::select(vec![
            "", "yes", "No", "on", "off", "y", "null", "~", "true", "0123", "0x1f", "1e3", "1_0", "-", "--", "---", "...",
            "- a", "a: b", "a #b", "#a", "a:", ":a", "? a", "?", "!x", "&x", "*x", "|", ">", "%a", "@a", "`a", "{a}", "[a]", "a,b",
            "'", "\"", "it's", "\\", " a", "a ", "a\nb", "a\nb\n", "\na", "a\n\n", " a\n b", "a\n  b\nc\n", "\n", "\ta\nb", "a\tb",
            "2001-01-01", "12:30:45", "1.5", ".5", ".inf", "<<", "=", "é", "😀", "\u{85}", "\u{2028}", "\r\n", "\u{0}", "a\r", "# x\n# y",
            "10.0.0.1/24", "{\n  \"type\": \"macvlan\"\n}", "- x\n- y\n", "a: |\n  b\n", "--- \n", "a\n \nb", "a \n b \n",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => text().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => any::<f64>().prop_filter_map("finite", |f| f.is_finite().then(|| json!(f))),
        1 => (0..50i64).prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 40, 6, |inner| {
        let key = prop_oneof![4 => "[a-d]", 1 => text()];
        prop_oneof![
            3 => prop::collection::vec((key, inner.clone()), 0..6).prop_map(|entries| {
                Value::Object(entries.into_iter().collect::<Map<_, _>>())
            }),
            2 => prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            1 => prop::collection::vec(("[a-e]", inner), 0..5).prop_map(|items| {
                items.into_iter().map(|(name, v)| json!({"name": name, "v": v})).collect()
            }),
        ]
    })
}

/// A map, as documents are.
fn document() -> impl Strategy<Value = Value> {
    prop::collection::vec(("[a-e]", value()), 1..6)
        .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>()))
}

/// A value between two: what stays, what changes and what goes is drawn from `choices`.
fn between(a: &Value, b: &Value, choices: &mut impl Iterator<Item = u8>) -> Value {
    match (a, b, choices.next().unwrap_or(0)) {
        (Value::Object(a), Value::Object(b), _) => {
            let mut mixed = Map::new();
            for (key, old) in a {
                match (choices.next().unwrap_or(0) % 8, b.get(key)) {
                    (0, _) => {}
                    (1, _) => drop(mixed.insert(
                        key.clone(),
                        b.values().next().unwrap_or(&json!("new")).clone(),
                    )),
                    (2..=4, Some(new)) => {
                        drop(mixed.insert(key.clone(), between(old, new, choices)));
                    }
                    _ => drop(mixed.insert(key.clone(), old.clone())),
                }
            }
            for (key, new) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
                if choices.next().unwrap_or(0).is_multiple_of(2) {
                    mixed.insert(key.clone(), new.clone());
                }
            }
            Value::Object(mixed)
        }
        (Value::Array(a), Value::Array(b), choice) => {
            let mut mixed: Vec<_> = a
                .iter()
                .filter(|_| !choices.next().unwrap_or(1).is_multiple_of(4))
                .cloned()
                .collect();
            if let Some(new) = b.first() {
                mixed.insert(usize::from(choice) % (mixed.len() + 1), new.clone());
            }
            Value::Array(mixed)
        }
        (_, new, _) => new.clone(),
    }
}

fn read(text: &str) -> Value {
    let file = File::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(file.documents().len(), 1, "{text}");
    file.documents()[0].value().clone()
}

/// Draws the same cases in every ordinary run, so that a failure belongs to the change at hand.
/// `PROPTEST_RNG_SEED` and `PROPTEST_CASES` draw others and more; the soak run sets both.
fn runner(cases: u32) -> TestRunner {
    let asked = Config::default();
    let set = |name: &str| std::env::var_os(name).is_some();
    TestRunner::new(Config {
        cases: if set("PROPTEST_CASES") {
            asked.cases
        } else {
            cases
        },
        rng_seed: if set("PROPTEST_RNG_SEED") {
            asked.rng_seed
        } else {
            RngSeed::Fixed(1)
        },
        failure_persistence: None,
        ..asked
    })
}

#[test]
#[ignore = "soak: every property over many cases of a seed never seen before"]
fn every_property_holds_for_a_fresh_seed() {
    let fresh = Config {
        rng_seed: RngSeed::Random,
        ..Config::default()
    };
    let seed = any::<u64>()
        .new_tree(&mut TestRunner::new(fresh))
        .unwrap()
        .current();
    println!("PROPTEST_RNG_SEED={seed} PROPTEST_CASES={SOAK_CASES}");
    // Without `--include-ignored` the child leaves this very test out. Its lines are not those of this
    // run: whoever counts tests must see them only in a failure.
    let child = Command::new(std::env::current_exe().unwrap())
        .env("PROPTEST_RNG_SEED", seed.to_string())
        .env("PROPTEST_CASES", SOAK_CASES.to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "seed {seed}:\n{said}");
    assert!(said.contains(" 0 failed; 1 ignored;"), "{said}");
}

#[test]
fn emitted_values_read_back_here_and_elsewhere() {
    let (literals, quoted) = (Cell::new(0), Cell::new(0));
    runner(1500)
        .run(&value(), |value| {
            let text = emit(&value);
            literals.set(literals.get() + usize::from(text.contains(": |")));
            quoted.set(quoted.get() + usize::from(text.contains('"')));
            prop_assert_eq!(&read(&text), &value, "{}", text);
            prop_assert_eq!(&elsewhere(&text), &Ok(comparable(&value)), "{}", text);
            Ok(())
        })
        .unwrap();
    println!("literals {}, quoted {}", literals.get(), quoted.get());
    assert!(literals.get() > 20 && quoted.get() > 100);
}

/// Another reader's opinion.
fn elsewhere(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    serde_saphyr::from_str_with_options::<Value>(text, options)
        .map_err(|e| e.to_string())
        .map(|v| comparable(&v))
}

/// Numbers as floats, since readers differ in where an integer ends and a float begins.
fn comparable(value: &Value) -> Value {
    match value {
        Value::Number(n) => json!(n.as_f64()),
        Value::Array(items) => items.iter().map(comparable).collect(),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(k, v)| (k.clone(), comparable(v)))
                .collect(),
        ),
        other => other.clone(),
    }
}

#[test]
fn a_diff_leads_from_one_value_to_the_other() {
    let (equal, some) = (Cell::new(0), Cell::new(0));
    runner(2000)
        .run(&(value(), value()), |(a, b)| {
            let edits = diff(&a, &b);
            (if edits.is_empty() { &equal } else { &some }).update(|n| n + 1);
            let mut patched = a.clone();
            for edit in &edits {
                edit.apply_to(&mut patched)
                    .expect("diff makes edits that apply");
            }
            prop_assert_eq!(patched, b);
            Ok(())
        })
        .unwrap();
    assert!(some.get() > 500, "{} {}", equal.get(), some.get());
}

/// Writes a document in many styles, with a comment behind every line that can carry one.
struct Scribe {
    indent: usize,
    lists: usize,
    eol: &'static str,
    comments: Vec<(Vec<String>, String)>,
    out: String,
    flow_every: usize,
    /// Which values get an anchor; none for 0.
    anchor_every: usize,
    /// What may be an alias from here on, by the number in its name.
    anchored: Vec<(usize, Value)>,
    aliases: usize,
    count: usize,
}

impl Scribe {
    fn comment(&mut self, path: &[String]) {
        let text = format!("# c{}.", self.comments.len());
        write!(self.out, " {text}").unwrap();
        self.comments.push((path.to_vec(), text));
    }

    fn map(
        &mut self,
        map: &Map<String, Value>,
        column: usize,
        path: &mut Vec<String>,
        mut inline: bool,
    ) {
        for (key, value) in map {
            if !inline {
                // A comment line of the map's own column.
                if self.count.is_multiple_of(3) {
                    write!(self.out, "{}# above{}", " ".repeat(column), self.eol).unwrap();
                }
                self.out.push_str(&" ".repeat(column));
            }
            inline = false;
            path.push(key.clone());
            let quoted = emit(&Value::String(key.replace('\n', " ")));
            let quoted = if key.contains('\n') {
                serde_json::to_string(key).unwrap()
            } else {
                quoted.trim_end_matches('\n').to_owned()
            };
            write!(self.out, "{quoted}:").unwrap();
            self.value(value, column, false, path);
            path.pop();
        }
    }

    fn value(&mut self, value: &Value, column: usize, in_list: bool, path: &mut Vec<String>) {
        self.count += 1;
        let known = self.anchored.iter().rfind(|(_, known)| known == value);
        if let (Some((name, _)), false) = (known, self.count.is_multiple_of(3)) {
            write!(self.out, " *n{name}").unwrap();
            self.aliases += 1;
            self.comment(path);
            self.out.push_str(self.eol);
            return;
        }
        let name = self.count;
        let has_anchor = name.is_multiple_of(self.anchor_every);
        if has_anchor {
            write!(self.out, " &n{name}").unwrap();
        }
        self.content(value, column, in_list, in_list && !has_anchor, path);
        if has_anchor {
            self.anchored.push((name, value.clone()));
        }
    }

    /// `compact` where a collection may begin on the line of its dash.
    fn content(
        &mut self,
        value: &Value,
        column: usize,
        in_list: bool,
        compact: bool,
        path: &mut Vec<String>,
    ) {
        let in_block = !self.count.is_multiple_of(self.flow_every);
        match value {
            Value::Object(map) if !map.is_empty() && in_block => {
                self.out.push_str(if compact { " " } else { self.eol });
                let step = if in_list { 2 } else { self.indent };
                self.map(map, column + step, path, compact);
            }
            Value::Array(items) if !items.is_empty() && in_block => {
                self.out.push_str(if compact { " " } else { self.eol });
                let column = column + if in_list { 2 } else { self.lists };
                for (i, item) in items.iter().enumerate() {
                    if i > 0 || !compact {
                        self.out.push_str(&" ".repeat(column));
                    }
                    self.out.push('-');
                    // Lists are matched by identity, so a place is no path: no comment is expected.
                    path.push(String::from("\u{0}"));
                    self.value(item, column, true, path);
                    path.pop();
                }
            }
            other => {
                let json = other.to_string();
                write!(self.out, " {json}").unwrap();
                self.comment(path);
                self.out.push_str(self.eol);
            }
        }
    }
}

fn lookup<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter()
        .try_fold(value, |at, key| at.as_object()?.get(key))
}

#[test]
fn rewriting_reads_back_and_keeps_the_comments_of_what_stays() {
    let (kept, gone, styles) = (Cell::new(0usize), Cell::new(0usize), Cell::new(0usize));
    let aliases = Cell::new(0usize);
    let style = (
        prop::sample::select(vec![2usize, 4]),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        2..9usize,
        prop::sample::select(vec![0usize, 0, 1, 2, 5]),
    );
    runner(3000)
        .run(
            &(
                document(),
                document(),
                prop::collection::vec(any::<u8>(), 40),
                style,
            ),
            |(mut a, b, choices, (indent, lists, crlf, cut, flow_every, anchor_every))| {
                if anchor_every > 0
                    && let Some(first) = a.as_object().and_then(|map| map.values().next()).cloned()
                {
                    // Something for aliases to stand for.
                    a["t"] = json!([first.clone(), {"k": first.clone()}, 1]);
                    a["u"] = first;
                }
                let b = if choices[0].is_multiple_of(8) {
                    b
                } else {
                    between(&a, &b, &mut choices.iter().copied().cycle())
                };
                let mut scribe = Scribe {
                    indent,
                    lists: if lists { indent } else { 0 },
                    eol: if crlf { "\r\n" } else { "\n" },
                    comments: Vec::new(),
                    out: String::new(),
                    flow_every,
                    anchor_every,
                    anchored: Vec::new(),
                    aliases: 0,
                    count: 0,
                };
                let map = a.as_object().unwrap();
                scribe.map(map, 0, &mut Vec::new(), false);
                let mut text = scribe.out;
                if cut {
                    text.truncate(text.trim_end_matches(['\r', '\n']).len());
                }
                let file = File::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"));
                prop_assert_eq!(file.documents()[0].value(), &a, "{}", text);
                let after = match file.rewrite(&[Some(&b)], &[]) {
                    Ok(after) => after,
                    Err(error) => return Err(TestCaseError::fail(format!("{error}\n{text}\n{b}"))),
                };
                prop_assert_eq!(
                    &read(&after),
                    &b,
                    "{}
=>
{}",
                    text,
                    after
                );
                if crlf {
                    prop_assert!(!after.replace("\r\n", "").contains('\n'), "{after:?}");
                }
                for (path, comment) in &scribe.comments {
                    let (old, new) = (lookup(&a, path), lookup(&b, path));
                    if old.is_some() && old == new && after_parent_kept(&a, &b, path) {
                        prop_assert!(
                            after.contains(comment.as_str()),
                            "{comment} of {path:?}\n{text}\n=>\n{after}"
                        );
                        kept.update(|n| n + 1);
                    } else if !after.contains(comment.as_str()) {
                        gone.update(|n| n + 1);
                    }
                }
                // A second rewrite to the same value changes nothing.
                let again = File::parse(after.as_bytes()).unwrap();
                prop_assert_eq!(again.rewrite(&[Some(&b)], &[]).unwrap(), after);
                styles.update(|n| n + 1);
                aliases.update(|n| n + scribe.aliases);
                Ok(())
            },
        )
        .unwrap();
    println!(
        "comments kept {}, gone {}, texts {}, aliases {}",
        kept.get(),
        gone.get(),
        styles.get(),
        aliases.get()
    );
    assert!(kept.get() > 500 && gone.get() > 500 && aliases.get() > 500);
}

/// Whether every map on the way exists on both sides: then only the leaf's own line speaks for it.
fn after_parent_kept(a: &Value, b: &Value, path: &[String]) -> bool {
    (0..path.len()).all(|n| {
        lookup(a, &path[..n]).is_some_and(Value::is_object)
            && lookup(b, &path[..n]).is_some_and(Value::is_object)
    })
}

#[test]
fn anchors_and_aliases_never_change_what_was_not_asked() {
    const TEXT: &str = "\
a: &a {p: 1, q: [x, y]}
b: &b
  <<: *a
  q: &q
  - name: one # first
  - *a
c: *q
d:
- &d text
- *d
- k: *b
e:
  <<: [*a, *b]
  z: *d
";
    let file = File::parse(TEXT.as_bytes()).unwrap();
    let a = file.documents()[0].value();
    let (kept, materialised) = (Cell::new(0), Cell::new(0));
    runner(1500)
        .run(
            &(document(), prop::collection::vec(any::<u8>(), 30)),
            |(b, choices)| {
                let b = between(a, &b, &mut choices.iter().copied().cycle());
                let after = file
                    .rewrite(&[Some(&b)], &[])
                    .map_err(|error| TestCaseError::fail(format!("{error}: {b}")))?;
                prop_assert_eq!(&read(&after), &b, "{}", after);
                (if after.contains('*') {
                    &kept
                } else {
                    &materialised
                })
                .update(|n| n + 1);
                Ok(())
            },
        )
        .unwrap();
    println!(
        "aliases kept {}, all written out {}",
        kept.get(),
        materialised.get()
    );
    assert!(kept.get() > 100 && materialised.get() > 20);
}

#[test]
fn edits_between_similar_values_are_small() {
    // One changed field of many leaves every other line as it was.
    runner(300)
        .run(&(document(), "[a-e]", scalar()), |(a, key, new)| {
            let text = emit(&a);
            let file = File::parse(text.as_bytes()).unwrap();
            let mut b = a.clone();
            b["zz"] = json!({ key.clone(): new });
            let after = file.rewrite(&[Some(&b)], &[]).unwrap();
            prop_assert!(after.starts_with(&text), "{text}\n=>\n{after}");
            Ok(())
        })
        .unwrap();
}

#[test]
fn arbitrary_bytes_never_panic() {
    let (good, bad) = (Cell::new(0), Cell::new(0));
    let piece = prop::sample::select(vec![
        "a",
        "b: ",
        ": ",
        "- ",
        "\n",
        "\n  ",
        "\n- ",
        "  ",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "'",
        "\"",
        "|",
        ">",
        "\n---\n",
        "...",
        "# c",
        "&x ",
        "*x",
        "!!str ",
        "<<: *x",
        "? ",
        "\t",
        "\r\n",
        "\\",
        "é",
        "%",
        "kind: ResourceList\n",
        "items:\n- ",
        "results: [a]\n",
    ]);
    runner(4000)
        .run(&prop::collection::vec(piece, 0..24), |pieces| {
            let text = pieces.concat();
            mooring_krm::fuzz_yaml(text.as_bytes());
            mooring_krm::fuzz_resource_list(text.as_bytes());
            (if File::parse(text.as_bytes()).is_ok() {
                &good
            } else {
                &bad
            })
            .update(|n| n + 1);
            Ok(())
        })
        .unwrap();
    println!("read {}, refused {}", good.get(), bad.get());
    assert!(good.get() > 100 && bad.get() > 100);
}
