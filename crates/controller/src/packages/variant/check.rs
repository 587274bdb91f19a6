//! Whether a variant can be made at all: its object, its place, and that nobody else has that place. Pure.

use mooring_api::{Code, Finding};
use mooring_blueprint::Object;
use mooring_blueprint::variant::{self, Variant};
use mooring_package::revision::PackageName;
use serde_json::Value;

/// A variant whose object can be read and whose place is its own.
pub(super) struct Checked {
    pub(super) variant: Variant,
    pub(super) package: PackageName,
}

/// Checks a variant against the others of its namespace: of two with one place the older has it.
pub(super) fn check(object: &Object, others: &[Object]) -> Result<Checked, Vec<Finding>> {
    let mut findings = mooring_api::kinds::check(&object.value);
    if findings.iter().any(Finding::is_error) {
        return Err(findings);
    }
    let made = |o: &Object| {
        let at = o
            .value
            .pointer("/metadata/creationTimestamp")
            .and_then(Value::as_str);
        (at.unwrap_or_default().to_owned(), o.name().to_owned())
    };
    let older = |o: &&Object| {
        let here = o.namespace() == object.namespace() && o.name() != object.name();
        let sound = !mooring_api::kinds::check(&o.value)
            .iter()
            .any(Finding::is_error);
        here && sound && made(o) < made(object)
    };
    let mut all: Vec<Object> = others.iter().filter(older).cloned().collect();
    all.sort_by_key(made);
    // The last one is what is taken already for.
    all.push(object.clone());
    let (variants, more) = variant::read(&all, &|_| None);
    let reference = object.reference();
    findings.extend(
        more.into_iter()
            .filter(|f| f.object.as_ref() == Some(&reference)),
    );
    if findings.iter().any(Finding::is_error) {
        return Err(findings);
    }
    let mine = variants.into_iter().find(|v| v.origin == reference);
    let unreadable =
        || vec![Finding::error(Code::InvalidField, "the variant cannot be read").on(&reference)];
    let variant = mine.ok_or_else(unreadable)?;
    let package = variant.spec.downstream.package.parse().map_err(|error| {
        let finding = Finding::error(Code::InvalidField, format!("{error}"));
        let help = "Choose a name that Git takes as a directory and as a part of a branch.";
        vec![
            finding
                .on(&reference)
                .at("spec.downstream.package")
                .help(help),
        ]
    })?;
    Ok(Checked { variant, package })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(name: &str, at: &str, package: &str) -> Object {
        Object {
            value: json!({
                "apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "PackageVariant",
                "metadata": { "name": name, "namespace": "here", "creationTimestamp": at },
                "spec": {
                    "upstream": { "repo": "blueprints", "package": "upf" },
                    "downstream": { "repo": "edge", "package": package },
                },
            }),
            source: None,
        }
    }

    #[test]
    fn of_two_variants_at_one_place_the_older_has_it() {
        let old = object("z-old", "2026-01-01T00:00:00Z", "upf");
        let new = object("a-new", "2026-01-02T00:00:00Z", "upf");
        let all = [old.clone(), new.clone()];
        assert!(check(&old, &all).is_ok());
        let Err(findings) = check(&new, &all) else {
            panic!("both have the place");
        };
        assert_eq!(findings[0].code, Code::DownstreamTaken);
    }

    #[test]
    fn an_object_that_breaks_its_schema_is_refused_with_the_field() {
        let mut bad = object("bad", "2026-01-01T00:00:00Z", "upf");
        bad.value["spec"]["injectors"] = json!([{ "kind": "X" }]);
        let Err(findings) = check(&bad, &[]) else {
            panic!("it has no name");
        };
        assert!(
            findings[0]
                .field
                .as_deref()
                .unwrap_or_default()
                .starts_with("spec.injectors")
        );
    }

    #[test]
    fn a_package_that_git_cannot_name_is_refused() {
        let bad = object("bad", "2026-01-01T00:00:00Z", "upf/v2");
        assert!(check(&bad, &[]).is_err());
    }
}
