//! How a session of a run ended.

use pgdyno_model::record::SessionEnd;

/// The result of a session of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The run's id in the store.
    pub run: String,
    /// How the session ended.
    pub end: SessionEnd,
    /// Trials that failed in this session, and treatments whose crash tests were not done to the
    /// end (count).
    pub failed: u32,
    /// Treatments among them (count).
    pub not_crashed: u32,
}
