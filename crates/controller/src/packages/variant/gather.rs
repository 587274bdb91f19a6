//! What a variant is made from: its repositories, its blueprint, what is injected, the pools, and what Git has already.

use std::sync::Arc;

use mooring_api::kinds::porch::Upstream;
use mooring_api::{Code, Finding, annotation};
use mooring_blueprint::Object;
use mooring_blueprint::variant::Variant;
use mooring_package::revision::{Content, PackageName, Seen, Which};
use mooring_package::{Neighbour, VariantClone, clone_variant, injection_points};

use super::super::approval::{self, Approval};
use super::super::links;
use super::super::remote::{self, Remote};
use super::super::{PORCH, Role, blocking};
use super::check::Checked;
use crate::error::Error;

/// Everything that one pass over a variant decides from.
pub(super) struct Gathered {
    pub(super) variant: Variant,
    pub(super) approval: Approval,
    pub(super) deploy_records: bool,
    /// The variant's clone of its blueprint.
    pub(super) clone: VariantClone,
    /// Pools, and the clusters of the namespace.
    pub(super) site: Vec<Object>,
    pub(super) down: Arc<Remote>,
    pub(super) package: PackageName,
    pub(super) seen: Seen,
    /// Packages that its Dependencies may mean.
    pub(super) neighbours: Vec<Neighbour>,
    /// Decides the identity of a package that has none yet: the same for the same variant at the same place.
    pub(super) entropy: [u8; 16],
}

impl Role {
    /// Gathers, or says everything that keeps the variant from being made.
    pub(super) async fn gather(
        &self,
        object: &Object,
        checked: Checked,
    ) -> Result<Result<Gathered, Vec<Finding>>, Error> {
        let Checked { variant, package } = checked;
        let namespace = variant.namespace.clone();
        let repositories = self.repositories().await?;
        let find = |name: &str, field: &str| {
            let found = remote::find(&repositories, &namespace, name);
            found.ok_or_else(|| remote::missing(name, &namespace, field).on(&object.reference()))
        };
        let (up, down) = (&variant.spec.upstream.repo, &variant.spec.downstream.repo);
        let (up, down) = match (
            find(up, "spec.upstream.repo"),
            find(down, "spec.downstream.repo"),
        ) {
            (Ok(up), Ok(down)) => (up, down),
            (up, down) => return Ok(Err([up.err(), down.err()].into_iter().flatten().collect())),
        };
        let annotations = annotations(object);
        let approval = match approval::read(&variant.spec.annotations, &annotations) {
            Ok(approval) => approval,
            Err(finding) => return Ok(Err(vec![finding.on(&object.reference())])),
        };
        let (upstream, down) = (self.remote(up).await?, self.remote(down).await?);
        let (upstream, down) = match (upstream, down) {
            (Ok(up), Ok(down)) => (up, Arc::new(down)),
            (up, down) => return Ok(Err([up.err(), down.err()].into_iter().flatten().collect())),
        };
        let origin = format!(
            "{}/{}",
            variant.spec.upstream.repo, variant.spec.upstream.package
        );
        let blueprint = match self
            .blueprint(upstream, variant.spec.upstream.clone())
            .await?
        {
            Ok(blueprint) => blueprint.files,
            Err(finding) => return Ok(Err(vec![finding.on(&object.reference())])),
        };
        let mut site = self.site(&namespace).await?;
        let mut offers = site.clone();
        offers.extend(
            repositories
                .iter()
                .filter(|o| o.namespace() == namespace)
                .cloned(),
        );
        for (api_version, kind) in injection_points(&blueprint) {
            if (api_version.as_str(), kind.as_str()) == super::super::CLUSTER {
                continue; // among the site
            }
            let more = self
                .cache
                .all(&api_version, &kind, Some(&namespace))
                .await?;
            offers.extend(more.iter().cloned());
            // The render fills the same points again, from what the site has.
            site.extend(more);
        }
        let clone = clone_variant(&variant, &blueprint, &offers, &origin);
        if clone.findings.iter().any(Finding::is_error) {
            return Ok(Err(clone.findings));
        }
        site.retain(|o| o.api_version() != PORCH);
        let seen = self.look(down.clone(), package.clone()).await?;
        let needed = links::needed(&clone.files, &seen);
        self.links.note(object, !needed.is_empty());
        let neighbours = self.neighbours(&namespace, &needed).await?;
        let deploy = annotation::DEPLOY_RECORDS;
        let asked = variant
            .spec
            .annotations
            .get(deploy)
            .or_else(|| annotations.get(deploy));
        let deploy_records = asked.map_or(self.world.args.packages.deploy_records, |v| v == "true");
        Ok(Ok(Gathered {
            entropy: entropy(object, &variant.path()),
            variant,
            approval,
            deploy_records,
            clone,
            site,
            down,
            package,
            seen,
            neighbours,
        }))
    }

