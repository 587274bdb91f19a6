//! Tests of the annotation grammar.
