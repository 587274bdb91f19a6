//! The table of every kind we know: by API version and kind, its CRD, its schema and its compiled
//! checks, each built once at first use.
//!
//! Easy to get wrong: deriving a schema takes longer than rendering a package. What objects are checked against is
//! therefore written down by `cargo xtask gen`, and derived only for a kind that is not written yet.

use std::sync::OnceLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use super::check::Node;
use super::schema::finish;

/// Written by `cargo xtask gen`: a line per kind, as [`Kind::written`] makes it.
const WRITTEN: &str = include_str!("schemas.txt");

/// A kind we know.
pub struct Kind {
    group: &'static str,
    version: &'static str,
    name: &'static str,
    plural: &'static str,
    derive: fn() -> CustomResourceDefinition,
    crd: OnceLock<Value>,
    node: OnceLock<Node>,
}

impl Kind {
    #[cfg(any(
        feature = "configsync",
        feature = "mooring",
        feature = "multus",
        feature = "nephio",
        feature = "porch",
        feature = "schiff"
    ))]
    fn of<T>() -> Self
    where
        T: kube::CustomResourceExt,
    {
        let resource = T::api_resource();
        // A handful of short strings for the life of the process, so that a Kind can be named by
        // `&'static str` everywhere.
        let keep = |s: String| -> &'static str { s.leak() };
        Self {
            group: keep(resource.group),
            version: keep(resource.version),
            name: keep(resource.kind),
            plural: keep(resource.plural),
            derive: T::crd,
            crd: OnceLock::new(),
            node: OnceLock::new(),
        }
    }

    /// Group.
    pub fn group(&self) -> &'static str {
        self.group
    }

    /// Version.
    pub fn version(&self) -> &'static str {
        self.version
    }

    /// Kind.
    pub fn kind(&self) -> &'static str {
        self.name
    }

    /// Plural, as in URLs and file names.
    pub fn plural(&self) -> &'static str {
        self.plural
    }

    fn derived(&self, nulls: bool) -> Value {
        let mut crd = serde_json::to_value((self.derive)())
            .expect("a CustomResourceDefinition has string keys only");
        finish(&mut crd, nulls);
        crd
    }

    /// The CustomResourceDefinition that we install where none is.
    pub fn crd(&self) -> &Value {
        self.crd.get_or_init(|| self.derived(false))
    }

    /// Its structural schema.
    pub fn schema(&self) -> &Value {
        schema_of(self.crd())
    }

    /// Its line among the schemas that are written down.
    pub fn written(&self) -> String {
        format!("{}{}", self.lead(), schema_of(&self.derived(true)))
    }

    fn lead(&self) -> String {
        format!("{}/{} {} ", self.group, self.version, self.name)
    }

    pub(super) fn node(&self) -> &Node {
        self.node.get_or_init(|| {
            let lead = self.lead();
            let line = WRITTEN.lines().find_map(|line| line.strip_prefix(&*lead));
            let schema = line.and_then(|line| serde_json::from_str(line).ok());
            Node::compile(&schema.unwrap_or_else(|| schema_of(&self.derived(true)).clone()))
        })
    }
}

