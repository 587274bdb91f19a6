//! Any order of the functions ends in the same package.
