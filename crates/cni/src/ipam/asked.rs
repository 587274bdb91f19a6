//! Addresses that somebody asks for beside the configuration: `CNI_ARGS`, `args.cni` and `runtimeConfig`. Pure.
//!
//! Both plugins read all three and differ in what they make of them: `static` lets the later ones replace the earlier,
//! `host_local` takes them together. Easy to get wrong: runtimes write several addresses into `CNI_ARGS` with commas,
//! which the reference host-local does not understand.

use mooring_attach::cni::{CniError, Object, Request};
use serde_json::Value;

/// What the sources say, each as written.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// `IP` of `CNI_ARGS`.
    pub(super) args: Vec<String>,
    /// `GATEWAY` of `CNI_ARGS`.
    pub(super) gateways: Vec<String>,
    /// `args.cni.ips`.
    pub(super) config: Vec<String>,
    /// `runtimeConfig.ips`.
    pub(super) runtime: Vec<String>,
}

/// Keys of `CNI_ARGS` that concern addresses, and the one that the plugins above us read.
const KNOWN: [&str; 3] = ["IP", "GATEWAY", "MAC"];

impl Asked {
    pub(super) fn new(request: &Request) -> Result<Self, CniError> {
        request.args.check_known(&KNOWN)?;
        let list = |key| -> Vec<String> {
            let parts = request.args.get(key).unwrap_or_default().split(',');
            let parts = parts.map(str::trim).filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect()
        };
        Ok(Self {
            args: list("IP"),
            gateways: list("GATEWAY"),
            config: strings(&request.config.args_cni, "args.cni.ips")?,
            runtime: strings(&request.config.runtime, "runtimeConfig.ips")?,
        })
    }
}

fn strings(map: &Object, path: &str) -> Result<Vec<String>, CniError> {
    let list = match map.get("ips") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(CniError::config(path, "it is not a list of addresses")),
    };
    let text = |item: &Value| match item {
        Value::String(text) => Ok(text.trim().to_owned()),
        other => Err(CniError::config(path, format!("{other} is no address"))),
    };
    list.iter().map(text).collect()
}
