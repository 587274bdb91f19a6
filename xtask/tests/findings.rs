//! Every finding code has its page, and the page says the three things a reader came for.
#![expect(
    clippy::panic,
    reason = "the functions between the tests fail like tests"
)]

use mooring_api::Code;

const PARTS: &[&str] = &["## What happened", "## Why it matters", "## What to do"];

fn page(code: Code) -> String {
    let path = mooring_testkit::workspace_root().join(format!("docs/findings/{code}.md"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn every_code_has_a_page_with_its_three_parts_in_order() {
    for code in Code::ALL {
        let text = page(*code);
        assert!(
            text.starts_with(&format!("# {code}\n")),
            "{code}: the page has another title"
        );
        let places: Vec<Option<usize>> = PARTS.iter().map(|part| text.find(part)).collect();
        assert!(
            places.iter().all(Option::is_some),
            "{code}: a part is missing: {places:?}"
        );
        assert!(places.is_sorted(), "{code}: the parts are not in order");
    }
}

#[test]
fn a_page_is_read_without_scrolling() {
    for code in Code::ALL {
        let lines = page(*code).lines().count();
        assert!(
            (8..=40).contains(&lines),
            "{code}: the page has {lines} lines"
        );
    }
}
