//! Probes of a run's storages, before its trials and after them.

use std::path::Path;

use pgdyno_model::ProbeRecord;
use pgdyno_model::experiment::{ProbeKind, ProbeStages};
use pgdyno_model::probe::ProbeResult;
use pgdyno_model::progress::Notice;
use pgdyno_storage::probe::{self, DiskOptions, DiskPlan, FsyncOptions, SizeSource};
use pgdyno_store::{SessionId, Store};

use crate::probe::{record_probe, reporter};
use pgdyno_provision::{BenchError, Context};

/// Probes of one storage, before the trials or after them.
pub(super) struct StorageProbes<'a> {
    pub(super) kinds: &'a [ProbeKind],
    pub(super) stages: &'a ProbeStages,
    /// Whether the storage's free blocks were discarded right before.
    pub(super) trimmed: bool,
    /// The storage's name.
    pub(super) name: &'a str,
    /// The storage's directory.
    pub(super) directory: &'a Path,
    pub(super) context: Context<'a>,
}

impl StorageProbes<'_> {
    /// Measures the storage and stores what was found, one probe at a time.
    pub(super) fn run(
        &self,
        store: &mut Store,
        run: &str,
        session: SessionId,
    ) -> Result<(), BenchError> {
        let blocks = |kind: &ProbeKind| match kind {
            ProbeKind::Fsync => self.stages.block_bytes.as_slice(),
            ProbeKind::Disk => &[8192],
        };
        let all =
            self.kinds.iter().flat_map(|kind| blocks(kind).iter().map(move |bytes| (kind, bytes)));
        for (kind, bytes) in all {
            self.context.check_stop()?;
            let record = self.measure(run, *kind, *bytes)?;
            // One that a signal cut short is kept, as `pgdyno fsync` keeps it.
            store.add_probe(Some(session), &record)?;
            for warning in record.result.warnings() {
                let storage = self.name.to_owned();
                self.context.note(Notice::SuspectStorage { storage, finding: warning.to_string() });
            }
            if !record.result.is_complete() {
                return Err(BenchError::Interrupted);
            }
        }
        Ok(())
    }

    fn measure(
        &self,
        run: &str,
        kind: ProbeKind,
        block_bytes: u32,
    ) -> Result<ProbeRecord, BenchError> {
        let Self { stages, trimmed, name, directory, context, .. } = *self;
        let Context { journal, progress, stop } = context;
        let report = reporter(progress, Some(name));
        let mut record = record_probe(Some(run), name.to_owned(), || match kind {
            ProbeKind::Fsync => {
                let per_test = stages.duration.0;
                let options = FsyncOptions { per_test, block_bytes, ..FsyncOptions::default() };
                let (storage, probe) = probe::fsync(directory, &options, journal, &report, stop)?;
                Ok((storage, ProbeResult::Fsync(probe)))
            }
            ProbeKind::Disk => {
                let options = DiskOptions {
                    per_point: stages.duration.0,
                    size: stages.size,
                    size_from: SizeSource::Experiment,
                    ..DiskOptions::default()
                };
                let plan = DiskPlan::new(directory, &options)?;
                let (storage, mut probe) = plan.measure(journal, &report, stop)?;
                probe.trimmed = trimmed;
                Ok((storage, ProbeResult::Disk(probe)))
            }
        })?;
        name.clone_into(&mut record.storage.name);
        Ok(record)
    }
}
