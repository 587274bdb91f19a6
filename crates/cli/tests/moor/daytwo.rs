//! Day two of a book: back it up, restore it, export it, merge it, rename and retire a cluster, rebuild it, read its trail.

use std::fs;
use std::path::Path;

use mooring_testkit::hash_tree;
use serde_json::Value;

use crate::{example, fresh, moor, stdout};

const BOOK: &str = "mgmt/.moor/book.redb";

/// Both streams and the exit code.
fn run(dir: &Path, arguments: &[&str]) -> (String, String, i32) {
    let output = moor(dir).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (text(output.stdout), text(output.stderr), code)
}

/// Runs it with the management directory; it must end with 0.
fn done(dir: &Path, arguments: &[&str]) -> String {
    let all: Vec<&str> = arguments
        .iter()
        .copied()
        .chain(["--mgmt", "mgmt"])
        .collect();
    let (out, err, code) = run(dir, &all);
    assert_eq!(code, 0, "{arguments:?}: {err}");
    out
}

/// Runs it with the management directory; gives stderr and the code.
fn told(dir: &Path, arguments: &[&str]) -> (String, i32) {
    let all: Vec<&str> = arguments
        .iter()
        .copied()
        .chain(["--mgmt", "mgmt"])
        .collect();
    let (_, err, code) = run(dir, &all);
    (err, code)
}

/// The fleet with two rendered packages, a claim by hand, a reservation, and a hole where `leaf-0` was.
fn fleet() -> tempfile::TempDir {
    let dir = example("fleet");
    let at = dir.path();
    done(at, &["claim", "leaf-0", "--network", "n3-network"]);
    done(at, &["claim", "leaf-1", "--network", "n3-network"]);
    done(
        at,
        &[
            "render",
            "gnb",
            "--cluster",
            "my-ran",
            "--out",
            "deployed/gnb",
        ],
    );
    done(
        at,
        &[
            "render",
            "upf",
            "--cluster",
            "my-core",
            "--out",
            "deployed/upf",
        ],
    );
    done(at, &["release", "--holder", "leaf-0"]);
    done(
        at,
        &[
            "reserve",
            "10.1.2.5",
            "--instance",
            "vpc-control",
            "--owner",
            "netops",
            "--reason",
            "leaf",
        ],
    );
    dir
}

fn export(dir: &Path) -> Value {
    let text = done(dir, &["book", "export", "-o", "json"]);
    serde_json::from_str(&text).unwrap()
}

/// `what holder` of every lease.
fn leases(dir: &Path) -> Vec<String> {
    let leases = export(dir)["leases"].clone();
    let each = leases.as_array().unwrap().iter();
    each.map(|l| format!("{} {}", l["what"], l["holder"]))
        .collect()
}

#[test]
fn a_backup_comes_back_with_everything_and_the_previous_book_is_kept() {
    let dir = fleet();
    let at = dir.path();
    let (before, code) = (leases(at), told(at, &["book", "backup", "b.redb"]));
    assert!(
        code.0.contains("b.redb written: ") && code.1 == 0,
        "{code:?}"
    );
    let (text, code) = told(at, &["book", "backup", "b.redb"]);
    assert!(code == 1 && text.contains("error[FileInTheWay]"), "{text}");
    assert_eq!(told(at, &["book", "backup", "b.redb", "--force"]).1, 0);
    assert_eq!(told(at, &["book", "restore", "b.redb"]).1, 0, "unchanged");

    done(at, &["claim", "leaf-9", "--network", "n6-network"]);
    done(at, &["release", "10.1.2.5"]);
    let tree = hash_tree(at);
    let all = ["book", "restore", "b.redb", "--mgmt", "mgmt", "--check"];
    let (out, err, code) = run(at, &all);
    assert_eq!(code, 3, "{err}");
    assert!(out.contains("loses") && out.contains("leaf-9"), "{out}");
    assert!(out.contains("gains") && out.contains("netops"), "{out}");
    let (text, code) = told(at, &["book", "restore", "b.redb"]);
    assert!(code == 2 && text.contains("--yes"), "{text}");
    assert_eq!(hash_tree(at), tree, "looking changes nothing");

    let after = leases(at);
    let (text, code) = told(at, &["book", "restore", "b.redb", "--yes"]);
    assert!(
        code == 0 && text.contains("book.redb.before-restore"),
        "{text}"
    );
    assert_eq!(leases(at), before);
    let kept = format!("{BOOK}.before-restore");
    assert_eq!(told(at, &["book", "restore", &kept, "--yes"]).1, 0);
    assert_eq!(leases(at), after, "undone");
}

