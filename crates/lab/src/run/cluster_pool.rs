//! The servers of a run: one for each [`ClusterKey`], at most one of them running.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::LabError;
use pgdyno_emulated_disk::DiskServer;
use pgdyno_exec::directory::{room, too_little_room};
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::clusters::{Build, ClusterKey};
use pgdyno_experiment::footprint::{self, RoomNeeded};
use pgdyno_experiment::settings::{base_settings, refuse_twins};
use pgdyno_model::Failure;
use pgdyno_model::FailureKind;
use pgdyno_model::Treatment;
use pgdyno_model::facts::StorageFacts;
use pgdyno_model::progress::{Activity, Notice, Warning};
use pgdyno_model::storage::Backing;
use pgdyno_model::units::Bytes;
use pgdyno_postgres as postgres;
use pgdyno_postgres::Install;

use super::external_server::ExternalSchema;
use super::prewarm::check_prewarm;
use super::server::Server;
use super::storage_pool::StoragePool;
use super::templates::Templates;
use pgdyno_provision::BenchError;
use pgdyno_provision::Context;
use pgdyno_provision::provisioner::{ClusterRequest, Provisioner, check_room};

/// Size of a WAL segment, unless initdb was told otherwise. A server needs room for a whole one.
const WAL_SEGMENT: Bytes = Bytes(16 << 20);

/// All servers of a run, and the storages that they lie on.
pub(super) struct ClusterPool<'a> {
    resolved: &'a ResolvedExperiment,
    provisioner: Provisioner<'a>,
    // Dropped in this order: servers before the storages that hold them.
    slots: BTreeMap<ClusterKey, Slot>,
    installs: BTreeMap<Build, Install>,
    templates: Templates,
    /// The storages; none where the servers are external.
    storages: Option<StoragePool<'a>>,
}

#[derive(Default)]
struct Slot {
    /// The server; none while its storage is taken down for another one.
    server: Option<Server>,
    /// Whether the server's data set is loaded.
    is_loaded: bool,
    /// Errors of loading, by the settings that the server had. With other settings it may succeed.
    failed: BTreeMap<BTreeMap<String, String>, Failure>,
}

impl Slot {
    fn new(server: Server) -> Self {
        Self { server: Some(server), ..Self::default() }
    }

    /// Returns whether loading failed, but was not tried with `settings`.
    fn may_load_with(&self, settings: &BTreeMap<String, String>) -> bool {
        !self.is_loaded && !self.failed.is_empty() && !self.failed.contains_key(settings)
    }

    /// Removes pgdyno's own cluster, if there is one.
    fn remove_cluster(&mut self) -> Result<(), BenchError> {
        self.is_loaded = false;
        match self.server.take() {
            Some(Server::Managed(cluster)) => Ok(cluster.remove()?),
            Some(Server::External(_)) | None => Ok(()),
        }
    }
}

/// A server that is ready for a trial.
pub(super) struct ReadyServer<'a> {
    pub(super) server: &'a mut Server,
    storages: Option<&'a StoragePool<'a>>,
    lies_on: BTreeSet<&'a str>,
    /// The disk under pg_wal, if commits are judged by its flushes.
    pub(super) accounted: Option<DiskServer>,
}

impl ReadyServer<'_> {
    /// Trims the storages that the server lies on, if the experiment asks for that.
    pub(super) fn trim(&self) -> Result<(), BenchError> {
        let Some(storages) = self.storages else { return Ok(()) };
        self.lies_on.iter().try_for_each(|name| storages.trim(name))
    }
}

impl<'a> ClusterPool<'a> {
    /// Makes every storage and cluster that the plan needs. Loads no data yet.
    ///
    /// Each cluster judges every setting that a treatment gives it. A storage that cannot be made
    /// costs the treatments on it.
    ///
    /// # Errors
    /// No storage can be made, or the experiment itself is wrong.
    pub(super) fn make(
        resolved: &'a ResolvedExperiment,
        installs: BTreeMap<Build, Install>,
        storages: StoragePool<'a>,
        provisioner: Provisioner<'a>,
    ) -> Result<Self, BenchError> {
        let mut pool = Self {
            resolved,
            provisioner,
            slots: BTreeMap::new(),
            installs,
            templates: Templates::default(),
            storages: Some(storages),
        };
        let mut room = SharedRoom::new(resolved);
        let mut first_error = None;
        for storage in resolved.storages() {
            if let Err(e) = pool.ensure_mounted(storage) {
                if e.kind() == FailureKind::Input || pool.provisioner.context.is_stopped() {
                    return Err(e);
                }
                pool.give_up(storage, &e)?;
                first_error.get_or_insert(e);
                continue;
            }
            for name in resolved.lies_on(storage) {
                room.check(name, &pool.path(name)?, !is_own_filesystem(resolved, name))?;
            }
            let on_it = |(key, _): &(ClusterKey, _)| key.storage == storage;
            for (key, _) in resolved.clusters().into_iter().filter(on_it) {
                let server = pool.cluster(&key)?;
                pool.slots.insert(key, Slot::new(server));
            }
        }
        match first_error {
            Some(e) if pool.slots.is_empty() => Err(e),
            _ => Ok(pool),
        }
    }

