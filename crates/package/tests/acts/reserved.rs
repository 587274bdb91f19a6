//! Packages in Git together with their addresses: reserved with the draft, final when published, given back otherwise; and every act
//! cut off in its middle and run again.

use std::collections::BTreeSet;

use mooring_api::{Code, Span, Time};
use mooring_book::{FileStore, Filter, Store};
use mooring_ipam::{State, Thing};
use mooring_package::git::Files;
use mooring_package::revision::addressed::Addressed;
use mooring_package::revision::{Base, Draft, Packages, Which};
use mooring_package::{Site, Specialise, retire, specialise};
use serde_json::Value;

use crate::forge::{Forge, NOW, draft, files, name, workspace};

const CLUSTER: &str = "edge-cluster-1";

struct Hub {
    forge: Forge,
    packages: Packages,
    book: FileStore,
    site: Site,
}

impl Hub {
    fn new() -> Self {
        let forge = Forge::new();
        let packages = forge.packages();
        let book = forge.place.book();
        let site = Site::read(&forge.place.path("mgmt"));
        assert!(site.findings().is_empty(), "{:?}", site.findings());
        Self {
            forge,
            packages,
            book,
            site,
        }
    }

    fn at(&self, now: Time) -> Addressed<'_, &FileStore> {
        Addressed {
            packages: &self.packages,
            desk: &self.book,
            site: &self.site,
            cluster: None,
            dialect: None,
            hold: Span(86_400),
            deploy_records: false,
            neighbours: None,
            now,
            entropy: [9; 16],
        }
    }

    fn acts(&self) -> Addressed<'_, &FileStore> {
        self.at(NOW)
    }

    fn push(&self, package: &str, workspace: &str, interfaces: &[&str]) -> Vec<String> {
        self.push_draft(&draft(
            package,
            workspace,
            &with(package, interfaces),
            Base::Any,
        ))
    }

    fn push_draft(&self, draft: &Draft) -> Vec<String> {
        let mut acts = self.acts();
        acts.cluster = Some(CLUSTER.into());
        let outcome = acts.push(draft, None).unwrap();
        assert!(outcome.done.is_some(), "{:?}", outcome.report.findings);
        addresses(&outcome.report)
    }

    fn publish(&self, package: &str, workspace: &str, interfaces: &[&str]) -> u32 {
        self.push(package, workspace, interfaces);
        self.propose(package, workspace);
        self.approve(package, workspace)
    }

    fn propose(&self, package: &str, workspace: &str) {
        let outcome = self
            .acts()
            .propose(&name(package), &self::workspace(workspace))
            .unwrap();
        assert!(outcome.done.is_some(), "{:?}", outcome.report.findings);
    }

    fn approve(&self, package: &str, workspace: &str) -> u32 {
        let outcome = self
            .acts()
            .approve(&name(package), &self::workspace(workspace))
            .unwrap();
        assert!(
            !outcome.report.has_errors(),
            "{:?}",
            outcome.report.findings
        );
        outcome.done.unwrap().version
    }

    /// `r` for reserved, `h` for held, `c` for cooling, and the address.
    fn book(&self) -> Vec<String> {
        drop(self.book.begin(NOW).unwrap());
        let leases = self.book.leases(&Filter::default()).unwrap();
        let said = leases
            .iter()
            .filter(|l| matches!(l.thing, Thing::Addr(_)))
            .map(|l| {
                let state = match l.state {
                    State::Reserved { .. } => "r",
                    State::Held => "h",
                    State::Cooling { .. } => "c",
                };
                format!("{state} {}", l.thing)
            });
        said.collect()
    }

    fn pending(&self) -> usize {
        self.book.pending().unwrap().len()
    }

    fn claims(&self, package: &str, which: &Which) -> Vec<String> {
        let content = self.packages.need(&name(package), which).unwrap();
        let mut all = Vec::new();
        for (path, bytes) in &content.files {
            if path.starts_with("ipclaim_") {
                let file = mooring_krm::File::parse(bytes).unwrap();
                let claim: &Value = file.documents()[0].value();
                all.push(claim["status"]["prefix"].as_str().unwrap().to_owned());
            }
        }
        all
    }
}

