//! The kinds of Porch that say which package goes where: a variant of a blueprint, a set of variants, a
//! repository. Fields of the published CRDs keep their meaning; what Porch's controllers refuse only at run
//! time is refused at the door here.
//!
//! Easy to get wrong: a template of a set repeats the fields of a variant and adds a twin `…Expr` to most.

mod function;
mod package_variant;
mod package_variant_set;
mod repository;

pub use function::{Function, Pipeline};
pub use package_variant::{
    AdoptionPolicy, DeletionPolicy, Downstream, DownstreamTarget, FieldRef, FileRef,
    FunctionResult, Injector, InterfaceAddress, PackageContext, PackageVariant, PackageVariantSpec,
    PackageVariantStatus, RenderStatus, ResultItem, ResultList, Upstream,
};
pub use package_variant_set::{
    ContextTemplate, DownstreamTemplate, FunctionTemplate, InjectorTemplate, MapExpr,
    ObjectSelector, PackageVariantSet, PackageVariantSetSpec, PackageVariantSetStatus,
    PipelineTemplate, RepositoryTarget, Target, VariantTemplate,
};
pub use repository::{Git, Oci, Repository, RepositorySpec, RepositoryStatus, SecretRef};

/// The API group.
pub const GROUP: &str = "config.porch.kpt.dev";
