//! Calling Helm, and reading what it prints.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The oldest API server that we test against; a Helm that was built without a version believes in 1.20.
const KUBE_VERSION: &str = "1.36.0";
pub(crate) const NAMESPACE: &str = "mooring-system";

pub(crate) fn root() -> PathBuf {
    mooring_testkit::workspace_root()
}

pub(crate) fn chart() -> PathBuf {
    root().join("deploy/chart/mooring")
}

/// Helm, with nothing of the person's own settings. None is a counted skip.
pub(crate) fn helm() -> Option<Helm> {
    let place = mooring_testkit::component("helm", "the chart")?;
    let home = tempfile::tempdir().unwrap();
    let program = place.join("bin/helm");
    Some(Helm { program, home })
}

pub(crate) struct Helm {
    program: PathBuf,
    home: tempfile::TempDir,
}

impl Helm {
    /// What it prints, or what it complains about.
    pub(crate) fn run(&self, args: &[&str]) -> Result<String, String> {
        let output = Command::new(&self.program)
            .args(args)
            .env_clear()
            .env("HOME", self.home.path())
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        if output.status.success() {
            Ok(text(output.stdout))
        } else {
            Err(text(output.stdout) + &text(output.stderr))
        }
    }

    pub(crate) fn lint(&self) -> Result<String, String> {
        let chart = chart().display().to_string();
        self.run(&["lint", "--strict", "--kube-version", KUBE_VERSION, &chart])
    }

    /// The chart with these values, as text.
    pub(crate) fn template(&self, values: &Path) -> Result<String, String> {
        let chart = chart().display().to_string();
        let values = values.display().to_string();
        let head = ["template", "mooring", &chart, "-n", NAMESPACE];
        let tail = ["--kube-version", KUBE_VERSION, "-f", &values];
        self.run(&[&head[..], &tail[..]].concat())
    }
}

/// The objects of a YAML stream.
pub(crate) fn objects(yaml: &str) -> Vec<Value> {
    let documents = yaml.split("\n---").map(|part| {
        serde_saphyr::from_str::<Value>(part).unwrap_or_else(|e| panic!("{e}\n{part}"))
    });
    documents.filter(|object| !object.is_null()).collect()
}

/// `kind namespace/name`, as in the lists of the cases.
pub(crate) fn title(object: &Value) -> String {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or("")
    };
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    match text("/metadata/namespace") {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}

/// The list below a pointer; absent is empty.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    let found = object.pointer(pointer).and_then(Value::as_array);
    found.map_or(&[], Vec::as_slice)
}
