//! Integration tests of the crate `analysis`, one module for each subject.
#![allow(clippy::unwrap_used, reason = "tests and their helpers fail by panicking")]

mod analysis;
mod compare;
mod compare_sides;
mod factors;
mod gates;
mod why;
