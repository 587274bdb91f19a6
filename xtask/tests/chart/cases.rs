//! Values, and what comes of them.

use std::fmt::Write as _;
use std::path::Path;

use mooring_testkit::{each_case, unified};

use crate::judge::complaints;
use crate::rendered::{helm, objects, root, title};

fn here() -> std::path::PathBuf {
    root().join("xtask/tests/chart")
}

#[test]
fn helm_finds_nothing_to_complain_about() {
    let Some(helm) = helm() else { return };
    helm.lint().unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn every_case_renders_what_it_says_and_nothing_unsafe() {
    let Some(helm) = helm() else { return };
    each_case(here().join("cases"), |case| {
        let values = case.dir.join("values.yaml");
        let text = helm.template(&values).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(helm.template(&values).as_ref(), Ok(&text), "twice the same");
        let objects = objects(&text);
        let mut said = String::new();
        for object in &objects {
            writeln!(said, "{}", title(object)).unwrap();
        }
        case.check_text("objects.txt", &said);
        let mut found = complaints(&objects).join("\n");
        if !found.is_empty() {
            found.push('\n');
        }
        // Absent but for the case that asks for it.
        case.check_text("complaints.txt", &found);
    });
}

#[test]
fn the_schema_refuses_what_no_template_could_use() {
    let Some(helm) = helm() else { return };
    each_case(here().join("refused"), |case| {
        let outcome = helm.template(&case.dir.join("values.yaml"));
        let said = outcome.expect_err("it was rendered");
        let at = said
            .lines()
            .filter(|line| line.trim_start().starts_with("- at "));
        let said = at.fold(String::new(), |said, line| said + line.trim() + "\n");
        case.check_text("refused.txt", &said);
        assert!(!said.is_empty(), "refused, but not by the schema");
    });
}

#[test]
fn the_kustomization_is_the_chart() {
    let Some(helm) = helm() else { return };
    for cluster in ["management", "workload"] {
        let values = root().join(format!("deploy/chart/{cluster}.values.yaml"));
        let rendered = helm.template(&values).unwrap_or_else(|e| panic!("{e}"));
        assert!(complaints(&objects(&rendered)).is_empty());
        let head = format!(
            "# The chart with deploy/chart/{cluster}.values.yaml. MOOR_UPDATE=1 cargo test -p xtask --test chart writes it.\n"
        );
        let path = root().join(format!("deploy/{cluster}/mooring.yaml"));
        same(&path, &(head + &rendered));
    }
}

/// As folder cases do: compared whole, written anew when asked.
fn same(path: &Path, wanted: &str) {
    let found = std::fs::read_to_string(path).unwrap_or_default();
    let diff = unified(&path.display().to_string(), &found, wanted);
    if diff.is_empty() {
        return;
    }
    let update = std::env::var_os("MOOR_UPDATE").is_some_and(|v| v == "1");
    assert!(update, "MOOR_UPDATE=1 accepts it\n{diff}");
    std::fs::write(path, wanted).unwrap();
}
