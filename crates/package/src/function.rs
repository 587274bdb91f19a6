//! One step as a KRM function: a ResourceList in, a ResourceList out.
//!
//! Pools and clusters come from the items or from functionConfig (one object, or a list of them). A
//! package without a minted id goes by its Kptfile's name. Easy to get wrong: the dialects differ in what an
//! error is. The native one changes nothing and fails; Nephio's writes a condition and succeeds.

mod helper;
mod nephio;
mod order;

use std::collections::BTreeSet;

use mooring_api::{Code, Finding, ObjectRef, Span, Time, annotation};
use mooring_blueprint::claim::{Given, Wish, stamp_local};
use mooring_blueprint::{Bundle, Context, Object, nephio as dialect, pools};
use mooring_book::Store;
use mooring_krm::{FieldPath, ListError, ResourceList, kptfile, origin, place, result};
use serde_json::Value;

use crate::Error;
use crate::documents::check_kind;
use crate::report::Dialect;
use crate::steps::{self, Step};
use crate::unit::{file_name, marks, write_marks};

/// A reservation of a function is committed at once.
const RESERVATION: Span = Span(60);

/// The answer of a KRM function.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The ResourceList to print on stdout.
    pub stdout: String,
    /// What to tell on stderr.
    pub findings: Vec<Finding>,
    /// Whether the program ends with an error. In the nephio dialect an error may be a result and no more.
    pub failed: bool,
}

/// How a function is called.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call<'a> {
    /// Its name.
    pub name: &'a str,
    /// Chosen dialect; by the package's marks where None.
    pub dialect: Option<Dialect>,
    /// In the nephio dialect: a condition that fails is an error result, and the program ends with one. The
    /// function's configuration may ask for it too, with `data.strict: "true"`.
    pub strict: bool,
}

impl Call<'_> {
    /// The function of the nephio dialect that is meant, if one is. Two names exist only there.
    fn nephio(&self, list: &ResourceList) -> Option<dialect::Function> {
        let function = dialect::Function::named(self.name)?;
        let chosen = match self.dialect {
            Some(chosen) => chosen,
            None if Step::named(self.name).is_none() => Dialect::Nephio,
            None => nephio::chosen(list),
        };
        (chosen == Dialect::Nephio).then_some(function)
    }
}

/// Runs one step as a KRM function over a ResourceList, in the dialect that the package's marks ask for.
pub fn function(name: &str, input: &[u8], store: &dyn Store, now: Time) -> Result<Answer, Error> {
    let call = Call {
        name,
        ..Call::default()
    };
    function_as(&call, input, store, now)
}

/// Runs one step as a KRM function over a ResourceList. With an error of the native dialect nothing is changed, in
/// the list or in the book; the results say why.
pub fn function_as(
    call: &Call<'_>,
    input: &[u8],
    store: &dyn Store,
    now: Time,
) -> Result<Answer, Error> {
    let list = match ResourceList::parse(input) {
        Ok(list) => list,
        Err(error) => {
            return Ok(Answer {
                stdout: String::from_utf8_lossy(input).into_owned(),
                findings: vec![not_a_list(&error)],
                failed: true,
            });
        }
    };
    if let Some(function) = call.nephio(&list) {
        let ran = nephio::run(function, call.strict, &list, store, now)?;
        return Ok(written(&list, input, ran));
    }
    let name = call.name;
    if let Some(ran) = helper::run(name, call.strict, &list) {
        return Ok(written(&list, input, ran));
    }
    let mut findings: Vec<Finding> = list.items().iter().flat_map(check_kind).collect();
    let configured = configured(list.function_config());
    findings.extend(configured.iter().flat_map(|o| check_kind(&o.value)));
    let items = match Step::named(name) {
        None => {
            findings.push(steps::unknown(name));
            None
        }
        Some(_) if findings.iter().any(Finding::is_error) => None,
        Some(step) => run(step, &list, store, now, &mut findings)?,
    };
    let items = items.filter(|_| !findings.iter().any(Finding::is_error));
    let items = items.unwrap_or_else(|| list.items().to_vec());
    let failed = findings.iter().any(Finding::is_error);
    let ran = Ran {
        items,
        results: findings,
        notes: Vec::new(),
        failed,
        sorted: false,
    };
    Ok(written(&list, input, ran))
}

