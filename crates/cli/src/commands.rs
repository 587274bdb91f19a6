//! One file per command. Each has `run`: it checks its raw arguments into a request, calls the rooms, shows the answer.
//!
//! Easy to get wrong: engine logic does not belong here. If a command needs to know how an address is chosen or how a file
//! is written, the missing function belongs to a room.

pub(crate) mod adopt;
pub(crate) mod book;
pub(crate) mod claim;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod fleet;
pub(crate) mod function;
pub(crate) mod graph;
pub(crate) mod import;
pub(crate) mod node;
pub(crate) mod package;
pub(crate) mod plan;
pub(crate) mod pool;
pub(crate) mod reference;
pub(crate) mod release;
pub(crate) mod render;
pub(crate) mod reserve;
pub(crate) mod trace;
pub(crate) mod verify;
pub(crate) mod who_has;
