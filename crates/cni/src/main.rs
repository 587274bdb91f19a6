//! Program: every CNI plugin in one small multi-call binary.

fn main() {}
