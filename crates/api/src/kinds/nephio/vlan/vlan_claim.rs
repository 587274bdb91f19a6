//! VLANClaim: somebody wants a VLAN id; the status is the answer.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kinds::{Reference, StatusCondition};
use crate::{Selector, VlanId};

/// What is wanted.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "vlan.resource.nephio.org",
    version = "v1alpha1",
    kind = "VLANClaim",
    plural = "vlanclaims",
    namespaced,
    status = "VLANClaimStatus",
    category = "nephio",
    derive = "PartialEq",
    derive = "Default",
    doc = "A request for a VLAN id or a range of them. The status is the answer.",
    printcolumn(name = "VLAN", type_ = "integer", json_path = ".status.vlanID"),
    printcolumn(name = "Index", type_ = "string", json_path = ".spec.vlanIndex.name"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "has(self.vlanIndex) || has(self.selector)",
      "message": "is missing; name the VLANIndex that the id shall come from", "fieldPath": ".vlanIndex" },
    { "rule": "!has(self.vlanID) || !has(self.range)",
      "message": "and vlanID both say which VLANs; remove one of them", "fieldPath": ".range" },
    { "rule": "!has(self.range) || self.range.split(':').all(n, int(n) >= 1 && int(n) <= 4094)",
      "message": "lies outside the VLAN ids; use 1 to 4094", "fieldPath": ".range" },
    { "rule": "!has(self.range) || !self.range.contains(':') || int(self.range.split(':')[0]) <= int(self.range.split(':')[1])",
      "message": "ends before it begins; write FROM:TO with FROM first", "fieldPath": ".range" },
    { "rule": "!has(oldSelf.vlanIndex) || (has(self.vlanIndex) && self.vlanIndex == oldSelf.vlanIndex)",
      "message": "cannot change, since its id belongs to the old index; make a new VLANClaim", "fieldPath": ".vlanIndex" },
]))]
pub struct VLANClaimSpec {
    /// Where from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan_index: Option<Reference>,
    /// Exactly this id.
    #[serde(rename = "vlanID", default, skip_serializing_if = "Option::is_none")]
    pub vlan_id: Option<VlanId>,
    /// How many (`10`), or from and to (`100:199`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]{1,4}(:[0-9]{1,4})?$"), length(max = 9))]
    pub range: Option<String>,
    /// Labels that what is handed out shall carry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Which VLANs may answer.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub selector: Selector,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VLANClaimStatus {
    /// The id.
    #[serde(rename = "vlanID", default, skip_serializing_if = "Option::is_none")]
    pub vlan_id: Option<VlanId>,
    /// The ids, as `from:to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan_range: Option<String>,
    /// When the claim runs out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry_time: Option<String>,
    /// Synced, Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
}
