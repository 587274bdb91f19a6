//! Which network instance an address belongs to, and which instances are routing domains of their own.
//!
//! What is known comes from NetworkInstances, IPPrefixes and the answers of IPClaims, whoever brings
//! them: a management directory or the packages themselves. Without any of these every address is in
//! the one domain that all share.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mooring_api::{Cidr, HostCidr, annotation};
use serde_json::Value;

use crate::input::{Input, Origin};
use crate::world::annotation_of;

/// `namespace/name`.
type Name = String;

/// What is known of instances.
#[derive(Default)]
pub(crate) struct Instances {
    isolated: BTreeSet<Name>,
    /// Cluster, package, and `Kind/name` of an Interface or IPClaim.
    asked: BTreeMap<(String, String, String), Name>,
    prefixes: BTreeMap<(Option<Name>, Cidr), Name>,
    lengths: BTreeSet<u8>,
}

impl Instances {
    pub(crate) fn read(inputs: &[Input<'_>]) -> Self {
        let mut out = Self::default();
        for input in inputs {
            let object = &input.origin.object;
            let is_instance = object.kind == "NetworkInstance" && is_nephio(object.group());
            if is_instance && annotation_of(input.value, annotation::ISOLATED) == Some("true") {
                out.isolated.insert(name(&object.namespace, &object.name));
            }
        }
        for input in inputs.iter().filter(|i| is_nephio(i.origin.object.group())) {
            out.add(input);
        }
        out
    }

    fn add(&mut self, input: &Input<'_>) {
        let object = &input.origin.object;
        let text = |path: &str| input.value.pointer(path).and_then(Value::as_str);
        let said = || {
            let namespace = text("/spec/networkInstance/namespace").unwrap_or_default();
            Some(name(namespace, text("/spec/networkInstance/name")?))
        };
        match object.kind.as_str() {
            "NetworkInstance" => {
                let instance = name(&object.namespace, &object.name);
                let list = input.value.pointer("/spec/prefixes");
                for prefix in list.and_then(Value::as_array).into_iter().flatten() {
                    let prefix = prefix.get("prefix").and_then(Value::as_str);
                    self.own(prefix, &instance);
                }
            }
            "IPPrefix" => {
                if let Some(instance) = said() {
                    self.own(text("/spec/prefix"), &instance);
                }
            }
            "IPClaim" | "Interface" => {
                let Some(instance) = said() else { return };
                self.own(text("/status/prefix"), &instance);
                let me = format!("{}/{}", object.kind, object.name);
                let origin = &input.origin;
                let place = (origin.cluster.clone(), origin.package.clone(), me);
                self.asked.insert(place, instance);
            }
            _ => {}
        }
    }

    fn own(&mut self, prefix: Option<&str>, instance: &Name) {
        let Some(Ok(prefix)) = prefix.map(str::parse::<HostCidr>) else {
            return;
        };
        let prefix = prefix.subnet();
        self.lengths.insert(prefix.prefix_len());
        let place = (self.domain(instance), prefix);
        let owner = self.prefixes.entry(place);
        owner.or_insert_with(|| instance.clone());
    }

    fn domain(&self, instance: &Name) -> Option<Name> {
        self.isolated.get(instance).cloned()
    }

    /// The instance that an Interface or IPClaim, written `Kind/name`, of the same package asks for.
    pub(crate) fn asked_by(&self, origin: &Origin, owner: &str) -> Option<&str> {
        let place = (
            origin.cluster.clone(),
            origin.package.clone(),
            owner.to_owned(),
        );
        self.asked.get(&place).map(String::as_str)
    }

    /// The routing domain of an object: as given, else that of the instance it was made for.
    pub(crate) fn scope_of(&self, input: &Input<'_>) -> Option<String> {
        if input.scope.is_some() {
            return input.scope.clone();
        }
        let owner = annotation_of(input.value, annotation::OWNED_BY)?;
        self.isolated
            .get(self.asked_by(&input.origin, owner)?)
            .cloned()
    }

    /// The instance whose prefix holds this address; the longest prefix decides.
    pub(crate) fn of(&self, scope: Option<&str>, address: IpAddr) -> Option<&str> {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let lengths = self.lengths.iter().rev().filter(|len| **len <= bits);
        let scope = scope.map(str::to_owned);
        let mut found = lengths.filter_map(|len| {
            let place = (scope.clone(), Cidr::containing(address, *len));
            self.prefixes.get(&place)
        });
        found.next().map(String::as_str)
    }
}

fn is_nephio(group: &str) -> bool {
    matches!(
        group,
        "ipam.resource.nephio.org" | "ipam.nephio.org" | "infra.nephio.org" | "req.nephio.org"
    )
}

/// An empty namespace means `default`.
fn name(namespace: &str, name: &str) -> Name {
    let namespace = if namespace.is_empty() {
        "default"
    } else {
        namespace
    };
    format!("{namespace}/{name}")
}
