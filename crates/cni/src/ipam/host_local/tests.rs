//! The plugin as a whole, over directories: what an attachment gets, keeps and gives back.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mooring_attach::cni::{CniArgs, Config, Verb};
use serde_json::{Value, json};

use super::*;
use mooring_host::Paths;

/// A node with its own state.
struct Node {
    root: tempfile::TempDir,
}

impl Node {
    fn new() -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
        }
    }

    fn dir(&self) -> std::path::PathBuf {
        self.root.path().join("var/lib/cni/networks/net")
    }

    fn put(&self, name: &str, text: &str) {
        fs::create_dir_all(self.dir()).unwrap();
        let path = self.dir().join(name);
        // Tests write as other plugins do: at once, and not atomically.
        std::io::Write::write_all(&mut fs::File::create(path).unwrap(), text.as_bytes()).unwrap();
    }

    /// Every file but the lock.
    fn files(&self) -> BTreeMap<String, String> {
        let Ok(entries) = fs::read_dir(self.dir()) else {
            return BTreeMap::new();
        };
        let entries = entries.map(|entry| entry.unwrap());
        let file = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().unwrap();
            let text = fs::read_to_string(entry.path()).unwrap();
            (name, text)
        };
        entries
            .map(file)
            .filter(|(name, _)| name != "lock")
            .collect()
    }

    fn call<T>(
        &self,
        verb: Verb,
        container: &str,
        more: Value,
        act: impl FnOnce(&Call<'_>) -> Result<T, CniError>,
    ) -> Result<T, CniError> {
        let mut config = json!({"cniVersion": "1.1.0", "name": "net", "type": "macvlan",
            "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.2.0/29"}]]}});
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        let config = Config::parse(verb, config.to_string().as_bytes())?;
        let request = Request {
            verb,
            container: container.to_owned(),
            netns: None,
            ifname: (!container.is_empty()).then(|| "net1".parse().unwrap()),
            args: CniArgs::default(),
            path: Vec::new(),
            own_netns_allowed: false,
            trace: None,
            config,
        };
        let paths = Paths::under(self.root.path());
        act(&Call {
            request: &request,
            paths: &paths,
        })
    }

    fn add(&self, container: &str) -> Result<String, CniError> {
        self.add_with(container, json!({}))
    }

    fn add_with(&self, container: &str, more: Value) -> Result<String, CniError> {
        let result = self.call(Verb::Add, container, more, |call| HostLocal.add(call))?;
        let ips: Vec<String> = result
            .ips
            .iter()
            .map(|ip| ip.address.addr().to_string())
            .collect();
        Ok(ips.join(","))
    }

    fn del(&self, container: &str) -> Result<(), CniError> {
        self.call(Verb::Del, container, json!({}), |call| HostLocal.del(call))
    }
}

const TWO: &str = r#"{"ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.2.0/29"}], [{"subnet": "fd00::/64"}]]}}"#;

fn two() -> Value {
    serde_json::from_str(TWO).unwrap()
}

#[test]
fn a_file_names_its_owner_in_the_bytes_of_the_reference() {
    let node = Node::new();
    assert_eq!(node.add_with("one", two()).unwrap(), "10.1.2.2,fd00::2");
    let expected = [
        ("10.1.2.2", "one\r\nnet1"),
        ("fd00::2", "one\r\nnet1"),
        ("last_reserved_ip.0", "10.1.2.2"),
        ("last_reserved_ip.1", "fd00::2"),
    ];
    let expected = expected.map(|(name, text)| (name.to_owned(), text.to_owned()));
    assert_eq!(node.files(), BTreeMap::from(expected));
    let mode = |name: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        let meta = fs::metadata(node.dir().join(name)).unwrap();
        meta.permissions().mode() & 0o777
    };
    assert_eq!(mode("10.1.2.2"), 0o600);
}

