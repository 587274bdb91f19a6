//! The steps as KRM functions, one ResourceList handed from one to the next, compared with a render of the same package.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failed set-up is a failed test; inputs need no atomic writer"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use mooring_api::{Code, Finding, Time};
use mooring_book::{AuditFilter, Filter, MemoryStore, Store};
use mooring_krm::File;
use mooring_package::{Answer, Request, function, render};
use serde_json::Value;

/// The order in which a pipeline calls them.
const STEPS: [&str; 5] = [
    "workload-cluster-injector",
    "interface-fn",
    "ipam-fn",
    "nad-fn",
    "attach-fn",
];

const NOW: Time = Time(1_700_000_000);

fn fleet() -> PathBuf {
    mooring_testkit::workspace_root().join("examples/fleet")
}

/// File, number in the file, text with its comments.
type Document = (String, usize, String);

/// The documents of a directory.
fn documents(dir: &Path) -> Vec<Document> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&file).unwrap();
        for (number, document) in text.split("---\n").enumerate() {
            all.push((name.clone(), number, document.to_owned()));
        }
    }
    all
}

/// A document as an item of a list, saying where it came from as kpt does.
fn item((file, number, text): &Document) -> String {
    let origin = format!(
        "  annotations:\n    internal.config.kubernetes.io/path: {file}\n    \
         internal.config.kubernetes.io/index: '{number}'\n"
    );
    let text = if text.contains("\n  annotations:\n") {
        text.replacen("  annotations:\n", &origin, 1)
    } else {
        text.replacen("metadata:\n", &format!("metadata:\n{origin}"), 1)
    };
    let (comments, object) = text.split_at(text.find("apiVersion:").unwrap());
    comments.to_owned() + &indented(object)
}

/// `- ` before the first line, two spaces before the others.
fn indented(text: &str) -> String {
    let mut lines = text.lines();
    let first = format!("- {}\n", lines.next().unwrap());
    lines.fold(first, |all, line| format!("{all}  {line}\n"))
}

fn list(items: &[Document], config: &str) -> String {
    let items: String = items.iter().map(item).collect();
    format!("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n{config}items:\n{items}")
}

/// Pools and clusters as a functionConfig.
fn config(site: &[Document]) -> String {
    let mut text = String::from(
        "functionConfig:\n  apiVersion: v1\n  kind: List\n  metadata:\n    name: site\n  data:\n    \
         cluster: edge-cluster-1\n  items:\n",
    );
    for (_, _, document) in site {
        let object = &document[document.find("apiVersion:").unwrap()..];
        for line in indented(object).lines() {
            text.extend(["  ", line, "\n"]);
        }
    }
    text
}

/// The example's package, and its site without the clusters that are not meant.
fn example() -> (Vec<Document>, Vec<Document>) {
    let package = documents(&fleet().join("edge-gnb"));
    let mut site = documents(&fleet().join("mgmt"));
    site.retain(|(_, _, text)| {
        !text.contains("kind: WorkloadCluster") || text.contains("name: edge-cluster-1")
    });
    (package, site)
}

/// The pools in the functionConfig; and all of it in the items.
fn both_ways() -> [String; 2] {
    let (package, site) = example();
    let with_config = list(&package, &config(&site));
    let with_items: Vec<_> = package.into_iter().chain(site).collect();
    [with_config, list(&with_items, "")]
}

fn call(name: &str, input: &str, store: &dyn Store) -> Answer {
    function(name, input.as_bytes(), store, NOW).unwrap()
}

fn is_wrong(answer: &Answer) -> bool {
    answer.findings.iter().any(Finding::is_error)
}

/// The list after every step.
fn pipeline(input: &str, store: &dyn Store) -> String {
    STEPS.iter().fold(input.to_owned(), |text, step| {
        let answer = call(step, &text, store);
        assert!(!is_wrong(&answer), "{step}: {:?}", answer.findings);
        answer.stdout
    })
}

fn parse(text: &str) -> Value {
    let file = File::parse(text.as_bytes()).unwrap();
    file.documents()[0].value().clone()
}

