//! Our functions under the real kpt: `kpt fn eval --exec` and `exec:` entries of `kpt fn render`.
//!
//! kpt is the one that `cargo xtask setup kpt` built; where another one is on the PATH, that one too. Easy to get wrong:
//! kpt formats what it writes in its own way, so packages are compared object by object and not byte by byte.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use mooring_testkit::{component, copy_tree, hash_tree, oracles};
use serde_json::{Value, json};

use crate::{example, fresh, moor};

/// The native pipeline, in the order in which `moor render` runs it.
const NATIVE: &[&str] = &[
    "workload-cluster-injector",
    "interface-fn",
    "ipam-fn",
    "vlan-fn",
    "nad-fn",
    "attach-fn",
];

/// Every kpt there is; none is a counted skip.
fn kpts(what: &str) -> Vec<PathBuf> {
    let Some(built) = component("kpt", what) else {
        return Vec::new();
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|dir| dir.join("kpt"));
    let users = found.find(|kpt| kpt.is_file());
    [built.join("bin/kpt")].into_iter().chain(users).collect()
}

/// How kpt calls us.
fn function(name: &str) -> String {
    format!("{} fn {name}", env!("CARGO_BIN_EXE_moor"))
}

fn run(kpt: &Path, dir: &Path, args: &[&str]) -> Output {
    Command::new(kpt)
        .args(args)
        .current_dir(dir)
        .env("HOME", dir)
        .env("MOOR_BOOK", dir.join("kpt.redb"))
        .env_remove("MOOR_MGMT")
        .env("KPT_DISABLE_TELEMETRY", "1")
        .output()
        .unwrap()
}

#[track_caller]
fn passes(kpt: &Path, dir: &Path, args: &[&str]) -> String {
    let output = run(kpt, dir, args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {said}", kpt.display());
    said
}

/// Everything below a directory of pools and clusters as one functionConfig.
fn site(mgmt: &Path, cluster: &str) -> String {
    let mut items = Vec::new();
    for entry in fs::read_dir(mgmt).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "yaml") {
            items.extend(documents(&path));
        }
    }
    let site = json!({
        "apiVersion": "v1",
        "kind": "List",
        "metadata": { "name": "site", "annotations": { "config.kubernetes.io/local-config": "true" } },
        "data": { "cluster": cluster },
        "items": items,
    });
    site.to_string() + "\n"
}

fn documents(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
}

/// The objects of a package, whatever the files are called.
fn objects(dir: &Path) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(objects(&path));
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_object = path.extension().is_some_and(|e| e == "yaml") || name == "Kptfile";
        if !is_object || name == "site.yaml" {
            continue;
        }
        for mut object in documents(&path) {
            if object["kind"] == "Kptfile" {
                // Functions add conditions as they come; a render sorts them by step.
                object.as_object_mut().unwrap().remove("pipeline");
                for list in ["/status/conditions", "/info/readinessGates"] {
                    if let Some(list) = object.pointer_mut(list).and_then(Value::as_array_mut) {
                        list.sort_by_key(ToString::to_string);
                    }
                }
            }
            let metadata = &object["metadata"];
            let key = format!(
                "{} {} {}",
                object["kind"], metadata["namespace"], metadata["name"]
            );
            assert!(found.insert(key.clone(), object).is_none(), "{key} twice");
        }
    }
    found
}

/// The files of a package, without the one that only kpt needs.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let name = PathBuf::from(path.file_name().unwrap());
            found.extend(files(&path).iter().map(|below| name.join(below)));
        } else if path.file_name().is_some_and(|name| name != "site.yaml") {
            found.push(path.file_name().unwrap().into());
        }
    }
    found.sort();
    found
}

/// A copy of an example whose package has an identity, since a function never mints one.
fn package(name: &str, package: &str) -> tempfile::TempDir {
    let dir = example(name);
    let kptfile = dir.path().join(package).join("Kptfile");
    let text = fs::read_to_string(&kptfile).unwrap();
    let id = "  annotations:\n    mooring.dev/package-id: 00c0ffee00c0ffee\n";
    let with = text.replacen("  annotations:\n", id, 1);
    assert_ne!(text, with);
    fs::write(&kptfile, with).unwrap();
    dir
}