fn addresses(report: &mooring_package::Report) -> Vec<String> {
    let interfaces = report.packages.iter().flat_map(|p| &p.interfaces);
    interfaces
        .flat_map(|i| &i.addresses)
        .map(ToString::to_string)
        .collect()
}

/// A package with these Interfaces on `vpc-control`.
fn with(package: &str, interfaces: &[&str]) -> Files {
    let one = |i: &&str| {
        format!(
            "apiVersion: req.nephio.org/v1alpha1\nkind: Interface\nmetadata:\n  name: {i}\nspec:\n  \
             networkInstance:\n    name: vpc-control\n  cniType: macvlan\n"
        )
    };
    let text = interfaces.iter().map(one).collect::<Vec<_>>().join("---\n");
    files(package, &[("interfaces.yaml", &text)])
}

#[test]
fn a_draft_reserves_publishing_commits_and_deleting_releases() {
    let hub = Hub::new();
    assert_eq!(
        hub.push("a", "w", &["n1", "n2"]),
        ["10.1.2.20/24", "10.1.2.21/24"]
    );
    assert_eq!(hub.book(), ["r 10.1.2.20", "r 10.1.2.21"]);
    assert_eq!(
        hub.claims("a", &Which::Draft(workspace("w"))),
        ["10.1.2.20/24", "10.1.2.21/24"]
    );
    assert_eq!(hub.push("b", "w", &["n1"]), ["10.1.2.22/24"]);
    hub.propose("a", "w");
    assert_eq!(hub.book(), ["r 10.1.2.20", "r 10.1.2.21", "r 10.1.2.22"]);
    assert_eq!(hub.approve("a", "w"), 1);
    assert_eq!(hub.book(), ["h 10.1.2.20", "h 10.1.2.21", "r 10.1.2.22"]);
    assert_eq!(
        hub.claims("a", &Which::Deployed),
        ["10.1.2.20/24", "10.1.2.21/24"]
    );
    assert_eq!(hub.pending(), 1);
    let record = hub.book.packages().unwrap().remove(0);
    assert_eq!(record.path, format!("git:{}#a", hub.forge.url()));

    // A second draft drops an interface and adds one: what is held stays held until it is published.
    assert_eq!(
        hub.push("a", "x", &["n2", "n3"]),
        ["10.1.2.21/24", "10.1.2.23/24"]
    );
    assert_eq!(
        hub.book(),
        ["h 10.1.2.20", "h 10.1.2.21", "r 10.1.2.22", "r 10.1.2.23"]
    );
    hub.propose("a", "x");
    assert_eq!(hub.approve("a", "x"), 2);
    assert_eq!(hub.book(), ["h 10.1.2.21", "r 10.1.2.22", "h 10.1.2.23"]);

    assert!(hub.acts().delete(&name("a")).unwrap());
    assert_eq!(hub.book(), ["r 10.1.2.22"]);
    assert!(!hub.acts().delete(&name("a")).unwrap());
    assert!(hub.acts().delete(&name("b")).unwrap());
    assert_eq!(hub.book(), [""; 0]);
    assert_eq!(hub.pending(), 0);
    assert!(hub.book.packages().unwrap().is_empty());
}