/// Objects by kind, group and name, without what only a list or only a directory says.
fn comparable(objects: impl IntoIterator<Item = Value>) -> BTreeMap<String, Value> {
    let only_one_says = [
        "internal.config.kubernetes.io/path",
        "internal.config.kubernetes.io/index",
        "mooring.dev/package-id",
    ];
    let mut all = BTreeMap::new();
    for mut object in objects {
        let metadata = object["metadata"].as_object_mut().unwrap();
        if let Some(annotations) = metadata.get_mut("annotations") {
            let annotations = annotations.as_object_mut().unwrap();
            for key in only_one_says {
                annotations.remove(key);
            }
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
        // Conditions are a map by type; they stand in the order in which they were first set.
        if let Some(conditions) = object["status"]["conditions"].as_array_mut() {
            conditions.sort_by_key(|c| c["type"].to_string());
        }
        let part = |value: &Value| value.as_str().unwrap().to_owned();
        let name = part(&object["metadata"]["name"]);
        let key = format!(
            "{} {} {name}",
            part(&object["kind"]),
            part(&object["apiVersion"])
        );
        assert!(
            all.insert(key, object).is_none(),
            "an object is there twice"
        );
    }
    all
}

fn of_list(text: &str) -> BTreeMap<String, Value> {
    comparable(parse(text)["items"].as_array().unwrap().clone())
}

/// What `render` makes of the same documents.
fn rendered(package: &[Document], mgmt: Option<PathBuf>) -> BTreeMap<String, Value> {
    let dir = tempfile::tempdir().unwrap();
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (file, _, text) in package {
        files.entry(file).or_default().push(text);
    }
    for (file, texts) in files {
        fs::write(dir.path().join(file), texts.join("---\n")).unwrap();
    }
    let request = Request {
        source: dir.path().to_owned(),
        out: None,
        mgmt,
        cluster: Some("edge-cluster-1".into()),
        dialect: None,
        check: false,
        new_id: false,
        draft: None,
        pinned: false,
        published: Vec::new(),
        deploy_records: false,
        now: NOW,
        entropy: [7; 16],
    };
    let report = render(&MemoryStore::default(), &request, &|_, _| ()).unwrap();
    assert!(!report.has_errors(), "{:?}", report.findings);
    let documents = documents(dir.path());
    comparable(documents.iter().map(|(_, _, text)| parse(text)))
}

#[test]
fn the_functions_one_after_the_other_make_what_a_render_makes() {
    let (package, site) = example();
    let all: Vec<_> = package.iter().chain(&site).cloned().collect();
    let expected = [
        rendered(&package, Some(fleet().join("mgmt"))),
        rendered(&all, None),
    ];
    // In the items the cluster is the package's own, so nothing is injected and that condition is nobody's to set.
    let conditions = [5, 4];
    for ((input, expected), number) in both_ways().iter().zip(expected).zip(conditions) {
        let made = of_list(&pipeline(input, &MemoryStore::default()));
        assert_eq!(
            made.keys().collect::<Vec<_>>(),
            expected.keys().collect::<Vec<_>>()
        );
        for (key, object) in &expected {
            assert_eq!(&made[key], object, "{key}");
        }
        let claim = &made["IPClaim ipam.resource.nephio.org/v1alpha1 n2"];
        assert_eq!(claim["status"]["prefix"], "10.1.2.20/24");
        let kptfile = &made["Kptfile kpt.dev/v1 gnb-blueprint"];
        let conditions = kptfile["status"]["conditions"].as_array().unwrap();
        assert_eq!(conditions.len(), number, "{conditions:?}");
        assert!(
            conditions.iter().all(|c| c["status"] == "True"),
            "{conditions:?}"
        );
    }
}

#[test]
fn each_function_twice_changes_nothing() {
    for input in both_ways() {
        let store = MemoryStore::default();
        let mut text = input;
        for step in STEPS {
            let once = call(step, &text, &store).stdout;
            let trail = store.audit(&AuditFilter::default(), 100).unwrap().len();
            let twice = call(step, &once, &store).stdout;
            assert_eq!(once, twice, "{step}");
            let after = store.audit(&AuditFilter::default(), 100).unwrap().len();
            assert_eq!(trail, after, "{step} told the book something");
            text = once;
        }
        // And the whole way again, from the end.
        assert_eq!(pipeline(&text, &store), text);
    }
}

#[test]
fn comments_and_order_of_the_items_survive() {
    for input in both_ways() {
        let output = pipeline(&input, &MemoryStore::default());
        let comments = |text: &str| -> Vec<String> {
            let lines = text.lines().map(str::trim);
            lines
                .filter(|l| l.starts_with('#'))
                .map(str::to_owned)
                .collect()
        };
        assert!(comments(&input).len() >= 2, "the example lost its comments");
        assert_eq!(comments(&input), comments(&output));
        let names = |text: &str| -> Vec<String> {
            let list = parse(text);
            let items = list["items"].as_array().unwrap().iter();
            items
                .map(|i| format!("{} {}", i["kind"], i["metadata"]["name"]))
                .collect()
        };
        let before = names(&input);
        assert_eq!(names(&output)[..before.len()], before);
    }
}

/// Where each item belongs that a run adds, by kind and name.
fn new_paths(input: &str, key: &str) -> BTreeMap<String, Option<String>> {
    let before = parse(input)["items"].as_array().unwrap().len();
    let after = parse(&pipeline(input, &MemoryStore::default()));
    let items = after["items"].as_array().unwrap().iter().skip(before);
    items
        .map(|item| {
            let path = item["metadata"]["annotations"][key].as_str();
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let name = text(&item["kind"]) + "/" + &text(&item["metadata"]["name"]);
            (name, path.map(str::to_owned))
        })
        .collect()
}

#[test]
fn new_items_belong_into_the_files_that_a_render_makes() {
    const PATH: &str = "internal.config.kubernetes.io/path";
    const OLD: &str = "config.kubernetes.io/path";
    let [input, _] = both_ways();
    let all = |paths: &BTreeMap<String, Option<String>>| -> Vec<String> {
        let show = |p: &Option<String>| p.clone().unwrap_or_else(|| "-".to_owned());
        paths.values().map(show).collect()
    };
    let names = [
        "ipclaim_n2.yaml",
        "ipclaim_n3.yaml",
        "networkattachmentdefinition_n2.yaml",
        "networkattachmentdefinition_n3.yaml",
        "workloadcluster_workload-cluster.yaml",
    ];
    let paths = new_paths(&input, PATH);
    assert_eq!(all(&paths), names);
    assert_eq!(
        all(&new_paths(&input, OLD)),
        ["-"; 5],
        "nobody here knows the old name"
    );
    // In a package below, beside its Kptfile.
    let below = input.replace(&format!("{PATH}: "), &format!("{PATH}: sites/gnb/"));
    let inside = names.map(|name| format!("sites/gnb/{name}"));
    assert_eq!(all(&new_paths(&below, PATH)), inside);
    // An orchestrator that uses both names gets both.
    let old = edited(&input, |annotations| {
        let path = annotations[PATH].clone();
        annotations.insert(OLD.to_owned(), path);
    });
    assert_eq!(all(&new_paths(&old, OLD)), names);
    assert_eq!(all(&new_paths(&old, PATH)), names);
    // A file of somebody else stays his.
    let taken = input.replace(
        &format!("{PATH}: interfaces.yaml"),
        &format!("{PATH}: ipclaim_n2.yaml"),
    );
    assert_ne!(taken, input);
    assert_eq!(new_paths(&taken, PATH)["IPClaim/n2"], None);
    // Where nobody says where things are, nobody would take it away again.
    let bare = edited(&input, |annotations| drop(annotations.remove(PATH)));
    assert_eq!(all(&new_paths(&bare, PATH)), ["-"; 5]);
}

/// The list with other annotations on its items.
fn edited(list: &str, change: impl Fn(&mut serde_json::Map<String, Value>)) -> String {
    let mut list = parse(list);
    for item in list["items"].as_array_mut().unwrap() {
        change(item["metadata"]["annotations"].as_object_mut().unwrap());
    }
    mooring_krm::emit(&list)
}

/// Where nobody may go.
struct NoBook;

impl NoBook {
    fn refuse<T>() -> Result<T, mooring_book::Error> {
        Err(mooring_book::Error::Busy {
            path: "the book was opened".into(),
            holder: None,
        })
    }
}

impl Store for NoBook {
    fn reservations(&self) -> Result<Vec<mooring_book::Reservation>, mooring_book::Error> {
        Self::refuse()
    }
    fn amend(&self, _: &mooring_book::Amendment, _: Time) -> Result<(), mooring_book::Error> {
        Self::refuse()
    }
    fn begin(&self, _: Time) -> Result<Box<dyn mooring_book::Txn + '_>, mooring_book::Error> {
        Self::refuse()
    }
    fn commit(&self, _: mooring_ipam::TxnId, _: Time) -> Result<(), mooring_book::Error> {
        Self::refuse()
    }
    fn abort(&self, _: mooring_ipam::TxnId, _: Time) -> Result<(), mooring_book::Error> {
        Self::refuse()
    }
    fn leases(&self, _: &Filter) -> Result<Vec<mooring_ipam::Lease>, mooring_book::Error> {
        Self::refuse()
    }
    fn packages(&self) -> Result<Vec<mooring_book::PackageRecord>, mooring_book::Error> {
        Self::refuse()
    }
    fn pending(&self) -> Result<Vec<mooring_book::Pending>, mooring_book::Error> {
        Self::refuse()
    }
    fn audit(
        &self,
        _: &AuditFilter,
        _: usize,
    ) -> Result<Vec<mooring_book::Entry>, mooring_book::Error> {
        Self::refuse()
    }
    fn restore(
        &self,
        _: &[mooring_ipam::Lease],
        _: &[mooring_book::PackageRecord],
        _: Time,
    ) -> Result<mooring_book::Restored, mooring_book::Error> {
        Self::refuse()
    }
}

