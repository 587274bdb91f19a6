//! The protocol: environment, versions, errors, as a runtime sees them.