#[test]
fn the_same_draft_again_changes_neither_git_nor_the_book() {
    let hub = Hub::new();
    hub.push("a", "w", &["n1"]);
    let (refs, pending) = (
        hub.forge.git("origin.git", &["for-each-ref"]),
        hub.book.pending().unwrap(),
    );
    assert_eq!(hub.push("a", "w", &["n1"]), ["10.1.2.20/24"]);
    assert_eq!(refs, hub.forge.git("origin.git", &["for-each-ref"]));
    assert_eq!(pending, hub.book.pending().unwrap());
    // Towards its end it is reserved anew, and the old reservation goes.
    let outcome = hub
        .at(NOW.after(Span(80_000)))
        .propose(&name("a"), &workspace("w"))
        .unwrap();
    assert!(outcome.report.reserved.is_some());
    let now = hub.book.pending().unwrap();
    assert_eq!(now.len(), 1);
    assert!(now[0].until > pending[0].until);
}

#[test]
fn rejecting_gives_back_and_somebody_else_may_have_it() {
    let hub = Hub::new();
    hub.push("a", "w", &["n1"]);
    hub.propose("a", "w");
    let rejected = hub.acts().reject(&name("a"), &workspace("w")).unwrap();
    assert!(!rejected.unchanged);
    assert_eq!(hub.book(), [""; 0]);
    assert_eq!(hub.push("b", "w", &["n1"]), ["10.1.2.20/24"]);
    // The draft is still there, and gets another one when it is proposed again.
    hub.propose("a", "w");
    assert_eq!(
        hub.claims("a", &Which::Proposed(workspace("w"))),
        ["10.1.2.21/24"]
    );
    assert!(hub.acts().discard(&name("a"), &workspace("w")).unwrap());
    assert_eq!(hub.book(), ["r 10.1.2.20"]);
    assert_eq!(hub.forge.refs(), ["drafts/b/w", "main"]);
}

#[test]
fn two_drafts_of_one_package_share_and_rejecting_one_leaves_the_other_its_addresses() {
    let hub = Hub::new();
    hub.publish("a", "zero", &["n1"]);
    assert_eq!(
        hub.push("a", "one", &["n1", "n2"]),
        ["10.1.2.20/24", "10.1.2.21/24"]
    );
    assert_eq!(
        hub.push("a", "two", &["n1", "n2", "n3"]),
        ["10.1.2.20/24", "10.1.2.21/24", "10.1.2.22/24"]
    );
    hub.acts().discard(&name("a"), &workspace("two")).unwrap();
    assert_eq!(hub.book(), ["h 10.1.2.20", "r 10.1.2.21"]);
    hub.acts().discard(&name("a"), &workspace("one")).unwrap();
    assert_eq!(hub.book(), ["h 10.1.2.20"]);
    assert_eq!(hub.pending(), 0);
}

#[test]
fn a_kill_between_reserving_and_pushing_is_repaired_by_the_same_push() {
    let hub = Hub::new();
    for _ in 0..2 {
        // The server dies with the push, and nobody can say whether it arrived: the reservation stays.
        let url = format!("file://{}", hub.forge.url());
        hub.forge.hook("pre-receive", "kill -9 $PPID");
        let mut acts = hub.acts();
        acts.cluster = Some(CLUSTER.into());
        let draft = draft("a", "w", &with("a", &["n1", "n2"]), Base::New);
        let error = acts.push(&draft, None).unwrap_err();
        assert!(error.is_transient(), "{url}: {error:?}");
        assert_eq!(hub.book(), ["r 10.1.2.20", "r 10.1.2.21"]);
    }
    std::fs::remove_file(hub.forge.place.path("origin.git/hooks/pre-receive")).unwrap();
    assert_eq!(hub.push("a", "w", &["n2"]), ["10.1.2.21/24"]);
    assert!(hub.acts().discard(&name("a"), &workspace("w")).unwrap());
    assert_eq!(hub.book(), [""; 0]);
    assert_eq!(hub.pending(), 0);
}