#[test]
fn a_restore_from_what_is_no_book_changes_nothing() {
    let dir = fleet();
    let at = dir.path();
    fs::write(at.join("letter"), "dear book\n".repeat(500)).unwrap();
    fs::write(at.join("half"), &fs::read(at.join(BOOK)).unwrap()[..9000]).unwrap();
    let tree = hash_tree(at);
    for (file, code, exit) in [
        ("letter", "name a file that `moor book backup` wrote", 1),
        ("half", "BookUnreadable", 1),
        ("nowhere", "there is no file", 2),
        (BOOK, "is the book itself", 2),
    ] {
        let (text, got) = told(at, &["book", "restore", file, "--yes"]);
        assert!(got == exit && text.contains(code), "{file}: {text}");
    }
    assert_eq!(hash_tree(at), tree);
}

/// A copy of the book that says it is of a later version.
fn newer(at: &Path, name: &str) {
    let path = at.join(name);
    fs::copy(at.join(BOOK), &path).unwrap();
    let meta: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("meta");
    let db = redb::Database::create(&path).unwrap();
    let txn = db.begin_write().unwrap();
    txn.open_table(meta).unwrap().insert("schema", 99).unwrap();
    txn.commit().unwrap();
}

#[test]
fn a_newer_book_is_refused_by_every_command_with_what_to_do() {
    let dir = fleet();
    let at = dir.path();
    newer(at, "newer.redb");
    let tree = hash_tree(at);
    let newer = ["--book", "newer.redb"];
    for arguments in [
        &["who-has", "10.1.2.5"][..],
        &["pool", "list"],
        &["claim", "x", "--network", "vpc-control"],
        &["release", "10.1.2.5"],
        &[
            "reserve",
            "10.1.2.6",
            "--instance",
            "vpc-control",
            "--owner",
            "a",
            "--reason",
            "b",
        ],
        &["render", "amf", "--cluster", "my-core"],
        &["book", "audit"],
        &["book", "export"],
        &["book", "backup", "x.redb"],
        &["book", "rebuild", "deployed"],
        &["book", "import", "--rename-cluster", "my-ran=west"],
    ] {
        let all: Vec<&str> = arguments.iter().copied().chain(newer).collect();
        let (text, code) = told(at, &all);
        assert_eq!(code, 1, "{arguments:?}: {text}");
        assert!(text.contains("BookNewer"), "{arguments:?}: {text}");
        assert!(text.contains("schema 99, this one reads 1"), "{text}");
        assert!(text.contains("help: use the version"), "{text}");
    }
    for arguments in [
        &["book", "restore", "newer.redb", "--yes"][..],
        &["book", "import", "newer.redb"],
    ] {
        let (text, code) = told(at, arguments);
        assert_eq!(code, 1, "{text}");
        assert!(text.contains("error[BookNewer]"), "{text}");
        assert!(
            text.contains("help: use the version of moor that wrote it"),
            "{text}"
        );
    }
    assert_eq!(hash_tree(at), tree, "nothing was changed");
}

#[test]
fn an_export_is_stable_and_fills_an_empty_book() {
    let dir = fleet();
    let at = dir.path();
    for format in ["yaml", "json"] {
        let text = done(at, &["book", "export", "-o", format]);
        assert_eq!(text, done(at, &["book", "export", "-o", format]));
        done(
            at,
            &[
                "book", "export", "-o", format, "--out", "book.txt", "--force",
            ],
        );
        assert_eq!(fs::read_to_string(at.join("book.txt")).unwrap(), text);
        let (said, code) = told(at, &["book", "export", "--out", "book.txt"]);
        assert!(code == 1 && said.contains("FileInTheWay"), "{said}");
        // Into itself: all the same. Into a new one: all of it.
        let (said, code) = told(at, &["book", "import", "book.txt", "--check"]);
        assert!(code == 0 && said.contains("unchanged"), "{said}");
        let other = format!("{format}.redb");
        let import = ["book", "import", "book.txt", "--book", &other];
        assert_eq!(told(at, &[&import[..], &["--check"]].concat()).1, 3);
        assert!(!at.join(&other).exists());
        assert_eq!(told(at, &import).1, 0);
        assert_eq!(told(at, &[&import[..], &["--check"]].concat()).1, 0);
        let (text, _) = stdout(moor(at).args(["book", "export", "-o", "json", "--book", &other]));
        let copied: Value = serde_json::from_str(&text).unwrap();
        let ours = export(at);
        for part in ["leases", "reservations", "packages"] {
            assert_eq!(copied[part], ours[part], "{part}");
        }
    }
}