fn schema_of(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// Every kind of the enabled features.
pub fn all() -> &'static [Kind] {
    static TABLE: OnceLock<Vec<Kind>> = OnceLock::new();
    TABLE.get_or_init(|| {
        vec![
            #[cfg(feature = "nephio")]
            Kind::of::<super::nephio::ipam::NetworkInstance>(),
            #[cfg(feature = "nephio")]
            Kind::of::<super::nephio::ipam::IPPrefix>(),
            #[cfg(feature = "nephio")]
            Kind::of::<super::nephio::ipam::IPClaim>(),
            #[cfg(feature = "nephio")]
            Kind::of::<super::nephio::ipam::IPAllocation>(),
            #[cfg(feature = "nephio")]
            Kind::of::<super::nephio::vlan::VLANIndex>(),
            #[cfg(feature = "nephio")]
            Kind::of::<super::nephio::vlan::VLANClaim>(),
            #[cfg(feature = "nephio")]
            Kind::of::<super::nephio::infra::WorkloadCluster>(),
            #[cfg(feature = "nephio")]
            Kind::of::<super::nephio::infra::Network>(),
            #[cfg(feature = "nephio")]
            Kind::of::<super::nephio::infra::NetworkInstance>(),
            #[cfg(feature = "nephio")]
            Kind::of::<super::nephio::req::Interface>(),
            #[cfg(feature = "nephio")]
            Kind::of::<super::nephio::req::DataNetwork>(),
            #[cfg(feature = "nephio")]
            Kind::of::<super::nephio::req::Dependency>(),
            #[cfg(feature = "nephio")]
            Kind::of::<super::nephio::req::Capacity>(),
            #[cfg(feature = "nephio")]
            Kind::of::<super::nephio::workload::NFDeployment>(),
            #[cfg(feature = "nephio")]
            Kind::of::<super::nephio::config::Config>(),
            #[cfg(feature = "porch")]
            Kind::of::<super::porch::PackageVariant>(),
            #[cfg(feature = "porch")]
            Kind::of::<super::porch::PackageVariantSet>(),
            #[cfg(feature = "porch")]
            Kind::of::<super::porch::Repository>(),
            #[cfg(feature = "configsync")]
            Kind::of::<super::configsync::RootSync>(),
            #[cfg(feature = "multus")]
            Kind::of::<super::multus::NetworkAttachmentDefinition>(),
            #[cfg(feature = "mooring")]
            Kind::of::<super::mooring::IPLease>(),
            #[cfg(feature = "mooring")]
            Kind::of::<super::mooring::PrefixLedger>(),
            #[cfg(feature = "mooring")]
            Kind::of::<super::mooring::CompiledRevision>(),
            #[cfg(feature = "mooring")]
            Kind::of::<super::mooring::OperatorConfig>(),
            #[cfg(feature = "schiff")]
            Kind::of::<super::schiff::Destination>(),
            #[cfg(feature = "schiff")]
            Kind::of::<super::schiff::Layer2Attachment>(),
            #[cfg(feature = "schiff")]
            Kind::of::<super::schiff::VRFAttachment>(),
            #[cfg(feature = "schiff")]
            Kind::of::<super::schiff::BGPNeighbor>(),
            #[cfg(feature = "schiff")]
            Kind::of::<super::schiff::PodNetwork>(),
            #[cfg(feature = "schiff")]
            Kind::of::<super::schiff::Collector>(),
            #[cfg(feature = "schiff")]
            Kind::of::<super::schiff::TrafficMirror>(),
            #[cfg(feature = "schiff")]
            Kind::of::<super::schiff::Layer2NetworkConfiguration>(),
            #[cfg(feature = "schiff")]
            Kind::of::<super::schiff::VRFRouteConfiguration>(),
            #[cfg(feature = "schiff")]
            Kind::of::<super::schiff::BGPPeering>(),
            #[cfg(feature = "schiff")]
            Kind::of::<super::schiff::MirrorTarget>(),
            #[cfg(feature = "schiff")]
            Kind::of::<super::schiff::MirrorSelector>(),
            #[cfg(feature = "schiff")]
            Kind::of::<super::schiff::NetworkConfigRevision>(),
            #[cfg(feature = "schiff")]
            Kind::of::<super::schiff::NodeNetworkConfig>(),
            #[cfg(feature = "schiff")]
            Kind::of::<super::schiff::NodeNetplanConfig>(),
        ]
    })
}

/// The kind of an object, by its `apiVersion` and `kind`. `ipam.nephio.org` is read as
/// `ipam.resource.nephio.org`.
pub fn find(api_version: &str, kind: &str) -> Option<&'static Kind> {
    let (group, version) = api_version.split_once('/')?;
    let group = match group {
        "ipam.nephio.org" => "ipam.resource.nephio.org",
        other => other,
    };
    let known = |k: &&Kind| k.name == kind && k.group == group && k.version == version;
    all().iter().find(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_is_what_is_derived() {
        for (line, kind) in WRITTEN.lines().zip(all()) {
            assert!(
                line == kind.written(),
                "{}: run `cargo xtask gen`",
                kind.name
            );
        }
        assert_eq!(WRITTEN.lines().count(), all().len());
    }
}
