//! Integration tests of the crate `store`, one module for each subject.
#![allow(clippy::unwrap_used, reason = "tests and their helpers fail by panicking")]

mod anonymous;
mod damage;
mod merge;
mod store;
mod stores_of_earlier_versions;
