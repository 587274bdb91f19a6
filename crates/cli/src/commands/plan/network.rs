//! A network as it is written in files, and as it was before, both compiled.
//!
//! Easy to get wrong: what was there before is an input. Its addresses go to who had them, and its last good forms stand in
//! for objects that are wrong now.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::{Cidr, Finding, ObjectRef};
use mooring_intent::{
    Adoption, Answers, Compiled, Inputs, Prior, Source, Want, allocate, compile, wants,
};
use mooring_package::Survey;
use serde_json::Value;

use super::state;
use crate::args::NetworkArg;
use crate::commands::verify::survey as survey_of;
use crate::output::Output;
use crate::world::Usage;

/// Everything that the commands about intents ask.
pub(crate) struct Network {
    survey: Survey,
    /// What was read.
    pub(crate) inputs: Inputs,
    /// Addresses and networks that are given.
    pub(crate) answers: Answers,
    /// What becomes of it.
    pub(crate) compiled: Compiled,
    /// What was there before.
    pub(crate) before: Compiled,
    given: Answers,
    /// What is wrong, with file and line.
    pub(crate) findings: Vec<Finding>,
}

impl Network {
    /// Reads and compiles. Nothing, where a file cannot be read: the story of half of the objects would be a guess.
    pub(crate) fn read(arg: &NetworkArg, output: &mut Output) -> anyhow::Result<Option<Self>> {
        if arg.files.is_empty() {
            let help = "add -f PATH: a directory or file with intents, nodes and OperatorConfig";
            return Err(Usage::new("no network is given", help).into());
        }
        let survey = survey_of(&arg.files, None)?;
        if is_broken(&survey, output) {
            return Ok(None);
        }
        let inputs = Inputs::read(values(&survey));
        let (before, given) = match &arg.before {
            None => {
                // The same nodes, and nothing on them.
                let empty = Inputs {
                    config: inputs.config.clone(),
                    nodes: inputs.nodes.clone(),
                    ..Inputs::default()
                };
                built(&empty, &Answers::default(), &Prior::default())
            }
            Some(path) => {
                if let Some(kept) = state::read(path)? {
                    let old = Inputs::read(&kept.objects);
                    let (compiled, given) = built(&old, &kept.answers, &kept.last_good);
                    (compiled, kept.answers.and(&given))
                } else {
                    let old = survey_of(std::slice::from_ref(path), None)?;
                    if is_broken(&old, output) {
                        return Ok(None);
                    }
                    let old = Inputs::read(values(&old));
                    built(&old, &Answers::default(), &Prior::default())
                }
            }
        };
        let prior = Prior::new(before.contributions.clone());
        let (compiled, answers, mut findings) = build(&inputs, &given, &prior);
        findings.splice(0..0, compiled.findings.iter().cloned());
        let findings = survey.located(findings);
        Ok(Some(Self {
            survey,
            inputs,
            answers,
            compiled,
            before,
            given,
            findings,
        }))
    }

    /// Findings that are errors.
    pub(crate) fn errors(&self) -> Vec<Finding> {
        let errors = self.findings.iter().filter(|f| f.is_error());
        errors.cloned().collect()
    }

    /// The same findings, with file and line.
    pub(crate) fn located(&self, findings: Vec<Finding>) -> Vec<Finding> {
        self.survey.located(findings)
    }

    /// The objects that count here, as they were written.
    pub(crate) fn objects(&self) -> Vec<Value> {
        let all = values(&self.survey).into_iter();
        all.filter(|object| counts(object)).cloned().collect()
    }

    /// Every address and network by key, before and after.
    pub(crate) fn addresses(&self) -> BTreeMap<&str, (Option<String>, Option<String>)> {
        let mut all: BTreeMap<&str, (Option<String>, Option<String>)> = BTreeMap::new();
        for (key, what) in self.given.iter() {
            all.entry(key).or_default().0 = Some(what.to_string());
        }
        for (key, what) in self.answers.iter() {
            all.entry(key).or_default().1 = Some(what.to_string());
        }
        all
    }
}

/// Whether something could not be read; it is said then.
fn is_broken(survey: &Survey, output: &mut Output) -> bool {
    let broken = survey.findings().iter().any(Finding::is_error);
    if broken {
        output.findings(survey.findings());
    }
    broken
}

fn values(survey: &Survey) -> Vec<&Value> {
    let objects = survey.fleet().objects;
    objects.into_iter().map(|input| input.value).collect()
}

/// Whether an object means something to the compiler.
fn counts(object: &Value) -> bool {
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let group = version.split('/').next().unwrap_or_default();
    match group {
        "v1" => kind == "Node",
        "mooring.dev" => kind == "OperatorConfig",
        "ipam.cluster.x-k8s.io" => kind == "IPAddress",
        group => mooring_api::kinds::schiff::API_VERSION.split('/').next() == Some(group),
    }
}

