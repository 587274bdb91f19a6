//! What is injected beside clusters: a kind of anybody's, which the role may have to be given the right to read.

use serde_json::json;

use super::scene::{Scene, Stage};
use crate::harness::{Cluster, await_condition, condition, until};

const POINT: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  annotations:\n    kpt.dev/config-injection: required\ndata:\n  mtu: \"0\"\n";

/// Publishes a blueprint with a place for a ConfigMap, and applies a variant that fills it.
fn set(scene: &Scene<'_>) {
    let mut files = scene.blueprint();
    files.insert("settings.yaml".into(), POINT.into());
    scene.draft("blueprints", "upf", "settings", &files);
    scene.approve("blueprints", "upf", "settings");
    let ns = &scene.name;
    scene.stage.cluster.apply(&format!(
        "apiVersion: v1
kind: ConfigMap
metadata: {{name: site-settings, namespace: {ns}, labels: {{site: edge}}}}
data: {{mtu: \"9000\"}}
---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata: {{name: upf, namespace: {ns}}}
spec:
  upstream: {{repo: blueprints, package: upf, revision: 2}}
  downstream: {{repo: edge, package: upf-a}}
  annotations: {{approval.nephio.org/policy: always}}
  injectors: [{{kind: WorkloadCluster, name: edge01}}, {{kind: ConfigMap, name: site-settings}}]
"
    ));
}

fn awaits_mtu(scene: &Scene<'_>, wanted: &str) {
    until(&format!("the published package has mtu {wanted}"), || {
        let files = scene.published("upf-a").ok_or("nothing is published")?;
        let text = String::from_utf8_lossy(&files["settings.yaml"]).into_owned();
        text.contains(wanted).then_some(()).ok_or(text)
    });
}

#[test]
fn an_injected_config_map_that_is_edited_makes_the_next_version() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("settings", 135);
    set(&scene);
    scene.awaits("upf", "Published", ("True", "Published"));
    awaits_mtu(&scene, "9000");
    let path = "/api/v1/namespaces/settings/configmaps/site-settings";
    stage
        .cluster
        .merge(path, &json!({ "data": { "mtu": "8900" } }));
    awaits_mtu(&scene, "8900");
    until("the second version is told", || {
        let variant = scene.get("upf").ok_or("no such variant")?;
        let told = variant["status"]["version"] == 2;
        told.then_some(())
            .ok_or_else(|| variant["status"].to_string())
    });
    scene.awaits_leases(&[(20, "held")]);
}

#[test]
fn a_kind_that_the_role_may_not_read_is_told_with_what_to_do() {
    let Some(cluster) = Cluster::own() else {
        return;
    };
    let dir = mooring_testkit::workspace_root().join("deploy");
    let dir = dir.display().to_string();
    let args = ["apply", "--server-side", "--force-conflicts", "-k", &dir];
    cluster.kubectl(&args).ok();
    let user = "system:serviceaccount:mooring-system:mooring-packages";
    let groups = ["system:serviceaccounts", "system:authenticated"];
    let kubeconfig = cluster.plane().user_kubeconfig(user, &groups);
    let kubeconfig = kubeconfig.display().to_string();
    let stage = Stage::with(
        cluster,
        &["packages"],
        &["--git-poll=1s", "--kubeconfig", &kubeconfig],
    );
    // The namespace whose Secrets the role may read as it is installed.
    let scene = stage.scene("default", 136);
    set(&scene);
    let variant = scene.awaits("upf", "Stalled", ("True", "Forbidden"));
    assert_eq!(condition(&variant, "Ready"), Some(("False", "Forbidden")));
    let said = variant["status"].to_string();
    for part in [
        "list and watch ConfigMap of v1",
        "packages.injectedKinds of the chart",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    until("an Event says it too", || {
        let events = stage.cluster.events("default", "upf");
        let told = |e: &String| e.starts_with("Forbidden") && e.contains("injectedKinds");
        events
            .iter()
            .any(told)
            .then_some(())
            .ok_or(format!("{events:?}"))
    });
    stage.cluster.apply(
        "apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata: {name: all, namespace: default}
spec:
  upstream: {repo: blueprints, package: upf, revision: 1}
  targets:
  - objectSelector: {apiVersion: v1, kind: ConfigMap, matchLabels: {site: edge}}
    template:
      downstream: {repo: edge, packageExpr: \"packageDefault + '-' + target.name\"}
      injectors: [{kind: WorkloadCluster, name: edge01}]
",
    );
    let all = "/apis/config.porch.kpt.dev/v1alpha2/namespaces/default/packagevariantsets/all";
    let set = await_condition(&stage.cluster, all, "Stalled", ("True", "Forbidden"));
    assert_eq!(condition(&set, "Ready"), Some(("False", "Forbidden")));
    assert!(set["status"].to_string().contains("injectedKinds"), "{set}");

    // As the chart does with that value.
    stage.cluster.apply(
        "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: injected}
rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: injected}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: injected}
subjects: [{kind: ServiceAccount, name: mooring-packages, namespace: mooring-system}]
",
    );
    scene.awaits("upf", "Published", ("True", "Published"));
    scene.awaits("upf", "Stalled", ("False", "Valid"));
    awaits_mtu(&scene, "9000");
    await_condition(&stage.cluster, all, "Ready", ("True", "Reconciled"));
}
