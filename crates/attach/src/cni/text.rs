//! The grammars of the protocol's strings.
//!
//! Easy to get wrong: they become file names, so nothing here may ever let a slash through.

use super::error::CniError;

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphanumeric())
        && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

/// A container id: it becomes part of file names, so its characters are few.
pub fn check_container(id: &str) -> Result<(), CniError> {
    if id.is_empty() {
        return Err(CniError::new(
            CniError::UNKNOWN_CONTAINER,
            "missing containerID",
        ));
    }
    if is_name(id) {
        return Ok(());
    }
    Err(CniError::env(format!(
        "invalid characters in containerID {id:?}: begin with a letter or digit, then letters, digits, _ . -"
    )))
}

/// A network's name: the same characters, for the same reason.
pub fn check_network(name: &str) -> Result<(), CniError> {
    if name.is_empty() {
        return Err(CniError::config("name", "missing network name"));
    }
    if is_name(name) {
        return Ok(());
    }
    Err(CniError::config(
        "name",
        format!(
            "invalid characters in network name {name:?}: begin with a letter or digit, then letters, digits, _ . -"
        ),
    ))
}

/// A plugin's name, which is looked up in directories: one path component and nothing else.
pub fn check_plugin(field: &str, name: &str) -> Result<(), CniError> {
    let why = if name.is_empty() {
        "it is missing"
    } else if name == "." || name == ".." || name.contains(['/', '\\', '\0']) {
        "it names a program in CNI_PATH, so it cannot be a path"
    } else {
        return Ok(());
    };
    Err(CniError::config(
        field,
        format!("{name:?} is no plugin: {why}"),
    ))
}
