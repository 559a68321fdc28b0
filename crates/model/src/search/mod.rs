//! The search for the highest rate that keeps a service level objective.
//!
//! An [`Slo`] is read from text such as `p99 < 20ms, failed < 0.1%`. [`Find`] says how to search,
//! and [`Search`] holds the rates that were tried.

mod slo;
mod steps;

pub use slo::{Find, Limit, Slo, SloError};
pub use steps::{Search, Step};
