//! Between packages: Dependencies, and claims that look another claim's address up.
//!
//! ```text
//!  every package is run ─► link those that need others ─► run them again ─► … until nothing new is linked
//!                            └ in sight: this run, --published, what an earlier run left in OUT, neighbours in Git
//! ```
//!
//! `render` calls this after all packages have been run and before anything is settled with the book. Easy to get wrong: a chain
//! (AMF → CUCP → DU) takes a turn per link, and a circle ends because a turn that links nothing new is the last.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mooring_api::{Code, Finding};
use mooring_blueprint::Bundle;
use mooring_blueprint::nephio::{self, Lookup, Provider};
use mooring_book::Txn;
use mooring_ipam::{Lease, Thing};
use mooring_krm::layout;

use crate::Error;
use crate::decide::{Decided, Run, dialect};
use crate::disk::{RealDisk, is_document, read_tree};
use crate::documents::Documents;
use crate::neighbour::Neighbour;
use crate::report::{Dialect, Request};
use crate::trees::{is_in_git, place};
use crate::unit::Unit;

/// A package that is rendered already.
struct Published {
    place: String,
    path: PathBuf,
    bundle: Bundle,
}

/// Packages that this run does not render, but may look at.
#[derive(Default)]
struct InSight(Vec<Published>);

impl InSight {
    /// Reads the directories that were named, OUT, and the neighbours. What cannot be read is told.
    fn read(
        request: &Request,
        target: &Path,
        neighbours: &[Neighbour],
        findings: &mut Vec<Finding>,
    ) -> Self {
        let mut all = Self::default();
        let out = request.out.is_some().then_some(target);
        for dir in request.published.iter().map(AsRef::as_ref).chain(out) {
            let named = out != Some(dir);
            let tree = match read_tree(&RealDisk, dir) {
                Ok(tree) => tree,
                Err(found) if named => {
                    findings.extend(found);
                    continue;
                }
                // It is made by this run.
                Err(_) => continue,
            };
            let said = all.add(dir, dir, &tree.files);
            findings.extend(said.into_iter().filter(|_| named));
        }
        for neighbour in neighbours {
            let documents = neighbour.files.iter().filter(|(path, _)| {
                let name = path.rsplit('/').next().unwrap_or(path);
                is_document(name)
            });
            let files = documents.map(|(p, bytes)| (p.clone(), bytes.clone()));
            // What is wrong with it is its own matter; what can be read of it counts.
            drop(all.add(
                &neighbour.place,
                Path::new(&neighbour.shown),
                &files.collect(),
            ));
        }
        all
    }

    /// Adds the packages of a tree that stands at a place. Says what could not be parsed.
    fn add(&mut self, at: &Path, shown: &Path, files: &BTreeMap<String, Vec<u8>>) -> Vec<Finding> {
        let mut said = Vec::new();
        for package in layout(files).packages {
            let paths = package.files;
            let own = paths
                .iter()
                .filter_map(|p| Some((p.as_str(), files.get(p)?.as_slice())));
            let name = |path: &str| shown.join(path).display().to_string();
            let documents = Documents::parse(own, name, &mut said);
            let Some(unit) = Unit::new(package.directory, paths, documents) else {
                continue;
            };
            let path = place(at, &unit.dir);
            if self.0.iter().all(|p| p.path != path) {
                let place = shown.join(&unit.dir).display().to_string();
                self.0.push(Published {
                    place: place.trim_end_matches('/').to_owned(),
                    path,
                    bundle: unit.bundle,
                });
            }
        }
        said
    }
}

impl Run<'_, '_> {
    /// Links packages to each other, and to what is rendered already.
    pub(crate) fn link(
        &mut self,
        units: &mut [Unit],
        decided: &mut [Decided],
        findings: &mut Vec<Finding>,
    ) -> Result<(), Error> {
        let open: Vec<usize> = (0..units.len())
            .filter(|at| decided[*at].outcome.cluster.is_some())
            .filter(|at| dialect(self.request, &units[*at]) == Dialect::Nephio)
            .filter(|at| looks_out(&units[*at].bundle))
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let in_sight = InSight::read(self.request, self.target, self.neighbours, findings);
        let paths: Vec<PathBuf> = units.iter().map(|u| place(self.target, &u.dir)).collect();
        // A package that another one waits for is at most this many links away.
        for _ in 0..=open.len() {
            let mut linked = false;
            for at in &open {
                linked |= self.link_one(*at, units, &paths, &in_sight, &mut decided[*at])?;
            }
            if !linked {
                break;
            }
        }
        Ok(())
    }

