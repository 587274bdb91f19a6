//! Fleets: which packages a set of blueprints becomes, and how each differs from its blueprint.
//!
//! ```text
//!  PackageVariant ──────────────────────────┐
//!  PackageVariantSet × targets ─ template ──┴─► Variant ─ apply ─► the cloned package, ready to be rendered
//! ```
//!
//! `package` calls [`read`] once over the objects of a fleet, clones a blueprint for every [`Variant`], calls
//! [`apply`] on the clone and renders it like any other package. Easy to get wrong: two variants with one
//! place would overwrite each other on every run; [`read`] refuses them, Porch lets the last one win.

mod change;
mod inject;
mod place;
mod set;
mod template;

use std::collections::BTreeMap;

use mooring_api::kinds::porch::{GROUP, PackageVariantSpec, Upstream};
use mooring_api::{Code, Finding, ObjectRef};
use serde_json::Value;

use crate::bundle::Object;

pub use change::{apply, apply_below};

/// One package of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its name; a set names its variants `<set>-<repository>-<package>`.
    pub name: String,
    /// Its namespace; `default` where none is written.
    pub namespace: String,
    /// What is wanted.
    pub spec: PackageVariantSpec,
    /// The object that a person edits: the PackageVariant, or the set that it comes from.
    pub origin: ObjectRef,
    /// The field of that object which says where the package stands.
    pub place: String,
}

impl Variant {
    /// Where the package stands: `repository/package`.
    pub fn path(&self) -> String {
        let down = &self.spec.downstream;
        format!("{}/{}", down.repo, down.package)
    }
}

/// The objects of a fleet that variants may be filled from, by namespace and kind: asked for every package, so found
/// without a walk.
#[derive(Debug, Default)]
pub struct Offers<'a> {
    by_kind: BTreeMap<String, Vec<&'a Object>>,
}

impl<'a> Offers<'a> {
    /// Of these objects.
    pub fn new(objects: &'a [Object]) -> Self {
        let mut by_kind: BTreeMap<_, Vec<&Object>> = BTreeMap::new();
        for object in objects {
            let key = key(namespace(object), object.api_version(), object.kind());
            by_kind.entry(key).or_default().push(object);
        }
        // Stable: of two with one name the first is found.
        for alike in by_kind.values_mut() {
            alike.sort_by_key(|o| o.name());
        }
        Self { by_kind }
    }

    /// All of one kind, by name.
    fn all(&self, namespace: &str, api_version: &str, kind: &str) -> &[&'a Object] {
        let alike = self.by_kind.get(&key(namespace, api_version, kind));
        alike.map(Vec::as_slice).unwrap_or_default()
    }

    /// The one of this name.
    fn named(
        &self,
        namespace: &str,
        (api_version, kind): (&str, &str),
        name: &str,
    ) -> Option<&'a Object> {
        let alike = self.all(namespace, api_version, kind);
        let place = alike.partition_point(|o| o.name() < name);
        alike.get(place).copied().filter(|o| o.name() == name)
    }
}

/// None of the three has a line break.
fn key(namespace: &str, api_version: &str, kind: &str) -> String {
    format!("{namespace}\n{api_version}\n{kind}")
}

/// API version and kind of a repository.
const REPOSITORY: (&str, &str) = ("config.porch.kpt.dev/v1alpha1", "Repository");

/// The Kptfile of a blueprint, where it is there.
pub type Blueprint<'a> = &'a dyn Fn(&Upstream) -> Option<Value>;

/// The variants that these objects ask for, in order of their place.
pub fn read(objects: &[Object], blueprint: Blueprint<'_>) -> (Vec<Variant>, Vec<Finding>) {
    let mut variants = Vec::new();
    let mut findings = Vec::new();
    let offers = Offers::new(objects);
    for object in objects.iter().filter(|o| o.group() == GROUP) {
        match (object.api_version(), object.kind()) {
            ("config.porch.kpt.dev/v1alpha1", "PackageVariant") => match one(object) {
                Ok(variant) => variants.push(variant),
                Err(finding) => findings.push(finding),
            },
            ("config.porch.kpt.dev/v1alpha2", "PackageVariantSet") => {
                variants.extend(set::unroll(object, &offers, blueprint, &mut findings));
            }
            (_, kind @ ("PackageVariant" | "PackageVariantSet")) => {
                findings.push(other_version(object, kind));
            }
            _ => {}
        }
    }
    for variant in &variants {
        findings.extend(place::check(variant));
    }
    findings.extend(taken_twice(&variants));
    variants.sort_by_key(Variant::path);
    (variants, findings)
}

fn one(object: &Object) -> Result<Variant, Finding> {
    Ok(Variant {
        name: object.name().to_owned(),
        namespace: namespace(object).to_owned(),
        spec: object.spec()?,
        origin: object.reference(),
        place: "spec.downstream".to_owned(),
    })
}

fn other_version(object: &Object, kind: &str) -> Finding {
    let version = if kind == "PackageVariant" {
        "v1alpha1"
    } else {
        "v1alpha2"
    };
    Finding::error(
        Code::InvalidField,
        format!("{} of {kind} is not served any more", object.api_version()),
    )
    .on(&object.reference())
    .at("apiVersion")
    .help(format!(
        "Write {GROUP}/{version}, with the fields of that version."
    ))
}

/// An object without namespace is in the default one.
fn namespace(object: &Object) -> &str {
    match object.namespace() {
        "" => "default",
        written => written,
    }
}

/// Some of many names, for a sentence.
fn few(names: &[String]) -> String {
    const SHOWN: usize = 5;
    match names.len().checked_sub(SHOWN) {
        Some(more) if more > 1 => format!("{} and {more} more", names[..SHOWN].join(", ")),
        _ => crate::cluster::said(names),
    }
}

/// Two variants at one place, or one inside of another.
fn taken_twice(variants: &[Variant]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: BTreeMap<String, &Variant> = BTreeMap::new();
    for variant in variants {
        let path = variant.path();
        let taken = |other: &Variant, how: &str| {
            Finding::error(
                Code::DownstreamTaken,
                format!("{path} {how} {} of {}", other.name, other.origin),
            )
            .on(&variant.origin)
            .at(variant.place.clone())
            .help("Give one of the two another package name; in a set, one that depends on the target.")
        };
        if let Some(other) = seen.get(&path) {
            findings.push(taken(other, "is made by variant"));
            continue;
        }
        seen.insert(path.clone(), variant);
    }
    for (path, variant) in &seen {
        let inside = |(above, _): &(usize, char)| seen.get(&path[..*above]);
        let slashes = path.char_indices().filter(|(_, c)| *c == '/');
        if let Some(other) = slashes.collect::<Vec<_>>().iter().find_map(inside) {
            findings.push(
                Finding::error(
                    Code::DownstreamTaken,
                    format!(
                        "{path} lies inside of the package of variant {} of {}",
                        other.name, other.origin
                    ),
                )
                .on(&variant.origin)
                .at(variant.place.clone())
                .help("Put the two beside each other."),
            );
        }
    }
    findings
}

#[cfg(test)]
mod tests;
