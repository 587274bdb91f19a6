//! A port: one interface that a pod is to have, with everything the package says about it. Interfaces
//! make ports, and so do IPClaims that stand alone (seed 001). Every step starts from the ports, so the
//! rules for names, namespaces and network instances live here and nowhere else.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::kinds::nephio::infra::NetworkInstanceSpec;
use mooring_api::kinds::nephio::ipam::IPClaimSpec;
use mooring_api::kinds::nephio::req::{AttachmentType, CniType, InterfaceSpec, SriovSpec};
use mooring_api::{Code, Family, Finding, IfName, ObjectRef, VlanId, annotation, label};
use mooring_ipam::{Holder, InstanceKey, Kind, Pools};
use sha2::{Digest, Sha256};

use crate::bundle::{Bundle, Object, group};
use crate::choices::{self, Carrier, Choices, Flavour};
use crate::cluster::{Cluster, said};
use crate::pools::kind;
use crate::workload;

/// The instance that means the pod network: no claim, no NAD.
const POD_NETWORK: &str = "default";

/// One interface to be.
#[derive(Clone, Debug)]
pub struct Port {
    /// The Interface, or the IPClaim that stands alone.
    pub object: ObjectRef,
    /// Its name: also that of its claim, NAD and conditions.
    pub name: String,
    /// Whether an IPClaim stands for it.
    pub claim_first: bool,
    /// Choices.
    pub choices: Choices,
    /// The network instance; None for the pod network.
    pub instance: Option<InstanceKey>,
    /// What kind of address.
    pub kind: Kind,
    /// `nephio.org/network-name`.
    pub network_name: Option<String>,
    /// Whether a pod gets it as an interface; a loopback or a bare claim is an address only.
    pub attachable: bool,
    /// CNI type. A port that begins with an IPClaim gets the cluster's.
    pub cni: Option<CniType>,
    /// Families, in order.
    pub families: Vec<Family>,
    /// The VLAN that was written.
    pub vlan: Option<VlanId>,
    /// Whether a VLAN is to be claimed.
    pub wants_vlan: bool,
    /// MTU.
    pub mtu: Option<u16>,
    /// SR-IOV.
    pub sriov: Option<SriovSpec>,
    /// The interface's name inside the pod.
    pub pod_name: String,
    /// Namespace of what is made for it.
    pub namespace: String,
    /// The workload it is attached to, by `Kind/name`.
    pub workload: Option<(String, String)>,
}

impl Port {
    /// The IPClaims of the port: name, family, ordinal and, for ranges per node, the node.
    pub fn claims(&self, cluster: &Cluster) -> Vec<ClaimName> {
        if self.claim_first {
            let family = self.families[0];
            return vec![ClaimName {
                name: self.name.clone(),
                family,
                ordinal: 0,
                node: None,
            }];
        }
        let Some(_) = &self.instance else {
            return Vec::new();
        };
        if self.choices.flavour == Flavour::Moor {
            return Vec::new();
        }
        let ranges = self.takes_ranges();
        let count = if ranges { 1 } else { self.choices.addresses };
        let mut claims = Vec::new();
        for node in self.nodes(cluster) {
            for (nth, family) in self.families.iter().enumerate() {
                for ordinal in 0..count {
                    let mut name = self.name.clone();
                    if nth > 0 {
                        name = format!("{name}-{family}");
                    }
                    if ordinal > 0 {
                        name = format!("{name}-{}", ordinal + 1);
                    }
                    if let Some(node) = node {
                        name = format!("{name}-{node}");
                    }
                    claims.push(ClaimName {
                        name,
                        family: *family,
                        ordinal,
                        node: node.cloned(),
                    });
                }
            }
        }
        claims
    }

