//! Tests of result shapes.
