//! Templates: copies of loaded data directories, so that other clusters need not load the same data
//! again.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pgdyno_exec::beneath::{CopySummary, Directory, LARGEST_TEXT, TreeCopy};
use pgdyno_exec::error::io_error;
use pgdyno_exec::files::{nofollow, sync_directory};
use pgdyno_exec::journal::{Entry, Journal, JournalError, MARKER, OwnedResource};
use pgdyno_exec::marked::remove_made;
use pgdyno_exec::paths::default_storage_dir;
use pgdyno_exec::random::{hex, random_hex};
use pgdyno_exec::step::Step;
use pgdyno_exec::{Account, ExecContext, Executor as _, trust};
use sha2::{Digest, Sha256};

use super::{Cluster, ClusterError, ControlError, StopMode};
use crate::settings;

/// A copy of a data directory, in a directory of its own. A drop removes it.
#[derive(Debug)]
pub struct Template {
    directory: PathBuf,
    made: Vec<Entry>,
    journal: Journal,
}

/// The file that describes a kept template. Its first line is [`KEPT`].
const WORDS: &str = "pgdyno-template";
const CONFIGURATION: &str = "postgresql.conf";
const KEPT: &str = "made by pgdyno: a loaded cluster's data, for later runs";

/// A template that outlives its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptTemplate {
    /// The template's directory.
    pub path: PathBuf,
    /// A description of the data.
    pub what: String,
    /// The size of all files (bytes).
    pub bytes: u64,
}

impl KeptTemplate {
    /// Reads the kept template in `directory`, if there is one.
    pub fn at(directory: &Path) -> Option<Self> {
        let words = fs::read_to_string(directory.join(WORDS)).ok()?;
        let what = words.strip_prefix(KEPT)?.trim().to_owned();
        Some(Self { path: directory.to_owned(), what, bytes: size(directory) })
    }

    /// Returns all kept templates.
    pub fn all() -> Vec<Self> {
        let entries = fs::read_dir(templates_dir()).into_iter().flatten().flatten();
        let mut all: Vec<Self> = entries.filter_map(|entry| Self::at(&entry.path())).collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    /// Removes the template. The descriptive file goes last, so that an interrupted removal can be
    /// repeated.
    ///
    /// # Errors
    /// A file that cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(self.path.join("data")) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        fs::remove_file(self.path.join(WORDS))?;
        fs::remove_dir(&self.path)?;
        // The directory is removed only if it is empty.
        let _ = fs::remove_dir(templates_dir());
        Ok(())
    }
}

/// Returns the path of the template with the data described by `content`: the SHA-256 of that text.
pub fn template_path(content: &str) -> PathBuf {
    let digest = Sha256::digest(content.as_bytes());
    templates_dir().join(hex(&digest[..12]))
}

fn templates_dir() -> PathBuf {
    default_storage_dir().join("templates")
}

/// Returns the size of all visible files below `directory` (bytes).
fn size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(of).sum()
}

impl Template {
    /// Copies the data of `cluster` below `storage`. Its server is stopped meanwhile, and restarted
    /// if it ran.
    ///
    /// # Errors
    /// [`ClusterError`]. The copy is removed.
    pub fn copy(
        cluster: &mut Cluster,
        storage: &Path,
        stop: &AtomicBool,
    ) -> Result<(Self, CopySummary), ClusterError> {
        let wal = wal_to_keep(cluster)?;
        cluster.stop(StopMode::Fast);
        let name = random_hex::<4>().map_err(JournalError::Random)?;
        let directory = storage.join(format!("pgdyno-{name}"));
        let mut performing = ExecContext { journal: &cluster.journal, stop, made: Vec::new() };
        if storage == default_storage_dir() {
            let step = Step::EnsureDirectory { path: storage.to_owned(), mode: 0o755 };
            performing.execute(&step)?;
        }
        let made = OwnedResource::Directory { path: directory.clone() };
        let step = Step::MakeMarked { made, mode: 0o700, owner: None };
        let performed = performing.execute(&step);
        let template = Self { directory, made: performing.made, journal: cluster.journal.clone() };
        performed?;
        let copied = template.fill(cluster, &wal, stop)?;
        cluster.start(stop)?;
        Ok((template, copied))
    }

    /// Copies the data of the stopped `cluster`, with the WAL segments `wal` only.
    fn fill(
        &self,
        cluster: &Cluster,
        wal: &[String],
        stop: &AtomicBool,
    ) -> Result<CopySummary, ClusterError> {
        let mut copy = copy_from(cluster.spec.account.uid, None, stop);
        let data = cluster.open_data()?;
        let ours =
            Directory::open(&self.directory).map_err(|e| wrong("open", &self.directory, e))?;
        let made = copy.make_directory(&ours, "data")?;
        copy.contents(&data, &made, &["pg_wal", "postmaster.opts"])?;
        let kept = copy.make_directory(&made, "pg_wal")?;
        let (_, pg_wal) = cluster.open_wal(&data)?;
        for name in wal {
            if pg_wal.stat(name).is_ok() {
                copy.file(&pg_wal, &kept, OsStr::new(name))?;
            }
        }
        Ok(copy.copied)
    }

