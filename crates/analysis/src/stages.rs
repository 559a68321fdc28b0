//! Probes of storages that were made before and after a run's trials.

use pgdyno_model::ProbeRecord;
use pgdyno_model::probe::{DiskProbe, FsyncGroup, Pattern, ProbeResult};

use super::view::{StageProbeView, TrialView};
use pgdyno_store::{Store, StoreError};

/// Returns the views of the probes of `run`, the first one first.
pub(super) fn views(
    store: &Store,
    run: &str,
    trials: &[TrialView],
) -> Result<Vec<StageProbeView>, StoreError> {
    Ok(store.probes_of(run)?.iter().map(|probe| view(probe, trials)).collect())
}

fn view(record: &ProbeRecord, trials: &[TrialView]) -> StageProbeView {
    let (fsync, disk) = match &record.result {
        ProbeResult::Fsync(probe) => (Some(probe), None),
        ProbeResult::Disk(probe) => (None, Some(probe)),
    };
    let flushes = fsync.and_then(|probe| probe.flushes(FsyncGroup::OneBlock, "fdatasync"));
    let suspicions = fsync.into_iter().flat_map(|probe| &probe.suspicions);
    StageProbeView {
        id: record.id.clone(),
        kind: record.result.kind(),
        storage: record.name.clone(),
        started_at: record.started_at,
        attempts_before: trials.iter().filter(|t| t.started_at < record.started_at).count(),
        after_trim: disk.is_some_and(|probe| probe.trimmed),
        complete: record.result.is_complete(),
        flushes_per_second: flushes.map(pgdyno_model::probe::Flushes::per_second),
        write_bytes_per_second: disk.and_then(|d| sequential(d, Pattern::Write)),
        read_bytes_per_second: disk.and_then(|d| sequential(d, Pattern::Read)),
        randread_iops: disk.and_then(|d| highest(d, Pattern::RandRead)),
        randwrite_iops: disk.and_then(|d| highest(d, Pattern::RandWrite)),
        warnings: record.result.warnings().to_vec(),
        acknowledges_from_cache: suspicions.copied().collect(),
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

fn sequential(probe: &DiskProbe, pattern: Pattern) -> Option<f64> {
    let rates: Vec<f64> = transfers(probe, pattern).map(|t| t.bytes_per_second).collect();
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
}

fn highest(probe: &DiskProbe, pattern: Pattern) -> Option<f64> {
    transfers(probe, pattern).map(|t| t.iops).reduce(f64::max)
}
