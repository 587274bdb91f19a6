//! Every CEL rule of every schema admits something and refuses something, by kube-cel itself.
//!
//! A row names a rule by its message, an object that it admits and one that it refuses; where the rule
//! is about a change, `old` is what the object was before. A rule without a row fails.

mod schiff;

use std::collections::BTreeSet;

use kube::core::cel::{CompilationError, Validator, compile_schema};
use mooring_api::kinds::{Kind, all, check, check_update};
use serde_json::{Value, json};

use crate::yaml;

pub(crate) struct Row {
    pub(crate) kind: &'static str,
    pub(crate) message: &'static str,
    pub(crate) admits: &'static str,
    pub(crate) refuses: &'static str,
    pub(crate) old: Option<&'static str>,
}

const fn row(
    kind: &'static str,
    message: &'static str,
    admits: &'static str,
    refuses: &'static str,
) -> Row {
    let old = None;
    Row {
        kind,
        message,
        admits,
        refuses,
        old,
    }
}

const fn change(
    kind: &'static str,
    message: &'static str,
    old: &'static str,
    admits: &'static str,
    refuses: &'static str,
) -> Row {
    let old = Some(old);
    Row {
        kind,
        message,
        admits,
        refuses,
        old,
    }
}

const CLAIM: &str = "ipam.resource.nephio.org/IPClaim";
const PREFIX: &str = "ipam.resource.nephio.org/IPPrefix";
const ALLOCATION: &str = "ipam.resource.nephio.org/IPAllocation";
const INSTANCE: &str = "ipam.resource.nephio.org/NetworkInstance";
const VLAN: &str = "vlan.resource.nephio.org/VLANClaim";
const CLUSTER: &str = "infra.nephio.org/WorkloadCluster";
const NETWORK: &str = "infra.nephio.org/Network";
const MEMBERS: &str = "infra.nephio.org/NetworkInstance";
const INTERFACE: &str = "req.nephio.org/Interface";
const DATA: &str = "req.nephio.org/DataNetwork";
const VARIANT: &str = "config.porch.kpt.dev/PackageVariant";
const SET: &str = "config.porch.kpt.dev/PackageVariantSet";
const LEASE: &str = "mooring.dev/IPLease";
const LEDGER: &str = "mooring.dev/PrefixLedger";