#[test]
fn a_released_address_comes_again_only_after_the_others() {
    let node = Node::new();
    assert_eq!(node.add("one").unwrap(), "10.1.2.2");
    node.del("one").unwrap();
    let given: Vec<String> = (0..6)
        .map(|n| {
            let id = format!("c{n}");
            let addr = node.add(&id).unwrap();
            node.del(&id).unwrap();
            addr
        })
        .collect();
    assert_eq!(
        given,
        [
            "10.1.2.3", "10.1.2.4", "10.1.2.5", "10.1.2.6", "10.1.2.2", "10.1.2.3"
        ]
    );
}

#[test]
fn an_add_that_is_repeated_gets_its_addresses_again() {
    let node = Node::new();
    let first = node.add_with("one", two()).unwrap();
    assert_eq!(node.add_with("one", two()).unwrap(), first);
    // Killed between the two files.
    fs::remove_file(node.dir().join("fd00::2")).unwrap();
    let again = node.add_with("one", two()).unwrap();
    assert_eq!(again, "10.1.2.2,fd00::3");
    node.del("one").unwrap();
    assert!(node.files().keys().all(|name| name.starts_with("last")));
}

#[test]
fn exhaustion_says_try_again_in_the_words_of_the_reference_and_leaves_nothing() {
    let node = Node::new();
    for n in 0..5 {
        node.add(&format!("c{n}")).unwrap();
    }
    let before = node.files();
    // The first set would have had one.
    let more = json!({"ipam": {"type": "host-local",
        "ranges": [[{"subnet": "10.9.0.0/29"}], [{"subnet": "10.1.2.0/29"}]]}});
    let error = node.add_with("late", more).unwrap_err();
    assert_eq!(error.code, CniError::TRY_AGAIN);
    assert_eq!(
        error.msg,
        "failed to allocate for range 1: no IP addresses available in range set: 10.1.2.1-10.1.2.6"
    );
    assert_eq!(node.files(), before);
    let status = node.call(Verb::Status, "", json!({}), |call| HostLocal.status(call));
    assert_eq!(status.unwrap_err().code, CniError::UNAVAILABLE);
    node.del("c3").unwrap();
    node.call(Verb::Status, "", json!({}), |call| HostLocal.status(call))
        .unwrap();
    assert_eq!(node.add("late").unwrap(), "10.1.2.5");
}

#[test]
fn an_empty_file_is_a_leak_and_a_strange_one_stays_taken() {
    let node = Node::new();
    node.put("10.1.2.2", "");
    node.put("10.1.2.3", "\0\0\0\0");
    node.put("10.1.2.4", " \r\n");
    fs::create_dir(node.dir().join("10.1.2.5")).unwrap();
    node.put("last_reserved_ip.0", "10.1.2.4");
    assert_eq!(node.add("one").unwrap(), "10.1.2.6");
    assert_eq!(node.add("two").unwrap(), "10.1.2.2");
    assert_eq!(node.add("three").unwrap(), "10.1.2.3");
}

#[test]
fn nothing_of_a_longer_last_address_stays_behind_a_shorter_one() {
    let node = Node::new();
    // Also what a kill in the middle of writing leaves: it costs the turn, no more.
    for last in ["10.1.2.200", "10.1.2.", "10.1.2.2555", ""] {
        node.put("last_reserved_ip.0", last);
        assert_eq!(node.add("one").unwrap(), "10.1.2.2", "{last:?}");
        assert_eq!(node.files()["last_reserved_ip.0"], "10.1.2.2", "{last:?}");
        node.del("one").unwrap();
    }
}

#[test]
fn files_of_old_plugins_and_with_white_space_are_released() {
    let node = Node::new();
    node.put("10.1.2.2", "one");
    node.put("10.1.2.3", " two\r\nnet1 \n");
    node.put("10.1.2.4", "two\r\nnet2");
    node.del("one").unwrap();
    node.del("two").unwrap();
    let left: Vec<String> = node.files().into_keys().collect();
    assert_eq!(left, ["10.1.2.4"]);
}

