//! The rows about revisions, nodes and what their agents say.

use std::collections::BTreeMap;

use mooring_api::Time;
use mooring_api::kinds::mooring::Rollout;
use mooring_intent::plan;
use mooring_intent::rollout::{Act, Agent, AgentState, Phase, Seen, Written, next, phase};

use super::{destination, low_level, node, object};
use crate::properties::bytes;
use crate::text;

fn seen(agent: Option<(&str, AgentState, u64, &str)>) -> Seen {
    Seen {
        ready: true,
        written: Some(Written {
            revision: "new".to_owned(),
            wanted: true,
            at: Time(100),
        }),
        agent: agent.map(|(revision, state, at, message)| Agent {
            revision: revision.to_owned(),
            state,
            at: Time(at),
            message: message.to_owned(),
        }),
        ..Seen::default()
    }
}

#[test]
fn the_same_content_is_the_same_revision_and_a_failed_one_is_not_begun_again() {
    // There the list of revisions is searched for an equal one. Here the name is the content's digest, so an equal one is that one:
    // the newest, an older good one, or one that failed.
    let all = node("a") + &destination("red", 100, "prefixes: [10.0.0.0/8]");
    let pods = |subnet: &str| {
        let spec = format!(
            "network: {{ipv4: {{subnet: {subnet}}}}}, destinations: {{matchLabels: {{zone: red}}}}"
        );
        text(&format!("{all}{}", object("PodNetwork", "p", &spec)))
    };
    let (one, other, again) = (
        pods("10.250.0.0/24"),
        pods("10.250.1.0/24"),
        pods("10.250.0.0/24"),
    );
    assert_eq!(one.revision().metadata.name, again.revision().metadata.name);
    assert_ne!(one.revision().metadata.name, other.revision().metadata.name);
    // Nothing at all is content too: the first revision is made of an empty list.
    assert!(text("").revision().metadata.name.is_some());
    // One that failed stays failed, however often it is asked for.
    let failed = seen(Some(("new", AgentState::Invalid, 110, "no")));
    let nodes = BTreeMap::from([("a".to_owned(), failed), ("b".to_owned(), Seen::default())]);
    for now in [120, 10_000] {
        let act = next(&nodes, "new", true, Time(now), &Rollout::default());
        assert!(
            matches!(act, Act::Fail { ref node, .. } if node == "a"),
            "{act:?}"
        );
    }
}

#[test]
fn a_node_counts_as_there_except_that_silence_is_no_excuse() {
    let limits = Rollout::default();
    let soon = Time(101);
    let late = Time(101).after(limits.timeout);
    let failed = |phase: &Phase| matches!(phase, Phase::Failed { .. });
    let at = |agent, now| phase(&seen(agent), "new", now, &limits);
    assert_eq!(
        at(Some(("new", AgentState::Provisioned, 110, "")), soon),
        Phase::Done
    );
    assert!(failed(&at(
        Some(("new", AgentState::Invalid, 110, "")),
        soon
    )));
    assert_eq!(at(None, soon), Phase::Updating);
    assert_eq!(
        at(Some(("new", AgentState::Provisioning, 110, "")), soon),
        Phase::Updating
    );
    assert!(failed(&at(
        Some(("new", AgentState::Provisioning, 110, "")),
        late
    )));
    // What is said of another revision says nothing of this one.
    for state in [AgentState::Provisioned, AgentState::Invalid] {
        assert_eq!(at(Some(("old", state, 110, "")), soon), Phase::Updating);
    }
    // There an agent that never said when is waited for for ever; here the time runs from our own write.
    assert!(failed(&at(
        Some(("new", AgentState::Provisioning, 0, "")),
        late
    )));
    assert!(failed(&at(None, late)));
}

#[test]
fn a_node_that_is_gone_has_no_configuration() {
    // There a node's configuration goes when fewer than two objects own it. Here it goes with its node, and the plan says so.
    let low = low_level(
        "red",
        10,
        "import: [{cidr: 10.0.0.0/8, action: permit}], export: []",
    );
    let (before, after) = (
        text(&(node("a") + &node("b") + &low)),
        text(&(node("a") + &low)),
    );
    assert_eq!(after.nodes.keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!(before.nodes["a"], after.nodes["a"]);
    let plan = plan(&before, &after);
    assert!(
        plan.agents.contains("b") && !plan.agents.contains("a"),
        "{plan:#?}"
    );
}

#[test]
fn a_node_that_is_not_ready_is_compiled_and_waited_for() {
    // There a node without Ready=True is not there, and loses what it has. Here it is compiled as any other, keeps its addresses, and
    // is begun with when it is ready.
    let says = |condition: &str| {
        let low = low_level(
            "red",
            10,
            "import: [], export: [], loopbacks: [{name: lo.x, subnet: 10.99.0.0/29}]",
        );
        let all = format!(
            "---\n{{apiVersion: v1, kind: Node, metadata: {{name: a}}, status: {{conditions: [{condition}]}}}}\n{low}"
        );
        bytes(&text(&all))
    };
    let ready = says("{type: Ready, status: 'True'}");
    for other in [
        "{type: Ready, status: 'False'}",
        "{type: Ready, status: Unknown}",
        "",
    ] {
        assert_eq!(says(other), ready, "{other}");
    }
    let nodes = |ready| {
        let seen = |ready| Seen {
            ready,
            ..Seen::default()
        };
        BTreeMap::from([("a".to_owned(), seen(ready)), ("b".to_owned(), seen(true))])
    };
    let first = |ready| next(&nodes(ready), "new", true, Time(1), &Rollout::default());
    assert_eq!(first(false), Act::Begin(vec!["b".to_owned()]));
    assert_eq!(first(true), Act::Begin(vec!["a".to_owned()]));
}

#[test]
fn the_last_word_of_an_agent_is_read_as_it_is_meant() {
    // An agent that could not apply goes back to what it had and says so, with the revision that it tried; the message goes with the
    // next good word. Going back is the agent's; that a node which went back is not done is ours.
    let limits = Rollout::default();
    let mut node = seen(Some((
        "new",
        AgentState::Invalid,
        110,
        "line 7 was refused",
    )));
    let why = "line 7 was refused".to_owned();
    assert_eq!(
        phase(&node, "new", Time(120), &limits),
        Phase::Failed { why }
    );
    node.agent = seen(Some(("new", AgentState::Provisioned, 130, ""))).agent;
    assert_eq!(phase(&node, "new", Time(140), &limits), Phase::Done);
    // Applied is another revision: whatever it says, this one is not on the node.
    node.agent = seen(Some(("old", AgentState::Provisioned, 130, ""))).agent;
    assert_eq!(phase(&node, "new", Time(140), &limits), Phase::Updating);
}
