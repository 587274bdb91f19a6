//! What a cluster offers: its CNIs and NICs, and which NIC an interface goes on.

use mooring_api::kinds::nephio::infra::{Nic, WorkloadClusterSpec};
use mooring_api::kinds::nephio::req::CniType;
use mooring_api::{Code, Finding, IfName, ObjectRef, annotation};

use crate::bundle::Object;
use crate::choices;

/// A WorkloadCluster as the steps use it.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Its name: `spec.clusterName`, else `kpt.dev/injected-resource`, else the object's name.
    pub name: String,
    /// The object that a person would change.
    pub reference: ObjectRef,
    /// CNI types it offers.
    pub cnis: Vec<String>,
    master: Option<IfName>,
    nics: Vec<Nic>,
    /// Its nodes.
    pub nodes: Vec<String>,
    resource_prefix: String,
}

/// A cluster's name by the rule of DESIGN §4.
pub fn name_of(object: &Object) -> String {
    let spec = object
        .value
        .pointer("/spec/clusterName")
        .and_then(serde_json::Value::as_str);
    let injected = || object.annotation(annotation::INJECTED_RESOURCE);
    spec.filter(|s| !s.is_empty())
        .or_else(injected)
        .unwrap_or(object.name())
        .to_owned()
}

/// Where a person changes it: an injected cluster is the management side's.
fn origin(object: &Object) -> ObjectRef {
    let mut reference = object.reference();
    if let Some(injected) = object.annotation(annotation::INJECTED_RESOURCE) {
        injected.clone_into(&mut reference.name);
    }
    reference
}

impl Cluster {
    /// Reads a WorkloadCluster.
    pub fn read(object: &Object, findings: &mut Vec<Finding>) -> Option<Self> {
        let spec: WorkloadClusterSpec = match object.spec() {
            Ok(spec) => spec,
            Err(finding) => {
                findings.push(finding);
                return None;
            }
        };
        let mut nodes = spec.nodes;
        if nodes.is_empty() {
            nodes = choices::list(
                object,
                annotation::NODES,
                "names of nodes, comma separated",
                findings,
            );
        }
        let written = Some(spec.network_interfaces).filter(|nics| !nics.is_empty());
        let nics = choices::twin(
            object,
            ("spec.networkInterfaces", written),
            (
                annotation::NETWORK_INTERFACES,
                "the list of spec.networkInterfaces as JSON",
            ),
            |text| serde_json::from_str(text).ok(),
            findings,
        );
        let resource_prefix = object.annotation(annotation::RESOURCE_PREFIX);
        Some(Self {
            name: name_of(object),
            reference: origin(object),
            cnis: spec.cnis,
            master: spec.master_interface,
            nics: nics.unwrap_or_default(),
            nodes,
            resource_prefix: resource_prefix.unwrap_or("mooring.dev").to_owned(),
        })
    }

    /// Refuses a CNI type that the cluster does not offer.
    pub fn offers(&self, cni: CniType, interface: &ObjectRef) -> Result<(), Finding> {
        if self.cnis.iter().any(|c| c == cni.as_str()) {
            return Ok(());
        }
        Err(Finding::error(
            Code::UnsupportedCni,
            format!(
                "cluster {} does not offer {cni}; it offers {}",
                self.name,
                said(&self.cnis)
            ),
        )
        .on(interface)
        .at("spec.cniType")
        .help(format!(
            "Choose one of these, or add {cni} to spec.cnis of {}.",
            self.reference
        )))
    }

    /// The NIC for a CNI type: `masterInterface` where its entry allows the type or there is no entry,
    /// else the first entry for the type.
    pub fn nic(&self, cni: CniType, interface: &ObjectRef) -> Result<&IfName, Finding> {
        let entry = |name: &IfName| self.nics.iter().find(|n| n.name == *name);
        let allows = |nic: &Nic| nic.cni.is_none_or(|c| c == cni);
        if let Some(master) = &self.master
            && entry(master).is_none_or(allows)
        {
            return Ok(master);
        }
        self.dedicated(cni).map(|n| &n.name).ok_or_else(
            || {
                Finding::error(
                    Code::NoFittingNic,
                    format!("cluster {} has no NIC for {cni}", self.name),
                )
                .on(interface)
                .at("spec.cniType")
                .help(format!(
                    "Set spec.masterInterface of {}, or list a NIC with cni: {cni} in spec.networkInterfaces.",
                    self.reference
                ))
            },
        )
    }

