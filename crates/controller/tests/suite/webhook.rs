//! Admission: every rule of the webhook refuses something and admits something, by name; and it never stands in the way
//! of what CEL decides.

mod intents;

use mooring_api::{Family, Time};
use mooring_book::{KubeOptions, KubeStore};
use mooring_ipam::{Claim, Holder, InstanceKey, Kind, Order, Pools, Prefix, Want};
use mooring_testkit::free_port;
use serde_json::{Value, json};

use crate::harness::{Cluster, Controller, until};

const SECRET: &str = "/api/v1/namespaces/mooring-system/secrets/mooring-webhook-certificate";

/// A rule with what stands there before, what it admits and what it refuses, as YAML; and the word of its refusal.
struct Case {
    rule: &'static str,
    before: &'static str,
    admits: &'static str,
    refuses: &'static str,
    code: &'static str,
}

/// Each has a network of its own: overlaps count across instances too.
const CASES: [Case; 12] = [
    Case {
        rule: "prefixes of one instance do not overlap",
        before: "{kind: IPPrefix, metadata: {name: one-a}, spec: {prefix: 10.1.0.0/24, networkInstance: {name: one}}}",
        admits: "{kind: IPPrefix, metadata: {name: one-b}, spec: {prefix: 10.1.1.0/24, networkInstance: {name: one}}}",
        refuses: "{kind: IPPrefix, metadata: {name: one-c}, spec: {prefix: 10.1.0.128/25, networkInstance: {name: one}}}",
        code: "OverlappingPrefixes",
    },
    Case {
        rule: "prefixes of two instances do not overlap, unless both are isolated",
        before: "{kind: NetworkInstance, metadata: {name: two-a, annotations: {mooring.dev/isolated: 'true'}}, spec: {prefixes: [{prefix: 10.2.0.0/16}]}}",
        admits: "{kind: NetworkInstance, metadata: {name: two-b, annotations: {mooring.dev/isolated: 'true'}}, spec: {prefixes: [{prefix: 10.2.0.0/16}]}}",
        refuses: "{kind: NetworkInstance, metadata: {name: two-c}, spec: {prefixes: [{prefix: 10.2.4.0/24}]}}",
        code: "OverlappingPrefixes",
    },
    Case {
        rule: "a network does not leave its holders",
        before: "{kind: NetworkInstance, metadata: {name: three}, spec: {prefixes: [{prefix: 10.3.0.0/24}, {prefix: 10.3.1.0/24}]}}",
        admits: "{kind: NetworkInstance, metadata: {name: three}, spec: {prefixes: [{prefix: 10.3.0.0/24}]}}",
        refuses: "{kind: NetworkInstance, metadata: {name: three}, spec: {prefixes: [{prefix: 10.3.1.0/24}]}}",
        code: "PoolChangeRefused",
    },
    Case {
        rule: "a claim asks for an address that lies in a prefix",
        before: "{kind: IPPrefix, metadata: {name: four-a}, spec: {prefix: 10.4.0.0/24, networkInstance: {name: four}}}",
        admits: "{kind: IPClaim, metadata: {name: four-b}, spec: {kind: network, networkInstance: {name: four}, prefix: 10.4.0.9/24}}",
        refuses: "{kind: IPClaim, metadata: {name: four-c}, spec: {kind: network, networkInstance: {name: four}, prefix: 10.44.0.9/24}}",
        code: "AddressOutsidePrefix",
    },
    Case {
        rule: "a claim asks for a block that fits a prefix",
        before: "{kind: IPPrefix, metadata: {name: five-a}, spec: {prefix: 10.5.0.0/24, kind: pool, networkInstance: {name: five}}}",
        admits: "{kind: IPClaim, metadata: {name: five-b}, spec: {kind: pool, networkInstance: {name: five}, createPrefix: true, prefixLength: 28}}",
        refuses: "{kind: IPClaim, metadata: {name: five-c}, spec: {kind: pool, networkInstance: {name: five}, createPrefix: true, prefixLength: 20}}",
        code: "NoMatchingPrefix",
    },
    Case {
        rule: "a prefix lies in a prefix of its instance",
        before: "{kind: NetworkInstance, metadata: {name: six}, spec: {prefixes: [{prefix: 10.6.0.0/16}]}}",
        admits: "{kind: IPPrefix, metadata: {name: six-b}, spec: {prefix: 10.6.1.0/24, networkInstance: {name: six}}}",
        refuses: "{kind: IPPrefix, metadata: {name: six-c}, spec: {prefix: 10.66.1.0/24, networkInstance: {name: six}}}",
        code: "PrefixOutsideInstance",
    },
    Case {
        rule: "ranges lie in their prefix",
        before: "{kind: NetworkInstance, metadata: {name: seven}, spec: {prefixes: [{prefix: 10.7.0.0/16}]}}",
        admits: "{kind: IPPrefix, metadata: {name: seven-b}, spec: {prefix: 10.7.1.0/24, networkInstance: {name: seven}, ranges: [10.7.1.10-10.7.1.20]}}",
        refuses: "{kind: IPPrefix, metadata: {name: seven-c}, spec: {prefix: 10.7.2.0/24, networkInstance: {name: seven}, ranges: [10.7.1.30-10.7.1.40]}}",
        code: "InvalidAnnotation",
    },
    Case {
        rule: "exclusions lie in their prefix",
        before: "{kind: NetworkInstance, metadata: {name: eight}, spec: {prefixes: [{prefix: 10.8.0.0/16}]}}",
        admits: "{kind: IPPrefix, metadata: {name: eight-b}, spec: {prefix: 10.8.1.0/24, networkInstance: {name: eight}, exclude: [10.8.1.10-10.8.1.20]}}",
        refuses: "{kind: IPPrefix, metadata: {name: eight-c}, spec: {prefix: 10.8.2.0/24, networkInstance: {name: eight}, exclude: [10.8.1.30]}}",
        code: "InvalidAnnotation",
    },
    Case {
        rule: "allocations of an annotation lie in their prefix",
        before: "{kind: NetworkInstance, metadata: {name: nine}, spec: {prefixes: [{prefix: 10.9.0.0/16}]}}",
        admits: "{kind: IPPrefix, metadata: {name: nine-b, annotations: {mooring.dev/allocations: 10.9.1.5=a}}, spec: {prefix: 10.9.1.0/24, networkInstance: {name: nine}}}",
        refuses: "{kind: IPPrefix, metadata: {name: nine-c, annotations: {mooring.dev/allocations: 10.9.1.6=b}}, spec: {prefix: 10.9.2.0/24, networkInstance: {name: nine}}}",
        code: "InvalidField",
    },
    Case {
        rule: "a field and its twin agree",
        before: "{kind: NetworkInstance, metadata: {name: ten}, spec: {prefixes: [{prefix: 10.10.0.0/16}]}}",
        admits: "{kind: IPPrefix, metadata: {name: ten-b, annotations: {mooring.dev/ranges: 10.10.1.10}}, spec: {prefix: 10.10.1.0/24, networkInstance: {name: ten}, ranges: [10.10.1.10]}}",
        refuses: "{kind: IPPrefix, metadata: {name: ten-c, annotations: {mooring.dev/ranges: 10.10.2.11}}, spec: {prefix: 10.10.2.0/24, networkInstance: {name: ten}, ranges: [10.10.2.10]}}",
        code: "InvalidAnnotation",
    },
    Case {
        rule: "a claim asks for an address that may be handed out",
        before: "{kind: IPPrefix, metadata: {name: eleven-a}, spec: {prefix: 10.11.0.0/24, networkInstance: {name: eleven}}}",
        admits: "{kind: IPClaim, metadata: {name: eleven-b}, spec: {kind: network, networkInstance: {name: eleven}, prefix: 10.11.0.9/24}}",
        refuses: "{kind: IPClaim, metadata: {name: eleven-c}, spec: {kind: network, networkInstance: {name: eleven}, prefix: 10.11.0.1/24}}",
        code: "AddressNotUsable",
    },
    Case {
        rule: "a claim has a pool with an address to hand out",
        before: "{kind: IPPrefix, metadata: {name: twelve-a}, spec: {prefix: 10.12.0.0/24, networkInstance: {name: twelve}, ranges: [10.12.0.1]}}",
        admits: "{kind: IPClaim, metadata: {name: twelve-b}, spec: {kind: network, networkInstance: {name: eleven}}}",
        refuses: "{kind: IPClaim, metadata: {name: twelve-c}, spec: {kind: network, networkInstance: {name: twelve}}}",
        code: "PoolExhausted",
    },
];

