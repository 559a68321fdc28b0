//! Makes storages and clusters on them: for the trials of a run and for crash tests alike.
//!
//! Call [`Provisioner::storage`] for PGDATA and for WAL and tablespaces that lie elsewhere, then
//! [`Provisioner::cluster`] with the paths of what was made.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use pgdyno_exec::account::Account;
use pgdyno_exec::device::safety;
use pgdyno_exec::directory::StorageDirectory;
use pgdyno_exec::paths;
use pgdyno_experiment::footprint::RoomNeeded;
use pgdyno_facts as facts;
use pgdyno_facts::Serials;
use pgdyno_model::experiment::Connect;
use pgdyno_model::facts::StorageFacts;
use pgdyno_model::progress::{Activity, Notice};
use pgdyno_model::units::Bytes;
use pgdyno_model::{Advice, FailureKind, Storage};
use pgdyno_postgres::cluster::cluster_directory;
use pgdyno_postgres::{Cluster, ClusterSpec, Install};
use pgdyno_storage::{MountedStack, Stack, Surroundings, Wipe};
use postgres_protocol::escape::{escape_identifier, escape_literal};

use crate::BenchError;
use crate::context::Context;
use crate::sql::execute;

/// The database that holds the tables in every cluster of pgdyno's own.
pub const DATABASE: &str = "pgdyno";

/// The data need more room than there is.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot load {what} on storage `{storage}`: it takes about {needed} in {}, where {available} \
     are free",
    directory.display()
)]
pub struct NoRoom {
    /// The data sets that would lie there.
    what: String,
    storage: String,
    directory: PathBuf,
    /// Room that the data, the cluster and its WAL take.
    needed: Bytes,
    available: Bytes,
}

impl Advice for NoRoom {
    fn help(&self) -> Option<String> {
        let Self { storage, .. } = self;
        Some(format!(
            "lower `workload.scale`, free room, or name a larger place in \
             `storage.{storage}.directory`"
        ))
    }

    fn kind(&self) -> FailureKind {
        FailureKind::Input
    }
}

/// Checks that `storage` in `directory` has the room that is `needed`, where `available` is known.
pub fn check_room(
    needed: &RoomNeeded,
    storage: &str,
    directory: &Path,
    available: Option<Bytes>,
) -> Result<(), NoRoom> {
    let Some(available) = available.filter(|available| *available < needed.bytes) else {
        return Ok(());
    };
    Err(NoRoom {
        what: needed.data.clone(),
        storage: storage.to_owned(),
        directory: directory.to_owned(),
        needed: needed.bytes,
        available,
    })
}

/// A storage that stands.
#[allow(missing_docs, reason = "the names say it")]
pub struct ProvisionedStorage {
    pub stack: MountedStack,
    /// Facts of the storage.
    pub facts: StorageFacts,
    /// The directory of a storage that pgdyno did not make. Dropped after the stack.
    _directory: Option<StorageDirectory>,
}

/// A cluster to make.
#[allow(missing_docs, reason = "the names say it")]
pub struct ClusterRequest<'a> {
    pub install: Install,
    /// The path of the storage of PGDATA.
    pub data: &'a Path,
    /// The path of the storage of pg_wal; none: in PGDATA.
    pub wal: Option<PathBuf>,
    /// Storages of tablespaces and their paths.
    pub tablespaces: Vec<(String, PathBuf)>,
    pub initdb: Vec<String>,
    /// Settings that hold unless a treatment sets others.
    pub settings: BTreeMap<String, String>,
    /// Settings that the server has to accept, with every value that a treatment gives them.
    pub accepts: &'a [(String, String)],
    pub connect: Connect,
    /// The address on which the server listens for other hosts.
    pub listen: Option<IpAddr>,
}

/// Makes storages and clusters.
#[allow(missing_docs, reason = "the names say it")]
pub struct Provisioner<'a> {
    pub account: Account,
    pub wipe: Wipe,
    pub serials: Serials,
    pub context: Context<'a>,
}

