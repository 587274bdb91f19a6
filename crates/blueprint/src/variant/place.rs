//! Names that become directories: they must not lead anywhere else.

use mooring_api::{Code, Finding};

use super::Variant;

/// Whether every part of a path is a plain name.
pub(super) fn is_plain(path: &str) -> bool {
    let plain = |part: &str| {
        let sound = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !part.is_empty() && !part.starts_with('.') && part.chars().all(sound)
    };
    path.split('/').all(plain)
}

/// Whether it is one plain name.
pub(super) fn is_name(text: &str) -> bool {
    is_plain(text) && !text.contains('/')
}

/// What is wrong with the places of a variant.
pub(super) fn check(variant: &Variant) -> Vec<Finding> {
    let (up, down) = (&variant.spec.upstream, &variant.spec.downstream);
    let place = &variant.place;
    let field = |name: &str| {
        // A set says where in its template, or only by its target.
        if place == "spec.downstream" {
            format!("{place}.{name}")
        } else {
            place.clone()
        }
    };
    let mut findings = Vec::new();
    let mut wrong = |text: &str, at: String, what: &str| {
        findings.push(
            Finding::error(Code::InvalidField, format!("{text:?} is not {what}"))
                .on(&variant.origin)
                .at(at)
                .help("Use letters, digits, dashes, underscores and dots; a part must not begin with a dot."),
        );
    };
    if !is_name(&up.repo) {
        wrong(
            &up.repo,
            "spec.upstream.repo".into(),
            "the name of a repository",
        );
    }
    if !is_plain(&up.package) {
        wrong(
            &up.package,
            "spec.upstream.package".into(),
            "the path of a package",
        );
    }
    if let Some(workspace) = up.workspace_name.as_deref().filter(|w| !is_name(w)) {
        wrong(
            workspace,
            "spec.upstream.workspaceName".into(),
            "the name of a workspace",
        );
    }
    if !is_name(&down.repo) {
        wrong(&down.repo, field("repo"), "the name of a repository");
    }
    if !is_plain(&down.package) {
        wrong(&down.package, field("package"), "the path of a package");
    }
    findings
}
