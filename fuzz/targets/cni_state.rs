//! Any bytes as a device record that a plugin finds on disk.
//!
//! What is read is written and read back to the same record, and its network state can be moved to another link, as
//! every return of a device does.
#![no_main]

use mooring_host::record::Record;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(mut record) = serde_json::from_slice::<Record>(data) else {
        return;
    };
    // Foreign to us, and a fraction may lose its last digit.
    record.kept = serde_json::Value::Null;
    let text = serde_json::to_vec(&record).expect("a record has string keys");
    let again: Record = serde_json::from_slice(&text).expect("what we write, we can read");
    assert_eq!(again, record);
    assert!(!record.device.key().contains('/'), "a key is one file name");
    let _ = record.before.moved_to(7, "net7");
});
