//! The protocol as a runtime sees it: environment, versions, errors, delegates.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mooring_testkit::{Netns, Said, Sandbox};
use serde_json::{Value, json};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_moor-cni");

pub(crate) const VERSIONS: [&str; 7] = [
    "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0",
];

/// The program under a plugin's name.
pub(crate) fn plugin(name: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg0(name).env_clear();
    command
}

/// Runs it with text on its stdin.
pub(crate) fn run(mut command: Command, stdin: &[u8]) -> Said {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut pipe = child.stdin.take().expect("stdin was piped");
    // A program that refuses early does not read everything.
    let _ = pipe.write_all(stdin);
    drop(pipe);
    child.wait_with_output().expect("it ends").into()
}

/// The error object; anything else on stdout is a failed test.
#[track_caller]
pub(crate) fn error(said: &Said) -> Value {
    assert_eq!(said.code, Some(1), "{}{}", said.stdout, said.stderr);
    let value: Value = serde_json::from_str(&said.stdout)
        .unwrap_or_else(|e| panic!("no JSON ({e}): {:?}, {}", said.stdout, said.stderr));
    let version = value["cniVersion"].as_str().unwrap_or_default();
    assert!(VERSIONS.contains(&version), "{value}");
    assert!(
        value["code"].is_u64() && value["msg"].is_string(),
        "{value}"
    );
    value
}

/// The names of all plugins, from the help.
pub(crate) fn plugins() -> Vec<String> {
    let mut command = Command::new(PROGRAM);
    command.env_clear().arg("--help");
    let said = run(command, b"");
    let mut names = Vec::new();
    for line in said.ok().lines() {
        for word in ["  interfaces  ", "  chained     ", "  addresses   "] {
            let list = line.strip_prefix(word).unwrap_or_default();
            names.extend(
                list.split(", ")
                    .filter(|n| !n.is_empty())
                    .map(str::to_owned),
            );
        }
    }
    assert!(names.len() >= 8, "{names:?}");
    names
}

const FULL: [(&str, &str); 4] = [
    ("CNI_CONTAINERID", "pod1"),
    ("CNI_NETNS", "/run/netns/no-such-namespace"),
    ("CNI_IFNAME", "net1"),
    ("CNI_PATH", "/nowhere"),
];

fn call(name: &str, verb: &str, stdin: &Value) -> Said {
    let mut command = plugin(name);
    command.envs(FULL).env("CNI_COMMAND", verb);
    run(command, stdin.to_string().as_bytes())
}

#[test]
fn version_is_answered_without_reading_stdin() {
    for name in plugins().iter().map(String::as_str).chain(["moor-cni"]) {
        let mut command = plugin(name);
        command.env("CNI_COMMAND", "VERSION");
        // The pipe stays open: who reads it, waits.
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let pipe = child.stdin.take();
        let bound = Instant::now() + Duration::from_secs(20);
        let status = loop {
            if let Some(status) = child.try_wait().expect("it can be waited for") {
                break status;
            }
            if Instant::now() > bound {
                child.kill().expect("it is ours");
                panic!("{name} waits for its stdin");
            }
            std::thread::yield_now();
        };
        drop(pipe);
        assert!(status.success(), "{name}");
        let said = Said::from(child.wait_with_output().expect("it has ended"));
        let value: Value = serde_json::from_str(said.ok()).expect("JSON");
        assert_eq!(
            value,
            json!({"cniVersion": "1.1.0", "supportedVersions": VERSIONS})
        );
    }
}

#[test]
fn without_a_command_it_says_what_it_is_and_ends_well() {
    for name in plugins() {
        let said = run(plugin(&name), b"");
        assert_eq!(
            (said.ok(), said.stderr.lines().count()),
            ("", 2),
            "{}",
            said.stderr
        );
        assert!(
            said.stderr.starts_with(&format!("{name}: ")),
            "{}",
            said.stderr
        );
        assert!(
            said.stderr.contains("supported: 0.1.0, 0.2.0"),
            "{}",
            said.stderr
        );
    }
    let said = run(plugin("moor-cni"), b"");
    assert!(said.stderr.contains("--help"), "{}", said.stderr);
    assert_eq!(said.ok(), "");
}

