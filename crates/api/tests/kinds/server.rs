//! The same rows as in [`crate::rules`], and every example, before a real API server: it must say what our own reading of
//! the schemas says.
//!
//! One kubectl call carries many objects, each under a name of its own; kubectl goes on after a refusal and says of each
//! object what became of it.

use mooring_testkit::{ControlPlane, Said, workspace_root};
use serde_json::{Value, json};

use crate::documents;
use crate::rules::{Row, kind_of, object, rows as all_rows};

fn server() -> Option<&'static ControlPlane> {
    let server = ControlPlane::shared()?;
    for dir in ["deploy/crds", "deploy/chart/mooring/files/alias-crds"] {
        server.install_crds(&workspace_root().join(dir));
    }
    Some(server)
}

/// One row's part of a call: its name, and the object under it.
fn named(rows: &[(usize, &Row)], part: impl Fn(&Row) -> &'static str) -> Vec<(String, Value)> {
    let one = |(at, row): &(usize, &Row)| {
        let mut object = object(kind_of(row.kind), part(row));
        let name = format!("row-{at}");
        object["metadata"]["name"] = json!(name);
        (name, object)
    };
    rows.iter().map(one).collect()
}

fn say(server: &ControlPlane, args: &[&str], objects: &[(String, Value)]) -> Said {
    let items: Vec<&Value> = objects.iter().map(|(_, object)| object).collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
    server.kubectl_stdin(args, &list.to_string())
}

/// What kubectl said of the object with this name.
fn about<'a>(said: &'a Said, name: &str) -> Vec<&'a str> {
    let quoted = format!("\"{name}\"");
    let listed = format!("/{name} ");
    let lines = said.stderr.lines().chain(said.stdout.lines());
    lines
        .filter(|l| l.contains(&quoted) || l.contains(&listed))
        .collect()
}

/// The rows of one way to be written: admitted ones pass, refused ones are refused with their message.
fn agrees(server: &ControlPlane, args: &[&str], rows: &[(usize, &Row)]) {
    let admitted = named(rows, |row| row.admits);
    let said = say(server, args, &admitted);
    said.ok();

    let refused = named(rows, |row| row.refuses);
    let said = say(server, args, &refused);
    for ((name, object), (_, row)) in refused.iter().zip(rows) {
        // The API server writes the whole rule's message, and breaks several findings into lines of their own.
        let told = about(&said, name).join("\n") + &said.stderr;
        assert!(
            !about(&said, name).is_empty(),
            "nothing is said of {object}"
        );
        assert!(
            told.contains(row.message),
            "{object}\n{}: {told}",
            row.message
        );
        let passed = said.stdout.contains(&format!("/{name} "));
        assert!(!passed, "{object} is stored, but {}", row.message);
    }
}

fn rows(fits: impl Fn(&Row) -> bool) -> Vec<(usize, &'static Row)> {
    all_rows()
        .enumerate()
        .filter(|(_, row)| fits(row))
        .collect()
}

fn of_status(row: &Row) -> bool {
    row.admits.starts_with("status: ")
}

#[test]
fn the_api_server_admits_and_refuses_every_rule_as_its_row_says() {
    let Some(server) = server() else {
        return;
    };
    let made = rows(|r| r.old.is_none() && !of_status(r));
    agrees(server, &["create", "--dry-run=server", "-f", "-"], &made);

    let changed = rows(|r| r.old.is_some());
    let old = named(&changed, |row| row.old.expect("it was chosen for that"));
    say(server, &["create", "-f", "-"], &old).ok();
    agrees(
        server,
        &["replace", "--dry-run=server", "-f", "-"],
        &changed,
    );

    let status = rows(of_status);
    let base = named(&status, |_| "{networkInstance: {name: a}}");
    say(server, &["create", "-f", "-"], &base).ok();
    let replace = [
        "replace",
        "--subresource=status",
        "--dry-run=server",
        "-f",
        "-",
    ];
    agrees(server, &replace, &status);
    let count = all_rows().count();
    assert_eq!(made.len() + changed.len() + status.len(), count);
    println!("{count} rows on the API server");
}

#[test]
fn the_api_server_accepts_every_object_of_every_example() {
    let Some(server) = server() else {
        return;
    };
    // Without a controller-manager nobody makes the account that every Pod needs.
    let account =
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "default" } });
    say(server, &["apply", "-f", "-"], &[(String::new(), account)]).ok();
    let mut files = Vec::new();
    yaml_files(&workspace_root().join("examples"), &mut files);
    let mut count = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut objects = Vec::new();
        for mut object in documents(&text).unwrap() {
            // A Kptfile and a function's configuration are files, never objects of a cluster.
            let kind = object["kind"].as_str().unwrap_or_default().to_owned();
            let group = object["apiVersion"].as_str().unwrap_or_default().to_owned();
            if kind.is_empty() || group.starts_with("kpt.dev/") || group.starts_with("fn.kpt.dev/")
            {
                continue;
            }
            // Dry runs make no namespaces.
            if object["metadata"]["namespace"].is_string() {
                object["metadata"]["namespace"] = json!("default");
            }
            objects.push((String::new(), object));
        }
        if objects.is_empty() {
            continue;
        }
        count += objects.len();
        let said = say(
            server,
            &["apply", "--server-side", "--dry-run=server", "-f", "-"],
            &objects,
        );
        assert_eq!(said.code, Some(0), "{}: {}", file.display(), said.stderr);
    }
    assert!(count > 20, "only {count} objects");
    println!("{count} objects of examples");
}

fn yaml_files(dir: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            yaml_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "yaml") {
            found.push(path);
        }
    }
}
