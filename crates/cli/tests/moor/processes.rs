//! Eight programs at once over one book and one management directory, and one of them killed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mooring_api::Time;
use mooring_book::{FileStore, Filter, Options, Store as _};
use mooring_ipam::State;
use serde_json::Value;

use crate::example;

/// How many packages, and processes.
const MANY: usize = 8;

/// Packages beside each other, and the example's management directory.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(example("fleet"));
        for number in 0..MANY {
            let dir = place.package(number);
            fs::create_dir_all(&dir).unwrap();
            let name = format!("metadata:\n  name: p{number}\n");
            let kptfile = format!("apiVersion: kpt.dev/v1\nkind: Kptfile\n{name}");
            fs::write(dir.join("Kptfile"), kptfile).unwrap();
        }
        place
    }

    fn package(&self, number: usize) -> PathBuf {
        self.0.path().join(format!("packages/p{number}"))
    }

    /// Gives every package one interface more.
    fn grow(&self, interface: &str) {
        for number in 0..MANY {
            let text = format!(
                "apiVersion: req.nephio.org/v1alpha1\nkind: Interface\nmetadata:\n  name: {interface}\nspec:\n  \
                 networkInstance:\n    name: n3-network\n  cniType: macvlan\n"
            );
            let file = self.package(number).join(format!("{interface}.yaml"));
            fs::write(file, text).unwrap();
        }
    }

    fn spawn(&self, number: usize) -> Child {
        Command::new(env!("CARGO_BIN_EXE_moor"))
            .current_dir(self.0.path())
            .env_clear()
            .args(["render", &format!("packages/p{number}"), "-o", "json"])
            .args(["--mgmt", "mgmt", "--cluster", "my-ran"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Whether this process has the book open.
    fn has_book(&self, process: u32) -> bool {
        let holder = self.0.path().join("mgmt/.moor/book.redb.holder");
        fs::read_to_string(holder).is_ok_and(|text| text.starts_with(&format!("{process}\n")))
    }

    fn spawn_all(&self) -> Vec<Child> {
        (0..MANY).map(|number| self.spawn(number)).collect()
    }

    /// Every address by its package and interface, from what all eight programs say.
    fn render_all(&self) -> BTreeMap<String, String> {
        let children = self.spawn_all();
        children.into_iter().flat_map(finished).collect()
    }

    /// Who was killed between reserving and writing left a reservation; when it lapses, nobody loses anything.
    fn check_after_expiry(&self) {
        let path = self.0.path().join("mgmt/.moor/book.redb");
        let book = FileStore::open(&path, &Options::default()).unwrap();
        let before = book.leases(&Filter::default()).unwrap();
        let latest = before.iter().map(|l| l.since.0).max().unwrap();
        drop(book.begin(Time(latest + 24 * 3600)).unwrap());
        assert!(book.pending().unwrap().is_empty());
        assert_eq!(book.leases(&Filter::default()).unwrap(), before);
    }

    /// Addresses are unique, the book says the same as the programs, and the files say so too.
    fn check(&self, got: &BTreeMap<String, String>, interfaces: usize) {
        assert_eq!(got.len(), MANY * interfaces);
        let mut addresses: Vec<&str> = got.values().map(|a| without_length(a)).collect();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(
            addresses.len(),
            got.len(),
            "an address was given twice: {got:?}"
        );

        let path = self.0.path().join("mgmt/.moor/book.redb");
        let book = FileStore::open_to_read(&path, &Options::default()).unwrap();
        let leases = book.leases(&Filter::default()).unwrap();
        assert!(leases.iter().all(|l| l.state == State::Held), "{leases:?}");
        let mut held: Vec<String> = leases.iter().map(|l| l.thing.to_string()).collect();
        held.sort_unstable();
        assert_eq!(held, addresses, "the book and the programs disagree");
        assert_eq!(book.packages().unwrap().len(), MANY);

        let verified = mooring_package::verify(&[self.0.path().join("packages")], None);
        assert!(verified.findings.is_empty(), "{:?}", verified.findings);
        assert_eq!((verified.addresses, verified.packages), (got.len(), MANY));
        assert_eq!(left_behind(&self.0.path().join("packages")), [""; 0]);
    }
}

fn without_length(address: &str) -> &str {
    address.split('/').next().unwrap()
}

/// Waits for a program that must end well.
fn finished(child: Child) -> Vec<(String, String)> {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {said}", output.status);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let package = &report["packages"][0];
    let interfaces = package["interfaces"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    interfaces
        .map(|i| {
            let key = format!("{}/{}", text(&package["name"]), text(&i["name"]));
            (key, text(&i["addresses"][0]))
        })
        .collect()
}

/// Journals, locks and temporary files.
fn left_behind(packages: &Path) -> Vec<String> {
    let mut left = Vec::new();
    for package in fs::read_dir(packages).unwrap() {
        for file in fs::read_dir(package.unwrap().path()).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            left.extend(name.starts_with(".moor").then_some(name));
        }
    }
    left
}

/// Looks until it is so, or the program has ended.
fn until(child: &mut Child, is_so: impl Fn() -> bool) {
    while !is_so() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
}

#[test]
fn eight_processes_on_a_new_book_wait_for_each_other_and_share_no_address() {
    let place = Place::new();
    place.grow("n3");
    let first = place.render_all();
    place.check(&first, 1);
    // And again, with work for everybody; what they had they keep.
    place.grow("n4");
    let second = place.render_all();
    place.check(&second, 2);
    assert!(first.iter().all(|(who, what)| second[who] == *what));
}

#[test]
fn a_killed_process_harms_nobody_and_its_next_run_repairs_everything() {
    let place = Place::new();
    let mut known = BTreeMap::new();
    let (mut hit, mut halfway, rounds) = (0, 0, 12);
    for round in 0..rounds {
        place.grow(&format!("n{round}"));
        let mut children = place.spawn_all();
        let number = round % MANY;
        let mut victim = children.remove(number);
        let victim_id = victim.id();
        match round % 3 {
            // Not a wait: the moment of the kill, another one in every round.
            0 => std::thread::sleep(Duration::from_millis(17 * round as u64)),
            1 => until(&mut victim, || place.has_book(victim_id)),
            _ => until(&mut victim, || {
                place.package(number).join(".moor-journal").exists()
            }),
        }
        victim.kill().unwrap();
        let status = victim.wait().unwrap();
        hit += usize::from(status.signal() == Some(9));
        for child in children {
            finished(child);
        }
        let packages = place.0.path().join("packages");
        halfway += usize::from(!left_behind(&packages).is_empty());
        let got = place.render_all();
        place.check(&got, round + 1);
        assert!(
            known.iter().all(|(who, what)| got[who] == *what),
            "somebody moved"
        );
        known = got;
    }
    place.check_after_expiry();
    println!("killed {hit} of {rounds} in time, {halfway} in the middle of writing");
    assert!(hit > 0, "every victim had ended before it was killed");
}