/// What a step did.
struct Ran {
    /// All items.
    items: Vec<Value>,
    /// What is told as results and on stderr.
    results: Vec<Finding>,
    /// What is told on stderr only.
    notes: Vec<Finding>,
    /// Whether the program ends with an error.
    failed: bool,
    /// Whether items go out in the published order.
    sorted: bool,
}

/// The list as it goes out.
fn written(list: &ResourceList, input: &[u8], mut ran: Ran) -> Answer {
    for finding in ran.results.iter_mut().chain(&mut ran.notes) {
        locate(list, finding);
    }
    let file = |finding: &Finding| {
        let item = find(list, finding.object.as_ref()?)?;
        origin(&list.items()[item])
    };
    let results: Vec<Value> = ran.results.iter().map(|f| result(f, file(f))).collect();
    let mut findings = ran.results;
    findings.extend(ran.notes);
    match list.output(&ran.items, &results) {
        Ok(stdout) => Answer {
            stdout: ran
                .sorted
                .then(|| order::sorted(&stdout))
                .flatten()
                .unwrap_or(stdout),
            findings,
            failed: ran.failed,
        },
        Err(error) => {
            let text = format!("the list cannot be edited: {error}");
            findings.push(Finding::error(Code::YamlInvalid, text));
            Answer {
                stdout: String::from_utf8_lossy(input).into_owned(),
                findings,
                failed: true,
            }
        }
    }
}

fn not_a_list(error: &ListError) -> Finding {
    Finding::error(
        Code::YamlInvalid,
        format!("stdin is not a ResourceList: {error}"),
    )
    .help("Call it with kpt fn eval --exec, or pipe a ResourceList into it.")
}

/// The package in a list: its Kptfile, and everything else.
struct Opened<'a> {
    place: usize,
    kptfile: &'a Value,
    objects: Vec<Object>,
}

/// The Kptfile nearest to the root is the package's; None where there is none.
fn open(list: &ResourceList) -> Option<Opened<'_>> {
    let depth = |item: &Value| origin(item).map_or(0, |(path, _)| path.matches('/').count());
    let kptfiles = list
        .items()
        .iter()
        .enumerate()
        .filter(|(_, v)| kptfile::is_kptfile(v));
    let (place, kptfile) = kptfiles.min_by_key(|(_, v)| depth(v))?;
    let items = list.items().iter().enumerate().filter(|(i, _)| *i != place);
    let objects = items
        .map(|(i, value)| Object {
            value: value.clone(),
            source: Some(i),
        })
        .collect();
    Some(Opened {
        place,
        kptfile,
        objects,
    })
}

/// The package's id: minted, else its name.
fn id(bundle: &Bundle) -> String {
    let marks = &bundle.marks;
    let minted = marks.annotations.get(annotation::PACKAGE_ID);
    minted.unwrap_or(&marks.name).clone()
}

