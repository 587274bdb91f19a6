//! The Kptfile's pipeline, run in process: images and exec entries map to built-in steps by base name,
//! and injection, ipam, vlan, attach and sweeping are interposed where they belong.

use mooring_api::{Code, Finding, ObjectRef};
use mooring_blueprint::claim::{self, Wish};
use mooring_blueprint::cluster::Cluster;
use mooring_blueprint::port::{self, Port};
use mooring_blueprint::{Bundle, Context, attach, inject, nad, sweep};
use mooring_ipam::Lease;
use mooring_krm::kptfile;
use serde_json::Value;

/// One built-in step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// The cluster comes in.
    Inject,
    /// Interfaces get claims.
    Interface,
    /// Claims get addresses and VLANs.
    Ipam,
    /// VLAN claims only; the book answers both kinds at once.
    Vlan,
    /// Interfaces get NADs.
    Nad,
    /// Workloads get networks.
    Attach,
}

/// The names a step goes by.
const NAMES: [(&str, Step); 8] = [
    ("inject", Step::Inject),
    ("workload-cluster-injector", Step::Inject),
    ("interface-fn", Step::Interface),
    ("ipam-fn", Step::Ipam),
    ("vlan-fn", Step::Vlan),
    ("nad-fn", Step::Nad),
    ("attach-fn", Step::Attach),
    ("attach", Step::Attach),
];

impl Step {
    /// By the base name of an image or program.
    pub(crate) fn named(base: &str) -> Option<Self> {
        NAMES
            .iter()
            .find(|(name, _)| *name == base)
            .map(|(_, step)| *step)
    }

    /// Kinds of objects that the step makes, and so may sweep.
    fn makes(self) -> &'static [&'static str] {
        match self {
            Self::Inject | Self::Attach | Self::Vlan => &[],
            Self::Interface => &["IPClaim", "VLANClaim"],
            Self::Ipam => &["IPAllocation"],
            Self::Nad => &["NetworkAttachmentDefinition"],
        }
    }
}

/// The steps of a package, by its pipeline; without one, all of them.
pub(crate) fn pipeline(
    kptfile: &Value,
    reference: &ObjectRef,
    findings: &mut Vec<Finding>,
) -> Vec<Step> {
    let functions = kptfile::pipeline(kptfile);
    if functions.is_empty() {
        return vec![
            Step::Inject,
            Step::Interface,
            Step::Ipam,
            Step::Nad,
            Step::Attach,
        ];
    }
    let mut steps = vec![Step::Inject];
    for (i, function) in functions.iter().enumerate() {
        let name = function.base_name().unwrap_or_default();
        if let Some(step) = Step::named(name) {
            steps.push(step);
            if step == Step::Interface {
                steps.push(Step::Ipam);
            }
            continue;
        }
        let key = if function.exec.is_some() {
            "exec"
        } else {
            "image"
        };
        let list = if function.is_validator {
            "validators"
        } else {
            "mutators"
        };
        let before = functions
            .iter()
            .take(i)
            .filter(|f| f.is_validator == function.is_validator);
        findings.push(
            unknown(name)
                .on(reference)
                .at(format!("pipeline.{list}[{}].{key}", before.count())),
        );
    }
    steps.push(Step::Attach);
    steps.dedup();
    steps
}

/// What is said of a function that is not built in.
pub(crate) fn unknown(name: &str) -> Finding {
    let known = NAMES.map(|(name, _)| name).join(", ");
    Finding::error(
        Code::UnknownFunction,
        format!("{name:?} is not a built-in function"),
    )
    .help(format!(
        "Built in are {known}. Run others with kpt, before or after."
    ))
}

/// Asks the book for one wish; the inner error is for the person.
pub(crate) type Ask<'a, E> = dyn FnMut(&Wish) -> Result<Result<Lease, Finding>, E> + 'a;

/// What a run over one package found out.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The cluster, where it could be told.
    pub(crate) cluster: Option<Cluster>,
    /// The ports.
    pub(crate) ports: Vec<Port>,
    /// Things the package now holds.
    pub(crate) held: Vec<Lease>,
}

