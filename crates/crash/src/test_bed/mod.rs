//! The test bed that a round stands on: a made storage and a cluster on it, whose baseline is
//! durable.

mod replica;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pgdyno_dataset::BulkLoad;
use pgdyno_dataset::workload::DataSet;
use pgdyno_durability::{Objects, Observed, Unseen};
use pgdyno_emulated_disk::states::State;
use pgdyno_emulated_disk::{Control, Cut, DiskServer};
use pgdyno_exec::Step;
use pgdyno_experiment::footprint::RoomNeeded;
use pgdyno_model::crash::FilesystemRecovery;
use pgdyno_model::experiment::Loading;
use pgdyno_model::facts::StorageFacts;
use pgdyno_model::progress::{Activity, Silent};
use pgdyno_model::storage::FilesystemChoice;
use pgdyno_model::units::Bytes;
use pgdyno_postgres::{Cluster, StopMode};
use pgdyno_storage::fault::PowerSwitch;
use pgdyno_storage::{MountedStack, flushes_completed};

use super::error::CrashError;
use super::round_plan::ms;
use super::subject::Subject;
use super::verify::census;
use super::workload::{CrashLoad, TOKENS};
use pgdyno_provision::provisioner::{
    ClusterRequest, DATABASE, ProvisionedStorage, Provisioner, check_room,
};
use pgdyno_provision::sql::{execute, query_number};
use pgdyno_provision::{BenchError, Context};

/// Extensions of PostgreSQL's own that verification asks, where the installation has them.
const EXTENSIONS: [&str; 3] = [AMCHECK, "pageinspect", "pg_visibility"];
/// The one that the other databases have, too.
const AMCHECK: &str = "amcheck";

/// Takes back what every load leaves: tokens, and the index that a round built.
const RESET_TOKENS: &str = "DROP INDEX IF EXISTS pgdyno_aim; TRUNCATE pgdyno_token";

/// The power cut that all emulated disks had, by their own report.
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

/// Switches that cut the power of a test bed's storages.
pub(super) struct Switches {
    filesystems: Vec<PowerSwitch>,
    disks: Vec<Control>,
}

/// A storage and a cluster on it. Dropping it takes both down.
pub(super) struct TestBed {
    /// None once it was taken down.
    cluster: Option<Cluster>,
    /// The storage of PGDATA, then that of pg_wal where it has its own.
    storages: Vec<ProvisionedStorage>,
    facts: StorageFacts,
    load: &'static CrashLoad,
    /// The objects of all its databases.
    objects: Observed<BTreeMap<String, Objects>>,
    /// Whether its storages' power is cut, or they are not mounted.
    powered_off: bool,
    /// How long each storage's mount after the last power cut since the baseline took; empty
    /// without a cut.
    mounts: Vec<Duration>,
    /// The directory of the disk whose recording is shown; none before one was made.
    recorded: Option<PathBuf>,
}

impl Drop for TestBed {
    fn drop(&mut self) {
        // What fails here stays in the journal for the next start's sweep.
        let _ = self.remove();
    }
}

impl TestBed {
    /// Makes storages and cluster of `subject` and loads the tables.
    ///
    /// # Errors
    /// A storage or the cluster cannot be made, or there is too little room.
    pub(super) fn make(subject: &Subject, context: Context<'_>) -> Result<Self, BenchError> {
        context.begin(Activity::MakingTestBed { subject: subject.name.clone() });
        let provisioner = provisioner(subject, context);
        let asked = &subject.storages[&subject.storage];
        let mut data = asked.clone();
        data.device = data.device.overlaid(&subject.device);
        let data = provisioner.storage(&subject.storage, &data, None)?;
        let wal = asked.wal.as_ref();
        let wal = wal.map(|name| provisioner.storage(name, &subject.storages[name], None));
        let wal = wal.transpose()?;
        let data_path = data.stack.path();
        let data_set = subject.load().workload()?.data;
        let available = pgdyno_exec::directory::room(&data_path)?;
        check_room(&Self::room_needed(subject)?, &subject.storage, &data_path, available)?;
        let cluster = provisioner.cluster(ClusterRequest {
            install: subject.install.clone(),
            data: &data_path,
            wal: wal.as_ref().map(|storage| storage.stack.path()),
            tablespaces: Vec::new(),
            initdb: subject.initdb(),
            settings: subject.server_settings(),
            accepts: &[],
            connect: subject.connect,
            listen: None,
        })?;
        let mut bed = Self {
            cluster: Some(cluster),
            facts: data.facts.clone(),
            load: subject.load(),
            objects: Err(Unseen::NotApplicable("the tables are not loaded".into())),
            storages: std::iter::once(data).chain(wal).collect(),
            powered_off: false,
            mounts: Vec::new(),
            recorded: None,
        };
        bed.load_tables(subject, &data_set, context.stop)?;
        Ok(bed)
    }

