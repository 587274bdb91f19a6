//! The kinds, one file each, behind a feature per project.
