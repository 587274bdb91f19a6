//! The functions that help others, on the wire: apply-replacements, set-namespace, configinject-fn.
//!
//! The first two take any list, with or without a Kptfile. configinject-fn looks for the packages that a Dependency may mean among the
//! list's own subpackages and in the items of functionConfig. Easy to get wrong: the published helpers fail as a whole, with an error
//! result; what a Dependency waits for is a condition, as with the other functions of the dialect.

use mooring_api::{Code, Finding, Severity};
use mooring_blueprint::nephio::{self, Provider};
use mooring_blueprint::{Bundle, Marks, Object};
use mooring_krm::{ResourceList, kptfile, origin};
use serde_json::Value;

use super::{Ran, collect, configured, open};
use crate::nephio::{CONFIG_INJECT, Helper};
use crate::unit::marks;

/// Runs a helper by name; None where the name is not one's.
pub(super) fn run(name: &str, strict: bool, list: &ResourceList) -> Option<Ran> {
    if name == CONFIG_INJECT {
        return Some(inject(list, strict));
    }
    Helper::named(name).map(|helper| help(helper, list))
}

fn ran(items: Vec<Value>, results: Vec<Finding>, sorted: bool) -> Ran {
    Ran {
        failed: results.iter().any(Finding::is_error),
        items,
        results,
        notes: Vec::new(),
        sorted,
    }
}

fn help(helper: Helper, list: &ResourceList) -> Ran {
    let untouched = || list.items().to_vec();
    let Some(config) = list.function_config() else {
        let finding = Finding::error(Code::InvalidField, "functionConfig is missing")
            .help("Name a file with configPath in the pipeline, or with kpt fn eval --fn-config.");
        return ran(untouched(), vec![finding], false);
    };
    let config = Object {
        value: config.clone(),
        source: None,
    };
    let objects = list.items().iter().enumerate().map(|(i, value)| Object {
        value: value.clone(),
        source: Some(i),
    });
    let mut bundle = Bundle {
        objects: objects.collect(),
        marks: Marks::default(),
    };
    let findings = helper.run(&mut bundle, &config);
    let items = bundle.objects.iter().map(|o| o.value.clone()).collect();
    ran(items, findings, false)
}

fn inject(list: &ResourceList, strict: bool) -> Ran {
    let Some(opened) = open(list) else {
        let text = "mandatory Kptfile is missing from the package";
        let help = "Conditions live there: run the function on a package.";
        let finding = Finding::error(Code::PackageMissing, text).help(help);
        return ran(list.items().to_vec(), vec![finding], true);
    };
    let mut bundle = Bundle {
        objects: opened.objects.into(),
        marks: marks(opened.kptfile),
    };
    let mut others = below(list, opened.place);
    others.extend(given(list.function_config()));
    let providers: Vec<Provider<'_>> = others
        .iter()
        .map(|(place, bundle)| Provider {
            place,
            directory: place.rsplit('/').next().unwrap_or_default(),
            bundle,
        })
        .collect();
    let mut said = nephio::link(&mut bundle, &providers);
    let items = collect(list, opened.place, &bundle);
    let mut ran = ran(items, Vec::new(), true);
    if strict {
        for finding in &mut said {
            finding.severity = Severity::Error;
        }
        ran.failed = !said.is_empty();
        ran.results = said;
    } else {
        ran.notes = said;
    }
    ran
}

/// The packages below the list's own, by directory.
fn below(list: &ResourceList, root: usize) -> Vec<(String, Bundle)> {
    let directory = |item: &Value| {
        let (path, _) = origin(item)?;
        Some(path.rsplit_once('/').map_or("", |(dir, _)| dir).to_owned())
    };
    let items = list.items();
    let kptfiles = items
        .iter()
        .enumerate()
        .filter(|(_, v)| kptfile::is_kptfile(v));
    kptfiles
        .filter(|(place, _)| *place != root)
        .filter_map(|(_, kptfile)| {
            let dir = directory(kptfile)?;
            let inside = items
                .iter()
                .filter(|v| !kptfile::is_kptfile(v) && directory(v).as_ref() == Some(&dir));
            let bundle = package(kptfile, inside);
            Some((dir, bundle))
        })
        .collect()
}

/// The package in functionConfig.
fn given(config: Option<&Value>) -> Option<(String, Bundle)> {
    let objects = configured(config);
    let kptfile = objects.iter().find(|o| kptfile::is_kptfile(&o.value))?;
    let inside = objects
        .iter()
        .map(|o| &o.value)
        .filter(|v| !kptfile::is_kptfile(v));
    Some((kptfile.name().to_owned(), package(&kptfile.value, inside)))
}

fn package<'v>(kptfile: &Value, inside: impl Iterator<Item = &'v Value>) -> Bundle {
    let objects = inside.map(|value| {
        let mut object = Object {
            value: value.clone(),
            source: None,
        };
        // It is copied as a whole, and inside of another object nobody would take them away again.
        for key in mooring_krm::ORCHESTRATOR_ANNOTATIONS {
            object.remove_annotation(key);
        }
        object
    });
    Bundle {
        objects: objects.collect(),
        marks: marks(kptfile),
    }
}