/// What `moor render` makes of the same, and in which files.
fn rendered(name: &str, pkg: &str, cluster: &str) -> (BTreeMap<String, Value>, Vec<PathBuf>) {
    let dir = package(name, pkg);
    let args = ["render", pkg, "--mgmt", "mgmt", "--cluster", cluster];
    moor(dir.path()).args(args).assert().code(0);
    let pkg = dir.path().join(pkg);
    (objects(&pkg), files(&pkg))
}

#[test]
fn functions_that_kpt_evaluates_one_by_one_give_what_render_gives() {
    let (expected, names) = rendered("n3-plan", "gnb", "ran");
    assert!(expected.len() >= 7, "{:?}", expected.keys());
    for kpt in kpts("kpt fn eval") {
        let dir = package("n3-plan", "gnb");
        let site = site(&dir.path().join("mgmt"), "ran");
        fs::write(dir.path().join("site.yaml"), site).unwrap();
        for _twice in 0..2 {
            for step in NATIVE {
                let exec = function(step);
                let args = [
                    "fn",
                    "eval",
                    "gnb",
                    "--fn-config",
                    "site.yaml",
                    "--exec",
                    &exec,
                ];
                let said = passes(&kpt, dir.path(), &args);
                assert!(said.contains("[PASS]"), "{said}");
            }
            assert_eq!(objects(&dir.path().join("gnb")), expected);
            assert_eq!(files(&dir.path().join("gnb")), names);
        }
    }
}

#[test]
fn exec_entries_of_a_pipeline_give_what_render_gives_and_change_nothing_the_second_time() {
    let (expected, names) = rendered("n3-plan", "upf", "core");
    for kpt in kpts("kpt fn render") {
        let dir = package("n3-plan", "upf");
        let upf = dir.path().join("upf");
        let site = site(&dir.path().join("mgmt"), "core");
        fs::write(upf.join("site.yaml"), site).unwrap();
        let mut kptfile = fs::read_to_string(upf.join("Kptfile")).unwrap();
        kptfile += "pipeline:\n  mutators:\n";
        for step in NATIVE {
            let exec = function(step);
            writeln!(kptfile, "  - exec: {exec}\n    configPath: site.yaml").unwrap();
        }
        fs::write(upf.join("Kptfile"), kptfile).unwrap();
        let args = ["fn", "render", "upf", "--allow-exec"];
        passes(&kpt, dir.path(), &args);
        let mut got = objects(&upf);
        // kpt opens the list of pools that lies in the package; they are no part of what is rendered.
        got.retain(|key, _| expected.contains_key(key));
        assert_eq!(got, expected);
        assert_eq!(files(&upf), names);
        let once = hash_tree(&upf);
        passes(&kpt, dir.path(), &args);
        assert_eq!(hash_tree(&upf), once, "the second time changed something");
    }
}

#[test]
fn a_link_named_after_a_function_is_that_function_for_kpt() {
    for kpt in kpts("a function by its own name") {
        let [by_link, by_name] = [true, false].map(|link| {
            let dir = package("sriov", "upf");
            let site = site(&dir.path().join("mgmt"), "edge");
            fs::write(dir.path().join("site.yaml"), site).unwrap();
            for step in ["workload-cluster-injector", "interface-fn"] {
                let file = dir.path().join(step);
                symlink(env!("CARGO_BIN_EXE_moor"), &file).unwrap();
                let exec = if link {
                    file.display().to_string()
                } else {
                    function(step)
                };
                let args = [
                    "fn",
                    "eval",
                    "upf",
                    "--fn-config",
                    "site.yaml",
                    "--exec",
                    &exec,
                ];
                passes(&kpt, dir.path(), &args);
            }
            objects(&dir.path().join("upf"))
        });
        assert_eq!(by_link, by_name);
        assert!(by_link.keys().any(|key| key.contains("IPClaim")));
    }
}

/// The only result of a run, and kpt's exit code of the function.
fn result(dir: &Path) -> (Value, i64) {
    let list = documents(&dir.join("results/results.yaml")).remove(0);
    let item = &list["items"][0];
    let results = item["results"].as_array().unwrap();
    assert_eq!(results.len(), 1, "{list}");
    (results[0].clone(), item["exitCode"].as_i64().unwrap_or(0))
}