    /// Everything that Git has of a package.
    pub(in super::super) async fn look(
        &self,
        remote: Arc<Remote>,
        package: PackageName,
    ) -> Result<Seen, Error> {
        let _turn = self.turns.take(&remote.packages.repository.url).await;
        blocking(move || Ok(remote.packages.look(&package)?)).await
    }

    /// The files of a blueprint, or why there are none.
    pub(in super::super) async fn blueprint(
        &self,
        remote: Remote,
        upstream: Upstream,
    ) -> Result<Result<Content, Finding>, Error> {
        let missing = |why: String| {
            Finding::error(Code::BlueprintMissing, why)
                .at("spec.upstream")
                .help("Correct repository, package or revision, or publish the blueprint.")
        };
        let package: PackageName = match upstream.package.parse() {
            Ok(package) => package,
            Err(error) => return Ok(Err(missing(format!("{error}")))),
        };
        let tried = candidates(&upstream);
        let _turn = self.turns.take(&remote.packages.repository.url).await;
        let name = remote.name.clone();
        let found = blocking(move || {
            for which in tried {
                if let Some(content) = remote.packages.read(&package, &which)? {
                    return Ok(Some(content));
                }
            }
            Ok(None)
        });
        let what = match (
            upstream.revision.filter(|r| *r > 0),
            &upstream.workspace_name,
        ) {
            (Some(revision), _) => format!(" v{revision}"),
            (None, Some(workspace)) => format!(" {workspace}"),
            (None, None) => String::new(),
        };
        let none = || {
            missing(format!(
                "repository {name} has no package {}{what}",
                upstream.package
            ))
        };
        Ok(found.await?.ok_or_else(none))
    }
}

/// Where a revision of a blueprint can be.
fn candidates(upstream: &Upstream) -> Vec<Which> {
    if let Some(revision) = upstream.revision.filter(|r| *r > 0) {
        return u32::try_from(revision)
            .map(Which::Version)
            .into_iter()
            .collect();
    }
    let Some(name) = &upstream.workspace_name else {
        return vec![Which::Deployed];
    };
    let number = name.strip_prefix('v').and_then(|n| n.parse().ok());
    let workspace = name.parse().ok().map(Which::Workspace);
    let version = number.map(Which::Version);
    let named = Some(Which::Ref(name.clone()));
    version.into_iter().chain(workspace).chain(named).collect()
}

/// The annotations of an object.
pub(super) fn annotations(object: &Object) -> std::collections::BTreeMap<String, String> {
    let map = object
        .value
        .pointer("/metadata/annotations")
        .and_then(|a| a.as_object());
    let pairs = map.into_iter().flatten();
    pairs
        .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
        .collect()
}

fn entropy(object: &Object, place: &str) -> [u8; 16] {
    use sha2::{Digest as _, Sha256};
    let uid = object
        .value
        .pointer("/metadata/uid")
        .and_then(|u| u.as_str());
    let digest = Sha256::digest(format!("{}\n{place}", uid.unwrap_or_default()));
    let mut out = [0; 16];
    out.copy_from_slice(&digest[..16]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_a_version_and_a_workspace_may_be_several_things() {
        let upstream = |revision, workspace: Option<&str>| Upstream {
            repo: "r".into(),
            package: "p".into(),
            revision,
            workspace_name: workspace.map(Into::into),
        };
        assert_eq!(candidates(&upstream(Some(2), None)), [Which::Version(2)]);
        assert_eq!(candidates(&upstream(Some(-1), None)), [Which::Deployed]);
        assert_eq!(candidates(&upstream(None, None)), [Which::Deployed]);
        let named = candidates(&upstream(None, Some("main")));
        assert_eq!(named.last(), Some(&Which::Ref("main".into())));
        assert_eq!(
            candidates(&upstream(None, Some("v3")))[0],
            Which::Version(3)
        );
    }
}
