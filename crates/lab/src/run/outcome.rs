//! How a session of a run ended.

use pgdyno_model::record::SessionEnd;

/// How a run, or its continuation, ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The run's id in the store.
    pub run: String,
    /// How this session of it ended.
    pub end: SessionEnd,
    /// Trials that failed in this session, and treatments whose crash tests were not done to the
    /// end (count).
    pub failed: u32,
    /// Of these the treatments (count).
    pub not_crashed: u32,
}
