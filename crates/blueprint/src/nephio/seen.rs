//! The facts of a package that every function needs: the cluster, and the networks' routing tables.
//!
//! Easy to get wrong: a package without WorkloadCluster is no error here; each step says so where it needs
//! one. One that is there but not filled in stops everything.

use mooring_api::{Code, Finding};
use serde_json::Value;

use super::OWNER;
use super::engine::{Failure, Rule, Watch};
use super::kinds::{CLUSTER, NETWORK};
use super::reference::Ref;
use crate::bundle::{Bundle, Object};

/// The cluster that a package is for.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    /// Its name.
    pub(crate) name: String,
    /// The CNI types that it offers.
    pub(crate) cnis: Vec<String>,
    /// The NIC; may be empty.
    pub(crate) master: String,
}

impl Cluster {
    /// Refuses a CNI type that the cluster does not offer.
    pub(crate) fn offers(&self, cni: &str) -> Result<(), Failure> {
        if self.cnis.iter().any(|known| known == cni) {
            return Ok(());
        }
        let known = self.cnis.join(" ");
        let text = format!(
            "cniType not supported in workload cluster; workload cluster CNI(s): [{known}], interface cniType requested: {cni}"
        );
        Err(Failure::new(Code::UnsupportedCni, text).at("spec.cniType"))
    }
}

/// A routing table: a network instance's name, and its prefixes as written.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) prefixes: Vec<String>,
}

/// What the package says of itself.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    cluster: Option<Cluster>,
    /// The routing tables of all Networks, in document order.
    pub(crate) tables: Vec<Table>,
    /// What to tell.
    pub(crate) said: Vec<Finding>,
}

impl Seen {
    /// The cluster, or what is said where there is none.
    pub(crate) fn cluster(&self) -> Result<&Cluster, Failure> {
        let missing = "workload cluster is missing from the kpt package";
        let failure = || Failure::new(Code::MissingCluster, missing);
        self.cluster.as_ref().ok_or_else(failure)
    }

    /// Reads what the function watches for the whole package. An object that somebody owns is not for everybody.
    pub(crate) fn gather(rule: &Rule, bundle: &Bundle) -> Result<Self, (Failure, Ref)> {
        let mut seen = Self::default();
        let watches = |o: &&Object| {
            let mut kinds = rule.watches.iter();
            kinds.any(|(gvk, watch)| *watch == Watch::Global && gvk.has(o))
                && o.annotation(OWNER).and_then(Ref::parse).is_none()
        };
        for object in bundle.objects.iter().filter(watches) {
            if CLUSTER.has(object) {
                let cluster = match &seen.cluster {
                    Some(_) => Err(Failure::new(
                        Code::AmbiguousCluster,
                        "multiple WorkloadCluster objects found in the kpt package",
                    )),
                    None => cluster(object),
                };
                seen.cluster = Some(cluster.map_err(|failure| (failure, Ref::of(object)))?);
            } else if NETWORK.has(object) {
                seen.tables.extend(tables(object));
            }
        }
        Ok(seen)
    }
}

/// The placeholder in blueprints is called `example`.
fn cluster(object: &Object) -> Result<Cluster, Failure> {
    let spec = |key: &str| object.value.pointer("/spec").and_then(|s| s.get(key));
    let missing = |field: &'static str, what: &str| {
        let text = format!("spec invalid: mandatory field {what}");
        Failure::new(Code::MissingCluster, text).at(field)
    };
    let name = spec("clusterName")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if name.is_empty() || name == "example" {
        let what = "ClusterName is missing from WorkloadCluster";
        return Err(missing("spec.clusterName", what));
    }
    let cnis = spec("cnis").and_then(Value::as_array);
    let cnis: Vec<String> = cnis
        .into_iter()
        .flatten()
        .filter_map(|c| Some(c.as_str()?.to_owned()))
        .collect();
    if cnis.is_empty() {
        return Err(missing(
            "spec.cnis",
            "CNIConfig is missing from ClusterContext",
        ));
    }
    let Some(master) = spec("masterInterface").and_then(Value::as_str) else {
        let what = "MasterInterface is missing from ClusterContext";
        return Err(missing("spec.masterInterface", what));
    };
    Ok(Cluster {
        name: name.to_owned(),
        cnis,
        master: master.to_owned(),
    })
}

fn tables(network: &Object) -> Vec<Table> {
    let tables = network.value.pointer("/spec/routingTables");
    let tables = tables.and_then(Value::as_array).into_iter().flatten();
    let text = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).map(str::to_owned);
    tables
        .map(|table| {
            let prefixes = table.get("prefixes").and_then(Value::as_array);
            Table {
                name: text(table, "name").unwrap_or_default(),
                prefixes: prefixes
                    .into_iter()
                    .flatten()
                    .filter_map(|p| text(p, "prefix"))
                    .collect(),
            }
        })
        .collect()
}
