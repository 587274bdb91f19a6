//! How Nephio names an object in one string: `<group>/<version>.<Kind>.<name>`.
//!
//! Condition types and reasons and the owner annotations are written so. Easy to get wrong: the published
//! parser wants exactly three parts behind the slash, so a name with a dot, or an object of the core group,
//! is nothing to it. Here the name is all that follows the kind.

use std::fmt;

use mooring_api::ObjectRef;

use crate::bundle::Object;

/// A kind of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gvk {
    /// `group/version`.
    pub(crate) api_version: &'static str,
    /// Kind.
    pub(crate) kind: &'static str,
}

impl Gvk {
    pub(crate) const fn new(api_version: &'static str, kind: &'static str) -> Self {
        Self { api_version, kind }
    }

    pub(crate) fn is(self, reference: &Ref) -> bool {
        reference.kind == self.kind && reference.api_version == self.api_version
    }

    pub(crate) fn has(self, object: &Object) -> bool {
        object.kind() == self.kind && object.api_version() == self.api_version
    }
}

/// An object, by kind and name: a namespace is never part of it. In order of kind, then name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ref {
    /// Kind.
    pub(crate) kind: String,
    /// Name.
    pub(crate) name: String,
    /// `group/version`, or the version alone for the core group.
    pub(crate) api_version: String,
}

impl Ref {
    /// What an object is named.
    pub(crate) fn of(object: &Object) -> Self {
        Self {
            kind: object.kind().to_owned(),
            name: object.name().to_owned(),
            api_version: object.api_version().to_owned(),
        }
    }

    /// Reads a condition type, a reason or an annotation; None for any other text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (group, rest) = match text.split_once('/') {
            Some((group, rest)) => (Some(group), rest),
            None => (None, text),
        };
        let (version, rest) = rest.split_once('.')?;
        let (kind, name) = rest.split_once('.')?;
        let mut letters = version.chars();
        let is_version =
            letters.next() == Some('v') && letters.next().is_some_and(|c| c.is_ascii_digit());
        if !is_version || kind.is_empty() || name.is_empty() || group == Some("") {
            return None;
        }
        Some(Self {
            kind: kind.to_owned(),
            name: name.to_owned(),
            api_version: group.map_or_else(|| version.to_owned(), |g| format!("{g}/{version}")),
        })
    }

    /// What findings carry.
    pub(crate) fn object(&self) -> ObjectRef {
        ObjectRef::new(&self.api_version, &self.kind, &self.name)
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.api_version, self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_dots_and_the_core_group_survive() {
        for text in [
            "req.nephio.org/v1alpha1.Interface.n3",
            "workload.nephio.org/v1alpha1.NFDeployment.upf-edge.01",
            "v1.ConfigMap.kptfile.kpt.dev",
            "apps/v1.Deployment.gnb-edge-01",
        ] {
            let read = Ref::parse(text).map(|r| r.to_string());
            assert_eq!(read.as_deref(), Some(text));
        }
    }

    #[test]
    fn other_condition_types_are_no_references() {
        for text in [
            "",
            "Specialize",
            "nephio.org.Specializer.specialize",
            "config.injection.WorkloadCluster.workload-cluster",
            "req.nephio.org.interface.n2",
            "req.nephio.org/v1alpha1.Interface.",
            "/v1.Deployment.x",
        ] {
            assert_eq!(Ref::parse(text), None, "{text}");
        }
    }
}