#[test]
fn two_books_are_merged_and_conflicts_name_both_holders() {
    let dir = example("fleet");
    let at = dir.path();
    let claim = |book: &str, name: &str, address: &str| {
        let network = [
            "claim",
            name,
            "--network",
            "vpc-control",
            "--address",
            address,
        ];
        assert_eq!(told(at, &[&network[..], &["--book", book]].concat()).1, 0);
    };
    claim("a.redb", "both", "10.1.2.30");
    claim("b.redb", "both", "10.1.2.30");
    claim("a.redb", "leaf-a", "10.1.2.31");
    claim("b.redb", "leaf-b", "10.1.2.31");
    claim("b.redb", "only-b", "10.1.2.32");
    let before = hash_tree(at);
    let import = ["book", "import", "b.redb", "--book", "a.redb"];
    let (text, code) = told(at, &import);
    assert_eq!(code, 1);
    assert!(
        text.contains(
            "error[DuplicateAddress]: 10.1.2.31 in vpc-control: this book has it for leaf-a"
        ),
        "{text}"
    );
    assert!(
        text.contains("the other for leaf-b") && text.contains("(since 20"),
        "{text}"
    );
    assert!(text.contains("--keep ours"), "{text}");
    assert_eq!(hash_tree(at), before, "with a conflict nothing is written");
    let who = |address: &str| {
        let (text, _) = stdout(moor(at).args(["who-has", address, "--book", "a.redb"]));
        text
    };
    let ours = [&import[..], &["--keep", "ours"]].concat();
    assert_eq!(told(at, &[&ours[..], &["--check"]].concat()).1, 3);
    let (text, code) = told(at, &ours);
    assert!(
        code == 0 && text.contains("1 lease added, 1 the same, 1 conflict decided for ours"),
        "{text}"
    );
    assert!(who("10.1.2.31").contains("leaf-a") && who("10.1.2.32").contains("only-b"));
    let theirs = [&import[..], &["--keep", "theirs"]].concat();
    assert_eq!(told(at, &theirs).1, 0);
    assert!(who("10.1.2.31").contains("leaf-b"));
    let (text, code) = told(at, &import);
    assert!(
        code == 0 && text.contains("3 the same: unchanged"),
        "{text}"
    );
}

#[test]
fn a_hostile_import_is_a_finding_with_its_place_and_nothing_changes() {
    let dir = fleet();
    let at = dir.path();
    let good = done(at, &["book", "export"]);
    let write = |name: &str, text: &str| fs::write(at.join(name), text).unwrap();
    write(
        "broken.json",
        "{\"format\": \"mooring.dev/book\", \"version\": 1,\n \"leases\": [\n",
    );
    write("newer.yaml", &good.replace("version: 1", "version: 7"));
    write("other.yaml", "apiVersion: v1\nkind: ConfigMap\n");
    write(
        "family.yaml",
        &good.replacen("family: ipv4", "family: ipv6", 1),
    );
    write(
        "twice.yaml",
        &good.replacen("- network: n3-network", "- network: n6-network", 1),
    );
    let first = "  what: \"192.168.251.";
    let at_first = good.find(first).unwrap();
    let overlapping = format!(
        "{}  what: 192.168.251.0-192.168.251.255\n{}",
        &good[..at_first],
        good[at_first..].split_once('\n').unwrap().1
    );
    write("overlapping.yaml", &overlapping);
    fs::write(at.join("bytes"), [0xff, 0xfe, 0, 0, 9]).unwrap();
    let huge = fs::File::create(at.join("huge.json")).unwrap();
    huge.set_len(100_000_001).unwrap();
    let before = fs::read(at.join(BOOK)).unwrap();
    for (file, code, place) in [
        ("broken.json", "ImportInvalid", "broken.json:2"),
        ("newer.yaml", "BookNewer", "newer.yaml:1"),
        ("other.yaml", "ImportInvalid", "other.yaml:1"),
        ("family.yaml", "ImportInvalid", "holder.family"),
        ("overlapping.yaml", "ImportInvalid", "overlaps"),
        ("bytes", "ImportInvalid", "bytes"),
        ("huge.json", "FileTooLarge", "huge.json"),
    ] {
        let (text, exit) = told(at, &["book", "import", file, "--keep", "theirs"]);
        assert_eq!(exit, 1, "{file}: {text}");
        assert!(text.contains(&format!("error[{code}]")), "{file}: {text}");
        assert!(text.contains(place), "{file}: {text}");
        assert!(text.contains("= help: "), "{file}: {text}");
        assert!(text.ends_with("nothing was imported\n"), "{text}");
    }
    assert!(before == fs::read(at.join(BOOK)).unwrap());
}