impl Provisioner<'_> {
    /// Checks the directory of a storage that pgdyno does not make.
    ///
    /// # Errors
    /// The directory is missing or the server's account cannot use it.
    pub fn check_directory(&self, named: Option<&Path>) -> Result<(), BenchError> {
        StorageDirectory::open(named, &self.account)?;
        Ok(())
    }

    /// Makes storage `name` as `asked`, after checking that `needed` fits on it.
    ///
    /// # Errors
    /// The storage contradicts itself, is too small or unsafe to overwrite, or cannot be made.
    pub fn storage(
        &self,
        name: &str,
        asked: &Storage,
        needed: Option<&RoomNeeded>,
    ) -> Result<ProvisionedStorage, BenchError> {
        let default = paths::default_storage_dir();
        let around =
            Surroundings { default_directory: &default, account: &self.account, wipe: &self.wipe };
        let stack = Stack::plan(name, asked, &around)?;
        if let Some(needed) = needed {
            check_room(needed, name, &stack.path(), stack.size())?;
        }
        let directory = match stack.is_made() {
            true => {
                self.announce(name, asked, &stack)?;
                None
            }
            false => Some(StorageDirectory::open(asked.named_directory(), &self.account)?),
        };
        let stack = stack.make(&self.account, self.context.journal, self.context.stop)?;
        let obtained = stack.facts(self.keeps_serials())?;
        let mut facts =
            facts::fingerprint(name, &stack.path(), self.serials, asked.smart.as_ref())?;
        facts.obtained = Some(obtained);
        facts.asked = Some(asked.clone());
        Ok(ProvisionedStorage { stack, facts, _directory: directory })
    }

    /// Refuses a device that must not be overwritten, and reports what is on the others.
    fn announce(&self, name: &str, asked: &Storage, stack: &Stack) -> Result<(), BenchError> {
        self.context.begin(Activity::MakingStorage { storage: name.to_owned() });
        // Why a device must not be written to says more than its contents.
        if let Some(refusal) = stack.refusals().into_iter().next() {
            return Err(refusal.into());
        }
        for device in asked.devices() {
            let device = safety::describe(device, self.keeps_serials())?;
            self.context.note(Notice::OverwritesDevice { storage: name.to_owned(), device });
        }
        Ok(())
    }

    fn keeps_serials(&self) -> bool {
        self.serials == Serials::Kept
    }

    /// Returns the cluster `name` in `storage`, which will be a clone of the storage that the
    /// cluster was created on. The cluster's server does not run.
    ///
    /// # Errors
    /// The directory for the server's socket cannot be made.
    pub fn clone_of_cluster(
        &self,
        storage: &Path,
        name: &str,
        install: Install,
        settings: BTreeMap<String, String>,
    ) -> Result<Cluster, BenchError> {
        let mut spec = ClusterSpec::new(install, storage.join(name))?;
        spec.settings = settings;
        let Context { journal, stop, .. } = self.context;
        Ok(Cluster::clone_of(&spec, storage, journal, stop)?)
    }

    /// Makes a cluster with the database [`DATABASE`] and starts its server.
    ///
    /// # Errors
    /// initdb or the server fails, or the server refuses a setting.
    pub fn cluster(&self, request: ClusterRequest<'_>) -> Result<Cluster, BenchError> {
        let fresh = |path: &Path| {
            Ok::<_, BenchError>(
                cluster_directory(path).map_err(pgdyno_exec::journal::JournalError::Random)?,
            )
        };
        let mut spec = ClusterSpec::new(request.install, fresh(request.data)?)?;
        spec.wal = request.wal.as_deref().map(fresh).transpose()?;
        spec.tablespaces =
            request.tablespaces.iter().map(|(_, path)| fresh(path)).collect::<Result<_, _>>()?;
        spec.initdb = request.initdb;
        spec.settings = request.settings;
        spec.connect = request.connect;
        spec.listen = request.listen;
        let locations: Vec<_> =
            spec.tablespaces.iter().map(|path| ClusterSpec::location(path)).collect();
        let mut cluster = Cluster::create(spec, self.context.journal, self.context.stop)?;
        cluster.start(self.context.stop)?;
        cluster.check_settings(request.accepts)?;
        let mut client = cluster.control("postgres")?;
        for ((storage, _), location) in request.tablespaces.iter().zip(locations) {
            let location = escape_literal(&location.display().to_string());
            let sql = format!("CREATE TABLESPACE {} LOCATION {location}", tablespace(storage));
            execute(&mut client, &format!("make a tablespace on storage {storage}"), &sql)?;
        }
        execute(&mut client, "make the database", &format!("CREATE DATABASE {DATABASE}"))?;
        Ok(cluster)
    }
}

/// Returns the quoted name of the tablespace on storage `name`.
pub fn tablespace(name: &str) -> String {
    escape_identifier(&format!("pgdyno_{name}"))
}
