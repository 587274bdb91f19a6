//! Decides whether the owner of something lives, from its namespace and its boot.
//!
//! Called by the notes of shared links and by the doctor. Easy to get wrong: what cannot be looked at is not known to be gone.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::{Netns, NetnsId};

/// Whether somebody lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "life", rename_all = "camelCase")]
pub enum Life {
    /// Its namespace is there.
    Alive,
    /// It ended, and cannot come back.
    Gone {
        /// How that is known, as the end of a sentence.
        why: String,
    },
    /// Nothing says either.
    Unknown,
}

impl Life {
    pub(crate) fn gone(why: &str) -> Self {
        Self::Gone {
            why: why.to_owned(),
        }
    }

    /// Of whoever has this namespace. `id` and `boot` are those in which it began, where they are known.
    pub(crate) fn of(
        netns: &Path,
        id: Option<NetnsId>,
        boot: Option<&str>,
        this_boot: &str,
    ) -> Self {
        if boot.is_some_and(|boot| boot != this_boot) {
            return Self::gone("the node was restarted since");
        }
        match Netns::open(netns) {
            Ok(now) if id.is_none_or(|id| id == now.id()) => Self::Alive,
            Ok(_) => Self::gone("its namespace is another one now"),
            Err(error) if error.is_gone() => Self::gone("its namespace is gone"),
            Err(_) => Self::Unknown,
        }
    }
}

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Alive => "lives",
            Self::Gone { .. } => "gone",
            Self::Unknown => "not known",
        })
    }
}
