//! `moor node doctor` on a node whose files are made here.

use std::fs;
use std::process::Command;

/// Whether the node is looked at on itself, or from a pod.
#[derive(Clone, Copy, PartialEq)]
enum From {
    Node,
    Pod,
}

fn doctor(from: From, root: &std::path::Path, more: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_moor"));
    command.args(["node", "doctor"]);
    match from {
        From::Node => command.env("MOOR_CNI_ROOT", root),
        From::Pod => command.arg("--root").arg(root),
    };
    let output = command
        .arg("--bin-dir")
        .arg(root.join("bin"))
        .arg("--conf-dir")
        .arg(root.join("net.d"))
        .args(more)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

#[test]
fn what_is_left_over_is_shown_and_cleaned_only_when_asked() {
    let node = tempfile::tempdir().unwrap();
    let marks = node.path().join("var/lib/cni/sriov/pci");
    fs::create_dir_all(&marks).unwrap();
    fs::write(marks.join("0000:01:10.0"), "/run/netns/no-such-namespace").unwrap();
    let (code, out, err) = doctor(From::Node, node.path(), &[]);
    assert_eq!(code, 1, "{err}");
    assert!(out.contains("VF    0000:01:10.0"), "{out}");
    assert!(err.contains("StateLeftOver"), "{err}");
    assert!(marks.join("0000:01:10.0").exists());
    let (code, out, _) = doctor(From::Node, node.path(), &["-o", "json"]);
    assert_eq!(code, 1);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["kept"][0]["life"], "gone");
    let (code, out, err) = doctor(From::Node, node.path(), &["--fix"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("fixed: "), "{out}");
    assert!(!marks.join("0000:01:10.0").exists());
    let (code, _, err) = doctor(From::Node, node.path(), &["--fix"]);
    assert_eq!((code, err.as_str()), (0, "nothing is left over\n"));
}

#[test]
fn from_a_pod_nothing_is_fixed_and_what_cannot_be_seen_is_not_called_gone() {
    let node = tempfile::tempdir().unwrap();
    let marks = node.path().join("var/lib/cni/sriov/pci");
    fs::create_dir_all(&marks).unwrap();
    let mark = marks.join("0000:01:10.0");
    fs::write(&mark, "/var/run/netns/cni-1").unwrap();
    let life = || {
        let (_, out, err) = doctor(From::Pod, node.path(), &["-o", "json"]);
        let report: serde_json::Value = serde_json::from_str(&out).expect(&err);
        report["kept"][0]["life"].as_str().unwrap().to_owned()
    };
    assert_eq!(life(), "unknown");
    fs::create_dir_all(node.path().join("run/netns")).unwrap();
    assert_eq!(life(), "gone");
    let (code, out, err) = doctor(From::Pod, node.path(), &["--fix"]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("on the node itself"), "{err}");
    assert!(mark.exists());
}
