//! PackageVariantSet: many variants of one blueprint. A target names repositories, or selects objects; its
//! template says what each variant gets, in plain words or as CEL over the target.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::package_variant::{context_data, context_keys};
use super::{AdoptionPolicy, DeletionPolicy, Function, Upstream};
use crate::kinds::{StatusCondition, kpt};
use crate::{Expression, Selector};

/// Which blueprint becomes which packages, and how.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "config.porch.kpt.dev",
    version = "v1alpha2",
    kind = "PackageVariantSet",
    plural = "packagevariantsets",
    namespaced,
    status = "PackageVariantSetStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Variants of a blueprint for many repositories or objects.",
    printcolumn(
        name = "Upstream",
        type_ = "string",
        json_path = ".spec.upstream.package"
    ),
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
pub struct PackageVariantSetSpec {
    /// The blueprint.
    pub upstream: Upstream,
    /// Where its variants go.
    #[schemars(length(max = 64), extend("x-kubernetes-validations" = [
        { "rule": "self.size() > 0", "message": "is empty; name at least one target" }]))]
    pub targets: Vec<Target>,
}

/// Where variants go: exactly one way to say it, and what they get.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "(has(self.repositories) ? 1 : 0) + (has(self.repositorySelector) ? 1 : 0) + (has(self.objectSelector) ? 1 : 0) == 1",
      "message": "must have one of repositories, repositorySelector and objectSelector; make a target of each" },
]))]
pub struct Target {
    /// These repositories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), extend("x-kubernetes-validations" = [
        { "rule": "self.size() > 0", "message": "is empty; name a repository" }]))]
    pub repositories: Option<Vec<RepositoryTarget>>,
    /// Every repository with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_selector: Option<Selector>,
    /// Every object of this kind with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_selector: Option<ObjectSelector>,
    /// What each variant gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<VariantTemplate>,
}

/// A repository, and the packages to make in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepositoryTarget {
    /// The repository.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The packages; one with the blueprint's name where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(length(min = 1)))]
    pub package_names: Vec<String>,
}

/// Objects by kind, name and labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectSelector {
    /// API version.
    #[schemars(length(min = 1))]
    pub api_version: String,
    /// Kind.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// Only the one of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Every pair must be there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Every expression must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub match_expressions: Vec<Expression>,
}

/// What each variant gets. Where a field has a twin `…Expr`, one of the two may be written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VariantTemplate {
    /// Where it stands; the target's repository and the blueprint's name where not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downstream: Option<DownstreamTemplate>,
    /// What happens to a package that stands there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption_policy: Option<AdoptionPolicy>,
    /// What happens to the package when the variant goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// Labels of the package.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// More labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub label_exprs: Vec<MapExpr>,
    /// Annotations of the package.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// More annotations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub annotation_exprs: Vec<MapExpr>,
    /// What the package knows about itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package_context: Option<ContextTemplate>,
    /// Functions that run before the package's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<PipelineTemplate>,
    /// What fills the package's injection points, first match first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub injectors: Vec<InjectorTemplate>,
}

/// Where a variant stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "!has(self.repo) || !has(self.repoExpr)",
      "message": "stands beside repo; write one of them", "fieldPath": ".repoExpr" },
    { "rule": "!has(self.__package__) || !has(self.packageExpr)",
      "message": "stands beside package; write one of them", "fieldPath": ".packageExpr" },
]))]
pub struct DownstreamTemplate {
    /// The repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The repository, as CEL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_expr: Option<String>,
    /// The package, as CEL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package_expr: Option<String>,
}

/// One entry of a map.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "has(self.key) != has(self.keyExpr)",
      "message": "must have one of key and keyExpr; write one of them" },
    { "rule": "has(self.value) != has(self.valueExpr)",
      "message": "must have one of value and valueExpr; write one of them" },
]))]
pub struct MapExpr {
    /// The key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The key, as CEL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_expr: Option<String>,
    /// The value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The value, as CEL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_expr: Option<String>,
}

/// Keys of the ConfigMap `kptfile.kpt.dev`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextTemplate {
    /// Keys to set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "context_data")]
    pub data: BTreeMap<String, String>,
    /// More keys to set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub data_exprs: Vec<MapExpr>,
    /// Keys to take away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "context_keys")]
    pub remove_keys: Vec<String>,
    /// More keys to take away, as CEL.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_key_exprs: Vec<String>,
}

/// Functions, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineTemplate {
    /// They change objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub mutators: Vec<FunctionTemplate>,
    /// They only look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub validators: Vec<FunctionTemplate>,
}

/// A function and its configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "has(self.image) && self.image != ''",
      "message": "is missing; a variant's function is an image", "fieldPath": ".image" },
    { "rule": "!has(self.name) || !self.name.contains('.')",
      "message": "has a dot; dots separate the parts of the name that the function gets in the Kptfile", "fieldPath": ".name" },
]))]
pub struct FunctionTemplate {
    /// Name of the step, without dots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,
    /// Container image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub image: Option<String>,
    /// Version of the image, or a constraint on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<String>,
    /// A file of the package that holds its configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_path: Option<String>,
    /// Its configuration, written here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config_map: BTreeMap<String, String>,
    /// More of its configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub config_map_exprs: Vec<MapExpr>,
    /// Only these objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selectors: Vec<kpt::ObjectSelector>,
    /// Not these objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<kpt::ObjectSelector>,
}

impl FunctionTemplate {
    /// The function, with this configuration.
    pub fn with(&self, config_map: BTreeMap<String, String>) -> Function {
        let of = self.clone();
        Function {
            name: of.name,
            image: of.image,
            tag: of.tag,
            exec: of.exec,
            config_path: of.config_path,
            config_map,
            selectors: of.selectors,
            exclude: of.exclude,
        }
    }
}

/// An object that fills injection points.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "has(self.name) != has(self.nameExpr)",
      "message": "must have one of name and nameExpr; write one of them" },
]))]
pub struct InjectorTemplate {
    /// Group of the points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Version of the points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Kind of the points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Name of the object, as CEL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_expr: Option<String>,
}

/// What the controller says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackageVariantSetStatus {
    /// Stalled, Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
}
