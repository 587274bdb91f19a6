//! Any bytes as what a KRM function is given on stdin.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mooring_krm::fuzz_resource_list(data));
