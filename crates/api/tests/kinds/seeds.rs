//! The forms that the seeds write, as objects that pass and as structs that hold what was written.

use mooring_api::kinds::nephio::{infra, ipam, req};
use mooring_api::kinds::{check, kpt, read};
use mooring_testkit::oracles;
use serde::de::DeserializeOwned;

use crate::{documents, yaml};

fn taken<T: DeserializeOwned>(text: &str) -> T {
    let object = yaml(text);
    assert_eq!(check(&object), [], "{text}");
    read(&object).unwrap()
}

#[test]
fn the_cluster_of_an_allocation_is_read_from_both_places() {
    let prefix: ipam::IPPrefix = taken(
        "
apiVersion: ipam.nephio.org/v1alpha1
kind: IPPrefix
metadata:
  name: ran-n2-pool
spec:
  prefix: 192.168.100.0/24
  allocations:
  - prefix: 192.168.100.10/28
    claimRef:
      name: my-ran-deployment-n2
      cluster: my-ran
  - prefix: 192.168.100.100/28
    claimRef:
      name: my-core-deployment-n2
    cluster: my-core
",
    );
    let clusters: Vec<_> = prefix
        .spec
        .allocations
        .iter()
        .map(ipam::Allocation::cluster)
        .collect();
    assert_eq!(clusters, [Some("my-ran"), Some("my-core")]);
    assert_eq!(prefix.spec.kind, ipam::PrefixKind::Network);
}

#[test]
fn the_kinds_of_seed_001_pass() {
    let instance: ipam::NetworkInstance = taken(
        "{apiVersion: ipam.nephio.org/v1alpha1, kind: NetworkInstance, metadata: {name: vpc-ran},
          spec: {topology: layer3, prefixes: [{prefix: 192.168.100.0/24}]}}",
    );
    assert_eq!(instance.spec.topology.as_deref(), Some("layer3"));
    let claim: ipam::IPClaim = taken(
        "{apiVersion: ipam.nephio.org/v1alpha1, kind: IPClaim, metadata: {name: amf-n2-interface, namespace: core-amf},
          spec: {kind: network, networkInstance: {name: vpc-core}, selector: {nephio.org/network-name: n2}}}",
    );
    assert_eq!(
        claim.spec.selector.match_labels["nephio.org/network-name"],
        "n2"
    );
    let given: ipam::IPAllocation = taken(
        "{apiVersion: ipam.nephio.org/v1alpha1, kind: IPAllocation, metadata: {name: amf-n2-interface},
          spec: {kind: network, networkInstance: {name: vpc-core}, prefix: 192.168.100.100/32, gateway: 192.168.100.1}}",
    );
    assert!(given.spec.prefix.is_host());
}

#[test]
fn the_kinds_of_seed_000_pass() {
    let cluster: infra::WorkloadCluster = taken(
        "{apiVersion: infra.nephio.org/v1alpha1, kind: WorkloadCluster, metadata: {name: edge-cluster-1},
          spec: {cnis: [macvlan, sriov], masterInterface: ens3, networkInterfaces: [
            {name: ens3, cni: macvlan}, {name: ens4, cni: sriov, sriovEnabled: true}]}}",
    );
    assert!(cluster.spec.network_interfaces[1].sriov_enabled);
    let members: infra::NetworkInstance = taken(
        "{apiVersion: infra.nephio.org/v1alpha1, kind: NetworkInstance, metadata: {name: vpc-control},
          spec: {name: vpc-control, interfaces: [{kind: interface, selector: {matchLabels: {interface: n2}}}]}}",
    );
    assert!(members.spec.interfaces[0].selector.is_some());
    let n3: req::Interface = taken(
        "{apiVersion: req.nephio.org/v1alpha1, kind: Interface, metadata: {name: n3},
          spec: {networkInstance: {name: vpc-userplane}, cniType: sriov, sriovSpec: {pfName: ens4, vfIndex: 0}}}",
    );
    assert_eq!(n3.spec.sriov_spec.unwrap().pf_name.as_str(), "ens4");
    let claim: ipam::IPClaim = taken(
        "{apiVersion: ipam.resource.nephio.org/v1alpha1, kind: IPClaim, metadata: {name: n2},
          spec: {networkInstance: {name: vpc-control}}, status: {prefix: 10.1.2.20/24, gateway: 10.1.2.1}}",
    );
    let status = claim.status.unwrap();
    assert_eq!(status.gateway, Some("10.1.2.1".parse().unwrap()));
}

#[test]
fn both_spellings_of_a_family_policy_are_one() {
    let policy = |text: &str| -> Option<req::IpFamilyPolicy> {
        let object: req::Interface = taken(&format!(
            "{{apiVersion: req.nephio.org/v1alpha1, kind: Interface, metadata: {{name: n2}}, spec: {{ipFamilyPolicy: {text}}}}}"
        ));
        object.spec.ip_family_policy
    };
    for (one, other) in [
        ("ipv4-only", "ipv4only"),
        ("ipv6-only", "ipv6only"),
        ("dual-stack", "dualstack"),
    ] {
        assert_eq!(policy(one), policy(other));
    }
    assert_eq!(policy("none").unwrap().families(), []);
}

#[test]
fn a_kptfile_keeps_its_gates_and_lets_unknown_keys_through() {
    let kptfile: kpt::Kptfile = serde_json::from_value(yaml(
        "{apiVersion: kpt.dev/v1, kind: Kptfile, metadata: {name: upf}, inventory: {id: 7},
          info: {emails: [a@b], readinessGates: [{conditionType: req.nephio.org.interface.n2}]},
          pipeline: {mutators: [{image: interface-fn:v2.0.0, tag: x}]}}",
    ))
    .unwrap();
    let gates = kptfile.info.unwrap().readiness_gates;
    assert_eq!(gates[0].condition_type, "req.nephio.org.interface.n2");
    let image = &kptfile.pipeline.unwrap().mutators[0].image;
    assert_eq!(image.as_deref(), Some("interface-fn:v2.0.0"));
}

#[test]
fn the_kptfiles_of_the_oracles_are_read() {
    let Some(oracles) = oracles("Kptfiles of real packages") else {
        return;
    };
    let mut found = Vec::new();
    crate::foreign::files(&oracles.join("nephio"), &mut found);
    let (mut read, mut conditions, mut steps) = (0, 0, 0);
    for file in found.iter().filter(|f| f.ends_with("Kptfile")) {
        for document in documents(&std::fs::read_to_string(file).unwrap()).unwrap() {
            let kptfile: kpt::Kptfile = serde_json::from_value(document)
                .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            read += 1;
            conditions += kptfile.status.map_or(0, |s| s.conditions.len());
            steps += kptfile
                .pipeline
                .map_or(0, |p| p.mutators.len() + p.validators.len());
        }
    }
    assert!(
        read > 20 && conditions > 0 && steps > 0,
        "{read} files, {conditions} conditions, {steps} steps"
    );
}