#[test]
fn an_error_fails_the_run_says_where_and_leaves_every_file_as_it_was() {
    for kpt in kpts("results of a failure") {
        let dir = package("n3-plan", "gnb");
        let interfaces = dir.path().join("gnb/interfaces.yaml");
        let text = fs::read_to_string(&interfaces).unwrap();
        // In the second document of its file.
        let bad = text.replace("cniType: macvlan", "cniTipe: macvlan");
        assert_ne!(text, bad);
        fs::write(&interfaces, bad).unwrap();
        let before = hash_tree(&dir.path().join("gnb"));
        let exec = function("interface-fn");
        let args = [
            "fn",
            "eval",
            "gnb",
            "--exec",
            &exec,
            "--results-dir",
            "results",
        ];
        let output = run(&kpt, dir.path(), &args);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(hash_tree(&dir.path().join("gnb")), before);
        let (result, code) = result(dir.path());
        assert_eq!(code, 1);
        assert_eq!(result["severity"], "error");
        assert_eq!(result["tags"]["code"], "UnknownField");
        assert_eq!(result["file"]["path"], "interfaces.yaml");
        assert_eq!(result["file"]["index"], 1);
        assert_eq!(result["field"]["path"], "spec.cniTipe");
        assert_eq!(result["resourceRef"]["kind"], "Interface");
        assert_eq!(result["resourceRef"]["name"], "n3");
    }
}

#[test]
fn a_warning_passes_and_stands_in_the_results_with_its_field() {
    for kpt in kpts("results of a warning") {
        let dir = package("sriov", "upf");
        let site = site(&dir.path().join("mgmt"), "edge");
        fs::write(dir.path().join("site.yaml"), site).unwrap();
        let file = dir.path().join("upf/interface.yaml");
        let text = fs::read_to_string(&file).unwrap();
        let index = "    pfName: ens4\n    vfIndex: 3\n";
        let with = text.replace("    pfName: ens4\n", index);
        assert_ne!(text, with);
        fs::write(&file, with).unwrap();
        for step in [
            "workload-cluster-injector",
            "interface-fn",
            "ipam-fn",
            "nad-fn",
        ] {
            let exec = function(step);
            let head = [
                "fn",
                "eval",
                "upf",
                "--fn-config",
                "site.yaml",
                "--exec",
                &exec,
            ];
            let _ = fs::remove_dir_all(dir.path().join("results"));
            let all = head.iter().chain(&["--results-dir", "results"]);
            passes(&kpt, dir.path(), &all.copied().collect::<Vec<_>>());
        }
        let (result, code) = result(dir.path());
        assert_eq!(code, 0);
        assert_eq!(result["severity"], "warning");
        assert_eq!(result["tags"]["code"], "VfIndexIgnored");
        assert_eq!(result["file"]["path"], "interface.yaml");
        assert_eq!(result["field"]["path"], "spec.sriovSpec.vfIndex");
        let made = objects(&dir.path().join("upf"));
        assert!(
            made.keys()
                .any(|k| k.contains("NetworkAttachmentDefinition"))
        );
    }
}

#[test]
fn objects_stay_in_their_files_and_in_their_order_with_their_comments() {
    for kpt in kpts("path and index") {
        let dir = package("n3-plan", "gnb");
        let site = site(&dir.path().join("mgmt"), "ran");
        fs::write(dir.path().join("site.yaml"), site).unwrap();
        let file = dir.path().join("gnb/interfaces.yaml");
        let text = fs::read_to_string(&file).unwrap();
        let with = text.replace(
            "  cniType: macvlan\n",
            "  # as agreed\n  cniType: macvlan\n",
        );
        assert_ne!(text, with);
        fs::write(&file, &with).unwrap();
        let exec = function("workload-cluster-injector");
        let head = [
            "fn",
            "eval",
            "gnb",
            "--fn-config",
            "site.yaml",
            "--exec",
            &exec,
        ];
        passes(&kpt, dir.path(), &head);
        let exec = function("interface-fn");
        let head = [
            "fn",
            "eval",
            "gnb",
            "--fn-config",
            "site.yaml",
            "--exec",
            &exec,
        ];
        // What the function hands back, with kpt's own annotations.
        let shown = [&head[..], &["-o", "stdout"]].concat();
        let output = run(&kpt, dir.path(), &shown);
        assert!(output.status.success(), "{output:?}");
        let list: Value =
            serde_saphyr::from_str(&String::from_utf8(output.stdout).unwrap()).unwrap();
        let place = |name: &str| {
            let items = list["items"].as_array().unwrap().iter();
            let mut items = items.filter(|i| i["kind"] == "Interface");
            let item = items.find(|i| i["metadata"]["name"] == name).unwrap();
            let annotations = &item["metadata"]["annotations"];
            let text = |key: &str| annotations[key].as_str().unwrap_or_default().to_owned();
            (
                text("internal.config.kubernetes.io/path"),
                text("internal.config.kubernetes.io/index"),
            )
        };
        let at = |index: &str| ("interfaces.yaml".to_owned(), index.to_owned());
        assert_eq!(place("n2"), at("0"));
        assert_eq!(place("n3"), at("1"));
        passes(&kpt, dir.path(), &head);
        let after = fs::read_to_string(&file).unwrap();
        assert!(
            after.contains("  # as agreed\n  cniType: macvlan\n"),
            "{after}"
        );
        let names: Vec<Value> = documents(&file)
            .iter()
            .map(|d| d["metadata"]["name"].clone())
            .collect();
        assert_eq!(names, ["n2", "n3"]);
        assert!(!after.contains("internal.config.kubernetes.io"), "{after}");
    }
}

