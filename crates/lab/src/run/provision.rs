//! Servers for a plan: programs found or fetched, clusters made, data sets loaded, one server
//! running at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use pgdyno_host::postgres::{self, Cluster, ClusterSpec, FetchProgress, Install, StopMode};
use pgdyno_host::{Account, Journal, room, server_account};
use pgdyno_model::Treatment;
use pgdyno_model::facts::StorageFacts;
use pgdyno_model::storage::Backing;
use pgdyno_model::units::Bytes;
use postgres_protocol::escape::escape_literal;

use super::between;
use super::data::{Templates, tablespace};
use super::given::GivenServer;
use super::places::Places;
use super::server::{DATABASE, Server, execute};
use crate::LabError;
use crate::estimate;
use crate::prepare::{Build, ClusterKey, Prepared};
use pgdyno_model::progress::{Event, Progress};

/// Where the programs of a wanted version come from.
#[derive(Clone, Debug)]
pub(crate) enum Programs {
    /// They are here.
    Here(Install),
    /// They have to be fetched; the exact version.
    ToFetch(u32, String),
}

/// Where the programs of `build` come from.
pub(crate) fn programs(build: &Build) -> Result<Programs, LabError> {
    if let Some(found) = postgres::find(build.bindir.as_deref(), build.version)? {
        return Ok(Programs::Here(found));
    }
    let here = postgres::fetch::Fetcher::here();
    let major = build.version.unwrap_or_else(|| here.newest_major());
    if let Some(cached) = here.cached(major, &server_account()?) {
        return Ok(Programs::Here(cached));
    }
    let version = here.artifact(major)?.version;
    Ok(Programs::ToFetch(major, version.to_owned()))
}

/// The programs of every build that the plan wants, fetched where they are missing. Each judges the
/// settings that it will be given.
pub(crate) fn installs(
    prepared: &Prepared,
    account: &Account,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<BTreeMap<Build, Install>, LabError> {
    let mut installs = BTreeMap::new();
    for build in prepared.builds() {
        let install = match programs(&build)? {
            Programs::Here(install) => install,
            Programs::ToFetch(major, exact) => {
                progress.event(&Event::Note(format!(
                    "no PostgreSQL {} found here: fetching a small build of {exact} (no lz4, zstd, io_uring)",
                    build.version.map_or_else(|| "server".to_owned(), |v| v.to_string()),
                )));
                let tell = |fetched: FetchProgress| {
                    let (what, share) = match fetched {
                        FetchProgress::Downloading { done, total } => {
                            (format!("fetching PostgreSQL {exact}"), of(done, total))
                        }
                        FetchProgress::Unpacking => (format!("unpacking PostgreSQL {exact}"), None),
                    };
                    progress.event(&Event::Working { what, share });
                };
                postgres::fetch(major, account, stop, &tell)?
            }
        };
        // Before any storage is made. Where the program cannot be asked, the running server is, as
        // it is in any case.
        postgres::judge(&install, &prepared.settings_on(Some(&build)))?;
        installs.insert(build, install);
    }
    Ok(installs)
}

/// Which share of `total` is done, where the total is known.
#[allow(clippy::cast_precision_loss)]
fn of(done: u64, total: Option<u64>) -> Option<f64> {
    total.filter(|t| *t > 0).map(|total| done as f64 / total as f64)
}

/// All servers of a run, and the storages they lie on.
pub(super) struct Bench {
    // Dropped in this order: servers before what holds them.
    slots: BTreeMap<ClusterKey, Slot>,
    installs: BTreeMap<Build, Install>,
    journal: Journal,
    /// Loaded data, kept aside for other clusters that hold the same.
    data: Templates,
    /// None where the server is given.
    places: Option<Places>,
}

struct Slot {
    /// None while its storage is taken down for another one.
    server: Option<Server>,
    data: Data,
}

/// The state of a server's data set.
enum Data {
    Missing,
    Loaded,
    /// Loading it failed; every trial on it fails alike.
    Broken(String),
}

/// A server that is ready for a trial.
pub(super) struct Ready<'a> {
    pub(super) server: &'a mut Server,
    places: Option<&'a Places>,
    storage: &'a str,
    prepared: &'a Prepared,
}

