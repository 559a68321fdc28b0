//! Throughput over numbers of clients.

use pgdyno_stats::Scaling;
use serde::Serialize;

/// Treatments that differ in the number of clients only.
#[derive(Clone, Debug, Serialize)]
pub struct ScalingView {
    /// What they share, in one line; empty where clients are all that varies.
    pub given: String,
    /// Their indices.
    pub treatments: Vec<usize>,
    /// The Universal Scalability Law through them; none where `words` say why.
    pub law: Option<Scaling>,
    /// All of it in a sentence.
    pub words: String,
}
