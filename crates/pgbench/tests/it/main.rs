//! Integration tests of the crate `pgbench`, one module for each subject.
#![allow(clippy::cast_possible_wrap, clippy::print_stdout, clippy::unwrap_used)] // tests

mod expressions;
mod hostile;
mod majors;
mod pgbench;
mod several_hosts;