/// A real blueprint for cluster edge01, its functions ours.
fn blueprint(name: &str, oracles: &Path) -> tempfile::TempDir {
    let source = copy_tree(&oracles.join("nephio/blueprints").join(name));
    let dir = fresh();
    let pkg = dir.path().join("pkg");
    fs::create_dir(&pkg).unwrap();
    for entry in fs::read_dir(source.path()).unwrap() {
        let path = entry.unwrap().path();
        let mut text = fs::read_to_string(&path).unwrap();
        let file = path.file_name().unwrap();
        if file == "Kptfile" {
            let lines = text.lines().map(|line| match line.split_once("- image: ") {
                None => line.to_owned(),
                Some((indent, image)) => {
                    let base = image.rsplit('/').next().unwrap().split(':').next().unwrap();
                    format!("{indent}- exec: {}", function(base))
                }
            });
            text = lines.collect::<Vec<_>>().join("\n") + "\n";
            assert!(!text.contains("image:"), "{text}");
        } else if file == "workload-cluster.yaml" {
            let spec = "  clusterName: edge01\n  cnis:\n  - macvlan\n  masterInterface: eth1\n";
            let cluster = text.replace("  clusterName: example", spec);
            assert_ne!(text, cluster);
            text = cluster;
        }
        fs::write(pkg.join(file), text).unwrap();
    }
    dir
}

#[test]
fn real_blueprints_are_rendered_by_kpt_with_our_functions_as_the_functions_alone_do_it() {
    let Some(oracles) = oracles("real blueprints under kpt") else {
        return;
    };
    let mut ran = 0;
    for kpt in kpts("real blueprints") {
        for name in [
            "pkg-example-upf-bp",
            "pkg-example-smf-bp",
            "pkg-example-du-bp",
        ] {
            let dir = blueprint(name, &oracles);
            let pkg = dir.path().join("pkg");
            // The same steps by hand: source, each function in turn, sink.
            let source = run(&kpt, dir.path(), &["fn", "source", "pkg"]);
            assert!(source.status.success(), "{source:?}");
            let mut list = String::from_utf8(source.stdout).unwrap();
            let kptfile = documents(&pkg.join("Kptfile")).remove(0);
            for step in kptfile["pipeline"]["mutators"].as_array().unwrap() {
                let exec = step["exec"].as_str().unwrap();
                let function = exec.rsplit(' ').next().unwrap();
                let config = step["configPath"].as_str();
                list = with_config(&list, config);
                let answer = moor(dir.path()).args(["fn", function]).stdin(list).assert();
                list = String::from_utf8(answer.code(0).get_output().stdout.clone()).unwrap();
            }
            let expected = of_list(&list);
            passes(&kpt, dir.path(), &["fn", "render", "pkg", "--allow-exec"]);
            let got = objects(&pkg);
            assert_eq!(got, expected, "{name}");
            let claims = got.keys().filter(|k| k.contains("Claim")).count();
            assert!(claims > 0, "{name}: {:?}", got.keys());
            let new = files(&pkg).into_iter().filter(|file| {
                let name = file.to_str().unwrap();
                name.contains("ipclaim") || name.contains("vlanclaim")
            });
            for file in new {
                let object = &documents(&pkg.join(&file))[0];
                let kind = object["kind"].as_str().unwrap().to_lowercase();
                let wanted = format!(
                    "{kind}_{}.yaml",
                    object["metadata"]["name"].as_str().unwrap()
                );
                assert_eq!(file, PathBuf::from(wanted), "{name}");
            }
            let once = hash_tree(&pkg);
            passes(&kpt, dir.path(), &["fn", "render", "pkg", "--allow-exec"]);
            assert_eq!(
                hash_tree(&pkg),
                once,
                "{name}: the second time changed something"
            );
            ran += 1;
        }
    }
    assert!(ran % 3 == 0);
}

