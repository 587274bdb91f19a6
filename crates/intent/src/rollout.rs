//! The rollout: in which order nodes change, when a node is done, and what is done next.
//!
//! Pure: the controller observes nodes, asks [`next()`], acts, and asks again. A node is done when its agent says that it
//! applied what we wrote, after we wrote it, and still lives; a status that was there before our write says nothing.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::kinds::mooring::Rollout;
use mooring_api::{Span, Time};
use serde::{Deserialize, Serialize};

/// A node as it was last seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether Kubernetes calls it ready.
    pub ready: bool,
    /// Whether it has what it shall have, and when that was written.
    pub written: Option<Written>,
    /// The last word of its agent.
    pub agent: Option<Agent>,
    /// When its agent last renewed its Lease; agents that write none have none.
    pub heartbeat: Option<Time>,
}

/// What we wrote for a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The revision.
    pub revision: String,
    /// Whether it is, byte for byte, what the node shall have.
    pub wanted: bool,
    /// When.
    pub at: Time,
}

/// What a node's agent says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The revision that it last tried.
    pub revision: String,
    /// How that went.
    pub state: AgentState,
    /// When it said so.
    pub at: Time,
    /// What went wrong.
    pub message: String,
}

/// How applying went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentState {
    /// It is at it.
    Provisioning,
    /// Done.
    Provisioned,
    /// It could not.
    Invalid,
}

/// Where a node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// It has something else.
    Outdated,
    /// It was told, and has not said that it is done.
    Updating,
    /// It applied what it was told.
    Done,
    /// It could not, or took too long.
    Failed {
        /// Why.
        why: String,
    },
}

/// Where a node is with a revision. `now` and the limits decide what takes too long.
pub fn phase(node: &Seen, revision: &str, now: Time, limits: &Rollout) -> Phase {
    let Some(written) = &node.written else {
        return Phase::Outdated;
    };
    if written.revision != revision || !written.wanted {
        return Phase::Outdated;
    }
    let late = written.at.after(limits.timeout) < now;
    let heard = node
        .agent
        .as_ref()
        .filter(|a| a.revision == revision && a.at >= written.at);
    match heard {
        Some(agent) if agent.state == AgentState::Invalid => Phase::Failed {
            why: agent.message.clone(),
        },
        Some(agent) if agent.state == AgentState::Provisioned => {
            if alive(node, now, limits.heartbeat) {
                Phase::Done
            } else if late {
                let why = "it applied the revision, and its agent has gone silent".to_owned();
                Phase::Failed { why }
            } else {
                Phase::Updating
            }
        }
        _ if late => Phase::Failed {
            why: format!("its agent did not answer within {}", limits.timeout),
        },
        _ => Phase::Updating,
    }
}

/// A fresh Lease; where the agent writes none, Kubernetes' own word.
fn alive(node: &Seen, now: Time, heartbeat: Span) -> bool {
    match node.heartbeat {
        Some(last) => last.after(heartbeat) >= now,
        None => node.ready,
    }
}

/// The order of nodes: by the value of a label, then by name.
pub fn order<'a>(nodes: &'a BTreeMap<String, Seen>, by: Option<&str>) -> Vec<&'a str> {
    let group = |seen: &'a Seen| by.and_then(|key| seen.labels.get(key));
    let mut all: Vec<_> = nodes
        .iter()
        .map(|(n, seen)| (group(seen), n.as_str()))
        .collect();
    all.sort();
    all.into_iter().map(|(_, name)| name).collect()
}

/// What is done next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Act {
    /// Write these nodes.
    Begin(Vec<String>),
    /// Wait for these.
    Wait(Vec<String>),
    /// Nothing: somebody paused it.
    Paused,
    /// Nothing: more nodes would change than may without a person's word.
    AwaitApproval {
        /// How many.
        nodes: usize,
    },
    /// This node could not: go back.
    Fail {
        /// The node.
        node: String,
        /// Why.
        why: String,
    },
    /// Every node has it.
    Complete,
    /// Every node that answers has it, and these do not.
    Missing(Vec<String>),
}

