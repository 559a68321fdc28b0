//! Servers for a plan: programs found or fetched, clusters made, data sets loaded, one server running at a time.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use pgdyno_host::postgres::{self, Cluster, ClusterSpec, FetchProgress, Install, StopMode};
use pgdyno_host::{Account, Journal, StorageDirectory, server_account};
use pgdyno_model::Treatment;

use super::given::GivenServer;
use super::server::{DATABASE, Server, execute};
use crate::LabError;
use crate::dataset;
use crate::prepare::{ClusterKey, Prepared};
use crate::progress::{Event, Progress};

/// Where the programs of a wanted version come from.
#[derive(Clone, Debug)]
pub(crate) enum Programs {
    /// They are here.
    Here(Install),
    /// They have to be fetched; the exact version.
    ToFetch(u32, String),
}

/// Where the programs of version `major` come from; none wants whatever is found.
pub(crate) fn programs(prepared: &Prepared, major: Option<u32>) -> Result<Programs, LabError> {
    if let Some(found) = postgres::find(prepared.experiment.postgres.bindir.as_deref(), major)? {
        return Ok(Programs::Here(found));
    }
    let here = postgres::fetch::Fetcher::here();
    let major = major.unwrap_or_else(|| here.newest_major());
    if let Some(cached) = here.cached(major, &server_account()?) {
        return Ok(Programs::Here(cached));
    }
    let version = here.artifact(major)?.version;
    Ok(Programs::ToFetch(major, version.to_owned()))
}

