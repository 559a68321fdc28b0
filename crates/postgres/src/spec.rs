//! The plan of a cluster: its steps on the host, and whether they can work.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use pgdyno_exec::account::{Account, AccountError, server_account};
use pgdyno_exec::directory::{self, DirectoryError, too_little_room};
use pgdyno_exec::journal::OwnedResource;
use pgdyno_exec::paths::{default_storage_dir, socket_base};
use pgdyno_exec::random::random_hex;
use pgdyno_exec::step::{Contents, Step};
use pgdyno_model::experiment::Connect;
use pgdyno_model::target::Secret;
use pgdyno_model::units::Bytes;

pub use super::access::SUPERUSER;
use super::access::{Certificate, host_based_access};
use super::error::{ClusterError, SOCKET_PATH_MAX};
use super::install::Install;
use super::settings::{self, SettingsError};

/// Free space that an empty cluster needs.
const LEAST_ROOM: Bytes = Bytes(128 << 20);
pub(super) const SOCKET_PORT: u16 = 5432;
/// Settings that pgdyno needs on a server that listens for other hosts.
const TLS_SETTINGS: [&str; 3] = ["ssl", "ssl_cert_file", "ssl_key_file"];

/// The plan of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterSpec {
    /// The programs.
    pub install: Install,
    /// The directory to create, below a storage directory. It must not exist.
    pub directory: PathBuf,
    /// The directory to create for `pg_wal`, on another storage. None leaves it in PGDATA.
    pub wal: Option<PathBuf>,
    /// Directories to create for tablespaces, on other storages.
    pub tablespaces: Vec<PathBuf>,
    /// Options for initdb.
    pub initdb: Vec<String>,
    /// Settings for every treatment.
    pub settings: BTreeMap<String, String>,
    /// How the load connects. Control connections use the socket.
    pub connect: Connect,
    /// The address on which the server listens for other hosts, by TLS; none: on this one alone.
    pub listen: Option<IpAddr>,
    /// The account that the server runs as.
    pub account: Account,
    /// The directory in which the socket directory is created.
    pub socket_base: PathBuf,
    /// Whether pgdyno's settings file is the server's whole configuration, as on a clone whose own
    /// configuration names another place.
    pub is_clone: bool,
}

/// Returns a new path for a cluster's directory in `storage`: `pgdyno-` and eight hexadecimal
/// digits.
///
/// # Errors
/// The kernel gives no random numbers.
pub fn cluster_directory(storage: &Path) -> io::Result<PathBuf> {
    Ok(storage.join(format!("pgdyno-{}", random_hex::<4>()?)))
}

impl ClusterSpec {
    /// Creates the plan of a cluster in `directory` (see [`cluster_directory`]), with the defaults
    /// of initdb and the server.
    ///
    /// # Errors
    /// [`AccountError`]: there is no account to run the server as.
    pub fn new(install: Install, directory: PathBuf) -> Result<Self, AccountError> {
        Ok(Self {
            install,
            directory,
            wal: None,
            tablespaces: Vec::new(),
            initdb: Vec::new(),
            settings: BTreeMap::new(),
            connect: Connect::default(),
            listen: None,
            account: server_account()?,
            socket_base: socket_base(),
            is_clone: false,
        })
    }

    /// Returns the data directory, `PGDATA`.
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    pub(super) fn socket_directory(&self) -> PathBuf {
        self.socket_base.join(self.directory.file_name().unwrap_or_default())
    }

    /// Returns the location of tablespace `directory` of [`Self::tablespaces`]: an empty directory
    /// beside the marker.
    pub fn location(directory: &Path) -> PathBuf {
        directory.join("tablespace")
    }

    fn password_file(&self) -> PathBuf {
        self.directory.join("password")
    }

    pub(super) fn settings_file(&self) -> PathBuf {
        self.directory.join("pgdyno.conf")
    }

    pub(super) fn access_file(&self) -> PathBuf {
        self.directory.join("pg_hba.conf")
    }

    fn certificate_file(&self) -> PathBuf {
        self.directory.join("server.crt")
    }

    fn key_file(&self) -> PathBuf {
        self.directory.join("server.key")
    }

    /// The address on which the load reaches the server, unless it is a socket.
    pub(super) fn host(&self) -> Option<IpAddr> {
        let here = || (self.connect == Connect::Tcp).then_some(Ipv4Addr::LOCALHOST.into());
        self.listen.or_else(here)
    }

    pub(super) fn log(&self) -> PathBuf {
        self.directory.join("server.log")
    }

