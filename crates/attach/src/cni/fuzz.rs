//! Fuzz entry points: what must hold for any bytes on standard input and from a delegate.

use serde_json::Value;

use super::config::Config;
use super::result::CniResult;
use super::verb::Verb;
use super::version::Version;

/// Whatever the bytes are, reading a configuration does not panic, an error has a code of the protocol, and
/// what is read goes to a delegate as it came.
#[doc(hidden)]
pub fn fuzz_config(data: &[u8]) {
    for verb in Verb::ALL {
        match Config::parse(verb, data) {
            Err(error) => assert!(matches!(error.code, 1 | 6 | 7), "{verb}: {error}"),
            Ok(config) => {
                assert_eq!(config.text().as_bytes(), data, "the text is the runtime's");
                assert!(config.version >= verb.since());
                let _ = config.keys::<Value>();
                let more = config.with(verb, "moor", Value::Bool(true));
                let more = more.expect("one more key makes nothing invalid");
                assert_eq!((&more.name, more.version), (&config.name, config.version));
                if let Some(prev) = &config.prev {
                    same_again(prev);
                }
            }
        }
    }
}

/// Whatever the bytes are, reading a result does not panic, and what is read is written in every version and
/// read back to the same text.
#[doc(hidden)]
pub fn fuzz_result(data: &[u8]) {
    for version in Version::ALL {
        match CniResult::parse_answer(data, version) {
            Err(error) => assert!(matches!(error.code, 1 | 6), "{error}"),
            Ok(result) => same_again(&result),
        }
    }
}

fn same_again(result: &CniResult) {
    for version in Version::ALL {
        let shown = result.to(version);
        let again = CniResult::parse(&shown, version).expect("what we write, we can read");
        let stable = again.to(version);
        if version.has_old_result() {
            // Reading says the router of every route, so only the second writing is stable.
            let third = CniResult::parse(&stable, version).expect("what we write, we can read");
            assert_eq!(third.to(version), stable);
        } else {
            assert_eq!(stable, shown);
        }
    }
}