/// The older group has a kind of this name too.
const PREFIXES: &str = "ipprefixes.ipam.resource.nephio.org";

fn object(part: &str) -> String {
    format!(
        "{{apiVersion: ipam.resource.nephio.org/v1alpha1, {}",
        &part[1..]
    )
}

/// A server with the webhook beside it, and the webhook.
fn start() -> Option<(Cluster, Controller)> {
    let cluster = Cluster::own()?;
    let port = free_port().unwrap();
    cluster.create(
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        &configuration(port),
    );
    let listen = format!("127.0.0.1:{port}");
    let args = ["--webhook-listen", &listen, "--webhook-names", "127.0.0.1"];
    let controller = Controller::start(&cluster, &["webhook"], &args);
    Some((cluster, controller))
}

/// Whether what a case refuses is refused with its code; what was said where not.
fn refused(cluster: &Cluster, case: &Case) -> Result<(), String> {
    let args = ["apply", "--dry-run=server", "-f", "-"];
    let said = cluster.plane().kubectl_stdin(&args, &object(case.refuses));
    if said.code == Some(1) && said.stderr.contains(case.code) {
        return Ok(());
    }
    Err(format!("{}{}", said.stdout, said.stderr))
}

fn configuration(port: u16) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "mooring-webhook" },
        "webhooks": [{
            "name": "pools.mooring.dev",
            "clientConfig": { "url": format!("https://127.0.0.1:{port}/validate") },
            "rules": [{
                "apiGroups": ["ipam.resource.nephio.org", "ipam.nephio.org"],
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE", "DELETE"],
                "resources": ["networkinstances", "ipprefixes", "ipclaims"],
            }],
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 5,
        }],
    })
}