#[test]
fn a_del_works_without_a_sound_configuration_and_without_a_directory() {
    let node = Node::new();
    node.del("nobody").unwrap();
    assert!(!node.dir().exists(), "a DEL makes nothing");
    node.add("one").unwrap();
    let broken = json!({"ipam": {"type": "host-local", "ranges": [[{"subnet": "x"}]]}});
    node.call(Verb::Del, "one", broken, |call| HostLocal.del(call))
        .unwrap();
    assert!(!node.files().contains_key("10.1.2.2"));
}

#[test]
fn a_late_del_with_the_old_result_leaves_the_new_owner_alone() {
    let node = Node::new();
    node.put("10.1.2.2", "new\r\nnet1");
    node.put("10.1.2.3", "old\r\nnet1");
    let prev = json!({"prevResult": {"ips": [{"address": "10.1.2.2/29"}]}});
    node.call(Verb::Del, "old", prev, |call| HostLocal.del(call))
        .unwrap();
    let left: Vec<String> = node.files().into_keys().collect();
    assert_eq!(left, ["10.1.2.2"]);
}

#[test]
fn check_wants_an_address_of_each_set_and_those_of_the_result() {
    let node = Node::new();
    let check = |more: Value| node.call(Verb::Check, "one", more, |call| HostLocal.check(call));
    let nothing = json!({"prevResult": {}});
    assert!(check(nothing.clone()).is_err());
    node.add("one").unwrap();
    check(nothing).unwrap();
    assert_eq!(check(json!({})).unwrap_err().code, CniError::CONFIG);
    check(
        json!({"prevResult": {"ips": [{"address": "10.1.2.2/29"}, {"address": "192.0.2.9/24"}]}}),
    )
    .unwrap();
    let error = check(json!({"prevResult": {"ips": [{"address": "10.1.2.3/29"}]}})).unwrap_err();
    assert!(error.details.contains("10.1.2.3"), "{error}");
    let mut more = two();
    more["prevResult"] = json!({});
    let error = check(more).unwrap_err();
    assert!(error.details.contains("range set 1"), "{error}");
}

#[test]
fn garbage_goes_and_what_is_valid_stays() {
    let node = Node::new();
    for id in ["one", "two", "three"] {
        node.add(id).unwrap();
    }
    let gc = |valid: Value| {
        let more = json!({"cni.dev/valid-attachments": valid});
        node.call(Verb::Gc, "", more, |call| HostLocal.gc(call))
    };
    gc(json!([{"containerID": "one", "ifname": "net1"}, {"containerID": "two", "ifname": "net9"}]))
        .unwrap();
    let left: Vec<String> = node.files().into_keys().collect();
    assert_eq!(left, ["10.1.2.2", "last_reserved_ip.0"]);
    gc(json!([])).unwrap();
    assert!(!node.files().contains_key("10.1.2.2"));
}

#[test]
fn resolv_conf_is_read_into_the_result_before_anything_is_reserved() {
    let node = Node::new();
    let path = node.root.path().join("resolv.conf");
    std::io::Write::write_all(
        &mut fs::File::create(&path).unwrap(),
        b"nameserver 192.0.2.1\n",
    )
    .unwrap();
    let with = |path: &Path| json!({"ipam": {"type": "host-local", "subnet": "10.1.2.0/29", "resolvConf": path}});
    let result = node
        .call(Verb::Add, "one", with(&path), |call| HostLocal.add(call))
        .unwrap();
    assert_eq!(result.dns.nameservers, ["192.0.2.1"]);
    let absent = node.root.path().join("absent");
    let error = node.add_with("two", with(&absent)).unwrap_err();
    assert_eq!(error.code, CniError::IO);
    assert!(!node.files().contains_key("10.1.2.3"));
}
