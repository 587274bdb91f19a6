//! The program without a runtime: what it says to a person, and its few commands.

use std::ffi::OsString;

use mooring_attach::cni::{CniError, Version};

use crate::output::Answer;
use crate::plugin::Entry;
use crate::{install, log};

/// Without `CNI_COMMAND`: a plugin says what it is; the program itself takes commands.
pub(crate) fn answer(entry: Option<&'static Entry>, args: Vec<OsString>) -> Answer {
    if let Some(entry) = entry {
        log::say(format_args!("{}: {}", entry.name, entry.plugin.about()));
        log::say(format_args!(
            "CNI protocol versions supported: {}",
            Version::list()
        ));
        return Answer::Nothing;
    }
    match install::command(args) {
        Ok(text) => Answer::Text(text, true),
        Err(error) => {
            log::say(format_args!("moor-cni: {error}"));
            Answer::Error(CniError::env(error.to_string()), None)
        }
    }
}