    /// Returns the room that the tables of `subject` take, with what load adds and WAL.
    ///
    /// # Errors
    /// The load has no such data set.
    pub(super) fn room_needed(subject: &Subject) -> Result<RoomNeeded, BenchError> {
        const WAL: u64 = 320 << 20;
        let data_set = subject.load().workload()?.data;
        let tables = pgdyno_dataset::room_needed(&data_set, subject.options.scale);
        Ok(RoomNeeded {
            bytes: Bytes(tables.0 + tables.0 / 2 + WAL),
            data: format!(
                "{}'s tables at scale {} and a crash test's WAL",
                subject.options.workload.description(),
                subject.options.scale
            ),
        })
    }

    /// Loads the tables, makes the table of tokens and the extensions that verification uses.
    fn load_tables(
        &mut self,
        subject: &Subject,
        data_set: &DataSet,
        stop: &AtomicBool,
    ) -> Result<(), BenchError> {
        let cluster = self.cluster();
        let loading = Loading::default();
        let load = BulkLoad::new(data_set, subject.options.scale, subject.options.seed, &loading);
        pgdyno_dataset::bulk_load(&load, &cluster.control_target(DATABASE), &Silent, stop)?;
        let mut client = cluster.control(DATABASE)?;
        execute(&mut client, "make the tokens' table", TOKENS)?;
        for name in EXTENSIONS {
            let available = format!(
                "SELECT count(*) FROM pg_catalog.pg_available_extensions WHERE name = '{name}'"
            );
            let doing = format!("look for the extension {name}");
            if query_number(&mut client, &doing, &available)? > 0 {
                let sql = format!("CREATE EXTENSION {name}");
                execute(&mut client, &format!("make the extension {name}"), &sql)?;
                if name == AMCHECK {
                    for other in ["postgres", "template1"] {
                        let doing = format!("make the extension {name} in {other}");
                        execute(&mut cluster.control(other)?, &doing, &sql)?;
                    }
                }
            }
        }
        self.objects = census::baseline(self.cluster());
        Ok(())
    }

    /// Returns the facts of the storage under PGDATA.
    pub(super) fn facts(&self) -> &StorageFacts {
        &self.facts
    }

    /// Returns the objects that all its databases had once the tables were loaded.
    pub(super) fn objects(&self) -> &Observed<BTreeMap<String, Objects>> {
        &self.objects
    }

    /// Returns the cluster.
    pub(super) fn cluster(&mut self) -> &mut Cluster {
        match &mut self.cluster {
            Some(cluster) => cluster,
            None => unreachable!("a test bed that was taken down is given away with that"),
        }
    }

    fn stacks(&self) -> impl Iterator<Item = &MountedStack> {
        self.storages.iter().map(|storage| &storage.stack)
    }

    fn stacks_mut(&mut self) -> impl Iterator<Item = &mut MountedStack> {
        self.storages.iter_mut().map(|storage| &mut storage.stack)
    }

    /// Connections to its emulated disks, in the order of the storages: PGDATA's first.
    pub(super) fn disks(&self) -> Result<Vec<Control>, BenchError> {
        let disks = self.stacks().flat_map(MountedStack::disks);
        disks.map(|disk| disk.control().map_err(|e| self.refused(e))).collect()
    }

    /// Begins a recording of its only disk, whose baseline is durable, and returns that disk.
    ///
    /// # Errors
    /// It stands on no emulated disk, or on several; or the disk refuses.
    pub(super) fn record(&mut self) -> Result<DiskServer, BenchError> {
        let disks: Vec<DiskServer> = self.stacks().flat_map(MountedStack::disks).collect();
        let [disk] = disks.as_slice() else {
            let found = format!("{} disks lie under it, where one is recorded", disks.len());
            return Err(self.refused(found));
        };
        disk.control().and_then(|mut it| it.record()).map_err(|e| self.refused(e))?;
        self.recorded = Some(disk.directory.clone());
        Ok(disk.clone())
    }