    /// Connects to each external server once for each data set, each in a schema of its own.
    ///
    /// # Errors
    /// A server cannot be reached, its schema cannot be used, or it refuses a setting.
    pub(super) fn connect_external(
        resolved: &'a ResolvedExperiment,
        provisioner: Provisioner<'a>,
    ) -> Result<Self, BenchError> {
        let context = provisioner.context;
        let mut pool = Self {
            resolved,
            provisioner,
            slots: BTreeMap::new(),
            installs: BTreeMap::new(),
            templates: Templates::default(),
            storages: None,
        };
        let asked = &resolved.experiment.postgres;
        let schema = asked.schema.as_deref();
        // Data sets are numbered on each server, by its address: several names may lead to one.
        let mut numbers: BTreeMap<Option<String>, u32> = BTreeMap::new();
        for (key, _) in resolved.clusters() {
            let Some(dsn) = asked.dsn_of(key.server.as_deref()) else { continue };
            let number = numbers.entry(postgres::external::server_name(dsn.reveal())).or_default();
            *number += 1;
            let mut external = ExternalSchema::connect(dsn, schema, *number, context.journal)?;
            let mut notes = external.claim_schema()?;
            let treatments = resolved.plan.treatments.iter();
            let treatments: Vec<&Treatment> =
                treatments.filter(|t| resolved.key(t) == key).collect();
            let settings: Vec<&BTreeMap<String, String>> =
                treatments.iter().map(|t| &t.settings).collect();
            let (more, read) = external.check_settings(&settings, asked, dsn, context.journal)?;
            notes.extend(more);
            let read =
                |name: &str, value: &str| read.get(&(name.to_owned(), value.to_owned())).cloned();
            refuse_twins(&treatments, read, "the server")?;
            for note in notes {
                context.note(Notice::ExternalServer(note));
            }
            let server = Server::External(Box::new(external));
            if resolved.experiment.between.prewarm {
                check_prewarm(&server)?;
            }
            pool.slots.insert(key, Slot::new(server));
        }
        Ok(pool)
    }

    fn give_up(&mut self, storage: &str, error: &BenchError) -> Result<(), BenchError> {
        let (reason, name) = (error.failure(), storage.to_owned());
        self.provisioner.context.warn(match error.kind() == FailureKind::Unavailable {
            true => Warning::StorageUnavailable { storage: name, reason },
            false => Warning::StorageFailed { storage: name, reason },
        });
        self.storages_mut()?.give_up(storage, error);
        Ok(())
    }

    /// Returns whether this machine lacks something that a cluster on storage `name` needs.
    pub(super) fn is_unavailable(&self, name: &str) -> bool {
        let Some(storages) = &self.storages else { return false };
        self.resolved.lies_on(name).into_iter().any(|one| storages.is_unavailable(one))
    }

