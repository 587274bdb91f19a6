//! What there is: every draft, every proposal, every version, and packages that somebody committed without one.

use std::collections::{BTreeMap, BTreeSet};

use super::publish::WORKSPACE;
use super::{
    DRAFTS, Error, Lifecycle, PROPOSED, PackageName, Revision, Workspace, is_same, name, nested,
    newest,
};
use crate::git::{Mirror, Oid, Ref};

pub(super) fn list(mirror: &Mirror) -> Result<Vec<Revision>, Error> {
    let main = mirror.branch(&mirror.repository().branch);
    let main = main.map(|main| (main.commit.clone(), main.at));
    let mut all = Vec::new();
    let mut versions: BTreeSet<PackageName> = BTreeSet::new();
    for (name, at) in mirror.refs() {
        if let Some(draft) = draft(mirror, name, at, main.as_ref().map(|(oid, _)| oid))? {
            all.push(draft);
        } else if let Some((package, version)) = version(name) {
            versions.insert(package.clone());
            all.push(Revision {
                workspace: at.trailers.get(WORKSPACE).and_then(|w| w.parse().ok()),
                package,
                lifecycle: Lifecycle::Published,
                version: Some(version),
                commit: at.commit.clone(),
                at: at.at,
                deployed: false,
                outdated: false,
            });
        }
    }
    if let Some((main, at)) = &main {
        let there: BTreeSet<PackageName> = deployed(mirror, main)?.into_iter().collect();
        mark(mirror, main, &there, &versions, &mut all)?;
        for package in top(mirror, there.difference(&versions)) {
            all.push(Revision {
                package,
                workspace: None,
                lifecycle: Lifecycle::Published,
                version: None,
                commit: main.clone(),
                at: *at,
                deployed: true,
                outdated: false,
            });
        }
    }
    all.sort_by(|a, b| {
        let key = |r: &Revision| {
            (
                r.package.clone(),
                r.lifecycle,
                r.version,
                r.workspace.clone(),
            )
        };
        key(a).cmp(&key(b))
    });
    Ok(all)
}

/// Says of each package's highest version whether it is deployed, and as it was published.
fn mark(
    mirror: &Mirror,
    main: &Oid,
    there: &BTreeSet<PackageName>,
    versions: &BTreeSet<PackageName>,
    all: &mut [Revision],
) -> Result<(), Error> {
    // All at once: most are as they were published.
    let both: Vec<(&PackageName, String, u32, &Ref)> = versions
        .intersection(there)
        .filter_map(|package| {
            let path = mirror.repository().path(package.as_str());
            let (number, at) = newest(mirror, package)?;
            Some((package, path, number, at))
        })
        .collect();
    let wanted = both
        .iter()
        .flat_map(|(_, path, _, at)| [(main, path.as_str()), (&at.commit, path.as_str())]);
    let ids = mirror.ids_at(&wanted.collect::<Vec<_>>())?;
    let mut known = BTreeMap::new();
    for ((package, _, number, at), ids) in both.iter().zip(ids.chunks(2)) {
        let same = ids[0] == ids[1]
            || (!nested(mirror, package).is_empty()
                && is_same(mirror, package, Some(main), Some(&at.commit))?);
        known.insert(((*package).clone(), *number), same);
    }
    for revision in all {
        let Some(version) = revision.version else {
            continue;
        };
        if let Some(same) = known.get(&(revision.package.clone(), version)) {
            (revision.deployed, revision.outdated) = (true, !same);
        }
    }
    Ok(())
}

/// Packages that are not inside of another one.
fn top<'p>(mirror: &Mirror, packages: impl Iterator<Item = &'p PackageName>) -> Vec<PackageName> {
    let mut out: Vec<PackageName> = Vec::new();
    for package in packages {
        let inside = |other: &PackageName| package.as_str().starts_with(&format!("{other}/"));
        let above = newest_above(mirror, package);
        if !above && !out.iter().any(inside) {
            out.push(package.clone());
        }
    }
    out
}

/// Whether a package around this one has versions, so that this is a part of that.
fn newest_above(mirror: &Mirror, package: &PackageName) -> bool {
    let parts = package.as_str().match_indices('/');
    let above = parts.filter_map(|(at, _)| package.as_str()[..at].parse().ok());
    above
        .into_iter()
        .any(|above| newest(mirror, &above).is_some())
}

/// Every directory that holds a Kptfile.
pub(super) fn deployed(mirror: &Mirror, main: &Oid) -> Result<Vec<PackageName>, Error> {
    let dirs = mirror.kptfiles(main, &mirror.repository().directory)?;
    Ok(dirs.iter().filter_map(|dir| dir.parse().ok()).collect())
}

/// Of these, the packages that are no part of another one, each with the id of its directory.
pub(super) fn published(
    mirror: &Mirror,
    main: &Oid,
    deployed: &[PackageName],
) -> Result<Vec<(PackageName, Oid)>, Error> {
    let there: BTreeSet<&PackageName> = deployed.iter().collect();
    let (own, without): (Vec<&PackageName>, Vec<&PackageName>) = there
        .into_iter()
        .partition(|package| newest(mirror, package).is_some());
    let mut all: Vec<PackageName> = own.into_iter().cloned().collect();
    all.extend(top(mirror, without.into_iter()));
    let path = |package: &PackageName| mirror.repository().path(package.as_str());
    let paths: Vec<String> = all.iter().map(path).collect();
    let wanted: Vec<(&Oid, &str)> = paths.iter().map(|path| (main, path.as_str())).collect();
    let ids = mirror.ids_at(&wanted)?;
    Ok(all
        .into_iter()
        .zip(ids)
        .filter_map(|(package, id)| Some((package, id?)))
        .collect())
}

fn draft(
    mirror: &Mirror,
    name: &str,
    at: &Ref,
    main: Option<&Oid>,
) -> Result<Option<Revision>, Error> {
    let Some((lifecycle, package, workspace)) = parts(name) else {
        return Ok(None);
    };
    let base = match main {
        Some(main) => mirror.base(&at.commit, main)?,
        None => None,
    };
    Ok(Some(Revision {
        outdated: !is_same(mirror, &package, base.as_ref(), main)?,
        package,
        workspace: Some(workspace),
        lifecycle,
        version: None,
        commit: at.commit.clone(),
        at: at.at,
        deployed: false,
    }))
}

/// What a branch is.
pub(super) fn parts(name: &str) -> Option<(Lifecycle, PackageName, Workspace)> {
    let (kind, rest) = name.strip_prefix("refs/heads/")?.split_once('/')?;
    let lifecycle = match kind {
        DRAFTS => Lifecycle::Draft,
        PROPOSED => Lifecycle::Proposed,
        _ => return None,
    };
    let (package, workspace) = rest.rsplit_once('/')?;
    Some((lifecycle, package.parse().ok()?, workspace.parse().ok()?))
}

fn version(name: &str) -> Option<(PackageName, u32)> {
    let (package, version) = name.strip_prefix("refs/tags/")?.rsplit_once('/')?;
    Some((package.parse().ok()?, name::version(version)?))
}
