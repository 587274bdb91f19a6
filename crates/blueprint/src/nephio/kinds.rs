//! The kinds that the functions know, exactly as published.

use super::reference::Gvk;

pub(super) const IP_CLAIM: Gvk = Gvk::new("ipam.resource.nephio.org/v1alpha1", "IPClaim");
pub(super) const VLAN_CLAIM: Gvk = Gvk::new("vlan.resource.nephio.org/v1alpha1", "VLANClaim");
pub(super) const INTERFACE: Gvk = Gvk::new("req.nephio.org/v1alpha1", "Interface");
pub(super) const DATA_NETWORK: Gvk = Gvk::new("req.nephio.org/v1alpha1", "DataNetwork");
pub(super) const CAPACITY: Gvk = Gvk::new("req.nephio.org/v1alpha1", "Capacity");
pub(super) const DEPENDENCY: Gvk = Gvk::new("req.nephio.org/v1alpha1", "Dependency");
pub(super) const DEPLOYMENT: Gvk = Gvk::new("workload.nephio.org/v1alpha1", "NFDeployment");
pub(super) const CLUSTER: Gvk = Gvk::new("infra.nephio.org/v1alpha1", "WorkloadCluster");
pub(super) const NETWORK: Gvk = Gvk::new("infra.nephio.org/v1alpha1", "Network");
pub(super) const NAD: Gvk = Gvk::new("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition");