/// How often the steps may change the package before we say that they never settle.
const ROUNDS: usize = 8;

/// Runs the steps until nothing changes. Stops at the first round with an error.
///
/// In their own order each step finds made what it needs, and one round is all there is; every folder
/// case holds that against a second run. Another order, which a pipeline may ask for, takes rounds.
pub(crate) fn run<E>(
    steps: &[Step],
    bundle: &mut Bundle,
    ctx: &Context<'_>,
    ask: &mut Ask<'_, E>,
    findings: &mut Vec<Finding>,
) -> Result<Outcome, E> {
    let mut outcome = Outcome::default();
    let settles_at_once = steps.is_sorted();
    for _ in 0..ROUNDS {
        let before = (!settles_at_once).then(|| bundle.clone());
        let mut said = Vec::new();
        outcome = round(steps, bundle, ctx, ask, &mut said)?;
        let settled = before.is_none_or(|before| *bundle == before);
        let stop = settled || said.iter().any(Finding::is_error);
        for finding in said {
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
        if stop {
            return Ok(outcome);
        }
    }
    Ok(outcome)
}

/// What the first round will ask, without its answers. Findings are left to the run that follows.
pub(crate) fn wishes(steps: &[Step], bundle: &mut Bundle, ctx: &Context<'_>) -> Vec<Wish> {
    let mut findings = Vec::new();
    let Some((cluster, ports)) = open(steps, bundle, ctx, &mut findings) else {
        return Vec::new();
    };
    for step in steps {
        match step {
            Step::Inject => {}
            Step::Interface => findings.extend(claim::declare(bundle, &ports, &cluster)),
            Step::Ipam | Step::Vlan => {
                return claim::wants(bundle, &ports, &cluster, ctx, &mut findings);
            }
            // A pipeline in another order: asked in its turn.
            Step::Nad | Step::Attach => break,
        }
        if findings.iter().any(Finding::is_error) {
            break;
        }
    }
    Vec::new()
}

/// The cluster, and the ports; None where nothing can follow.
fn open(
    steps: &[Step],
    bundle: &mut Bundle,
    ctx: &Context<'_>,
    findings: &mut Vec<Finding>,
) -> Option<(Cluster, Vec<Port>)> {
    let cluster = if steps.contains(&Step::Inject) {
        inject::inject(bundle, ctx, findings)
    } else {
        inject::find(bundle, findings)
    }?;
    let ports = port::read(bundle, ctx.pools, findings);
    (!findings.iter().any(Finding::is_error)).then_some((cluster, ports))
}

fn round<E>(
    steps: &[Step],
    bundle: &mut Bundle,
    ctx: &Context<'_>,
    ask: &mut Ask<'_, E>,
    findings: &mut Vec<Finding>,
) -> Result<Outcome, E> {
    let mut outcome = Outcome::default();
    let Some((cluster, ports)) = open(steps, bundle, ctx, findings) else {
        return Ok(outcome);
    };
    for step in steps {
        match step {
            Step::Inject => {}
            Step::Interface => findings.extend(claim::declare(bundle, &ports, &cluster)),
            Step::Ipam | Step::Vlan => {
                for wish in claim::wants(bundle, &ports, &cluster, ctx, findings) {
                    match ask(&wish)? {
                        Ok(lease) => {
                            claim::answer(bundle, &wish, &lease);
                            outcome.held.push(lease);
                        }
                        Err(finding) => findings.push(finding),
                    }
                }
                findings.extend(claim::allocations(bundle, &ports, &cluster));
            }
            Step::Nad => findings.extend(nad::nads(bundle, &ports, &cluster, ctx)),
            Step::Attach => findings.extend(attach::attach(bundle, &ports, &cluster)),
        }
        if findings.iter().any(Finding::is_error) {
            break;
        }
    }
    claim::conclude(bundle, &ports, &cluster);
    let made: Vec<&str> = steps.iter().flat_map(|s| s.makes()).copied().collect();
    sweep::sweep(bundle, &ports, &cluster, &made);
    outcome.cluster = Some(cluster);
    outcome.ports = ports;
    Ok(outcome)
}
