//! The functions of the nephio dialect on the wire.
//!
//! What goes wrong with one object is a condition of the Kptfile, and the run succeeds: a pipeline goes on, and a
//! later step may mend it. Beyond that, people want to know: everything is said on stderr, what the book refuses is
//! an error result, and `strict` makes every failed condition one. Easy to get wrong: what is only said on stderr must
//! not be a result, because the whole list is compared with the published one.

use mooring_api::{Code, Finding, Severity, Time};
use mooring_blueprint::nephio::{self, Function};
use mooring_blueprint::{Bundle, Context, Object, networks};
use mooring_book::{Filter, Store};
use mooring_ipam::{Lease, Thing};
use mooring_krm::ResourceList;
use serde_json::Value;

use super::{Opened, RESERVATION, Ran, collect, configured, id, open};
use crate::Error;
use crate::decide::cool_down;
use crate::documents::check_kind;
use crate::report::Dialect;
use crate::unit::marks;

/// The dialect that the marks in a list ask for.
pub(super) fn chosen(list: &ResourceList) -> Dialect {
    let marked = open(list).is_some_and(|opened| nephio::is_marked(&bundle(opened)));
    if marked {
        Dialect::Nephio
    } else {
        Dialect::Native
    }
}

fn bundle(opened: Opened<'_>) -> Bundle {
    Bundle {
        objects: opened.objects.into(),
        marks: marks(opened.kptfile),
    }
}

/// Runs a function over a list.
pub(super) fn run(
    function: Function,
    strict: bool,
    list: &ResourceList,
    store: &dyn Store,
    now: Time,
) -> Result<Ran, Error> {
    let untouched = |finding: Finding| Ran {
        items: list.items().to_vec(),
        failed: finding.is_error(),
        results: vec![finding],
        notes: Vec::new(),
        sorted: true,
    };
    if list.items().is_empty() {
        let text = "no resources present in the resourcelist";
        return Ok(untouched(Finding::info(Code::PackageMissing, text)));
    }
    let Some(opened) = open(list) else {
        let text = "mandatory Kptfile is missing from the package";
        let help = "Conditions live there: run the function on a package.";
        let finding = Finding::error(Code::PackageMissing, text).help(help);
        return Ok(untouched(finding));
    };
    let place = opened.place;
    let mut bundle = bundle(opened);
    let mut notes: Vec<Finding> = list.items().iter().flat_map(check_kind).collect();
    for finding in &mut notes {
        // The published functions read what they need, and nothing else has to be in order.
        finding.severity = finding.severity.max(Severity::Warning);
    }
    let mut said = nephio::run(function, &mut bundle);
    let mut results = Vec::new();
    if function.asks() {
        ask(function, list, &mut bundle, store, now, &mut results)?;
    }
    let asked = |c: &Value| c["data"]["strict"] == "true";
    let strict = strict || list.function_config().is_some_and(asked);
    if strict {
        for finding in &mut said {
            finding.severity = Severity::Error;
        }
        results.append(&mut said);
    }
    notes.append(&mut said);
    Ok(Ran {
        items: collect(list, place, &bundle),
        sorted: true,
        failed: strict && results.iter().any(Finding::is_error),
        results,
        notes,
    })
}

/// The functions that meet the book.
fn ask(
    function: Function,
    list: &ResourceList,
    bundle: &mut Bundle,
    store: &dyn Store,
    now: Time,
    results: &mut Vec<Finding>,
) -> Result<(), Error> {
    let site = configured(list.function_config());
    let all: Vec<Object> = bundle.objects.iter().chain(&site).cloned().collect();
    let (pools, found) = networks::read(&all);
    results.extend(found);
    let id = id(bundle);
    let ctx = Context {
        pools: &pools,
        site: &site,
        cluster: None,
        package: &id,
    };
    let mut txn = store.begin(now)?;
    for wish in nephio::leaving(function, bundle, &ctx) {
        // A VLAN is everybody's who is in that network.
        if function == Function::Ipam {
            for lease in txn.held_by(&wish.claim.instance, &wish.claim.holder)? {
                let rest = cool_down(&pools, &lease);
                txn.release(&lease.instance, &lease.thing, rest)?;
            }
        }
        nephio::forget(bundle, &wish);
    }
    for wish in nephio::wants(function, bundle, &ctx, results) {
        match crate::nephio::ask(&mut *txn, &pools, &wish)? {
            Ok(given) => nephio::answer(bundle, &wish, &given.lease),
            Err(finding) => {
                let field = match function {
                    Function::Vlan => "spec.vlanIndex",
                    _ => wish.field(),
                };
                let finding = finding.at(field);
                nephio::refuse(bundle, &wish, &finding);
                results.push(finding);
            }
        }
    }
    if !txn.is_unchanged() {
        let txn = txn.reserve(RESERVATION)?;
        store.commit(txn, now)?;
    }
    if function == Function::Ipam {
        for lookup in nephio::lookups(bundle) {
            let lease = look_up(&lookup, store)?;
            results.extend(nephio::found(bundle, &lookup, lease.as_ref()));
        }
    }
    Ok(())
}

/// The address that a claim of that name holds, in whatever package.
fn look_up(lookup: &nephio::Lookup, store: &dyn Store) -> Result<Option<Lease>, Error> {
    let leases = store.leases(&Filter {
        instance: Some(lookup.instance.clone()),
        ..Filter::default()
    })?;
    let wanted = |l: &Lease| {
        l.holder.interface == lookup.wanted
            && matches!(l.thing, Thing::Addr(_))
            && lookup.family.is_none_or(|f| f == l.holder.family)
    };
    Ok(leases.into_iter().find(wanted))
}
