//! `moor-cni install`: put into place on a node.

use std::ffi::OsString;

use mooring_attach::cni::CniError;

pub(crate) fn command(_args: Vec<OsString>) -> Result<String, CniError> {
    Ok(String::from("moor-cni: set CNI_COMMAND\n"))
}
