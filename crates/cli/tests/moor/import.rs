//! `moor import nephio`: one folder per kind of input and per refusal, through the real program.
//!
//! ```text
//!  tests/import/<case>/
//!    before/    imported first, where it is there
//!    input/     what is imported
//!    terminal   what is said, and how it ends
//!    book       what the book holds then: network, thing, subnet, gateway, holder
//! ```
//!
//! Every case is looked at with `--check` first, and imported twice: `--check` writes nothing, the second time changes
//! nothing, and a refusal leaves no book behind. `MOOR_UPDATE=1` rewrites expectations.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use mooring_testkit::{Case, each_case};
use serde_json::Value;

use crate::{fresh, moor};

fn import(dir: &Path, args: &[&str]) -> (String, i32) {
    let all = ["import", "nephio", "--book", "b.redb"];
    let output = moor(dir).args(all).args(args).output().unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    text += &String::from_utf8(output.stderr).unwrap();
    (text, output.status.code().unwrap())
}

/// What the book holds, without its times.
fn book(dir: &Path) -> String {
    if !dir.join("b.redb").exists() {
        return String::new();
    }
    let args = ["book", "export", "-o", "json", "--book", "b.redb"];
    let (text, code) = crate::stdout(moor(dir).args(args));
    assert_eq!(code, 0, "{text}");
    let book: Value = serde_json::from_str(&text).unwrap();
    let mut out = String::new();
    let plain = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    };
    for part in ["leases", "reservations", "packages"] {
        for entry in book[part].as_array().into_iter().flatten() {
            let fields = entry.as_object().unwrap().iter();
            let fields =
                fields.filter(|(key, _)| !["since", "at", "state"].contains(&key.as_str()));
            let words: Vec<String> = fields
                .map(|(key, value)| format!("{key}={}", plain(value)))
                .collect();
            let line = words.join(" ").replace(&dir.display().to_string(), "DIR");
            writeln!(out, "{part}: {line}").unwrap();
        }
    }
    out
}

#[test]
fn every_kind_of_input_has_its_case() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import");
    each_case(cases, run);
}

fn run(case: &Case) {
    let work = fresh();
    let dir = work.path();
    for name in ["before", "input"] {
        let from = case.dir.join(name);
        if from.is_dir() {
            let copy = mooring_testkit::copy_tree(&from);
            fs::rename(copy.path(), dir.join(name)).unwrap();
        }
    }
    if dir.join("before").is_dir() {
        let (text, code) = import(dir, &["before"]);
        assert_eq!(code, 0, "{text}");
    }
    let before = book(dir);
    let (_, looked) = import(dir, &["input", "--check"]);
    assert_eq!(book(dir), before, "--check wrote");
    let (text, code) = import(dir, &["input"]);
    case.check_text("terminal", &format!("{text}exit code {code}\n"));
    let after = book(dir);
    case.check_text("book", &after);
    if code == 0 {
        assert_eq!(looked, if before == after { 0 } else { 3 }, "--check");
    } else {
        assert_eq!(looked, code, "--check");
        assert_eq!(before, after, "a refusal wrote");
    }
    // The file itself, so that a book that is only opened shows too.
    let bytes = fs::read(dir.join("b.redb")).ok();
    let (text, again) = import(dir, &["input"]);
    assert_eq!(again, code, "{text}");
    assert_eq!(
        fs::read(dir.join("b.redb")).ok(),
        bytes,
        "the second time wrote"
    );
    if code == 0 {
        assert!(text.contains(": unchanged"), "{text}");
    }
}

const NETWORK: &str = "\
apiVersion: infra.nephio.org/v1alpha1
kind: Network
metadata:
  name: vpc-ran
spec:
  topology: nephio
  routingTables:
  - name: vpc-ran
    prefixes:
    - prefix: 172.3.0.0/16
      labels:
        nephio.org/network-name: n3
";