/// Somebody has an address of an instance.
fn hold(cluster: &Cluster, name: &str, cidr: &str, address: &str) {
    let store = KubeStore::from_kubeconfig(cluster.kubeconfig(), KubeOptions::default()).unwrap();
    let instance = InstanceKey::new("default", name);
    let origin =
        mooring_api::ObjectRef::new("ipam.resource.nephio.org/v1alpha1", "NetworkInstance", name);
    let prefix = Prefix {
        origin,
        field: "spec.prefix".to_owned(),
        instance: instance.clone(),
        cidr: cidr.parse().unwrap(),
        kind: Kind::Network,
        labels: std::collections::BTreeMap::new(),
        gateway: None,
        ranges: Vec::new(),
        exclude: Vec::new(),
        cool_down: mooring_api::Span(0),
        drain: false,
        kept: Vec::new(),
    };
    let claim = Claim {
        holder: Holder::outside("router", "lan", Family::V4),
        instance: instance.clone(),
        kind: Kind::Network,
        want: Want::Address,
        selector: mooring_api::Selector::default(),
        fixed: Some(address.parse().unwrap()),
        before: None,
        names: Vec::new(),
        order: Order::LowestFirst,
    };
    let key = mooring_ipam::Instance {
        origin: mooring_api::ObjectRef::new(
            "ipam.resource.nephio.org/v1alpha1",
            "NetworkInstance",
            name,
        ),
        key: instance.clone(),
        isolated: false,
        aggregates: Vec::new(),
    };
    let pools = Pools {
        instances: std::collections::BTreeMap::from([(instance, key)]),
        prefixes: vec![prefix],
    };
    store
        .take_now(&pools, &claim, None, Time(1_800_000_000))
        .unwrap()
        .unwrap();
}

