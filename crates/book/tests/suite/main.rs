//! What every store of this room promises, and what the file store promises about crashes and processes.

mod agree;
mod contract;
mod crash;
mod disk;
mod files;
mod made;
mod processes;