/// The part of an object beside metadata: `spec` unless it begins with `status`.
const ROWS: &[Row] = &[
    // Values that stand in many kinds.
    row(
        INSTANCE,
        "must be a network without host bits",
        "{prefixes: [{prefix: 10.1.2.0/24}, {prefix: '2001:db8::/32'}]}",
        "{prefixes: [{prefix: 10.1.2.1/24}]}",
    ),
    row(
        INSTANCE,
        "must be a network without host bits",
        "{prefixes: [{prefix: 0.0.0.0/0}]}",
        "{prefixes: [{prefix: 10.1.2.0}]}",
    ),
    row(
        PREFIX,
        "must be an address with its subnet length",
        "{prefix: 10.1.2.20/24}",
        "{prefix: 10.1.2.20}",
    ),
    row(
        CLAIM,
        "must be an address with its subnet length",
        "status: {prefix: ''}",
        "status: {prefix: 10.1.2.20}",
    ),
    row(
        CLAIM,
        "must be an address, such as 10.1.2.1",
        "status: {gateway: ''}",
        "status: {gateway: 10.1.2.1/24}",
    ),
    row(
        CLAIM,
        "do not fit the operator",
        "{networkInstance: {name: a}, selector: {matchExpressions: [{key: x, operator: In, values: [v]}, {key: x, operator: Exists}]}}",
        "{networkInstance: {name: a}, selector: {matchExpressions: [{key: x, operator: In}]}}",
    ),
    row(
        NETWORK,
        "do not fit the operator",
        "{topology: t, bridgeDomains: [{name: b, interfaces: [{selector: {matchExpressions: [{key: x, operator: DoesNotExist}]}}]}]}",
        "{topology: t, bridgeDomains: [{name: b, interfaces: [{selector: {matchExpressions: [{key: x, operator: Exists, values: [v]}]}}]}]}",
    ),
    // IPClaim.
    row(
        CLAIM,
        "asks for a prefix without saying how long",
        "{networkInstance: {name: a}, createPrefix: true, prefixLength: 28}",
        "{networkInstance: {name: a}, createPrefix: true}",
    ),
    row(
        CLAIM,
        "asks for a prefix without saying how long",
        "{networkInstance: {name: a}, createPrefix: false}",
        "{networkInstance: {name: a}, kind: pool, createPrefix: true}",
    ),
    row(
        CLAIM,
        "has host bits, but a prefix is asked for",
        "{networkInstance: {name: a}, createPrefix: true, prefix: 10.1.2.0/28}",
        "{networkInstance: {name: a}, createPrefix: true, prefix: 10.1.2.1/28}",
    ),
    row(
        CLAIM,
        "is one address, but a prefix is asked for",
        "{networkInstance: {name: a}, createPrefix: true, prefix: '2001:db8::/64'}",
        "{networkInstance: {name: a}, createPrefix: true, prefix: 10.1.2.1/32}",
    ),
    row(
        CLAIM,
        "is one address, but a prefix is asked for",
        "{networkInstance: {name: a}, prefix: 10.1.2.1/32}",
        "{networkInstance: {name: a}, createPrefix: true, prefix: '2001:db8::1/128'}",
    ),
    row(
        CLAIM,
        "is not of the family that the prefix has; remove addressFamily",
        "{networkInstance: {name: a}, addressFamily: ipv6, prefix: '2001:db8::1/64'}",
        "{networkInstance: {name: a}, addressFamily: ipv6, prefix: 10.1.2.1/24}",
    ),
    row(
        CLAIM,
        "is longer than an IPv4 address; write 32 or less, or addressFamily",
        "{networkInstance: {name: a}, addressFamily: ipv6, prefixLength: 64}",
        "{networkInstance: {name: a}, addressFamily: ipv4, prefixLength: 64}",
    ),
    row(
        CLAIM,
        "and prefix both name an address",
        "{networkInstance: {name: a}, index: 4}",
        "{networkInstance: {name: a}, index: 4, prefix: 10.1.2.4/24}",
    ),
    change(
        CLAIM,
        "cannot change, since its address belongs to the old instance",
        "{networkInstance: {name: a}}",
        "{networkInstance: {name: a}, prefixLength: 28}",
        "{networkInstance: {name: b}}",
    ),
    // IPPrefix and IPAllocation.
    row(
        PREFIX,
        "has host bits, which only kind network may have",
        "{kind: pool, prefix: 10.1.2.0/24}",
        "{kind: pool, prefix: 10.1.2.1/24}",
    ),
    row(
        PREFIX,
        "has an entry outside the prefix",
        "{prefix: 192.168.100.0/24, allocations: [{prefix: 192.168.100.10/28}, {prefix: 192.168.100.9/24}]}",
        "{prefix: 192.168.100.0/24, allocations: [{prefix: 192.168.101.10/28}]}",
    ),
    row(
        PREFIX,
        "has an entry outside the prefix",
        "{prefix: 192.168.100.1/24, allocations: [{prefix: 192.168.100.200/32}]}",
        "{prefix: 192.168.100.0/24, allocations: [{prefix: 192.168.0.0/16}]}",
    ),
    row(
        PREFIX,
        "differs from claimRef.cluster",
        "{prefix: 10.0.0.0/24, allocations: [{prefix: 10.0.0.1/24, cluster: a, claimRef: {name: x, cluster: a}}]}",
        "{prefix: 10.0.0.0/24, allocations: [{prefix: 10.0.0.1/24, cluster: a, claimRef: {name: x, cluster: b}}]}",
    ),
    change(
        PREFIX,
        "cannot change while addresses are taken from it",
        "{prefix: 10.0.0.0/24}",
        "{prefix: 10.0.0.0/24, labels: {a: b}}",
        "{prefix: 10.0.0.0/23}",
    ),
    change(
        PREFIX,
        "cannot change while addresses are taken from it",
        "{prefix: 10.0.0.0/24, networkInstance: {name: a}}",
        "{prefix: 10.0.0.0/24, networkInstance: {name: a}}",
        "{prefix: 10.0.0.0/24, networkInstance: {name: b}}",
    ),
    change(
        PREFIX,
        "cannot change while addresses are taken from it",
        "{prefix: 10.0.0.0/24}",
        "{prefix: 10.0.0.0/24, networkInstance: {name: a}}",
        "{prefix: 10.0.1.0/24}",
    ),
    row(
        ALLOCATION,
        "is not of the family that the prefix has; write a gateway",
        "{networkInstance: {name: a}, prefix: 192.168.100.100/32, gateway: 192.168.100.1}",
        "{networkInstance: {name: a}, prefix: 192.168.100.100/32, gateway: '2001:db8::1'}",
    ),
    row(
        INSTANCE,
        "lists a network twice",
        "{prefixes: [{prefix: 10.0.0.0/8}, {prefix: 10.1.0.0/16}]}",
        "{prefixes: [{prefix: 10.0.0.0/8}, {prefix: 10.0.0.0/8}]}",
    ),
    // VLANClaim.
    row(
        VLAN,
        "is missing; name the VLANIndex",
        "{selector: {a: b}}",
        "{vlanID: 4}",
    ),
    row(
        VLAN,
        "and vlanID both say which VLANs",
        "{vlanIndex: {name: a}, vlanID: 4}",
        "{vlanIndex: {name: a}, vlanID: 4, range: '10'}",
    ),
    row(
        VLAN,
        "lies outside the VLAN ids",
        "{vlanIndex: {name: a}, range: '1:4094'}",
        "{vlanIndex: {name: a}, range: '4000:4095'}",
    ),
    row(
        VLAN,
        "ends before it begins",
        "{vlanIndex: {name: a}, range: '100:199'}",
        "{vlanIndex: {name: a}, range: '199:100'}",
    ),
    change(
        VLAN,
        "cannot change, since its id belongs to the old index",
        "{vlanIndex: {name: a}}",
        "{vlanIndex: {name: a}, labels: {x: v}}",
        "{vlanIndex: {name: b}}",
    ),
    // WorkloadCluster, Network and NetworkInstance of infra.
    row(
        CLUSTER,
        "names a NIC twice",
        "{networkInterfaces: [{name: ens3}, {name: ens4}]}",
        "{networkInterfaces: [{name: ens3}, {name: ens3, cni: sriov}]}",
    ),
    row(
        CLUSTER,
        "overlaps podCIDRs",
        "{podCIDRs: [10.244.0.0/16], serviceCIDRs: [10.96.0.0/12]}",
        "{podCIDRs: [10.96.0.0/16], serviceCIDRs: [10.96.0.0/12]}",
    ),
    row(
        NETWORK,
        "is missing; name the bridge domain",
        "{topology: t, routingTables: [{name: r, interfaces: [{kind: bridgedomain, bridgeDomainName: b}, {interfaceName: e1}]}]}",
        "{topology: t, routingTables: [{name: r, interfaces: [{kind: bridgedomain}]}]}",
    ),
    row(
        MEMBERS,
        "is missing; name the bridge domain",
        "{name: vpc, interfaces: [{kind: interface, selector: {matchLabels: {interface: n2}}}]}",
        "{name: vpc, interfaces: [{kind: bridgedomain}]}",
    ),
    // Interface.
    row(
        INTERFACE,
        "is only for cniType sriov",
        "{cniType: sriov, sriovSpec: {pfName: ens4, vfIndex: 0}}",
        "{cniType: macvlan, sriovSpec: {pfName: ens4}}",
    ),
    row(
        INTERFACE,
        "is only for cniType sriov",
        "{cniType: sriov}",
        "{sriovSpec: {pfName: ens4}}",
    ),
    row(
        INTERFACE,
        "is vlan, but there is no VLAN",
        "{cniType: vlan, attachmentType: vlan}",
        "{cniType: vlan}",
    ),
    row(
        INTERFACE,
        "is given, but attachmentType is none",
        "{cniType: macvlan, vlan: 100, attachmentType: vlan}",
        "{cniType: macvlan, vlan: 100, attachmentType: none}",
    ),
    row(
        INTERFACE,
        "is too small for IPv6",
        "{mtu: 1200, ipFamilyPolicy: ipv4-only}",
        "{mtu: 1200, ipFamilyPolicy: dualstack}",
    ),
    // DataNetwork.
    row(
        DATA,
        "is longer than an IPv4 address; write 32 or less, or ipFamily",
        "{pools: [{name: a, prefixLength: 64, ipFamily: ipv6}]}",
        "{pools: [{name: a, prefixLength: 64}]}",
    ),
    row(
        DATA,
        "names a pool twice",
        "{pools: [{name: a}, {name: b}, {}]}",
        "{pools: [{name: a}, {name: a}]}",
    ),
    // PackageVariant and PackageVariantSet.
    row(
        VARIANT,
        "sets name or package-path",
        "{upstream: {repo: blueprints, package: upf}, downstream: {repo: edge01, package: upf}, packageContext: {data: {region: east}}}",
        "{upstream: {repo: blueprints, package: upf}, downstream: {repo: edge01, package: upf}, packageContext: {data: {package-path: a}}}",
    ),
    row(
        VARIANT,
        "removes name or package-path",
        "{upstream: {repo: blueprints, package: upf}, downstream: {repo: edge01, package: upf}, packageContext: {removeKeys: [region]}}",
        "{upstream: {repo: blueprints, package: upf}, downstream: {repo: edge01, package: upf}, packageContext: {removeKeys: [region, name]}}",
    ),
    row(
        VARIANT,
        "is missing; a variant's function is an image",
        "{upstream: {repo: blueprints, package: upf}, downstream: {repo: edge01, package: upf}, pipeline: {mutators: [{image: set-labels}]}}",
        "{upstream: {repo: blueprints, package: upf}, downstream: {repo: edge01, package: upf}, pipeline: {mutators: [{exec: set-labels}]}}",
    ),
    row(
        VARIANT,
        "has a dot",
        "{upstream: {repo: blueprints, package: upf}, downstream: {repo: edge01, package: upf}, pipeline: {validators: [{image: a, name: check}]}}",
        "{upstream: {repo: blueprints, package: upf}, downstream: {repo: edge01, package: upf}, pipeline: {validators: [{image: a, name: check.this}]}}",
    ),
    row(
        SET,
        "is empty; name at least one target",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {}}]}",
        "{upstream: {repo: blueprints, package: upf}, targets: []}",
    ),
    row(
        SET,
        "must have one of repositories",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositorySelector: {}}, {objectSelector: {apiVersion: v1, kind: ConfigMap}}]}",
        "{upstream: {repo: blueprints, package: upf}, targets: [{template: {}}]}",
    ),
    row(
        SET,
        "must have one of repositories",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {}}]}",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: a}], repositorySelector: {}}]}",
    ),
    row(
        SET,
        "is empty; name a repository",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {}}]}",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: []}]}",
    ),
    row(
        SET,
        "stands beside repo",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {downstream: {repoExpr: target.repo, package: a}}}]}",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {downstream: {repo: a, repoExpr: target.repo}}}]}",
    ),
    row(
        SET,
        "stands beside package",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {downstream: {packageExpr: target.package, repo: a}}}]}",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {downstream: {package: a, packageExpr: target.package}}}]}",
    ),
    row(
        SET,
        "must have one of key and keyExpr",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {labelExprs: [{key: a, valueExpr: target.repo}]}}]}",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {labelExprs: [{key: a, keyExpr: target.repo, value: b}]}}]}",
    ),
    row(
        SET,
        "must have one of key and keyExpr",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {annotationExprs: [{keyExpr: target.repo, value: b}]}}]}",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {annotationExprs: [{value: b}]}}]}",
    ),
    row(
        SET,
        "must have one of value and valueExpr",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {packageContext: {dataExprs: [{key: a, value: b}]}}}]}",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {packageContext: {dataExprs: [{key: a, value: b, valueExpr: target.repo}]}}}]}",
    ),
    row(
        SET,
        "must have one of value and valueExpr",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {pipeline: {mutators: [{image: a, configMapExprs: [{key: a, value: b}]}]}}}]}",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {pipeline: {mutators: [{image: a, configMapExprs: [{key: a}]}]}}}]}",
    ),
    row(
        SET,
        "must have one of name and nameExpr",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {injectors: [{nameExpr: target.repo}, {name: a}]}}]}",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {injectors: [{name: a, nameExpr: target.repo}]}}]}",
    ),
    row(
        SET,
        "must have one of name and nameExpr",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {injectors: [{group: g, name: a}]}}]}",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {injectors: [{group: g}]}}]}",
    ),
    row(
        SET,
        "is missing; a variant's function is an image",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {pipeline: {validators: [{image: a}]}}}]}",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {pipeline: {validators: [{image: ''}]}}}]}",
    ),
    row(
        SET,
        "has a dot",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {pipeline: {mutators: [{image: a, name: b}]}}}]}",
        "{upstream: {repo: blueprints, package: upf}, targets: [{repositories: [{name: edge01}], template: {pipeline: {mutators: [{image: a, name: b.c}]}}}]}",
    ),
    // Leases.
    row(
        LEASE,
        "must be an address, such as 10.1.2.20",
        "{instance: {namespace: default, name: ran}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', address: 'fd00::1', gateway: 'fd00::2'}",
        "{instance: {namespace: default, name: ran}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', address: ten}",
    ),
    row(
        LEASE,
        "and vlan exclude each other; write one of them",
        "{instance: {namespace: default, name: ran}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', vlan: 100}",
        "{instance: {namespace: default, name: ran}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', vlan: 100, address: 10.1.2.20}",
    ),
    row(
        LEASE,
        "reserved needs the transaction and its end; write txn and until",
        "{instance: {namespace: default, name: ran}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', address: 10.1.2.20, state: reserved, txn: '7', until: '2026-01-01T00:00:00Z'}",
        "{instance: {namespace: default, name: ran}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', address: 10.1.2.20, state: reserved, until: '2026-01-01T00:00:00Z'}",
    ),
    row(
        LEASE,
        "cooling needs an end; write until",
        "{instance: {namespace: default, name: ran}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', address: 10.1.2.20, state: cooling, until: '2026-01-01T00:00:00Z'}",
        "{instance: {namespace: default, name: ran}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', address: 10.1.2.20, state: cooling}",
    ),
    change(
        LEASE,
        "of a lease cannot change; delete the lease and make another",
        "{instance: {namespace: default, name: ran}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', address: 10.1.2.20}",
        "{instance: {namespace: default, name: ran}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', address: 10.1.2.20, state: cooling, until: '2026-01-01T00:00:00Z'}",
        "{instance: {namespace: default, name: core}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', address: 10.1.2.20}",
    ),
    change(
        LEASE,
        "of a lease cannot change; its name is made from it",
        "{instance: {namespace: default, name: ran}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', address: 10.1.2.20}",
        "{instance: {namespace: default, name: ran}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', address: 10.1.2.20}",
        "{instance: {namespace: default, name: ran}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', address: 10.1.2.21}",
    ),
    change(
        LEASE,
        "of a lease cannot change; its name says which it is",
        "{instance: {namespace: default, name: ran}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', vlan: 100}",
        "{instance: {namespace: default, name: ran}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', vlan: 100}",
        "{instance: {namespace: default, name: ran}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', vlan: 101}",
    ),
    change(
        LEASE,
        "of a lease cannot change; what passes to another is deleted and made again",
        "{instance: {namespace: default, name: ran}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', address: 10.1.2.20}",
        "{instance: {namespace: default, name: ran}, holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', address: 10.1.2.20}",
        "{instance: {namespace: default, name: ran}, holder: {interface: n6, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', address: 10.1.2.20}",
    ),
    change(
        LEDGER,
        "of a ledger cannot change; its name is made from it",
        "{instance: {namespace: default, name: ran}}",
        "{instance: {namespace: default, name: ran}, leases: [{holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', prefix: 10.1.2.0/24}]}",
        "{instance: {namespace: default, name: core}}",
    ),
    row(
        LEDGER,
        "and range exclude each other; write one of them",
        "{instance: {namespace: default, name: ran}, leases: [{holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', range: 10.1.2.3-10.1.2.9}]}",
        "{instance: {namespace: default, name: ran}, leases: [{holder: {interface: n3, family: ipv4}, takenAt: '2026-01-01T00:00:00Z', range: 10.1.2.3-10.1.2.9, prefix: 10.1.2.0/24}]}",
    ),
];

