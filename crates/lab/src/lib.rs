//! The one place that knows all: parses an experiment, resolves its names into a plan, and runs it.

mod dataset;
pub mod file;
mod nearest;
pub mod progress;
pub mod recipes;
pub mod resolve;
pub mod workload;
