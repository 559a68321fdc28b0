//! Integration tests of the crate `postgres`, one module for each subject.
#![allow(clippy::unwrap_used, reason = "tests and their helpers fail by panicking")]

mod cluster;
mod fetch;