/// Every row.
pub(crate) fn rows() -> impl Iterator<Item = &'static Row> {
    ROWS.iter().chain(schiff::ROWS)
}

pub(crate) fn kind_of(name: &str) -> &'static Kind {
    let (group, kind) = name.split_once('/').unwrap();
    let is_it = |k: &&Kind| k.group() == group && k.kind() == kind;
    all().iter().find(is_it).unwrap()
}

pub(crate) fn object(kind: &Kind, part: &str) -> Value {
    let mut object = json!({
        "apiVersion": format!("{}/{}", kind.group(), kind.version()), "kind": kind.kind(),
        "metadata": { "name": "x" },
    });
    if let Some(status) = part.strip_prefix("status: ") {
        object["status"] = yaml(status);
        object["spec"] = json!({ "networkInstance": { "name": "a" } });
    } else {
        object["spec"] = yaml(part);
    }
    object
}

/// Rules by message and text, of one schema.
fn rules(schema: &Value, found: &mut BTreeSet<(String, String)>) {
    match schema {
        Value::Object(map) => {
            for rule in map
                .get("x-kubernetes-validations")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                let text = |k: &str| rule[k].as_str().unwrap_or_default().to_owned();
                found.insert((text("message"), text("rule")));
            }
            map.values().for_each(|v| rules(v, found));
        }
        Value::Array(items) => items.iter().for_each(|v| rules(v, found)),
        _ => {}
    }
}

