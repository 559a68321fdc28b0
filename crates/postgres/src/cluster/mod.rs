//! Managed clusters: created, run and removed by pgdyno.

mod admission;
mod clone;
mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{IpAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgdyno_connect::control::{self, Client, ControlError};
pub use pgdyno_exec::beneath::CopySummary;
use pgdyno_exec::beneath::{Directory, LARGEST_TEXT};
use pgdyno_exec::journal::{Entry, Journal, JournalError, MARKER, OwnedResource};
use pgdyno_exec::marked::{Removal, remove_made};
use pgdyno_exec::paths::default_storage_dir;
use pgdyno_exec::process::servers_in;
use pgdyno_exec::random::random_hex;
use pgdyno_exec::step::Step;
use pgdyno_exec::tool::last_lines;
use pgdyno_exec::{ExecContext, Executor as _};
use pgdyno_model::facts::ServerFacts;
use pgdyno_model::target::{Address, ChannelBinding, Secret, SslMode, Target, Tls};
pub use template::{KeptTemplate, Template, template_path};

use super::access::Certificate;
pub use super::error::ClusterError;
pub use super::server::StopMode;
use super::server::{START_LIMIT, Server, StartFailure, end_remains};
use super::settings::{self, SettingsError};
use super::spec::SOCKET_PORT;
pub use super::spec::{ClusterSpec, SUPERUSER, cluster_directory};

/// Time limit for a reload.
const RELOAD_LIMIT: Duration = Duration::from_secs(30);
/// Time for which the shared memory of an ended server may still be in use. The kernel takes it
/// from an ended process only once nobody reads the process's `/proc` entries any more.
const MEMORY_HELD: Duration = Duration::from_secs(10);

/// Effect of [`Cluster::apply`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// No change: the server runs with these settings already.
    Nothing,
    /// The server reloaded its settings.
    Reloaded,
    /// The server was restarted.
    Restarted {
        /// Settings that need a restart. Empty if the server did not run before.
        because: Vec<String>,
    },
}

/// A managed cluster. A drop stops its server at once and removes everything.
///
/// Call [`Cluster::create`], [`Cluster::start`], then [`Cluster::apply`] for each treatment, and
/// [`Cluster::remove`] at the end.
#[derive(Debug)]
pub struct Cluster {
    spec: ClusterSpec,
    journal: Journal,
    made: Vec<Entry>,
    password: Secret,
    port: u16,
    pub(super) server: Option<Server>,
    treatment: BTreeMap<String, String>,
    /// The addresses of other hosts that the server lets in; none before [`Cluster::admit`].
    admitted: Mutex<Option<BTreeSet<IpAddr>>>,
}

impl Cluster {
    /// Creates the cluster. Its server does not run yet.
    ///
    /// # Errors
    /// [`ClusterError`]. Whatever was created until then is removed.
    pub fn create(
        spec: ClusterSpec,
        journal: &Journal,
        stop: &AtomicBool,
    ) -> Result<Self, ClusterError> {
        spec.check()?;
        let port = spec.host().map_or(Ok(SOCKET_PORT), free_port)?;
        let certificate = spec.listen.map(Certificate::new).transpose()?;
        let mut cluster = Self::new(spec, journal, Vec::new(), port)?;
        let mut performing = ExecContext { journal, stop, made: Vec::new() };
        let port = port.to_string();
        let steps = cluster.spec.making(&cluster.password, certificate.as_ref(), &port);
        let performed = steps.iter().try_for_each(|step| performing.execute(step).map(drop));
        cluster.made = performing.made;
        let directory = cluster.spec.directory.clone();
        performed.map_err(|source| ClusterError::Make { directory, source })?;
        Ok(cluster)
    }

    /// Adopts a cluster that a process created before the host was restarted. Its server does not
    /// run.
    ///
    /// # Errors
    /// [`ClusterError::Adopt`]: the cluster does not exist, or the journal does not name it.
    pub fn adopt(
        spec: ClusterSpec,
        journal: &Journal,
        stop: &AtomicBool,
    ) -> Result<Self, ClusterError> {
        let entries = journal.entries().map_err(ClusterError::Journal)?;
        let socket = spec.socket_directory();
        let ours = |e: &Entry| {
            (e.made.path() == spec.directory || e.made.path() == socket) && is_marked(e)
        };
        let mut made: Vec<Entry> = entries.into_iter().filter(ours).collect();
        if !made.iter().any(|e| e.made.path() == spec.directory) {
            let source = io::Error::other("no journalled cluster of pgdyno's is there any more");
            return Err(ClusterError::Adopt { path: spec.directory, source });
        }
        if !socket.exists() {
            let step = Step::MakeMarked {
                made: OwnedResource::Directory { path: socket },
                mode: 0o700,
                owner: Some(spec.account.clone()),
            };
            let mut performing = ExecContext { journal, stop, made: Vec::new() };
            let performed = performing.execute(&step);
            made.append(&mut performing.made);
            performed?;
        }
        let cluster = Self::new(spec, journal, made, SOCKET_PORT)?;
        cluster.forget_postmaster()?;
        Ok(cluster)
    }

