//! Programs that a killed plugin had started: they go on without it.

use std::path::{Path, PathBuf};

use mooring_testkit::script;
use serde_json::json;

use crate::ovs::switch::Switch;
use crate::stage::{Pod, Stage, Tools};

/// The pod's ADD, killed by the program that it starts with this word among the others; that program then does its work,
/// late. Gives the file that is there when it has ended.
fn killed_by(pod: &Pod, dir: &Path, program: &str, word: &str) -> PathBuf {
    let ended = dir.join("ended");
    let rest = &pod.variables["PATH"];
    let text = format!(
        "#!/bin/sh\nexport PATH='{rest}'\ninput=$(cat)\ncase \" $* \" in\n*\" {word} \"*) kill -9 $PPID; sleep 0.5; late=1;;\nesac\nprintf %s \"$input\" | {program} \"$@\" || exit\n[ -z \"$late\" ] || : > {}\n",
        ended.display()
    );
    script(&dir.join(program), &text);
    let path = format!("{}:{rest}", dir.display());
    let said = pod.call_with("ADD", &[("PATH", path)]);
    assert!(matches!(said.code, None | Some(137)), "{said:?}");
    ended
}

#[test]
fn a_rule_that_comes_after_the_kill_is_there_before_the_del() {
    let what = "nft after a kill of the bridge plugin";
    let (Some(stage), Some(tools)) = (Stage::new(what), Tools::nft(what)) else {
        return;
    };
    let stage = stage.with(tools);
    let dir = tempfile::tempdir().unwrap();
    let pod = stage.pod("c1", json!({"bridge": "br1", "macspoofchk": true}));
    let ended = killed_by(&pod, dir.path(), "nft", "-f");
    pod.del();
    assert!(ended.exists(), "the DEL did not wait for it");
    assert!(!stage.rules().contains("c1"), "{}", stage.rules());
    assert!(stage.pairs().is_empty());
}

#[test]
fn a_port_that_comes_after_the_kill_is_there_before_the_del() {
    let Some((stage, switch)) = Switch::stage("ovs-vsctl after a kill of the ovs plugin") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let pod = stage.pod("c1", json!({"type": "ovs", "bridge": "br1"}));
    let ended = killed_by(&pod, dir.path(), "ovs-vsctl", "add-port");
    pod.del();
    assert!(ended.exists(), "the DEL did not wait for it");
    assert_eq!(switch.ports(&stage), Vec::<String>::new());
    assert!(stage.pairs().is_empty());
}
