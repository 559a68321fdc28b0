//! Reads experiments: from a TOML file to a plan.
//!
//! An experiment varies factors over levels. [`file::parse`] turns a file or a recipe into an
//! [`Experiment`](pgdyno_model::Experiment), and [`resolve::resolve`] turns that into a
//! [`Plan`](pgdyno_model::Plan): every name resolved, every trial in its place. [`file::SCHEMA`]
//! describes experiment files for editors.

pub mod devices;
pub mod file;
pub mod recipes;
pub mod redact;
pub mod resolve;
