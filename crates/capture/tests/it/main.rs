//! Integration tests of the crate `capture`, one module for each subject.
#![allow(unreachable_pub, clippy::unwrap_used, reason = "these are tests")]

mod twins;
mod watched_server;
