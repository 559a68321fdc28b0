//! Integration tests of the crate `replay`, one module for each subject.
#![allow(unreachable_pub, clippy::print_stdout, clippy::unwrap_used, reason = "these are tests")]

mod allocations;
mod replays;
mod server;
