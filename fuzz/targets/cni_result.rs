//! Any bytes as the answer of a delegated CNI plugin.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mooring_attach::cni::fuzz_result(data));