#[test]
fn only_the_ipam_and_vlan_functions_meet_the_book() {
    let [mut text, _] = both_ways();
    let store = MemoryStore::default();
    for step in STEPS {
        let meets = function(step, text.as_bytes(), &NoBook, NOW).is_err();
        assert_eq!(meets, step == "ipam-fn", "{step}");
        text = call(step, &text, &store).stdout;
    }
    assert!(function("vlan-fn", text.as_bytes(), &NoBook, NOW).is_err());
}

#[test]
fn a_list_with_an_error_comes_back_as_it_was_with_results_that_name_everything() {
    for input in both_ways() {
        // The second document of its file.
        let input = input.replace("pfName: ens4", "pfName: ens9");
        let store = MemoryStore::default();
        let mut text = input;
        for step in ["workload-cluster-injector", "interface-fn", "ipam-fn"] {
            text = call(step, &text, &store).stdout;
        }
        let answer = call("nad-fn", &text, &store);
        let codes: Vec<Code> = answer.findings.iter().map(|f| f.code).collect();
        assert_eq!(codes, [Code::UnknownPhysicalFunction]);
        let output = parse(&answer.stdout);
        assert_eq!(output["items"], parse(&text)["items"]);
        let result = &output["results"][0];
        assert_eq!(result["severity"], "error");
        assert_eq!(result["tags"]["code"], "UnknownPhysicalFunction");
        assert_eq!(result["resourceRef"]["kind"], "Interface");
        assert_eq!(result["resourceRef"]["name"], "n3");
        assert_eq!(result["resourceRef"]["namespace"], "oai-ran");
        assert_eq!(result["field"]["path"], "spec.sriovSpec.pfName");
        assert_eq!(result["file"]["path"], "interfaces.yaml");
        assert_eq!(result["file"]["index"], 1);
        assert!(result["message"].as_str().unwrap().contains("ens9"));
        // Put right, the results go.
        let right = answer.stdout.replace("pfName: ens9", "pfName: ens4");
        let answer = call("nad-fn", &right, &store);
        assert!(!is_wrong(&answer), "{:?}", answer.findings);
    }
}

