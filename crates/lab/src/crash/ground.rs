//! The ground that a round stands on: a made storage and a cluster on it, whose baseline is durable.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pgdyno_host::facts;
use pgdyno_host::fault::{FaultError, PowerSwitch};
use pgdyno_host::postgres::cluster::cluster_directory;
use pgdyno_host::postgres::{Cluster, ClusterSpec, StopMode};
use pgdyno_host::storage::{MadeStack, Stack, Surroundings};
use pgdyno_host::{Journal, StorageDirectory, paths};
use pgdyno_model::experiment::Loading;
use pgdyno_model::facts::StorageFacts;
use pgdyno_model::units::Bytes;

use super::subject::Subject;
use crate::LabError;
use crate::dataset::{self, Filling};
use crate::progress::{Event, Progress, Silent};
use crate::run::execute;
use crate::workload;

/// The database that is crashed.
pub(super) const DATABASE: &str = "pgdyno";

/// Every transaction leaves one row here, named by its token.
const TOKENS: &str = "CREATE TABLE pgdyno_token (client int NOT NULL, sequence bigint NOT NULL, aid int NOT NULL, \
    tid int NOT NULL, bid int NOT NULL, delta int NOT NULL, PRIMARY KEY (client, sequence))";

/// What the tables held is taken back, and what a round added beside it.
const BEGIN_AGAIN: &str = "DROP INDEX IF EXISTS pgdyno_aim; TRUNCATE pgdyno_token; \
    UPDATE pgbench_accounts SET abalance = 0 WHERE abalance <> 0; \
    UPDATE pgbench_tellers SET tbalance = 0 WHERE tbalance <> 0; \
    UPDATE pgbench_branches SET bbalance = 0 WHERE bbalance <> 0";

/// A storage and a cluster on it.
pub(super) struct Ground {
    // Dropped in this order: what is dark is unmounted, then the server goes before what holds it.
    power: Power,
    pub(super) cluster: Cluster,
    stacks: Vec<MadeStack>,
    _directory: Option<StorageDirectory>,
    facts: StorageFacts,
}

/// The power of all its storages; none where one is not of a kind whose power can be cut.
struct Power {
    switches: Option<Vec<PowerSwitch>>,
    /// Whether it is cut and not given back.
    dark: bool,
}

impl Drop for Power {
    fn drop(&mut self) {
        if self.dark {
            // Nothing on a filesystem without power can be removed; unmounted it is gone.
            for switch in self.switches.iter().flatten() {
                let _ = switch.unmount();
            }
        }
    }
}

impl Ground {
    /// Makes storages and cluster, loads the tables.
    pub(super) fn make(
        subject: &Subject,
        journal: &Journal,
        progress: &dyn Progress,
        stop: &AtomicBool,
    ) -> Result<Self, LabError> {
        let working = |what: String| progress.event(&Event::Working { what, share: None });
        working(format!("crash: making storage and cluster for {}", subject.name));
        let asked = &subject.storages[&subject.storage];
        let names = std::iter::once(&subject.storage).chain(&asked.wal);
        let default = paths::default_storage_dir();
        let around =
            Surroundings { default_directory: &default, account: &subject.account, wipe: &subject.wipe };
        let (mut stacks, mut directory, mut facts) = (Vec::new(), None, None);
        for name in names {
            let mut storage = subject.storages[name].clone();
            if *name == subject.storage {
                storage.device = storage.device.overlaid(&subject.device);
            }
            let stack = Stack::plan(name, &storage, &around)?;
            if !stack.is_made() && directory.is_none() {
                directory = Some(StorageDirectory::open(storage.named_directory(), &subject.account)?);
            }
            let stack = stack.make(&subject.account, journal, stop)?;
            if facts.is_none() {
                let mut found = facts::fingerprint(name, &stack.path(), subject.serials)?;
                found.obtained = Some(stack.facts(subject.serials == facts::Serials::Kept)?);
                found.asked = Some(storage);
                facts = Some(found);
            }
            stacks.push(stack);
        }
        let fresh =
            |stack: &MadeStack| cluster_directory(&stack.path()).map_err(pgdyno_host::JournalError::Random);
        let Some((data, wal)) = stacks.split_first() else {
            unreachable!("a subject has a storage, of which a stack was planned");
        };
        let data_set = workload::load("tpcb-like", &[])?.data;
        let needed = dataset::room_needed(&data_set, subject.options.scale);
        let available = pgdyno_host::room(&data.path())?;
        // Half again for what load adds, and WAL.
        let needed = Bytes(needed.0 + needed.0 / 2 + (320 << 20));
        if available < needed {
            return Err(LabError::NoRoom {
                what: format!("TPC-B's tables at scale {} and a crash test's WAL", subject.options.scale),
                storage: subject.storage.clone(),
                directory: data.path(),
                needed,
                available,
            });
        }
        let mut spec = ClusterSpec::new(subject.install.clone(), fresh(data)?)?;
        spec.wal = wal.first().map(fresh).transpose()?;
        spec.initdb = subject.initdb();
        spec.settings = subject.server_settings();
        spec.connect = subject.connect;
        let cluster = Cluster::create(spec, journal, stop)?;
        let switches: Result<_, FaultError> = stacks.iter().map(PowerSwitch::of).collect();
        let power = Power { switches: switches.ok(), dark: false };
        let facts = facts.unwrap_or_default();
        let mut ground = Self { power, cluster, stacks, _directory: directory, facts };
        ground.cluster.start(stop)?;
        let mut client = ground.cluster.control("postgres")?;
        execute(&mut client, "make the database", &format!("CREATE DATABASE {DATABASE}"))?;
        let loading = Loading::default();
        let filling = Filling::new(&data_set, subject.options.scale, subject.options.seed, &loading);
        dataset::fill(&filling, &ground.cluster.control_target(DATABASE), &Silent, stop)?;
        let mut client = ground.cluster.control(DATABASE)?;
        execute(&mut client, "make the tokens' table", TOKENS)?;
        let there = "SELECT count(*) FROM pg_catalog.pg_available_extensions WHERE name = 'amcheck'";
        if crate::run::number(&mut client, "look for the extension amcheck", there)? > 0 {
            execute(&mut client, "make the extension amcheck", "CREATE EXTENSION amcheck")?;
        }
        Ok(ground)
    }