    /// Whether there was something new.
    fn link_one(
        &mut self,
        at: usize,
        units: &mut [Unit],
        paths: &[PathBuf],
        in_sight: &InSight,
        decided: &mut Decided,
    ) -> Result<bool, Error> {
        let before = units[at].bundle.clone();
        let mut bundle = before.clone();
        let others = units.iter().zip(paths).enumerate();
        let others = others.filter(|(other, _)| *other != at);
        let members: Vec<Member<'_>> = others
            .map(|(_, (unit, path))| Member {
                path,
                shown: self.target.join(&unit.dir).display().to_string(),
                bundle: &unit.bundle,
            })
            .collect();
        let mut waits = link(&mut bundle, &paths[at], &members, in_sight);
        waits.extend(look_up(&mut bundle, self.txn)?);
        units[at].bundle = bundle;
        let is_new = units[at].bundle != before;
        if is_new {
            let id = std::mem::take(&mut decided.id);
            *decided = self.decide(&mut units[at], id, (None, Vec::new()))?;
        }
        // An earlier turn may have said the same, or what is mended now.
        decided.said.retain(|f| f.code != Code::WaitingForPackage);
        for finding in waits {
            if !decided.said.contains(&finding) {
                decided.said.push(finding);
            }
        }
        Ok(is_new)
    }
}

/// A package of this run, as others see it.
struct Member<'a> {
    /// Where it will be.
    path: &'a Path,
    /// The same, for people.
    shown: String,
    /// What it is now.
    bundle: &'a Bundle,
}

/// The name of a package's directory. The place of one in Git is an address, a `#` and its path.
fn directory(path: &Path) -> &str {
    let inside = path.to_str().filter(|_| is_in_git(path));
    if let Some((_, inside)) = inside.and_then(|text| text.split_once('#')) {
        return inside.rsplit('/').next().unwrap_or(inside);
    }
    let name = path.file_name();
    name.and_then(|name| name.to_str()).unwrap_or_default()
}

/// Links one package to what is in sight. Says what it waits for.
fn link(
    bundle: &mut Bundle,
    own: &Path,
    members: &[Member<'_>],
    in_sight: &InSight,
) -> Vec<Finding> {
    let here = members.iter().map(|member| Provider {
        place: &member.shown,
        directory: directory(member.path),
        bundle: member.bundle,
    });
    // What this run renders is newer than what lies there.
    let elsewhere = in_sight
        .0
        .iter()
        .filter(|p| p.path != own && members.iter().all(|m| m.path != p.path));
    let elsewhere = elsewhere.map(|p| Provider {
        place: &p.place,
        directory: directory(&p.path),
        bundle: &p.bundle,
    });
    let providers: Vec<Provider<'_>> = here.chain(elsewhere).collect();
    nephio::link(bundle, &providers)
}

/// Answers the claims that look up the address of another one.
fn look_up(bundle: &mut Bundle, txn: &dyn Txn) -> Result<Vec<Finding>, mooring_book::Error> {
    let mut said = Vec::new();
    for lookup in nephio::lookups(bundle) {
        let mut found = None;
        txn.with_table(&lookup.instance, &mut |table| {
            found = table.leases().find(|lease| is_wanted(&lookup, lease));
        })?;
        said.extend(nephio::found(bundle, &lookup, found.as_ref()));
    }
    Ok(said)
}

fn is_wanted(lookup: &Lookup, lease: &Lease) -> bool {
    lease.holder.interface == lookup.wanted
        && matches!(lease.thing, Thing::Addr(_))
        && lookup.family.is_none_or(|f| f == lease.holder.family)
}

/// Whether a package looks beyond itself.
fn looks_out(bundle: &Bundle) -> bool {
    nephio::depends(bundle) || !nephio::lookups(bundle).is_empty()
}
