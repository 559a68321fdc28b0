//! The ground that a round stands on: a made storage and a cluster on it, whose baseline is
//! durable.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pgdyno_host::facts;
use pgdyno_host::fault::PowerSwitch;
use pgdyno_host::postgres::cluster::cluster_directory;
use pgdyno_host::postgres::{Cluster, ClusterSpec, StopMode};
use pgdyno_host::storage::emulated::{Control, Cut};
use pgdyno_host::storage::{MadeStack, Stack, Surroundings, flushes_completed};
use pgdyno_host::{Journal, Step, StorageDirectory, paths};
use pgdyno_model::experiment::Loading;
use pgdyno_model::facts::StorageFacts;
use pgdyno_model::units::Bytes;

use super::subject::Subject;
use crate::LabError;
use crate::run::execute;
use pgdyno_dataset::workload;
use pgdyno_dataset::{self as dataset, Filling};
use pgdyno_model::progress::{Event, Progress, Silent};

/// The database that is crashed.
pub(super) const DATABASE: &str = "pgdyno";

/// Extensions of PostgreSQL's own that verification asks, where the installation has them.
const EXTENSIONS: [&str; 3] = ["amcheck", "pageinspect", "pg_visibility"];

/// Every transaction leaves one row here, named by its token.
const TOKENS: &str = "CREATE TABLE pgdyno_token (client int NOT NULL, sequence bigint NOT NULL, aid int NOT NULL, \
    tid int NOT NULL, bid int NOT NULL, delta int NOT NULL, PRIMARY KEY (client, sequence))";

/// What the tables held is taken back, and what a round added beside it.
const BEGIN_AGAIN: &str = "DROP INDEX IF EXISTS pgdyno_aim; TRUNCATE pgdyno_token; \
    UPDATE pgbench_accounts SET abalance = 0 WHERE abalance <> 0; \
    UPDATE pgbench_tellers SET tbalance = 0 WHERE tbalance <> 0; \
    UPDATE pgbench_branches SET bbalance = 0 WHERE bbalance <> 0";

/// What emulated disks say of the power cut that they all had.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiskCut {
    /// When it was.
    pub(super) at: Instant,
    /// When the last flush before it, of the disk that WAL lies on, was acknowledged.
    pub(super) last_flush: Option<Instant>,
    /// How long a flush took at most since the baseline.
    pub(super) longest_flush: Duration,
    /// The share of what that disk had in its cache that the cut took.
    pub(super) cache_lost: f64,
}

/// What cuts the power of a ground's storages.
pub(super) struct Switches {
    filesystems: Vec<PowerSwitch>,
    disks: Vec<Control>,
}

/// A storage and a cluster on it. Dropping it takes both down.
pub(super) struct Ground {
    /// None once it was taken down.
    cluster: Option<Cluster>,
    stacks: Vec<MadeStack>,
    _directory: Option<StorageDirectory>,
    facts: StorageFacts,
    /// Whether its storages' power is cut, or they are not mounted.
    dark: bool,
}

