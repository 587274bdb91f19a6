//! The story of the seeds: one management cluster, two workload clusters, Git with passwords between them.
//!
//! ```text
//!  pools, clusters ─► mgmt ── variants ─► drafts ─► approved ─► Git ─► sync on edge-1, edge-2 ─► Deployed
//!                                 somebody pushes other things to edge-1 all the while
//! ```

mod edge;
mod moor;
pub(crate) mod pusher;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use mooring_testkit::GitServer;
use serde_json::{Value, json};

use crate::harness::{Cluster, Controller, condition, until};
use edge::Edge;
use pusher::Pusher;

const VARIANTS: &str = "/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/packagevariants";
const LEASES: &str = "/apis/mooring.dev/v1alpha1/ipleases";

/// What the operator applies on the management cluster.
fn management(git: &GitServer) -> String {
    let mut text = "
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: NetworkInstance
metadata: {name: vpc-ran, namespace: default}
spec: {prefixes: [{prefix: 10.60.0.0/16}]}
---
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPPrefix
metadata: {name: ran, namespace: default, annotations: {mooring.dev/ranges: 10.60.2.20-10.60.2.250}}
spec: {kind: network, prefix: 10.60.2.0/24, networkInstance: {name: vpc-ran, namespace: default}}
"
    .to_owned();
    for edge in ["edge-1", "edge-2"] {
        let _ = write!(
            text,
            "---
apiVersion: infra.nephio.org/v1alpha1
kind: WorkloadCluster
metadata: {{name: {edge}, namespace: default}}
spec: {{clusterName: {edge}, cnis: [macvlan], masterInterface: ens3}}
---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata: {{name: upf-{edge}, namespace: default}}
spec:
  upstream: {{repo: blueprints, package: upf, revision: 1}}
  downstream: {{repo: {edge}, package: upf}}
  injectors: [{{kind: WorkloadCluster, name: {edge}}}]
  packageContext: {{data: {{namespace: core}}}}
  annotations: {{approval.nephio.org/policy: initial}}
"
        );
    }
    for (name, deployment) in [("blueprints", false), ("edge-1", true), ("edge-2", true)] {
        let _ = write!(
            text,
            "---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {{name: {name}, namespace: default}}
spec: {{type: git, deployment: {deployment}, git: {{repo: {}, branch: main, secretRef: {{name: git}}}}}}
",
            git.url(name)
        );
    }
    text
}

/// A blueprint as in seed 000: an Interface, a workload, a place for the cluster.
const BLUEPRINT: [(&str, &str); 6] = [
    (
        "Kptfile",
        "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: upf\n  annotations:\n    config.kubernetes.io/local-config: \"true\"\n",
    ),
    (
        "package-context.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kptfile.kpt.dev\n  annotations:\n    config.kubernetes.io/local-config: \"true\"\ndata:\n  name: example\n",
    ),
    (
        "namespace.yaml",
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: core\n",
    ),
    (
        "workload-cluster.yaml",
        "apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: workload-cluster\n  annotations:\n    config.kubernetes.io/local-config: \"true\"\n    kpt.dev/config-injection: required\nspec:\n  clusterName: example\n",
    ),
    (
        "interface-n3.yaml",
        "apiVersion: req.nephio.org/v1alpha1\nkind: Interface\nmetadata:\n  name: n3\n  namespace: core\nspec:\n  networkInstance:\n    name: vpc-ran\n  cniType: macvlan\n",
    ),
    (
        "deployment.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: upf\n  namespace: core\nspec:\n  replicas: 1\n  strategy:\n    type: Recreate\n  selector:\n    matchLabels:\n      app: upf\n  template:\n    metadata:\n      labels:\n        app: upf\n    spec:\n      containers:\n      - name: upf\n        image: upf:latest\n",
    ),
];

