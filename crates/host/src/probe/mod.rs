//! Measurements of a storage without PostgreSQL.

pub mod fsync;

pub use fsync::{ProbeError, fsync_rate};