#[test]
fn a_renamed_cluster_keeps_every_address_through_the_next_render() {
    let dir = fleet();
    let at = dir.path();
    let addresses = |tree: &str| {
        let mut found = Vec::new();
        for entry in fs::read_dir(at.join(tree)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if name.starts_with("ipclaim") {
                let text = fs::read_to_string(&path).unwrap();
                let line = text.lines().find(|l| l.contains("prefix: "));
                found.push((name, line.unwrap_or_default().trim().to_owned()));
            }
        }
        found.sort();
        found
    };
    let before = (addresses("deployed/gnb"), leases(at));
    let clusters = at.join("mgmt/clusters.yaml");
    let text = fs::read_to_string(&clusters).unwrap();
    fs::write(&clusters, text.replace("my-ran", "ran-west")).unwrap();

    let rename = ["book", "import", "--rename-cluster", "my-ran=ran-west"];
    assert_eq!(told(at, &[&rename[..], &["--check"]].concat()).1, 3);
    assert_eq!(leases(at), before.1);
    let (text, code) = told(at, &rename);
    assert!(code == 0 && text.contains("renamed"), "{text}");
    let renamed: Vec<String> = before
        .1
        .iter()
        .map(|l| l.replace("my-ran", "ran-west"))
        .collect();
    assert_eq!(leases(at), renamed);
    let (text, code) = told(at, &rename);
    assert!(
        code == 1 && text.contains("knows no cluster my-ran"),
        "{text}"
    );
    for bad in ["my-ran", "a=", "=b", "a=a"] {
        assert_eq!(
            told(at, &["book", "import", "--rename-cluster", bad]).1,
            2,
            "{bad}"
        );
    }
    done(
        at,
        &[
            "render",
            "gnb",
            "--cluster",
            "ran-west",
            "--out",
            "deployed/gnb",
        ],
    );
    assert_eq!(addresses("deployed/gnb"), before.0);
    assert_eq!(leases(at), renamed);
}

#[test]
fn a_retired_cluster_is_released_as_a_whole_and_its_neighbours_stay() {
    let dir = fleet();
    let at = dir.path();
    let before = leases(at);
    let release = ["release", "--cluster", "my-ran"];
    let tree = hash_tree(at);
    let (out, err, code) = run(
        at,
        &[
            "release",
            "--cluster",
            "my-ran",
            "--mgmt",
            "mgmt",
            "--check",
        ],
    );
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("and 1 package of cluster my-ran"), "{err}");
    assert_eq!(out.matches("my-ran").count(), 2, "{out}");
    let (text, code) = told(at, &release);
    assert!(code == 2 && text.contains("--yes"), "{text}");
    assert_eq!(hash_tree(at), tree);
    assert_eq!(told(at, &[&release[..], &["--yes"]].concat()).1, 0);
    let left = export(at);
    let held = left["leases"].as_array().unwrap().iter();
    let held: Vec<_> = held.filter(|l| l["state"] == "held").collect();
    assert!(held.iter().all(|l| l["holder"]["cluster"] != "my-ran"));
    let stays = before
        .iter()
        .filter(|l| !l.contains("my-ran") && !l.contains("leaf-0"));
    assert_eq!(held.len(), stays.count());
    assert_eq!(left["packages"].as_array().unwrap().len(), 1);
    let (text, code) = told(at, &[&release[..], &["--yes"]].concat());
    assert!(code == 0 && text.contains("nothing to release"), "{text}");
}