/// What a person adds to a package that `moor package init` began: the claim of seed 001 and a workload.
const AMF: [(&str, &str); 3] = [
    (
        "namespace.yaml",
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: control\n",
    ),
    (
        "ipclaim.yaml",
        "apiVersion: ipam.resource.nephio.org/v1alpha1\nkind: IPClaim\nmetadata:\n  name: amf-n2\n  namespace: control\nspec:\n  kind: network\n  networkInstance:\n    name: vpc-ran\n",
    ),
    (
        "deployment.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: amf\n  namespace: control\nspec:\n  replicas: 1\n  strategy:\n    type: Recreate\n  selector:\n    matchLabels:\n      app: amf\n  template:\n    metadata:\n      labels:\n        app: amf\n    spec:\n      containers:\n      - name: amf\n        image: amf:latest\n",
    ),
];

struct Story {
    git: GitServer,
    mgmt: Cluster,
    controller: Controller,
    edges: [Edge; 2],
    dir: tempfile::TempDir,
}

impl Story {
    fn begin() -> Option<Self> {
        let git = GitServer::start();
        for name in ["blueprints", "edge-1", "edge-2"] {
            git.create(name);
        }
        let mgmt = Cluster::own()?;
        let edges = [Edge::start("edge-1", &git)?, Edge::start("edge-2", &git)?];
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "git" },
            "stringData": { "username": git.user(), "password": git.token() },
        });
        mgmt.create("/api/v1/namespaces/default/secrets", &secret);
        let controller = Controller::start(&mgmt, &["ipam", "packages"], &["--git-poll=1s"]);
        Some(Self {
            git,
            mgmt,
            controller,
            edges,
            dir: tempfile::tempdir().unwrap(),
        })
    }

    /// Waits for a condition of a variant.
    #[track_caller]
    fn variant(&self, name: &str, kind: &str, wanted: (&str, &str)) -> Value {
        until(&format!("{name} is {kind}={wanted:?}"), || {
            let object = self.mgmt.get(&format!("{VARIANTS}/{name}")).ok_or("gone")?;
            match condition(&object, kind) {
                Some(seen) if seen == wanted => Ok(object),
                _ => Err(format!(
                    "{}\n{}",
                    object["status"],
                    tail(&self.controller.log())
                )),
            }
        })
    }

    /// The addresses that are held or reserved, in order.
    fn addresses(&self) -> Vec<String> {
        let leases = self.mgmt.list(LEASES);
        let text = |l: &Value| l["spec"]["address"].as_str().unwrap_or_default().to_owned();
        let mut all: Vec<String> = leases.iter().map(text).collect();
        all.sort();
        all
    }

    #[track_caller]
    fn awaits_addresses(&self, count: usize) -> Vec<String> {
        until(&format!("{count} addresses are taken"), || {
            let seen = self.addresses();
            let same = seen.len() == count;
            same.then(|| seen.clone())
                .ok_or_else(|| format!("{seen:?}\n{}", tail(&self.controller.log())))
        })
    }

    /// `moor package …` on a repository, with its password.
    #[track_caller]
    fn package(&self, moor: &Path, act: &[&str], repository: &str) -> String {
        let token = self.dir.path().join("token");
        fs::write(&token, self.git.token()).unwrap();
        let url = self.git.url(repository);
        let (token, user) = (token.to_str().unwrap(), self.git.user());
        let mut args = vec!["package"];
        args.extend(act);
        args.extend([
            "--repository",
            &url,
            "--token-file",
            token,
            "--username",
            user,
        ]);
        moor::run(moor, self.dir.path(), &args)
    }

    /// Publishes the blueprint as its maintainer does.
    fn publish_blueprint(&self, moor: &Path) {
        let dir = self.dir.path().join("blueprint");
        write(&dir, &BLUEPRINT);
        let dir = dir.to_str().unwrap();
        self.package(
            moor,
            &["push", dir, "upf", "--workspace", "first"],
            "blueprints",
        );
        self.package(
            moor,
            &["propose", "upf", "--workspace", "first"],
            "blueprints",
        );
        self.package(
            moor,
            &["approve", "upf", "--workspace", "first"],
            "blueprints",
        );
    }
}

