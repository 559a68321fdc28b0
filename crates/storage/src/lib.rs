//! Storage stacks: planned as data, made, read back, taken down again.
//!
//! A [`Stack`] is the plan. Everything it makes lies in, or is named after, one marked directory
//! whose journal entry holds the steps that undo it: [`pgdyno_exec::sweep::sweep`] takes down from
//! that entry alone what a killed process left.

pub mod check;
mod error;
pub mod fault;
pub mod filesystem;
mod flushes;
pub mod kept;
pub mod made;
pub mod probe;
pub mod stack;

pub use check::Surroundings;
pub use error::StorageError;
pub use flushes::flushes_completed;
pub use made::MadeStack;
pub use pgdyno_exec::device::safety::Wipe;
pub use stack::{Stack, undo_of_plan};

// facade: removed at integration
#[doc(hidden)]
pub use pgdyno_emulated_disk as emulated;
#[doc(hidden)]
pub use pgdyno_exec::device::{claim, identity, safety};
#[doc(hidden)]
pub use pgdyno_exec::{image, mount, setting as knob, setting::limit, tool as program};
