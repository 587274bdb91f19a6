//! The annotation `k8s.v1.cni.cncf.io/networks`: which networks a pod asks for.
//!
//! ```text
//!  short   n2, oai-ran/n3@n3                  [namespace/]name[@interface], comma separated
//!  JSON    [{"name": "n2", "interface": "n2", "ips": ["10.1.2.20/24"]}]
//! ```
//!
//! Called by `blueprint` (merge ours into what the user wrote), by `verify` (which addresses a pod
//! asks for) and by the meta plugin. The form is chosen as Multus chooses it: any of `[`, `{`, `"`
//! makes it JSON.
//!
//! Easy to get wrong: one bad entry invalidates the whole annotation, so the pod gets none of its
//! interfaces; and keys we do not know belong to somebody and are kept.

mod merge;
mod parse;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;

use mooring_api::{HostCidr, IfName, Mac};
use serde_json::{Map, Value};

pub use merge::{MergeError, merge};
pub use parse::{ParseError, parse};

use crate::print;

/// A parsed annotation: its entries in order, and the form it was written in.
#[derive(Clone, Debug, PartialEq)]
pub struct Networks {
    /// How it was written, and how [`Display`](fmt::Display) prints it.
    pub form: Form,
    /// One per attachment. The same network may stand here several times.
    pub entries: Vec<Entry>,
}

/// How an annotation is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `[namespace/]name[@interface]`, comma separated.
    Short,
    /// A JSON list of objects.
    Json,
}

/// One attachment, with every key it was written with. Its known keys have their grammar: [`parse`]
/// refuses it otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry(Map<String, Value>);

/// One attachment that we want. Empty fields are not written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// The NAD.
    pub name: String,
    /// Its namespace, where that is not the pod's.
    pub namespace: Option<String>,
    /// What it is called in the pod.
    pub interface: Option<IfName>,
    /// Addresses, when the annotation is their carrier.
    pub ips: Vec<HostCidr>,
    /// MAC address.
    pub mac: Option<Mac>,
    /// Gateways that the pod's default routes move to. `Some` of nothing removes the default route.
    pub default_route: Option<Vec<IpAddr>>,
    /// Handed to the plugin as `args.cni`.
    pub cni_args: Map<String, Value>,
}

/// Which attachment: what makes an entry ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The NAD.
    pub name: String,
    /// Its namespace, where one is written.
    pub namespace: Option<String>,
    /// What it is called in the pod, where that is written.
    pub interface: Option<String>,
}

impl Entry {
    /// The NAD.
    pub fn name(&self) -> &str {
        self.text("name").unwrap_or_default()
    }

    /// The NAD's namespace, where one is written; else it is the pod's.
    pub fn namespace(&self) -> Option<&str> {
        self.text("namespace").filter(|n| !n.is_empty())
    }

    /// The name in the pod, where one is written; else Multus counts `net1`, `net2`, ….
    pub fn interface(&self) -> Option<&str> {
        // The second key is an old spelling that Multus still reads.
        ["interface", "interfaceRequest"]
            .into_iter()
            .find_map(|key| self.text(key).filter(|name| !name.is_empty()))
    }

    /// The addresses asked for, as written: with or without a length.
    pub fn ips(&self) -> Vec<&str> {
        match self.0.get("ips") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// The MAC address asked for.
    pub fn mac(&self) -> Option<&str> {
        self.text("mac").filter(|mac| !mac.is_empty())
    }

    /// The gateways of `default-route`, where that key is written.
    pub fn default_route(&self) -> Option<Vec<&str>> {
        let list = self.0.get("default-route")?.as_array()?;
        Some(list.iter().filter_map(Value::as_str).collect())
    }

    /// Everything that was written.
    pub fn keys(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Which attachment it is.
    pub fn key(&self) -> Key {
        Key {
            name: self.name().to_owned(),
            namespace: self.namespace().map(str::to_owned),
            interface: self.interface().map(str::to_owned),
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str()
    }
}

impl Selection {
    /// Which attachment it is.
    pub fn key(&self) -> Key {
        Key {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            interface: self.interface.as_ref().map(ToString::to_string),
        }
    }

    /// The entry that says this and nothing else.
    pub fn entry(&self) -> Entry {
        let mut map = Map::new();
        self.write(&mut map);
        Entry(map)
    }

    /// Sets our keys, in the seed's order, and leaves all others as they are. What we no longer want
    /// to say is taken away, so that an address that moved to the NAD does not stay here too.
    fn write(&self, map: &mut Map<String, Value>) {
        let strings = |list: Vec<String>| Value::from(list);
        let shown = |list: &[IpAddr]| strings(list.iter().map(ToString::to_string).collect());
        let ips = || strings(self.ips.iter().map(ToString::to_string).collect());
        let text = |v: Option<String>| v.map(Value::from);
        let wanted = [
            ("name", Some(Value::from(self.name.as_str()))),
            ("namespace", text(self.namespace.clone())),
            (
                "interface",
                text(self.interface.as_ref().map(ToString::to_string)),
            ),
            ("ips", (!self.ips.is_empty()).then(ips)),
            ("mac", text(self.mac.map(|m| m.to_string()))),
            ("default-route", self.default_route.as_deref().map(shown)),
            (
                "cni-args",
                (!self.cni_args.is_empty()).then(|| Value::Object(self.cni_args.clone())),
            ),
        ];
        for (key, value) in wanted {
            match value {
                Some(value) => {
                    map.insert(key.to_owned(), value);
                }
                None => {
                    map.shift_remove(key);
                }
            }
        }
        map.shift_remove("interfaceRequest");
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)?;
        if let Some(interface) = &self.interface {
            write!(f, "@{interface}")?;
        }
        Ok(())
    }
}

/// Short form: `a, ns/b@c`. JSON form: a list with one entry per line, indented by two, without a
/// newline at the end; an empty list is `[]`.
impl fmt::Display for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            Form::Short => {
                let shown: Vec<String> = self.entries.iter().map(|e| e.key().to_string()).collect();
                f.write_str(&shown.join(", "))
            }
            Form::Json if self.entries.is_empty() => f.write_str("[]"),
            Form::Json => {
                f.write_str("[\n")?;
                for (i, entry) in self.entries.iter().enumerate() {
                    let comma = if i + 1 < self.entries.len() { "," } else { "" };
                    let line = print::line(&Value::Object(entry.0.clone()));
                    writeln!(f, "  {line}{comma}")?;
                }
                f.write_str("]")
            }
        }
    }
}

/// Fuzz entry point: whatever the bytes are, parsing does not panic, and what it accepts prints to a
/// text that parses to the same value.
#[doc(hidden)]
pub fn fuzz_networks(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match parse(text) {
        Ok(networks) => {
            let shown = networks.to_string();
            let again = parse(&shown).expect("what we print, we can read");
            // serde_json reads a fraction to within one unit in the last place, and no key of an
            // attachment is a fraction; so those are compared by being there, not by value.
            if !networks
                .entries
                .iter()
                .any(|e| e.0.values().any(has_fraction))
            {
                assert_eq!(again, networks, "printing lost something: {shown}");
                assert_eq!(again.to_string(), shown, "printing is not stable");
            }
            assert_eq!(again.entries.len(), networks.entries.len());
        }
        Err(error) => {
            assert!(
                error.offset <= text.len(),
                "an offset outside the text: {error:?}"
            );
            assert!(
                text.is_char_boundary(error.offset),
                "an offset inside a character: {error:?}"
            );
        }
    }
}

fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(list) => list.iter().any(has_fraction),
        Value::Object(map) => map.values().any(has_fraction),
        _ => false,
    }
}