/// The programs of every version that the plan wants, fetched where they are missing.
pub(super) fn installs(
    prepared: &Prepared,
    account: &Account,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<BTreeMap<Option<u32>, Install>, LabError> {
    let mut installs = BTreeMap::new();
    for version in prepared.versions() {
        let install = match programs(prepared, version)? {
            Programs::Here(install) => install,
            Programs::ToFetch(major, exact) => {
                progress.event(&Event::Note(format!(
                    "no PostgreSQL {} found here: fetching a small build of {exact} (no lz4, zstd, io_uring)",
                    version.map_or_else(|| "server".to_owned(), |v| v.to_string()),
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
        installs.insert(version, install);
    }
    Ok(installs)
}

/// Which share of `total` is done, where the total is known.
#[allow(clippy::cast_precision_loss)]
fn of(done: u64, total: Option<u64>) -> Option<f64> {
    total.filter(|t| *t > 0).map(|total| done as f64 / total as f64)
}

/// All servers of a run.
pub(super) struct Bench {
    slots: BTreeMap<ClusterKey, Slot>,
}

struct Slot {
    server: Server,
    data: Data,
}

/// The state of a server's data set.
enum Data {
    Missing,
    Loaded,
    /// Loading it failed; every trial on it fails alike.
    Broken(String),
}

impl Bench {
    /// Makes every cluster that the plan needs and lets it judge every setting that it will be given. No data yet.
    pub(super) fn make(
        prepared: &Prepared,
        installs: &BTreeMap<Option<u32>, Install>,
        storages: &BTreeMap<String, StorageDirectory>,
        journal: &Journal,
        progress: &dyn Progress,
        stop: &AtomicBool,
    ) -> Result<Self, LabError> {
        let mut bench = Self { slots: BTreeMap::new() };
        for (key, _) in prepared.clusters() {
            let install = installs[&key.version].clone();
            let what = format!("making a cluster of PostgreSQL {} on {}", install.version, key.storage);
            progress.event(&Event::Working { what, share: None });
            let directory = postgres::cluster::cluster_directory(storages[&key.storage].path())
                .map_err(pgdyno_host::JournalError::Random)?;
            let mut spec = ClusterSpec::new(install, directory)?;
            spec.initdb.clone_from(&prepared.experiment.postgres.initdb);
            spec.settings = base_settings(prepared);
            spec.connect = prepared.experiment.postgres.connect;
            let mut cluster = Cluster::create(spec, journal, stop)?;
            cluster.start(stop)?;
            cluster.check_settings(&prepared.settings_of(&key))?;
            execute(
                &mut cluster.control("postgres")?,
                "make the database",
                &format!("CREATE DATABASE {DATABASE}"),
            )?;
            cluster.stop(StopMode::Fast);
            let server = Server::Managed(Box::new(cluster));
            bench.slots.insert(key, Slot { server, data: Data::Missing });
        }
        Ok(bench)
    }

    /// Connects to the given server once for each data set, each in a schema of its own.
    pub(super) fn given(prepared: &Prepared, progress: &dyn Progress) -> Result<Self, LabError> {
        let mut bench = Self { slots: BTreeMap::new() };
        let Some(dsn) = &prepared.experiment.postgres.dsn else { return Ok(bench) };
        let base = prepared.experiment.postgres.schema.as_deref();
        for (number, (key, _)) in (1..).zip(prepared.clusters()) {
            let mut given = GivenServer::connect(dsn, base, number)?;
            for note in given.claim()? {
                progress.event(&Event::Note(note));
            }
            for treatment in prepared.plan.treatments.iter().filter(|t| prepared.key(t) == key) {
                given.check(&treatment.settings)?;
            }
            bench.slots.insert(key, Slot { server: Server::Given(Box::new(given)), data: Data::Missing });
        }
        Ok(bench)
    }

    /// The server for `treatment`, running, alone, its data loaded.
    pub(super) fn ready(
        &mut self,
        prepared: &Prepared,
        treatment: &Treatment,
        progress: &dyn Progress,
        stop: &AtomicBool,
    ) -> Result<&mut Server, LabError> {
        let key = prepared.key(treatment);
        // Servers that wait would still write, vacuum and hold memory.
        for (_, slot) in self.slots.iter_mut().filter(|(k, _)| **k != key) {
            if let Server::Managed(cluster) = &mut slot.server {
                cluster.stop(StopMode::Fast);
            }
        }
        let Some(slot) = self.slots.get_mut(&key) else {
            unreachable!("every treatment's cluster was made before the first trial");
        };
        if let Server::Managed(cluster) = &mut slot.server {
            cluster.start(stop)?;
        }
        match &slot.data {
            Data::Loaded => {}
            Data::Broken(words) => {
                return Err(LabError::Sql {
                    doing: format!("use data set {}", key.data),
                    found: words.clone(),
                });
            }
            Data::Missing => {
                let loaded = load(&mut slot.server, prepared, treatment, progress, stop);
                slot.data = match &loaded {
                    Ok(()) => Data::Loaded,
                    Err(e) => Data::Broken(e.in_words()),
                };
                loaded?;
            }
        }
        Ok(&mut slot.server)
    }

    /// Takes every server down; what could not be is told.
    pub(super) fn take_down(self) -> Vec<String> {
        let mut told = Vec::new();
        for (_, slot) in self.slots {
            let gone = match slot.server {
                Server::Managed(cluster) => cluster.remove().map_err(LabError::from),
                Server::Given(given) => given.release(),
            };
            if let Err(e) = gone {
                told.push(e.in_words());
            }
        }
        told
    }
}

/// The settings that hold while data is loaded, and under every treatment that does not say otherwise.
/// Connections are made enough for the treatment with the most clients, unless the file has its own say.
pub(crate) fn base_settings(prepared: &Prepared) -> BTreeMap<String, String> {
    /// Control connections, telemetry, and PostgreSQL's own reserve.
    const OTHERS: u32 = 20;
    /// PostgreSQL's default.
    const DEFAULT: u32 = 100;
    let settings = &prepared.experiment.postgres.settings;
    let mut settings: BTreeMap<String, String> =
        settings.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
    let treatments = &prepared.plan.treatments;
    let connections = treatments.iter().map(|t| t.clients).max().unwrap_or(0).saturating_add(OTHERS);
    let said = |name: &String| name.eq_ignore_ascii_case("max_connections");
    if connections > DEFAULT && !treatments.iter().any(|t| t.settings.keys().any(said)) {
        settings.insert("max_connections".into(), connections.to_string());
    }
    settings
}

fn load(
    server: &mut Server,
    prepared: &Prepared,
    treatment: &Treatment,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<(), LabError> {
    let data = prepared.data(treatment);
    let what = format!("loading {} at scale {}", data.name, treatment.scale);
    let mut shown = None;
    let mut tell = |done: u64, all: u64| {
        let percent = done * 100 / all.max(1);
        if shown != Some(percent) {
            shown = Some(percent);
            #[allow(clippy::cast_precision_loss)]
            let share = percent as f64 / 100.0;
            progress.event(&Event::Working { what: what.clone(), share: Some(share) });
        }
    };
    if let Server::Given(given) = server {
        given.before_load()?;
    }
    let loaded = server.loaded().and_then(|mut client| {
        dataset::load(&mut client, data, treatment.scale, &mut tell, stop).map_err(LabError::from)
    });
    if let Server::Given(given) = server {
        given.after_load()?;
    }
    // What became of the server tells more than that the connection broke.
    loaded.map_err(|error| server.death().unwrap_or(error))
}
