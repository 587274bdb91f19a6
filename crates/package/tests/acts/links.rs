//! Packages in Git that need each other: what a session manager's Dependency finds on the deployment branch, and when it waits.

use std::collections::BTreeSet;

use mooring_api::{Code, Span};
use mooring_book::FileStore;
use mooring_package::git::Files;
use mooring_package::revision::addressed::{Addressed, Outcome};
use mooring_package::revision::{Base, Error, Packages, Which};
use mooring_package::{Neighbour, Report, Site, Specialise, needed_packages, specialise};

use crate::forge::{Forge, NOW, draft, files, name, workspace};

const SITE: &str = "apiVersion: infra.nephio.org/v1alpha1
kind: WorkloadCluster
metadata: {name: edge01}
spec: {clusterName: edge01, cnis: [macvlan], masterInterface: eth1}
---
apiVersion: infra.nephio.org/v1alpha1
kind: WorkloadCluster
metadata: {name: regional}
spec: {clusterName: regional, cnis: [macvlan], masterInterface: eth1}
---
apiVersion: infra.nephio.org/v1alpha1
kind: Network
metadata: {name: signalling}
spec: {topology: none, routingTables: [{name: signalling, prefixes: [{prefix: 172.20.0.0/16}]}]}
";

const MUTATORS: &str = "pipeline:
  mutators:
  - image: example.com/functions/nfdeploy-fn:v2.0.0
  - image: example.com/functions/interface-fn:v2.0.0
  - image: example.com/functions/nad-fn:v2.0.0
  - image: example.com/functions/interface-fn:v2.0.0
  - image: example.com/functions/nfdeploy-fn:v2.0.0
";

/// A package of the nephio dialect with a network function.
fn function(package: &str, function: &str, more: &str) -> Files {
    let objects = format!(
        "apiVersion: workload.nephio.org/v1alpha1
kind: NFDeployment
metadata: {{name: {function}, namespace: core}}
spec: {{provider: {function}.example.com}}
{more}"
    );
    let mut files = files(package, &[("function.yaml", objects.as_str())]);
    files.get_mut("Kptfile").unwrap().extend(MUTATORS.bytes());
    files
}

fn owned(by: &str) -> String {
    format!(
        "annotations: {{config.kubernetes.io/local-config: \"true\", specializer.nephio.org/namespace: core, \
         specializer.nephio.org/owner: workload.nephio.org/v1alpha1.NFDeployment.{by}}}"
    )
}

fn upf(package: &str, name: &str) -> Files {
    let interface = format!(
        "---
apiVersion: req.nephio.org/v1alpha1
kind: Interface
metadata:
  name: n4
  {}
spec: {{networkInstance: {{name: signalling}}, cniType: macvlan, attachmentType: vlan}}
",
        owned(name)
    );
    function(package, name, &interface)
}

fn smf() -> Files {
    let dependency = format!(
        "---
apiVersion: req.nephio.org/v1alpha1
kind: Dependency
metadata:
  name: user-planes
  {}
spec: {{packageName: core-upf, injectors: [{{apiVersion: workload.nephio.org/v1alpha1, kind: NFDeployment}}]}}
",
        owned("smf")
    );
    function("core-smf", "smf", &dependency)
}

struct Hub {
    forge: Forge,
    packages: Packages,
    book: FileStore,
    site: Site,
}

impl Hub {
    fn new() -> Self {
        let forge = Forge::new();
        forge.place.write("nephio/site.yaml", SITE);
        let site = Site::read(&forge.place.path("nephio"));
        assert!(site.findings().is_empty(), "{:?}", site.findings());
        Self {
            packages: forge.packages(),
            book: forge.place.book(),
            site,
            forge,
        }
    }

