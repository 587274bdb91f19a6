//! The nephio dialect's row in the engine's table: which acts a pipeline means, and how one round of them goes.
//!
//! ```text
//!  inject ─► the pipeline, in its order ─► ask (ipam, vlan) ─┐
//!     ▲                                                       │ until nothing changes
//!     └───────────────────────────────────────────────────────┘
//! ```
//!
//! Upstream the pipeline is run by one program and the claims are answered by another between two renders; here both take turns in
//! one process. Called by `steps`. Easy to get wrong: what goes wrong with one object is a condition and a warning, and the
//! rest goes on; only what makes the package as a whole unreadable is an error.

pub(crate) mod links;
mod only;
pub(crate) mod summary;

use std::collections::BTreeSet;

use mooring_api::kinds::nephio::ipam::IPClaimStatus;
use mooring_api::{Code, Finding, ObjectRef, Severity, Time, label};
use mooring_blueprint::claim::Wish;
use mooring_blueprint::nephio::{self, Function};
use mooring_blueprint::{Bundle, Context, Object, inject, namespace, networks, replacements};
use mooring_book::Txn;
use mooring_ipam::{Claim, InstanceKey, Lease, Pools, Refusal, State, Thing};
use mooring_krm::kptfile;
use serde_json::{Value, json};

use crate::ahead::Answer;
use crate::differ::Said;
use crate::flavour;
use crate::nephio::only::Only;
use crate::steps::{Ask, Begun, Outcome, unknown};
use crate::unit::Unit;

/// A function that helps the others, with a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Helper {
    /// Values go into fields.
    Replacements,
    /// The package gets its namespace.
    Namespace,
}