    /// Removes the lock files of a postmaster that is gone, as after a restart of the host. A
    /// server would mistake any process with its old pid for it. Does nothing while a server runs.
    ///
    /// # Errors
    /// [`ClusterError::Adopt`]: a file cannot be removed.
    pub fn forget_postmaster(&self) -> Result<(), ClusterError> {
        if !servers_in(&self.spec.data()).is_empty() {
            return Ok(());
        }
        let lock = format!(".s.PGSQL.{}.lock", self.port);
        for (directory, lock) in
            [(self.spec.data(), "postmaster.pid"), (self.spec.socket_directory(), &lock)]
        {
            match Directory::open(&directory).and_then(|held| held.remove_file(lock)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    return Err(ClusterError::Adopt { path: directory.join(lock), source: e });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn new(
        spec: ClusterSpec,
        journal: &Journal,
        made: Vec<Entry>,
        port: u16,
    ) -> Result<Self, ClusterError> {
        let password = Secret::new(random_hex::<16>().map_err(JournalError::Random)?);
        let (journal, treatment) = (journal.clone(), BTreeMap::new());
        let admitted = Mutex::default();
        Ok(Self { spec, journal, made, password, port, server: None, treatment, admitted })
    }

    /// Starts the server with the settings of the last [`Cluster::apply`], and reads them back.
    /// Does nothing if the server runs. Recovers after a crash.
    ///
    /// # Errors
    /// [`ClusterError`], with the last lines of the server's log.
    pub fn start(&mut self, stop: &AtomicBool) -> Result<(), ClusterError> {
        self.start_within(START_LIMIT, stop)
    }

    /// Starts the server as [`Cluster::start`] does, within `limit`.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn start_within(&mut self, limit: Duration, stop: &AtomicBool) -> Result<(), ClusterError> {
        if self.is_running() {
            return Ok(());
        }
        end_remains(&self.spec.data(), Vec::new());
        let held_until = Instant::now() + MEMORY_HELD;
        for attempt in 0_u16.. {
            self.write_settings(stop)?;
            let mark = self.log_mark();
            let target = self.control_target("postgres");
            let mut executor = ExecContext::new(&self.journal, stop);
            match Server::start(&mut executor, &self.spec, &target, limit, stop) {
                Ok(server) => {
                    self.server = Some(server);
                    break;
                }
                Err(StartFailure::Other(e)) => return Err(*e),
                Err(StartFailure::Ended(status)) => {
                    let log = self.log_since(mark);
                    let taken =
                        log.contains("could not bind") || log.contains("Address already in use");
                    if let Some(host) = self.spec.host().filter(|_| taken && attempt < 5) {
                        // Another process took the port after it was found free.
                        self.port = free_port(host)?;
                        continue;
                    }
                    let held = log.contains("pre-existing shared memory block");
                    if held && Instant::now() < held_until {
                        std::thread::sleep(Duration::from_millis(100));
                        continue;
                    }
                    return Err(ClusterError::DidNotStart { status, log: last_lines(&log, 15) });
                }
            }
        }
        if let Err(e) = self.verify() {
            self.stop(StopMode::Fast);
            return Err(e);
        }
        Ok(())
    }

    /// Makes the server run with the settings of the spec and of `treatment`, and no others.
    ///
    /// Reloads if that suffices, restarts if it must, and starts a server that does not run. Reads
    /// every setting back from a new connection.
    ///
    /// # Errors
    /// [`ClusterError`]: a setting is refused or not effective, or the server does not start with
    /// it.
    pub fn apply(
        &mut self,
        treatment: &BTreeMap<String, String>,
        stop: &AtomicBool,
    ) -> Result<Applied, ClusterError> {
        self.spec.check_names(treatment.iter())?;
        let before = self.wanted();
        self.treatment.clone_from(treatment);
        if !self.is_running() {
            self.start(stop)?;
            return Ok(Applied::Restarted { because: Vec::new() });
        }
        if before == self.wanted() {
            self.verify()?;
            return Ok(Applied::Nothing);
        }
        self.write_settings(stop)?;
        self.reload(stop)?;
        let because = self.pending_restart()?;
        if because.is_empty() {
            self.verify()?;
            return Ok(Applied::Reloaded);
        }
        self.stop(StopMode::Fast);
        self.start(stop)?;
        Ok(Applied::Restarted { because })
    }

    /// Checks settings on the running server, without effect on it.
    ///
    /// # Errors
    /// [`SettingsError::Refused`]: all refused settings in the server's words, with the nearest
    /// names of unknown ones.
    pub fn check_settings(&self, settings: &[(String, String)]) -> Result<(), SettingsError> {
        settings::check(&mut self.control("postgres")?, settings, self.spec.needed_settings())
    }

    /// Stops the server and waits until it is gone. Does nothing if it does not run.
    pub fn stop(&mut self, mode: StopMode) {
        if let Some(mut server) = self.server.take() {
            server.stop(mode);
        }
    }

    /// Whether the server runs. Notices a server that exited; [`Cluster::start`] starts it again.
    pub fn is_running(&mut self) -> bool {
        self.check_running().is_ok()
    }

    /// Fails with the last lines of the log if the server exited or was stopped.
    ///
    /// # Errors
    /// [`ClusterError::Died`].
    pub fn check_running(&mut self) -> Result<(), ClusterError> {
        let status = match self.server.as_mut().map(Server::ended) {
            Some(None) => return Ok(()),
            Some(Some(status)) => status.to_string(),
            None => "stopped".to_owned(),
        };
        Err(ClusterError::Died { status, log: last_lines(&self.log_since(0), 15) })
    }

    /// Returns the end of a server that ended by itself; none while it runs, and where pgdyno
    /// stopped it or could not start it.
    pub fn death(&mut self) -> Option<ClusterError> {
        self.server.as_ref()?;
        self.check_running().err()
    }

    /// Returns the postmaster's pid, while the server runs.
    pub fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Server::pid)
    }

