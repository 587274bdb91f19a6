//! What must hold for every object, whatever the values.

use serde_json::{Value, json};

use crate::rendered::{list, title};

/// What is wrong, one line each.
pub(crate) fn complaints(objects: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    for object in objects {
        let title = title(object);
        let mut say = |what: String| found.push(format!("{title}: {what}"));
        match object["kind"].as_str().unwrap_or_default() {
            "Deployment" => pods(&object["spec"]["template"]["spec"], &mut say),
            "Role" | "ClusterRole" => rules(list(object, "/rules"), &mut say),
            "RoleBinding" | "ClusterRoleBinding" => {
                let role = object["roleRef"]["name"].as_str().unwrap_or_default();
                if !role.starts_with("mooring") {
                    say(format!("binds {role}, which is not ours"));
                }
            }
            "ValidatingWebhookConfiguration" => {
                for hook in list(object, "/webhooks") {
                    if hook["failurePolicy"] != "Ignore" {
                        say(
                            "an unreachable webhook would block what the schema has checked".into(),
                        );
                    }
                }
            }
            "CustomResourceDefinition"
                if object["metadata"]["annotations"]["helm.sh/resource-policy"] != "keep" =>
            {
                say("goes with the release, and everything of its kind".into());
            }
            _ => {}
        }
    }
    found
}

fn pods(spec: &Value, say: &mut impl FnMut(String)) {
    let wanted = [
        ("/securityContext/runAsNonRoot", json!(true)),
        ("/securityContext/runAsUser", json!(65532)),
        (
            "/securityContext/seccompProfile/type",
            json!("RuntimeDefault"),
        ),
    ];
    let of_container = [
        ("/securityContext/readOnlyRootFilesystem", json!(true)),
        ("/securityContext/allowPrivilegeEscalation", json!(false)),
        ("/securityContext/capabilities", json!({"drop": ["ALL"]})),
        ("/livenessProbe/httpGet/path", json!("/healthz")),
        ("/readinessProbe/httpGet/path", json!("/readyz")),
    ];
    let mut check = |part: &Value, rows: &[(&str, Value)]| {
        for (pointer, value) in rows {
            if part.pointer(pointer) != Some(value) {
                say(format!("{pointer} is not {value}"));
            }
        }
    };
    check(spec, &wanted);
    let containers = list(spec, "/containers")
        .iter()
        .chain(list(spec, "/initContainers"));
    for container in containers {
        check(container, &of_container);
    }
    for container in list(spec, "/containers") {
        let image = container["image"].as_str().unwrap_or_default();
        let tag = image.rsplit('/').next().unwrap_or_default().split_once(':');
        if tag.is_none_or(|(_, tag)| tag.is_empty() || tag == "latest") {
            say(format!("the image {image} is not pinned"));
        }
        if container.pointer("/resources/limits/memory").is_none() {
            say("no limit of memory".into());
        }
    }
    for key in ["hostNetwork", "hostPID", "hostIPC"] {
        if spec.get(key).is_some() {
            say(format!("{key} is set"));
        }
    }
    for volume in list(spec, "/volumes") {
        if volume.get("emptyDir").is_none() && volume.get("secret").is_none() {
            say(format!(
                "the volume {} is neither its own nor a Secret",
                volume["name"]
            ));
        }
    }
}

fn rules(rules: &[Value], say: &mut impl FnMut(String)) {
    let words = |rule: &Value, key: &str| -> Vec<String> {
        let words = list(rule, key).iter().filter_map(Value::as_str);
        words.map(str::to_owned).collect()
    };
    for rule in rules {
        let (groups, resources) = (words(rule, "/apiGroups"), words(rule, "/resources"));
        let (verbs, names) = (words(rule, "/verbs"), words(rule, "/resourceNames"));
        if groups
            .iter()
            .chain(&resources)
            .chain(&verbs)
            .any(|w| w.contains('*'))
        {
            say(format!("a wildcard: {rule}"));
        }
        for verb in ["escalate", "bind", "impersonate", "deletecollection"] {
            if verbs.iter().any(|v| v == verb) {
                say(format!("may {verb}: {rule}"));
            }
        }
        if resources.iter().any(|r| r == "secrets") {
            // Those of Git are got by a name that stands in an object; what is written has a name that we know.
            let allowed: &[&str] = if names.is_empty() {
                &["get", "create"]
            } else {
                &["get", "update"]
            };
            for verb in verbs.iter().filter(|v| !allowed.contains(&v.as_str())) {
                say(format!("may {verb} Secrets: {rule}"));
            }
        }
        if groups.iter().any(|g| g == "rbac.authorization.k8s.io") {
            say(format!("may change who may do what: {rule}"));
        }
    }
}

#[test]
fn each_thing_that_must_not_be_is_seen() {
    let deployment = json!({
        "kind": "Deployment", "metadata": {"name": "x"},
        "spec": {"template": {"spec": {
            "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "image": "host:5000/moor-controller:1.0",
                "resources": {"limits": {"memory": "1Mi"}},
                "livenessProbe": {"httpGet": {"path": "/healthz"}},
                "readinessProbe": {"httpGet": {"path": "/readyz"}},
                "securityContext": {
                    "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"]},
                },
            }],
            "volumes": [{"name": "tmp", "emptyDir": {}}],
        }}},
    });
    assert_eq!(complaints(std::slice::from_ref(&deployment)), [""; 0]);
    let spec = "/spec/template/spec";
    let broken = [
        ("/securityContext/runAsNonRoot", json!(false)),
        ("/securityContext/runAsUser", json!(0)),
        ("/securityContext/seccompProfile/type", json!("Unconfined")),
        (
            "/containers/0/securityContext/readOnlyRootFilesystem",
            json!(false),
        ),
        (
            "/containers/0/securityContext/capabilities",
            json!({"drop": ["ALL"], "add": ["NET_ADMIN"]}),
        ),
        ("/containers/0/image", json!("host:5000/moor-controller")),
        ("/containers/0/image", json!("moor-controller:latest")),
        (
            "/volumes/0",
            json!({"name": "host", "hostPath": {"path": "/"}}),
        ),
    ];
    for (pointer, value) in broken {
        let mut object = deployment.clone();
        *object.pointer_mut(&format!("{spec}{pointer}")).unwrap() = value;
        assert_eq!(complaints(&[object]).len(), 1, "{pointer}");
    }
    let role = |rule: Value| json!({"kind": "Role", "metadata": {"name": "x"}, "rules": [rule]});
    let wrong = [
        json!({"apiGroups": ["a"], "resources": ["b"], "verbs": ["*"]}),
        json!({"apiGroups": ["a"], "resources": ["*/status"], "verbs": ["get"]}),
        json!({"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "list"]}),
        json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["update"]}),
        json!({"apiGroups": ["a"], "resources": ["b"], "verbs": ["bind"]}),
        json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["get"]}),
    ];
    for rule in wrong {
        assert_eq!(complaints(&[role(rule.clone())]).len(), 1, "{rule}");
    }
    let other = json!({"kind": "ClusterRoleBinding", "roleRef": {"name": "cluster-admin"}});
    let hook =
        json!({"kind": "ValidatingWebhookConfiguration", "webhooks": [{"failurePolicy": "Fail"}]});
    let crd = json!({"kind": "CustomResourceDefinition"});
    assert_eq!(complaints(&[other, hook, crd]).len(), 3);
}
