//! The rules of the protocol, one by one, as values.

mod config;
mod env;
mod error;
mod hostile;
