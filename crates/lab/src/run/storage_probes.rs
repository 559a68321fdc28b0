//! Probes of a run's storages, before its trials and after them.

use std::path::Path;
use std::time::SystemTime;

use pgdyno_model::ProbeRecord;
use pgdyno_model::experiment::{ProbeKind, ProbeStages};
use pgdyno_model::probe::ProbeResult;
use pgdyno_model::progress::{Activity, Event, Notice};
use pgdyno_model::units::Epoch;
use pgdyno_results::store::{SessionId, Store};
use pgdyno_storage::probe::{self, DiskOptions, DiskPlan, FsyncOptions, SizeSource};

use crate::LabError;
use crate::context::Context;
use crate::record_id::new_record_id;

/// One of the two stages, of one storage.
pub(super) struct StorageProbes<'a> {
    pub(super) kinds: &'a [ProbeKind],
    pub(super) stages: &'a ProbeStages,
    /// The storage's name.
    pub(super) name: &'a str,
    /// Where it is.
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
    ) -> Result<(), LabError> {
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
            let activity =
                Activity::Probing { storage: Some(name.to_owned()), test: what.to_owned() };
            self.context.event(&Event::Working { activity, share: Some(share) });
        };
        let ProbeStages { duration, size, .. } = self.stages.clone();
        let started_at = Epoch::of(SystemTime::now());
        let (mut storage, result) = match kind {
            ProbeKind::Fsync => {
                let options =
                    FsyncOptions { per_test: duration.0, block_bytes, ..FsyncOptions::default() };
                let (storage, probe) = probe::fsync(
                    directory,
                    &options,
                    self.context.journal,
                    &told,
                    self.context.stop,
                )?;
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
                let (storage, probe) = DiskPlan::new(directory, &options)?.measure(
                    self.context.journal,
                    &told,
                    self.context.stop,
                )?;
                (storage, ProbeResult::Disk(probe))
            }
        };
        name.clone_into(&mut storage.name);
        Ok(ProbeRecord {
            id: new_record_id(result.kind(), started_at),
            run: Some(run.to_owned()),
            name: name.to_owned(),
            started_at,
            pgdyno_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: pgdyno_facts::host(),
            storage,
            result,
        })
    }
}
