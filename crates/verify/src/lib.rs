//! Decides: objects with their origin become findings.
