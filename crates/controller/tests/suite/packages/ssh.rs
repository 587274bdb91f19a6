//! Git over ssh with keys from Secrets, on both sides: the packages role pushes, the sync role pulls; a server that is not the
//! known one is refused.

use std::fs;

use mooring_testkit::SshServer;
use serde_json::json;

use super::scene::Stage;
use crate::harness::{Cluster, await_condition};

#[test]
fn packages_go_to_a_cluster_over_ssh_and_an_unknown_server_gets_nothing() {
    let Some(server) = SshServer::start("repositories and clusters over ssh") else {
        return;
    };
    let Some(cluster) = Cluster::own() else {
        return;
    };
    let args = ["--git-poll=1s", "--manage=all"];
    let stage = Stage::with(cluster, &["packages", "sync"], &args);
    let scene = stage.scene("keys", 139);
    let url = server.create("edge");
    let key = fs::read_to_string(server.key()).unwrap();
    for namespace in ["keys", "mooring-system"] {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "ssh" },
            "stringData": { "ssh-privatekey": key, "known_hosts": server.other_host() },
        });
        let secrets = format!("/api/v1/namespaces/{namespace}/secrets");
        stage.cluster.create(&secrets, &secret);
    }
    let repository = "/apis/config.porch.kpt.dev/v1alpha1/namespaces/keys/repositories/edge";
    let git = json!({ "repo": url, "branch": "main", "secretRef": { "name": "ssh" } });
    stage
        .cluster
        .merge(repository, &json!({ "spec": { "git": git } }));
    let denied = ("False", "GitDenied");
    await_condition(&stage.cluster, repository, "RepositoryReady", denied);
    scene.variant(
        "upf",
        "upf-a",
        "  annotations: {approval.nephio.org/policy: always}",
    );
    scene.awaits("upf", "Stalled", ("True", "GitDenied"));
    assert!(!server.log().contains("Accepted"), "{}", server.log());

    // The server is the one that is there.
    for namespace in ["keys", "mooring-system"] {
        let path = format!("/api/v1/namespaces/{namespace}/secrets/ssh");
        let known = json!({ "stringData": { "known_hosts": server.known_host() } });
        stage.cluster.merge(&path, &known);
    }
    scene.awaits("upf", "Published", ("True", "Published"));
    scene.awaits_leases(&[(20, "held")]);
    stage.cluster.apply(&format!(
        "apiVersion: configsync.gke.io/v1beta1
kind: RootSync
metadata: {{name: site, namespace: mooring-system}}
spec:
  sourceFormat: unstructured
  git: {{repo: '{url}', branch: main, dir: upf-a, auth: ssh, period: 1s, secretRef: {{name: ssh}}}}
"
    ));
    let sync = "/apis/configsync.gke.io/v1beta1/namespaces/mooring-system/rootsyncs/site";
    crate::harness::until("the cluster has the commit", || {
        let sync = stage.cluster.get(sync).ok_or("no such object")?;
        let commit = sync["status"]["sync"]["commit"]
            .as_str()
            .unwrap_or_default();
        (commit.len() == 40)
            .then_some(())
            .ok_or_else(|| sync["status"].to_string())
    });
    let log = stage.controller().log();
    let secret = key.lines().nth(1).unwrap();
    assert!(!log.contains(secret), "the key is in the log");
}
