//! Reads experiments: from a TOML file to a plan, and the plan in words. Touches no host.
//!
//! An experiment varies factors over levels. [`ResolvedExperiment::new`] takes the way of an
//! experiment file:
//!
//! 1. [`file::parse`] turns the file into an [`Experiment`](pgdyno_model::Experiment).
//! 2. `resolve` turns that into a [`Plan`](pgdyno_model::Plan): every name resolved, every trial
//!    in its place. Workloads are read.
//! 3. Scripts are parsed.
//! 4. [`checks`] refuse a plan whose parts do not go together.
//!
//! Everything else reads the [`ResolvedExperiment`]: [`clusters`] and storages that it needs,
//! [`settings`] of its servers, its [`estimate`] of time, its [`footprint`] on the host, and
//! [`dry_run`], the plan in words. What only the host knows is asked of a [`Host`], or comes as a
//! value ([`dry_run::Machine`]).
//!
//! [`draft::Draft`] writes new experiment files, and [`file::SCHEMA`] describes them for editors.
//! [`redact`] keeps passwords out of what is stored or shown.

pub mod checks;
pub mod clusters;
mod consent;
pub mod draft;
pub mod dry_run;
mod error;
pub mod estimate;
pub mod file;
pub mod footprint;
mod host;
pub mod recipes;
pub mod redact;
mod resolve;
mod resolved_experiment;
pub mod settings;

pub use error::ExperimentError;
pub use host::Host;
pub use resolved_experiment::ResolvedExperiment;