impl Ready<'_> {
    /// Trims what the server lies on, where the experiment asks for that.
    pub(super) fn trim(&self) -> Result<(), LabError> {
        let Some(places) = self.places else { return Ok(()) };
        self.prepared.lies_on(self.storage).into_iter().try_for_each(|name| places.trim(name))
    }
}

impl Bench {
    /// Makes every storage and cluster that the plan needs and lets each cluster judge every
    /// setting that it will be given. No data yet. A storage that cannot be made costs the
    /// treatments on it; only if that is all of them, it is an error.
    pub(super) fn make(
        prepared: &Prepared,
        installs: BTreeMap<Build, Install>,
        places: Places,
        journal: &Journal,
        progress: &dyn Progress,
        stop: &AtomicBool,
    ) -> Result<Self, LabError> {
        let mut bench = Self {
            slots: BTreeMap::new(),
            installs,
            journal: journal.clone(),
            data: Templates::default(),
            places: Some(places),
        };
        let mut room = Room::of(prepared);
        let mut refused = None;
        for storage in prepared.storages() {
            match bench.stand(prepared, storage, progress, stop) {
                Ok(()) => {}
                Err(e) if e.is_the_users() || stop.load(Ordering::Relaxed) => return Err(e),
                Err(e) => {
                    let what = match e.is_unavailable() {
                        true => format!(
                            "storage {storage} is not available here, its trials are left out"
                        ),
                        false => format!("every trial on {storage} will fail"),
                    };
                    progress.event(&Event::Warning(format!("{what}: {}", e.in_words())));
                    bench.places_mut()?.give_up(storage, &e);
                    refused.get_or_insert(e);
                    continue;
                }
            }
            for name in prepared.lies_on(storage) {
                room.check(name, &bench.places_mut()?.path(name)?, !bench.is_own(prepared, name))?;
            }
            for (key, _) in
                prepared.clusters().into_iter().filter(|(key, _)| key.storage == storage)
            {
                let server = bench.cluster(prepared, &key, progress, stop)?;
                bench.slots.insert(key, Slot { server: Some(server), data: Data::Missing });
            }
        }
        match refused {
            Some(e) if bench.slots.is_empty() => Err(e),
            _ => Ok(bench),
        }
    }

    /// Whether a cluster on storage `name` would take what this machine lacks.
    pub(super) fn is_unavailable(&self, prepared: &Prepared, name: &str) -> bool {
        let Some(places) = &self.places else { return false };
        prepared.lies_on(name).into_iter().any(|one| places.is_unavailable(one))
    }

    /// Whether storage `name` is a filesystem of pgdyno's making.
    fn is_own(&self, prepared: &Prepared, name: &str) -> bool {
        !matches!(prepared.experiment.storage[name].backing, Backing::Directory(_))
    }

    fn places_mut(&mut self) -> Result<&mut Places, LabError> {
        let none =
            || LabError::Storage { found: "a given server lies on no storage of pgdyno's".into() };
        self.places.as_mut().ok_or_else(none)
    }

