//! Which of the five IPAM solutions fits a network, and why: facts from the objects, then a table.
//!
//! ```text
//!  Fleet ─► facts (per network: clusters, subnets, UPF, pods, nodes, external) ─► advice (solution, reasons, why not the others)
//! ```
//!
//! Called by `moor explain ipam` and the dashboard. Works before a render too: an Interface or an IPClaim stands for the
//! NAD that it will become. Easy to get wrong: the network decides and not the cluster; one package often has a
//! UPF's N3 and a simulator's network, and they want different things.

mod facts;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use facts::{Facts, facts};

/// A way to give addresses out, as the guides number them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Solution {
    /// 1: one subnet, each cluster hands out from a range of its own.
    Partitioned,
    /// 2: each cluster has a subnet of its own, with routes between them.
    SubnetPerCluster,
    /// 3: all nodes look at one record.
    SharedState,
    /// 4: a system outside of the clusters decides.
    External,
    /// 5: the address is decided before the pod starts, and written down.
    Declarative,
}

impl Solution {
    /// All, by number.
    pub const ALL: [Self; 5] = [
        Self::Partitioned,
        Self::SubnetPerCluster,
        Self::SharedState,
        Self::External,
        Self::Declarative,
    ];

    /// Its number in the guides.
    pub fn number(self) -> usize {
        self as usize + 1
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Partitioned => "partitioned ranges",
            Self::SubnetPerCluster => "one subnet per cluster",
            Self::SharedState => "cluster-wide with shared state",
            Self::External => "external system",
            Self::Declarative => "declarative static",
        }
    }
}

/// What to do about one network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Advice {
    /// The network instance, else the subnet, else the NAD.
    pub network: String,
    /// What fits.
    pub solution: Solution,
    /// Its number in the guides.
    pub number: usize,
    /// The annotations that say so on the Interface, `key: value`.
    pub write: Vec<String>,
    /// Why.
    pub because: Vec<String>,
    /// Why none of the others.
    pub instead_of: Vec<Rejected>,
    /// The IPAM types that its NADs have now; none before a render.
    pub now: Vec<String>,
    /// Whether what it has now is what fits; absent before a render.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<bool>,
}

/// A solution that does not fit as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// Which.
    pub solution: Solution,
    /// Why not.
    pub why: String,
}

/// What fits each network of a fleet.
pub fn fits(fleet: &crate::Fleet<'_>) -> Vec<Advice> {
    facts(fleet).iter().map(advise).collect()
}

/// The decision.
pub fn advise(facts: &Facts) -> Advice {
    let (solution, flavour, because) = decide(facts);
    let others = Solution::ALL.into_iter().filter(|other| *other != solution);
    let instead_of = others.map(|other| Rejected {
        solution: other,
        why: why_not(other, facts),
    });
    let mut write = vec![format!("mooring.dev/ipam-flavour: {flavour}")];
    if solution == Solution::Partitioned && flavour == "host-local" && facts.moves {
        write.push("mooring.dev/range-per: node".to_owned());
    }
    if matches!(flavour, "host-local" | "whereabouts") {
        write.push("mooring.dev/range-size: N, the most pods at once".to_owned());
    }
    let now: Vec<String> = facts.now.iter().cloned().collect();
    let is_it = |ipam: &String| ipam == flavour || (flavour == "external" && facts.is_external());
    Advice {
        network: facts.network.clone(),
        number: solution.number(),
        kept: (!now.is_empty()).then(|| now.iter().all(is_it)),
        instead_of: instead_of.collect(),
        solution,
        write,
        because,
        now,
    }
}

/// The solution, its flavour, and the reasons; the first row that applies.
fn decide(facts: &Facts) -> (Solution, &'static str, Vec<String>) {
    let mut because = Vec::new();
    if let Some(system) = &facts.external {
        because.push(format!(
            "{system} hands out its addresses already, and two authorities for one network collide"
        ));
        if let Some(upf) = &facts.upf {
            because.push(format!(
                "{upf} is a UPF: ask {system} for a fixed address, since its peers are configured with it"
            ));
        }
        return (Solution::External, "external", because);
    }
    if let Some(upf) = &facts.upf {
        because.push(format!(
            "{upf} is a UPF: its peers are configured with the address and send to the old one after a change"
        ));
        if let Some(many) = &facts.many {
            because.push(format!(
                "{many} runs several pods: give each an Interface of its own, since one address serves one pod"
            ));
        }
        return (Solution::Declarative, "static", because);
    }
    let Some(many) = &facts.many else {
        because.push(if facts.workloads == 0 {
            "nothing here uses it yet; a workload of one pod would need nothing else".to_owned()
        } else {
            "every workload on it runs one pod, so its address can be decided before it starts"
                .to_owned()
        });
        if facts.moves {
            because.push("the address goes with the pod to any node".to_owned());
        }
        if facts.clusters.len() > 1 {
            because.push(format!(
                "{} clusters are on it, and the book gives no address twice without any state between them",
                facts.clusters.len()
            ));
        }
        return (Solution::Declarative, "static", because);
    };
    because.push(format!(
        "{many} runs several pods, and each needs an address of its own"
    ));
    let clusters = facts.clusters.len();
    let flavour = if facts.moves {
        because.push(
            "pods run on several nodes, so all nodes of a cluster must look at one record"
                .to_owned(),
        );
        "whereabouts"
    } else {
        because
            .push("all its pods are on one node, so that node's own record is enough".to_owned());
        "host-local"
    };
    let solution = if clusters > 1 && facts.shared_subnet.is_none() {
        because.push(format!(
            "{clusters} clusters have a subnet each, and packets between them are routed"
        ));
        Solution::SubnetPerCluster
    } else if clusters > 1 {
        because.push(format!(
            "{clusters} clusters share {}, and each hands out from a range of its own",
            facts.shared_subnet.as_deref().unwrap_or_default()
        ));
        Solution::Partitioned
    } else if facts.moves {
        Solution::SharedState
    } else {
        Solution::Partitioned
    };
    (solution, flavour, because)
}

/// Why a solution that was not chosen does not fit as well.
fn why_not(solution: Solution, facts: &Facts) -> String {
    let clusters = facts.clusters.len();
    match solution {
        Solution::External => match &facts.external {
            Some(_) => "it is the one that was chosen".to_owned(),
            None => "no external system is named".to_owned(),
        },
        _ if facts.external.is_some() => "an external system decides already".to_owned(),
        Solution::Declarative => match &facts.many {
            Some(many) => format!("one static address cannot serve the pods of {many}"),
            None => "it is the one that was chosen".to_owned(),
        },
        _ if facts.upf.is_some() => {
            "a pod from a pool may come back with another address, which a UPF must not".to_owned()
        }
        _ if facts.many.is_none() => {
            "a pool gives another address after a restart, and there is one pod to give one to"
                .to_owned()
        }
        Solution::SubnetPerCluster if clusters < 2 => "there is one cluster".to_owned(),
        Solution::SubnetPerCluster => format!(
            "the clusters share {}; a subnet each needs a router between them",
            facts.shared_subnet.as_deref().unwrap_or("one subnet")
        ),
        Solution::SharedState if clusters > 1 => {
            "no record is shared between clusters; inside each one it may be".to_owned()
        }
        Solution::SharedState => "one node's own record is enough".to_owned(),
        Solution::Partitioned if facts.shared_subnet.is_none() && clusters > 1 => {
            "the clusters have no subnet in common to share".to_owned()
        }
        Solution::Partitioned => {
            "there is one cluster, and per node it would need a range and a pin each".to_owned()
        }
    }
}
