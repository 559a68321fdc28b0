//! Integration tests of the crate `storage`, one module for each subject.
#![allow(clippy::print_stderr, clippy::unwrap_used, reason = "tests fail by panicking")]

mod another_namespace;
mod attacks_files;
mod attacks_journal;
mod attacks_removal;
mod common;
mod device_swaps;
mod emulated;
mod executors;
mod filesystem_pools;
mod filesystems;
mod fsck;
mod module_parameters;
mod probe;
mod steps;
mod storage;
mod storage_plan;
mod storage_safety;
mod sweep;
