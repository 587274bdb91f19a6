//! What people get wrong, and what they are told.

use mooring_api::kinds::{check, check_update};
use mooring_api::{Code, Finding, Severity};

use crate::yaml;

fn interface(spec: &str) -> serde_json::Value {
    yaml(&format!(
        "{{apiVersion: req.nephio.org/v1alpha1, kind: Interface, metadata: {{name: n3, namespace: upf}}, spec: {spec}}}"
    ))
}

fn only(mut findings: Vec<Finding>) -> Finding {
    assert_eq!(findings.len(), 1, "{findings:#?}");
    findings.remove(0)
}

#[test]
fn a_slip_in_a_field_name_names_the_field_that_was_meant() {
    let found = only(check(&interface(
        "{cniType: sriov, sriovSpce: {pfName: ens4}}",
    )));
    assert_eq!(found.code, Code::UnknownField);
    assert_eq!(found.severity, Severity::Error);
    assert_eq!(found.field.as_deref(), Some("spec.sriovSpce"));
    assert_eq!(found.help, "did you mean spec.sriovSpec?");
    let object = found.object.unwrap();
    assert_eq!(
        (object.namespace.as_str(), object.name.as_str()),
        ("upf", "n3")
    );
}

#[test]
fn a_field_one_level_off_is_pointed_home() {
    let found = only(check(&interface("{cniType: sriov, pfName: ens4}")));
    assert_eq!(found.help, "did you mean spec.sriovSpec.pfName?");
}

#[test]
fn a_word_that_is_nowhere_near_is_refused_with_what_is_known() {
    let found = only(check(&interface("{colour: blue}")));
    assert_eq!(found.severity, Severity::Error);
    assert!(found.help.contains("cniType"), "{}", found.help);
}

#[test]
fn vlan_0_and_4095_are_told_1_to_4094() {
    for id in ["0", "4095", "-1", "70000"] {
        let found = only(check(&interface(&format!(
            "{{cniType: macvlan, vlan: {id}}}"
        ))));
        assert_eq!(found.field.as_deref(), Some("spec.vlan"));
        assert!(found.message.contains("1 to 4094"), "{}", found.message);
    }
}

#[test]
fn types_enums_patterns_and_missing_fields_are_told_with_their_path() {
    let nic = |nic: &str| {
        yaml(&format!(
            "{{apiVersion: infra.nephio.org/v1alpha1, kind: WorkloadCluster, metadata: {{name: edge}}, \
             spec: {{networkInterfaces: [{nic}]}}}}"
        ))
    };
    let table = [
        (
            interface("{mtu: \"1500\"}"),
            "spec.mtu",
            "without quotes: 1500",
        ),
        (interface("{mtu: 1500.5}"), "spec.mtu", ""),
        (interface("{mtu: 10}"), "spec.mtu", ""),
        (
            interface("{cniType: mcvlan}"),
            "spec.cniType",
            "did you mean macvlan?",
        ),
        (
            interface("{ipFamilyPolicy: dual}"),
            "spec.ipFamilyPolicy",
            "",
        ),
        (
            interface("{networkInstance: vpc-ran}"),
            "spec.networkInstance",
            "`name: vpc-ran`",
        ),
        (interface("{workload: upf}"), "spec.workload", ""),
        (
            interface("{cniType: sriov, sriovSpec: {}}"),
            "spec.sriovSpec.pfName",
            "",
        ),
        (
            interface("{cniType: sriov, sriovSpec: {pfName: a/b}}"),
            "spec.sriovSpec.pfName",
            "",
        ),
        (interface("[]"), "spec", ""),
        (interface("null"), "", ""),
        (nic("{name: 4}"), "spec.networkInterfaces[0].name", "\"4\""),
        (
            nic("{name: ens3, sriovEnabled: \"true\"}"),
            "spec.networkInterfaces[0].sriovEnabled",
            "without quotes",
        ),
        (
            nic("{name: ens3}, {cni: macvlan}"),
            "spec.networkInterfaces[1].name",
            "",
        ),
        (
            nic("{name: ens3, resourceName: ens3}"),
            "spec.networkInterfaces[0].resourceName",
            "",
        ),
    ];
    for (object, field, help) in table {
        let findings = check(&object);
        if field.is_empty() {
            assert!(findings.is_empty(), "{findings:#?}");
            continue;
        }
        let found = only(findings);
        assert_eq!(found.code, Code::InvalidField, "{found}");
        assert_eq!(found.field.as_deref(), Some(field), "{found}");
        assert!(found.message.starts_with(field), "{found}");
        assert!(found.help.contains(help), "{found}: {}", found.help);
    }
}