/// What is done next with a revision.
pub fn next(
    nodes: &BTreeMap<String, Seen>,
    revision: &str,
    approved: bool,
    now: Time,
    limits: &Rollout,
) -> Act {
    let phases: BTreeMap<&str, Phase> = nodes
        .iter()
        .map(|(name, seen)| (name.as_str(), phase(seen, revision, now, limits)))
        .collect();
    let failed = phases.iter().find_map(|(name, phase)| match phase {
        Phase::Failed { why } => Some((*name, why)),
        _ => None,
    });
    if let Some((node, why)) = failed {
        let (node, why) = (node.to_owned(), why.clone());
        return Act::Fail { node, why };
    }
    let of = |wanted: Phase| -> BTreeSet<&str> {
        let here = phases.iter().filter(|(_, phase)| **phase == wanted);
        here.map(|(name, _)| *name).collect()
    };
    let (outdated, updating) = (of(Phase::Outdated), of(Phase::Updating));
    let owned = |names: &BTreeSet<&str>| names.iter().map(|n| (*n).to_owned()).collect();
    if outdated.is_empty() && updating.is_empty() {
        return Act::Complete;
    }
    if outdated.is_empty() {
        return Act::Wait(owned(&updating));
    }
    if limits.paused {
        return Act::Paused;
    }
    let fresh = outdated.len() == nodes.len();
    if let Some(most) = limits.max_nodes
        && fresh
        && !approved
        && outdated.len() > most as usize
    {
        let nodes = outdated.len();
        return Act::AwaitApproval { nodes };
    }
    // A node that Kubernetes does not call ready would take its time and then fail everybody.
    let order = order(nodes, limits.order_by.as_deref());
    let waiting = |name: &&str| outdated.contains(name);
    let able: Vec<&str> = order
        .into_iter()
        .filter(waiting)
        .filter(|name| nodes[*name].ready)
        .collect();
    let free = (limits.max_updating as usize).saturating_sub(updating.len());
    if able.is_empty() && updating.is_empty() {
        return Act::Missing(owned(&outdated));
    }
    if free == 0 || able.is_empty() {
        return Act::Wait(owned(&updating));
    }
    let begin = within_group(nodes, &able, &updating, limits.order_by.as_deref());
    if begin.is_empty() {
        return Act::Wait(owned(&updating));
    }
    Act::Begin(begin.into_iter().take(free).map(str::to_owned).collect())
}

/// Only nodes of the group that is being done: the next begins when this one is through.
fn within_group<'a>(
    nodes: &BTreeMap<String, Seen>,
    able: &[&'a str],
    updating: &BTreeSet<&str>,
    by: Option<&str>,
) -> Vec<&'a str> {
    let Some(key) = by else {
        return able.to_vec();
    };
    let group = |name: &str| nodes[name].labels.get(key);
    let busy = updating.iter().map(|n| group(n)).min();
    let first = able.first().map(|n| group(n));
    let current = match (busy, first) {
        (Some(busy), Some(first)) => busy.min(first),
        (busy, first) => busy.or(first).flatten(),
    };
    able.iter()
        .filter(|n| group(n) == current)
        .copied()
        .collect()
}