fn built(inputs: &Inputs, given: &Answers, prior: &Prior) -> (Compiled, Answers) {
    let (compiled, answers, _) = build(inputs, given, prior);
    (compiled, answers)
}

/// Compiles with the addresses that arithmetic gives, beside those that were given before.
fn build(inputs: &Inputs, given: &Answers, prior: &Prior) -> (Compiled, Answers, Vec<Finding>) {
    let wants = wants(inputs);
    let (answers, findings) = answered(inputs, &wants, given);
    let compiled = compile(inputs, &answers, prior);
    let answers = in_force(&compiled, &answers);
    let held = held(&compiled.frozen, &answers, given);
    if held.iter().next().is_none() {
        return (compiled, answers, findings);
    }
    // Somebody else may have been given what a frozen object still uses: once more, with that taken.
    let taken = held
        .iter()
        .filter_map(|(key, what)| taken(&wants, key, what));
    let all: Vec<Want> = wants.iter().cloned().chain(taken).collect();
    let (answers, findings) = answered(inputs, &all, given);
    let answers = answers.and(&held);
    let compiled = compile(inputs, &answers, prior);
    let answers = in_force(&compiled, &answers);
    (compiled, answers, findings)
}

/// Answers without those of objects that are set aside: nobody is told them.
fn in_force(compiled: &Compiled, answers: &Answers) -> Answers {
    let wrong = compiled.findings.iter().filter(|f| f.is_error());
    let wrong = wrong.filter_map(|f| f.object.as_ref());
    let aside: BTreeSet<String> = wrong
        .filter(|object| !compiled.frozen.contains(*object))
        .map(own_keys)
        .collect();
    let mut kept = Answers::default();
    for (key, what) in answers.iter() {
        if !aside.iter().any(|own| key.starts_with(own.as_str())) {
            kept.give(key, what);
        }
    }
    kept
}

/// What the keys of an object's answers begin with.
fn own_keys(object: &ObjectRef) -> String {
    format!("{}/{}/", object.kind.to_lowercase(), object.name)
}

fn answered(inputs: &Inputs, wants: &[Want], given: &Answers) -> (Answers, Vec<Finding>) {
    let (mut answers, findings) = allocate(wants, given);
    // Others answer claims; what they said before still holds where nobody says otherwise.
    let claims = wants
        .iter()
        .filter(|w| matches!(w.source, Source::Claim { .. }));
    let claims: BTreeSet<&str> = claims.map(|w| w.key.as_str()).collect();
    let both = given.and(&inputs.claimed);
    for (key, what) in both.iter().filter(|(key, _)| claims.contains(key)) {
        answers.give(key, what);
    }
    (answers, findings)
}

/// What objects in their last good form had, and their present spec does not want.
fn held(frozen: &BTreeSet<ObjectRef>, answers: &Answers, given: &Answers) -> Answers {
    let mut held = Answers::default();
    let owns = |key: &str, object: &ObjectRef| {
        key.starts_with(&own_keys(object))
            || (object.kind == "Collector" && key.starts_with("claim/"))
    };
    for (key, what) in given.iter() {
        if answers.get(key).is_none() && frozen.iter().any(|object| owns(key, object)) {
            held.give(key, what);
        }
    }
    held
}

/// Something held, as a want of the pool that others want from; nothing, where nobody does.
fn taken(wants: &[Want], key: &str, what: Cidr) -> Option<Want> {
    let pool = wants.iter().find(|want| match &want.source {
        Source::Address { subnet, .. } => subnet.covers(&what),
        Source::Block { range, .. } => range.covers(&what),
        Source::Claim { .. } => false,
    })?;
    let source = match &pool.source {
        Source::Block { range, .. } => Source::Block {
            range: *range,
            len: what.prefix_len(),
        },
        Source::Address { subnet, .. } => Source::Address {
            subnet: *subnet,
            fixed: Some(what.network()),
            avoid: Vec::new(),
        },
        Source::Claim { .. } => return None,
    };
    Some(Want {
        key: key.to_owned(),
        source,
        ..pool.clone()
    })
}

/// The network with what was adopted in the place of its low-level objects.
pub(crate) fn instead(objects: &[Value], adoption: &Adoption) -> Compiled {
    let low = [
        "Layer2NetworkConfiguration",
        "VRFRouteConfiguration",
        "BGPPeering",
        "MirrorTarget",
        "MirrorSelector",
    ];
    let is_low = |object: &&Value| low.contains(&object["kind"].as_str().unwrap_or_default());
    let kept = objects.iter().filter(|object| !is_low(object));
    let new = adoption.intents.iter().chain(&adoption.residue);
    let inputs = Inputs::read(kept.chain(new));
    built(&inputs, &Answers::default(), &Prior::default()).0
}
