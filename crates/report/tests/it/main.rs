//! Integration tests of the crate `results`, one module for each subject.
#![allow(clippy::unwrap_used, reason = "tests and their helpers fail by panicking")]

mod analysis;
mod audit;
mod capacity;
mod compare;
mod compare_sides;
mod damage;
mod export;
mod factors;
mod gates;
mod host_noise;
mod merge;
mod notes;
mod page_sizes;
mod page_support;
mod pages;
mod report;
mod stopping;
mod store;
mod stores_of_earlier_versions;
mod why;