    /// Opens a control connection as superuser. Unqualified names mean those of `public`, as on any
    /// server that pgdyno runs.
    ///
    /// # Errors
    /// [`ControlError::Connect`].
    pub fn control(&self, database: &str) -> Result<Client, ControlError> {
        control::connect_to_own(&self.control_target(database))
    }

    /// Returns how the load connects to `database`.
    pub fn target(&self, database: &str) -> Target {
        let Some(host) = self.spec.host() else { return self.control_target(database) };
        let address = Address::Tcp { host: host.to_string(), port: self.port };
        let of_other_hosts = Tls {
            mode: SslMode::Require,
            channel_binding: ChannelBinding::Require,
            ..Tls::default()
        };
        Target {
            address,
            password: Some(self.password.clone()),
            tls: self.spec.listen.map(|_| of_other_hosts).unwrap_or_default(),
            ..self.control_target(database)
        }
    }

    /// Returns how pgdyno itself connects to `database`: always by the socket.
    pub fn control_target(&self, database: &str) -> Target {
        let address = Address::Unix { directory: self.spec.socket_directory(), port: self.port };
        Target::new(address, SUPERUSER, database)
    }

    /// Reads the running server's version and settings.
    pub fn facts(&self) -> Result<ServerFacts, ControlError> {
        super::facts::read(&mut self.control("postgres")?, self.spec.install.source.clone())
    }

    /// Returns the journal that names the cluster.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Returns the plan of the cluster.
    pub fn spec(&self) -> &ClusterSpec {
        &self.spec
    }

    /// Returns the data directory, `PGDATA`.
    pub fn data(&self) -> PathBuf {
        self.spec.data()
    }

    /// Returns the present length of the server's log, for [`Cluster::log_since`].
    pub fn log_mark(&self) -> u64 {
        fs::metadata(self.spec.log()).map_or(0, |m| m.len())
    }

    /// Returns at most the first 8 MiB of what the server logged since `mark`.
    pub fn log_since(&self, mark: u64) -> String {
        const MOST: u64 = 8 << 20;
        let mut text = Vec::new();
        let read = fs::File::open(self.spec.log()).and_then(|mut file| {
            file.seek(SeekFrom::Start(mark))?;
            file.take(MOST).read_to_end(&mut text)
        });
        let mut text = String::from_utf8_lossy(&text).into_owned();
        if read.is_ok_and(|n| n as u64 == MOST) {
            text.push_str("\n(cut here: the log is longer)\n");
        }
        text
    }