#[test]
fn the_audit_can_be_narrowed() {
    let dir = fleet();
    let at = dir.path();
    let audit = |more: &[&str]| {
        let all = [&["book", "audit", "-o", "json"][..], more].concat();
        let lines: Value = serde_json::from_str(&done(at, &all)).unwrap();
        let each = lines.as_array().unwrap().iter();
        each.map(|l| {
            format!(
                "{} {}",
                l["event"].as_str().unwrap(),
                l["thing"].as_str().unwrap()
            )
        })
        .collect::<Vec<_>>()
    };
    let all = audit(&[]);
    let of_it = audit(&["--address", "10.1.2.5"]);
    assert_eq!(of_it, ["taken 10.1.2.5", "reserved 10.1.2.5"]);
    assert_eq!(audit(&["--holder", "netops"]), of_it);
    assert_eq!(audit(&["--holder", "leaf-0"]).len(), 3);
    let ran = audit(&["--cluster", "my-ran"]);
    assert!(!ran.is_empty() && ran.len() < all.len());
    assert_eq!(audit(&["--package", "gnb"]), ran);
    assert_eq!(audit(&["--since", "1h"]), all);
    assert_eq!(audit(&["--since", "2999-01-01"]), Vec::<String>::new());
    assert_eq!(told(at, &["book", "audit", "--since", "lately"]).1, 2);
}

#[test]
fn a_rebuild_gives_the_same_addresses_or_says_which_differ_and_why() {
    let dir = fleet();
    let at = dir.path();
    let before = leases(at);
    let rebuild = ["book", "rebuild", "deployed"];
    assert_eq!(told(at, &[&rebuild[..], &["--check"]].concat()).1, 0);
    // Without the book: what packages say comes back, through the holes that leaf-0 and leaf-1 left.
    fs::remove_file(at.join(BOOK)).unwrap();
    assert_eq!(told(at, &[&rebuild[..], &["--check"]].concat()).1, 3);
    assert_eq!(told(at, &rebuild).1, 0);
    let packages: Vec<&String> = before.iter().filter(|l| l.contains("package")).collect();
    assert_eq!(leases(at).iter().collect::<Vec<_>>(), packages);

    // A package that was rendered with another book, and one whose interface is gone.
    let claims: Vec<_> = fs::read_dir(at.join("deployed/gnb"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| {
            p.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with("ipclaim_n3")
        })
        .collect();
    let [claim] = &claims[..] else {
        panic!("{claims:?}")
    };
    let text = fs::read_to_string(claim).unwrap();
    assert!(text.contains("192.168.251."), "{text}");
    let address = text.split("192.168.251.").nth(1).unwrap();
    let host: String = address.chars().take_while(char::is_ascii_digit).collect();
    fs::write(
        claim,
        text.replace(&format!("192.168.251.{host}"), "192.168.251.77"),
    )
    .unwrap();
    let book = fs::read(at.join(BOOK)).unwrap();
    let (text, code) = told(at, &rebuild);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("warning[AddressDiffers]"), "{text}");
    assert!(
        text.contains("the package says 192.168.251.77, the book has 192.168.251."),
        "{text}"
    );
    assert!(text.contains("rendered with another book"), "{text}");
    assert!(book == fs::read(at.join(BOOK)).unwrap(), "the book is kept");

    // Somebody else has what the package says.
    fs::remove_file(at.join(BOOK)).unwrap();
    let claim = [
        "claim",
        "thief",
        "--network",
        "n3-network",
        "--address",
        "192.168.251.77",
    ];
    done(at, &claim);
    for check in [true, false] {
        let mut arguments = rebuild.to_vec();
        arguments.extend(check.then_some("--check"));
        let (text, code) = told(at, &arguments);
        assert_eq!(code, 1, "{text}");
        assert!(
            text.contains("error[DuplicateAddress]") && text.contains("for thief"),
            "{text}"
        );
    }
}

#[test]
fn commands_about_a_book_that_is_not_there_say_so() {
    let dir = fresh();
    let (_, text, code) = run(dir.path(), &["book", "backup", "x", "--book", "none.redb"]);
    assert!(
        code == 2 && text.contains("there is no book at none.redb"),
        "{text}"
    );
    let (out, text, code) = run(dir.path(), &["book", "export", "--book", "none.redb"]);
    assert!(code == 0 && text.contains("there is no book") && out.contains("leases: []"));
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none());
}