    /// Makes storage `name` and those that clusters on it lie on, unless they stand; first takes
    /// down what is in the way, with the clusters there.
    pub(super) fn stand(
        &mut self,
        prepared: &Prepared,
        name: &str,
        progress: &dyn Progress,
        stop: &AtomicBool,
    ) -> Result<(), LabError> {
        let standing = self.places_mut()?.standing();
        for other in
            prepared.excluded_by(name).into_iter().filter(|other| standing.contains(*other))
        {
            progress.event(&Event::Working {
                what: format!("taking down storage {other}"),
                share: None,
            });
            let on_it = |key: &ClusterKey| prepared.lies_on(&key.storage).contains(other);
            for (_, slot) in self.slots.iter_mut().filter(|(key, _)| on_it(key)) {
                slot.data = Data::Missing;
                if let Some(Server::Managed(cluster)) = slot.server.take()
                    && let Err(e) = cluster.remove()
                {
                    // On a device that is gone; the storage itself is taken down next.
                    progress.event(&Event::Warning(LabError::from(e).in_words()));
                }
            }
            for left in self.places_mut()?.take_down(other) {
                progress.event(&Event::Warning(left));
            }
        }
        for one in prepared.lies_on(name) {
            self.places_mut()?.make(one, &prepared.experiment.storage[one], progress, stop)?;
        }
        Ok(())
    }

    /// A cluster of `key`, which has judged its settings; it does not run.
    fn cluster(
        &mut self,
        prepared: &Prepared,
        key: &ClusterKey,
        progress: &dyn Progress,
        stop: &AtomicBool,
    ) -> Result<Server, LabError> {
        let install = self.installs[&key.build].clone();
        let what = format!("making a cluster of PostgreSQL {} on {}", install.version, key.storage);
        progress.event(&Event::Working { what, share: None });
        let places = self.places_mut()?;
        let fresh = |storage: &str| {
            let path = places.path(storage)?;
            Ok::<_, LabError>(
                postgres::cluster::cluster_directory(&path)
                    .map_err(pgdyno_host::JournalError::Random)?,
            )
        };
        let asked = &prepared.experiment.storage[&key.storage];
        let mut spec = ClusterSpec::new(install, fresh(&key.storage)?)?;
        spec.wal = asked.wal.as_deref().map(fresh).transpose()?;
        spec.tablespaces =
            asked.tablespaces.keys().map(|name| fresh(name)).collect::<Result<_, _>>()?;
        spec.initdb.clone_from(&prepared.experiment.postgres.initdb);
        spec.settings = base_settings(prepared);
        spec.connect = prepared.experiment.postgres.connect;
        let locations: Vec<_> =
            spec.tablespaces.iter().map(|path| ClusterSpec::location(path)).collect();
        let mut cluster = Cluster::create(spec, &self.journal, stop)?;
        cluster.start(stop)?;
        cluster.check_settings(&prepared.settings_of(key))?;
        let mut client = cluster.control("postgres")?;
        for (storage, location) in asked.tablespaces.keys().zip(locations) {
            let location = escape_literal(&location.display().to_string());
            let sql = format!("CREATE TABLESPACE {} LOCATION {location}", tablespace(storage));
            execute(&mut client, &format!("make a tablespace on storage {storage}"), &sql)?;
        }
        execute(&mut client, "make the database", &format!("CREATE DATABASE {DATABASE}"))?;
        drop(client);
        let mut server = Server::Managed(Box::new(cluster));
        if prepared.experiment.between.prewarm {
            between::check_prewarm(&server)?;
        }
        if let Server::Managed(cluster) = &mut server {
            cluster.stop(StopMode::Fast);
        }
        Ok(server)
    }

    /// What is known of every storage.
    pub(super) fn facts(&self, prepared: &Prepared) -> Vec<StorageFacts> {
        let Some(places) = &self.places else { return Vec::new() };
        let asked = |name: &str| &prepared.experiment.storage[name];
        prepared.storages().into_iter().map(|name| places.facts(name, asked(name))).collect()
    }

    /// Where storage `name` is, made if it does not stand.
    pub(super) fn path(&mut self, name: &str) -> Result<PathBuf, LabError> {
        self.places_mut()?.path(name)
    }

    /// The storages that can be made, those first that stand now.
    pub(super) fn usable(&self, prepared: &Prepared) -> Vec<String> {
        let Some(places) = &self.places else { return Vec::new() };
        let standing = places.standing();
        let all = prepared
            .storages()
            .into_iter()
            .filter(|name| !places.is_broken(name))
            .map(str::to_owned);
        let (mut first, then): (Vec<String>, Vec<String>) =
            all.partition(|name| standing.contains(name));
        first.extend(then);
        first
    }

