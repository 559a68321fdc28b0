//! Integration tests of the crate `generators`, one module for each subject.
#![allow(clippy::unwrap_used, reason = "tests and their helpers fail by panicking")]

mod common;
mod merge;
mod simulated;
mod simulation;
mod thousand;