#[test]
fn every_rule_admits_and_refuses_as_its_row_says() {
    let validator = Validator::new();
    let mut refused = BTreeSet::new();
    for row in rows() {
        let kind = kind_of(row.kind);
        let old = row.old.map(|o| object(kind, o));
        let admits = object(kind, row.admits);
        let outcome = validator.validate(kind.schema(), &admits, old.as_ref());
        assert!(
            outcome.is_ok(),
            "{} {}: {:?}",
            row.kind,
            row.admits,
            outcome.err()
        );

        let refuses = object(kind, row.refuses);
        let errors = validator.validate(kind.schema(), &refuses, old.as_ref());
        let errors = errors.expect_err(row.refuses).into_vec();
        let wanted = row.message;
        let hit = errors.iter().filter(|e| e.message.starts_with(wanted));
        let hit: Vec<_> = hit.map(|e| e.rule.clone()).collect();
        assert!(!hit.is_empty(), "{} {}: {errors:?}", row.kind, row.refuses);
        refused.extend(hit);

        // Our own walk says the same, and where.
        let ours = |new: &Value| match &old {
            Some(old) => check_update(old, new),
            None => check(new),
        };
        assert_eq!(ours(&admits), [], "{}", row.admits);
        let (said, _) = wanted.split_once("; ").unwrap_or((wanted, ""));
        let ours = ours(&refuses);
        assert!(
            ours.iter().any(|f| f.message.contains(said)),
            "{}: {ours:?}",
            row.refuses
        );
    }

    let mut known = BTreeSet::new();
    for kind in all() {
        rules(kind.schema(), &mut known);
    }
    let without: Vec<_> = known
        .iter()
        .filter(|(_, rule)| !refused.contains(rule))
        .collect();
    assert!(
        without.is_empty(),
        "rules that no row refuses: {without:#?}"
    );
    println!("{} rules, {} rows", known.len(), rows().count());
}