/// The revision to go back to: the newest that is good.
pub fn back_to<'a>(newest_first: impl IntoIterator<Item = (&'a str, bool)>) -> Option<&'a str> {
    newest_first
        .into_iter()
        .find_map(|(name, good)| good.then_some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(revision: &str, agent: Option<(&str, AgentState, u64)>) -> Seen {
        Seen {
            ready: true,
            written: Some(Written {
                revision: revision.to_owned(),
                wanted: true,
                at: Time(100),
            }),
            agent: agent.map(|(revision, state, at)| Agent {
                revision: revision.to_owned(),
                state,
                at: Time(at),
                message: "a line was refused".to_owned(),
            }),
            heartbeat: Some(Time(140)),
            ..Seen::default()
        }
    }

    fn at(node: &Seen, now: u64) -> Phase {
        phase(node, "b", Time(now), &Rollout::default())
    }

    #[test]
    fn a_status_from_before_the_write_says_nothing() {
        let old = seen("b", Some(("a", AgentState::Provisioned, 90)));
        assert_eq!(at(&old, 150), Phase::Updating);
        // The same revision was applied once before, and has been changed since.
        let stale = seen("b", Some(("b", AgentState::Provisioned, 90)));
        assert_eq!(at(&stale, 150), Phase::Updating);
        let new = seen("b", Some(("b", AgentState::Provisioned, 110)));
        assert_eq!(at(&new, 150), Phase::Done);
    }

    #[test]
    fn a_node_whose_agent_never_came_fails_in_time() {
        let silent = seen("b", None);
        assert_eq!(at(&silent, 150), Phase::Updating);
        assert!(matches!(at(&silent, 300), Phase::Failed { .. }));
    }

    #[test]
    fn a_dead_agent_is_not_done_whatever_it_said() {
        let said = seen("b", Some(("b", AgentState::Provisioned, 110)));
        assert_eq!(at(&said, 150), Phase::Done);
        assert!(matches!(at(&said, 400), Phase::Failed { .. }));
        let without_lease = Seen {
            heartbeat: None,
            ..said
        };
        assert_eq!(at(&without_lease, 400), Phase::Done);
    }

    #[test]
    fn a_body_that_changed_under_one_revision_goes_through_the_gate() {
        let mut node = seen("b", Some(("b", AgentState::Provisioned, 110)));
        node.written.as_mut().unwrap().wanted = false;
        assert_eq!(at(&node, 150), Phase::Outdated);
    }

    #[test]
    fn one_node_after_the_other_in_the_order_of_the_label() {
        let fresh = |zone: &str| Seen {
            ready: true,
            labels: BTreeMap::from([("zone".to_owned(), zone.to_owned())]),
            ..Seen::default()
        };
        let mut nodes = BTreeMap::from([
            ("n1".to_owned(), fresh("b")),
            ("n2".to_owned(), fresh("a")),
            ("n3".to_owned(), fresh("a")),
        ]);
        let limits = Rollout {
            max_updating: 2,
            order_by: Some("zone".to_owned()),
            ..Rollout::default()
        };
        let act = |nodes: &BTreeMap<String, Seen>| next(nodes, "b", false, Time(150), &limits);
        assert_eq!(
            act(&nodes),
            Act::Begin(vec!["n2".to_owned(), "n3".to_owned()])
        );
        let zone = |zone: &str, seen: Seen| Seen {
            labels: fresh(zone).labels,
            ..seen
        };
        nodes.insert("n2".to_owned(), zone("a", seen("b", None)));
        nodes.insert(
            "n3".to_owned(),
            zone("a", seen("b", Some(("b", AgentState::Provisioned, 110)))),
        );
        // There is room for one more, and it is of the next zone.
        assert_eq!(act(&nodes), Act::Wait(vec!["n2".to_owned()]));
        nodes.insert(
            "n2".to_owned(),
            zone("a", seen("b", Some(("b", AgentState::Provisioned, 110)))),
        );
        assert_eq!(act(&nodes), Act::Begin(vec!["n1".to_owned()]));
        nodes.insert(
            "n1".to_owned(),
            zone("b", seen("b", Some(("b", AgentState::Invalid, 110)))),
        );
        assert!(matches!(act(&nodes), Act::Fail { node, .. } if node == "n1"));
    }

    #[test]
    fn nodes_that_are_away_are_named_and_never_counted_as_done() {
        let away = Seen::default();
        let done = seen("b", Some(("b", AgentState::Provisioned, 110)));
        let nodes = BTreeMap::from([("n1".to_owned(), away), ("n2".to_owned(), done)]);
        let limits = Rollout::default();
        let act = next(&nodes, "b", false, Time(150), &limits);
        assert_eq!(act, Act::Missing(vec!["n1".to_owned()]));
    }

    #[test]
    fn many_nodes_wait_for_a_persons_word() {
        let fresh = Seen {
            ready: true,
            ..Seen::default()
        };
        let nodes: BTreeMap<_, _> = ["a", "b", "c"]
            .map(|n| (n.to_owned(), fresh.clone()))
            .into();
        let limits = Rollout {
            max_nodes: Some(2),
            ..Rollout::default()
        };
        let act = |approved| next(&nodes, "b", approved, Time(1), &limits);
        assert_eq!(act(false), Act::AwaitApproval { nodes: 3 });
        assert_eq!(act(true), Act::Begin(vec!["a".to_owned()]));
        let paused = Rollout {
            paused: true,
            ..limits.clone()
        };
        assert_eq!(next(&nodes, "b", true, Time(1), &paused), Act::Paused);
    }

    #[test]
    fn the_newest_good_revision_is_gone_back_to() {
        assert_eq!(back_to([("c", false), ("b", true), ("a", true)]), Some("b"));
        assert_eq!(back_to([("c", false)]), None);
    }
}
