//! What is to be done with a package, from what Git has of it and what was done before. Pure.
//!
//! ```text
//!  an open draft of ours ───────────────► it is what is worked on
//!  nothing open, published is ours ─────► published; a new draft only where the wanted differs
//!  something there that is not ours ────► adopted where the policy says so, else refused
//!  a draft that we made and that is gone ► held: somebody decided against it, until what it is made from changes
//! ```
//!
//! Easy to get wrong: the marks in the Kptfile are the truth, not the status of the variant, which a crash may have kept
//! from being written.

use mooring_api::kinds::porch::AdoptionPolicy;
use mooring_api::{Code, Finding};
use mooring_blueprint::variant::Variant;
use mooring_package::revision::{Open, Seen, Workspace};
use mooring_package::{Files, Kpt};
use serde::{Deserialize, Serialize};

/// What a variant did last, kept as an annotation on it: Porch's schema would drop a field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in super::super) struct Remembered {
    /// What the clone was made from.
    pub(super) made_from: String,
    /// What came out.
    pub(super) content: String,
    /// The package's id in the book.
    pub(super) id: String,
    /// `repository/package`.
    pub(super) place: String,
}

/// The package as it is.
#[derive(Clone, Debug)]
pub(super) struct Head<'a> {
    /// The draft or proposal that is worked on.
    pub(super) open: Option<&'a Open>,
    /// What is published, where it is this variant's.
    pub(super) published: Option<&'a Files>,
    /// The newest content.
    pub(super) files: Option<&'a Files>,
    /// What that says about itself.
    pub(super) kpt: Kpt,
}

/// `namespace/name`, as the Kptfile's mark has it.
pub(super) fn mark(variant: &Variant) -> String {
    format!("{}/{}", variant.namespace, variant.name)
}

/// Finds the package's head, or says what is in the way.
pub(super) fn head<'a>(variant: &Variant, seen: &'a Seen) -> Result<Head<'a>, Finding> {
    let me = mark(variant);
    let adopts = variant.spec.adoption_policy == Some(AdoptionPolicy::AdoptExisting);
    let kpt = |files: &Files| Kpt::read(files).unwrap_or_default();
    let mine = |files: &Files| kpt(files).variant == me;
    let nobodys = |files: &Files| kpt(files).variant.is_empty();
    let deployed = seen.deployed.as_ref().map(|content| &content.files);
    if deployed.is_some_and(|files| !mine(files) && !adopts) {
        let message = format!(
            "something that this variant did not make stands at {} already",
            variant.path()
        );
        return Err(Finding::error(Code::DownstreamTaken, message)
            .on(&variant.origin)
            .at(variant.place.clone())
            .help("Write adoptionPolicy: adoptExisting to make it the variant, or give the variant another place."));
    }
    let newest = |of: &dyn Fn(&Files) -> bool| {
        let ours = seen.open.iter().filter(|open| of(&open.files));
        ours.max_by_key(|open| number(&open.workspace))
    };
    let open = newest(&mine).or_else(|| newest(&nobodys).filter(|_| adopts && deployed.is_none()));
    let files = open.map(|open| &open.files).or(deployed);
    Ok(Head {
        open,
        published: deployed.filter(|files| mine(files)),
        files,
        kpt: files.map(kpt).unwrap_or_default(),
    })
}

/// `v3` is the third.
fn number(workspace: &Workspace) -> Option<u32> {
    workspace.as_str().strip_prefix('v')?.parse().ok()
}

/// The workspace of the next draft: named like the version that it will be, unless a person has that one.
pub(super) fn workspace(seen: &Seen) -> Workspace {
    let mut next = seen.newest.as_ref().map_or(1, |newest| newest.version + 1);
    loop {
        let name: Workspace = format!("v{next}")
            .parse()
            .expect("v and a number is a workspace");
        if !seen.open.iter().any(|open| open.workspace == name) {
            return name;
        }
        next += 1;
    }
}

/// Whether somebody decided against what is wanted: it was made once, it is not open any more and not published.
/// `content` is the digest of what would be written, where that is known.
pub(super) fn is_held(
    head: &Head<'_>,
    remembered: &Remembered,
    made_from: &str,
    place: &str,
    content: Option<&str>,
) -> bool {
    if head.open.is_some() || remembered.place != place || remembered.made_from != made_from {
        return false;
    }
    let published = head.published.and_then(Kpt::read).unwrap_or_default();
    match content {
        Some(content) if published.made_from == made_from => remembered.content == content,
        _ => published.made_from != made_from,
    }
}

/// A digest of a package's content.
pub(super) fn content(files: &Files) -> String {
    use sha2::{Digest as _, Sha256};
    let mut all = Sha256::new();
    for (path, bytes) in files {
        all.update(path.len().to_be_bytes());
        all.update(path);
        all.update(bytes.len().to_be_bytes());
        all.update(bytes);
    }
    super::super::hex(&all.finalize()[..16])
}

