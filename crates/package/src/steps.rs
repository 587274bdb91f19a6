//! The Kptfile's pipeline, run in process: images and exec entries map to built-in steps by base name,
//! and injection, ipam, vlan, attach and sweeping are interposed where they belong.
//!
//! One engine for both dialects: rounds until nothing changes, each up to its first question to the book (`begin`) and on
//! from there (`finish`). A [`Plan`] says whose steps these are.

use std::collections::BTreeSet;

use mooring_api::{Code, Finding, ObjectRef};
use mooring_blueprint::claim::{self, Given, Wish};
use mooring_blueprint::cluster::Cluster;
use mooring_blueprint::port::{self, Port};
use mooring_blueprint::{Bundle, Context, attach, inject, nad, sweep};
use mooring_ipam::{Holder, InstanceKey, Lease};
use mooring_krm::kptfile;
use serde_json::Value;

use crate::decide::vlans;
use crate::nephio::{self, Act};

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

    /// Whether it meets the book.
    fn asks(self) -> bool {
        matches!(self, Self::Ipam | Self::Vlan)
    }

    /// Does what needs no book.
    fn run(
        self,
        bundle: &mut Bundle,
        ports: &[Port],
        cluster: &Cluster,
        ctx: &Context<'_>,
    ) -> Vec<Finding> {
        match self {
            Self::Inject | Self::Ipam | Self::Vlan => Vec::new(),
            Self::Interface => claim::declare(bundle, ports, cluster),
            Self::Nad => nad::nads(bundle, ports, cluster, ctx),
            Self::Attach => attach::attach(bundle, ports, cluster),
        }
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
    let mut steps = vec![Step::Inject];
    for (i, function) in functions.iter().enumerate() {
        let name = function.base_name().unwrap_or_default();
        if let Some(step) = Step::named(name) {
            let is_set = |key: &str| function.value.get(key).is_some_and(|v| !v.is_null());
            if is_set("selectors") || is_set("exclude") {
                let text = format!(
                    "{name} is limited to some objects, but a render does all of a package"
                );
                findings.push(
                    Finding::error(Code::UnknownFunction, text)
                        .on(reference)
                        .at("pipeline")
                        .help("Take the selectors away, or run this function with kpt, before or after."),
                );
            }
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
            unknown_among(name, &NAMES.map(|(name, _)| name))
                .on(reference)
                .at(format!("pipeline.{list}[{}].{key}", before.count())),
        );
    }
    // What a PackageVariant put in front is not the package's own order.
    let added = |f: &kptfile::Function| {
        let name = f.name.as_deref();
        name.is_some_and(|name| name.starts_with("PackageVariant."))
    };
    if functions.iter().all(added) {
        steps.extend([Step::Interface, Step::Ipam, Step::Nad]);
    }
    steps.push(Step::Attach);
    steps.dedup();
    steps
}

/// What is said of a function that is not built in.
pub(crate) fn unknown(name: &str) -> Finding {
    let mut known = NAMES.map(|(name, _)| name).to_vec();
    let dialect = mooring_blueprint::nephio::Function::NAMES.map(|(name, _)| name);
    let helpers = nephio::Helper::NAMES.map(|(name, _)| name);
    let more = dialect
        .into_iter()
        .chain(helpers)
        .chain([nephio::CONFIG_INJECT]);
    known.extend(more.filter(|name| Step::named(name).is_none()));
    unknown_among(name, &known)
}

fn unknown_among(name: &str, known: &[&str]) -> Finding {
    let known = known.join(", ");
    Finding::error(
        Code::UnknownFunction,
        format!("{name:?} is not a built-in function"),
    )
    .help(format!(
        "Built in are {known}. Run others with kpt, before or after."
    ))
}

/// Asks the book for one wish; the inner error is for the person.
pub(crate) type Ask<'a, E> = dyn FnMut(&Wish) -> Result<Result<Given, Finding>, E> + 'a;

/// What a run over one package found out.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The cluster, where it could be told.
    pub(crate) cluster: Option<Cluster>,
    /// The ports.
    pub(crate) ports: Vec<Port>,
    /// Things the package now holds.
    pub(crate) held: Vec<Lease>,
    /// Who was refused something, and keeps what it has until that is mended.
    pub(crate) refused: BTreeSet<Holder>,
    /// The networks whose VLAN the package uses.
    pub(crate) vlans: BTreeSet<InstanceKey>,
}

/// The steps of a package, in its dialect.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    /// Mooring's own.
    Native(Vec<Step>),
    /// Nephio's.
    Nephio(Vec<Act>),
}

impl Plan {
    /// In their own order each native step finds made what it needs, and one round is all there is; every folder
    /// case holds that against a second run. Another order, which a pipeline may ask for, takes rounds.
    fn settles_at_once(&self) -> bool {
        match self {
            Self::Native(steps) => steps.is_sorted(),
            Self::Nephio(_) => false,
        }
    }

    /// A condition travels one step further per round, so the longer chain of the nephio dialect needs more of them.
    fn rounds(&self) -> usize {
        match self {
            Self::Native(_) => 8,
            Self::Nephio(_) => 16,
        }
    }

    /// What is said on the way to a fixpoint of the nephio dialect is often mended by the next round.
    fn says_only_the_end(&self) -> bool {
        matches!(self, Self::Nephio(_))
    }