    /// Connects to each given server once for each data set, each in a schema of its own.
    pub(super) fn given(
        prepared: &Prepared,
        journal: &Journal,
        progress: &dyn Progress,
    ) -> Result<Self, LabError> {
        let mut bench = Self {
            slots: BTreeMap::new(),
            installs: BTreeMap::new(),
            journal: journal.clone(),
            data: Templates::default(),
            places: None,
        };
        let asked = &prepared.experiment.postgres;
        let base = asked.schema.as_deref();
        // Data sets are numbered on each server: by its place, since several names may lead there.
        let mut numbers: BTreeMap<Option<String>, u32> = BTreeMap::new();
        for (key, _) in prepared.clusters() {
            let Some(dsn) = asked.dsn_of(key.server.as_deref()) else { continue };
            let number = numbers.entry(postgres::given::server_name(dsn.reveal())).or_default();
            *number += 1;
            let number = *number;
            let mut given = GivenServer::connect(dsn, base, number, journal)?;
            for note in given.claim()? {
                progress.event(&Event::Note(note));
            }
            let treatments = prepared.plan.treatments.iter().filter(|t| prepared.key(t) == key);
            let settings: Vec<&BTreeMap<String, String>> =
                treatments.map(|t| &t.settings).collect();
            for note in given.check_settings(&settings, asked, dsn, journal)? {
                progress.event(&Event::Note(note));
            }
            let server = Server::Given(Box::new(given));
            if prepared.experiment.between.prewarm {
                between::check_prewarm(&server)?;
            }
            bench.slots.insert(key, Slot { server: Some(server), data: Data::Missing });
        }
        Ok(bench)
    }

    /// Stops every server that is pgdyno's.
    pub(super) fn rest(&mut self) -> Result<(), LabError> {
        self.rest_but(None)
    }

    fn rest_but(&mut self, key: Option<&ClusterKey>) -> Result<(), LabError> {
        for (_, slot) in self.slots.iter_mut().filter(|(k, _)| Some(*k) != key) {
            match &mut slot.server {
                // Servers that wait would still write, vacuum and hold memory.
                Some(Server::Managed(cluster)) => cluster.stop(StopMode::Fast),
                // Another data set may lie on the same server, whose settings must not hold for it.
                Some(Server::Given(given)) => given.rest()?,
                None => {}
            }
        }
        Ok(())
    }

