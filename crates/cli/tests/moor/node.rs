//! `moor node doctor` on a node whose files are made here.

use std::fs;
use std::process::Command;

fn doctor(root: &std::path::Path, more: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_moor"))
        .args(["node", "doctor", "--root"])
        .arg(root)
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
    let (code, out, err) = doctor(node.path(), &[]);
    assert_eq!(code, 1, "{err}");
    assert!(out.contains("VF    0000:01:10.0"), "{out}");
    assert!(err.contains("StateLeftOver"), "{err}");
    assert!(marks.join("0000:01:10.0").exists());
    let (code, out, _) = doctor(node.path(), &["-o", "json"]);
    assert_eq!(code, 1);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["kept"][0]["life"], "gone");
    let (code, out, err) = doctor(node.path(), &["--fix"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("fixed: "), "{out}");
    assert!(!marks.join("0000:01:10.0").exists());
    let (code, _, err) = doctor(node.path(), &["--fix"]);
    assert_eq!((code, err.as_str()), (0, "nothing is left over\n"));
}