#[test]
fn a_new_package_where_another_one_moved_away_is_another_package() {
    let hub = Hub::new();
    hub.publish("a", "w", &["n1"]);
    let moved = hub
        .packages
        .need(&name("a"), &Which::Deployed)
        .unwrap()
        .files;
    hub.packages.delete(&name("a")).unwrap();
    hub.push_draft(&draft("b", "w", &moved, Base::New));
    hub.propose("b", "w");
    hub.approve("b", "w");
    assert_eq!(hub.push("a", "again", &["n1"]), ["10.1.2.21/24"]);
    assert_eq!(hub.book(), ["h 10.1.2.20", "r 10.1.2.21"]);
}

#[test]
fn a_kill_while_a_known_draft_is_pushed_again_leaves_one_reservation() {
    let hub = Hub::new();
    hub.push("a", "w", &["n1"]);
    let before = hub
        .packages
        .need(&name("a"), &Which::Draft(workspace("w")))
        .unwrap()
        .files;
    let how = Specialise {
        draft: Some(Span(86_400)),
        previous: Some(&before),
        cluster: Some(CLUSTER.into()),
        ..Specialise::new(&hub.site, hub.packages.repository.place("a"), NOW, [7; 16])
    };
    specialise(&hub.book, &with("a", &["n1", "n2"]), &how).unwrap();
    assert_eq!(hub.pending(), 2);
    hub.push("a", "w", &["n1", "n2", "n3"]);
    assert_eq!(hub.book(), ["r 10.1.2.20", "r 10.1.2.21", "r 10.1.2.22"]);
    assert_eq!(hub.pending(), 1);
    hub.acts().discard(&name("a"), &workspace("w")).unwrap();
    assert_eq!(hub.book(), [""; 0]);
}

#[test]
fn a_kill_between_publishing_and_committing_is_repaired_by_the_same_approval() {
    let hub = Hub::new();
    hub.push("a", "w", &["n1"]);
    hub.propose("a", "w");
    // Published, and killed before the book was told.
    hub.packages
        .approve(&name("a"), &workspace("w"), None, None)
        .unwrap();
    assert_eq!(hub.book(), ["r 10.1.2.20"]);
    assert_eq!(hub.approve("a", "w"), 1);
    assert_eq!(hub.book(), ["h 10.1.2.20"]);
    assert_eq!((hub.pending(), hub.forge.refs().len()), (0, 2));
    assert_eq!(hub.approve("a", "w"), 1);
    assert_eq!(hub.book(), ["h 10.1.2.20"]);
}

#[test]
fn a_kill_in_the_middle_of_a_deletion_is_repaired_by_the_same_deletion() {
    let hub = Hub::new();
    hub.publish("a", "w", &["n1"]);
    hub.packages.delete(&name("a")).unwrap();
    assert_eq!(hub.book(), ["h 10.1.2.20"]);
    assert!(hub.acts().delete(&name("a")).unwrap());
    assert_eq!(hub.book(), [""; 0]);
}

#[test]
fn a_push_that_is_refused_leaves_the_book_as_it_was() {
    let hub = Hub::new();
    hub.forge.hook("pre-receive", "exit 1");
    let mut acts = hub.acts();
    acts.cluster = Some(CLUSTER.into());
    let draft = draft("a", "w", &with("a", &["n1"]), Base::New);
    assert_eq!(acts.push(&draft, None).unwrap_err().reason(), "GitRefused");
    assert_eq!(hub.book(), [""; 0]);
    assert_eq!(hub.pending(), 0);
}

#[test]
fn findings_keep_a_package_from_git_and_from_the_book() {
    let hub = Hub::new();
    let text = "apiVersion: req.nephio.org/v1alpha1\nkind: Interface\nmetadata:\n  name: n1\nspec:\n  networkInstance:\n    name: nowhere\n  cniType: macvlan\n";
    let mut acts = hub.acts();
    acts.cluster = Some(CLUSTER.into());
    let draft = draft(
        "a",
        "w",
        &files("a", &[("interfaces.yaml", text)]),
        Base::New,
    );
    let outcome = acts.push(&draft, None).unwrap();
    assert!(outcome.done.is_none());
    assert_eq!(
        outcome.report.findings[0].code,
        Code::UnknownNetworkInstance
    );
    let place = outcome.report.findings[0].location.clone().unwrap();
    assert!(place.file.ends_with("#a/interfaces.yaml"), "{place:?}");
    assert_eq!(hub.forge.refs(), ["main"]);
    assert_eq!(hub.book(), [""; 0]);
}