    /// The entry that exists only for this type: bridges and passed-through devices are named by it.
    pub fn dedicated(&self, cni: CniType) -> Option<&Nic> {
        self.nics.iter().find(|n| n.cni == Some(cni))
    }

    /// The device plugin resource that serves a physical function (or, without a name, the only
    /// enabled SR-IOV NIC).
    pub fn sriov_resource(
        &self,
        pf: Option<&IfName>,
        interface: &ObjectRef,
    ) -> Result<String, Finding> {
        let enabled = |n: &&Nic| n.sriov_enabled;
        let known = match pf {
            Some(pf) => self.nics.iter().filter(enabled).find(|n| n.name == *pf),
            None => self.nics.iter().find(enabled),
        };
        let nic = known.ok_or_else(|| {
            let listed = pf.is_some_and(|pf| self.nics.iter().any(|n| n.name == *pf));
            let what = match (pf, listed) {
                (Some(pf), true) => format!("{pf} of cluster {} is not enabled for SR-IOV", self.name),
                (Some(pf), false) => format!("cluster {} lists no NIC {pf}", self.name),
                (None, _) => format!("cluster {} lists no NIC that is enabled for SR-IOV", self.name),
            };
            let nics: Vec<String> =
                self.nics.iter().filter(enabled).map(|n| n.name.to_string()).collect();
            Finding::error(Code::UnknownPhysicalFunction, what)
                .on(interface)
                .at("spec.sriovSpec.pfName")
                .help(format!(
                    "Name one of {}, or list it with sriovEnabled: true in spec.networkInterfaces of {}.",
                    said(&nics),
                    self.reference
                ))
        })?;
        Ok(match &nic.resource_name {
            Some(name) => name.clone(),
            None => format!("{}/{}", self.resource_prefix, nic.name),
        })
    }
}

/// `a, b and c`, or `none`.
pub(crate) fn said(words: &[String]) -> String {
    match words {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

impl Cluster {
    /// The CNI type for a package that names none: that of the master interface's entry, else the
    /// first that the cluster offers and we know.
    pub fn default_cni(&self) -> Option<CniType> {
        let entry = self
            .nics
            .iter()
            .find(|n| Some(&n.name) == self.master.as_ref());
        let offered = || {
            let known = |name: &String| CniType::ALL.into_iter().find(|c| c.as_str() == name);
            self.cnis.iter().find_map(known)
        };
        entry.and_then(|n| n.cni).or_else(offered)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(spec: Value, twin: &str) -> (Option<Cluster>, Vec<Code>) {
        let object = Object {
            value: json!({
                "apiVersion": "infra.nephio.org/v1alpha1", "kind": "WorkloadCluster",
                "metadata": { "name": "edge", "annotations": { annotation::NETWORK_INTERFACES: twin } },
                "spec": spec,
            }),
            source: None,
        };
        let mut findings = Vec::new();
        let cluster = Cluster::read(&object, &mut findings);
        (cluster, findings.iter().map(|f| f.code).collect())
    }

    #[test]
    fn nics_may_stand_in_their_twin_where_the_definition_has_no_field_for_them() {
        let spec = json!({ "clusterName": "edge", "cnis": ["ipvlan"] });
        let twin = r#"[{"name": "ens5", "cni": "ipvlan"}]"#;
        let (cluster, codes) = read(spec.clone(), twin);
        assert_eq!(codes, []);
        let nic = cluster.unwrap().dedicated(CniType::Ipvlan).cloned();
        assert_eq!(nic.unwrap().name.to_string(), "ens5");
        assert_eq!(read(spec.clone(), "ens5").1, [Code::InvalidAnnotation]);
        let mut both = spec;
        both["networkInterfaces"] = json!([{ "name": "ens6", "cni": "ipvlan" }]);
        assert_eq!(read(both, twin).1, [Code::InvalidAnnotation]);
    }
}