    /// The server for `treatment`, running, alone, its data loaded, its storage's devices set.
    pub(super) fn ready<'a>(
        &'a mut self,
        prepared: &'a Prepared,
        treatment: &'a Treatment,
        progress: &dyn Progress,
        stop: &AtomicBool,
    ) -> Result<Ready<'a>, LabError> {
        let key = prepared.key(treatment);
        self.rest_but(Some(&key))?;
        if self.places.is_some() {
            self.stand(prepared, &key.storage, progress, stop)?;
            let device =
                prepared.experiment.storage[&key.storage].device.overlaid(&treatment.device);
            self.places_mut()?.set(&key.storage, &device, stop)?;
            if self.slots.get(&key).is_none_or(|slot| slot.server.is_none()) {
                let server = self.cluster(prepared, &key, progress, stop)?;
                self.slots.insert(key.clone(), Slot { server: Some(server), data: Data::Missing });
            }
        }
        let Some(Slot { server: Some(server), data }) = self.slots.get_mut(&key) else {
            unreachable!(
                "a treatment's cluster was made just now, and given servers were before the first trial"
            );
        };
        if let Server::Managed(cluster) = server {
            cluster.start(stop)?;
        }
        match data {
            Data::Loaded => {}
            Data::Broken(words) => {
                return Err(LabError::Sql {
                    doing: format!("use data set {}", key.data),
                    found: words.clone(),
                });
            }
            Data::Missing => {
                let loaded = self.data.fill(server, prepared, treatment, progress, stop);
                *data = match &loaded {
                    Ok(()) => Data::Loaded,
                    Err(e) => Data::Broken(e.in_words()),
                };
                loaded?;
            }
        }
        Ok(Ready { server, places: self.places.as_ref(), storage: &treatment.storage, prepared })
    }

    /// Takes every server of pgdyno's down, and every storage, so that they can be made again; what
    /// could not be is told.
    pub(super) fn clear(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        for slot in self.slots.values_mut() {
            slot.data = Data::Missing;
            if let Some(Server::Managed(cluster)) = slot.server.take()
                && let Err(e) = cluster.remove()
            {
                told.push(LabError::from(e).in_words());
            }
        }
        if let Some(places) = &mut self.places {
            let standing: Vec<String> = places.standing().into_iter().collect();
            told.extend(standing.iter().flat_map(|name| places.take_down(name)));
        }
        told
    }

    /// Takes every server down, and every storage; what could not be is told.
    pub(super) fn take_down(self) -> Vec<String> {
        let mut told = Vec::new();
        drop(self.data);
        for server in self.slots.into_values().filter_map(|slot| slot.server) {
            let gone = match server {
                Server::Managed(cluster) => cluster.remove().map_err(LabError::from),
                Server::Given(given) => given.release().map(|notes| told.extend(notes)),
            };
            if let Err(e) = gone {
                told.push(e.in_words());
            }
        }
        told.extend(self.places.into_iter().flat_map(Places::take_all_down));
        told
    }
}

/// Storages may share a filesystem: what they need there counts together.
struct Room {
    needed: BTreeMap<String, (Bytes, String)>,
    /// By number of the device, where the filesystem is not the storage's own.
    on: BTreeMap<u64, u64>,
    checked: BTreeSet<String>,
}

impl Room {
    fn of(prepared: &Prepared) -> Self {
        Self { needed: estimate::room(prepared), on: BTreeMap::new(), checked: BTreeSet::new() }
    }

    /// Whether storage `name` in `directory` has room for what is to lie there; what is in a
    /// `shared` filesystem counts with what was checked before.
    fn check(&mut self, name: &str, directory: &Path, shared: bool) -> Result<(), LabError> {
        let Some((needed, what)) = self.needed.get(name).cloned() else { return Ok(()) };
        if !self.checked.insert(name.to_owned()) {
            return Ok(());
        }
        let mut needed = needed;
        if shared {
            // A directory that was just opened can be asked; if not, it is counted by itself.
            let device = std::fs::metadata(directory).map_or(0, |m| m.dev());
            let total = self.on.entry(device).or_default();
            *total = total.saturating_add(needed.0);
            needed = Bytes(*total);
        }
        let available = room(directory)?;
        if available >= needed {
            return Ok(());
        }
        Err(LabError::NoRoom {
            what,
            storage: name.to_owned(),
            directory: directory.to_owned(),
            needed,
            available,
        })
    }
}

/// The settings that hold while data is loaded, and under every treatment that does not say
/// otherwise. Connections are made enough for the treatment with the most clients, unless the file
/// has its own say.
pub(crate) fn base_settings(prepared: &Prepared) -> BTreeMap<String, String> {
    /// Control connections, telemetry, and PostgreSQL's own reserve.
    const OTHERS: u32 = 20;
    /// PostgreSQL's default.
    const DEFAULT: u32 = 100;
    let settings = &prepared.experiment.postgres.settings;
    let mut settings: BTreeMap<String, String> =
        settings.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
    let treatments = &prepared.plan.treatments;
    let connections =
        treatments.iter().map(|t| t.clients).max().unwrap_or(0).saturating_add(OTHERS);
    let said = |name: &String| name.eq_ignore_ascii_case("max_connections");
    if connections > DEFAULT && !treatments.iter().any(|t| t.settings.keys().any(said)) {
        settings.insert("max_connections".into(), connections.to_string());
    }
    settings
}