    /// Stops the server and removes everything.
    ///
    /// # Errors
    /// [`ClusterError::Remove`], [`ClusterError::Journal`]: the first failure. The rest is removed
    /// all the same.
    pub fn remove(mut self) -> Result<(), ClusterError> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<(), ClusterError> {
        self.stop(StopMode::Immediate);
        let mut first_error = None;
        while let Some(entry) = self.made.pop() {
            let path = entry.made.path();
            let struck = match remove_made(&entry, &self.journal) {
                // The path existed before, so that creating it failed. It stays.
                Ok(Removal::Removed | Removal::Absent | Removal::NotOurs(_)) => {
                    self.journal.done(&entry.id).map_err(ClusterError::Journal)
                }
                Err(source) => Err(ClusterError::Remove { path: path.to_owned(), source }),
            };
            if let Err(e) = struck {
                first_error.get_or_insert(e);
            }
        }
        if let Some(storage) = self.spec.directory.parent().filter(|p| *p == default_storage_dir())
        {
            // The directory is removed only if it is empty.
            let _ = fs::remove_dir(storage);
        }
        first_error.map_or(Ok(()), Err)
    }

    fn wanted(&self) -> BTreeMap<String, String> {
        self.spec.wanted(&self.port.to_string(), &self.treatment)
    }

    fn write_settings(&self, stop: &AtomicBool) -> Result<(), ClusterError> {
        let (text, _) = settings::render(&self.wanted());
        let mut performing = ExecContext { journal: &self.journal, stop, made: Vec::new() };
        performing.execute(&self.spec.writing(&text)).map(drop).map_err(ClusterError::Step)
    }

    /// Reloads the settings, and waits until new connections have them.
    fn reload(&self, stop: &AtomicBool) -> Result<(), ClusterError> {
        let mark = self.log_mark();
        let failed = |e: tokio_postgres::Error| ControlError::query("reload the settings", &e);
        let loaded_at = |client: &mut Client| {
            client
                .query_one("SELECT pg_catalog.pg_conf_load_time()::text", &[])
                .map(|r| r.get::<_, String>(0))
        };
        let mut client = self.control("postgres")?;
        let before = loaded_at(&mut client).map_err(failed)?;
        client.query_one("SELECT pg_catalog.pg_reload_conf()", &[]).map_err(failed)?;
        let began = Instant::now();
        // A new backend inherits the settings that the postmaster has loaded.
        while loaded_at(&mut self.control("postgres")?).map_err(failed)? == before {
            if stop.load(Ordering::Relaxed) {
                return Err(ClusterError::Interrupted);
            }
            if began.elapsed() > RELOAD_LIMIT {
                return Err(ClusterError::NoReload {
                    limit: RELOAD_LIMIT,
                    log: last_lines(&self.log_since(mark), 10),
                });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Returns the settings whose new values need a restart.
    fn pending_restart(&self) -> Result<Vec<String>, ClusterError> {
        let sql = "SELECT lower(name) FROM pg_catalog.pg_settings WHERE pending_restart ORDER BY 1";
        self.control("postgres")?
            .query(sql, &[])
            .and_then(|pending| pending.iter().map(|row| row.try_get(0)).collect())
            .map_err(|e| ControlError::query("ask which settings wait for a restart", &e).into())
    }

    fn verify(&mut self) -> Result<(), ClusterError> {
        let wanted = self.wanted();
        let (_, lines) = settings::render(&wanted);
        let mut client = self.control("postgres").or_else(|e| match e.is_of_database() {
            // Settings are those of the server: any database tells them.
            true => self.control("template1"),
            false => Err(e),
        })?;
        settings::verify(&mut client, &wanted, &self.spec.settings_file(), &lines)?;
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The journal keeps what cannot be removed, for the next start's sweep.
        let _ = self.take_down();
    }
}

/// Whether the directory of the entry holds the entry's mark.
fn is_marked(entry: &Entry) -> bool {
    let marker =
        Directory::open(entry.made.path()).and_then(|made| made.read(MARKER, LARGEST_TEXT));
    marker.is_ok_and(|text| {
        serde_json::from_slice::<Entry>(&text).is_ok_and(|marked| marked.id == entry.id)
    })
}

/// Returns a free port of `host`.
fn free_port(host: IpAddr) -> Result<u16, ClusterError> {
    let bound = TcpListener::bind((host, 0)).and_then(|l| l.local_addr());
    bound.map(|a| a.port()).map_err(|source| ClusterError::Port { host, source })
}
