//! `moor trace --node NAME ADDRESS ADDRESS -f PATH`: where a packet goes on a node, by the configuration that it would get.
//!
//! Easy to get wrong: a packet that arrives and whose answer finds no way back is not reached.

use std::fmt::Write as _;
use std::net::IpAddr;

use mooring_intent::trace::{End, Story, trace};
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
    #[serde(flatten)]
    story: Story,
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
    let story = trace(&config.network, from, to);
    let shown = Shown {
        node: name,
        from,
        to,
        reached: is_reached(&story.end),
        story,
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
    let steps = &shown.story.steps;
    let width = steps.iter().map(|s| s.vrf.len()).max().unwrap_or(0);
    for (number, step) in steps.iter().enumerate() {
        let route = match step.route {
            Some(route) => format!("route {route}"),
            None => "no route of its own".to_owned(),
        };
        let (number, vrf, why) = (number + 1, &step.vrf, &step.why);
        let _ = writeln!(text, "{number}. {vrf:width$}  {why}: {route}");
    }
    let word = if shown.reached {
        "reached"
    } else {
        "not reached"
    };
    let (said, help) = end(&shown.story.end, *from);
    let _ = writeln!(text, "\n{word}: {said}");
    if !help.is_empty() {
        let _ = writeln!(text, "help: {help}");
    }
    text
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
