//! Probes of storages before and after a run's trials.

use pgdyno_model::units::Epoch;
use serde::Serialize;

/// A probe of one of the run's storages. All of it: `pgdyno show ID`.
#[derive(Clone, Debug, Serialize)]
pub struct StageProbeView {
    /// Its name in the store.
    pub id: String,
    /// `fsync` or `disk`.
    pub kind: &'static str,
    /// The storage's name.
    pub storage: String,
    /// When it began.
    #[serde(serialize_with = "pgdyno_model::format::as_text")]
    pub started_at: Epoch,
    /// Attempts at trials that had begun before it (count): 0 before the first trial.
    pub attempts_before: usize,
    /// Whether all of it was measured.
    pub complete: bool,
    /// Of an fsync probe: writes of one block with fdatasync by one writer (1/s).
    pub flushes_per_second: Option<f64>,
    /// Of a disk probe: sequential writes (bytes/s), the mean of its zones.
    pub write_bytes_per_second: Option<f64>,
    /// Of a disk probe: sequential reads (bytes/s), the mean of its zones.
    pub read_bytes_per_second: Option<f64>,
    /// Of a disk probe: random reads of 8 kB (1/s), at the queue depth that gave most.
    pub randread_iops: Option<f64>,
    /// Of a disk probe: random writes of 8 kB (1/s), at the queue depth that gave most.
    pub randwrite_iops: Option<f64>,
    /// What is not to be believed without a further look.
    pub warnings: Vec<String>,
    /// Of an fsync probe: why the storage is suspected to acknowledge what is not yet durable, in
    /// few words.
    pub acknowledges_from_cache: Vec<String>,
}
