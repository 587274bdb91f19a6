//! A draft that a person pushed is specialised as a variant's is: in one step, on top of what they pushed.
//!
//! What keeps it from being specialised is said where they look: in the draft's Kptfile, as a condition, and as an Event on
//! the Repository. Easy to get wrong: the condition is a commit of ours, so it is written only where it says something new.

use std::collections::BTreeSet;
use std::sync::Arc;

use mooring_api::{Code, Condition, Finding, Span, Status, Time, annotation};
use mooring_blueprint::Object;
use mooring_package::revision::addressed::Addressed;
use mooring_package::revision::{Base, Draft, Lifecycle, Open, PackageName, Standing};
use mooring_package::{
    Files, Kpt, Neighbour, Site, Specialise, injection_points, needed_packages, specialise,
    with_condition, without_condition,
};

use super::book::Book;
use super::conditions::sentence;
use super::remote::Remote;
use super::{CLUSTER, Role, blocking, site_of};
use crate::error::{Error, chain};
use crate::world::World;

/// What a draft's Kptfile says while it cannot be specialised.
const SPECIALISED: &str = "mooring.dev.Specialised";

impl Role {
    /// Specialises what people drafted in a repository. What they must do is a finding each.
    pub(super) async fn drafts(
        &self,
        repository: &Object,
        remote: &Arc<Remote>,
        standing: Standing,
        site: Vec<Object>,
    ) -> Result<Vec<Finding>, Error> {
        let variants = self.variants().await?;
        let living = |mark: &str| {
            variants
                .iter()
                .any(|v| format!("{}/{}", v.namespace(), v.name()) == mark)
        };
        let hand: Vec<(PackageName, Open)> = standing
            .open
            .into_iter()
            .filter(|(_, open)| Kpt::read(&open.files).is_some_and(|kpt| !living(&kpt.variant)))
            .collect();
        if hand.is_empty() {
            return Ok(Vec::new());
        }
        let names: BTreeSet<String> = hand
            .iter()
            .flat_map(|(_, open)| needed_packages(&open.files))
            .collect();
        let neighbours = self.neighbours(repository.namespace(), &names).await?;
        let mut site = site;
        let points = hand
            .iter()
            .flat_map(|(_, open)| injection_points(&open.files))
            .collect();
        site.extend(self.injected(repository.namespace(), points).await?);
        let _flight = self.flight.clone().read_owned().await;
        let _turn = self.turns.take(&remote.packages.repository.url).await;
        let hands = self.hands(repository, remote, &site, neighbours);
        blocking(move || {
            let site = site_of(&site);
            let mut findings = Vec::new();
            for (package, open) in hand {
                match hands.one(&package, &open, &site) {
                    Ok(found) => findings.extend(found),
                    // One that somebody pushes to right now is looked at next time.
                    Err(error) if error.is_overtaken() => {
                        tracing::info!(%package, error = chain(&error), "overtaken by another push");
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(findings)
        })
        .await
    }

    /// What packages that a person made may be injected with, beside clusters. A kind that we may not read keeps nobody else up.
    pub(super) async fn injected(
        &self,
        namespace: &str,
        mut points: BTreeSet<(String, String)>,
    ) -> Result<Vec<Object>, Error> {
        points.remove(&(CLUSTER.0.to_owned(), CLUSTER.1.to_owned()));
        let mut all = Vec::new();
        for (api_version, kind) in points {
            match self.cache.all(&api_version, &kind, Some(namespace)).await {
                Ok(more) => all.extend(more),
                Err(error @ Error::Unreadable { .. }) => {
                    tracing::warn!(error = chain(&error), "packages cannot be injected with it");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// What the packages of a repository that a person made are worked on with.
    pub(super) fn hands(
        &self,
        repository: &Object,
        remote: &Arc<Remote>,
        site: &[Object],
        neighbours: Vec<Neighbour>,
    ) -> Hands {
        Hands {
            world: self.world.clone(),
            book: self.book.clone(),
            remote: remote.clone(),
            fallback: fallback(repository, site),
            repository: repository.clone(),
            neighbours,
        }
    }
}

/// Since when the draft that waits longest cannot be specialised: as its own Kptfile says.
pub(super) fn held_since(open: &[(PackageName, Open)]) -> Option<Time> {
    let is_held = |open: &Open| {
        let conditions = Kpt::read(&open.files).unwrap_or_default().conditions;
        let own = conditions.iter().find(|c| c.kind == SPECIALISED);
        own.is_some_and(|condition| condition.status == Status::False)
    };
    let held = open.iter().filter(|(_, open)| is_held(open));
    held.map(|(_, open)| open.at).min()
}

/// The cluster of packages that do not say theirs: the repository says it, or is called like it.
fn fallback(repository: &Object, site: &[Object]) -> Option<String> {
    let labels = repository.labels();
    let said = repository
        .annotation(annotation::CLUSTER)
        .map(ToOwned::to_owned);
    let said = said.or_else(|| labels.get(annotation::CLUSTER).cloned());
    let clusters = site
        .iter()
        .filter(|o| (o.api_version(), o.kind()) == CLUSTER);
    let named = |o: &&Object| {
        o.name() == repository.name() || mooring_blueprint::cluster::name_of(o) == repository.name()
    };
    said.or_else(|| {
        clusters
            .into_iter()
            .find(named)
            .map(mooring_blueprint::cluster::name_of)
    })
}

/// The cluster that a draft is for; None leaves it to the engine, which knows what is in the package.
fn cluster(kpt: &Kpt, fallback: Option<&String>) -> Option<String> {
    let said = kpt.annotations.get(annotation::CLUSTER).cloned();
    let has_one = !kpt.clusters.is_empty();
    said.or_else(|| fallback.filter(|_| !has_one).cloned())
}

/// Works on packages of one repository that a person made.
pub(super) struct Hands {
    pub(super) world: World,
    book: Book,
    pub(super) remote: Arc<Remote>,
    repository: Object,
    fallback: Option<String>,
    /// Packages that the drafts may need.
    neighbours: Vec<Neighbour>,
}

impl Hands {
    /// The repository's packages, with their addresses.
    pub(super) fn addressed<'a>(
        &'a self,
        package: &PackageName,
        kpt: &Kpt,
        site: &'a Site,
    ) -> Addressed<'a, &'a Book> {
        Addressed {
            packages: &self.remote.packages,
            desk: &self.book,
            site,
            cluster: cluster(kpt, self.fallback.as_ref()),
            dialect: None,
            hold: Span(self.world.args.packages.draft_reservation.as_secs()),
            deploy_records: self.world.args.packages.deploy_records,
            neighbours: Some(&self.neighbours),
            now: self.world.now(),
            entropy: entropy(&self.remote, package),
        }
    }

    /// What is proposed stays as it is, and keeps its addresses.
    fn renew(
        &self,
        package: &PackageName,
        open: &Open,
        kpt: &Kpt,
        site: &Site,
    ) -> Result<Vec<Finding>, Error> {
        self.world.fence()?;
        let hold = Span(self.world.args.packages.draft_reservation.as_secs());
        let place = self.remote.packages.repository.place(package.as_str());
        let how = Specialise {
            cluster: cluster(kpt, self.fallback.as_ref()),
            draft: Some(hold),
            deploy_records: self.world.args.packages.deploy_records,
            carries: Some(&|_, _| false),
            ..Specialise::new(
                site,
                place,
                self.world.now(),
                entropy(&self.remote, package),
            )
        };
        self.book
            .with(|store| specialise(store, &open.files, &how))?;
        Ok(Vec::new())
    }

    fn one(&self, package: &PackageName, open: &Open, site: &Site) -> Result<Vec<Finding>, Error> {
        let Some(kpt) = Kpt::read(&open.files) else {
            return Ok(Vec::new());
        };
        if open.lifecycle == Lifecycle::Proposed {
            return self.renew(package, open, &kpt, site);
        }
        self.world.fence()?;
        let addressed = self.addressed(package, &kpt, site);
        let files = match without_condition(&open.files, SPECIALISED) {
            Ok(kptfile) => with_kptfile(&open.files, kptfile),
            Err(finding) => return Ok(vec![finding.on(&self.repository.reference())]),
        };
        let outcome = addressed.push(&draft(package, open, files), None)?;
        let errors: Vec<Finding> = outcome
            .report
            .findings
            .into_iter()
            .filter(Finding::is_error)
            .collect();
        let Some(first) = errors.first().filter(|_| outcome.done.is_none()) else {
            return Ok(Vec::new());
        };
        let condition = Condition {
            kind: SPECIALISED.to_owned(),
            status: Status::False,
            reason: first.code.as_str().to_owned(),
            message: said(first),
        };
        if kpt.conditions.contains(&condition) {
            return Ok(Vec::new());
        }
        self.world.fence()?;
        if let Ok(kptfile) = with_condition(&open.files, &condition) {
            let files = with_kptfile(&open.files, kptfile);
            self.remote.packages.write(&draft(package, open, files))?;
        }
        let told = |finding: Finding| Finding {
            message: format!("draft {} of {package}: {}", open.workspace, finding.message),
            ..finding
        };
        Ok(errors.into_iter().map(told).collect())
    }
}

/// The draft with other files, on top of what they pushed; one that they removed stays removed.
fn draft(package: &PackageName, open: &Open, files: Files) -> Draft {
    Draft {
        package: package.clone(),
        workspace: open.workspace.clone(),
        files,
        base: Base::Tip(open.commit.clone()),
        onto_published: false,
        message: Some(format!("Specialise draft {} of {package}", open.workspace)),
    }
}

fn with_kptfile(files: &Files, kptfile: Vec<u8>) -> Files {
    let mut files = files.clone();
    files.insert("Kptfile".to_owned(), kptfile);
    files
}

/// What the Kptfile says; for the cluster, what a person can do in a draft.
fn said(finding: &Finding) -> String {
    let cluster = matches!(finding.code, Code::MissingCluster | Code::AmbiguousCluster);
    if cluster {
        let help = format!(
            "Annotate the Kptfile with {}, or label the Repository with it.",
            annotation::CLUSTER
        );
        return format!("{}. {help}", finding.message);
    }
    sentence(finding)
}

/// The identity of a package that a person made follows from its place.
fn entropy(remote: &Remote, package: &PackageName) -> [u8; 16] {
    use sha2::{Digest as _, Sha256};
    let place = remote.packages.repository.place(package.as_str());
    let digest = Sha256::digest(place.as_os_str().as_encoded_bytes());
    let mut out = [0; 16];
    out.copy_from_slice(&digest[..16]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(kind: &str, metadata: serde_json::Value) -> Object {
        let api = if kind == "Repository" {
            "config.porch.kpt.dev/v1alpha1"
        } else {
            CLUSTER.0
        };
        Object {
            value: json!({ "apiVersion": api, "kind": kind, "metadata": metadata, "spec": {} }),
            source: None,
        }
    }

    #[test]
    fn a_draft_waits_from_when_its_kptfile_says_that_it_cannot_be_specialised() {
        let condition = |status| Condition {
            kind: SPECIALISED.to_owned(),
            status,
            reason: "MissingCluster".to_owned(),
            message: "no cluster".to_owned(),
        };
        let kptfile = b"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: upf}\n";
        let plain = Files::from([("Kptfile".to_owned(), kptfile.to_vec())]);
        let with = |status| {
            let kptfile = with_condition(&plain, &condition(status)).unwrap();
            with_kptfile(&plain, kptfile)
        };
        let open = |at, files: &Files| {
            let open = Open {
                lifecycle: Lifecycle::Draft,
                workspace: "edit".parse().unwrap(),
                commit: mooring_package::git::Oid::parse(&"0".repeat(40)).unwrap(),
                at: Time(at),
                outdated: false,
                files: files.clone(),
            };
            ("upf".parse::<PackageName>().unwrap(), open)
        };
        let held = with(Status::False);
        let fine = [open(1, &plain), open(2, &with(Status::True))];
        assert_eq!(held_since(&fine), None);
        let some = [fine[0].clone(), open(9, &held), open(7, &held)];
        assert_eq!(held_since(&some), Some(Time(7)));
    }

    #[test]
    fn the_package_says_its_cluster_before_the_repository_does() {
        let mut kpt = Kpt::default();
        let edge = "edge".to_owned();
        assert_eq!(cluster(&kpt, Some(&edge)), Some(edge.clone()));
        kpt.clusters = vec!["own".into()];
        assert_eq!(
            cluster(&kpt, Some(&edge)),
            None,
            "the engine finds the package's own"
        );
        kpt.annotations
            .insert(annotation::CLUSTER.into(), "said".into());
        assert_eq!(cluster(&kpt, Some(&edge)), Some("said".into()));
    }

    #[test]
    fn a_repository_says_its_cluster_by_label_or_by_its_name() {
        let site = [object("WorkloadCluster", json!({ "name": "edge01" }))];
        let repository = |metadata| fallback(&object("Repository", metadata), &site);
        let labelled = json!({ "name": "x", "labels": { "mooring.dev/cluster": "edge02" } });
        assert_eq!(repository(labelled), Some("edge02".into()));
        assert_eq!(
            repository(json!({ "name": "edge01" })),
            Some("edge01".into())
        );
        assert_eq!(repository(json!({ "name": "other" })), None);
    }
}