    /// What lies under PGDATA.
    pub(super) fn facts(&self) -> &StorageFacts {
        &self.facts
    }

    /// Brings the tables back to their beginning, and makes everything durable that a power loss could take: also the
    /// cluster's own files, which nobody has flushed.
    pub(super) fn begin_again(&mut self, stop: &AtomicBool) -> Result<(), LabError> {
        self.cluster.start(stop)?;
        let mut client = self.cluster.control(DATABASE)?;
        execute(&mut client, "bring the tables back to their beginning", BEGIN_AGAIN)?;
        execute(&mut client, "checkpoint before the round", "CHECKPOINT")?;
        for switch in self.power.switches.iter().flatten() {
            switch.make_durable()?;
        }
        Ok(())
    }

    /// Kills the server and cuts the power of its storages in the same moment.
    ///
    /// The server first, by signals that are not waited for: what is acknowledged after the cut was not lost by it.
    pub(super) fn cut_power(&mut self) -> Result<(), FaultError> {
        let Some(switches) = &self.power.switches else {
            let storage = self.facts.name.clone();
            let found = "it is not made by pgdyno on a file of its own".to_owned();
            return Err(FaultError::NotOurs { storage, found });
        };
        self.cluster.kill();
        self.power.dark = true;
        let cut: Result<Vec<()>, FaultError> = switches.iter().map(PowerSwitch::cut).collect();
        self.cluster.wait_dead();
        cut.map(drop)
    }

    /// Unmounts what is dark and mounts it again, which replays its journal.
    pub(super) fn power_on(&mut self) -> Result<(), FaultError> {
        if self.power.dark {
            let switches = self.power.switches.as_deref().unwrap_or_default();
            switches.iter().try_for_each(PowerSwitch::unmount)?;
            switches.iter().try_for_each(PowerSwitch::mount)?;
            self.power.dark = false;
        }
        Ok(())
    }

    /// Takes everything down and keeps nothing; what could not be.
    pub(super) fn take_down(self) -> Vec<String> {
        let Self { power, cluster, stacks, .. } = self;
        drop(power);
        let mut left: Vec<String> =
            cluster.remove().err().map(|e| LabError::from(e).in_words()).into_iter().collect();
        left.extend(stacks.into_iter().rev().flat_map(MadeStack::take_down));
        left
    }

    /// Ends the server and copies what is left: the images of made storages, unmounted, else PGDATA.
    pub(super) fn keep(&mut self, into: &Path) -> Result<(), FaultError> {
        self.cluster.stop(StopMode::Immediate);
        let Some(switches) = &self.power.switches else {
            return pgdyno_host::fault::keep(&[self.cluster.data()], into);
        };
        self.power.dark = true;
        for switch in switches {
            switch.unmount()?;
        }
        let images: Vec<PathBuf> = switches.iter().map(|s| s.image().to_owned()).collect();
        pgdyno_host::fault::keep(&images, into)
    }
}
