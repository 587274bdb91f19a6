//! Replays the fuzz corpora: every input that was ever interesting, in every ordinary test run.

use std::path::{Path, PathBuf};

use mooring_krm::{fuzz_resource_list, fuzz_yaml};

fn replay(target: &str, least: usize, check: fn(&[u8])) {
    let corpus = mooring_testkit::workspace_root()
        .join("fuzz/corpus")
        .join(target);
    let mut seeds: Vec<_> = std::fs::read_dir(&corpus)
        .expect("the corpus is part of the repository")
        .map(|entry| entry.expect("a directory can be listed").path())
        .collect();
    seeds.sort();
    assert!(
        seeds.len() >= least,
        "only {} seeds in {target}",
        seeds.len()
    );
    let fails = |path: &&PathBuf| {
        let bytes = std::fs::read(path).expect("a seed is a plain file");
        std::panic::catch_unwind(|| check(&bytes)).is_err()
    };
    let failed: Vec<&Path> = seeds.iter().filter(fails).map(PathBuf::as_path).collect();
    assert!(failed.is_empty(), "seeds that fail: {failed:?}");
}

#[test]
fn every_yaml_seed_is_read_or_refused_and_nothing_is_lost() {
    replay("yaml", 80, fuzz_yaml);
}

#[test]
fn every_resource_list_seed_is_read_or_refused() {
    replay("resource_list", 40, fuzz_resource_list);
}

#[test]
fn a_yaml_seed_is_also_not_a_resource_list_that_panics() {
    replay("yaml", 80, fuzz_resource_list);
}