#[test]
fn metadata_needs_a_name_and_quoted_annotations() {
    let object = |metadata: &str| {
        yaml(&format!(
            "{{apiVersion: req.nephio.org/v1alpha1, kind: Interface, metadata: {metadata}, spec: {{}}}}"
        ))
    };
    let table = [
        ("{}", "metadata.name"),
        ("null", "metadata"),
        ("{name: 3}", "metadata.name"),
        (
            "{name: n3, annotations: {config.kubernetes.io/local-config: true}}",
            "metadata.annotations[config.kubernetes.io/local-config]",
        ),
        ("{name: n3, labels: [a]}", "metadata.labels"),
    ];
    for (metadata, field) in table {
        assert_eq!(only(check(&object(metadata))).field.as_deref(), Some(field));
    }
    assert!(check(&object("{generateName: n-}")).is_empty());
    assert!(
        check(&object(
            "{name: n3, creationTimestamp: null, labels: {a: b}}"
        ))
        .is_empty()
    );
}

#[test]
fn a_selector_is_bare_or_full_and_never_both() {
    let claim = |selector: &str| {
        yaml(&format!(
            "{{apiVersion: ipam.nephio.org/v1alpha1, kind: IPClaim, metadata: {{name: n2}}, \
             spec: {{networkInstance: {{name: vpc}}, selector: {selector}}}}}"
        ))
    };
    assert!(check(&claim("{nephio.org/network-name: n2}")).is_empty());
    assert!(check(&claim("{matchLabels: {nephio.org/network-name: n2}}")).is_empty());
    let slip = only(check(&claim("{matchLabel: {nephio.org/network-name: n2}}")));
    assert_eq!(slip.field.as_deref(), Some("spec.selector[matchLabel]"));
    let both = only(check(&claim(
        "{matchLabels: {a: b}, nephio.org/network-name: n2}",
    )));
    assert_eq!(
        both.field.as_deref(),
        Some("spec.selector.nephio.org/network-name")
    );
    let number = only(check(&claim("{index: 4}")));
    assert_eq!(number.help, "write it in quotes: \"4\"");
}

#[test]
fn an_object_of_another_kind_is_not_ours() {
    for other in [
        "{apiVersion: v1, kind: Pod, nonsense: 1}",
        "{apiVersion: req.nephio.org/v1alpha1, kind: Something, spec: 3}",
        "{apiVersion: 7, kind: [], metadata: x}",
        "[1, 2]",
        "text",
    ] {
        assert!(check(&yaml(other)).is_empty(), "{other}");
    }
}

#[test]
fn a_change_is_checked_against_the_old_object() {
    let claim = |name: &str| {
        yaml(&format!(
            "{{apiVersion: ipam.resource.nephio.org/v1alpha1, kind: IPClaim, metadata: {{name: n2}}, \
             spec: {{networkInstance: {{name: {name}}}}}}}"
        ))
    };
    assert!(check_update(&claim("a"), &claim("a")).is_empty());
    let found = only(check_update(&claim("a"), &claim("b")));
    assert_eq!(found.field.as_deref(), Some("spec.networkInstance"));
    assert!(found.help.contains("new IPClaim"), "{}", found.help);
}

/// Any value in any place gives findings or none, and never a panic.
#[test]
fn values_of_every_type_in_every_place_are_survived() {
    let values: Vec<serde_json::Value> = [
        "null",
        "true",
        "-7",
        "18446744073709551615",
        "1e300",
        "\"\"",
        "\"text\"",
        "[]",
        "[null]",
        "[[{}]]",
        "{}",
        "{\"name\": null}",
        "{\"a\": {\"b\": 1}}",
    ]
    .iter()
    .map(|t| serde_json::from_str(t).unwrap())
    .collect();
    fn places(schema: &serde_json::Value, at: Vec<String>, found: &mut Vec<Vec<String>>) {
        found.push(at.clone());
        for (name, child) in schema
            .get("properties")
            .and_then(|p| p.as_object())
            .into_iter()
            .flatten()
        {
            places(child, [at.clone(), vec![name.clone()]].concat(), found);
        }
        if let Some(items) = schema.get("items") {
            places(items, [at.clone(), vec!["0".to_owned()]].concat(), found);
        }
    }
    let mut tried = 0;
    for kind in mooring_api::kinds::all() {
        let mut found = Vec::new();
        places(kind.schema(), Vec::new(), &mut found);
        for place in found {
            for value in &values {
                let nested =
                    place
                        .iter()
                        .rev()
                        .fold(value.clone(), |inner, step| match step.as_str() {
                            "0" => serde_json::json!([inner]),
                            name => serde_json::json!({ name: inner }),
                        });
                let mut object = if nested.is_object() {
                    nested
                } else {
                    serde_json::json!({})
                };
                if place.len() != 1 || place[0] != "apiVersion" && place[0] != "kind" {
                    object["apiVersion"] = format!("{}/{}", kind.group(), kind.version()).into();
                    object["kind"] = kind.kind().into();
                }
                check_update(&object, &object);
                tried += 1;
            }
        }
    }
    assert!(tried > 3000, "only {tried}");
}

