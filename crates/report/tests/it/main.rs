//! Integration tests of the crate `report`, one module for each subject.
#![allow(clippy::unwrap_used, reason = "tests and their helpers fail by panicking")]

mod analysis;
mod audit;
mod capacity;
mod compare;
mod export;
mod factors;
mod gates;
mod groups;
mod host_noise;
mod notes;
mod page_sizes;
mod page_support;
mod pages;
mod report;
mod stopping;
mod why;
