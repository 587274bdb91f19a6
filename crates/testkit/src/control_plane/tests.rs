//! The control plane itself: it is the version that was asked for, it keeps what it was told, it is nobody else's, and
//! nothing of it stays.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::process::Stdio;

use super::*;
use crate::workspace_root;

#[test]
fn it_is_the_kubernetes_that_was_asked_for() {
    let Some(plane) = ControlPlane::shared() else {
        return;
    };
    let said = plane.kubectl(&["version"]);
    for line in ["Client Version: v1.36.3", "Server Version: v1.36.3"] {
        assert!(said.ok().contains(line), "{said:?}");
    }
}

#[test]
fn every_crd_of_ours_is_taken_and_established() {
    let Some(plane) = ControlPlane::shared() else {
        return;
    };
    let dir = workspace_root().join("deploy/crds");
    plane.install_crds(&dir);
    plane.install_crds(&dir);
    let said = plane.kubectl(&["get", "crds", "--no-headers"]);
    let files = fs::read_dir(&dir).unwrap().count();
    assert_eq!(said.ok().lines().count(), files, "{said:?}");
}

#[test]
fn objects_outlive_both_servers_and_a_paused_one_goes_on() {
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    let get = ["get", "configmap", "kept", "-o", "jsonpath={.data.a}"];
    plane
        .kubectl(&["create", "configmap", "kept", "--from-literal=a=1"])
        .ok();
    plane.stop_api_server();
    assert_ne!(plane.kubectl(&get).code, Some(0), "it is away");
    plane.start_api_server();
    assert_eq!(plane.kubectl(&get).ok(), "1");
    plane.restart_etcd();
    assert_eq!(plane.kubectl(&get).ok(), "1");
    plane.pause_api_server();
    let said = plane.kubectl(&[&get[..], &["--request-timeout=1s"]].concat());
    assert_ne!(said.code, Some(0), "{said:?}");
    plane.resume_api_server();
    assert_eq!(plane.kubectl(&get).ok(), "1");
}

#[test]
fn somebody_else_on_the_port_is_refused() {
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    plane.stop_api_server();
    let stranger = TcpListener::bind(("127.0.0.1", plane.plan.ports.api)).unwrap();
    let refused = plane.try_start_api_server().unwrap_err().to_string();
    assert!(
        refused.contains("is held by another process than the kube-apiserver"),
        "{refused}"
    );
    drop(stranger);
    plane.start_api_server();
}

#[test]
fn a_server_with_another_certificate_is_told_nothing() {
    let Some(plane) = ControlPlane::shared() else {
        return;
    };
    let etcd = plane.plan.ports.etcd;
    let error = plane.plan.get(etcd, "/readyz").unwrap_err().to_string();
    assert!(error.contains("invalid peer certificate"), "{error}");
}

#[test]
fn a_user_may_what_rbac_says_and_nothing_else() {
    let Some(plane) = ControlPlane::shared() else {
        return;
    };
    let path = plane.user_kubeconfig("plain", &["first", "second"]);
    let flag = format!("--kubeconfig={}", path.display());
    let who = plane.kubectl(&[&flag, "auth", "whoami", "-o", "jsonpath={.status.userInfo}"]);
    let user: serde_json::Value = serde_json::from_str(who.ok()).unwrap();
    assert_eq!(user["username"], "plain");
    let groups = serde_json::json!(["first", "second", "system:authenticated"]);
    assert_eq!(user["groups"], groups);
    let may = plane.kubectl(&[&flag, "auth", "can-i", "list", "pods"]);
    assert_eq!(may.stdout, "no\n");
}

#[test]
fn the_controller_manager_collects_what_has_lost_its_owner() {
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    plane.controller_manager();
    plane.kubectl(&["create", "namespace", "short"]).ok();
    let create = ["create", "deployment", "d", "--image=none", "-n", "short"];
    plane.kubectl(&create).ok();
    let wait = ["wait", "--timeout=60s", "-n", "short"];
    let pods = ["--for=create", "pods", "-l", "app=d"];
    plane.kubectl(&[&wait[..], &pods].concat()).ok();
    plane
        .kubectl(&["delete", "namespace", "short", "--timeout=60s"])
        .ok();
}

/// Stops what a test detached, also when the test fails.
struct Stopped<'a>(&'a Path);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        for process in Detached::of(self.0).iter().rev() {
            process.stop().unwrap();
        }
    }
}

#[test]
fn a_detached_one_outlives_its_value_and_is_stopped_by_what_its_directory_says() {
    if programs().is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let stopped = Stopped(dir.path());
    let plane = ControlPlane::start_detached(dir.path()).unwrap();
    let sleep = ["600".to_owned()];
    let beside = plane.run_detached("sleep", Path::new("sleep"), &sleep);
    assert!(beside.unwrap().is_running());
    drop(plane);
    let all = Detached::of(dir.path());
    let names: Vec<&str> = all.iter().map(|process| process.name.as_str()).collect();
    let wanted = ["etcd", "kube-apiserver", "kube-controller-manager", "sleep"];
    assert_eq!(names, wanted);
    assert!(all.iter().all(Detached::is_running), "{all:?}");
    drop(stopped);
    assert!(!all.iter().any(Detached::is_running), "{all:?}");
}

/// Processes of a control plane name its directory among their arguments.
fn processes_of(dir: &Path) -> Vec<String> {
    let dir = dir.to_string_lossy().into_owned();
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = entries.filter_map(|e| fs::read_to_string(e.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(&dir)).collect()
}

#[test]
fn nothing_stays_after_a_drop() {
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    let dir = plane.plan.dir.clone();
    // A shell and a program for each of etcd and the API server.
    assert_eq!(processes_of(&dir).len(), 4);
    drop(plane);
    assert_eq!(processes_of(&dir), Vec::<String>::new());
    assert!(!dir.exists());
}

#[test]
fn nothing_stays_after_a_kill_of_the_test_process() {
    if programs().is_none() {
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "--test-threads=1"])
        .arg("control_plane::tests::a_process_that_waits_to_be_killed")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut lines = std::io::BufRead::lines(stdout).map_while(Result::ok);
    let dir = lines
        .find_map(|line| line.strip_prefix("DIR ").map(PathBuf::from))
        .unwrap();
    assert_eq!(processes_of(&dir).len(), 4);
    child.kill().unwrap();
    child.wait().unwrap();
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while dir.exists() || !processes_of(&dir).is_empty() {
        assert!(
            std::time::Instant::now() < end,
            "left: {:?}",
            processes_of(&dir)
        );
        std::thread::yield_now();
    }
}

#[test]
#[ignore = "child: the process that is killed"]
fn a_process_that_waits_to_be_killed() {
    let plane = ControlPlane::start().unwrap();
    let line = format!("\nDIR {}\n", plane.plan.dir.display());
    std::io::stdout().write_all(line.as_bytes()).unwrap();
    loop {
        std::thread::park();
    }
}
