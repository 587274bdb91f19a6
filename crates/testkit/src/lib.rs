//! Tests only: fixtures, folder cases, sandboxes.
