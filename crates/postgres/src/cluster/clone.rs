//! A cluster on a clone of its storage.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use pgdyno_exec::journal::{Journal, JournalError, OwnedResource};
use pgdyno_exec::step::Step;
use pgdyno_exec::{ExecContext, Executor as _};
use pgdyno_model::experiment::Connect;

use super::{Cluster, ClusterError};
use crate::spec::{ClusterSpec, SOCKET_PORT, cluster_directory};

impl Cluster {
    /// Returns this cluster as it is on a clone of its storage, which will be mounted at `storage`.
    /// It has a socket directory of its own, and nothing but that is removed with it.
    ///
    /// # Errors
    /// [`ClusterError`]: the socket directory cannot be made.
    pub fn on_clone(&self, storage: &Path, stop: &AtomicBool) -> Result<Self, ClusterError> {
        Self::clone_of(&self.spec, storage, &self.journal, stop)
    }

    /// Returns the cluster of `spec`, which somebody created, as [`Cluster::on_clone`] does.
    ///
    /// # Errors
    /// As [`Cluster::on_clone`].
    pub fn clone_of(
        spec: &ClusterSpec,
        storage: &Path,
        journal: &Journal,
        stop: &AtomicBool,
    ) -> Result<Self, ClusterError> {
        let name = spec.directory.file_name().unwrap_or_default();
        // A clone's own socket directory goes with it.
        let around = if spec.is_clone { spec.socket_base.parent() } else { None };
        let base = cluster_directory(around.unwrap_or(&spec.socket_base))
            .map_err(|e| ClusterError::Journal(JournalError::Random(e)))?;
        let spec = ClusterSpec {
            directory: storage.join(name),
            socket_base: base.clone(),
            // Two clones cannot listen at one port.
            connect: Connect::Socket,
            listen: None,
            is_clone: true,
            ..spec.clone()
        };
        let owner = Some(spec.account.clone());
        let steps = [(base, 0o711, None), (spec.socket_directory(), 0o700, owner)];
        let mut cluster = Self::new(spec, journal, Vec::new(), SOCKET_PORT)?;
        let mut performing = ExecContext { journal, stop, made: Vec::new() };
        let performed = steps.into_iter().try_for_each(|(path, mode, owner)| {
            let made = OwnedResource::Directory { path };
            performing.execute(&Step::MakeMarked { made, mode, owner }).map(drop)
        });
        cluster.made = performing.made;
        performed?;
        Ok(cluster)
    }
}
