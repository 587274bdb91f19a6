//! On a real API server: what is installed is accepted, suffices, and leaves others alone.

use std::time::{Duration, Instant};

use mooring_testkit::ControlPlane;
use serde_json::Value;

use crate::rendered::{NAMESPACE, chart, helm, objects, root};
use crate::rights::{MANAGEMENT, WORKLOAD, wrong};

/// For what a controller of Kubernetes does; far beyond what it needs.
const PATIENCE: Duration = Duration::from_mins(1);

fn path(below_root: &str) -> String {
    root().join(below_root).display().to_string()
}

/// Asks until it is so; the last answer is in the message.
#[track_caller]
fn until<T: std::fmt::Debug>(what: &str, ask: impl Fn() -> T, is: impl Fn(&T) -> bool) {
    let end = Instant::now() + PATIENCE;
    loop {
        let seen = ask();
        if is(&seen) {
            return;
        }
        assert!(Instant::now() < end, "not {what}; last seen: {seen:#?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn pods(plane: &ControlPlane) -> usize {
    let said = plane.kubectl(&["get", "pods", "-n", NAMESPACE, "-o", "name"]);
    said.ok().lines().count()
}

fn has(plane: &ControlPlane, args: &[&str]) -> bool {
    plane.kubectl(&[&["get"], args].concat()).code == Some(0)
}

#[test]
fn kubectl_apply_installs_both_kinds_of_cluster_and_rights_suffice() {
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    plane.controller_manager();
    // A CRD of somebody else, which nobody may touch.
    let foreign = path("deploy/crds/ipam.resource.nephio.org_ipclaims.yaml");
    plane.kubectl(&["create", "-f", &foreign]).ok();
    let crd = "crd/ipclaims.ipam.resource.nephio.org";
    plane
        .kubectl(&["annotate", crd, "example.com/whose=theirs"])
        .ok();
    let before = plane.kubectl(&["get", crd, "-o", "json"]).ok().to_owned();

    let said = plane.kubectl(&["create", "-f", &path("deploy/chart/mooring/crds")]);
    assert!(said.stderr.contains("AlreadyExists"), "{}", said.stderr);
    assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
    plane
        .kubectl(&["apply", "--server-side", "-k", &path("deploy")])
        .ok();
    assert_eq!(plane.kubectl(&["get", crd, "-o", "json"]).ok(), before);
    assert_eq!(wrong(&plane, MANAGEMENT), [""; 0]);

    // The level "restricted" lets their pods in.
    until("six pods", || pods(&plane), |count| *count == 6);

    an_unreachable_webhook_blocks_nothing(&plane);

    plane
        .kubectl(&["create", "namespace", "config-management-system"])
        .ok();
    plane
        .kubectl(&["apply", "--server-side", "-k", &path("deploy/workload")])
        .ok();
    until("two more pods", || pods(&plane), |count| *count == 8);
    // A second time changes nothing.
    let versions = || {
        let kinds = "deployments,roles,serviceaccounts,services,pdb";
        let columns = "custom-columns=K:.kind,N:.metadata.name,G:.metadata.generation,R:.rules";
        let said = plane.kubectl(&["get", kinds, "-n", NAMESPACE, "-o", columns]);
        said.ok().to_owned()
    };
    let first = versions();
    for dir in ["deploy", "deploy/workload"] {
        plane
            .kubectl(&["apply", "--server-side", "-k", &path(dir)])
            .ok();
    }
    assert_eq!(versions(), first);
}

/// Nobody serves it: there are no nodes. What crosses objects goes unchecked, what one object says does not.
fn an_unreachable_webhook_blocks_nothing(plane: &ControlPlane) {
    let hook = plane.kubectl(&["get", "validatingwebhookconfiguration", "mooring-webhook"]);
    hook.ok();
    let prefix = |cidr: &str| {
        format!(
            "apiVersion: ipam.resource.nephio.org/v1alpha1\nkind: IPPrefix\n\
             metadata: {{name: pool, namespace: default}}\n\
             spec: {{prefix: {cidr}, networkInstance: {{name: vpc}}}}\n"
        )
    };
    let apply = ["apply", "--server-side", "-f", "-"];
    let refused = plane.kubectl_stdin(&apply, &prefix("10.0.0.0/33"));
    assert_ne!(
        refused.code,
        Some(0),
        "the schema holds: {}",
        refused.stdout
    );
    plane.kubectl_stdin(&apply, &prefix("10.0.0.0/24")).ok();
}

#[test]
fn helm_installs_upgrades_and_leaves_who_has_what_when_it_goes() {
    let Some(helm) = helm() else { return };
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    plane.controller_manager();
    let foreign = path("deploy/crds/config.porch.kpt.dev_packagevariants.yaml");
    plane.kubectl(&["create", "-f", &foreign]).ok();
    let crd = "crd/packagevariants.config.porch.kpt.dev";
    plane
        .kubectl(&["annotate", crd, "example.com/whose=theirs"])
        .ok();
    let before = plane.kubectl(&["get", crd, "-o", "json"]).ok().to_owned();

    let kubeconfig = plane.kubeconfig().display().to_string();
    let chart = chart().display().to_string();
    let run = |args: &[&str]| {
        let rest = ["-n", NAMESPACE, "--kubeconfig", &kubeconfig];
        helm.run(&[args, &rest[..]].concat())
            .unwrap_or_else(|e| panic!("helm {}: {e}", args.join(" ")))
    };
    run(&[
        "install",
        "mooring",
        &chart,
        "--create-namespace",
        "--wait=false",
    ]);
    assert_eq!(wrong(&plane, MANAGEMENT), [""; 0]);
    assert_eq!(
        plane.kubectl(&["get", crd, "-o", "json"]).ok(),
        before,
        "never upgraded"
    );
    for kind in [
        "ipclaims",
        "rootsyncs",
        "network-attachment-definitions",
        "ipleases",
    ] {
        assert!(has(&plane, &[kind, "-A"]), "{kind} is not served");
    }
    assert!(
        !has(&plane, &["ipclaims.ipam.nephio.org"]),
        "the alias was not asked for"
    );

    run(&[
        "upgrade",
        "mooring",
        &chart,
        "--set",
        "crds.alias=true,ipam.replicas=3",
        "--wait=false",
    ]);
    let served = ["wait", "--for=condition=Established", "--timeout=60s"];
    plane
        .kubectl(&[&served[..], &["crd/ipclaims.ipam.nephio.org"]].concat())
        .ok();
    let claim = "apiVersion: ipam.nephio.org/v1alpha1\nkind: IPClaim\nmetadata: {name: n2, namespace: default}\n\
                 spec: {kind: network, networkInstance: {name: vpc}}\n";
    plane.kubectl_stdin(&["create", "-f", "-"], claim).ok();

    let lease = plane.kubectl_stdin(&["create", "-f", "-", "-o", "name"], LEASE);
    let lease = lease.ok().trim().to_owned();
    run(&["uninstall", "mooring"]);
    assert!(has(&plane, &[&lease]), "a lease went with the release");
    assert!(has(
        &plane,
        &["ipclaims.ipam.nephio.org", "n2", "-n", "default"]
    ));
    assert!(!has(
        &plane,
        &["deployment", "mooring-ipam", "-n", NAMESPACE]
    ));
    assert!(!has(&plane, &["clusterrole", "mooring-ipam"]));
    assert!(!has(
        &plane,
        &["validatingwebhookconfiguration", "mooring-webhook"]
    ));

    // Again under the same name, this time as a workload cluster.
    plane
        .kubectl(&["create", "namespace", "config-management-system"])
        .ok();
    let roles = "ipam.enabled=false,packages.enabled=false,webhook.enabled=false,sync.enabled=true,\
                 sync.secretNamespaces={config-management-system}";
    run(&["install", "mooring", &chart, "--set", roles, "--wait=false"]);
    let more = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n\
                metadata: {name: theirs, labels: {mooring.dev/aggregate-to-sync: \"true\"}}\n\
                rules: [{apiGroups: [example.com], resources: [things], verbs: [get, patch]}]\n";
    plane.kubectl_stdin(&["create", "-f", "-"], more).ok();
    // The sum is made by a controller of Kubernetes.
    until(
        "every right as in the table",
        || wrong(&plane, WORKLOAD),
        Vec::is_empty,
    );
}

const LEASE: &str = "
apiVersion: mooring.dev/v1alpha1
kind: IPLease
metadata: {name: 0123456789-0a000001}
spec:
  instance: {namespace: default, name: vpc}
  address: 10.0.0.1
  holder: {interface: router, family: ipv4}
  state: held
  takenAt: 2026-01-01T00:00:00Z
";

#[test]
fn every_case_is_accepted_by_the_api_server() {
    let Some(helm) = helm() else { return };
    let Some(plane) = ControlPlane::shared() else {
        return;
    };
    for namespace in [NAMESPACE, "config-management-system"] {
        plane.kubectl(&["create", "namespace", namespace]).ok();
    }
    let dir = root().join("xtask/tests/chart/cases");
    let mut objects_tried = 0;
    for case in mooring_testkit::cases(dir) {
        let text = helm.template(&case.dir.join("values.yaml"));
        let all = objects(&text.unwrap_or_else(|e| panic!("{e}")));
        // Kinds of Prometheus and cert-manager are not served here.
        let served = |o: &&Value| {
            let version = o["apiVersion"].as_str().unwrap_or_default();
            !version.starts_with("monitoring.coreos.com/")
                && !version.starts_with("cert-manager.io/")
        };
        let items: Vec<&Value> = all.iter().filter(served).collect();
        objects_tried += items.len();
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items});
        let dry = [
            "apply",
            "--server-side",
            "--dry-run=server",
            "--validate=strict",
            "-f",
            "-",
        ];
        let said = plane.kubectl_stdin(&dry, &list.to_string());
        assert_eq!(said.code, Some(0), "{}: {}", case.name, said.stderr);
        assert_eq!(said.stdout.lines().count(), items.len(), "{}", said.stdout);
        assert!(
            !said.stderr.contains("Warning"),
            "{}: {}",
            case.name,
            said.stderr
        );
    }
    assert!(objects_tried > 100, "only {objects_tried} objects");
}
