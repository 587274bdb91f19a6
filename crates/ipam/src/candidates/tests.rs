//! Small facts about what is offered. The model in `model.rs` covers the sequences.

mod identity;
mod orders;
mod shapes;