impl Helper {
    /// All of them, with the names they go by.
    pub(crate) const NAMES: [(&'static str, Self); 2] = [
        ("apply-replacements", Self::Replacements),
        ("set-namespace", Self::Namespace),
    ];

    /// By the base name of an image or program.
    pub(crate) fn named(base: &str) -> Option<Self> {
        let mut names = Self::NAMES.iter();
        names.find(|(name, _)| *name == base).map(|(_, h)| *h)
    }

    /// Runs it.
    pub(crate) fn run(self, bundle: &mut Bundle, config: &Object) -> Vec<Finding> {
        match self {
            Self::Replacements => replacements::apply(bundle, config),
            Self::Namespace => namespace::set(bundle, config),
        }
    }
}

/// What resolves Dependencies. In a render that is done between packages, not in one.
pub(crate) const CONFIG_INJECT: &str = "configinject-fn";

/// One act of the dialect.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// A helper with its configuration.
    Help(Helper, Config),
    /// One of the functions, without the book.
    Run(Function),
    /// Claims get their answers.
    Ask(&'static [Function]),
    /// Another act that sees some objects only.
    Only(Only, Box<Act>),
}

impl Act {
    /// The same with its configuration in hand.
    fn configured(&self, bundle: &Bundle) -> Self {
        match self {
            Self::Help(helper, config) => {
                let found = config.find(bundle).cloned();
                Self::Help(
                    *helper,
                    found.map_or_else(|| config.clone(), Config::Inline),
                )
            }
            other => other.clone(),
        }
    }
}

/// Where a configuration stands.
#[derive(Clone, Debug)]
pub(crate) enum Config {
    /// In the package, by document. Earlier acts may edit it.
    Document(usize),
    /// In the pipeline.
    Inline(Object),
}

impl Config {
    fn find<'a>(&'a self, bundle: &'a Bundle) -> Option<&'a Object> {
        match self {
            Self::Inline(object) => Some(object),
            Self::Document(place) => bundle.objects.iter().find(|o| o.source == Some(*place)),
        }
    }
}

const ALL: &[Function] = &[Function::Ipam, Function::Vlan];

/// Without a pipeline: what every published package has in its own.
const DEFAULT: [Function; 7] = [
    Function::Deployment,
    Function::Interface,
    Function::DataNetwork,
    Function::Nad,
    Function::DataNetwork,
    Function::Interface,
    Function::Deployment,
];

/// The acts of a package.
pub(crate) fn pipeline(unit: &Unit, findings: &mut Vec<Finding>) -> Vec<Act> {
    let functions = kptfile::pipeline(unit.kptfile());
    let mut acts = Vec::new();
    if functions.is_empty() {
        acts.extend(DEFAULT.map(Act::Run));
    }
    let reference = unit.kptfile_ref();
    let (mut mutators, mut validators) = (0, 0);
    for function in &functions {
        let (list, at) = if function.is_validator {
            ("validators", &mut validators)
        } else {
            ("mutators", &mut mutators)
        };
        let field = format!("pipeline.{list}[{at}]");
        *at += 1;
        match act(unit, function, (&reference, &field)) {
            Ok(act) => acts.extend(act),
            Err(finding) => findings.push(finding),
        }
    }
    acts.push(Act::Ask(ALL));
    acts
}

fn act(
    unit: &Unit,
    function: &kptfile::Function,
    (kptfile, field): (&ObjectRef, &str),
) -> Result<Option<Act>, Finding> {
    let name = function.base_name().unwrap_or_default();
    let only = Only::read(function);
    if let Some(helper) = Helper::named(name) {
        let config = config(unit, function, (kptfile, field))?;
        return Ok(Some(only.limit(Act::Help(helper, config))));
    }
    let refused = |text: String, help: &str| {
        let finding = Finding::error(Code::UnknownFunction, text);
        Err(finding.on(kptfile).at(field).help(help))
    };
    match Function::named(name) {
        Some(asking) if asking.asks() && !only.is_everything() => refused(
            format!("{name} is limited to some claims, but a render answers all of them"),
            "Take the selectors away.",
        ),
        Some(Function::Ipam) => Ok(Some(Act::Ask(&[Function::Ipam]))),
        Some(Function::Vlan) => Ok(Some(Act::Ask(&[Function::Vlan]))),
        // Under kpt it would fail: the conditions live there.
        Some(_) if !only.has(unit.kptfile()) => refused(
            format!("{name} is limited to some objects, and the Kptfile is not among them"),
            "Select the Kptfile too: it holds the conditions.",
        ),
        Some(function) => Ok(Some(only.limit(Act::Run(function)))),
        None if is_interposed(name) => Ok(None),
        None => {
            let key = if function.exec.is_some() {
                "exec"
            } else {
                "image"
            };
            Err(unknown(name).on(kptfile).at(format!("{field}.{key}")))
        }
    }
}

/// Functions that run where they belong, whatever the pipeline says.
fn is_interposed(name: &str) -> bool {
    [CONFIG_INJECT, "inject", "workload-cluster-injector"].contains(&name)
}

fn config(
    unit: &Unit,
    function: &kptfile::Function,
    (kptfile, field): (&ObjectRef, &str),
) -> Result<Config, Finding> {
    if let Some(map) = &function.config_map {
        let value = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "function-input" },
            "data": map });
        return Ok(Config::Inline(Object {
            value,
            source: None,
        }));
    }
    let name = function.base_name().unwrap_or_default();
    let Some(path) = &function.config_path else {
        let text = format!("{name} needs a configuration");
        return Err(Finding::error(Code::InvalidField, text)
            .on(kptfile)
            .at(field)
            .help("Name a file of the package with configPath, or write configMap."));
    };
    let place = unit.document(path.trim_start_matches("./"));
    place.map(Config::Document).ok_or_else(|| {
        let text = format!("{path} is no file of the package with an object in it");
        Finding::error(Code::InvalidField, text)
            .on(kptfile)
            .at(format!("{field}.configPath"))
            .help("Correct the path; it is relative to the package.")
    })
}

