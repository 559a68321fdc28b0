//! A crate's source as a tree of modules, each with the names that it defines and imports.
//!
//! [`CrateSource::read`] parses the files that are reached from the crate's roots. [`resolve`] then
//! follows a path to the file that defines its item, and [`uses`] lists the paths that a file's
//! code contains. Code under `#[cfg(test)]` is left out of all three.

mod attributes;
mod module;
mod read;
mod resolve;
pub(crate) mod uses;

pub(crate) use attributes::{attributes_of, is_test_only};
pub(crate) use read::{CrateSource, parse};
