//! Who may do what: the table, and asking the API server all of it at once.
//!
//! A row that a reconciler needs is a `yes`; beside it stands the nearest thing that it does not need, as a `no`. Whoever
//! adds a call to the controller adds its row here first.

use mooring_testkit::ControlPlane;
use serde_json::{Value, json};

use crate::rendered::NAMESPACE;

/// `yes` or `no`, verb, resource as `plural[/subresource].group`, and where: `*` for the cluster, `own` for the
/// release's namespace, else a namespace; after a colon the object's name.
pub(crate) const MANAGEMENT: &[(&str, &str)] = &[
    (
        "ipam",
        "
        yes list    ipclaims.ipam.resource.nephio.org *
        yes watch   ipprefixes.ipam.resource.nephio.org *
        yes watch   networkinstances.ipam.resource.nephio.org *
        yes watch   vlanclaims.vlan.resource.nephio.org *
        yes watch   vlanindices.vlan.resource.nephio.org *
        no  watch   workloadclusters.infra.nephio.org *
        no  patch   ipclaims.ipam.resource.nephio.org default
        yes patch   ipclaims/status.ipam.resource.nephio.org default
        yes patch   ipclaims/status.ipam.nephio.org default
        yes patch   ipprefixes/status.ipam.resource.nephio.org default
        yes patch   networkinstances/status.ipam.resource.nephio.org default
        yes patch   vlanclaims/status.vlan.resource.nephio.org default
        yes create  ipallocations.ipam.resource.nephio.org default
        yes patch   ipallocations.ipam.resource.nephio.org default
        no  delete  ipallocations.ipam.resource.nephio.org default
        no  create  ipclaims.ipam.resource.nephio.org default
        no  delete  ipclaims.ipam.resource.nephio.org default
        no  delete  ipprefixes.ipam.resource.nephio.org default
        no  create  ipprefixes.ipam.resource.nephio.org default
        no  patch   workloadclusters.infra.nephio.org default
        yes create  ipleases.mooring.dev *
        yes delete  ipleases.mooring.dev *
        yes watch   ipleases.mooring.dev *
        yes update  prefixledgers.mooring.dev *
        yes create  configmaps own
        yes update  configmaps own
        no  get     configmaps default
        no  list    configmaps *
        yes create  leases.coordination.k8s.io own
        yes update  leases.coordination.k8s.io own:moor-controller-ipam
        no  update  leases.coordination.k8s.io own:moor-controller-packages
        no  get     leases.coordination.k8s.io kube-system:kube-scheduler
        yes create  events.events.k8s.io default
        yes patch   events.events.k8s.io default
        no  list    events.events.k8s.io default
        no  get     secrets own
        no  get     secrets default
        no  list    secrets *
        no  watch   packagevariants.config.porch.kpt.dev *
        yes get     customresourcedefinitions.apiextensions.k8s.io *
        no  list    customresourcedefinitions.apiextensions.k8s.io *
        no  update  customresourcedefinitions.apiextensions.k8s.io *
        yes list    deployments.apps *
        no  get     deployments.apps default
        no  get     pods default
        no  create  clusterrolebindings.rbac.authorization.k8s.io *
        ",
    ),
    (
        "packages",
        "
        yes watch   packagevariants.config.porch.kpt.dev *
        yes watch   packagevariantsets.config.porch.kpt.dev *
        yes watch   repositories.config.porch.kpt.dev *
        yes create  packagevariants.config.porch.kpt.dev default
        yes delete  packagevariants.config.porch.kpt.dev default
        yes patch   packagevariants.config.porch.kpt.dev default
        yes patch   packagevariants/status.config.porch.kpt.dev default
        yes patch   packagevariantsets/status.config.porch.kpt.dev default
        no  patch   packagevariantsets.config.porch.kpt.dev default
        no  delete  packagevariantsets.config.porch.kpt.dev default
        yes patch   repositories/status.config.porch.kpt.dev default
        no  patch   workloadclusters/status.infra.nephio.org default
        no  create  repositories.config.porch.kpt.dev default
        no  delete  repositories.config.porch.kpt.dev default
        yes watch   workloadclusters.infra.nephio.org *
        yes watch   ipprefixes.ipam.resource.nephio.org *
        no  patch   ipprefixes.ipam.resource.nephio.org default
        no  patch   ipclaims/status.ipam.resource.nephio.org default
        yes create  ipleases.mooring.dev *
        yes update  prefixledgers.mooring.dev *
        yes create  configmaps own
        no  create  configmaps default
        yes get     secrets own
        yes get     secrets default
        no  get     secrets kube-system
        no  list    secrets own
        no  watch   secrets default
        no  list    secrets *
        no  create  secrets own
        no  update  secrets default
        yes update  leases.coordination.k8s.io own:moor-controller-packages
        no  update  leases.coordination.k8s.io own:moor-controller-ipam
        yes create  events.events.k8s.io default
        no  create  deployments.apps default
        no  get     rootsyncs.configsync.gke.io default
        ",
    ),
    (
        "webhook",
        "
        yes watch   ipprefixes.ipam.resource.nephio.org *
        yes watch   networkinstances.ipam.resource.nephio.org *
        no  watch   vlanclaims.vlan.resource.nephio.org *
        yes list    deployments.apps *
        no  get     customresourcedefinitions.apiextensions.k8s.io *
        yes watch   ipleases.mooring.dev *
        no  create  ipleases.mooring.dev *
        no  delete  ipleases.mooring.dev *
        no  patch   ipprefixes.ipam.resource.nephio.org default
        no  patch   ipclaims/status.ipam.resource.nephio.org default
        yes watch   bgpneighbors.network.t-caas.telekom.com *
        yes watch   bgppeerings.network.t-caas.telekom.com *
        yes watch   collectors.network.t-caas.telekom.com *
        yes watch   destinations.network.t-caas.telekom.com *
        yes list    layer2attachments.network.t-caas.telekom.com *
        yes watch   layer2attachments.network.t-caas.telekom.com *
        yes watch   layer2networkconfigurations.network.t-caas.telekom.com *
        yes watch   mirrorselectors.network.t-caas.telekom.com *
        yes watch   mirrortargets.network.t-caas.telekom.com *
        yes watch   podnetworks.network.t-caas.telekom.com *
        yes watch   trafficmirrors.network.t-caas.telekom.com *
        yes watch   vrfattachments.network.t-caas.telekom.com *
        yes watch   vrfrouteconfigurations.network.t-caas.telekom.com *
        no  watch   nodenetworkconfigs.network.t-caas.telekom.com *
        no  patch   layer2attachments.network.t-caas.telekom.com *
        no  patch   layer2attachments/status.network.t-caas.telekom.com *
        yes watch   operatorconfigs.mooring.dev *
        no  patch   operatorconfigs.mooring.dev *
        yes watch   nodes *
        no  get     nodes *:a1
        no  patch   nodes *
        no  list    pods *
        yes get     secrets own:mooring-webhook-certificate
        yes update  secrets own:mooring-webhook-certificate
        yes create  secrets own
        no  get     secrets own
        no  get     secrets default:mooring-webhook-certificate
        no  list    secrets own
        yes patch   validatingwebhookconfigurations.admissionregistration.k8s.io *:mooring-webhook
        no  patch   validatingwebhookconfigurations.admissionregistration.k8s.io *:somebody-elses
        no  create  validatingwebhookconfigurations.admissionregistration.k8s.io *
        no  create  configmaps own
        ",
    ),
];