#[test]
fn every_rule_of_the_webhook_admits_and_refuses_as_its_case_says() {
    let Some((cluster, mut controller)) = start() else {
        return;
    };
    let root = mooring_testkit::workspace_root();
    cluster.install(&root.join("deploy/chart/mooring/files/alias-crds"));
    for case in &CASES {
        cluster.apply(&object(case.before));
    }
    hold(&cluster, "three", "10.3.0.0/24", "10.3.0.7/24");
    hold(&cluster, "four", "10.4.0.0/24", "10.4.0.7/24");
    for case in &CASES {
        // The webhook's own watch may be a moment behind: it then admits, which an `apply` of the same makes good.
        until(case.rule, || {
            refused(&cluster, case).map_err(|said| format!("{said}\n{}", controller.log()))
        });
        let said = cluster.try_apply(&object(case.admits));
        assert_eq!(said.code, Some(0), "{}: {}", case.rule, said.stderr);
    }
    // A deletion is a change too.
    let gone = cluster.kubectl(&[
        "delete",
        "networkinstances.ipam.resource.nephio.org",
        "three",
    ]);
    assert!(gone.stderr.contains("PoolChangeRefused"), "{}", gone.stderr);
    let gone = cluster.kubectl(&["delete", PREFIXES, "four-a"]);
    assert!(gone.stderr.contains("PoolChangeRefused"), "{}", gone.stderr);
    cluster.kubectl(&["delete", PREFIXES, "one-a"]).ok();
    let counted = controller.metric(
        "mooring_findings_total",
        &[("outcome", "OverlappingPrefixes")],
    );
    assert!(counted.is_some_and(|n| n >= 2.0), "{counted:?}");

    // Pools of the older group are judged too, and judged against.
    let prefix = |name: &str, cidr: &str| {
        object(&format!(
            "{{kind: IPPrefix, metadata: {{name: {name}}}, spec: {{prefix: {cidr}, networkInstance: {{name: one}}}}}}"
        ))
    };
    let older = |text: &str| text.replace("ipam.resource.nephio.org", "ipam.nephio.org");
    cluster.apply(&older(&prefix("old", "10.1.9.0/24")));
    for over in [
        prefix("new", "10.1.9.0/25"),
        older(&prefix("older", "10.1.9.0/25")),
        older(&prefix("older", "10.1.1.64/26")),
    ] {
        until("overlaps across the groups are refused", || {
            let args = ["apply", "--dry-run=server", "-f", "-"];
            let said = cluster.plane().kubectl_stdin(&args, &over);
            let is_refused = said.stderr.contains("OverlappingPrefixes");
            is_refused.then_some(()).ok_or(format!("{over}: {said:?}"))
        });
    }

    // Beside another controller of pools: what is not handed to us is not ours to judge, nor judged against.
    crate::ipam::install_backend(&cluster);
    let over = |label: &str| {
        object(&format!(
            "{{kind: IPPrefix, metadata: {{name: one-f{label}}}, spec: {{prefix: 10.1.1.64/26, networkInstance: {{name: one}}}}}}"
        ))
    };
    let dry = |text: &str| {
        let args = ["apply", "--dry-run=server", "-f", "-"];
        cluster.plane().kubectl_stdin(&args, text)
    };
    until("theirs is admitted", || {
        let said = dry(&over(""));
        (said.code == Some(0)).then_some(()).ok_or(said.stderr)
    });
    let label = ", labels: {mooring.dev/managed: \"true\"}";
    let handed = json!({ "metadata": { "labels": { "mooring.dev/managed": "true" } } });
    let other = "/apis/ipam.resource.nephio.org/v1alpha1/namespaces/default/ipprefixes/one-b";
    cluster.merge(other, &handed);
    until("ours beside ours is refused", || {
        let said = dry(&over(label));
        let refused = said.stderr.contains("OverlappingPrefixes");
        refused.then_some(()).ok_or(said.stderr)
    });

    // Unreachable: what only the webhook sees passes, what CEL sees does not.
    controller.kill();
    let over = object(
        "{kind: IPPrefix, metadata: {name: one-d}, spec: {prefix: 10.1.1.128/25, networkInstance: {name: one}}}",
    );
    cluster.apply(&over);
    let wrong = object(
        "{kind: IPPrefix, metadata: {name: one-e}, spec: {prefix: ten, networkInstance: {name: one}}}",
    );
    let said = cluster.try_apply(&wrong);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert!(
        said.stderr
            .contains("must be an address with its subnet length"),
        "{}",
        said.stderr
    );
}

