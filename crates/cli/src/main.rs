//! `moor`: the command line.

fn main() {}
