//! Storage stacks: planned as data, made, read back, taken down again.
//!
//! A [`Stack`] is the plan. Everything it makes lies in, or is named after, one marked directory
//! whose journal entry holds the steps that undo it: [`crate::sweep()`] takes down from that entry
//! alone what a killed process left.

pub mod check;
pub mod claim;
mod edge;
pub mod emulated;
mod error;
pub mod filesystem;
mod flushes;
pub(crate) mod held;
pub(crate) mod holders;
pub mod identity;
pub mod image;
pub(crate) mod kernel_log;
pub mod knob;
pub mod limit;
pub mod made;
pub mod mount;
pub(crate) mod program;
mod refusal;
pub mod safety;
pub mod stack;
pub(crate) mod undo;
mod writers;

pub use check::Surroundings;
pub use error::StorageError;
pub use flushes::flushes_completed;
pub use made::MadeStack;
pub use safety::Wipe;
pub use stack::Stack;

/// An error with its causes, for where several complaints are told as text.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
