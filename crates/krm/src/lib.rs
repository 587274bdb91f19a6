//! Decides: documents over a map path to bytes. Lossless YAML, ResourceList, Kptfile, package layout.
//!
//! ```text
//!   bytes ─ File::parse ─► documents: value + spans ─ (somebody decides a new value) ─► rewrite ─► bytes
//!                                    └ locate(field) ─► line, column
//! ```
//!
//! A file is read once. Deciding rooms work on plain values; [`File::rewrite`] compares the new values
//! with the tree, gathers splices by span and joins the text once, so comments, order, quoting and line
//! ends stay as they were and ten thousand edits cost what one does.
//!
//! Easy to get wrong: equality of values ignores key order, so reordering keys is never an edit.

mod align;
mod compose;
mod edit;
mod emit;
mod file;
mod fuzz;
pub mod kptfile;
mod layout;
mod list;
mod node;
mod path;
mod read;
mod rewrite;
mod scalar;
mod source;

pub use edit::{Change, Edit, EditError, diff};
pub use emit::emit;
pub use file::{Document, File, MAX_BYTES, MAX_EXPANDED};
#[doc(hidden)]
pub use fuzz::{fuzz_resource_list, fuzz_yaml};
pub use layout::{KPTFILE, KRMIGNORE, Layout, Package, is_krm, layout};
pub use list::{
    INDEX_ANNOTATION, ListError, ORCHESTRATOR_ANNOTATIONS, PATH_ANNOTATION, ResourceList, origin,
    place, result,
};
pub use path::{BadPath, FieldPath, Step};
pub use source::{ParseError, ParseErrorKind, Position};
