//! Every example is rendered and verified by the commands of its own README, and nothing is wrong with it.
//!
//! A README's `console` blocks are run in a copy of its directory, as in [`crate::guides`]; what it shows is what the program
//! prints. `MOOR_UPDATE=1` rewrites them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{examples, guides, moor, stdout};

/// The directories with a README of commands, by their path below `examples/`.
fn all() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let mut open = vec![examples()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap().map(Result::unwrap) {
            if entry.path().is_dir() {
                open.push(entry.path());
            } else if entry.file_name() == "README.md"
                && fs::read_to_string(entry.path())
                    .unwrap()
                    .contains("```console\n")
            {
                let name = dir.strip_prefix(examples()).unwrap();
                found.push((name.display().to_string(), dir.clone()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_example_is_rendered_and_verified_as_its_readme_says() {
    let mut names = Vec::new();
    for (name, dir) in all() {
        let copy = mooring_testkit::copy_tree(&dir);
        let path = dir.join("README.md");
        let page = fs::read_to_string(&path).unwrap();
        let real = guides::replay(copy.path(), &page, &mut 0);
        let diff = mooring_testkit::unified(&path.display().to_string(), &page, &real);
        if std::env::var_os("MOOR_UPDATE").is_some() {
            fs::write(&path, &real).unwrap();
        } else {
            assert!(
                diff.is_empty(),
                "run MOOR_UPDATE=1 cargo test -p mooring-cli\n{diff}"
            );
        }
        is_clean(&name, copy.path());
        names.push(name);
    }
    let expected = [
        "amd-host-device",
        "dual-stack",
        "ipam/cluster-wide",
        "ipam/declarative-static",
        "ipam/external",
        "ipam/partitioned-host-local",
        "ipam/subnet-per-cluster",
        "n3-plan",
        "oai-split",
        "sd-core",
        "sriov",
        "variants",
    ];
    assert_eq!(names, expected);
}

/// What the README left in `out` has no finding at all, not even a remark.
fn is_clean(name: &str, dir: &Path) {
    let args = ["verify", "out", "--mgmt", "mgmt", "-o", "json"];
    let (text, code) = stdout(moor(dir).args(args));
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["findings"], serde_json::json!([]), "{name}");
    assert_eq!(code, 0, "{name}");
}

/// The seeds' gNB, AMF and UPF, and the package that begins with an IPClaim: `moor demo` and the README render them.
#[test]
fn the_fleet_and_the_claim_that_stands_alone_are_clean_but_for_what_the_seed_says() {
    let fleet = crate::example("fleet");
    for (package, cluster) in [
        ("gnb", "my-ran"),
        ("amf", "my-core"),
        ("upf", "my-core"),
        ("edge-gnb", "edge-cluster-1"),
    ] {
        let out = format!("out/{cluster}/{package}");
        let args = [
            "render",
            package,
            "--mgmt",
            "mgmt",
            "--cluster",
            cluster,
            "--out",
            &out,
        ];
        let (text, code) = stdout(moor(fleet.path()).args(args));
        assert_eq!(code, 0, "{text}");
    }
    let alone = crate::example("ipclaim-first");
    let args = [
        "render",
        "amf",
        "--mgmt",
        "mgmt",
        "--out",
        "out/my-core/amf",
    ];
    let (text, code) = stdout(moor(alone.path()).args(args));
    assert_eq!(code, 0, "{text}");
    for dir in [fleet.path(), alone.path()] {
        let args = ["verify", "out", "--mgmt", "mgmt", "-o", "json"];
        let (text, code) = stdout(moor(dir).args(args));
        assert_eq!(code, 0, "{text}");
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        for finding in report["findings"].as_array().unwrap() {
            // The seeds' clusters do not say all of their own networks.
            assert_eq!(finding["code"], "ClusterNetworksUnknown", "{finding}");
        }
    }
}

#[test]
fn the_five_solutions_are_one_intent() {
    let root = examples().join("ipam");
    let choice = "    mooring.dev/ipam-flavour: ";
    let read = |solution: &str| {
        let mut texts = Vec::new();
        let mut chosen = None;
        for package in ["amf", "gnb"] {
            for file in ["Kptfile", "deployment.yaml", "interface.yaml"] {
                let text =
                    fs::read_to_string(root.join(solution).join(package).join(file)).unwrap();
                chosen = text
                    .lines()
                    .find_map(|l| l.strip_prefix(choice))
                    .map(str::to_owned)
                    .or(chosen);
                let lines = text.lines().filter(|l| !l.starts_with(choice));
                texts.push(lines.map(str::to_owned).collect::<Vec<_>>());
            }
        }
        (texts, chosen)
    };
    let (intent, none) = read("subnet-per-cluster");
    assert_eq!(none, None, "its choice is in the pools");
    for (solution, flavour) in [
        ("partitioned-host-local", "host-local"),
        ("cluster-wide", "whereabouts"),
        ("external", "external"),
        ("declarative-static", "static"),
    ] {
        let (texts, chosen) = read(solution);
        assert_eq!(texts, intent, "{solution}");
        assert_eq!(chosen.as_deref(), Some(flavour));
    }
}
