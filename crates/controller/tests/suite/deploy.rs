//! Every role with the rights that `deploy/` gives its service account, and no more: what the table of rights in
//! `xtask/tests/chart` says is enough, shown by the program itself.

use std::path::Path;

use mooring_testkit::workspace_root;
use serde_json::Value;

use crate::harness::{Cluster, Controller, await_condition, until};

/// Starts a role as its service account.
fn start(cluster: &Cluster, role: &str, more: &[&str]) -> Controller {
    let user = format!("system:serviceaccount:mooring-system:mooring-{role}");
    let groups = ["system:serviceaccounts", "system:authenticated"];
    let kubeconfig = cluster.plane().user_kubeconfig(&user, &groups);
    let kubeconfig = kubeconfig.display().to_string();
    let own = ["--kubeconfig", &kubeconfig];
    Controller::start(cluster, &[role], &[&own[..], more].concat())
}

/// What was refused for want of a right.
fn refused(controller: &Controller) -> Vec<String> {
    let log = controller.log();
    let is = |line: &&str| line.contains("orbidden") || line.contains("may not be");
    log.lines().filter(is).map(str::to_owned).collect()
}

const OBJECTS: &str = "
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: NetworkInstance
metadata: {name: vpc, namespace: default}
spec: {}
---
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPPrefix
metadata: {name: pool, namespace: default}
spec: {prefix: 10.0.0.0/24, networkInstance: {name: vpc, namespace: default}}
---
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPClaim
metadata: {name: n2, namespace: default}
spec: {networkInstance: {name: vpc, namespace: default}}
---
apiVersion: v1
kind: Secret
metadata: {name: git, namespace: default}
stringData: {username: moor, password: word}
---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: sites, namespace: default}
spec:
  type: git
  content: Package
  deployment: true
  git: {repo: 'http://127.0.0.1:1/sites.git', branch: main, directory: /, secretRef: {name: git}}
---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata: {name: edge, namespace: default}
spec:
  upstream: {repo: sites, package: gnb, revision: 1}
  downstream: {repo: sites, package: edge-gnb}
---
apiVersion: v1
kind: Secret
metadata: {name: git, namespace: mooring-system}
stringData: {username: moor, token: word}
---
apiVersion: configsync.gke.io/v1beta1
kind: RootSync
metadata: {name: site, namespace: mooring-system}
spec:
  sourceFormat: unstructured
  git: {repo: 'http://127.0.0.1:1/sites.git', branch: main, dir: edge, auth: token, secretRef: {name: git}}
";

fn has_conditions(cluster: &Cluster, path: &str) {
    until(&format!("{path} has a status"), || {
        let object = cluster.get(path).ok_or("no such object")?;
        let conditions = object["status"]["conditions"].as_array();
        let told = conditions.is_some_and(|c| !c.is_empty());
        told.then_some(()).ok_or_else(|| object.to_string())
    });
}

#[test]
fn every_role_does_its_work_with_the_rights_that_it_is_installed_with() {
    let Some(cluster) = Cluster::own() else {
        return;
    };
    let apply = |dir: &Path| {
        let dir = dir.display().to_string();
        let args = ["apply", "--server-side", "--force-conflicts", "-k", &dir];
        cluster.kubectl(&args).ok();
    };
    apply(&workspace_root().join("deploy"));
    apply(&workspace_root().join("deploy/workload"));
    let ipam = start(&cluster, "ipam", &[]);
    let packages = start(&cluster, "packages", &[]);
    let sync = start(&cluster, "sync", &["--manage", "all"]);
    let webhook = start(&cluster, "webhook", &["--webhook-listen", "127.0.0.1:0"]);
    cluster.apply(OBJECTS);

    let group = "/apis/ipam.resource.nephio.org/v1alpha1/namespaces/default";
    let claim = format!("{group}/ipclaims/n2");
    await_condition(&cluster, &claim, "Ready", ("True", "Ready"));
    assert_eq!(cluster.list("/apis/mooring.dev/v1alpha1/ipleases").len(), 1);
    has_conditions(&cluster, &format!("{group}/ipprefixes/pool"));
    let porch = "/apis/config.porch.kpt.dev/v1alpha1/namespaces/default";
    has_conditions(&cluster, &format!("{porch}/packagevariants/edge"));
    let syncs = "/apis/configsync.gke.io/v1beta1/namespaces/mooring-system/rootsyncs";
    has_conditions(&cluster, &format!("{syncs}/site"));
    let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let hook = cluster.get(&format!("{hooks}/mooring-webhook")).unwrap();
    let bundle = &hook["webhooks"][0]["clientConfig"]["caBundle"];
    assert!(bundle.as_str().is_some_and(|b| !b.is_empty()), "{hook}");
    for role in ["ipam", "packages", "sync"] {
        let lease = format!(
            "/apis/coordination.k8s.io/v1/namespaces/mooring-system/leases/moor-controller-{role}"
        );
        let holder = cluster
            .get(&lease)
            .map_or(Value::Null, |l| l["spec"]["holderIdentity"].clone());
        assert!(holder.is_string(), "{role} is led by nobody");
    }
    for controller in [ipam, packages, sync, webhook] {
        assert_eq!(refused(&controller), [""; 0]);
    }
}