/// The items after the step; None where the package cannot be told.
fn run(
    step: Step,
    list: &ResourceList,
    store: &dyn Store,
    now: Time,
    findings: &mut Vec<Finding>,
) -> Result<Option<Vec<Value>>, Error> {
    let Some(Opened {
        place,
        kptfile,
        objects,
    }) = open(list)
    else {
        findings.push(
            Finding::error(Code::PackageMissing, "the list holds no Kptfile").help(
                "Conditions and the package's identity live there: run the function on a package.",
            ),
        );
        return Ok(None);
    };
    let site = configured(list.function_config());
    let all: Vec<Object> = objects.iter().chain(&site).cloned().collect();
    let (pools, found) = pools::read(&all);
    findings.extend(found);
    if findings.iter().any(Finding::is_error) {
        return Ok(None);
    }
    let mut bundle = Bundle {
        objects: objects.into(),
        marks: marks(kptfile),
    };
    let id = id(&bundle);
    let cluster = list
        .function_config()
        .and_then(|c| c["data"]["cluster"].as_str());
    let ctx = Context {
        pools: &pools,
        site: &site,
        cluster,
        package: &id,
    };

    // Only these meet the book; the others must not so much as open it.
    let mut txn = match step {
        Step::Ipam | Step::Vlan => Some(store.begin(now)?),
        _ => None,
    };
    let mut ask = |wish: &Wish| -> Result<Result<Given, Finding>, mooring_book::Error> {
        let txn = txn
            .as_deref_mut()
            .expect("only the ipam and vlan steps ask");
        crate::flavour::ask(txn, &pools, wish)
    };
    let plan = steps::Plan::Native(vec![step]);
    steps::run(&plan, &mut bundle, &ctx, None, &mut ask, findings)?;
    if findings.iter().any(Finding::is_error) {
        return Ok(None);
    }
    stamp_local(&mut bundle, false);
    if let Some(txn) = txn.filter(|t| !t.is_unchanged()) {
        let txn = txn.reserve(RESERVATION)?;
        store.commit(txn, now)?;
    }
    Ok(Some(collect(list, place, &bundle)))
}

/// Items in their old places, without those that were swept, then the new ones, which belong beside the Kptfile.
fn collect(list: &ResourceList, kptfile: usize, bundle: &Bundle) -> Vec<Value> {
    let mut items = Vec::new();
    let mut taken = BTreeSet::new();
    for (i, item) in list.items().iter().enumerate() {
        if i == kptfile {
            items.push(write_marks(item, &bundle.marks, None));
        } else if let Some(object) = bundle.objects.iter().find(|o| o.source == Some(i)) {
            items.push(object.value.clone());
        } else {
            continue;
        }
        taken.extend(origin(item).map(|(path, _)| path.to_owned()));
    }
    let package = &list.items()[kptfile];
    let (home, _) = origin(package).unwrap_or_default();
    for object in bundle.objects.iter().filter(|o| o.source.is_none()) {
        let mut item = object.value.clone();
        let name = file_name(object);
        let path = match home.rsplit_once('/') {
            Some((dir, _)) => format!("{dir}/{name}"),
            None => name,
        };
        // In a file of somebody else it would be a second document, or take the place of the first: the orchestrator
        // finds another name.
        if taken.insert(path.clone()) {
            place(&mut item, &path, package);
        }
        items.push(item);
    }
    items
}

/// The objects of functionConfig: itself, or its items.
fn configured(config: Option<&Value>) -> Vec<Object> {
    let Some(config) = config else {
        return Vec::new();
    };
    let values: Vec<Value> = match config["items"].as_array() {
        Some(items) => items.clone(),
        None => vec![config.clone()],
    };
    values
        .into_iter()
        .map(|value| Object {
            value,
            source: None,
        })
        .collect()
}

/// Which item is meant. Two kinds of one name in different groups are two things.
fn find(list: &ResourceList, object: &ObjectRef) -> Option<usize> {
    let is_it = |v: &Value| {
        v["kind"] == object.kind
            && v["metadata"]["name"] == object.name
            && (object.api_version.is_empty() || v["apiVersion"] == object.api_version)
    };
    list.items().iter().position(is_it)
}

/// The line in the list, where the item does not say which file it is from.
fn locate(list: &ResourceList, finding: &mut Finding) {
    let Some(object) = &finding.object else {
        return;
    };
    let Some(item) = find(list, object) else {
        return;
    };
    let field = finding.field.as_deref().unwrap_or("metadata.name");
    let at = field
        .parse::<FieldPath>()
        .ok()
        .and_then(|path| list.locate(item, &path));
    if let Some(at) = at {
        *finding = finding.clone().located("stdin", at.line, at.column);
    }
}