    fn acts(&self, cluster: &str) -> Addressed<'_, &FileStore> {
        Addressed {
            packages: &self.packages,
            desk: &self.book,
            site: &self.site,
            cluster: Some(cluster.to_owned()),
            dialect: None,
            hold: Span(86_400),
            deploy_records: false,
            neighbours: None,
            now: NOW,
            entropy: [9; 16],
        }
    }

    fn push(&self, cluster: &str, package: &str, workspace: &str, files: &Files) -> Report {
        let draft = draft(package, workspace, files, Base::Any);
        done(self.acts(cluster).push(&draft, None).unwrap())
    }

    fn propose(&self, cluster: &str, package: &str, workspace: &str) -> Report {
        let acts = self.acts(cluster);
        let proposed = acts.propose(&name(package), &self::workspace(workspace));
        done(proposed.unwrap())
    }

    fn approve(&self, cluster: &str, package: &str, workspace: &str) -> Report {
        let acts = self.acts(cluster);
        let approved = acts.approve(&name(package), &self::workspace(workspace));
        done(approved.unwrap())
    }

    fn publish(&self, cluster: &str, package: &str, workspace: &str, files: &Files) {
        self.push(cluster, package, workspace, files);
        self.propose(cluster, package, workspace);
        self.approve(cluster, package, workspace);
    }

    /// The Configs that a package has.
    fn configs(&self, package: &str, which: &Which) -> Vec<String> {
        configs(&self.packages.need(&name(package), which).unwrap().files)
    }
}

fn done<T>(outcome: Outcome<T>) -> Report {
    assert!(outcome.done.is_some(), "{:?}", outcome.report.findings);
    outcome.report
}

fn configs(files: &Files) -> Vec<String> {
    let names = files.keys().filter(|path| path.starts_with("config_"));
    names.cloned().collect()
}

fn waits(report: &Report) -> Vec<(&str, &str)> {
    let findings = report.findings.iter();
    let waiting = findings.filter(|f| f.code == Code::WaitingForPackage);
    waiting
        .map(|f| (f.message.as_str(), f.help.as_str()))
        .collect()
}

fn draft_of(workspace: &str) -> Which {
    Which::Draft(self::workspace(workspace))
}

#[test]
fn a_package_in_git_waits_for_another_one_and_gets_it_when_it_is_proposed() {
    let hub = Hub::new();
    let report = hub.push("regional", "core-smf", "one", &smf());
    let help = "Publish that package in this repository, then propose this one.";
    let text = "waiting for package core-upf: it is not there";
    assert_eq!(waits(&report), [(text, help)]);
    assert!(hub.configs("core-smf", &draft_of("one")).is_empty());

    hub.propose("regional", "core-smf", "one");
    let acts = hub.acts("regional");
    let refused = acts.approve(&name("core-smf"), &workspace("one"));
    assert!(
        matches!(refused, Err(Error::NotReady { .. })),
        "its gate is shut: {refused:?}"
    );
    acts.reject(&name("core-smf"), &workspace("one")).unwrap();

    // A draft of the other is not published yet.
    hub.push(
        "edge01",
        "edge/core-upf",
        "one",
        &upf("core-upf", "upf-edge01"),
    );
    let report = hub.push("regional", "core-smf", "one", &smf());
    assert_eq!(waits(&report).len(), 1, "{:?}", report.findings);

    hub.propose("edge01", "edge/core-upf", "one");
    hub.approve("edge01", "edge/core-upf", "one");
    let report = hub.propose("regional", "core-smf", "one");
    assert_eq!(waits(&report), []);
    let which = Which::Proposed(workspace("one"));
    assert_eq!(
        hub.configs("core-smf", &which),
        ["config_smf-upf-edge01.yaml"]
    );
    hub.approve("regional", "core-smf", "one");
    let content = hub
        .packages
        .need(&name("core-smf"), &Which::Deployed)
        .unwrap();
    let config = String::from_utf8(content.files["config_smf-upf-edge01.yaml"].clone()).unwrap();
    assert!(config.contains("172.20.0.254/24"), "{config}");
}

