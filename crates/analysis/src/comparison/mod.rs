//! Comparisons: treatments of one run, of two runs, and a run beside an imported report.
//!
//! `family` judges ratios together, from trials that `pairing` pairs. `within` ranks the
//! treatments of a run, [`runs`] compares two, and [`imported`] puts one beside a report.

pub(crate) mod family;
pub mod imported;
pub(crate) mod pairing;
pub(crate) mod pairs;
pub mod runs;
pub(crate) mod within;
