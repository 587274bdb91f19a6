//! `moor trace --node NAME ADDRESS ADDRESS -f PATH`: where a packet goes on a node, by the configuration that it would get.
//! With `--vrf` it comes out of the fabric, and its answer is followed as well.
//!
//! Easy to get wrong: a packet that arrives and whose answer finds no way back is not reached.

use std::fmt::Write as _;
use std::net::IpAddr;

use mooring_api::kinds::schiff::NodeNetworkConfigSpec;
use mooring_intent::trace::{End, Step, Story, arriving, trace};
use serde::Serialize;

use crate::args::{Format, TraceArgs};
use crate::commands::plan::network::Network;
use crate::commands::plan::show::known;
use crate::output::{Output, Table, exit_of};
use crate::world::{Exit, Usage};

/// What `-o json` shows.
#[derive(Serialize)]
struct Shown<'a> {
    node: &'a str,
    from: IpAddr,
    to: IpAddr,
    /// Out of the fabric of this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    vrf: Option<&'a str>,
    #[serde(flatten)]
    story: Story,
    /// Where the answer goes, of a packet that came from outside and arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Story>,
    reached: bool,
}

pub(super) fn run(name: &str, args: &TraceArgs, output: &mut Output) -> anyhow::Result<Exit> {
    let (from, to) = (address(&args.from)?, address(&args.to)?);
    if from.is_ipv4() != to.is_ipv4() {
        let message = format!("{from} and {to} are of two families");
        return Err(Usage::new(message, "name two addresses of one family").into());
    }
    let Some(network) = Network::read(&args.network, output)? else {
        return Ok(Exit::Wrong);
    };
    known(&network, name)?;
    let Some(config) = network.compiled.nodes.get(name) else {
        let message = format!("node {name} is gone");
        return Err(Usage::new(message, "name a node of -f, not of --from").into());
    };
    let shown = match &args.vrf {
        None => leaving(name, &config.network, from, to),
        Some(vrf) => entering(name, &config.network, vrf, from, to)?,
    };
    if args.format.format == Format::Table {
        output.data(&text(&shown))?;
    } else {
        output.show(args.format.format, &shown, |_| Table::new(["step"]))?;
    }
    let errors = network.errors();
    output.findings(&errors);
    Ok(if shown.reached {
        exit_of(&errors)
    } else {
        Exit::Wrong
    })
}

fn leaving<'a>(
    node: &'a str,
    config: &NodeNetworkConfigSpec,
    from: IpAddr,
    to: IpAddr,
) -> Shown<'a> {
    let story = trace(config, from, to);
    Shown {
        node,
        from,
        to,
        vrf: None,
        answer: None,
        reached: is_reached(&story.end),
        story,
    }
}

fn entering<'a>(
    node: &'a str,
    config: &NodeNetworkConfigSpec,
    vrf: &'a str,
    from: IpAddr,
    to: IpAddr,
) -> Result<Shown<'a>, Usage> {
    if !config.fabric_vrfs.contains_key(vrf) {
        let there: Vec<&str> = config.fabric_vrfs.keys().map(String::as_str).collect();
        let message = format!("node {node} has no VRF {vrf} that the fabric knows");
        let help = match there.as_slice() {
            [] => "it has none at all".to_owned(),
            there => format!("it has {}", there.join(", ")),
        };
        return Err(Usage::new(message, help));
    }
    let story = arriving(config, vrf, from, to);
    let here = matches!(story.end, End::Segment { .. } | End::Host);
    let answer = here.then(|| trace(config, to, from));
    let back = answer.as_ref().map(|answer| &answer.end);
    Ok(Shown {
        node,
        from,
        to,
        vrf: Some(vrf),
        reached: matches!(back, Some(End::Fabric { vrf: by, known: true, .. }) if by == vrf),
        story,
        answer,
    })
}

fn address(text: &str) -> Result<IpAddr, Usage> {
    text.parse().map_err(|_| {
        let message = format!("{text} is not an address");
        Usage::new(message, "with --node a packet goes from address to address")
    })
}

