//! Lines on standard error, which runtimes put into their logs.
//!
//! Easy to get wrong: a runtime shows standard error only when standard output is empty, so whatever a
//! person must read goes into the error, not here.

use std::io::Write as _;

use mooring_attach::cni::Request;

/// One line about a call: `moor-cni: ADD default/net1 trace=…: text`.
pub(crate) fn line(request: &Request, text: impl std::fmt::Display) {
    let Request {
        verb, container, ..
    } = request;
    let mut about = format!("moor-cni: {verb} {}", request.config.name);
    if !container.is_empty() {
        about = format!("{about} {container}/{}", request.ifname());
    }
    if let Some(trace) = &request.trace {
        about = format!("{about} trace={trace}");
    }
    say(format_args!("{about}: {text}"));
}

/// One line. A closed standard error is nobody's loss.
pub(crate) fn say(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
