//! What `ip` shows of a namespace, as values.
//!
//! A view of several things is one `ip` with several lines: where a program starts slowly, in a kernel of our own, its start is all that a
//! view costs. Easy to get wrong: `ip` stops at the first line that fails, and with it the test.

use std::io::Write as _;
use std::process::{Command, Stdio};

use mooring_testkit::Netns;
use serde_json::Value;

use super::name;

pub(crate) trait Shown {
    /// Several commands of one `ip`, which must all succeed; gives what those that show something show.
    fn batch(&self, commands: &str) -> Vec<Value>;
    /// All links with their details.
    fn links(&self) -> Vec<Value>;
    /// One of them.
    fn link(&self, name: &str) -> Option<Value>;
    /// The addresses of a link that are not its own (link-local).
    fn addresses(&self, name: &str) -> Vec<String>;
}

impl Shown for Netns {
    #[track_caller]
    fn batch(&self, commands: &str) -> Vec<Value> {
        let options = ["-n", &name(self), "-j", "-d", "-batch", "-"];
        let mut ip = Command::new("ip")
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // All of it fits into a pipe.
        let mut stdin = ip.stdin.take().unwrap();
        stdin.write_all(commands.as_bytes()).unwrap();
        drop(stdin);
        let output = ip.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{commands}: {said}");
        let values = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
        let values: Result<Vec<Value>, _> = values.collect();
        values.unwrap_or_else(|e| panic!("{commands}: {e}"))
    }

    #[track_caller]
    fn links(&self) -> Vec<Value> {
        let text = self.ip("-j -d addr show");
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("ip printed {text:?}: {e}"))
    }

    fn link(&self, name: &str) -> Option<Value> {
        self.links().into_iter().find(|link| link["ifname"] == name)
    }

    fn addresses(&self, name: &str) -> Vec<String> {
        addresses(&self.link(name).unwrap_or_default())
    }
}

/// The addresses of a link that are not its own.
pub(crate) fn addresses(link: &Value) -> Vec<String> {
    let all = link["addr_info"].as_array().cloned().unwrap_or_default();
    let global = all.iter().filter(|a| a["scope"] == "global");
    let text = |a: &Value| format!("{}/{}", a["local"].as_str().unwrap_or("?"), a["prefixlen"]);
    global.map(text).collect()
}

/// The routes of IPv4 that are not the kernel's own, of what `route show table all` gives.
pub(crate) fn routes(shown: &Value) -> Vec<String> {
    let all = shown.as_array().into_iter().flatten();
    let wanted = all.filter(|route| {
        let dst = route["dst"].as_str().unwrap_or_default();
        route["table"] != "local" && !dst.contains(':') && route["protocol"] != "ra"
    });
    let text = |route: &Value| {
        let keys = [
            "dst", "gateway", "dev", "table", "metric", "prefsrc", "scope",
        ];
        keys.map(|key| route[key].to_string()).join(" ")
    };
    let mut found: Vec<String> = wanted.map(text).collect();
    found.sort();
    found
}