#[test]
fn a_mistake_in_the_function_config_is_refused_like_one_in_the_items() {
    for input in both_ways() {
        let input = input.replace("prefix: 10.1.3.0/24\n", "prefiks: 10.1.3.0/24\n");
        let answer = call("ipam-fn", &input, &NoBook);
        let codes: Vec<Code> = answer.findings.iter().map(|f| f.code).collect();
        assert!(codes.contains(&Code::UnknownField), "{codes:?}");
        assert_eq!(parse(&answer.stdout)["items"], parse(&input)["items"]);
    }
}

#[test]
fn an_empty_injection_point_is_filled_from_the_function_config() {
    let (mut package, site) = example();
    let point = "apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  \
                 name: workload-cluster\n  annotations:\n    kpt.dev/config-injection: required\n";
    package.push(("cluster.yaml".into(), 0, point.into()));
    let expected = rendered(&package, Some(fleet().join("mgmt")));
    let made = of_list(&pipeline(
        &list(&package, &config(&site)),
        &MemoryStore::default(),
    ));
    assert_eq!(made, expected);
    let cluster = &made["WorkloadCluster infra.nephio.org/v1alpha1 workload-cluster"];
    assert_eq!(cluster["spec"]["masterInterface"], "ens3");
}

#[test]
fn a_finding_is_about_the_object_of_its_own_group() {
    // An infra NetworkInstance of the package and an ipam NetworkInstance of the pools share their name.
    let [_, input] = both_ways();
    let ipam = "- prefix: 10.1.2.0/24";
    assert_eq!(input.matches(ipam).count(), 1, "the example changed");
    let answer = call(
        "ipam-fn",
        &input.replace(ipam, "- prefix: 10.1.2.0/42"),
        &NoBook,
    );
    let result = &parse(&answer.stdout)["results"][0];
    assert_eq!(result["resourceRef"]["name"], "vpc-control", "{result}");
    assert_eq!(result["file"]["path"], "networks.yaml");
    let line = answer.findings[0].location.as_ref().unwrap().line as usize;
    let place = input.lines().position(|l| l.contains(ipam)).unwrap();
    assert_eq!(line, place + 1);
}

