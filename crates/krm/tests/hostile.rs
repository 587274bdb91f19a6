//! Input that wants to hurt: bombs, depth, size, broken text with the right line.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::format_push_string,
    clippy::format_collect,
    reason = "a test reports by panicking and printing"
)]

use mooring_krm::{File, MAX_BYTES, ParseError, ParseErrorKind};

fn refused(text: &str) -> ParseError {
    File::parse(text.as_bytes()).expect_err("this must be refused")
}

#[test]
fn an_alias_bomb_is_refused_before_anything_is_built() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..30 {
        let refs = vec![format!("*a{}", i - 1); 10].join(", ");
        text.push_str(&format!("a{i}: &a{i} [{refs}]\n"));
    }
    assert_eq!(refused(&text).kind, ParseErrorKind::AliasBomb);
}

#[test]
fn a_bomb_spread_over_documents_or_long_text_is_refused_too() {
    let mut one = String::from("a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [");
    one.push_str(&vec!["*a"; 30].join(", "));
    one.push_str("]\nc: [");
    one.push_str(&vec!["*b"; 30].join(", "));
    one.push_str("]\n---\n");
    assert!(File::parse(one.as_bytes()).is_ok());
    assert_eq!(refused(&one.repeat(20)).kind, ParseErrorKind::AliasBomb);
    let long = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(1 << 20),
        vec!["*a"; 1000].join(", ")
    );
    assert_eq!(refused(&long).kind, ParseErrorKind::AliasBomb);
}

#[test]
fn a_large_file_with_one_alias_is_no_bomb() {
    let text = format!(
        "a: &a {}\nb: *a\nc: {}\n",
        "x".repeat(1000),
        "y".repeat(7 << 20)
    );
    assert!(File::parse(text.as_bytes()).is_ok());
}

#[test]
fn an_alias_inside_its_own_anchor_is_refused() {
    assert_eq!(refused("a: &a [1, *a]\n").line, 1);
    assert_eq!(refused("x: 1\na: &a\n  b: *a\n").line, 3);
}

#[test]
fn a_hundred_megabytes_are_refused_unread() {
    // Every byte is broken YAML: had anything been read, the error would be of another kind.
    let error = File::parse(&vec![b'\t'; 100 << 20]).expect_err("too large");
    assert_eq!(error.kind, ParseErrorKind::TooLarge);
    assert!(File::parse(&vec![b' '; MAX_BYTES]).is_ok());
}

#[test]
fn deep_nesting_is_refused_without_overflowing_the_stack() {
    for open in ["[", "{a: ", "- ", "? ", "[[{b: "] {
        let error = refused(&open.repeat(100_000));
        assert_eq!(error.kind, ParseErrorKind::Syntax, "{open}");
        assert!(error.message.contains("nested deeper"), "{open}: {error}");
    }
    let mut stairs = String::new();
    for i in 0..1000 {
        stairs.push_str(&" ".repeat(i));
        stairs.push_str("k:\n");
    }
    assert!(refused(&stairs).message.contains("nested deeper"));
    assert!(File::parse(format!("{}{}", "[".repeat(100), "]".repeat(100)).as_bytes()).is_ok());
}

#[test]
fn aliases_cannot_nest_deeper_than_brackets() {
    let mut text = String::from("a0: &a0 [[[[[[[[x]]]]]]]]\n");
    for i in 1..60 {
        text.push_str(&format!("a{i}: &a{i} [[[[*a{}]]]]\n", i - 1));
    }
    assert_eq!(refused(&text).kind, ParseErrorKind::AliasBomb);
}

#[test]
fn broken_text_is_named_by_its_line_in_the_second_document() {
    for (second, line, word) in [
        ("a: 1\nb: [1, 2\n", 5, "not closed"),
        ("a: 1\na: 2\n", 5, "given twice"),
        ("a: 1\n\tb: 2\n", 5, "tab"),
        ("a: b: c\n", 4, "mapping"),
        ("a: 1\n b: 2\n", 5, "mapping"),
        ("a:\n  b: 1\n c: 2\n", 6, "indented"),
        ("a: 'x\nb: 1\n", 4, "not closed"),
        ("a: \"x\\q\"\n", 4, "escape"),
        ("a: *nobody\n", 4, "no anchor"),
        ("a: 1\n- b\n", 5, "list item"),
        ("a: 1\nplain\n", 5, "key and a colon"),
        ("- a\nb: 1\n", 5, "not indented like"),
        ("a: @x\n", 4, "cannot begin"),
        ("a: - b\n", 4, "line of its own"),
        ("a: {b: 1} c\n", 4, "unexpected text"),
        ("a: {b: 1\n---\nc: 1\n", 4, "not closed"),
        ("a: |x\n  y\n", 4, "unexpected text"),
        ("? [a]\n: b\n", 4, "a key must be text"),
        ("<<: 1\n", 4, "takes a mapping"),
    ] {
        let error = refused(&format!("first: 1\nok: 2\n---\n{second}"));
        assert_eq!(error.line, line, "{second:?}: {error}");
        assert!(error.message.contains(word), "{second:?}: {error}");
        assert_eq!(error.kind, ParseErrorKind::Syntax);
        let crlf = format!("first: 1\nok: 2\n---\n{second}").replace('\n', "\r\n");
        assert_eq!(refused(&crlf).line, line, "CRLF {second:?}");
    }
}

#[test]
fn columns_count_characters() {
    let error = refused("é: ü: x\n");
    assert_eq!((error.line, error.column), (1, 5));
}

#[test]
fn bytes_that_are_no_text_are_named_by_their_line() {
    let error = File::parse(b"a: 1\nb: \xff\n").expect_err("not UTF-8");
    assert_eq!(
        (error.kind, error.line, error.column),
        (ParseErrorKind::NotUtf8, 2, 4)
    );
}
