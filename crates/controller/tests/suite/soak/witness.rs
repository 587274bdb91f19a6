//! Looks all the while. Each list is one moment of the server, so what it shows twice is held twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mooring_package::Files;
use serde_json::Value;

use super::Storm;
use super::load::{CLAIMS, VLANS};

pub(super) const LEASES: &str = "/apis/mooring.dev/v1alpha1/ipleases";

/// What it has seen so far.
#[derive(Default)]
struct Witness {
    looks: usize,
    /// Claim to what it was told first: nobody is moved.
    told: BTreeMap<String, String>,
}

/// Looks until it is calm; a wrong sight fails the test. Says how much it saw.
pub(super) fn look(storm: &Storm<'_>) -> String {
    let mut witness = Witness::default();
    while storm.goes_on() {
        witness.at_the_server(storm);
        witness.at_git(storm);
        std::thread::sleep(Duration::from_millis(200));
    }
    let Witness { looks, told } = witness;
    assert!(looks > 5, "it saw next to nothing");
    format!("{looks} looks at {} claims with an answer", told.len())
}

impl Witness {
    fn at_the_server(&mut self, storm: &Storm<'_>) {
        let ns = &storm.scene.name;
        let cluster = &storm.scene.stage.cluster;
        // A server that is away shows nothing.
        let list = |path: &str| cluster.request("GET", path, None).ok();
        if let Some(leases) = list(LEASES) {
            let mut seen = BTreeSet::new();
            for lease in items(&leases) {
                assert!(
                    seen.insert(thing(lease)),
                    "two leases of one thing: {lease}"
                );
            }
            self.looks += 1;
        }
        for claims in [
            format!("{CLAIMS}/namespaces/{ns}/ipclaims"),
            format!("{VLANS}/namespaces/{ns}/vlanclaims"),
        ] {
            let Some(claims) = list(&claims) else {
                continue;
            };
            let mut seen = BTreeMap::new();
            for claim in items(&claims) {
                let Some(answer) = answer(claim) else {
                    continue;
                };
                let name = claim["metadata"]["name"].to_string();
                let other = seen.insert(answer.clone(), name.clone());
                assert_eq!(other, None, "{answer} was given to {name} too");
                let uid = claim["metadata"]["uid"].to_string();
                let first = self.told.entry(uid).or_insert_with(|| answer.clone());
                assert_eq!(*first, answer, "{name} was moved");
            }
        }
    }

    fn at_git(&mut self, storm: &Storm<'_>) {
        // The repository itself, so also while nobody can reach it.
        let packages = storm.scene.packages("edge");
        let (Ok(standing), Ok(published)) = (packages.standing(), packages.published()) else {
            return;
        };
        for (package, open) in &standing.open {
            assert_whole(package.as_str(), &open.files);
        }
        for (package, files) in &published {
            assert_whole(package.as_str(), files);
        }
        self.looks += 1;
    }
}

/// A package is specialised in one step: nobody ever sees half of it.
pub(super) fn assert_whole(package: &str, files: &Files) {
    // The pusher's notes are no package.
    if !package.starts_with("upf-") {
        return;
    }
    for file in [
        "Kptfile",
        "interface-n3.yaml",
        "networkattachmentdefinition_n3.yaml",
    ] {
        assert!(
            files.contains_key(file),
            "{package} without {file}: {:?}",
            files.keys()
        );
    }
}

pub(super) fn items(list: &Value) -> &[Value] {
    list["items"].as_array().map_or(&[], Vec::as_slice)
}

/// Instance and address or VLAN of a lease.
pub(super) fn thing(lease: &Value) -> (String, String, String) {
    let spec = &lease["spec"];
    let address = spec["address"]
        .as_str()
        .map_or_else(|| spec["vlan"].to_string(), str::to_owned);
    (
        spec["instance"]["namespace"].to_string(),
        spec["instance"]["name"].to_string(),
        address,
    )
}

/// The address or VLAN that a claim was told.
pub(super) fn answer(claim: &Value) -> Option<String> {
    let status = &claim["status"];
    if let Some(prefix) = status["prefix"].as_str() {
        return prefix.split('/').next().map(str::to_owned);
    }
    status["vlanID"].as_u64().map(|id| id.to_string())
}
