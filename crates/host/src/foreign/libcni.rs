//! What libcni remembers of an attachment: `/var/lib/cni/results/<network>-<container>-<ifname>`. The runtime's; never written here.
//!
//! Easy to get wrong: the configuration in it is what the runtime read, a list or one plugin, in base64.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};

/// How libcni names the form of its files.
const KIND: &str = "cniCacheV1";

/// The file, as far as it is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cached {
    kind: String,
    /// The container.
    pub container_id: String,
    /// The configuration, in base64.
    pub config: String,
    /// The interface's name.
    pub if_name: String,
    /// The network's name.
    pub network_name: String,
    /// The namespace.
    pub netns: PathBuf,
    /// `CNI_ARGS`.
    pub cni_args: Vec<(String, String)>,
    /// What the runtime adds for those plugins that declare it.
    pub capability_args: Map<String, Value>,
    /// What the plugins answered.
    pub result: Value,
}

impl Cached {
    /// Any bytes; none where they are no such file.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let cached: Self = serde_json::from_slice(bytes).ok()?;
        (cached.kind == KIND).then_some(cached)
    }

    /// The addresses that the plugins gave, as they wrote them.
    pub fn addresses(&self) -> Vec<String> {
        let ips = self.result.get("ips").and_then(Value::as_array);
        let text = |ip: &Value| Some(ip.get("address")?.as_str()?.to_owned());
        ips.into_iter().flatten().filter_map(text).collect()
    }

    /// The configuration.
    pub fn configuration(&self) -> Option<Map<String, Value>> {
        use base64::Engine as _;
        let bytes = base64::engine::general_purpose::STANDARD.decode(&self.config);
        serde_json::from_slice(&bytes.ok()?).ok()
    }
}

/// The plugins of a configuration, which is a list or one plugin.
pub fn plugins(configuration: &Map<String, Value>) -> Vec<Value> {
    match configuration.get("plugins") {
        Some(Value::Array(plugins)) => plugins.clone(),
        _ => vec![Value::Object(configuration.clone())],
    }
}
