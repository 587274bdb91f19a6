//! Running other programs: cargo and Git, from the root of the workspace.
//!
//! Easy to get wrong: `cargo xtask` may be called from any directory, so every path starts at [`root`].

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest
        .parent()
        .map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// A cargo command in the root. Variables that would change what tests do are taken away.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(args)
        .current_dir(root())
        .env_remove("MOOR_BOOK")
        .env_remove("MOOR_KERNEL_ONLY")
        .env_remove("MOOR_UPDATE");
    // Cargo sets these for xtask itself; a build script that watches them would run again each time.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs it with its output shown, and fails when it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command
        .status()
        .with_context(|| format!("cannot start `{shown}`"))?;
    ensure!(status.success(), "`{shown}` failed ({status})");
    Ok(())
}

/// What it prints on stdout, without the last newline.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    let status = output.status;
    ensure!(
        status.success(),
        "`{shown}` failed ({status})\n{}",
        complaint.trim_end()
    );
    let text = String::from_utf8(output.stdout)
        .with_context(|| format!("`{shown}` printed something that is not text"))?;
    Ok(text.trim_end().to_owned())
}

/// The command as a person would type it.
pub(crate) fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    words
        .map(|w| w.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