    fn storages_mut(&mut self) -> Result<&mut StoragePool<'a>, LabError> {
        self.storages.as_mut().ok_or(LabError::External)
    }

    /// Makes storage `name` and the storages that its clusters' WAL and tablespaces lie on, unless
    /// they stand. First takes down the storages that share a device, with their clusters.
    pub(super) fn ensure_mounted(&mut self, name: &str) -> Result<(), BenchError> {
        let (resolved, context) = (self.resolved, self.provisioner.context);
        let standing = self.storages_mut()?.standing();
        let in_the_way = |other: &&str| standing.contains(*other);
        for other in resolved.excluded_by(name).into_iter().filter(in_the_way) {
            context.begin(Activity::TakingDownStorage { storage: other.to_owned() });
            let on_it = |key: &ClusterKey| resolved.lies_on(&key.storage).contains(other);
            for (_, slot) in self.slots.iter_mut().filter(|(key, _)| on_it(key)) {
                if let Err(e) = slot.remove_cluster() {
                    // Its device may be gone; the storage itself is taken down next.
                    context.warn(Warning::NotTakenDown(e.message()));
                }
            }
            let left = self.storages_mut()?.take_down(other);
            context.warn_left(left);
        }
        let Some(storages) = &mut self.storages else { return Ok(()) };
        for one in resolved.lies_on(name) {
            storages.ensure_mounted(one, &self.provisioner)?;
        }
        Ok(())
    }

    /// Makes the cluster of `key`. Its server has judged its settings and is stopped.
    fn cluster(&mut self, key: &ClusterKey) -> Result<Server, BenchError> {
        let (resolved, context) = (self.resolved, self.provisioner.context);
        let install = self.installs[&key.build].clone();
        let (version, storage) = (install.version.clone(), key.storage.clone());
        context.begin(Activity::MakingCluster { version, storage });
        let asked = &resolved.experiment.storage[&key.storage];
        let wal = asked.wal.as_deref().map(|name| self.path(name)).transpose()?;
        let tablespaces = asked.tablespaces.keys().map(|name| Ok((name.clone(), self.path(name)?)));
        let tablespaces = tablespaces.collect::<Result<_, BenchError>>()?;
        let cluster = self.provisioner.cluster(ClusterRequest {
            install,
            data: &self.path(&key.storage)?,
            wal,
            tablespaces,
            initdb: resolved.experiment.postgres.initdb.clone(),
            settings: base_settings(resolved),
            accepts: &resolved.settings_of(key),
            connect: resolved.experiment.postgres.connect,
            listen: resolved.experiment.postgres.listen,
        })?;
        let mut server = Server::Managed(Box::new(cluster));
        if resolved.experiment.between.prewarm {
            check_prewarm(&server)?;
        }
        server.rest()?;
        Ok(server)
    }

    /// Returns the facts of every storage.
    pub(super) fn facts(&self) -> Vec<StorageFacts> {
        let Some(storages) = &self.storages else { return Vec::new() };
        self.resolved.storages().into_iter().map(|name| storages.facts(name)).collect()
    }

    /// Returns where storage `name` is mounted.
    pub(super) fn path(&self, name: &str) -> Result<PathBuf, LabError> {
        match &self.storages {
            Some(storages) => storages.path(name),
            None => Err(LabError::External),
        }
    }

    /// Discards the free blocks of storage `name`.
    pub(super) fn discard(&self, name: &str) -> Result<(), BenchError> {
        self.storages.as_ref().map_or(Ok(()), |storages| storages.discard(name))
    }

    /// Returns the storages that can be made, starting with those that stand.
    pub(super) fn usable_storages(&self) -> Vec<String> {
        let Some(storages) = &self.storages else { return Vec::new() };
        let standing = storages.standing();
        let all = self.resolved.storages().into_iter().filter(|name| !storages.is_broken(name));
        let (mut first, then): (Vec<String>, Vec<String>) =
            all.map(str::to_owned).partition(|name| standing.contains(name));
        first.extend(then);
        first
    }

    /// Stops every server that is pgdyno's own.
    pub(super) fn stop_all(&mut self) -> Result<(), BenchError> {
        self.stop_others(None)
    }

    fn stop_others(&mut self, key: Option<&ClusterKey>) -> Result<(), BenchError> {
        let others = self.slots.iter_mut().filter(|(k, _)| Some(*k) != key);
        others.filter_map(|(_, slot)| slot.server.as_mut()).try_for_each(Server::rest)
    }

    /// Returns the server for `treatment`. It is the only one running, its data are loaded, and the
    /// devices of its storage are set.
    pub(super) fn ready(
        &mut self,
        treatment: &'a Treatment,
    ) -> Result<ReadyServer<'_>, BenchError> {
        let (resolved, context) = (self.resolved, self.provisioner.context);
        let key = resolved.key(treatment);
        self.stop_others(Some(&key))?;
        if self.storages.is_some() {
            self.ensure_mounted(&key.storage)?;
        }
        if let Some(storages) = &mut self.storages {
            let device =
                resolved.experiment.storage[&key.storage].device.overlaid(&treatment.device);
            storages.set(&key.storage, &device, &self.provisioner)?;
            if let Some(slot) = self.slots.get_mut(&key)
                && slot.may_load_with(&treatment.settings)
            {
                slot.remove_cluster()?;
            }
            if self.slots.get(&key).is_none_or(|slot| slot.server.is_none()) {
                let server = self.cluster(&key)?;
                self.slots.entry(key.clone()).or_default().server = Some(server);
            }
        }
        let Some(Slot { server: Some(server), is_loaded, failed }) = self.slots.get_mut(&key)
        else {
            unreachable!("a treatment's cluster was made just now, or its server before any trial");
        };
        // Not with the settings of another treatment: the server may not start with those.
        if let Server::Managed(cluster) = server
            && !cluster.is_running()
        {
            cluster.apply(&treatment.settings, context.stop)?;
        }
        if !*is_loaded {
            // A server that is not pgdyno's own is not emptied for another attempt.
            let any = failed.values().next().filter(|_| self.storages.is_none());
            if let Some(reason) = failed.get(&treatment.settings).or(any) {
                let (data, reason) = (key.data.to_string(), reason.clone());
                return Err(LabError::NotLoaded { data, reason }.into());
            }
            if let Err(e) = self.templates.fill(server, resolved, treatment, context) {
                failed.insert(treatment.settings.clone(), e.failure());
                return Err(e);
            }
            *is_loaded = true;
        }
        let lies_on = resolved.lies_on(&treatment.storage);
        let storages = self.storages.as_ref();
        let asked = resolved.experiment.storage.get(&treatment.storage);
        let wal = asked.filter(|asked| asked.flush_accounting).map(|asked| asked.wal.as_ref());
        let wal = wal.map(|wal| wal.unwrap_or(&treatment.storage));
        let accounted = wal.and_then(|name| storages?.disk(name));
        Ok(ReadyServer { server, storages, lies_on, accounted })
    }

    /// Adds to `failure` of a trial of `treatment` which directory is full, if one is. The server
    /// itself may be unable to log it: its log lies beside its data.
    pub(super) fn name_full_directory(&self, treatment: &Treatment, failure: &mut Failure) {
        let lies_on = self.resolved.lies_on(&treatment.storage);
        // None of an external server's directories is known.
        let full = lies_on.into_iter().filter_map(|name| self.path(name).ok()).find_map(|at| {
            let free = too_little_room(&at, WAL_SEGMENT).ok().flatten()?;
            Some((at, free))
        });
        if let Some((at, free)) = full {
            let _ = write!(failure.message, " ({} is full: {free} are free)", at.display());
        }
    }

    /// Takes pgdyno's own servers and every storage down, to be made again later. Returns a line
    /// for each that could not be taken down.
    pub(super) fn clear(&mut self) -> Vec<String> {
        let failed = |slot: &mut Slot| slot.remove_cluster().err();
        let mut left: Vec<String> =
            self.slots.values_mut().filter_map(failed).map(|e| e.message()).collect();
        left.extend(self.storages.iter_mut().flat_map(StoragePool::take_all_down));
        left
    }

    /// Takes every server and every storage down. Returns a line for each that could not be taken
    /// down.
    pub(super) fn take_down(self, context: Context<'_>) -> Vec<String> {
        let Self { slots, templates, storages, .. } = self;
        let mut left = Vec::new();
        drop(templates);
        for server in slots.into_values().filter_map(|slot| slot.server) {
            match server {
                Server::Managed(cluster) => {
                    left.extend(cluster.remove().err().map(|e| BenchError::from(e).message()));
                }
                Server::External(external) => left.extend(external.release(context)),
            }
        }
        left.extend(storages.into_iter().flat_map(|mut storages| storages.take_all_down()));
        left
    }
}