    /// The nodes that have ranges and NADs of their own; otherwise one that stands for all.
    pub fn nodes<'c>(&self, cluster: &'c Cluster) -> Vec<Option<&'c String>> {
        if self.takes_ranges() && self.choices.per_node {
            cluster.nodes.iter().map(Some).collect()
        } else {
            vec![None]
        }
    }

    /// Whether it gets ranges instead of addresses.
    pub fn takes_ranges(&self) -> bool {
        matches!(
            self.choices.flavour,
            Flavour::HostLocal | Flavour::Whereabouts
        ) && self.attachable
    }

    /// Whether the pod would carry a fixed address: two such pods at once are an outage.
    pub fn is_static(&self) -> bool {
        self.attachable
            && self.instance.is_some()
            && !self.families.is_empty()
            && matches!(self.choices.flavour, Flavour::Static | Flavour::External)
    }

    /// Whether the agent takes its address, under the same identity, when the pod starts.
    pub fn waits_for_pod(&self) -> bool {
        self.instance.is_some() && self.choices.flavour == Flavour::Moor
    }

    /// Whether a lease of this holder is for this port, whatever flavour took it.
    pub fn is_for(&self, holder: &Holder) -> bool {
        let (interface, _node) = holder
            .interface
            .split_once('@')
            .unwrap_or((&holder.interface, ""));
        interface == self.name
            && holder.namespace == self.object.namespace
            && self.families.contains(&holder.family)
            && holder.workload == self.workload_as_written()
    }

    /// `Kind/name` where the Interface says so: part of the identity.
    pub fn workload_as_written(&self) -> String {
        let written = self.choices.workload.as_ref();
        written
            .map(|(kind, name)| format!("{kind}/{name}"))
            .unwrap_or_default()
    }

    /// The NADs' name; `-<node>` is added for ranges per node.
    pub fn nad_name(&self) -> String {
        if let Some(name) = &self.choices.nad_name {
            return name.clone();
        }
        match &self.network_name {
            Some(network) if self.claim_first => format!("{network}-network"),
            _ => self.name.clone(),
        }
    }
}

/// One IPClaim of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimName {
    /// The IPClaim's name.
    pub name: String,
    /// Family.
    pub family: Family,
    /// 0 for the first address of the family.
    pub ordinal: u16,
    /// For ranges per node.
    pub node: Option<String>,
}

/// Every port of the package, in document order.
pub fn read(bundle: &Bundle, pools: &Pools, findings: &mut Vec<Finding>) -> Vec<Port> {
    let around = Around {
        bundle,
        joins: selectors(bundle, findings),
        workloads: workload::all(bundle).collect(),
    };
    let mut ports: Vec<Port> = Vec::new();
    let mut names = BTreeSet::new();
    for object in bundle.all(group::REQ, "Interface") {
        if names.contains(object.name()) {
            findings.push(duplicate(object));
            continue;
        }
        if let Some(port) = from_interface(object, &around, findings) {
            names.insert(object.name());
            ports.push(port);
        }
    }
    for object in bundle.all(group::IPAM, "IPClaim") {
        if object.owner().is_none()
            && !stands_for_one(&names, object.name())
            && let Some(port) = from_claim(object, &around, findings)
        {
            names.insert(object.name());
            ports.push(port);
        }
    }
    for port in &ports {
        check_instance(port, pools, findings);
    }
    check_pod_names(&ports, findings);
    ports
}

/// An IPClaim the user wrote for an Interface's address (`n2`, `n2-ipv6`, `n2-2`) is not a port itself.
fn stands_for_one(ports: &BTreeSet<&str>, claim: &str) -> bool {
    ports.contains(claim)
        || claim.rsplit_once('-').is_some_and(|(name, rest)| {
            ports.contains(name)
                && (rest == "ipv4" || rest == "ipv6" || rest.parse::<u16>().is_ok())
        })
}

fn duplicate(object: &Object) -> Finding {
    Finding::error(
        Code::DuplicateInterface,
        format!(
            "there are two Interfaces named {}; claim, NAD and conditions carry that name",
            object.name()
        ),
    )
    .on(&object.reference())
    .at("metadata.name")
    .help("Give each Interface of the package its own name.")
}

type Joins = Vec<(mooring_api::Selector, String)>;

/// What is the same for every port of a package.
struct Around<'a> {
    bundle: &'a Bundle,
    joins: Joins,
    workloads: Vec<&'a Object>,
}

/// `NetworkInstance.spec.interfaces[].selector`: which Interfaces an instance takes by label.
fn selectors(bundle: &Bundle, findings: &mut Vec<Finding>) -> Joins {
    let mut joins = Vec::new();
    for object in bundle.all(group::INFRA, "NetworkInstance") {
        let spec: NetworkInstanceSpec = match object.spec() {
            Ok(spec) => spec,
            Err(finding) => {
                findings.push(finding);
                continue;
            }
        };
        if let Some(name) = spec.name.as_deref()
            && name != object.name()
        {
            findings.push(
                Finding::error(
                    Code::InstanceNameMismatch,
                    format!("spec.name is {name}, but the object is named {}", object.name()),
                )
                .on(&object.reference())
                .at("spec.name")
                .help("Interfaces and prefixes join by metadata.name. Make the two equal, or remove spec.name."),
            );
        }
        for interface in spec.interfaces {
            if let Some(selector) = interface.selector.filter(|s| !s.is_empty()) {
                joins.push((selector, object.name().to_owned()));
            }
        }
    }
    joins
}

