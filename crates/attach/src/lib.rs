//! Decides: CNI configuration and result shapes, annotation grammar, NAD checks.