#[test]
fn an_unknown_verb_and_missing_variables_are_code_4() {
    let said = call("macvlan", "ATTACH", &json!({}));
    let value = error(&said);
    assert_eq!(
        (&value["code"], &value["msg"]),
        (&json!(4), &json!("unknown CNI_COMMAND: ATTACH"))
    );
    let mut command = plugin("macvlan");
    command.env("CNI_COMMAND", "ADD").env("CNI_IFNAME", "net1");
    let value = error(&run(command, b"{}"));
    assert_eq!(value["code"], 4);
    assert_eq!(
        value["msg"],
        "required env variables [CNI_CONTAINERID,CNI_NETNS,CNI_PATH] missing"
    );
}

#[test]
fn every_plugin_refuses_a_version_and_a_verb_that_it_does_not_know() {
    for name in plugins() {
        let value = error(&call(
            &name,
            "ADD",
            &json!({"name": "n", "type": name, "cniVersion": "2.0.0"}),
        ));
        assert_eq!(value["code"], 1, "{name}");
        assert!(
            value["details"]
                .as_str()
                .is_some_and(|d| d.contains("2.0.0")),
            "{value}"
        );
        for (verb, version) in [("CHECK", "0.3.1"), ("GC", "1.0.0"), ("STATUS", "1.0.0")] {
            let config = json!({"name": "n", "type": name, "cniVersion": version,
                "cni.dev/valid-attachments": []});
            let value = error(&call(&name, verb, &config));
            assert_eq!(
                (&value["code"], &value["cniVersion"]),
                (&json!(1), &json!(version)),
                "{name}"
            );
        }
    }
}

#[test]
fn the_program_takes_its_plugin_from_its_name_then_from_the_type() {
    let config = json!({"name": "n", "type": "nonsense", "cniVersion": "1.1.0"});
    let value = error(&call("moor-cni", "STATUS", &config));
    assert_eq!(value["code"], 7);
    assert!(
        value["details"]
            .as_str()
            .is_some_and(|d| d.contains("macvlan")),
        "{value}"
    );
    let value = error(&call(
        "moor-cni",
        "STATUS",
        &json!({"name": "n", "cniVersion": "1.1.0"}),
    ));
    assert!(
        value["msg"]
            .as_str()
            .is_some_and(|m| m.contains("type: missing")),
        "{value}"
    );
    // A link with a foreign name would delegate to itself.
    let value = error(&call(
        "whereabouts",
        "STATUS",
        &json!({"name": "n", "type": "macvlan", "cniVersion": "1.1.0"}),
    ));
    assert!(
        value["msg"]
            .as_str()
            .is_some_and(|m| m.contains("whereabouts")),
        "{value}"
    );
    // An IPAM plugin is started with its caller's configuration.
    let ipam = json!({"name": "n", "type": "macvlan", "cniVersion": "0.4.0",
        "ipam": {"type": "static", "addresses": [{"address": "10.1.2.3/24"}]}});
    let said = call("/opt/cni/bin/static", "ADD", &ipam);
    let result: Value = serde_json::from_str(said.ok()).expect("JSON");
    assert_eq!(
        (&result["cniVersion"], &result["ips"][0]["version"]),
        (&json!("0.4.0"), &json!("4"))
    );
}

#[test]
fn a_stdin_that_cannot_be_read_is_code_5() {
    let mut command = plugin("macvlan");
    command.envs(FULL).env("CNI_COMMAND", "ADD");
    let here = fs::File::open(env!("CARGO_MANIFEST_DIR")).expect("a directory");
    let output = command.stdin(here).output().expect("it ends");
    let value = error(&output.into());
    assert_eq!(
        (&value["code"], &value["msg"]),
        (&json!(5), &json!("error reading from stdin"))
    );
}