fn is_reached(end: &End) -> bool {
    match end {
        End::Segment { .. } | End::Host => true,
        End::Fabric { known, .. } => *known,
        End::Swallowed { .. } | End::NoRoute { .. } | End::Loop => false,
    }
}

fn text(shown: &Shown<'_>) -> String {
    let Shown { node, from, to, .. } = shown;
    let mut text = format!("node  {node}\nfrom  {from}\nto    {to}\n\n");
    steps(&mut text, &shown.story.steps);
    if let Some(answer) = &shown.answer {
        text.push_str("\nthe answer\n\n");
        steps(&mut text, &answer.steps);
    }
    let word = if shown.reached {
        "reached"
    } else {
        "not reached"
    };
    let (said, help) = match shown.vrf {
        None => end(&shown.story.end, *from),
        Some(vrf) => from_outside(shown, vrf),
    };
    let _ = writeln!(text, "\n{word}: {said}");
    if !help.is_empty() {
        let _ = writeln!(text, "help: {help}");
    }
    text
}

fn steps(text: &mut String, steps: &[Step]) {
    let width = steps.iter().map(|s| s.vrf.len()).max().unwrap_or(0);
    for (number, step) in steps.iter().enumerate() {
        let route = match step.route {
            Some(route) => format!("route {route}"),
            None => "no route of its own".to_owned(),
        };
        let (number, vrf, why) = (number + 1, &step.vrf, &step.why);
        let _ = writeln!(text, "{number}. {vrf:width$}  {why}: {route}");
    }
}

/// What became of a packet out of the fabric, and of its answer.
fn from_outside(shown: &Shown<'_>, vrf: &str) -> (String, &'static str) {
    let Some(answer) = &shown.answer else {
        return match &shown.story.end {
            End::Fabric { vrf: by, .. } => (
                format!(
                    "nobody on this node has {}; it goes back to the fabric in VRF {by}",
                    shown.to
                ),
                "trace it on the node that has it, or attach a workload here",
            ),
            other => end(other, shown.from),
        };
    };
    let (arrived, _) = end(&shown.story.end, shown.from);
    let (back, help) = match &answer.end {
        End::Fabric {
            vrf: by,
            known: true,
            ..
        } if by != vrf => (
            format!("over the fabric in VRF {by}, not in {vrf}: whoever asked does not know it"),
            "let the same Destinations be selected for both ways",
        ),
        other => end(other, shown.to),
    };
    (format!("{arrived}; the answer: {back}"), help)
}

fn end(end: &End, from: IpAddr) -> (String, &'static str) {
    match end {
        End::Segment { vlan } => (format!("in the segment of VLAN {vlan}"), ""),
        End::Host => (
            "at the node's host, a workload on it, or the cluster's own network".to_owned(),
            "",
        ),
        End::Fabric {
            vrf, known: false, ..
        } => (
            format!(
                "the fabric of VRF {vrf} takes it, but {from} is not exported there: no way back"
            ),
            "an attachment exports its subnets to the VRFs of its Destinations",
        ),
        End::Fabric {
            vrf, communities, ..
        } if communities.is_empty() => (
            format!("over the fabric in VRF {vrf}, which knows the way back to {from}"),
            "",
        ),
        End::Fabric {
            vrf, communities, ..
        } => (
            format!(
                "over the fabric in VRF {vrf}, which knows the way back to {from} with communities {}",
                communities.join(", ")
            ),
            "",
        ),
        End::Swallowed { vrf } => (
            format!("an aggregate of VRF {vrf} swallows it: nobody has that address"),
            "an aggregate announces a whole prefix; only addresses in use are reached",
        ),
        End::NoRoute { vrf } => (
            format!("VRF {vrf} has no route"),
            "select a Destination whose prefixes cover it, or add it to routes",
        ),
        End::Loop => (
            "VRFs lead into each other".to_owned(),
            "two Destinations lead to the same prefix through each other",
        ),
    }
}