    /// Brings its storage back in `state` of what was recorded, after its power was cut.
    ///
    /// # Errors
    /// The disk refuses, or the filesystem does not mount.
    pub(super) fn show(&mut self, state: &State, stop: &AtomicBool) -> Result<(), BenchError> {
        let Some(recorded) = self.recorded.clone() else {
            return Err(self.refused("nothing was recorded"));
        };
        for mut disk in self.disks()? {
            disk.show(state, &recorded).map_err(|e| self.refused(e))?;
        }
        self.power_on(stop)
    }

    /// Flushes that its storages' devices have completed since they were made (count); none where
    /// one is no device of its own, or counts none.
    pub(super) fn flushes(&self) -> Option<u64> {
        let of = |stack: &MountedStack| match stack.disks().as_slice() {
            [] if stack.stack().is_made() => flushes_completed(&stack.path()),
            [] => None,
            disks => {
                let counts = disks.iter().map(|disk| {
                    Some(disk.control().ok()?.status().ok()?.counters.acknowledged_flushes)
                });
                counts.sum()
            }
        };
        self.stacks().map(of).sum()
    }

    /// The last power cut of its emulated disks; none where a storage stands on none, or keeps its
    /// power.
    pub(super) fn last_cut(&self) -> Result<Option<DiskCut>, BenchError> {
        let mut cut: Option<DiskCut> = None;
        for mut disk in self.disks()? {
            let status = disk.status().map_err(|e| self.refused(e))?;
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

    fn refused(&self, source: impl Into<Box<dyn Error + Send + Sync>>) -> BenchError {
        CrashError::Disk { storage: self.facts.name.clone(), source: source.into() }.into()
    }

    /// Brings the tables back to their beginning, and makes everything durable that a power loss
    /// could take: also the cluster's own files, which nobody has flushed.
    pub(super) fn reset_baseline(&mut self, stop: &AtomicBool) -> Result<(), BenchError> {
        self.mounts.clear();
        let load = self.load;
        let cluster = self.cluster();
        cluster.start(stop)?;
        let mut client = cluster.control(DATABASE)?;
        let reset = format!("{RESET_TOKENS}; {}", load.reset);
        execute(&mut client, "bring the tables back to their beginning", &reset)?;
        execute(&mut client, "checkpoint before the round", "CHECKPOINT")?;
        for stack in self.stacks().filter(|stack| stack.stack().is_made()) {
            pgdyno_storage::fault::make_durable(&stack.path())?;
        }
        for mut disk in self.disks()? {
            disk.begin_baseline().map_err(|e| self.refused(e))?;
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
    pub(super) fn cut_power(&mut self, survives: f64) -> Result<Instant, BenchError> {
        let switches = self.switches()?;
        self.cut_power_by(switches, survives)
    }

    /// Returns the switches that cut the power of its storages.
    ///
    /// Call it before the cut: a storage without a switch is an error of the user's choice, not of
    /// the server.
    pub(super) fn switches(&self) -> Result<Switches, BenchError> {
        let filesystems = self.stacks().filter(|stack| stack.disks().is_empty());
        let filesystems = filesystems.map(PowerSwitch::find).collect::<Result<_, _>>()?;
        Ok(Switches { filesystems, disks: self.disks()? })
    }

    /// Like [`Self::cut_power`], with the switches in hand, so that less time passes before the
    /// cut.
    pub(super) fn cut_power_by(
        &mut self,
        switches: Switches,
        survives: f64,
    ) -> Result<Instant, BenchError> {
        self.powered_off = true;
        let at = Instant::now();
        let mut cut: Result<(), BenchError> = Ok(());
        for mut disk in switches.disks {
            let cut_disk = disk.cut(&Cut { survives, tear: None }).map_err(|e| self.refused(e));
            cut = cut.and(cut_disk.map(drop));
        }
        for switch in &switches.filesystems {
            cut = cut.and(switch.cut().map_err(BenchError::from));
        }
        self.cluster().kill();
        self.cluster().wait_dead();
        cut.map(|()| at)
    }

    /// Unmounts storages without power, powers their disks on, and mounts them. The mount replays
    /// the filesystems' journals.
    pub(super) fn power_on(&mut self, stop: &AtomicBool) -> Result<(), BenchError> {
        if !self.powered_off {
            return Ok(());
        }
        let mut mounts = Vec::new();
        for stack in self.stacks_mut() {
            mounts.push(if stack.disks().is_empty() {
                stack.unmount()?;
                stack.mount(stop)?
            } else {
                stack.power_cycle(stop)?
            });
        }
        self.mounts = mounts;
        self.powered_off = false;
        Ok(())
    }

    /// Stops the server and has each filesystem that was mounted after a power cut checked by its
    /// fsck, for at most `limit` each. Nothing is repaired; the filesystems are mounted again.
    ///
    /// # Errors
    /// A filesystem is in use or does not mount any more; the test bed then serves no other round.
    pub(super) fn check_filesystems(
        &mut self,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<Vec<FilesystemRecovery>, BenchError> {
        if self.powered_off || self.mounts.is_empty() {
            return Ok(Vec::new());
        }
        self.cluster().stop(StopMode::Fast);
        let mut found = Vec::new();
        let mounts = std::mem::take(&mut self.mounts);
        for (stack, mount) in self.stacks_mut().zip(mounts) {
            let name = |filesystem: &FilesystemChoice| filesystem.name.clone();
            found.push(FilesystemRecovery {
                storage: stack.stack().name().to_owned(),
                filesystem: stack
                    .stack()
                    .storage()
                    .filesystem
                    .as_ref()
                    .map(name)
                    .unwrap_or_default(),
                mount_ms: ms(mount),
                fsck: stack.fsck(limit, stop)?,
            });
        }
        Ok(found)
    }

    /// Takes everything down and keeps nothing; what could not be.
    pub(super) fn take_down(mut self) -> Vec<String> {
        self.remove()
    }

    fn remove(&mut self) -> Vec<String> {
        let Some(mut cluster) = self.cluster.take() else { return Vec::new() };
        let mut left = Vec::new();
        if self.powered_off {
            // Nothing on a filesystem without power can be removed; unmounted it is gone.
            cluster.wait_dead();
            left.extend(
                self.stacks_mut()
                    .filter_map(|s| s.unmount().err())
                    .map(|e| BenchError::from(e).message()),
            );
        }
        left.extend(cluster.remove().err().map(|e| BenchError::from(e).message()));
        let storages = std::mem::take(&mut self.storages).into_iter().rev();
        left.extend(storages.flat_map(|storage| storage.stack.take_down()));
        left
    }

    /// Ends the server and copies what is left: the images of made storages, unmounted, else
    /// PGDATA.
    pub(super) fn keep(&mut self, into: &Path) -> Result<(), BenchError> {
        let cluster = self.cluster();
        cluster.stop(StopMode::Immediate);
        let data = cluster.data();
        let mut images = Vec::new();
        for stack in self.stacks().filter(|stack| stack.stack().is_made()) {
            images.extend(stack.disks().iter().map(DiskServer::image));
            if stack.disks().is_empty() {
                images.extend(loop_files(stack));
            }
        }
        if images.is_empty() {
            return Ok(pgdyno_storage::fault::keep(&[(data, "data".into())], into)?);
        }
        if !self.powered_off {
            self.powered_off = true;
            self.stacks_mut().try_for_each(MountedStack::unmount)?;
        }
        // PGDATA's first, then that of pg_wal.
        let named = (0..).zip(images).map(|(n, image)| (image, format!("image-{n}")));
        let logs = self.stacks().flat_map(MountedStack::disks).map(|disk| disk.log());
        let logs = logs.filter(|log| log.exists()).map(|log| (log, "disk-log".to_owned()));
        Ok(pgdyno_storage::fault::keep(&named.chain(logs).collect::<Vec<_>>(), into)?)
    }
}

fn provisioner<'a>(subject: &Subject, context: Context<'a>) -> Provisioner<'a> {
    Provisioner {
        account: subject.account.clone(),
        wipe: subject.wipe.clone(),
        serials: subject.serials,
        context,
    }
}

/// The files that a stack's loop devices lie over.
fn loop_files(stack: &MountedStack) -> Vec<PathBuf> {
    let steps = stack.stack().steps().into_iter();
    let image = |step| if let Step::AttachLoop(device) = step { Some(device.image) } else { None };
    steps.filter_map(image).collect()
}
