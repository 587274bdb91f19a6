//! Replays the fuzz corpus of foreign state files: every input that was ever interesting, in every ordinary test run.

use std::collections::BTreeMap;

use mooring_host::User;
use mooring_host::foreign::{amd, fuzz_foreign, libcni, sriov, tuning};
use mooring_host::host_local::{self, Content};

#[test]
fn no_seed_of_a_foreign_state_file_makes_a_reader_panic_and_each_reads_and_refuses_some() {
    let dir = mooring_testkit::workspace_root().join("fuzz/corpus/foreign_state");
    let mut outcomes: BTreeMap<&str, [u32; 2]> = BTreeMap::new();
    for entry in std::fs::read_dir(dir).expect("the corpus is part of the repository") {
        let path = entry.expect("an entry").path();
        let bytes = std::fs::read(&path).expect("a seed is a plain file");
        let done = std::panic::catch_unwind(|| fuzz_foreign(&bytes));
        assert!(done.is_ok(), "seed {}", path.display());
        let is_owned = matches!(host_local::parse(&bytes), Content::Owned(_));
        for (reader, read) in [
            ("amd", amd::Mapping::parse(&bytes).is_ok()),
            ("sriov", sriov::Cached::parse(&bytes).is_ok()),
            ("allocation", sriov::namespace(&bytes).is_some()),
            ("tuning", tuning::Backup::parse(&bytes).is_some()),
            ("host-local", is_owned),
            ("libcni", libcni::Cached::parse(&bytes).is_some()),
            ("user", User::parse(&bytes).is_some()),
        ] {
            outcomes.entry(reader).or_default()[usize::from(read)] += 1;
        }
    }
    for (reader, [refused, read]) in &outcomes {
        assert!(*read >= 2, "{reader} reads only {read}: {outcomes:?}");
        assert!(
            *refused >= 3,
            "{reader} refuses only {refused}: {outcomes:?}"
        );
    }
    assert_eq!(outcomes.len(), 7);
}
