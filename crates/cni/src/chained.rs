//! Plugins that change an interface which an earlier plugin of the list made, a file each.

pub(crate) mod sbr;
pub(crate) mod tuning;