/// A package as the published functions know it: one network function with one interface, for cluster edge01.
fn nephio_package(dir: &Path, name: &str) {
    let write = |file: &str, text: String| {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join(file), text).unwrap();
    };
    write(
        "Kptfile",
        format!("apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {name}\n"),
    );
    let owner = format!("workload.nephio.org/v1alpha1.NFDeployment.{name}-edge01");
    let local = "config.kubernetes.io/local-config: \"true\"";
    write(
        "interface-n3.yaml",
        format!(
            "apiVersion: req.nephio.org/v1alpha1\nkind: Interface\nmetadata:\n  name: n3\n  annotations:\n    {local}\n    \
             nephio.org/network-name: n3\n    specializer.nephio.org/namespace: {name}\n    \
             specializer.nephio.org/owner: {owner}\nspec:\n  networkInstance:\n    name: vpc-ran\n  cniType: macvlan\n  \
             attachmentType: vlan\n"
        ),
    );
    write(
        "deployment.yaml",
        format!(
            "apiVersion: workload.nephio.org/v1alpha1\nkind: NFDeployment\nmetadata:\n  name: {name}-edge01\n  \
             namespace: {name}\nspec:\n  provider: {name}.example.com\n"
        ),
    );
    write(
        "workload-cluster.yaml",
        format!(
            "apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: workload-cluster\n  \
             annotations:\n    {local}\nspec:\n  clusterName: edge01\n  cnis:\n  - macvlan\n  masterInterface: eth1\n"
        ),
    );
}

/// Renders with a book, and gives the address of the only claim.
fn render(dir: &Path, package: &str, book: &str) -> String {
    let args = [
        "render",
        package,
        "--mgmt",
        "mgmt",
        "--cluster",
        "edge01",
        "--book",
        book,
    ];
    moor(dir).args(args).assert().code(0);
    let files = fs::read_dir(dir.join(package)).unwrap();
    let texts = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    let claim = texts
        .into_iter()
        .find(|text| text.contains("kind: IPClaim"));
    let claim: Value = serde_saphyr::from_str(&claim.unwrap()).unwrap();
    claim["status"]["prefix"].as_str().unwrap().to_owned()
}

#[test]
fn a_render_finds_the_addresses_that_were_imported() {
    let work = fresh();
    let dir = work.path();
    fs::create_dir(dir.join("mgmt")).unwrap();
    fs::write(dir.join("mgmt/network.yaml"), NETWORK).unwrap();
    // Two before it, so that the UPF does not have what it would get alone.
    for name in ["amf", "smf"] {
        nephio_package(&dir.join(name), name);
        render(dir, name, "nephio.redb");
    }
    nephio_package(&dir.join("upf"), "upf");
    let address = render(dir, "upf", "nephio.redb");
    nephio_package(&dir.join("alone"), "upf");
    assert_ne!(render(dir, "alone", "alone.redb"), address);
    fs::remove_dir_all(dir.join("alone")).unwrap();

    // As Nephio leaves a package: without an id of ours.
    let kptfile = dir.join("upf/Kptfile");
    let text = fs::read_to_string(&kptfile).unwrap();
    let ours = |line: &&str| !line.contains("mooring.dev/package-id");
    let without: Vec<&str> = text.lines().filter(ours).collect();
    assert_ne!(without.len(), text.lines().count());
    fs::write(&kptfile, without.join("\n") + "\n").unwrap();
    let (text, code) = import(dir, &["upf", "--mgmt", "mgmt"]);
    assert_eq!(code, 0, "{text}");

    // The blueprint anew, with no status that could tell: only the book knows.
    let _ = fs::remove_dir_all(dir.join("upf"));
    nephio_package(&dir.join("upf"), "upf");
    assert_eq!(render(dir, "upf", "b.redb"), address);
    // And it stays where it is.
    assert_eq!(render(dir, "upf", "b.redb"), address);
}
