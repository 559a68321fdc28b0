//! A loaded cluster kept aside: a copy of its data directory, with which other clusters begin where they would load the same.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use sha2::{Digest, Sha256};

use super::{Cluster, ClusterError, ControlError, StopMode};
use crate::account::Account;
use crate::journal::{Entry, Journal, JournalError, MARKER, Made, nofollow, random_hex, sync_directory};
use crate::paths::default_storage_dir;
use crate::postgres::settings;
use crate::step::{Performing, Step, StepError, io_error};
use crate::sweep::remove_made;

/// A copy of a data directory, in a directory of its own. Dropping it removes it.
#[derive(Debug)]
pub struct Template {
    directory: PathBuf,
    made: Vec<Entry>,
    journal: Journal,
}

/// The file in a kept template that says what it holds; its first line is [`KEPT`].
const WORDS: &str = "pgdyno-template";
const KEPT: &str = "made by pgdyno: a loaded cluster's data, for later runs";

/// A template that outlives its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptTemplate {
    /// Its directory.
    pub path: PathBuf,
    /// What it holds, in words.
    pub what: String,
    /// All its files (bytes).
    pub bytes: u64,
}

impl KeptTemplate {
    /// What is in `directory`, if it is one.
    #[must_use]
    pub fn at(directory: &Path) -> Option<Self> {
        let words = fs::read_to_string(directory.join(WORDS)).ok()?;
        let what = words.strip_prefix(KEPT)?.trim().to_owned();
        Some(Self { path: directory.to_owned(), what, bytes: size(directory) })
    }

    /// All that are kept.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let entries = fs::read_dir(templates_dir()).into_iter().flatten().flatten();
        let mut all: Vec<Self> = entries.filter_map(|entry| Self::at(&entry.path())).collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    /// Removes it: what says that it is one goes last, so that a removal that is cut short can be taken up again.
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
        // Fails, as it should, while anything is in it.
        let _ = fs::remove_dir(templates_dir());
        Ok(())
    }
}

/// Where a template that holds what `content` says is kept: by the SHA-256 of that text.
#[must_use]
pub fn template_path(content: &str) -> PathBuf {
    let digest = Sha256::digest(content.as_bytes());
    let name: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    templates_dir().join(name)
}

fn templates_dir() -> PathBuf {
    default_storage_dir().join("templates")
}

/// The bytes of all files below `directory`; what cannot be seen is not counted.
fn size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(of).sum()
}

/// What copying did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Files (count).
    pub files: u64,
    /// Those that share their blocks with the original (count): reflinks.
    pub reflinks: u64,
    /// Bytes in all of them.
    pub bytes: u64,
}

impl Template {
    /// Keeps the data of `cluster` aside, below `storage`. Its server is stopped, and runs again at the end if it did.
    ///
    /// # Errors
    /// [`ClusterError`]; what was copied is removed.
    pub fn of(
        cluster: &mut Cluster,
        storage: &Path,
        stop: &AtomicBool,
    ) -> Result<(Self, Copied), ClusterError> {
        let wal = wal_to_keep(cluster)?;
        cluster.stop(StopMode::Fast);
        let name = random_hex::<4>().map_err(JournalError::Random)?;
        let directory = storage.join(format!("pgdyno-{name}"));
        let mut performing = Performing { journal: &cluster.journal, stop, made: Vec::new() };
        if storage == default_storage_dir() {
            let step = Step::EnsureDirectory { path: storage.to_owned(), mode: 0o755 };
            step.perform(&mut performing).map_err(ClusterError::Step)?;
        }
        let made = Made::Directory { path: directory.clone() };
        let step = Step::MakeMarked { made, mode: 0o700, owner: None };
        let performed = step.perform(&mut performing);
        let template = Self { directory, made: performing.made, journal: cluster.journal.clone() };
        performed.map_err(ClusterError::Step)?;
        let mut copied = Copied::default();
        let data = cluster.data();
        let skip = [data.join("pg_wal"), data.join("postmaster.opts")];
        let mut work = Work { owner: None, stop, copied: &mut copied };
        work.tree(&data, &template.data(), &|path| skip.iter().any(|s| s == path))?;
        let kept = template.data().join("pg_wal");
        work.directory(&kept, 0o700)?;
        // pg_wal may be a link to another storage: what it leads to is what is copied.
        for name in wal {
            let from = skip[0].join(&name);
            if from.exists() {
                work.file(&from, &kept.join(&name))?;
            }
        }
        cluster.start(stop)?;
        Ok((template, copied))
    }

