//! Integration tests of the crate `crash`, one module for each subject.
#![allow(clippy::unwrap_used, reason = "tests and their helpers fail by panicking")]

mod login;
mod rounds;
mod verify;