#[test]
fn a_certificate_that_is_due_is_replaced_and_trusted_before_it_is_served() {
    let Some((cluster, controller)) = start() else {
        return;
    };
    let part = |key: &str| cluster.get(SECRET).unwrap()["data"][key].clone();
    let first = part("tls.crt");
    assert!(first.is_string());
    let due = json!({ "metadata": { "annotations": { "mooring.dev/renew-at": "0" } } });
    cluster.merge(SECRET, &due);
    // Looked at twice a minute; a restart looks at once.
    drop(controller);
    let configuration =
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/mooring-webhook";
    let url = cluster.get(configuration).unwrap()["webhooks"][0]["clientConfig"]["url"].clone();
    let listen = url
        .as_str()
        .unwrap()
        .trim_start_matches("https://")
        .trim_end_matches("/validate")
        .to_owned();
    let args = ["--webhook-listen", &listen, "--webhook-names", "127.0.0.1"];
    let controller = Controller::start(&cluster, &["webhook"], &args);
    assert_ne!(part("tls.crt"), first);
    assert_eq!(part("previous.crt"), first);
    cluster.apply(&object(CASES[0].before));
    until("the new certificate is trusted and served", || {
        refused(&cluster, &CASES[0]).map_err(|said| format!("{said}\n{}", controller.log()))
    });
    let secrets = controller.log();
    assert!(!secrets.contains("PRIVATE KEY"), "the key is in the log");
}

#[test]
fn a_certificate_from_files_is_served_and_who_filled_the_bundle_is_left_alone() {
    let Some(cluster) = Cluster::own() else {
        return;
    };
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(dir.path().join(name), text).unwrap();
    write("tls.crt", made.cert.pem());
    write("tls.key", made.signing_key.serialize_pem());
    let port = free_port().unwrap();
    let mut wanted = configuration(port);
    let bundle = k8s_openapi::ByteString(made.cert.pem().into_bytes());
    wanted["webhooks"][0]["clientConfig"]["caBundle"] = json!(bundle);
    let list = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let before = cluster.create(list, &wanted);
    let listen = format!("127.0.0.1:{port}");
    let files = dir.path().to_str().unwrap();
    let args = ["--webhook-listen", &listen, "--webhook-certificate", files];
    let controller = Controller::start(&cluster, &["webhook"], &args);
    cluster.apply(&object(CASES[0].before));
    until("the certificate of the files is served", || {
        refused(&cluster, &CASES[0]).map_err(|said| format!("{said}\n{}", controller.log()))
    });
    assert!(cluster.get(SECRET).is_none(), "no certificate is made");
    let after = cluster.get(&format!("{list}/mooring-webhook")).unwrap();
    assert_eq!(
        after["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
}
