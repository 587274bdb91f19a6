use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// A small root filesystem, from files that were made in the order given and at another time each.
fn fake(order: &[&str]) -> (tempfile::TempDir, Tree) {
    let dir = tempfile::tempdir().unwrap();
    for name in order {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("this is {name}")).unwrap();
    }
    let run = dir.path().join("bin/run");
    fs::set_permissions(&run, fs::Permissions::from_mode(0o4711)).unwrap();
    std::os::unix::fs::symlink("run", dir.path().join("bin/also")).unwrap();
    let mut tree = Tree::default();
    let place = |path: &str| (!path.starts_with("doc/")).then(|| format!("usr/{path}"));
    tree.add(dir.path(), &place).unwrap();
    tree.file("etc/passwd", "nobody:x:65532:65532::/tmp:/\n");
    tree.directory("tmp", 0o1777);
    // Longer than a header's field.
    tree.file(&format!("usr/{}/end", "long/".repeat(40)), "far away");
    (dir, tree)
}

fn write(place: &Path, tree: &Tree) -> String {
    let image = Image {
        title: "moor-x",
        version: "1.2.3",
        user: 65532,
        entrypoint: "/usr/bin/run",
        layers: &[("all of it", tree), ("once more", tree)],
    };
    image.write(place).unwrap()
}

const FILES: [&str; 4] = ["bin/run", "lib/a.so", "lib/b.so", "doc/page"];

#[test]
fn the_same_files_give_the_same_digest_in_whatever_order_they_were_made() {
    let out = tempfile::tempdir().unwrap();
    let (_one, first) = fake(&FILES);
    let mut reversed = FILES;
    reversed.reverse();
    let (_two, second) = fake(&reversed);
    let [a, b] = ["a", "b"].map(|name| out.path().join(name));
    assert_eq!(write(&a, &first), write(&b, &second));
    assert_eq!(
        mooring_testkit::hash_tree(&a),
        mooring_testkit::hash_tree(&b)
    );
    let (_three, mut other) = fake(&FILES);
    other.file("etc/passwd", "somebody else");
    assert_ne!(write(&a, &first), write(&b, &other));
}

#[test]
fn a_layout_is_walked_from_the_index_to_every_layer() {
    let out = tempfile::tempdir().unwrap();
    let place = out.path().join("image");
    let (_dir, tree) = fake(&FILES);
    let digest = write(&place, &tree);
    let layers = verify(&place).unwrap();
    assert_eq!(layers.len(), 2);
    let index = parse(&fs::read(place.join("index.json")).unwrap()).unwrap();
    let manifest = &index["manifests"][0];
    assert_eq!(manifest["digest"], digest);
    assert_eq!(
        manifest["annotations"]["org.opencontainers.image.ref.name"],
        "1.2.3"
    );
    // Written over: nothing of the old one stays behind.
    fs::write(place.join("stale"), "").unwrap();
    assert_eq!(write(&place, &tree), digest);
    assert!(!place.join("stale").exists());
}

#[test]
fn other_bytes_in_any_blob_are_seen() {
    let out = tempfile::tempdir().unwrap();
    let place = out.path().join("image");
    let (_dir, tree) = fake(&FILES);
    write(&place, &tree);
    let blobs: Vec<_> = fs::read_dir(place.join("blobs/sha256"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    // Two layers of the same bytes are one blob.
    assert_eq!(blobs.len(), 3, "{blobs:?}");
    for blob in blobs {
        let bytes = fs::read(&blob).unwrap();
        fs::write(&blob, [&bytes[..], b" "].concat()).unwrap();
        let said = verify(&place).unwrap_err().to_string();
        assert!(said.contains("other bytes"), "{said}");
        fs::remove_file(&blob).unwrap();
        assert!(verify(&place).is_err());
        fs::write(&blob, bytes).unwrap();
    }
    verify(&place).unwrap();
}

#[test]
fn what_is_unpacked_is_what_went_in_and_changes_no_user() {
    let out = tempfile::tempdir().unwrap();
    let place = out.path().join("image");
    let (_dir, tree) = fake(&FILES);
    write(&place, &tree);
    let root = out.path().join("root");
    unpack(&place, &root).unwrap();
    assert_eq!(
        fs::read_to_string(root.join("usr/lib/a.so")).unwrap(),
        "this is lib/a.so"
    );
    assert_eq!(
        fs::read_link(root.join("usr/bin/also")).unwrap(),
        Path::new("run")
    );
    assert!(!root.join("usr/doc").exists());
    let mode = |path: &str| fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o7777;
    assert_eq!(
        mode("usr/bin/run"),
        0o755,
        "without the bit that changes the user"
    );
    assert_eq!(mode("usr/lib/a.so"), 0o644);
    assert_eq!(mode("tmp"), 0o1777);
    let far = root.join("usr").join("long/".repeat(40)).join("end");
    assert_eq!(fs::read_to_string(far).unwrap(), "far away");
}
