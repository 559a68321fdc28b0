//! Integration tests of the crate `wire`, one module for each subject.
#![allow(clippy::unwrap_used, reason = "tests and their helpers fail by panicking")]

mod auth;
mod codec;
mod inspect;