    /// Returns the settings that pgdyno itself needs on a managed server, for the report: addresses
    /// and logging.
    pub fn own_settings(&self, port: &str) -> BTreeMap<String, String> {
        let host = self.host().map(|host| host.to_string());
        let file = |path: PathBuf| path.display().to_string();
        let of_other_hosts = self.listen.map(|_| {
            let tls = ["on".to_owned(), file(self.certificate_file()), file(self.key_file())];
            let tls = TLS_SETTINGS.into_iter().zip(tls);
            tls.chain([("hba_file", file(self.access_file()))])
        });
        [
            ("listen_addresses", host.unwrap_or_default()),
            ("port", port.to_owned()),
            ("unix_socket_directories", self.socket_directory().display().to_string()),
            ("log_destination", "stderr".to_owned()),
            ("logging_collector", "off".to_owned()),
            ("log_line_prefix", "%m [%p] ".to_owned()),
            ("log_timezone", "UTC".to_owned()),
            ("log_checkpoints", "on".to_owned()),
            ("log_autovacuum_min_duration", "0".to_owned()),
        ]
        .into_iter()
        .chain(of_other_hosts.into_iter().flatten())
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }

    /// Returns the content of the settings file for a treatment with the settings `treatment`.
    pub(super) fn wanted(
        &self,
        port: &str,
        treatment: &BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        let mut wanted = self.own_settings(port);
        settings::overlay(&mut wanted, &self.settings);
        settings::overlay(&mut wanted, treatment);
        wanted
    }

    /// Returns all steps of creating and starting the cluster, in order. Nothing is executed.
    pub fn steps(&self) -> Vec<Step> {
        // Password and port are chosen when the cluster is created.
        let port = match self.host() {
            Some(_) => "(a free one)".to_owned(),
            None => SOCKET_PORT.to_string(),
        };
        let drawn = || Secret::new(String::new());
        let certificate = Certificate { certificate: "(one for this run)".into(), key: drawn() };
        let certificate = self.listen.map(|_| certificate);
        let mut steps = self.making(&drawn(), certificate.as_ref(), &port);
        steps.push(self.starting());
        steps
    }

    /// Returns all steps of removing the cluster.
    pub fn take_down_steps(&self) -> Vec<Step> {
        let mut steps = vec![Step::StopServer { data: self.data() }];
        let elsewhere = self.tablespaces.iter().rev().chain(&self.wal);
        steps.extend(elsewhere.map(|path| Step::RemoveMarked { path: path.clone() }));
        steps.push(Step::RemoveMarked { path: self.socket_directory() });
        steps.push(Step::RemoveMarked { path: self.directory.clone() });
        steps
    }

    pub(super) fn making(
        &self,
        password: &Secret,
        certificate: Option<&Certificate>,
        port: &str,
    ) -> Vec<Step> {
        let owner = Some(self.account.clone());
        // The server runs under another account, which must pass the directory to reach its data.
        let mode = if self.account.is_ours() { 0o700 } else { 0o711 };
        let mut steps = Vec::new();
        if let Some(storage) = self.directory.parent().filter(|p| *p == default_storage_dir()) {
            steps.push(Step::EnsureDirectory { path: storage.to_owned(), mode: 0o755 });
        }
        let made = OwnedResource::Cluster { path: self.directory.clone() };
        steps.push(Step::MakeMarked { made, mode, owner: None });
        let made = OwnedResource::Directory { path: self.socket_directory() };
        steps.push(Step::MakeMarked { made, mode: 0o700, owner: owner.clone() });
        for path in self.wal.iter().chain(&self.tablespaces) {
            let made = OwnedResource::Directory { path: path.clone() };
            steps.push(Step::MakeMarked { made, mode: 0o700, owner: owner.clone() });
        }
        for directory in &self.tablespaces {
            let path = Self::location(directory);
            steps.push(Step::MakeDirectory { path, mode: 0o700, owner: owner.clone() });
        }
        steps.push(Step::MakeDirectory { path: self.data(), mode: 0o700, owner: owner.clone() });
        steps.push(Step::WriteFile {
            path: self.password_file(),
            contents: Contents::Password(password.clone()),
            mode: 0o400,
            owner: owner.clone(),
        });
        steps.push(Step::Run {
            program: self.install.program("initdb"),
            args: self.initdb_args(),
            as_account: owner,
            output: self.directory.join("initdb.log"),
        });
        steps.push(Step::RemoveFile { path: self.password_file() });
        let include = settings::quote(&self.settings_file().to_string_lossy());
        steps.push(Step::AppendToFile {
            path: self.data().join("postgresql.conf"),
            text: format!("\ninclude {include}\n"),
        });
        steps.extend(certificate.into_iter().flat_map(|made| self.writing_certificate(made)));
        steps.push(self.writing(&settings::render(&self.wanted(port, &BTreeMap::new())).0));
        steps
    }