/// A round up to its first question to the book.
pub(crate) fn begin(acts: &[Act], bundle: &mut Bundle, ctx: &Context<'_>) -> Begun {
    let mut findings = Vec::new();
    let cluster = inject::inject(bundle, ctx, &mut findings);
    let found = cluster.map(|cluster| (cluster, Vec::new()));
    let mut begun = Begun {
        at: acts.len(),
        ..Begun::default()
    };
    if findings.iter().any(Finding::is_error) || found.is_none() {
        begun.findings = findings;
        return begun;
    }
    begun.found = found;
    for (nth, act) in acts.iter().enumerate() {
        if let Act::Ask(functions) = act {
            begun.at = nth;
            begun.wishes = wants(functions, bundle, ctx, &mut findings);
            break;
        }
        run(act, bundle, &mut findings);
        if findings.iter().any(Finding::is_error) {
            begun.found = None;
            break;
        }
    }
    begun.findings = findings;
    begun
}

fn run(act: &Act, bundle: &mut Bundle, findings: &mut Vec<Finding>) {
    match act {
        Act::Ask(_) => {}
        Act::Only(only, act) => {
            // Configurations are handed over, whatever is selected.
            let act = act.configured(bundle);
            only.within(bundle, |some| run(&act, some, findings));
        }
        Act::Run(function) => findings.extend(nephio::run(*function, bundle)),
        Act::Help(helper, config) => {
            // It was there when the acts were planned; no act removes a document of a helper.
            if let Some(config) = config.find(bundle).cloned() {
                findings.extend(helper.run(bundle, &config));
            }
        }
    }
}

/// What the book is asked. What its owner dropped goes first.
fn wants(
    functions: &[Function],
    bundle: &mut Bundle,
    ctx: &Context<'_>,
    findings: &mut Vec<Finding>,
) -> Vec<Wish> {
    let mut wishes = Vec::new();
    for function in functions {
        findings.extend(nephio::run(*function, bundle));
        for wish in nephio::leaving(*function, bundle, ctx) {
            nephio::forget(bundle, &wish);
        }
        wishes.extend(nephio::wants(*function, bundle, ctx, findings));
    }
    wishes
}

/// The rest of the round.
pub(crate) fn finish<E>(
    begun: Begun,
    acts: &[Act],
    bundle: &mut Bundle,
    ctx: &Context<'_>,
    ask: &mut Ask<'_, E>,
    findings: &mut Vec<Finding>,
) -> Result<Outcome, E> {
    let mut outcome = Outcome::default();
    findings.extend(begun.findings);
    let Some((cluster, _)) = begun.found else {
        return Ok(outcome);
    };
    let mut asked = Some(begun.wishes);
    for act in &acts[begun.at..] {
        let Act::Ask(functions) = act else {
            run(act, bundle, findings);
            continue;
        };
        let wishes = asked
            .take()
            .unwrap_or_else(|| wants(functions, bundle, ctx, findings));
        for wish in wishes {
            match ask(&wish)? {
                Ok(given) => {
                    nephio::answer(bundle, &wish, &given.lease);
                    outcome.held.push(given.lease);
                }
                Err(mut finding) => {
                    nephio::refuse(bundle, &wish, &finding);
                    finding.severity = Severity::Warning;
                    findings.push(pointed(finding, &wish, bundle));
                    outcome.refused.insert(wish.claim.holder);
                }
            }
        }
    }
    outcome.vlans = vlans(bundle);
    outcome.cluster = Some(cluster);
    Ok(outcome)
}

/// A claim that we made stands in no file yet: its Interface or DataNetwork is what a person looks at.
fn pointed(finding: Finding, wish: &Wish, bundle: &Bundle) -> Finding {
    let mut claims = bundle.objects.named(&wish.name);
    let claim = claims.find(|o| o.kind() == wish.kind);
    let owner = claim.and_then(summary::owner).and_then(|owner| {
        let (kind, name) = owner.split_once('/')?;
        bundle.objects.named(name).find(|o| o.kind() == kind)
    });
    match owner {
        Some(owner) => finding.on(&owner.reference()).at(wish.field()),
        None => finding,
    }
}