impl Drop for Ground {
    fn drop(&mut self) {
        // What fails here stays in the journal for the next start's sweep.
        let _ = self.remove();
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
        let around = Surroundings {
            default_directory: &default,
            account: &subject.account,
            wipe: &subject.wipe,
        };
        let (mut stacks, mut directory, mut facts) = (Vec::new(), None, None);
        for name in names {
            let mut storage = subject.storages[name].clone();
            if *name == subject.storage {
                storage.device = storage.device.overlaid(&subject.device);
            }
            let stack = Stack::plan(name, &storage, &around)?;
            if !stack.is_made() && directory.is_none() {
                directory =
                    Some(StorageDirectory::open(storage.named_directory(), &subject.account)?);
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
        let fresh = |stack: &MadeStack| {
            cluster_directory(&stack.path()).map_err(pgdyno_host::JournalError::Random)
        };
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
                what: format!(
                    "TPC-B's tables at scale {} and a crash test's WAL",
                    subject.options.scale
                ),
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
        let facts = facts.unwrap_or_default();
        let mut ground =
            Self { cluster: Some(cluster), stacks, _directory: directory, facts, dark: false };
        let cluster = ground.cluster();
        cluster.start(stop)?;
        let mut client = cluster.control("postgres")?;
        execute(&mut client, "make the database", &format!("CREATE DATABASE {DATABASE}"))?;
        let loading = Loading::default();
        let filling =
            Filling::new(&data_set, subject.options.scale, subject.options.seed, &loading);
        dataset::fill(&filling, &cluster.control_target(DATABASE), &Silent, stop)?;
        let mut client = cluster.control(DATABASE)?;
        execute(&mut client, "make the tokens' table", TOKENS)?;
        for name in EXTENSIONS {
            let there = format!(
                "SELECT count(*) FROM pg_catalog.pg_available_extensions WHERE name = '{name}'"
            );
            if crate::run::number(&mut client, &format!("look for the extension {name}"), &there)?
                > 0
            {
                execute(
                    &mut client,
                    &format!("make the extension {name}"),
                    &format!("CREATE EXTENSION {name}"),
                )?;
            }
        }
        Ok(ground)
    }

    /// What lies under PGDATA.
    pub(super) fn facts(&self) -> &StorageFacts {
        &self.facts
    }

    /// Its server.
    pub(super) fn cluster(&mut self) -> &mut Cluster {
        match &mut self.cluster {
            Some(cluster) => cluster,
            None => unreachable!("a ground that was taken down is given away with that"),
        }
    }

    /// Connections to its emulated disks, in the order of the storages: PGDATA's first.
    pub(super) fn disks(&self) -> Result<Vec<Control>, LabError> {
        let disks = self.stacks.iter().flat_map(MadeStack::disks);
        disks.map(|disk| disk.control().map_err(|e| self.refused(&e))).collect()
    }

    /// Flushes that its storages' devices have completed since they were made (count); none where
    /// one is no device of its own, or counts none.
    pub(super) fn flushes(&self) -> Option<u64> {
        let of = |stack: &MadeStack| match stack.disks().as_slice() {
            [] if stack.stack().is_made() => flushes_completed(&stack.path()),
            [] => None,
            disks => {
                let counts = disks.iter().map(|disk| {
                    Some(disk.control().ok()?.status().ok()?.counters.acknowledged_flushes)
                });
                counts.sum()
            }
        };
        self.stacks.iter().map(of).sum()
    }

    /// The last power cut of its emulated disks; none where a storage stands on none, or keeps its
    /// power.
    pub(super) fn last_cut(&self) -> Result<Option<DiskCut>, LabError> {
        let mut cut: Option<DiskCut> = None;
        for mut disk in self.disks()? {
            let status = disk.status().map_err(|e| self.refused(&e))?;
            let Some(facts) = status.cut.filter(|_| !status.powered) else { continue };
            let Some(at) = facts.at.to_instant() else { continue };
            let last_flush =
                facts.flushes.acknowledged.and_then(|flush| flush.completed.to_instant());
            let longest_flush = Duration::from_nanos(facts.flushes.longest_ns);
            let cache_lost = 1.0 - facts.survives;
            // The power goes when the first loses it. WAL lies on the last, whose flushes commits
            // wait for.
            cut = Some(match cut {
                Some(first) => DiskCut {
                    at: first.at.min(at),
                    last_flush,
                    longest_flush: first.longest_flush.max(longest_flush),
                    cache_lost,
                },
                None => DiskCut { at, last_flush, longest_flush, cache_lost },
            });
        }
        Ok(cut)
    }

    fn refused(&self, error: &dyn std::error::Error) -> LabError {
        LabError::Storage { found: format!("storage `{}`: {error}", self.facts.name) }
    }

    /// Brings the tables back to their beginning, and makes everything durable that a power loss
    /// could take: also the cluster's own files, which nobody has flushed.
    pub(super) fn begin_again(&mut self, stop: &AtomicBool) -> Result<(), LabError> {
        let cluster = self.cluster();
        cluster.start(stop)?;
        let mut client = cluster.control(DATABASE)?;
        execute(&mut client, "bring the tables back to their beginning", BEGIN_AGAIN)?;
        execute(&mut client, "checkpoint before the round", "CHECKPOINT")?;
        for stack in self.stacks.iter().filter(|stack| stack.stack().is_made()) {
            pgdyno_host::fault::make_durable(&stack.path())?;
        }
        for mut disk in self.disks()? {
            disk.begin_baseline().map_err(|e| self.refused(&e))?;
        }
        Ok(())
    }

    /// Cuts the power of its storages and kills the server in the same moment; of what an emulated
    /// disk holds in its cache the share `survives` is on the medium all the same. Returns when the
    /// cut began.
    ///
    /// The power first: of a server that was killed before, a flush could still complete that
    /// nobody had been told of, and whether the last flush was done would not show. What a server
    /// that waits for flushes acknowledges after the cut was made durable before it.
    pub(super) fn cut_power(&mut self, survives: f64) -> Result<Instant, LabError> {
        let switches = self.switches()?;
        self.cut_power_by(switches, survives)
    }

    /// What cuts the power of its storages. Looked for before anything is cut: what cannot be is
    /// the user's mistake.
    pub(super) fn switches(&self) -> Result<Switches, LabError> {
        let filesystems = self.stacks.iter().filter(|stack| stack.disks().is_empty());
        let filesystems = filesystems.map(PowerSwitch::of).collect::<Result<_, _>>()?;
        Ok(Switches { filesystems, disks: self.disks()? })
    }

    /// Like [`Self::cut_power`], with the switches in hand, so that less time passes before the
    /// cut.
    pub(super) fn cut_power_by(
        &mut self,
        switches: Switches,
        survives: f64,
    ) -> Result<Instant, LabError> {
        self.dark = true;
        let at = Instant::now();
        let mut cut: Result<(), LabError> = Ok(());
        for mut disk in switches.disks {
            let cut_disk = disk.cut(&Cut { survives, tear: None }).map_err(|e| self.refused(&e));
            cut = cut.and(cut_disk.map(drop));
        }
        for switch in &switches.filesystems {
            cut = cut.and(switch.cut().map_err(LabError::from));
        }
        self.cluster().kill();
        self.cluster().wait_dead();
        cut.map(|()| at)
    }

    /// Unmounts what is dark, gives disks power again and mounts, whereby journals are replayed.
    pub(super) fn power_on(&mut self, stop: &AtomicBool) -> Result<(), LabError> {
        if !self.dark {
            return Ok(());
        }
        for stack in &mut self.stacks {
            if stack.disks().is_empty() {
                stack.unmount()?;
                stack.mount(stop)?;
            } else {
                stack.power_cycle(stop)?;
            }
        }
        self.dark = false;
        Ok(())
    }

    /// Takes everything down and keeps nothing; what could not be.
    pub(super) fn take_down(mut self) -> Vec<String> {
        self.remove()
    }

    fn remove(&mut self) -> Vec<String> {
        let Some(mut cluster) = self.cluster.take() else { return Vec::new() };
        let mut left = Vec::new();
        if self.dark {
            // Nothing on a filesystem without power can be removed; unmounted it is gone.
            cluster.wait_dead();
            left.extend(
                self.stacks
                    .iter_mut()
                    .filter_map(|s| s.unmount().err())
                    .map(|e| LabError::from(e).in_words()),
            );
        }
        left.extend(cluster.remove().err().map(|e| LabError::from(e).in_words()));
        left.extend(
            std::mem::take(&mut self.stacks).into_iter().rev().flat_map(MadeStack::take_down),
        );
        left
    }

    /// Ends the server and copies what is left: the images of made storages, unmounted, else
    /// PGDATA.
    pub(super) fn keep(&mut self, into: &Path) -> Result<(), LabError> {
        let cluster = self.cluster();
        cluster.stop(StopMode::Immediate);
        let data = cluster.data();
        let mut images = Vec::new();
        for stack in self.stacks.iter().filter(|stack| stack.stack().is_made()) {
            images.extend(
                stack.disks().iter().map(pgdyno_host::storage::emulated::DiskServer::image),
            );
            if stack.disks().is_empty() {
                images.extend(loop_files(stack));
            }
        }
        if images.is_empty() {
            return Ok(pgdyno_host::fault::keep(&[(data, "data".into())], into)?);
        }
        if !self.dark {
            self.dark = true;
            self.stacks.iter_mut().try_for_each(MadeStack::unmount)?;
        }
        // PGDATA's first, then that of pg_wal.
        let named = (0..).zip(images).map(|(n, image)| (image, format!("image-{n}")));
        Ok(pgdyno_host::fault::keep(&named.collect::<Vec<_>>(), into)?)
    }
}

/// The files that a stack's loop devices lie over.
fn loop_files(stack: &MadeStack) -> Vec<PathBuf> {
    let steps = stack.stack().steps().into_iter();
    let image = |step| if let Step::AttachLoop(device) = step { Some(device.image) } else { None };
    steps.filter_map(image).collect()
}