    /// Opens the template that an earlier run kept at `path`.
    pub fn kept(path: &Path, journal: &Journal) -> Option<Self> {
        KeptTemplate::at(path)?;
        // A template that another account could have written is not used.
        trust::check(path).ok()?;
        Some(Self { directory: path.to_owned(), made: Vec::new(), journal: journal.clone() })
    }

    /// Keeps the template at `path` ([`template_path`]) beyond this run, with the description
    /// `what`.
    ///
    /// # Errors
    /// [`ClusterError`]. The template then lasts as long as this value.
    pub fn keep(&mut self, path: &Path, what: &str) -> Result<(), ClusterError> {
        if KeptTemplate::at(path).is_some() {
            return Ok(());
        }
        let written = || {
            let mut words = File::options()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .custom_flags(nofollow())
                .open(self.directory.join(WORDS))?;
            writeln!(words, "{KEPT}\n{what}")?;
            fs::create_dir_all(templates_dir())?;
            Ok(rustix::fs::syncfs(&words)?)
        };
        written().map_err(|e| wrong("keep the template", path, e))?;
        fs::rename(&self.directory, path).map_err(|e| wrong("keep the template as", path, e))?;
        path.to_owned().clone_into(&mut self.directory);
        // From here on the descriptive file names the owner, and no start removes the template.
        for entry in self.made.drain(..) {
            let _ = fs::remove_file(path.join(MARKER));
            self.journal.done(&entry.id).map_err(ClusterError::Journal)?;
        }
        sync_directory(&templates_dir()).map_err(|e| wrong("flush", path, e))
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Replaces the data of `cluster` by the template's. The cluster must have the same programs
    /// and initdb options, and no tablespaces. Its server is stopped, and runs at the end.
    ///
    /// # Errors
    /// [`ClusterError`]. The cluster is then unusable.
    pub fn copy_into(
        &self,
        cluster: &mut Cluster,
        stop: &AtomicBool,
    ) -> Result<CopySummary, ClusterError> {
        cluster.stop(StopMode::Fast);
        let copied = self.fill_data(cluster, stop)?;
        cluster.start(stop)?;
        cluster.renew_password()?;
        Ok(copied)
    }

    /// Replaces the content of the data directory of the stopped `cluster`. Its directories belong
    /// to this process meanwhile, so that the server's account cannot enter them. Each is handed
    /// over once it is complete, the data directory last.
    fn fill_data(&self, cluster: &Cluster, stop: &AtomicBool) -> Result<CopySummary, ClusterError> {
        let owner = Some(&cluster.spec.account);
        let source_owner = rustix::process::geteuid().as_raw();
        let mut copy = copy_from(source_owner, owner, stop);
        let failed = |what| move |e| wrong(what, &self.data(), e);
        let ours = Directory::open(&self.directory).map_err(failed("open"))?;
        let from = ours.directory("data").map_err(failed("open"))?;
        let from_wal = from.directory("pg_wal").map_err(failed("open the WAL of"))?;

        let data = cluster.open_data()?;
        let mode = take_over(&data)?;
        let elsewhere = cluster.spec.wal.is_some().then(|| cluster.open_wal(&data)).transpose()?;
        let modes = match &elsewhere {
            Some((above, pg_wal)) => Some((take_over(above)?, take_over(pg_wal)?)),
            None => None,
        };
        for directory in
            [Some(&data), elsewhere.as_ref().map(|(_, pg_wal)| pg_wal)].into_iter().flatten()
        {
            directory.empty(&[]).map_err(|e| wrong("empty", directory.path(), e))?;
        }
        copy.contents(&from, &data, &["pg_wal"])?;
        cluster.include_own_settings(&data)?;
        let fill_wal = |copy: &mut TreeCopy<'_>, pg_wal: &Directory, mode| {
            let status = copy.make_directory(pg_wal, "archive_status")?;
            copy.give(&status, 0o700)?;
            copy.contents(&from_wal, pg_wal, &[])?;
            copy.give(pg_wal, mode)
        };
        match (&elsewhere, modes) {
            (Some((above, pg_wal)), Some((mode_above, mode))) => {
                let link = data.symlink(pg_wal.path(), "pg_wal");
                link.map_err(|e| wrong("make the link to", pg_wal.path(), e))?;
                fill_wal(&mut copy, pg_wal, mode)?;
                copy.give(above, mode_above)?;
            }
            _ => {
                let pg_wal = copy.make_directory(&data, "pg_wal")?;
                fill_wal(&mut copy, &pg_wal, 0o700)?;
            }
        }
        copy.give(&data, mode)?;
        // Flushes everything, since a crash test may cut the power at any later moment.
        for directory in
            [Some(&data), elsewhere.as_ref().map(|(above, _)| above)].into_iter().flatten()
        {
            let flushed = rustix::fs::syncfs(directory);
            flushed.map_err(|e| wrong("flush the filesystem of", directory.path(), e.into()))?;
        }
        Ok(copy.copied)
    }
}