#[test]
fn a_log_line_has_the_trace_of_its_call_and_nothing_that_is_none() {
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let config = json!({"name": "n", "type": "macvlan", "cniVersion": "0.4.0", "master": "eth1"});
    for (value, expected) in [(trace, true), ("evil\ntrace", false)] {
        let mut command = plugin("macvlan");
        command
            .envs(FULL)
            .env("CNI_COMMAND", "ADD")
            .env("TRACEPARENT", value);
        let said = run(command, config.to_string().as_bytes());
        error(&said);
        let told = said
            .stderr
            .contains(&format!("moor-cni: ADD n pod1/net1 trace={trace}: "));
        assert_eq!(told, expected, "{}", said.stderr);
        assert!(!said.stderr.contains("evil"), "{}", said.stderr);
    }
}

/// A node with a foreign IPAM plugin, which notes what it is told and does what it is made to do.
struct Scene {
    node: Netns,
    pod: Netns,
    dir: tempfile::TempDir,
    _sandbox: Sandbox,
}

impl Scene {
    fn new(what: &str, script: &str) -> Option<Self> {
        let sandbox = Sandbox::new(what)?;
        let fabric = sandbox.fabric("fabric");
        let node = sandbox.plugged(&fabric, "node");
        let pod = sandbox.netns("pod");
        let dir = tempfile::tempdir().expect("a directory");
        let this = Self {
            node,
            pod,
            dir,
            _sandbox: sandbox,
        };
        let seen = this.dir.path().display().to_string();
        let text = format!(
            "#!/bin/sh\nprintf '%s ' \"$CNI_COMMAND\" >> {seen}/verbs\ncat > {seen}/stdin-\"$CNI_COMMAND\"\nenv > {seen}/env-\"$CNI_COMMAND\"\n{script}\n"
        );
        mooring_testkit::script(&this.dir.path().join("foreign"), &text);
        Some(this)
    }

    fn call(&self, verb: &str, stdin: &str) -> Said {
        let root = self.dir.path().join("root");
        let variables = [
            ("CNI_COMMAND", verb.to_owned()),
            ("CNI_CONTAINERID", "pod1".to_owned()),
            ("CNI_NETNS", self.pod.path()),
            ("CNI_IFNAME", "net1".to_owned()),
            ("CNI_PATH", self.dir.path().display().to_string()),
            ("CNI_ARGS", "IgnoreUnknown=1;K8S_POD_NAME=du".to_owned()),
            ("MOOR_CNI_ROOT", root.display().to_string()),
        ];
        // Under its own name: `ip netns exec` cannot give it another.
        self.node.run_with(PROGRAM, &[""; 0], &variables, stdin)
    }

    fn seen(&self, file: &str) -> String {
        fs::read_to_string(self.dir.path().join(file)).unwrap_or_default()
    }

    fn links(&self) -> String {
        self.pod.ip("-j link show")
    }
}

const ANSWER: &str = r#"if [ "$CNI_COMMAND" = ADD ]; then echo '{"ips":[{"version":"4","address":"10.1.2.20/24","gateway":"10.1.2.1"}],"routes":[{"dst":"10.5.0.0/16"}]}'; fi"#;

/// With keys that nobody knows and a number that we cannot hold.
fn config(version: &str) -> String {
    format!(
        "{{ \"zz\": [123456789012345678901234567890, 1.50],\n \"cniVersion\": \"{version}\", \"name\": \"n\", \"type\": \"macvlan\", \"master\": \"eth1\", \"ipam\": {{\"type\": \"foreign\", \"x\": {{\"b\": 1, \"a\": 2}}}}, \"cni.dev/valid-attachments\": [{{\"containerID\": \"pod1\", \"ifname\": \"net1\"}}] }}"
    )
}

