//! The end: everything that is there is Ready, and the book is counted against what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mooring_package::Files;
use serde_json::Value;

use super::Storm;
use super::load::{CLAIMS, VLANS, is_published};
use super::witness::{LEASES, answer, assert_whole};
use crate::harness::{condition, until_within};

/// Longer than any backoff of the controllers.
const BOUND: Duration = Duration::from_mins(3);

/// Waits until the count is right; says what was counted.
pub(super) fn wait(storm: &Storm<'_>) -> String {
    until_within(BOUND, "everything is Ready and counted", || count(storm))
}

fn count(storm: &Storm<'_>) -> Result<String, String> {
    let (scene, cluster) = (storm.scene, &storm.scene.stage.cluster);
    let ns = &scene.name;
    let mut claims = cluster.list(&format!("{CLAIMS}/namespaces/{ns}/ipclaims"));
    claims.extend(cluster.list(&format!("{VLANS}/namespaces/{ns}/vlanclaims")));
    let mut wanted = BTreeMap::new();
    for claim in &claims {
        let told = answer(claim).filter(|_| holds(claim, "Ready"));
        let told = told.ok_or_else(|| format!("not Ready: {claim}"))?;
        wanted.insert(
            claim["metadata"]["uid"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            told,
        );
    }
    let leases = cluster.list(LEASES);
    let (of_claims, of_packages): (Vec<_>, Vec<_>) = leases
        .iter()
        .partition(|lease| lease["spec"]["claimRef"].is_object());
    let mut held = BTreeMap::new();
    for lease in &of_claims {
        let spec = &lease["spec"];
        let uid = spec["claimRef"]["uid"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let address = spec["address"]
            .as_str()
            .map_or_else(|| spec["vlan"].to_string(), str::to_owned);
        if let Some(other) = held.insert(uid.clone(), address.clone()) {
            return Err(format!("claim {uid} has {other} and {address}"));
        }
    }
    if held != wanted {
        let lost: Vec<_> = wanted
            .iter()
            .filter(|(uid, _)| !held.contains_key(*uid))
            .collect();
        let leaked: Vec<_> = held
            .iter()
            .filter(|(uid, _)| !wanted.contains_key(*uid))
            .collect();
        return Err(format!(
            "claims without a lease {lost:?}, leases without a claim {leaked:?}"
        ));
    }
    let packages = packages(storm)?;
    let states: BTreeSet<(String, String)> = of_packages.iter().map(|l| state(l)).collect();
    if states != packages || of_packages.len() != packages.len() {
        return Err(format!("in Git {packages:?}, in the book {states:?}"));
    }
    let (claims, packages) = (claims.len(), packages.len());
    Ok(format!(
        "{claims} claims and {packages} packages with a lease each, no other lease"
    ))
}

/// Address and state of what Git has of every variant, and of nothing else.
fn packages(storm: &Storm<'_>) -> Result<BTreeSet<(String, String)>, String> {
    let scene = storm.scene;
    let list = scene.path("");
    let variants = scene.stage.cluster.list(list.trim_end_matches('/'));
    let mut names = BTreeSet::new();
    for variant in &variants {
        let name = variant["metadata"]["name"].as_str().unwrap_or_default();
        let kind = if is_published(name) {
            "Published"
        } else {
            "Specialised"
        };
        let going = !variant["metadata"]["deletionTimestamp"].is_null();
        if going || !holds(variant, kind) {
            return Err(format!("{name} is not {kind}: {}", variant["status"]));
        }
        names.insert(name.to_owned());
    }
    let git = scene.packages("edge");
    let standing = git.standing().map_err(|e| e.to_string())?;
    let published = git.published().map_err(|e| e.to_string())?;
    let open = standing
        .open
        .iter()
        .map(|(package, open)| (package, &open.files, "reserved"));
    let published = published
        .iter()
        .map(|(package, files)| (package, files, "held"));
    let (mut seen, mut found) = (BTreeSet::new(), BTreeSet::new());
    for (package, files, state) in open.chain(published) {
        let package = package.as_str();
        if !package.starts_with("upf-") {
            continue;
        }
        assert_whole(package, files);
        let right = is_published(package) == (state == "held");
        if !right || !names.contains(package) || !seen.insert(package.to_owned()) {
            return Err(format!("{package} is {state} in Git, beside {names:?}"));
        }
        found.insert((
            address(files).ok_or("a NAD without an address")?,
            state.to_owned(),
        ));
    }
    if seen != names {
        return Err(format!("variants {names:?}, in Git {seen:?}"));
    }
    Ok(found)
}

fn holds(object: &Value, kind: &str) -> bool {
    let current = object["metadata"]["generation"].as_i64();
    let at = object["status"]["conditions"]
        .as_array()
        .and_then(|all| all.iter().find(|c| c["type"] == kind)?["observedGeneration"].as_i64());
    at.is_none_or(|at| Some(at) == current)
        && condition(object, kind).is_some_and(|(status, _)| status == "True")
}

fn state(lease: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (
        text(&lease["spec"]["address"]),
        text(&lease["spec"]["state"]),
    )
}

/// The address of the NAD: `"address": "10.163.2.20/24"`.
fn address(files: &Files) -> Option<String> {
    let nad = files.get("networkattachmentdefinition_n3.yaml")?;
    let text = String::from_utf8_lossy(nad);
    let (_, rest) = text.split_once("\"address\"")?;
    let (_, rest) = rest.split_once('"')?;
    Some(rest.split_once('/')?.0.to_owned())
}