    /// The one that an earlier run kept at `path`.
    #[must_use]
    pub fn kept(path: &Path, journal: &Journal) -> Option<Self> {
        KeptTemplate::at(path)?;
        Some(Self { directory: path.to_owned(), made: Vec::new(), journal: journal.clone() })
    }

    /// Keeps it at `path` ([`template_path`]), beyond the run, with `what` it holds in words.
    ///
    /// # Errors
    /// [`ClusterError`]; it then lasts as long as this value.
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
        // From here on its words say whose it is, and no start is to remove it.
        for entry in self.made.drain(..) {
            let _ = fs::remove_file(path.join(MARKER));
            self.journal.done(&entry.id).map_err(ClusterError::Journal)?;
        }
        sync_directory(&templates_dir()).map_err(|e| wrong("flush", path, e))
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Gives `cluster`, of the same programs and the same initdb options and without tablespaces, this data in place of its own.
    /// Its server is stopped, and runs at the end.
    ///
    /// # Errors
    /// [`ClusterError`]: the cluster is then of no use.
    pub fn copy_into(&self, cluster: &mut Cluster, stop: &AtomicBool) -> Result<Copied, ClusterError> {
        cluster.stop(StopMode::Fast);
        let data = cluster.data();
        let wal = cluster.spec.wal.as_ref().map(|directory| directory.join("pg_wal"));
        for directory in [Some(&data), wal.as_ref()].into_iter().flatten() {
            empty(directory)?;
        }
        let mut copied = Copied::default();
        let mut work = Work { owner: Some(&cluster.spec.account), stop, copied: &mut copied };
        let kept = self.data().join("pg_wal");
        work.tree_into(&self.data(), &data, &|path| path == kept)?;
        match &wal {
            Some(elsewhere) => {
                let link = data.join("pg_wal");
                symlink(elsewhere, &link).map_err(|e| wrong("make the link", &link, e))?;
            }
            None => work.directory(&data.join("pg_wal"), 0o700)?,
        }
        let pg_wal = wal.unwrap_or_else(|| data.join("pg_wal"));
        work.directory(&pg_wal.join("archive_status"), 0o700)?;
        work.tree_into(&kept, &pg_wal, &|_| false)?;
        cluster.include_own_settings()?;
        // A crash test may cut the power at any later moment.
        for directory in [&pg_wal, &data] {
            let flush = || Ok(rustix::fs::syncfs(File::open(directory)?)?);
            flush().map_err(|e| wrong("flush the filesystem of", directory, e))?;
        }
        cluster.start(stop)?;
        cluster.renew_password()?;
        Ok(copied)
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        for entry in self.made.drain(..) {
            // What fails here stays in the journal for the next start's sweep.
            if remove_made(&entry.made, &entry.id).is_ok() {
                let _ = self.journal.done(&entry.id);
            }
        }
        if let Some(storage) = self.directory.parent().filter(|p| *p == default_storage_dir()) {
            // Fails, as it should, while anything is in it.
            let _ = fs::remove_dir(storage);
        }
    }
}

impl Cluster {
    /// Has the copied configuration, which includes the original's settings file, include this cluster's instead.
    fn include_own_settings(&self) -> Result<(), ClusterError> {
        let path = self.data().join("postgresql.conf");
        let text = fs::read_to_string(&path).map_err(|e| wrong("read", &path, e))?;
        let include = settings::quote(&self.spec.settings_file().to_string_lossy());
        let mut lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("include ")).collect();
        let own = format!("include {include}");
        lines.push(&own);
        let contents = crate::step::Contents::Text(lines.join("\n") + "\n");
        let owner = Some(self.spec.account.clone());
        let step = Step::WriteFile { path, contents, mode: 0o600, owner };
        let never = AtomicBool::new(false);
        let mut performing = Performing { journal: &self.journal, stop: &never, made: Vec::new() };
        step.perform(&mut performing).map_err(ClusterError::Step)
    }

    /// The copied superuser has the original's password.
    fn renew_password(&self) -> Result<(), ClusterError> {
        let sql = format!("ALTER ROLE {} PASSWORD '{}'", super::SUPERUSER, self.password.reveal());
        let altered = self.control("postgres")?.batch_execute(&sql);
        altered.map_err(|e| ControlError::query("set the copied superuser's password", &e).into())
    }
}