    /// A round up to its first question to the book.
    pub(crate) fn begin(&self, bundle: &mut Bundle, ctx: &Context<'_>) -> Begun {
        match self {
            Self::Native(steps) => begin(steps, bundle, ctx),
            Self::Nephio(acts) => nephio::begin(acts, bundle, ctx),
        }
    }

    fn finish<E>(
        &self,
        begun: Begun,
        bundle: &mut Bundle,
        ctx: &Context<'_>,
        ask: &mut Ask<'_, E>,
        findings: &mut Vec<Finding>,
    ) -> Result<Outcome, E> {
        match self {
            Self::Native(steps) => finish(begun, steps, bundle, ctx, ask, findings),
            Self::Nephio(acts) => nephio::finish(begun, acts, bundle, ctx, ask, findings),
        }
    }
}

/// Runs the plan until nothing changes. Stops at the first round with an error. `begun` is how far the
/// first round came already.
pub(crate) fn run<E>(
    plan: &Plan,
    bundle: &mut Bundle,
    ctx: &Context<'_>,
    mut begun: Option<Begun>,
    ask: &mut Ask<'_, E>,
    findings: &mut Vec<Finding>,
) -> Result<Outcome, E> {
    let (mut outcome, mut last) = (Outcome::default(), Vec::new());
    let settles_at_once = plan.settles_at_once();
    for _ in 0..plan.rounds() {
        let before = (!settles_at_once && begun.is_none()).then(|| bundle.clone());
        let begun = begun.take().unwrap_or_else(|| plan.begin(bundle, ctx));
        let mut said = Vec::new();
        outcome = plan.finish(begun, bundle, ctx, ask, &mut said)?;
        let settled = settles_at_once || before.is_some_and(|before| *bundle == before);
        let stop = settled || said.iter().any(Finding::is_error);
        if plan.says_only_the_end() {
            last = said;
        } else {
            tell(findings, said);
        }
        if stop {
            break;
        }
    }
    tell(findings, last);
    Ok(outcome)
}

/// Every finding once.
fn tell(findings: &mut Vec<Finding>, said: Vec<Finding>) {
    for finding in said {
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
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

/// What the book is asked.
fn wants(
    bundle: &Bundle,
    ports: &[Port],
    cluster: &Cluster,
    ctx: &Context<'_>,
    findings: &mut Vec<Finding>,
) -> Vec<Wish> {
    let mut wishes = claim::wants(bundle, ports, cluster, ctx, findings);
    wishes.retain(|wish| wish.is_for_the_book(ctx.pools));
    wishes
}

/// A round up to its first question to the book.
#[derive(Debug, Default)]
pub(crate) struct Begun {
    /// What the book is asked.
    pub(crate) wishes: Vec<Wish>,
    /// What was said on the way.
    pub(crate) findings: Vec<Finding>,
    /// None where nothing can follow.
    pub(crate) found: Option<(Cluster, Vec<Port>)>,
    /// The step that asks; past the last where none does.
    pub(crate) at: usize,
}

/// Runs the steps until one asks the book.
fn begin(steps: &[Step], bundle: &mut Bundle, ctx: &Context<'_>) -> Begun {
    let mut findings = Vec::new();
    let found = open(steps, bundle, ctx, &mut findings);
    let (mut at, mut wishes) = (steps.len(), Vec::new());
    if let Some((cluster, ports)) = &found {
        for (nth, step) in steps.iter().enumerate() {
            if step.asks() {
                at = nth;
                wishes = wants(bundle, ports, cluster, ctx, &mut findings);
                break;
            }
            findings.extend(step.run(bundle, ports, cluster, ctx));
            if findings.iter().any(Finding::is_error) {
                break;
            }
        }
    }
    Begun {
        wishes,
        findings,
        found,
        at,
    }
}

/// The rest of the round.
fn finish<E>(
    begun: Begun,
    steps: &[Step],
    bundle: &mut Bundle,
    ctx: &Context<'_>,
    ask: &mut Ask<'_, E>,
    findings: &mut Vec<Finding>,
) -> Result<Outcome, E> {
    let mut outcome = Outcome::default();
    findings.extend(begun.findings);
    let Some((cluster, ports)) = begun.found else {
        return Ok(outcome);
    };
    let mut asked = Some(begun.wishes);
    for step in &steps[begun.at..] {
        if step.asks() {
            let wishes = asked
                .take()
                .unwrap_or_else(|| wants(bundle, &ports, &cluster, ctx, findings));
            for wish in wishes {
                match ask(&wish)? {
                    Ok(given) => {
                        claim::answer(bundle, &wish, &given);
                        outcome.held.push(given.lease);
                    }
                    Err(finding) => findings.push(finding),
                }
            }
            findings.extend(claim::allocations(bundle, &ports, &cluster));
        } else {
            findings.extend(step.run(bundle, &ports, &cluster, ctx));
        }
        if findings.iter().any(Finding::is_error) {
            break;
        }
    }
    claim::conclude(bundle, &ports, &cluster);
    let made: Vec<&str> = steps.iter().flat_map(|s| s.makes()).copied().collect();
    sweep::sweep(bundle, &ports, &cluster, &made);
    outcome.vlans = vlans(&ports);
    outcome.cluster = Some(cluster);
    outcome.ports = ports;
    Ok(outcome)
}