#[cfg(test)]
mod tests {
    use super::*;
    use mooring_api::kinds::porch::{Downstream, PackageVariantSpec};
    use mooring_api::{ObjectRef, Time};
    use mooring_package::git::Oid;
    use mooring_package::revision::{Content, Lifecycle, Newest};

    fn variant(adopts: bool) -> Variant {
        Variant {
            name: "v".into(),
            namespace: "here".into(),
            spec: PackageVariantSpec {
                downstream: Downstream {
                    repo: "edge".into(),
                    package: "upf".into(),
                },
                adoption_policy: adopts.then_some(AdoptionPolicy::AdoptExisting),
                ..PackageVariantSpec::default()
            },
            origin: ObjectRef::new("config.porch.kpt.dev/v1alpha1", "PackageVariant", "v"),
            place: "spec.downstream".into(),
        }
    }

    fn files(of: &str, made_from: &str) -> Files {
        let marks = if of.is_empty() {
            String::new()
        } else {
            format!(
                "  annotations:\n    mooring.dev/variant: {of}\n    mooring.dev/made-from: {made_from}\n"
            )
        };
        let text =
            format!("apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: upf\n{marks}");
        Files::from([("Kptfile".to_owned(), text.into_bytes())])
    }

    fn oid() -> Oid {
        Oid::parse(&"a".repeat(40)).expect("forty hex digits")
    }

    fn open(workspace: &str, files: Files) -> Open {
        Open {
            lifecycle: Lifecycle::Draft,
            workspace: workspace.parse().expect("a workspace"),
            commit: oid(),
            at: Time(0),
            outdated: false,
            files,
        }
    }

    fn deployed(files: Files) -> Content {
        Content {
            files,
            commit: oid(),
            lifecycle: Lifecycle::Published,
        }
    }

    #[test]
    fn what_a_person_published_is_in_the_way_unless_it_is_adopted() {
        let seen = Seen {
            deployed: Some(deployed(files("", ""))),
            ..Seen::default()
        };
        let refused = head(&variant(false), &seen).expect_err("it is not ours");
        assert_eq!(refused.code, Code::DownstreamTaken);
        let adopted = head(&variant(true), &seen).expect("it is adopted");
        assert!(adopted.files.is_some());
        assert!(adopted.published.is_none(), "it is not the variant's yet");
    }

    #[test]
    fn a_persons_draft_is_left_alone_and_its_workspace_avoided() {
        let seen = Seen {
            open: vec![open("v1", files("", ""))],
            ..Seen::default()
        };
        assert!(
            head(&variant(false), &seen)
                .expect("nothing is in the way")
                .open
                .is_none()
        );
        assert_eq!(workspace(&seen).as_str(), "v2");
        assert!(head(&variant(true), &seen).expect("adopted").open.is_some());
    }

    #[test]
    fn the_next_workspace_is_named_like_the_next_version() {
        let newest = Some(Newest {
            version: 4,
            commit: oid(),
            workspace: None,
        });
        let seen = Seen {
            newest,
            ..Seen::default()
        };
        assert_eq!(workspace(&seen).as_str(), "v5");
    }

    #[test]
    fn a_draft_that_was_made_and_is_gone_is_held_until_what_it_is_made_from_changes() {
        let variant = variant(false);
        let remembered = Remembered {
            made_from: "one".into(),
            content: "c".into(),
            id: String::new(),
            place: "edge/upf".into(),
        };
        let nothing = Seen::default();
        let gone = head(&variant, &nothing).expect("nothing is in the way");
        assert!(is_held(&gone, &remembered, "one", "edge/upf", None));
        assert!(
            !is_held(&gone, &remembered, "two", "edge/upf", None),
            "it changed"
        );
        assert!(
            !is_held(&gone, &remembered, "one", "edge/other", None),
            "it moved"
        );
        assert!(
            !is_held(&gone, &Remembered::default(), "one", "edge/upf", None),
            "never made"
        );
        let living = Seen {
            open: vec![open("v1", files("here/v", "one"))],
            ..Seen::default()
        };
        let living = head(&variant, &living).expect("it is ours");
        assert!(!is_held(&living, &remembered, "one", "edge/upf", None));
        let rolled_back = Seen {
            deployed: Some(deployed(files("here/v", "older"))),
            ..Seen::default()
        };
        let rolled_back = head(&variant, &rolled_back).expect("it is ours");
        assert!(is_held(&rolled_back, &remembered, "one", "edge/upf", None));
    }

    #[test]
    fn a_published_package_is_held_only_for_the_very_content_that_was_refused() {
        let remembered = Remembered {
            made_from: "one".into(),
            content: "c".into(),
            id: String::new(),
            place: "edge/upf".into(),
        };
        let seen = Seen {
            deployed: Some(deployed(files("here/v", "one"))),
            ..Seen::default()
        };
        let variant = variant(false);
        let head = head(&variant, &seen).expect("it is ours");
        assert!(!is_held(&head, &remembered, "one", "edge/upf", None));
        assert!(is_held(&head, &remembered, "one", "edge/upf", Some("c")));
        assert!(!is_held(&head, &remembered, "one", "edge/upf", Some("d")));
    }
}