#[test]
fn a_rollback_brings_its_addresses_back() {
    let hub = Hub::new();
    assert_eq!(hub.publish("a", "one", &["n1", "n2"]), 1);
    assert_eq!(hub.publish("a", "two", &["n2"]), 2);
    assert_eq!(hub.book(), ["h 10.1.2.21"]);
    let outcome = hub.acts().rollback(&name("a"), 1).unwrap();
    assert_eq!(outcome.done.unwrap().version, 3);
    assert_eq!(hub.book(), ["h 10.1.2.20", "h 10.1.2.21"]);
    assert_eq!(
        hub.claims("a", &Which::Deployed),
        ["10.1.2.20/24", "10.1.2.21/24"]
    );
    assert!(
        hub.acts()
            .rollback(&name("a"), 1)
            .unwrap()
            .done
            .unwrap()
            .unchanged
    );
    assert_eq!(hub.pending(), 0);
}

#[test]
fn a_rollback_is_refused_where_an_address_belongs_to_somebody_else_by_now() {
    let hub = Hub::new();
    hub.publish("a", "one", &["n1", "n2"]);
    hub.publish("a", "two", &["n2"]);
    assert_eq!(hub.push("b", "w", &["m1"]), ["10.1.2.20/24"]);
    let before = (hub.forge.git("origin.git", &["for-each-ref"]), hub.book());
    let outcome = hub.acts().rollback(&name("a"), 1).unwrap();
    assert!(outcome.done.is_none());
    assert_eq!(outcome.report.findings[0].code, Code::AddressHeld);
    assert!(
        outcome.report.findings[0].message.contains("10.1.2.20"),
        "{:?}",
        outcome.report.findings
    );
    assert_eq!(
        before,
        (hub.forge.git("origin.git", &["for-each-ref"]), hub.book())
    );
}

#[test]
fn a_rollback_goes_back_to_the_old_address_and_not_to_the_one_of_today() {
    let hub = Hub::new();
    hub.publish("a", "one", &["n1"]);
    hub.publish("a", "two", &["other"]);
    // n1's old address is somebody else's for a while, so n1 gets another one.
    hub.push("b", "w", &["m1"]);
    assert_eq!(hub.book(), ["r 10.1.2.20", "h 10.1.2.21"]);
    hub.publish("a", "three", &["n1"]);
    let today = hub.book();
    assert!(today.contains(&"h 10.1.2.22".to_owned()), "{today:?}");
    hub.acts().delete(&name("b")).unwrap();
    let outcome = hub.acts().rollback(&name("a"), 1).unwrap();
    assert!(outcome.done.is_some(), "{:?}", outcome.report.findings);
    assert_eq!(hub.book(), ["h 10.1.2.20"]);
}

#[test]
fn a_copy_of_a_package_in_the_same_repository_is_refused() {
    let hub = Hub::new();
    hub.publish("a", "w", &["n1"]);
    let files = hub
        .packages
        .need(&name("a"), &Which::Deployed)
        .unwrap()
        .files;
    let outcome = hub
        .acts()
        .push(&draft("b", "w", &files, Base::New), None)
        .unwrap();
    assert!(outcome.done.is_none());
    assert_eq!(outcome.report.findings[0].code, Code::CopiedPackage);
    // Where the original is gone, it is a move.
    hub.packages.delete(&name("a")).unwrap();
    let outcome = hub
        .acts()
        .push(&draft("b", "w", &files, Base::New), None)
        .unwrap();
    assert!(outcome.done.is_some(), "{:?}", outcome.report.findings);
    assert_eq!(hub.book(), ["h 10.1.2.20"]);
}

