//! The one writer of standard output: a result or an error, once per process, as JSON.

use std::io::Write as _;
use std::process::ExitCode;

use mooring_attach::cni::{CniError, Version};
use serde_json::Value;

/// How a call ends.
pub(crate) enum Answer {
    /// Success without words.
    Nothing,
    /// A result, or the supported versions.
    Json(Value),
    /// An error, in the configuration's version as far as that is known.
    Error(CniError, Option<Version>),
    /// Text that a person asked for.
    Text(String),
    /// The same, where something is wrong.
    Wrong(String),
    /// Everything was said on standard error already; whether it went well.
    Said(bool),
    /// The same, where a person's command line is wrong.
    Usage,
}

/// As of every program of ours.
const WRONG_WORDS: u8 = 2;

/// Prints it and gives the exit code. What cannot be written is a failure too: the runtime would take an
/// empty answer for a success.
pub(crate) fn print(answer: Answer) -> ExitCode {
    let (text, good) = match answer {
        Answer::Nothing | Answer::Said(true) => return ExitCode::SUCCESS,
        Answer::Said(false) => return ExitCode::FAILURE,
        Answer::Usage => return ExitCode::from(WRONG_WORDS),
        Answer::Json(value) => (pretty(&value), true),
        Answer::Error(error, version) => (pretty(&error.to_json(version)), false),
        Answer::Text(text) => (text, true),
        Answer::Wrong(text) => (text, false),
    };
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if good && written.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