    fn initdb_args(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = vec!["-D".into(), self.data().into()];
        args.push(format!("--username={SUPERUSER}").into());
        args.extend(["--auth-local=trust", "--auth-host=scram-sha-256"].map(OsString::from));
        let mut password_file = OsString::from("--pwfile=");
        password_file.push(self.password_file());
        args.push(password_file);
        args.push("--no-instructions".into());
        if let Some(directory) = &self.wal {
            let mut wal = OsString::from("--waldir=");
            wal.push(directory.join("pg_wal"));
            args.push(wal);
        }
        let given = |names: &[&str]| {
            self.initdb
                .iter()
                .any(|a| names.iter().any(|n| a == n || a.starts_with(&format!("{n}="))))
        };
        if !given(&["--encoding", "-E"]) {
            args.push("--encoding=UTF8".into());
        }
        if !given(&["--locale", "--no-locale", "--locale-provider", "--lc-collate", "--lc-ctype"]) {
            args.push("--locale=C".into());
        }
        args.extend(self.initdb.iter().map(OsString::from));
        args
    }

    pub(super) fn writing(&self, text: &str) -> Step {
        // The server's account must read the file, which holds no secrets.
        let mode = if self.account.is_ours() { 0o600 } else { 0o644 };
        Step::WriteFile {
            path: self.settings_file(),
            contents: Contents::Text(text.into()),
            mode,
            owner: None,
        }
    }

    /// Returns the step that says from which addresses other hosts may connect.
    pub(super) fn writing_access(&self, addresses: &BTreeSet<IpAddr>) -> Step {
        let (path, text) = (self.access_file(), host_based_access(addresses));
        let contents = Contents::Text(text);
        Step::WriteFile { path, contents, mode: 0o600, owner: Some(self.account.clone()) }
    }

    /// Returns the steps that write a certificate, and that let this machine alone in with it.
    fn writing_certificate(&self, made: &Certificate) -> [Step; 3] {
        let owner = Some(self.account.clone());
        let file =
            |path, contents| Step::WriteFile { path, contents, mode: 0o600, owner: owner.clone() };
        [
            file(self.certificate_file(), Contents::Text(made.certificate.clone())),
            file(self.key_file(), Contents::Key(made.key.clone())),
            self.writing_access(&self.listen.into_iter().collect()),
        ]
    }

    pub(super) fn starting(&self) -> Step {
        let mut args: Vec<OsString> = vec!["-D".into(), self.data().into()];
        if self.is_clone {
            let mut configuration = OsString::from("config_file=");
            configuration.push(self.settings_file());
            args.extend(["-c".into(), configuration]);
        }
        Step::Start {
            program: self.install.program("postgres"),
            args,
            as_account: Some(self.account.clone()),
            output: self.log(),
        }
    }

    /// Checks names of settings without a server.
    ///
    /// # Errors
    /// As [`settings::check_names`].
    pub(super) fn check_names<'a>(
        &self,
        settings: impl Iterator<Item = (&'a String, &'a String)>,
    ) -> Result<(), SettingsError> {
        settings::check_names(
            settings.map(|(n, v)| (n.as_str(), v.as_str())),
            self.needed_settings(),
        )
    }

    /// Returns the settings that pgdyno sets on this server, beside those that it sets on any.
    pub(super) fn needed_settings(&self) -> &'static [&'static str] {
        if self.listen.is_some() { &TLS_SETTINGS } else { &[] }
    }

    /// Checks that the cluster can be created, before anything is.
    ///
    /// # Errors
    /// [`ClusterError`]: the first obstacle.
    pub fn check(&self) -> Result<(), ClusterError> {
        self.check_names(self.settings.iter())?;
        let storage = self.directory.parent().unwrap_or(Path::new("/"));
        let is_default = storage == default_storage_dir();
        if !is_default || storage.exists() {
            directory::check(storage, &self.account)?;
            if let Some(available) = too_little_room(storage, LEAST_ROOM)? {
                let path = storage.to_owned();
                return Err(DirectoryError::NoRoom { path, available, needed: LEAST_ROOM }.into());
            }
        }
        let bindir =
            self.install.bindir.canonicalize().unwrap_or_else(|_| self.install.bindir.clone());
        if let Ok(Some(barrier)) = directory::barrier(&bindir, &self.account) {
            return Err(ClusterError::BindirNotReachable {
                bindir,
                account: self.account.name.clone(),
                component: barrier.component,
                mode: barrier.mode,
                uid: barrier.uid,
            });
        }
        let path = self.socket_directory();
        let length = path.join(".s.PGSQL.65535.lock").as_os_str().len();
        if length >= SOCKET_PATH_MAX {
            Err(ClusterError::SocketPath { path, length })
        } else {
            Ok(())
        }
    }
}