#[test]
fn a_refused_claim_leaves_list_and_book_untouched() {
    let [input, _] = both_ways();
    let store = MemoryStore::default();
    let mut text = input.replace("10.1.3.20-10.1.3.199", "10.1.3.20-10.1.3.20");
    assert!(
        text.contains("10.1.3.20-10.1.3.20\n"),
        "the example's ranges changed"
    );
    for step in ["workload-cluster-injector", "interface-fn"] {
        text = call(step, &text, &store).stdout;
    }
    // Another package has the only address for n3; n2 could be served.
    let other = text.replace("name: gnb-blueprint", "name: other");
    assert!(!is_wrong(&call("ipam-fn", &other, &store)));
    let held = store.leases(&Filter::default()).unwrap();
    let answer = call("ipam-fn", &text, &store);
    let codes: Vec<Code> = answer.findings.iter().map(|f| f.code).collect();
    assert_eq!(codes, [Code::PoolExhausted]);
    assert_eq!(parse(&answer.stdout)["items"], parse(&text)["items"]);
    assert_eq!(store.leases(&Filter::default()).unwrap(), held);
}

#[test]
fn an_unknown_function_is_named_with_those_that_there_are() {
    let [input, _] = both_ways();
    let answer = call("coffee-fn", &input, &NoBook);
    let finding = &answer.findings[0];
    assert_eq!(finding.code, Code::UnknownFunction);
    assert!(finding.message.contains("coffee-fn"), "{finding}");
    for step in STEPS {
        assert!(finding.help.contains(step), "{}", finding.help);
    }
    assert_eq!(parse(&answer.stdout)["items"], parse(&input)["items"]);
}

#[test]
fn what_is_no_list_comes_back_as_it_is() {
    for input in ["", "kind: Deployment\n", "a: [b\n"] {
        let answer = call("nad-fn", input, &NoBook);
        assert_eq!(answer.stdout, input);
        assert_eq!(answer.findings[0].code, Code::YamlInvalid, "{input:?}");
    }
}

#[test]
fn a_list_without_a_kptfile_is_refused() {
    let (package, site) = example();
    let without: Vec<_> = package
        .into_iter()
        .filter(|(file, _, _)| file != "Kptfile")
        .collect();
    let answer = call("interface-fn", &list(&without, &config(&site)), &NoBook);
    assert_eq!(answer.findings[0].code, Code::PackageMissing);
}