#[test]
fn a_rollback_keeps_what_the_old_version_had_and_the_next_push_what_is_there() {
    let hub = Hub::new();
    hub.publish(
        "edge01",
        "edge/core-upf",
        "one",
        &upf("core-upf", "upf-edge01"),
    );
    hub.publish("regional", "core-smf", "one", &smf());
    // Found by the name of its Kptfile.
    hub.publish(
        "regional",
        "planes/second",
        "one",
        &upf("core-upf", "upf-regional"),
    );
    hub.publish("regional", "core-smf", "two", &smf());
    let both = ["config_smf-upf-edge01.yaml", "config_smf-upf-regional.yaml"];
    assert_eq!(hub.configs("core-smf", &Which::Deployed), both);

    let acts = hub.acts("regional");
    done(acts.rollback(&name("core-smf"), 1).unwrap());
    assert_eq!(hub.configs("core-smf", &Which::Deployed), both[..1]);
    hub.push("regional", "core-smf", "three", &smf());
    assert_eq!(hub.configs("core-smf", &draft_of("three")), both);
}

#[test]
fn bytes_are_linked_as_directories_are_and_a_package_is_not_its_own_neighbour() {
    let hub = Hub::new();
    hub.publish(
        "edge01",
        "edge/core-upf",
        "one",
        &upf("core-upf", "upf-edge01"),
    );
    let names = needed_packages(&smf());
    assert_eq!(names, BTreeSet::from(["core-upf".to_owned()]));
    let mut neighbours = hub.packages.neighbours(&names).unwrap();
    assert_eq!(neighbours.len(), 1);
    let place = hub.packages.repository.place("core-smf");
    let link = |neighbours: &[Neighbour], place: &std::path::Path| {
        let how = Specialise {
            neighbours,
            cluster: Some("regional".into()),
            check: true,
            ..Specialise::new(&hub.site, place.to_owned(), NOW, [7; 16])
        };
        let made = specialise(&hub.book, &smf(), &how).unwrap();
        assert!(!made.report.has_errors(), "{:?}", made.report.findings);
        (configs(&made.files).len(), waits(&made.report).len())
    };
    assert_eq!(link(&[], &place), (0, 1));
    assert_eq!(link(&neighbours, &place), (1, 0));
    assert_eq!(link(&neighbours, &neighbours[0].place), (0, 1), "itself");
    // By the directory alone, also at the root of a repository.
    neighbours[0].place = hub.packages.repository.place("core-upf");
    let kptfile = neighbours[0].files.get_mut("Kptfile").unwrap();
    let renamed = String::from_utf8_lossy(kptfile).replace("name: core-upf", "name: other");
    *kptfile = renamed.into_bytes();
    assert_eq!(link(&neighbours, &place), (1, 0));
}

#[test]
fn what_is_known_is_read_without_the_server_and_nothing_is_asked_for_no_name() {
    let hub = Hub::new();
    hub.publish("edge01", "core-upf", "one", &upf("core-upf", "upf-edge01"));
    let names = BTreeSet::from(["core-upf".to_owned()]);
    let known = |packages: &Packages| packages.known_neighbours(&names).map(|n| n.len());
    assert_eq!(known(&hub.packages).unwrap(), 1);
    // Somebody else publishes; this copy hears of it with its next fetch.
    hub.forge
        .commit("b/core-upf/Kptfile", "kind: Kptfile\nmetadata: {name: x}\n");
    assert_eq!(known(&hub.packages).unwrap(), 1);
    assert_eq!(hub.packages.neighbours(&names).unwrap().len(), 2);
    assert_eq!(known(&hub.packages).unwrap(), 2);
    let away = hub.forge.place.path("away.git");
    std::fs::rename(hub.forge.place.path("origin.git"), away).unwrap();
    assert!(hub.packages.neighbours(&names).is_err());
    assert_eq!(known(&hub.packages).unwrap(), 2);
    assert!(
        hub.packages
            .neighbours(&BTreeSet::new())
            .unwrap()
            .is_empty()
    );
    // A copy that was never made is fetched, or it is an error: never nothing.
    let mut fresh = hub.packages.clone();
    fresh.git.cache = hub.forge.place.path("other-cache");
    assert!(known(&fresh).is_err());
}
