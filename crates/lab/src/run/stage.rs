//! Probes of a run's storages, before its trials and after them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use pgdyno_host::Journal;
use pgdyno_host::probe::{self, DiskOptions, DiskPlan, FsyncOptions, SizeSource};
use pgdyno_model::ProbeRecord;
use pgdyno_model::experiment::{ProbeKind, ProbeStages};
use pgdyno_model::probe::ProbeResult;
use pgdyno_model::units::Epoch;
use pgdyno_results::store::{SessionId, Store};

use super::id_of;
use crate::LabError;
use pgdyno_model::progress::{Event, Progress};

/// One of the two stages, of one storage.
pub(super) struct Stage<'a> {
    pub(super) kinds: &'a [ProbeKind],
    pub(super) stages: &'a ProbeStages,
    /// The storage's name.
    pub(super) name: &'a str,
    /// Where it is.
    pub(super) directory: &'a Path,
    pub(super) journal: &'a Journal,
    pub(super) progress: &'a dyn Progress,
    pub(super) stop: &'a AtomicBool,
}

impl Stage<'_> {
    /// Measures the storage and stores what was found, one probe at a time.
    pub(super) fn perform(
        &self,
        store: &mut Store,
        run: &str,
        session: SessionId,
    ) -> Result<(), LabError> {
        let blocks = |kind: &ProbeKind| match kind {
            ProbeKind::Fsync => self.stages.block_bytes.as_slice(),
            ProbeKind::Disk => &[8192],
        };
        let all =
            self.kinds.iter().flat_map(|kind| blocks(kind).iter().map(move |bytes| (kind, bytes)));
        for (kind, bytes) in all {
            if self.stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            let record = self.measure(run, *kind, *bytes)?;
            // One that a signal cut short is kept, as `pgdyno fsync` keeps it.
            store.add_probe(Some(session), &record)?;
            for warning in record.result.warnings() {
                let note = format!("storage `{}` is suspect: {warning}", self.name);
                self.progress.event(&Event::Note(note));
            }
            if !record.result.is_complete() {
                return Err(LabError::Interrupted);
            }
        }
        Ok(())
    }

    fn measure(
        &self,
        run: &str,
        kind: ProbeKind,
        block_bytes: u32,
    ) -> Result<ProbeRecord, LabError> {
        let (name, directory) = (self.name, self.directory);
        let told = |what: &str, share: f64| {
            let what = format!("probing {name}: {what}");
            self.progress.event(&Event::Working { what, share: Some(share) });
        };
        let ProbeStages { duration, size, .. } = self.stages.clone();
        let started_at = Epoch::of(SystemTime::now());
        let (mut storage, result) = match kind {
            ProbeKind::Fsync => {
                let options =
                    FsyncOptions { per_test: duration.0, block_bytes, ..FsyncOptions::default() };
                let (storage, probe) =
                    probe::fsync(directory, &options, self.journal, &told, self.stop)?;
                (storage, ProbeResult::Fsync(probe))
            }
            ProbeKind::Disk => {
                let size_from = SizeSource::Experiment;
                let options = DiskOptions {
                    per_point: duration.0,
                    size,
                    size_from,
                    ..DiskOptions::default()
                };
                let (storage, probe) =
                    DiskPlan::new(directory, &options)?.measure(self.journal, &told, self.stop)?;
                (storage, ProbeResult::Disk(probe))
            }
        };
        name.clone_into(&mut storage.name);
        Ok(ProbeRecord {
            id: id_of(result.kind(), started_at),
            run: Some(run.to_owned()),
            name: name.to_owned(),
            started_at,
            pgdyno_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: pgdyno_host::facts::host(),
            storage,
            result,
        })
    }
}
