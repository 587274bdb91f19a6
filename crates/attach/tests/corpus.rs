//! Replays the fuzz corpus: every input that was ever interesting, in every ordinary test run.

use std::path::Path;

use mooring_attach::cni::{CniResult, Config, Verb, Version, fuzz_config, fuzz_result};
use mooring_attach::networks::{fuzz_networks, parse};

fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let entries = std::fs::read_dir(&dir).expect("the corpus is part of the repository");
    let mut seeds: Vec<(String, Vec<u8>)> = entries
        .map(|entry| {
            let path = entry.expect("a directory can be listed").path();
            let name = path.file_name().expect("an entry has a name");
            let bytes = std::fs::read(&path).expect("a seed is a plain file");
            (name.to_string_lossy().into_owned(), bytes)
        })
        .collect();
    seeds.sort();
    seeds
}

#[test]
fn no_seed_of_the_networks_annotation_makes_it_panic() {
    let seeds = seeds("networks_annotation");
    for (name, bytes) in &seeds {
        let outcome = std::panic::catch_unwind(|| fuzz_networks(bytes));
        assert!(outcome.is_ok(), "seed {name}");
    }
    assert!(seeds.len() >= 60, "only {} seeds were found", seeds.len());
}

#[test]
fn the_corpus_has_both_what_is_read_and_what_is_refused() {
    let seeds = seeds("networks_annotation");
    let texts = seeds
        .iter()
        .filter_map(|(_, bytes)| std::str::from_utf8(bytes).ok());
    let (read, refused): (Vec<&str>, Vec<&str>) = texts.partition(|text| parse(text).is_ok());
    assert!(read.len() >= 15, "only {} are read", read.len());
    assert!(refused.len() >= 25, "only {} are refused", refused.len());
}

#[test]
fn no_seed_of_a_cni_configuration_makes_it_panic_and_both_outcomes_occur() {
    let seeds = seeds("cni_config");
    let (mut read, mut refused) = (0, 0);
    for (name, bytes) in &seeds {
        let outcome = std::panic::catch_unwind(|| fuzz_config(bytes));
        assert!(outcome.is_ok(), "seed {name}");
        match Config::parse(Verb::Add, bytes) {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(read >= 8, "only {read} are read");
    assert!(refused >= 8, "only {refused} are refused");
}

#[test]
fn no_seed_of_a_cni_result_makes_it_panic_and_both_outcomes_occur() {
    let seeds = seeds("cni_result");
    let (mut read, mut refused) = (0, 0);
    for (name, bytes) in &seeds {
        let outcome = std::panic::catch_unwind(|| fuzz_result(bytes));
        assert!(outcome.is_ok(), "seed {name}");
        match CniResult::parse_answer(bytes, Version::NEWEST) {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(read >= 6, "only {read} are read");
    assert!(refused >= 6, "only {refused} are refused");
}
