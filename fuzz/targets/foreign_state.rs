//! Any bytes as a state file of another program: AMD's mapping, sriov-cni's cache and allocation, a backup of tuning, an address of
//! host-local, libcni's cache, a note about a shared link.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mooring_host::foreign::fuzz_foreign(data));
