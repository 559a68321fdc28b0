//! Integration tests of the crate `pgbench`, one module for each subject.
#![allow(clippy::unwrap_used, reason = "tests and their helpers fail by panicking")]

mod expressions;
mod hostile;
mod majors;
mod pgbench;
mod several_hosts;