pub(crate) const WORKLOAD: &[(&str, &str)] = &[(
    "sync",
    "
    yes watch   rootsyncs.configsync.gke.io *
    yes patch   rootsyncs/status.configsync.gke.io config-management-system
    no  patch   rootsyncs.configsync.gke.io config-management-system
    no  delete  rootsyncs.configsync.gke.io config-management-system
    no  create  rootsyncs.configsync.gke.io config-management-system
    yes create  configmaps own
    yes get     secrets own
    yes get     secrets config-management-system
    no  get     secrets default
    no  list    secrets *
    no  create  secrets default
    yes patch   network-attachment-definitions.k8s.cni.cncf.io default
    yes delete  network-attachment-definitions.k8s.cni.cncf.io default
    yes patch   deployments.apps default
    yes patch   statefulsets.apps default
    yes patch   configmaps default
    yes create  namespaces *
    yes patch   things.example.com default
    no  delete  things.example.com default
    no  patch   clusterroles.rbac.authorization.k8s.io *
    no  create  clusterrolebindings.rbac.authorization.k8s.io *
    no  create  pods/exec default
    no  create  ipleases.mooring.dev *
    no  patch   nodes *
    yes update  leases.coordination.k8s.io own:moor-controller-sync
    yes create  events.events.k8s.io default
    ",
)];

/// A row that the API server answered otherwise.
pub(crate) fn wrong(plane: &ControlPlane, table: &[(&str, &str)]) -> Vec<String> {
    let mut asked = Vec::new();
    for (role, rows) in table {
        for row in rows.lines().map(str::trim).filter(|row| !row.is_empty()) {
            asked.push((*role, row, review(role, row)));
        }
    }
    assert!(asked.len() > 20, "the table is not empty");
    let items: Vec<&Value> = asked.iter().map(|(_, _, review)| review).collect();
    let list_of = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let said = plane.kubectl_stdin(&["create", "-f", "-", "-o", "json"], &list_of);
    // One after the other, not a list.
    let answers = serde_json::Deserializer::from_str(said.ok()).into_iter();
    let answers: Vec<Value> = answers.collect::<Result<_, _>>().unwrap();
    assert_eq!(answers.len(), asked.len());
    let mut wrong = Vec::new();
    for ((role, row, review), answer) in asked.iter().zip(&answers) {
        assert_eq!(
            answer["spec"], review["spec"],
            "answers come in the order of questions"
        );
        let allowed = answer["status"]["allowed"] == true;
        if allowed != row.starts_with("yes ") {
            wrong.push(format!("{role}: {row}: the API server says {allowed}"));
        }
    }
    wrong
}

fn review(role: &str, row: &str) -> Value {
    let words: Vec<&str> = row.split_whitespace().collect();
    let [_, verb, resource, place] = words[..] else {
        panic!("a row has four words: {row}");
    };
    let (path, group) = resource.split_once('.').unwrap_or((resource, ""));
    let (plural, sub) = path.split_once('/').unwrap_or((path, ""));
    let (namespace, name) = place.split_once(':').unwrap_or((place, ""));
    let namespace = match namespace {
        "*" => "",
        "own" => NAMESPACE,
        other => other,
    };
    let pairs = [
        ("group", group),
        ("resource", plural),
        ("subresource", sub),
        ("verb", verb),
        ("namespace", namespace),
        ("name", name),
    ];
    // Empty is absent, as the API server answers it.
    let attributes: serde_json::Map<String, Value> = pairs
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect();
    json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": format!("system:serviceaccount:{NAMESPACE}:mooring-{role}"),
            "resourceAttributes": attributes,
        },
    })
}