/// Returns a copy without links, of files that all belong to `source_owner`.
fn copy_from<'a>(
    source_owner: u32,
    owner: Option<&'a Account>,
    stop: &'a AtomicBool,
) -> TreeCopy<'a> {
    TreeCopy { source_owner, owner, keeps_links: false, stop, copied: CopySummary::default() }
}

fn take_over(directory: &Directory) -> Result<u32, ClusterError> {
    directory.take_over().map_err(|e| wrong("take over", directory.path(), e))
}

impl Drop for Template {
    fn drop(&mut self) {
        for entry in self.made.drain(..) {
            // The journal keeps what cannot be removed, for the next start's sweep.
            if remove_made(&entry, &self.journal).is_ok() {
                let _ = self.journal.done(&entry.id);
            }
        }
        if let Some(storage) = self.directory.parent().filter(|p| *p == default_storage_dir()) {
            // The directory is removed only if it is empty.
            let _ = fs::remove_dir(storage);
        }
    }
}

impl Cluster {
    /// Opens the data directory, whose parent belongs to this process.
    fn open_data(&self) -> Result<Directory, ClusterError> {
        let open = || Directory::open(&self.spec.directory)?.directory("data");
        open().map_err(|e| wrong("open", &self.data(), e))
    }

    /// Opens `pg_wal` and its parent. The link in `data` may lead anywhere by now, so that its
    /// target comes from the spec.
    fn open_wal(&self, data: &Directory) -> Result<(Directory, Directory), ClusterError> {
        let open = || {
            let above = match &self.spec.wal {
                Some(elsewhere) => Directory::open(elsewhere)?,
                None => data.directory(".")?,
            };
            let pg_wal = above.directory("pg_wal")?;
            Ok((above, pg_wal))
        };
        open().map_err(|e| wrong("open the WAL of", &self.data(), e))
    }

    /// Makes the copied configuration in `data` include this cluster's settings file instead of the
    /// original's.
    fn include_own_settings(&self, data: &Directory) -> Result<(), ClusterError> {
        let include = settings::quote(&self.spec.settings_file().to_string_lossy());
        let replace = || {
            let text = String::from_utf8(data.read(CONFIGURATION, LARGEST_TEXT)?)
                .map_err(io::Error::other)?;
            let mut lines: Vec<&str> =
                text.lines().filter(|line| !line.starts_with("include ")).collect();
            let own = format!("include {include}");
            lines.push(&own);
            let text = lines.join("\n") + "\n";
            data.replace_file(
                OsStr::new(CONFIGURATION),
                text.as_bytes(),
                Some(&self.spec.account),
                0o600,
            )
        };
        replace().map_err(|e| {
            wrong("set the settings file in the copied", &self.data().join(CONFIGURATION), e)
        })
    }

    /// The copied superuser has the original's password.
    fn renew_password(&self) -> Result<(), ClusterError> {
        let sql = format!("ALTER ROLE {} PASSWORD '{}'", super::SUPERUSER, self.password.reveal());
        let altered = self.control("postgres")?.batch_execute(&sql);
        altered.map_err(|e| ControlError::query("set the copied superuser's password", &e).into())
    }
}

/// Returns the WAL segments that a clean start needs: the present one and the next. All others are
/// kept only for reuse.
fn wal_to_keep(cluster: &mut Cluster) -> Result<[String; 2], ClusterError> {
    const ASKED: &str = "SELECT \
        pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), \
        pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn() + \
        (SELECT setting::numeric FROM pg_catalog.pg_settings WHERE name = 'wal_segment_size'))";
    let mut client = cluster.control("postgres")?;
    let failed = |e: tokio_postgres::Error| ControlError::query("ask which WAL a copy needs", &e);
    client.batch_execute("CHECKPOINT").map_err(failed)?;
    let row = client.query_one(ASKED, &[]).map_err(failed)?;
    Ok([row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?])
}

fn wrong(what: &'static str, path: &Path, source: io::Error) -> ClusterError {
    ClusterError::Step(io_error(what, path, source))
}
