//! Probes of storages that were made before and after a run's trials.

use pgdyno_model::ProbeRecord;
use pgdyno_model::probe::{DiskProbe, FsyncGroup, Pattern, ProbeResult};
use pgdyno_model::units::Epoch;
use serde::Serialize;

use super::TrialView;
use crate::store::{Store, StoreError};

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

/// Those of `run`, the first one first.
pub(super) fn views(
    store: &Store,
    run: &str,
    trials: &[TrialView],
) -> Result<Vec<StageProbeView>, StoreError> {
    let mut views = Vec::new();
    for summary in store.probes()?.iter().rev().filter(|p| p.run.as_deref() == Some(run)) {
        views.push(view(&store.probe(&summary.id)?, trials));
    }
    Ok(views)
}

fn view(record: &ProbeRecord, trials: &[TrialView]) -> StageProbeView {
    let disk = match &record.result {
        ProbeResult::Disk(probe) => Some(probe),
        ProbeResult::Fsync(_) => None,
    };
    let flushes = match &record.result {
        ProbeResult::Fsync(probe) => probe.flushes(FsyncGroup::OneBlock, "fdatasync"),
        ProbeResult::Disk(_) => None,
    };
    StageProbeView {
        id: record.id.clone(),
        kind: record.result.kind(),
        storage: record.name.clone(),
        started_at: record.started_at,
        attempts_before: trials.iter().filter(|t| t.started_at < record.started_at).count(),
        complete: record.result.is_complete(),
        flushes_per_second: flushes.map(pgdyno_model::probe::Flushes::per_second),
        write_bytes_per_second: disk.and_then(|d| sequential(d, Pattern::Write)),
        read_bytes_per_second: disk.and_then(|d| sequential(d, Pattern::Read)),
        randread_iops: disk.and_then(|d| highest(d, Pattern::RandRead)),
        randwrite_iops: disk.and_then(|d| highest(d, Pattern::RandWrite)),
        warnings: record.result.warnings().to_vec(),
        acknowledges_from_cache: match &record.result {
            ProbeResult::Fsync(probe) => {
                probe.suspicions.iter().map(|s| s.words().to_owned()).collect()
            }
            ProbeResult::Disk(_) => Vec::new(),
        },
    }
}

/// Transfers of `pattern`, point by point, in the direction that it is about.
fn transfers(
    probe: &DiskProbe,
    pattern: Pattern,
) -> impl Iterator<Item = &pgdyno_model::probe::Transfers> {
    let points = probe.points.iter().filter(move |p| p.pattern == pattern);
    points.filter_map(move |p| if pattern.writes() { p.write.as_ref() } else { p.read.as_ref() })
}

#[allow(clippy::cast_precision_loss)]
fn sequential(probe: &DiskProbe, pattern: Pattern) -> Option<f64> {
    let rates: Vec<f64> = transfers(probe, pattern).map(|t| t.bytes_per_second).collect();
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
}

fn highest(probe: &DiskProbe, pattern: Pattern) -> Option<f64> {
    transfers(probe, pattern).map(|t| t.iops).reduce(f64::max)
}
