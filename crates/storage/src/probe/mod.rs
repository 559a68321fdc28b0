//! Measurements of a storage without PostgreSQL.

mod disk;
mod error;
mod fsync;
mod implausible;
mod place;

pub use disk::{DiskOptions, DiskPlan};
pub use error::{ProbeError, SizeSource};
pub use fsync::{FsyncOptions, fsync, fsync_rate};

/// A callback for progress: the present activity, and the finished share of it (0 to 1).
pub type Progress<'a> = &'a dyn Fn(&str, f64);

/// Returns the share of `done` among `all` (0 to 1).
fn share(done: usize, all: usize) -> f64 {
    done as f64 / all as f64
}