fn from_interface(
    object: &Object,
    around: &Around<'_>,
    findings: &mut Vec<Finding>,
) -> Option<Port> {
    let bundle = around.bundle;
    let spec: InterfaceSpec = match object.spec() {
        Ok(spec) => spec,
        Err(finding) => {
            findings.push(finding);
            return None;
        }
    };
    let reference = object.reference();
    let (namespace, instance) = match &spec.network_instance {
        Some(r) if !r.name.is_empty() => (r.namespace.clone(), r.name.clone()),
        _ => {
            let labels = object.labels();
            let mut joins = around.joins.iter();
            let joined = joins.find(|(selector, _)| selector.matches(&labels));
            let Some((_, name)) = joined else {
                findings.push(
                    Finding::error(
                        Code::UnknownNetworkInstance,
                        "it names no network instance, and no NetworkInstance selects it",
                    )
                    .on(&reference)
                    .at("spec.networkInstance")
                    .help("Set spec.networkInstance.name, or a label that a NetworkInstance's spec.interfaces[].selector matches."),
                );
                return None;
            };
            (String::new(), name.clone())
        }
    };
    let mut choices = choices::read(object, &bundle.marks, Carrier::Nad, findings);
    let written = spec.workload.as_deref().and_then(choices::workload);
    if written.is_some() {
        let key = (annotation::WORKLOAD, "Kind/name");
        let field = ("spec.workload", written);
        choices.workload = choices::twin(object, field, key, choices::workload, findings);
    }
    let vlan = choices::twin(
        object,
        ("spec.vlan", spec.vlan),
        (annotation::VLAN, "a VLAN id from 1 to 4094"),
        |text| VlanId::try_from(text.parse::<u16>().ok()?).ok(),
        findings,
    );
    let mtu = choices::twin(
        object,
        ("spec.mtu", spec.mtu),
        (annotation::MTU, "a number from 68 to 65535"),
        |text| text.parse().ok().filter(|mtu| *mtu >= 68),
        findings,
    );
    let families = spec
        .ip_family_policy
        .map_or(&[Family::V4][..], |p| p.families())
        .to_vec();
    let cni = spec.cni_type;
    let wants_vlan = spec.attachment_type == Some(AttachmentType::Vlan)
        && vlan.is_none()
        && instance != POD_NETWORK;
    let workload = workload::choose(
        &around.workloads,
        choices.workload.as_ref(),
        cni.is_some(),
        &reference,
        findings,
    );
    Some(Port {
        name: object.name().to_owned(),
        claim_first: false,
        instance: (instance != POD_NETWORK).then(|| InstanceKey::new(&namespace, &instance)),
        kind: if cni.is_some() {
            Kind::Network
        } else {
            Kind::Loopback
        },
        network_name: network_name(object),
        attachable: cni.is_some(),
        cni,
        families,
        vlan,
        wants_vlan,
        mtu,
        sriov: spec.sriov_spec,
        pod_name: pod_name(object.name(), &reference, findings),
        namespace: namespace_of(object, bundle, workload.as_ref()),
        workload,
        choices,
        object: reference,
    })
}

/// An IPClaim without Interface. Only a network claim becomes an interface; the others just get their
/// address or block.
fn from_claim(object: &Object, around: &Around<'_>, findings: &mut Vec<Finding>) -> Option<Port> {
    let bundle = around.bundle;
    let spec: IPClaimSpec = match object.spec() {
        Ok(spec) => spec,
        Err(finding) => {
            findings.push(finding);
            return None;
        }
    };
    if spec.network_instance.name == POD_NETWORK {
        return None;
    }
    let reference = object.reference();
    let mut choices = choices::read(object, &bundle.marks, Carrier::Annotation, findings);
    one_answer(object, &mut choices, findings);
    let selected = spec.selector.match_labels.get(label::NETWORK_NAME).cloned();
    let network_name = selected.or_else(|| network_name(object));
    let attachable = kind(spec.kind) == Kind::Network && spec.create_prefix != Some(true);
    let workload = workload::choose(
        &around.workloads,
        choices.workload.as_ref(),
        attachable,
        &reference,
        findings,
    );
    let family = spec
        .address_family
        .or(spec.prefix.map(|p| p.family()))
        .unwrap_or(Family::V4);
    Some(Port {
        name: object.name().to_owned(),
        claim_first: true,
        instance: Some(InstanceKey::new(
            &spec.network_instance.namespace,
            &spec.network_instance.name,
        )),
        kind: kind(spec.kind),
        pod_name: pod_name(
            network_name.as_deref().unwrap_or(object.name()),
            &reference,
            findings,
        ),
        network_name,
        attachable,
        cni: None,
        families: vec![family],
        vlan: None,
        wants_vlan: false,
        mtu: None,
        sriov: None,
        namespace: namespace_of(object, bundle, workload.as_ref()),
        workload,
        choices,
        object: reference,
    })
}