#[test]
fn a_directory_that_is_rendered_by_hand_is_a_working_copy_and_no_copy() {
    let hub = Hub::new();
    hub.publish("a", "w", &["n1"]);
    let dir = hub.forge.place.path("work");
    hub.packages
        .pull(&name("a"), &Which::Deployed, &dir)
        .unwrap();
    let request = hub.forge.place.request("work");
    let report = mooring_package::render(&hub.book, &request, &|_, _| {}).unwrap();
    assert!(!report.has_errors() && !report.is_changed(), "{report:?}");
    assert_eq!(hub.publish("a", "x", &["n1", "n2"]), 2);
    assert_eq!(hub.book(), ["h 10.1.2.20", "h 10.1.2.21"]);
}

#[test]
fn pools_and_clusters_may_be_objects_of_an_api_server() {
    let hub = Hub::new();
    let mut objects: Vec<Value> = Vec::new();
    for file in ["clusters.yaml", "pools.yaml"] {
        let bytes = std::fs::read(hub.forge.place.path("mgmt").join(file)).unwrap();
        let file = mooring_krm::File::parse(&bytes).unwrap();
        objects.extend(file.documents().iter().map(|d| d.value().clone()));
    }
    objects.retain(Value::is_object);
    for object in &mut objects {
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.insert(
            "managedFields".into(),
            serde_json::json!([{ "manager": "kubectl" }]),
        );
        metadata.insert("resourceVersion".into(), "7".into());
    }
    let site = Site::from_objects(&objects);
    assert!(site.findings().is_empty(), "{:?}", site.findings());
    assert_eq!(site.clusters(), hub.site.clusters());
    let made = |site: &Site| {
        let how = Specialise {
            cluster: Some(CLUSTER.into()),
            check: true,
            ..Specialise::new(site, "git:x#a".into(), NOW, [1; 16])
        };
        specialise(&hub.book, &with("a", &["n1"]), &how).unwrap()
    };
    assert_eq!(made(&site).files, made(&hub.site).files);
    assert_eq!(addresses(&made(&site).report), ["10.1.2.20/24"]);

    // What is wrong is said of the object.
    objects[0]["spec"]["masterInterface"] = serde_json::json!(7);
    objects[0]["metadata"]["namespace"] = "mgmt".into();
    let site = Site::from_objects(&objects);
    let place = site.findings()[0].location.clone().unwrap();
    assert_eq!(place.file, "mgmt/edge-cluster-1");
}

#[test]
fn other_files_of_a_package_go_along_untouched() {
    let hub = Hub::new();
    let mut files = with("a", &["n1"]);
    files.insert("logo.png".into(), vec![0, 159, 146, 150]);
    files.insert("README.md".into(), b"# a\n".to_vec());
    hub.push_draft(&draft("a", "w", &files, Base::New));
    let read = hub
        .packages
        .need(&name("a"), &Which::Draft(workspace("w")))
        .unwrap()
        .files;
    assert_eq!(read["logo.png"], files["logo.png"]);
    assert!(read.contains_key("networkattachmentdefinition_n1.yaml"));
    let names: BTreeSet<&String> = read.keys().collect();
    // A file that was generated goes with its interface, though the directory never had it.
    hub.push_draft(&draft("a", "w", &with("a", &["n2"]), Base::Any));
    let now = hub
        .packages
        .need(&name("a"), &Which::Draft(workspace("w")))
        .unwrap()
        .files;
    assert!(names.contains(&"ipclaim_n1.yaml".to_owned()));
    assert!(
        !now.keys().any(|path| path.contains("_n1")),
        "{:?}",
        now.keys()
    );
}

#[test]
fn retiring_a_package_that_holds_nothing_does_nothing() {
    let hub = Hub::new();
    assert!(!retire(&hub.book, &hub.site, CLUSTER, "nobody", NOW).unwrap());
}