/// Asks the book for one wish; the cluster's subnet first, where it has none yet.
///
/// A subnet that is full gets a sibling out of the same Network, so a cluster may have several. Easy to get wrong: all that it
/// has are opened at once, or who has an address in the second would be moved as soon as the first has room; and what somebody
/// writes by hand later is for new claims, while the others stay where they are.
pub(crate) fn ask(
    txn: &mut dyn Txn,
    pools: &Pools,
    wish: &Wish,
) -> Result<Answer, mooring_book::Error> {
    let claim = &wish.claim;
    let Some(block) = networks::share_for(pools, claim) else {
        return flavour::ask(txn, pools, wish);
    };
    let by_hand = networks::is_served(pools, claim);
    let mut shares = Shares::new(block);
    shares.find(txn, pools)?;
    if shares.found.is_empty() {
        if by_hand {
            return flavour::ask(txn, pools, wish);
        }
        let block = shares.next();
        if let Err(refusal) = shares.take(txn, pools, &block)? {
            return Ok(Err(refusal.finding().on(&wish.object).at(wish.field())));
        }
    }
    shares.find_around(txn, pools, claim)?;
    let answer = flavour::ask(txn, &networks::opened(pools, claim, &shares.found), wish)?;
    let full = matches!(&answer, Err(finding) if finding.code == Code::PoolExhausted);
    if !full || by_hand || !networks::fits_a_share(claim) {
        return Ok(answer);
    }
    let block = shares.next();
    if let Err(refusal) = shares.take(txn, pools, &block)? {
        let cluster = &claim.holder.cluster;
        let help = format!(
            "The Network has no further subnet for {cluster} ({refusal}): give its routing table {} another prefix, or write an \
             IPPrefix with the label {}: {cluster}.",
            claim.instance,
            label::CLUSTER_NAME
        );
        return Ok(answer.map_err(|finding| finding.help(help)));
    }
    flavour::ask(txn, &networks::opened(pools, claim, &shares.found), wish)
}

/// What a cluster has of one Network.
struct Shares {
    /// The first, as a claim.
    block: Claim,
    found: Vec<Lease>,
    /// The ordinal of the next one.
    next: u16,
}

impl Shares {
    fn new(block: Claim) -> Self {
        Self {
            block,
            found: Vec::new(),
            next: 0,
        }
    }

    fn next(&self) -> Claim {
        let mut block = self.block.clone();
        block.holder.ordinal = self.next;
        block
    }

    fn take(
        &mut self,
        txn: &mut dyn Txn,
        pools: &Pools,
        block: &Claim,
    ) -> Result<Result<(), Refusal>, mooring_book::Error> {
        let taken = mooring_book::allocate(txn, pools, block)?;
        Ok(taken.map(|lease| {
            self.found.push(lease);
            self.next += 1;
        }))
    }

    /// Those that the book has, drafts of others included: the same cluster shares them.
    fn find(&mut self, txn: &mut dyn Txn, pools: &Pools) -> Result<(), mooring_book::Error> {
        loop {
            let block = self.next();
            let mut known = Vec::new();
            txn.with_table(&block.instance, &mut |table| {
                known = table.held_by(&block.holder);
            })?;
            let known = known.iter().map(|lease| lease.thing);
            let known: Vec<Thing> = known.filter(|t| matches!(t, Thing::Block(_))).collect();
            if known.is_empty() {
                return Ok(());
            }
            let before = self.found.len();
            for thing in known {
                let exactly = networks::around(&block, &thing);
                if let Some(exactly) = exactly
                    && let Ok(lease) = mooring_book::allocate(txn, pools, &exactly)?
                {
                    self.found.push(lease);
                }
            }
            // It lies in no prefix of today.
            if self.found.len() == before {
                return Ok(());
            }
            self.next += 1;
        }
    }

