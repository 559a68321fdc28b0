//! The plan of a cluster: its steps on the host, and whether they can work.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use pgdyno_exec::account::{Account, AccountError, server_account};
use pgdyno_exec::directory::{self, DirectoryError, room};
use pgdyno_exec::journal::OwnedResource;
use pgdyno_exec::paths::{default_storage_dir, socket_base};
use pgdyno_exec::random::random_hex;
use pgdyno_exec::step::{Contents, Step};
use pgdyno_model::experiment::Connect;
use pgdyno_model::target::Secret;
use pgdyno_model::units::Bytes;

use super::error::{ClusterError, SOCKET_PATH_MAX};
use super::install::Install;
use super::settings;

/// The superuser of every cluster that pgdyno creates.
pub const SUPERUSER: &str = "postgres";
/// Free space that an empty cluster needs.
const LEAST_ROOM: Bytes = Bytes(128 << 20);
pub(super) const SOCKET_PORT: u16 = 5432;
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
    /// The account that the server runs as.
    pub account: Account,
    /// The directory in which the socket directory is created.
    pub socket_base: PathBuf,
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
            account: server_account()?,
            socket_base: socket_base(),
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

    pub(super) fn log(&self) -> PathBuf {
        self.directory.join("server.log")
    }

    /// Returns the settings that pgdyno itself needs on a managed server, for the report: addresses
    /// and logging.
    pub fn own_settings(&self, port: &str) -> BTreeMap<String, String> {
        let tcp = self.connect == Connect::Tcp;
        [
            ("listen_addresses", if tcp { "127.0.0.1".to_owned() } else { String::new() }),
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
        let port = if self.connect == Connect::Tcp {
            "(a free one)".to_owned()
        } else {
            SOCKET_PORT.to_string()
        };
        let mut steps = self.making(&Secret::new(String::new()), &port);
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

    pub(super) fn making(&self, password: &Secret, port: &str) -> Vec<Step> {
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

    pub(super) fn starting(&self) -> Step {
        Step::Start {
            program: self.install.program("postgres"),
            args: vec!["-D".into(), self.data().into()],
            as_account: Some(self.account.clone()),
            output: self.log(),
        }
    }

    /// Checks that the cluster can be created, before anything is.
    ///
    /// # Errors
    /// [`ClusterError`]: the first obstacle.
    pub fn check(&self) -> Result<(), ClusterError> {
        settings::check_names(self.settings.iter().map(|(n, v)| (n.as_str(), v.as_str())))?;
        let storage = self.directory.parent().unwrap_or(Path::new("/"));
        let is_default = storage == default_storage_dir();
        if !is_default || storage.exists() {
            directory::check(storage, &self.account)?;
            let available = room(storage)?;
            if available < LEAST_ROOM {
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
