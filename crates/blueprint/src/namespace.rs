//! set-namespace: everything in a package moves to one namespace.
//!
//! The rules are those of the published function, with its three forms of configuration. `package` calls this for the pipeline's
//! function of that name and as a KRM function. Easy to get wrong: an object that is only for processing is left alone, and an
//! object of a kind that nobody knows is in a namespace only if it says so.

use std::collections::BTreeSet;

use mooring_api::{Code, Finding, annotation};
use serde_json::{Value, json};

use crate::bundle::{Bundle, Object};

/// `group/namespaces/NAMESPACE/Kind/name`, comma separated: what must be applied before.
const DEPENDS_ON: &str = "config.kubernetes.io/depends-on";

/// `group|Kind|namespace|name` of the object in the package that this one was cloned from.
const UPSTREAM: &str = "internal.kpt.dev/upstream-identifier";

/// The ConfigMap that kpt writes the package's name into.
const CONTEXT: &str = "kptfile.kpt.dev";

/// Kinds of Kubernetes that live in a namespace; their manifests often leave it out.
const NAMESPACED: [(&str, &[&str]); 11] = [
    (
        "",
        &[
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
    ),
    (
        "apps",
        &[
            "ControllerRevision",
            "DaemonSet",
            "Deployment",
            "ReplicaSet",
            "StatefulSet",
        ],
    ),
    ("autoscaling", &["HorizontalPodAutoscaler"]),
    ("batch", &["CronJob", "Job"]),
    ("coordination.k8s.io", &["Lease"]),
    ("discovery.k8s.io", &["EndpointSlice"]),
    ("events.k8s.io", &["Event"]),
    ("networking.k8s.io", &["Ingress", "NetworkPolicy"]),
    ("policy", &["PodDisruptionBudget"]),
    ("rbac.authorization.k8s.io", &["Role", "RoleBinding"]),
    ("storage.k8s.io", &["CSIStorageCapacity"]),
];

/// What the configuration asks for.
struct Wanted {
    namespace: String,
    /// Only this one is replaced.
    matcher: Option<String>,
}

/// Moves the package to the namespace that `config` names.
pub fn set(bundle: &mut Bundle, config: &Object) -> Vec<Finding> {
    let wanted = match wanted(config) {
        Ok(wanted) => wanted,
        Err(finding) => return vec![finding],
    };
    let moves = |o: &Object| {
        o.annotation(annotation::LOCAL_CONFIG)
            .is_none_or(|v| v == "false")
    };
    let upstream: BTreeSet<&str> = bundle
        .objects
        .iter()
        .filter(|o| moves(o) && is_namespaced(o))
        .filter_map(|o| o.annotation(UPSTREAM)?.split('|').nth(2))
        .collect();
    if wanted.matcher.is_none() && upstream.len() > 1 {
        let names: Vec<&str> = upstream.into_iter().collect();
        return vec![
            Finding::error(
                Code::InvalidField,
                format!(
                    "the package comes from more than one namespace: {}",
                    names.join(", ")
                ),
            )
            .on(&config.reference())
            .at("data")
            .help("Say which one is replaced, with namespaceMatcher."),
        ];
    }
    let mut objects = bundle.objects.to_vec();
    let known: BTreeSet<String> = objects
        .iter()
        .filter(|o| moves(o) && is_namespaced(o))
        .map(|o| depends_on(o.group(), or_default(o.namespace()), o.kind(), o.name()))
        .collect();
    for object in objects.iter_mut().filter(|o| moves(o)) {
        place(object, &wanted);
        order(object, &known, &wanted);
    }
    if objects[..] != bundle.objects[..] {
        // Made anew: a Namespace is renamed.
        bundle.objects = objects.into();
    }
    Vec::new()
}

fn wanted(config: &Object) -> Result<Wanted, Finding> {
    let data = |key: &str| {
        let text = config.value.get("data").and_then(|d| d.get(key)?.as_str());
        text.filter(|t| !t.is_empty()).map(ToOwned::to_owned)
    };
    let top = |key: &str| {
        let text = config.value.get(key).and_then(Value::as_str);
        text.filter(|t| !t.is_empty()).map(ToOwned::to_owned)
    };
    let refuse = |field: &str, text: String| {
        Err(Finding::error(Code::InvalidField, text)
            .on(&config.reference())
            .at(field)
            .help("Name the namespace: data.namespace of a ConfigMap, or namespace of a SetNamespace."))
    };
    let (namespace, matcher, field) = match (config.api_version(), config.kind()) {
        ("v1", "ConfigMap") => {
            let context = data("name").filter(|_| config.name() == CONTEXT);
            let field = if config.name() == CONTEXT {
                "data.name"
            } else {
                "data.namespace"
            };
            (
                data("namespace").or(context),
                data("namespaceMatcher"),
                field,
            )
        }
        ("fn.kpt.dev/v1alpha1", "SetNamespace") => {
            (top("namespace"), top("namespaceMatcher"), "namespace")
        }
        (_, kind) => return refuse("kind", format!("the configuration is a {kind:?}")),
    };
    match namespace {
        Some(namespace) => Ok(Wanted { namespace, matcher }),
        None => refuse(field, "the configuration names no namespace".to_owned()),
    }
}

/// Whether it lives in a namespace.
fn is_namespaced(object: &Object) -> bool {
    let mut known = NAMESPACED.iter();
    let builtin =
        known.any(|(group, kinds)| *group == object.group() && kinds.contains(&object.kind()));
    let cluster = (object.group(), object.kind()) == ("", "Namespace");
    !cluster && (builtin || !object.namespace().is_empty())
}

fn or_default(namespace: &str) -> &str {
    if namespace.is_empty() {
        "default"
    } else {
        namespace
    }
}

impl Wanted {
    /// The namespace that stands instead of `current`; None where it stays.
    fn instead(&self, current: &str, upstream: Option<&str>) -> Option<Value> {
        let current = or_default(current);
        let meant = match self.matcher.as_deref() {
            None => true,
            Some(matcher) => matcher == current || Some(matcher) == upstream,
        };
        (meant && current != self.namespace).then(|| json!(self.namespace))
    }

    fn write(&self, object: &mut Object, pointer: &str) {
        if let Some(field) = object.value.pointer_mut(pointer)
            && let Some(new) = field.as_str().and_then(|text| self.instead(text, None))
        {
            *field = new;
        }
    }
}

fn place(object: &mut Object, wanted: &Wanted) {
    let upstream = |object: &Object, nth| {
        let text = object.annotation(UPSTREAM)?.split('|').nth(nth)?;
        Some(text.to_owned())
    };
    match (object.group(), object.kind()) {
        ("", "Namespace") => {
            let from = upstream(object, 3);
            if let Some(name) = wanted.instead(object.name(), from.as_deref()) {
                object.value["metadata"]["name"] = name;
            }
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let service = "/spec/conversion/webhook/clientConfig/service/namespace";
            wanted.write(object, service);
        }
        ("apiregistration.k8s.io", "APIService") => {
            wanted.write(object, "/spec/service/namespace");
        }
        (_, "RoleBinding" | "ClusterRoleBinding") => {
            let subjects = object.value.get("subjects").and_then(Value::as_array);
            for nth in 0..subjects.map_or(0, Vec::len) {
                wanted.write(object, &format!("/subjects/{nth}/namespace"));
            }
        }
        _ => {}
    }
    if is_namespaced(object) {
        let from = upstream(object, 2);
        if let Some(namespace) = wanted.instead(object.namespace(), from.as_deref()) {
            object.value["metadata"]["namespace"] = namespace;
        }
    }
}

fn depends_on(group: &str, namespace: &str, kind: &str, name: &str) -> String {
    format!("{group}/namespaces/{namespace}/{kind}/{name}")
}

/// References to what moved move along. The published function reads a single reference; a list is as good.
fn order(object: &mut Object, known: &BTreeSet<String>, wanted: &Wanted) {
    let Some(text) = object.annotation(DEPENDS_ON) else {
        return;
    };
    let moved = |reference: &str| {
        let parts: Vec<&str> = reference.trim().split('/').collect();
        let [group, "namespaces", namespace, kind, name] = parts[..] else {
            return reference.to_owned();
        };
        let meant = match &wanted.matcher {
            None => true,
            Some(matcher) => matcher == namespace,
        };
        if meant && known.contains(reference.trim()) {
            depends_on(group, &wanted.namespace, kind, name)
        } else {
            reference.to_owned()
        }
    };
    let new: Vec<String> = text.split(',').map(moved).collect();
    object.set_annotation(DEPENDS_ON, &new.join(","));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::Marks;

    fn object(value: Value) -> Object {
        Object {
            value,
            source: None,
        }
    }

    fn bundle(objects: Vec<Value>) -> Bundle {
        Bundle {
            objects: objects.into_iter().map(object).collect(),
            marks: Marks::default(),
        }
    }

    fn config(data: &Value) -> Object {
        object(json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "c" }, "data": data }))
    }

    #[test]
    fn objects_move_and_what_is_only_for_processing_stays() {
        let mut bundle = bundle(vec![
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "example" } }),
            json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d" } }),
            json!({ "apiVersion": "a.b/v1", "kind": "Own", "metadata": { "name": "o", "namespace": "example" } }),
            json!({ "apiVersion": "a.b/v1", "kind": "Own", "metadata": { "name": "nowhere" } }),
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "l",
                "annotations": { "config.kubernetes.io/local-config": "true" } } }),
        ]);
        for _ in 0..2 {
            assert_eq!(
                set(&mut bundle, &config(&json!({ "namespace": "core" }))),
                []
            );
            let has: Vec<(&str, &str)> = bundle
                .objects
                .iter()
                .map(|o| (o.name(), o.namespace()))
                .collect();
            assert_eq!(
                has,
                [
                    ("core", ""),
                    ("d", "core"),
                    ("o", "core"),
                    ("nowhere", ""),
                    ("l", "")
                ]
            );
            assert!(bundle.objects.has("core"));
        }
    }

    #[test]
    fn three_forms_name_the_namespace() {
        let context = object(json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "kptfile.kpt.dev" }, "data": { "name": "x" } }));
        let own = object(
            json!({ "apiVersion": "fn.kpt.dev/v1alpha1", "kind": "SetNamespace", "namespace": "x" }),
        );
        for config in [context, own, config(&json!({ "namespace": "x" }))] {
            let mut bundle = bundle(vec![
                json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" } }),
            ]);
            assert_eq!(set(&mut bundle, &config), []);
            assert_eq!(bundle.objects[0].namespace(), "x");
        }
        for (bad, field) in [
            (config(&json!({ "name": "x" })), "data.namespace"),
            (
                object(json!({ "apiVersion": "v1", "kind": "Secret" })),
                "kind",
            ),
        ] {
            let said = set(&mut Bundle::default(), &bad);
            assert_eq!(said[0].field.as_deref(), Some(field));
            assert!(said[0].is_error());
        }
    }

    #[test]
    fn references_move_along() {
        let text = "apps/namespaces/default/StatefulSet/db,apps/namespaces/other/Deployment/far";
        let mut bundle = bundle(vec![
            json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "db" } }),
            json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web",
                "annotations": { DEPENDS_ON: text } } }),
            json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": { "name": "r" }, "subjects": [
                    { "kind": "ServiceAccount", "name": "a", "namespace": "default" },
                    { "kind": "Group", "name": "g" } ] }),
        ]);
        for _ in 0..2 {
            set(&mut bundle, &config(&json!({ "namespace": "core" })));
            let order = bundle.objects[1].annotation(DEPENDS_ON).unwrap();
            let (near, far) = order.split_once(',').unwrap();
            assert_eq!(near, "apps/namespaces/core/StatefulSet/db");
            assert_eq!(far, "apps/namespaces/other/Deployment/far");
            let subjects = &bundle.objects[2].value["subjects"];
            assert_eq!(subjects[0]["namespace"], "core");
            assert_eq!(subjects[1].get("namespace"), None);
        }
    }

    #[test]
    fn several_namespaces_need_a_matcher() {
        let service = |name: &str, namespace: &str| {
            json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name, "namespace": namespace,
                "annotations": { UPSTREAM: format!("|Service|{namespace}|{name}") } } })
        };
        let fresh = || bundle(vec![service("a", "one"), service("b", "two")]);
        let mut refused = fresh();
        let said = set(&mut refused, &config(&json!({ "namespace": "new" })));
        assert!(said[0].is_error());
        assert_eq!(refused, fresh());
        let mut moved = fresh();
        let matcher = json!({ "namespace": "new", "namespaceMatcher": "two" });
        for _ in 0..2 {
            assert_eq!(set(&mut moved, &config(&matcher)), []);
            let has: Vec<&str> = moved.objects.iter().map(Object::namespace).collect();
            assert_eq!(has, ["one", "new"]);
        }
    }
}
