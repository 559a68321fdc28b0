//! Integration tests of the crate `engine`, one module for each subject.
#![allow(clippy::unwrap_used, reason = "tests and their helpers fail by panicking")]

mod allocations;
mod flush_accounting;
mod memory;