    /// The one around what the claim has already, where the book lost it.
    fn find_around(
        &mut self,
        txn: &mut dyn Txn,
        pools: &Pools,
        claim: &Claim,
    ) -> Result<(), mooring_book::Error> {
        for lease in txn.held_by(&claim.instance, &claim.holder)? {
            let opened = networks::opened(pools, claim, &self.found);
            let range = lease.thing.range();
            let inside = range.is_none_or(|own| {
                let mut prefixes = opened.prefixes.iter();
                prefixes.any(|p| p.cidr.contains(own.first()))
            });
            if inside {
                continue;
            }
            if let Some(block) = networks::around(&self.next(), &lease.thing) {
                // Where it is somebody else's now, the claim gets another one.
                let _ = self.take(txn, pools, &block)?;
            }
        }
        Ok(())
    }
}

/// The networks that an Interface is tagged in.
pub(crate) fn vlans(bundle: &Bundle) -> BTreeSet<InstanceKey> {
    let interfaces = bundle.all("req.nephio.org", "Interface");
    let network = |object: &Object| {
        let text = |path: &str| object.value.pointer(path).and_then(Value::as_str);
        let tagged =
            text("/spec/attachmentType") == Some("vlan") && text("/spec/cniType").is_some();
        let name = text("/spec/networkInstance/name").filter(|n| tagged && *n != "default")?;
        let namespace = text("/spec/networkInstance/namespace").unwrap_or_default();
        Some(InstanceKey::new(namespace, name))
    };
    interfaces.filter_map(network).collect()
}

/// What a package's claims say they have, under the identities that a render would use: for a book that lost it. The clusters'
/// subnets are found again by the next render, from the addresses in them.
pub(crate) fn said(unit: &Unit, id: &str, now: Time) -> Said {
    let pools = Pools::default();
    let ctx = Context {
        pools: &pools,
        site: &[],
        cluster: None,
        package: id,
    };
    let mut bundle = unit.bundle.clone();
    let mut said = Said::default();
    for function in ALL {
        for wish in nephio::wants(*function, &mut bundle, &ctx, &mut Vec::new()) {
            let Claim {
                holder,
                instance,
                before,
                ..
            } = wish.claim;
            let Some(thing) = before else {
                said.silent.push((instance, holder));
                continue;
            };
            let claims = bundle.objects.named(&wish.name);
            let status = claims.into_iter().find(|o| o.kind() == wish.kind);
            let status: IPClaimStatus = status.and_then(|o| o.status().ok()).unwrap_or_default();
            let subnet = match thing {
                Thing::Block(block) => Some(networks::share_around(block)),
                _ => status.prefix.map(|p| p.subnet()),
            };
            said.leases.push(Lease {
                instance,
                thing,
                subnet,
                gateway: status.gateway,
                holder,
                state: State::Held,
                since: now,
            });
        }
    }
    said
}

/// The pools that a package sees: the management side's, and what the package itself carries. Its Networks are copies,
/// so they count only where the management side says nothing of their tables.
pub(crate) fn own_pools(unit: &Unit, site: &[Object], known: &Pools) -> Option<Vec<Object>> {
    let tables = |object: &Object| -> Vec<InstanceKey> {
        let tables = object
            .value
            .pointer("/spec/routingTables")
            .and_then(Value::as_array);
        let names = tables
            .into_iter()
            .flatten()
            .filter_map(|t| t["name"].as_str());
        names
            .map(|n| InstanceKey::new(object.namespace(), n))
            .collect()
    };
    let is_own = |o: &&Object| {
        let pool = ["IPPrefix", "NetworkInstance"];
        pool.iter()
            .any(|kind| o.is("ipam.resource.nephio.org", kind))
            || (o.is("infra.nephio.org", "Network")
                && !tables(o)
                    .iter()
                    .any(|key| known.instances.contains_key(key)))
    };
    let own: Vec<Object> = unit.bundle.objects.iter().filter(is_own).cloned().collect();
    if own.is_empty() {
        return None;
    }
    let pools = |o: &&Object| {
        o.is("ipam.resource.nephio.org", "IPPrefix")
            || o.is("ipam.resource.nephio.org", "NetworkInstance")
            || o.is("infra.nephio.org", "Network")
    };
    Some(site.iter().filter(pools).cloned().chain(own).collect())
}