#[test]
fn a_foreign_ipam_plugin_gets_the_runtimes_bytes_and_environment_for_every_verb() {
    let Some(node) = Scene::new("a foreign IPAM plugin", ANSWER) else {
        return;
    };
    let text = config("1.1.0");
    let said = node.call("ADD", &text);
    let result: Value = serde_json::from_str(said.ok()).expect("JSON");
    assert_eq!(result["ips"][0]["address"], "10.1.2.20/24");
    assert_eq!(result["routes"][0]["dst"], "10.5.0.0/16");
    assert!(node.pod.ip("-j addr show net1").contains("10.1.2.20"));
    let with_prev = text.replacen('{', &format!("{{ \"prevResult\": {result},"), 1);
    node.call("CHECK", &with_prev).ok();
    for verb in ["STATUS", "GC", "DEL", "DEL"] {
        assert_eq!(node.call(verb, &text).ok(), "", "{verb}");
    }
    assert_eq!(node.seen("verbs"), "ADD CHECK STATUS GC DEL DEL ");
    for verb in ["ADD", "STATUS", "GC", "DEL"] {
        assert_eq!(node.seen(&format!("stdin-{verb}")), text, "{verb}");
        let env = node.seen(&format!("env-{verb}"));
        for line in [
            format!("CNI_COMMAND={verb}"),
            "CNI_CONTAINERID=pod1".to_owned(),
            "CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAME=du".to_owned(),
        ] {
            assert!(env.lines().any(|l| l == line), "{verb}: {line}: {env}");
        }
    }
    assert_eq!(node.seen("stdin-CHECK"), with_prev);
    assert!(!node.links().contains("net1"), "{}", node.links());
}

#[test]
fn a_foreign_plugins_error_comes_through_with_its_code_and_the_rest_is_undone() {
    let script = r#"if [ "$CNI_COMMAND" = ADD ]; then echo "some noise" >&2; echo '{"code":117,"msg":"pool is empty","details":"10.1.2.0/24"}'; exit 1; fi"#;
    let Some(node) = Scene::new("a foreign IPAM plugin that refuses", script) else {
        return;
    };
    let before = node.links();
    let said = node.call("ADD", &config("0.4.0"));
    let value = error(&said);
    assert_eq!(
        value,
        json!({"cniVersion": "0.4.0", "code": 117, "msg": "pool is empty", "details": "10.1.2.0/24"})
    );
    assert!(
        said.stderr.contains("some noise"),
        "stderr is forwarded: {}",
        said.stderr
    );
    assert_eq!(node.seen("verbs"), "ADD DEL ", "the delegate is undone");
    assert_eq!(node.links(), before);
}

#[test]
fn a_foreign_plugin_that_answers_nonsense_is_undone_and_told_about() {
    for (script, word) in [
        (
            "echo 'no json at all'; echo 'the reason' >&2; exit 3",
            "the reason",
        ),
        (
            "[ \"$CNI_COMMAND\" = ADD ] && echo 'no json at all'; exit 0",
            "delegate",
        ),
        (
            "[ \"$CNI_COMMAND\" = ADD ] && echo '{\"ips\": []}'; exit 0",
            "missing IP config",
        ),
        (
            "[ \"$CNI_COMMAND\" = ADD ] && echo '{\"ips\": [{\"address\": \"x\"}]}'; exit 0",
            "decode",
        ),
        ("kill -9 $$", "signal"),
    ] {
        let Some(node) = Scene::new("a foreign IPAM plugin that answers nonsense", script) else {
            return;
        };
        let before = node.links();
        let value = error(&node.call("ADD", &config("0.4.0")));
        assert!(value.to_string().contains(word), "{script}: {value}");
        assert_eq!(node.seen("verbs"), "ADD DEL ", "{script}");
        assert_eq!(node.links(), before, "{script}");
    }
}

#[test]
fn a_delegate_that_is_not_there_is_named_with_where_it_was_looked_for() {
    let Some(node) = Scene::new("a foreign IPAM plugin that is absent", "") else {
        return;
    };
    let before = node.links();
    let text = config("0.4.0").replace("foreign", "nobody");
    let value = error(&node.call("ADD", &text));
    let msg = value["msg"].as_str().unwrap_or_default();
    assert!(msg.contains("\"nobody\""), "{msg}");
    assert!(
        msg.contains(&node.dir.path().display().to_string()),
        "{msg}"
    );
    assert_eq!(node.links(), before);
    // An ADD would fail, says STATUS.
    let text = text.replace("0.4.0", "1.1.0");
    assert_eq!(error(&node.call("STATUS", &text))["code"], 50);
    // A file that cannot be started is not the plugin.
    fs::File::create(node.dir.path().join("nobody")).expect("a file");
    error(&node.call("ADD", &text));
}