fn variant(spec: &str) -> serde_json::Value {
    yaml(&format!(
        "{{apiVersion: config.porch.kpt.dev/v1alpha1, kind: PackageVariant, metadata: {{name: upf}}, spec: {spec}}}"
    ))
}

fn variant_set(spec: &str) -> serde_json::Value {
    yaml(&format!(
        "{{apiVersion: config.porch.kpt.dev/v1alpha2, kind: PackageVariantSet, metadata: {{name: upf}}, spec: {spec}}}"
    ))
}

#[test]
fn a_variant_names_what_it_comes_from_and_where_it_goes() {
    let up = "upstream: {repo: bp, package: upf}";
    let down = "downstream: {repo: edge01, package: upf}";
    assert_eq!(check(&variant(&format!("{{{up}, {down}}}"))), []);
    let cases = [
        (format!("{{{down}}}"), "spec.upstream"),
        (format!("{{{up}}}"), "spec.downstream"),
        (
            format!("{{upstream: {{repo: bp}}, {down}}}"),
            "spec.upstream.package",
        ),
        (
            format!("{{upstream: {{package: upf}}, {down}}}"),
            "spec.upstream.repo",
        ),
        (
            format!("{{upstream: {{repo: '', package: upf}}, {down}}}"),
            "spec.upstream.repo",
        ),
        (
            format!("{{upstream: {{repo: bp, package: upf, revision: v1}}, {down}}}"),
            "spec.upstream.revision",
        ),
        (
            format!("{{{up}, downstream: {{repo: edge01}}}}"),
            "spec.downstream.package",
        ),
        (
            format!("{{{up}, downstream: {{package: upf}}}}"),
            "spec.downstream.repo",
        ),
        (
            format!("{{{up}, {down}, adoptionPolicy: adoptAll}}"),
            "spec.adoptionPolicy",
        ),
        (
            format!("{{{up}, {down}, deletionPolicy: keep}}"),
            "spec.deletionPolicy",
        ),
        (
            format!("{{{up}, {down}, injectors: [{{kind: WorkloadCluster}}]}}"),
            "spec.injectors[0].name",
        ),
        (
            format!("{{{up}, {down}, injectors: [{{name: ''}}]}}"),
            "spec.injectors[0].name",
        ),
    ];
    for (spec, field) in cases {
        let found = only(check(&variant(&spec)));
        assert_eq!(found.field.as_deref(), Some(field), "{spec}");
        assert_eq!(found.code, Code::InvalidField, "{spec}");
    }
}

#[test]
fn a_set_of_variants_is_told_which_target_and_which_field() {
    let up = "upstream: {repo: bp, package: upf}";
    let target =
        |target: &str| format!("{{{up}, targets: [{{repositories: [{{name: a}}]}}, {target}]}}");
    assert_eq!(
        check(&variant_set(&target(
            "{repositorySelector: {matchLabels: {site: a}}}"
        ))),
        []
    );
    let cases = [
        (
            "{targets: [{repositorySelector: {}}]}".to_owned(),
            "spec.upstream",
        ),
        (format!("{{{up}}}"), "spec.targets"),
        (
            target("{repositories: [{packageNames: [a]}]}"),
            "spec.targets[1].repositories[0].name",
        ),
        (
            target("{repositories: [{name: ''}]}"),
            "spec.targets[1].repositories[0].name",
        ),
        (
            target("{repositories: [{name: a, packageNames: [a, '']}]}"),
            "spec.targets[1].repositories[0].packageNames[1]",
        ),
        (
            target("{objectSelector: {kind: WorkloadCluster}}"),
            "spec.targets[1].objectSelector.apiVersion",
        ),
        (
            target("{objectSelector: {apiVersion: v1, kind: ''}}"),
            "spec.targets[1].objectSelector.kind",
        ),
        (
            target("{repositorySelector: {}, template: {adoptionPolicy: all}}"),
            "spec.targets[1].template.adoptionPolicy",
        ),
        (
            target("{repositorySelector: {}, template: {deletionPolicy: all}}"),
            "spec.targets[1].template.deletionPolicy",
        ),
    ];
    for (spec, field) in cases {
        let found = only(check(&variant_set(&spec)));
        assert_eq!(found.field.as_deref(), Some(field), "{spec}");
    }
}