#[test]
fn every_rule_compiles_and_tells_what_to_do() {
    fn errors(node: &kube::core::cel::CompiledSchema, found: &mut Vec<String>) {
        found.extend(
            node.compilation_errors()
                .into_iter()
                .map(CompilationError::to_string),
        );
        node.properties.values().for_each(|n| errors(n, found));
        node.items.iter().for_each(|n| errors(n, found));
        node.additional_properties
            .iter()
            .for_each(|n| errors(n, found));
    }
    let mut messages = BTreeSet::new();
    for kind in all() {
        let mut found = Vec::new();
        errors(&compile_schema(kind.schema()), &mut found);
        assert!(found.is_empty(), "{}: {found:?}", kind.kind());
        let mut known = BTreeSet::new();
        rules(kind.schema(), &mut known);
        messages.extend(known.into_iter().map(|(message, _)| message));
    }
    for message in messages {
        let tells = message.contains("; ") || message.contains("such as ");
        assert!(tells, "{message:?} does not say what to do");
        assert!(
            !message.contains('\n'),
            "the API server refuses line breaks in {message:?}"
        );
    }
}

/// Both readers of a rule agree on when there is nothing to compare with.
#[test]
fn a_rule_about_a_change_is_silent_at_creation() {
    for row in rows().filter(|r| r.old.is_some()) {
        let kind = kind_of(row.kind);
        let outcome = check(&object(kind, row.refuses));
        assert_eq!(outcome, [], "{}", row.refuses);
    }
}
