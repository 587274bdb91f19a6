//! Any bytes as a YAML file: parsed, edited and written back without a panic, and without losing anything.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mooring_krm::fuzz_yaml(data));
