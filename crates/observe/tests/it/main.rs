//! Integration tests of the crate `observe`, one module for each subject.
#![allow(clippy::unwrap_used, reason = "tests and their helpers fail by panicking")]

mod telemetry;