fn write(dir: &Path, files: &[(&str, &str)]) {
    fs::create_dir_all(dir).unwrap();
    for (name, text) in files {
        fs::write(dir.join(name), text).unwrap();
    }
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

#[test]
fn pools_and_blueprints_become_interfaces_in_two_clusters_and_go_again() {
    let Some(moor) = moor::program() else {
        return;
    };
    let Some(story) = Story::begin() else {
        return;
    };
    let pusher = Pusher::start(&story.git, "edge-1");
    story.publish_blueprint(&moor);
    story.mgmt.apply(&management(&story.git));

    // Two variants become drafts, are approved by their policy, and arrive.
    for edge in &story.edges {
        let name = format!("upf-{}", edge.name);
        let variant = story.variant(&name, "Published", ("True", "Published"));
        assert_eq!(variant["status"]["cluster"], edge.name);
        edge.has_exactly(&["core/n3", "core/upf"]);
        story.variant(&name, "Deployed", ("True", "Synced"));
    }
    let addresses: Vec<String> = story
        .edges
        .iter()
        .map(|e| e.nad_address("core", "n3"))
        .collect();
    assert_ne!(addresses[0], addresses[1], "no address is shared");
    let taken = story.awaits_addresses(2);
    for address in &addresses {
        assert!(
            taken.contains(&address.trim_end_matches("/24").to_owned()),
            "{taken:?}"
        );
    }

    // A Pod that is made again carries the same.
    let first = &story.edges[0];
    first.cluster.plane().controller_manager();
    let (pod, networks) = first.pod("core", "upf", "");
    assert!(networks.contains("n3"), "{networks}");
    first.cluster.delete(&format!(
        "/api/v1/namespaces/core/pods/{pod}?gracePeriodSeconds=0"
    ));
    let (_, again) = first.pod("core", "upf", &pod);
    assert_eq!(again, networks);
    assert_eq!(first.nad_address("core", "n3"), addresses[0]);

    // A package that a person began goes the same way.
    let amf = story.dir.path().join("amf");
    let dir = amf.to_str().unwrap().to_owned();
    story.package(&moor, &["init", "amf", "--workspace", "hand"], "edge-1");
    story.package(
        &moor,
        &["pull", "amf", &dir, "--workspace", "hand"],
        "edge-1",
    );
    write(&amf, &AMF);
    story.package(&moor, &["push", &dir, "--workspace", "hand"], "edge-1");
    let taken = story.awaits_addresses(3);
    until("the draft is specialised", || {
        let diff = story.package(&moor, &["diff", "amf", "--workspace", "hand"], "edge-1");
        let done = diff.contains("NetworkAttachmentDefinition");
        done.then_some(())
            .ok_or_else(|| format!("{diff}\n{}", tail(&story.controller.log())))
    });
    story.package(&moor, &["propose", "amf", "--workspace", "hand"], "edge-1");
    story.package(&moor, &["approve", "amf", "--workspace", "hand"], "edge-1");
    first.has_exactly(&["control/amf", "control/amf-n2", "core/n3", "core/upf"]);
    assert_eq!(story.awaits_addresses(3), taken, "publishing moves nobody");

    // Deleting the variants frees everything of theirs, and what they brought goes.
    for edge in &story.edges {
        story.mgmt.delete(&format!("{VARIANTS}/upf-{}", edge.name));
    }
    story.awaits_addresses(1);
    story.edges[1].has_exactly(&[]);
    first.has_exactly(&["control/amf", "control/amf-n2"]);
    story.package(&moor, &["delete", "amf", "--yes"], "edge-1");
    story.awaits_addresses(0);
    first.has_exactly(&[]);
    let pushed = pusher.finish();
    assert!(
        pushed > 3,
        "the other pusher was heard: {pushed} commits, none lost"
    );
    assert!(
        !story.controller.log().contains(story.git.token()),
        "the password is in the log"
    );
}
