//! Any bytes as the configuration of a CNI call.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mooring_attach::cni::fuzz_config(data));
