//! Which cluster each group of files belongs to, once its objects are known.
//!
//! The user's word, then the WorkloadCluster among the files, then the one above them, then the name of a
//! directory. Easy to get wrong: files with several WorkloadClusters, or with nothing but pools, describe a
//! site; they are of no cluster, and must not be counted as one.

use std::collections::{BTreeMap, BTreeSet};

use mooring_blueprint::Object;
use mooring_blueprint::cluster::name_of;
use mooring_krm::kptfile;
use serde_json::Value;

use super::gather::Place;
use super::{Group, Sheet, items};

/// What the objects of a group say.
#[derive(Default)]
struct Said {
    clusters: BTreeSet<String>,
    package: Option<String>,
    /// Something that a cluster would run.
    deploys: bool,
    any: bool,
}

pub(super) fn name(places: &[Place], sheets: &[Sheet]) -> Vec<Group> {
    let mut said: Vec<Said> = places.iter().map(|_| Said::default()).collect();
    for sheet in sheets {
        let one = &mut said[sheet.group];
        for place in 0..sheet.documents.places.len() {
            let value = sheet.documents.value(place);
            match items(value) {
                Some(items) => items.iter().for_each(|item| one.hear(item)),
                None => one.hear(value),
            }
        }
    }
    let group = |(at, place): (usize, &Place)| Group {
        cluster: cluster(at, places, &said),
        package: said[at].package.clone().unwrap_or_default(),
        is_package: place.package.is_some(),
        dir: place.package.clone().unwrap_or_default(),
    };
    let mut groups: Vec<Group> = places.iter().enumerate().map(group).collect();
    tell_apart(&mut groups);
    groups
}

impl Said {
    fn hear(&mut self, value: &Value) {
        if kptfile::is_kptfile(value) {
            let name = kptfile::package_name(value).map(str::to_owned);
            self.package = name.or(self.package.take());
            return;
        }
        self.any = true;
        let version = value.get("apiVersion").and_then(Value::as_str);
        let group = version
            .and_then(|v| v.split_once('/'))
            .map(|(group, _)| group);
        self.deploys |= !group.is_some_and(|group| group.ends_with("nephio.org"));
        if group == Some("infra.nephio.org") && value["kind"] == "WorkloadCluster" {
            let value = value.clone();
            let source = None;
            self.clusters.insert(name_of(&Object { value, source }));
        }
    }

    /// The one cluster that is spoken of.
    fn own(&self) -> Option<&String> {
        self.clusters.first().filter(|_| self.clusters.len() == 1)
    }
}

fn cluster(at: usize, places: &[Place], said: &[Said]) -> String {
    let (place, one) = (&places[at], &said[at]);
    let describes = one.clusters.len() > 1 || (one.any && !one.deploys);
    if place.management || (place.fixed.is_none() && place.package.is_none() && describes) {
        return String::new();
    }
    let above = || {
        let mut around = std::iter::successors(place.above, |at| places[*at].above);
        around.find_map(|at| said[at].own())
    };
    let own = if one.clusters.is_empty() {
        above()
    } else {
        one.own()
    };
    place
        .fixed
        .as_ref()
        .or(own)
        .unwrap_or(&place.fallback)
        .clone()
}

/// Two packages of one name in one cluster are two users of their addresses, so each gets a name of its own:
/// its directory.
fn tell_apart(groups: &mut [Group]) {
    let mut named: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (at, group) in groups.iter().enumerate().filter(|(_, g)| g.is_package) {
        let name = (group.cluster.clone(), group.package.clone());
        named.entry(name).or_default().push(at);
    }
    for at in named.into_values().filter(|same| same.len() > 1).flatten() {
        let group = &mut groups[at];
        group.package.clone_from(&group.dir);
    }
}