/// The segments that a clean end of the server needs: the one that is written to now, and the next. All others were kept only
/// to be written again.
fn wal_to_keep(cluster: &mut Cluster) -> Result<[String; 2], ClusterError> {
    const ASKED: &str = "SELECT pg_walfile_name(pg_current_wal_insert_lsn()), pg_walfile_name(pg_current_wal_insert_lsn() + \
        (SELECT setting::numeric FROM pg_settings WHERE name = 'wal_segment_size'))";
    let mut client = cluster.control("postgres")?;
    let failed = |e: postgres::Error| ControlError::query("ask which WAL a copy needs", &e);
    client.batch_execute("CHECKPOINT").map_err(failed)?;
    let row = client.query_one(ASKED, &[]).map_err(failed)?;
    Ok([row.get(0), row.get(1)])
}

fn wrong(what: &'static str, path: &Path, source: io::Error) -> ClusterError {
    ClusterError::Step(io_error(what, path, source))
}

/// Removes what is in `directory`, which is of pgdyno's making.
fn empty(directory: &Path) -> Result<(), ClusterError> {
    let all = || {
        for child in fs::read_dir(directory)? {
            let child = child?;
            // What a link leads to is not the directory's.
            match child.file_type()?.is_dir() {
                true => fs::remove_dir_all(child.path())?,
                false => fs::remove_file(child.path())?,
            }
        }
        Ok(())
    };
    all().map_err(|e| wrong("empty", directory, e))
}

/// Copying, by reflink where the filesystem has them.
struct Work<'a> {
    /// Whom the copies belong to; none means us.
    owner: Option<&'a Account>,
    stop: &'a AtomicBool,
    copied: &'a mut Copied,
}

impl Work<'_> {
    /// Makes `to` a copy of the directory `from`, without what `skip` names.
    fn tree(&mut self, from: &Path, to: &Path, skip: &dyn Fn(&Path) -> bool) -> Result<(), ClusterError> {
        let mode = fs::symlink_metadata(from).map_err(|e| wrong("look at", from, e))?.mode();
        self.directory(to, mode & 0o777)?;
        self.tree_into(from, to, skip)
    }

    /// Copies what is in `from` into the directory `to`.
    fn tree_into(
        &mut self,
        from: &Path,
        to: &Path,
        skip: &dyn Fn(&Path) -> bool,
    ) -> Result<(), ClusterError> {
        let failed = |e| wrong("read the directory", from, e);
        for child in fs::read_dir(from).map_err(failed)? {
            let child = child.map_err(failed)?;
            let (path, kind) = (child.path(), child.file_type().map_err(failed)?);
            let target = to.join(child.file_name());
            if skip(&path) {
                continue;
            }
            if kind.is_dir() {
                self.tree(&path, &target, skip)?;
            } else if kind.is_file() {
                self.file(&path, &target)?;
            } else {
                let found = io::Error::other("it is neither file nor directory");
                return Err(wrong("copy", &path, found));
            }
        }
        Ok(())
    }

    fn directory(&mut self, path: &Path, mode: u32) -> Result<(), ClusterError> {
        let make = || {
            DirBuilder::new().mode(0o700).create(path)?;
            let directory = File::options().read(true).custom_flags(nofollow()).open(path)?;
            self.give(&directory)?;
            directory.set_permissions(fs::Permissions::from_mode(mode))
        };
        make().map_err(|e| wrong("make the directory", path, e))
    }

    fn give(&self, file: &File) -> io::Result<()> {
        match self.owner.filter(|account| !account.is_ours()) {
            Some(account) => fchown(file, Some(account.uid), Some(account.gid)),
            None => Ok(()),
        }
    }

    fn file(&mut self, from: &Path, to: &Path) -> Result<(), ClusterError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ClusterError::Step(StepError::Interrupted));
        }
        let mut copy = || {
            let mut source = File::options().read(true).custom_flags(nofollow()).open(from)?;
            let metadata = source.metadata()?;
            let mut target =
                File::options().write(true).create_new(true).mode(0o600).custom_flags(nofollow()).open(to)?;
            let reflink = rustix::fs::ioctl_ficlone(&target, &source).is_ok();
            if !reflink {
                io::copy(&mut source, &mut target)?;
            }
            self.give(&target)?;
            target.set_permissions(fs::Permissions::from_mode(metadata.mode() & 0o777))?;
            self.copied.files += 1;
            self.copied.reflinks += u64::from(reflink);
            self.copied.bytes += metadata.len();
            Ok(())
        };
        copy().map_err(|e| wrong("copy", from, e))
    }
}
