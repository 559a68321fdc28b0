//! Integration tests of the crate `generators`, one module for each subject.
#![allow(unreachable_pub, clippy::print_stdout, clippy::unwrap_used, reason = "these are tests")]

mod common;
mod merge;
mod simulated;
mod simulation;
mod thousand;