/// Returns whether storage `name` is a filesystem that pgdyno makes.
fn is_own_filesystem(resolved: &ResolvedExperiment, name: &str) -> bool {
    !matches!(resolved.experiment.storage[name].backing, Backing::Directory(_))
}

/// Room needed on filesystems that several storages may share.
struct SharedRoom {
    needed: BTreeMap<String, RoomNeeded>,
    /// Bytes needed so far, by the device number of a shared filesystem.
    on_device: BTreeMap<u64, u64>,
    checked: BTreeSet<String>,
}

impl SharedRoom {
    fn new(resolved: &ResolvedExperiment) -> Self {
        Self {
            needed: footprint::room(resolved),
            on_device: BTreeMap::new(),
            checked: BTreeSet::new(),
        }
    }

    /// Checks that the data of storage `name` fit in `directory`. In a `shared` filesystem the
    /// storages that were checked before count too.
    fn check(&mut self, name: &str, directory: &Path, shared: bool) -> Result<(), BenchError> {
        let Some(mut needed) = self.needed.get(name).cloned() else { return Ok(()) };
        if !self.checked.insert(name.to_owned()) {
            return Ok(());
        }
        if shared {
            // A directory that was just opened can be asked; if not, it counts by itself.
            let device = std::fs::metadata(directory).map_or(0, |m| m.dev());
            let total = self.on_device.entry(device).or_default();
            *total = total.saturating_add(needed.bytes.0);
            needed.bytes = Bytes(*total);
        }
        Ok(check_room(&needed, name, directory, room(directory)?)?)
    }
}