/// A blueprint with a namespace-bound NAD, through kpt up to the end and through `moor render`: the same files.
#[test]
fn a_blueprint_has_the_same_files_after_kpt_as_after_render() {
    let what = "files of a blueprint";
    let Some(oracles) = oracles(what) else {
        return;
    };
    for kpt in kpts(what) {
        let dir = blueprint("pkg-example-upf-bp", &oracles);
        let pkg = dir.path().join("pkg");
        let copy = copy_tree(&pkg);
        let mgmt = dir.path().join("mgmt");
        fs::create_dir(&mgmt).unwrap();
        for entry in fs::read_dir(oracles.join("nephio/networks")).unwrap() {
            let path = entry.unwrap().path();
            if path
                .file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with("vpc-")
            {
                fs::write(
                    mgmt.join(path.file_name().unwrap()),
                    fs::read(&path).unwrap(),
                )
                .unwrap();
            }
        }
        let cluster = "apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: edge01\nspec:\n  \
            clusterName: edge01\n  cnis:\n  - macvlan\n  masterInterface: eth1\n";
        fs::write(mgmt.join("cluster.yaml"), cluster).unwrap();
        fs::write(dir.path().join("site.yaml"), site(&mgmt, "edge01")).unwrap();
        passes(&kpt, dir.path(), &["fn", "render", "pkg", "--allow-exec"]);
        for step in ["ipam-fn", "vlan-fn"] {
            let exec = function(step);
            let args = [
                "fn",
                "eval",
                "pkg",
                "--fn-config",
                "site.yaml",
                "--exec",
                &exec,
            ];
            passes(&kpt, dir.path(), &args);
        }
        passes(&kpt, dir.path(), &["fn", "render", "pkg", "--allow-exec"]);
        let made = files(&pkg);
        let nads = made
            .iter()
            .filter(|f| f.to_str().unwrap().starts_with("networkatt"));
        assert_eq!(nads.count(), 3, "{made:?}");

        let other = fresh();
        let target = other.path().join("pkg");
        fs::create_dir(&target).unwrap();
        for entry in fs::read_dir(copy.path()).unwrap() {
            let path = entry.unwrap().path();
            fs::write(
                target.join(path.file_name().unwrap()),
                fs::read(&path).unwrap(),
            )
            .unwrap();
        }
        let mgmt = mgmt.display().to_string();
        moor(other.path())
            .args(["render", "pkg", "--mgmt", &mgmt, "--cluster", "edge01"])
            .assert()
            .code(0);
        assert_eq!(files(&target), made);
    }
}

/// The list with the object of a file as its functionConfig.
fn with_config(list: &str, path: Option<&str>) -> String {
    let mut list: Value = serde_saphyr::from_str(list).unwrap();
    let items = list["items"].as_array().unwrap();
    let key = "internal.config.kubernetes.io/path";
    let is_it = |item: &&Value| path.is_some_and(|p| item["metadata"]["annotations"][key] == p);
    let config = items.iter().find(is_it).cloned();
    let list = list.as_object_mut().unwrap();
    list.remove("results");
    match config {
        Some(config) => drop(list.insert("functionConfig".into(), config)),
        None => drop(list.remove("functionConfig")),
    }
    serde_json::to_string(list).unwrap()
}

/// The objects of a list, as kpt would write them.
fn of_list(list: &str) -> BTreeMap<String, Value> {
    let list: Value = serde_saphyr::from_str(list).unwrap();
    let dir = fresh();
    for (nth, item) in list["items"].as_array().unwrap().iter().enumerate() {
        let mut item = item.clone();
        let metadata = item["metadata"].as_object_mut().unwrap();
        if let Some(annotations) = metadata.get_mut("annotations") {
            let annotations = annotations.as_object_mut().unwrap();
            annotations.retain(|key, _| {
                !key.starts_with("internal.config.kubernetes.io/")
                    && !["config.kubernetes.io/index", "config.kubernetes.io/path"]
                        .contains(&key.as_str())
            });
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
        fs::write(dir.path().join(format!("{nth}.yaml")), item.to_string()).unwrap();
    }
    objects(dir.path())
}
