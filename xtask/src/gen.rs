//! Generated files that come from the kinds in `mooring-api`. Nothing is generated from them yet.

use anyhow::Result;

/// Does nothing yet, in either mode.
#[expect(clippy::unnecessary_wraps, reason = "generating files can fail")]
pub(crate) fn run(_check: bool) -> Result<()> {
    Ok(())
}