/// A claim that stands alone is one object with one answer. What the Kptfile says for Interfaces does not
/// concern it; what is written on the claim itself must not be dropped silently.
fn one_answer(object: &Object, choices: &mut Choices, findings: &mut Vec<Finding>) {
    let asked = [
        (annotation::ADDRESSES, choices.addresses > 1),
        (annotation::RANGE_PER, choices.per_node),
    ];
    for (key, _) in asked
        .into_iter()
        .filter(|(key, asked)| *asked && object.annotation(key).is_some())
    {
        findings.push(
            Finding::error(
                Code::InvalidAnnotation,
                format!("annotation {key} asks for several answers, and an IPClaim has one"),
            )
            .on(&object.reference())
            .at(format!("metadata.annotations[{key}]"))
            .help(
                "Write an Interface, which gets as many claims as it needs, or one IPClaim each.",
            ),
        );
    }
    choices.addresses = 1;
    choices.per_node = false;
}

fn network_name(object: &Object) -> Option<String> {
    let annotation = object
        .annotation(label::NETWORK_NAME)
        .map(ToOwned::to_owned);
    annotation.or_else(|| object.labels().remove(label::NETWORK_NAME))
}

/// Interface's, else the workload's, else the package context's, else the package's name.
fn namespace_of(object: &Object, bundle: &Bundle, workload: Option<&(String, String)>) -> String {
    let of_workload = || {
        let (kind, name) = workload?;
        Some(workload::find(bundle, kind, name)?.namespace())
    };
    let said = |s: &&str| !s.is_empty();
    Some(object.namespace())
        .filter(said)
        .or_else(|| of_workload().filter(said))
        .map_or_else(|| package_namespace(bundle), ToOwned::to_owned)
}

/// Where a package goes that says nothing else: the package context's namespace, else its own name.
pub fn package_namespace(bundle: &Bundle) -> String {
    let context = bundle.find("", "ConfigMap", "kptfile.kpt.dev");
    let said = context.and_then(|c| c.value.pointer("/data/namespace")?.as_str());
    said.filter(|s| !s.is_empty())
        .unwrap_or(&bundle.marks.name)
        .to_owned()
}

/// The kernel takes 15 bytes. A longer name keeps its head and gets four hex digits of its hash, so it
/// is the same every time and two long names do not meet.
fn pod_name(name: &str, reference: &ObjectRef, findings: &mut Vec<Finding>) -> String {
    if name.parse::<IfName>().is_ok() {
        return name.to_owned();
    }
    let hash = Sha256::digest(name.as_bytes());
    let head: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(10)
        .collect();
    let short = format!("{head}-{:02x}{:02x}", hash[0], hash[1]);
    findings.push(
        Finding::info(
            Code::InterfaceNameShortened,
            format!("{name} is too long for the kernel; the pod's interface is named {short}"),
        )
        .on(reference)
        .at("metadata.name"),
    );
    short
}

/// Without any pool (a single function sees none) the book refuses, when it is asked.
fn check_instance(port: &Port, pools: &Pools, findings: &mut Vec<Finding>) {
    let Some(key) = port
        .instance
        .as_ref()
        .filter(|_| !pools.instances.is_empty())
    else {
        return;
    };
    let elsewhere = matches!(port.choices.flavour, Flavour::Moor | Flavour::External);
    if elsewhere || pools.instances.contains_key(key) {
        return;
    }
    let known: Vec<String> = pools.instances.keys().map(ToString::to_string).collect();
    findings.push(
        Finding::error(
            Code::UnknownNetworkInstance,
            format!("there is no network instance {key}; known are {}", said(&known)),
        )
        .on(&port.object)
        .at("spec.networkInstance.name")
        .help("Correct the name, or give the instance an IPPrefix in the management directory (--mgmt)."),
    );
}

/// Two ports of one pod with one name: the second could never be made.
fn check_pod_names(ports: &[Port], findings: &mut Vec<Finding>) {
    let mut seen = BTreeMap::new();
    for port in ports
        .iter()
        .filter(|p| p.attachable && p.workload.is_some())
    {
        if let Some(other) = seen.insert((&port.workload, &port.pod_name), &port.object) {
            findings.push(
                Finding::error(
                    Code::InterfaceNameTaken,
                    format!(
                        "{} and {} both become interface {} of one pod",
                        other, port.object, port.pod_name
                    ),
                )
                .on(&port.object)
                .at("metadata.name")
                .help(format!(
                    "Rename one, or set {} to another workload.",
                    annotation::WORKLOAD
                )),
            );
        }
    }
}
