//! Any bytes as the value of `k8s.v1.cni.cncf.io/networks`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mooring_attach::networks::fuzz_networks(data));