#[test]
fn a_delegate_whose_name_is_a_path_is_never_started() {
    let Some(node) = Scene::new("a foreign IPAM plugin outside CNI_PATH", "") else {
        return;
    };
    let trap = node.dir.path().join("trap");
    let before = node.links();
    for kind in [
        "../foreign",
        "./foreign",
        "/bin/sh",
        "..",
        ".",
        "a/../foreign",
        "foreign\\u0000",
    ] {
        let text = config("0.4.0").replace("\"foreign\"", &format!("\"{kind}\""));
        for verb in ["ADD", "DEL"] {
            let value = error(&node.call(verb, &text));
            assert_eq!(value["code"], 7, "{kind} {verb}: {value}");
        }
        assert_eq!(node.links(), before);
    }
    assert!(!trap.exists() && node.seen("verbs").is_empty());
}

#[test]
fn the_plugins_own_namespace_is_refused_before_anything_is_touched_unless_it_is_allowed() {
    let Some(node) = Scene::new("the plugin's own namespace", ANSWER) else {
        return;
    };
    for verb in ["ADD", "DEL"] {
        let before = node.node.ip("-j link show");
        let mut variables = vec![
            ("CNI_COMMAND", verb.to_owned()),
            ("CNI_CONTAINERID", "pod1".to_owned()),
            ("CNI_NETNS", node.node.path()),
            ("CNI_IFNAME", "eth1".to_owned()),
            ("CNI_PATH", node.dir.path().display().to_string()),
        ];
        let said = node
            .node
            .run_with(PROGRAM, &[""; 0], &variables, &config("0.4.0"));
        assert_eq!(error(&said)["code"], 8, "{verb}");
        assert_eq!(node.node.ip("-j link show"), before, "{verb}");
        variables.push(("CNI_NETNS_OVERRIDE", "1".to_owned()));
        variables.retain(|(k, _)| *k != "CNI_IFNAME");
        variables.push(("CNI_IFNAME", "net7".to_owned()));
        let said = node
            .node
            .run_with(PROGRAM, &[""; 0], &variables, &config("0.4.0"));
        said.ok();
    }
    assert_eq!(node.node.ip("-j link show").matches("net7").count(), 0);
}

#[test]
fn a_result_has_the_shape_of_the_configurations_version() {
    for version in VERSIONS {
        let mut config = json!({"name": "n", "type": "macvlan", "ipam": {"type": "static",
            "addresses": [{"address": "10.1.2.3/24", "gateway": "10.1.2.1"}, {"address": "fd00::3/64"}],
            "routes": [{"dst": "0.0.0.0/0"}]}});
        if version != "0.1.0" {
            config["cniVersion"] = json!(version);
        }
        let said = call("static", "ADD", &config);
        let result: Value = serde_json::from_str(said.ok()).expect("JSON");
        assert_eq!(result["cniVersion"], version);
        if version < "0.3.0" {
            assert_eq!(
                (&result["ip4"]["ip"], &result["ip6"]["ip"]),
                (&json!("10.1.2.3/24"), &json!("fd00::3/64"))
            );
            assert!(result.get("ips").is_none());
        } else {
            assert_eq!(result["ips"][1]["address"], "fd00::3/64");
            assert_eq!(
                result["ips"][1].get("version").is_some(),
                version < "1.0.0",
                "{version}"
            );
        }
        assert!(result.get("interfaces").is_none(), "IPAM results have none");
    }
}

/// Shared with the hostile tests: a variable that is no text.
pub(crate) fn not_text() -> OsString {
    OsString::from_vec(vec![b'a', 0xff, b'b'])
}

/// Whether a path is there, as itself.
pub(crate) fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}
