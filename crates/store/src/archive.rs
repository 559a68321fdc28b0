//! Archives: stores of their own with chosen records.
//!
//! A new store is written into a folder that nobody else may look into, checked, and then given its
//! name, so that there is never half of one under that name. `merge` takes records back.

use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pgdyno_model::lab_host::LabHost;
use pgdyno_model::units::Epoch;
use rusqlite::Transaction;
use tempfile::TempPath;

use super::anonymize::{Identity, anonymize};
use super::copy::{self, Digest};
use super::error::{io, sqlite};
use super::read::time;
use super::write::Failure;
use super::{Store, StoreError, Stored, folder_of, seal};

impl Store {
    /// Writes `records` into a new store at `file`, and checks it: whole, or without what
    /// identifies their machine. `stop` ends it.
    ///
    /// # Errors
    /// [`StoreError::Exists`] if there is a file; [`StoreError::SharedFolder`] as root for a folder
    /// in which another account may put another file in its place; [`StoreError::SessionOpen`];
    /// [`StoreError::Damaged`]; [`StoreError::Io`]; [`StoreError::Sqlite`].
    pub fn archive(
        &self,
        records: &[Stored],
        file: &Path,
        identity: Identity,
        stop: Arc<AtomicBool>,
    ) -> Result<(), StoreError> {
        refuse_existing(file)?;
        for record in records {
            self.refuse_at_work(record.id())?;
            self.check(record.id())?;
        }
        let doing = "copy a record";
        let copy = |to: &Transaction<'_>| copy_records(self, to, records, |_| Ok(()));
        write_new(file, stop, |archive| match identity {
            Identity::Kept => archive.write(doing, copy),
            Identity::Removed => archive.amend(doing, |to| {
                // What is left out must not stay in free parts of pages.
                to.pragma_update(None, "secure_delete", true)?;
                copy(to)?;
                records.iter().try_for_each(|record| anonymize(to, record.id()))
            }),
        })
    }

    /// The file that a record was imported from, and when; none for one that was made here.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn arrival(&self, record: &str) -> Result<Option<(String, Epoch)>, StoreError> {
        let found = self.rows(
            "look where a record came from",
            "SELECT source, arrived_at FROM arrival WHERE record = ? ORDER BY id DESC LIMIT 1",
            [record],
            |row| Ok((row.get(0)?, time(row, 1)?)),
        )?;
        Ok(found.into_iter().next())
    }

    /// The name by which `pgdyno run --hosts` knew the machine that a run came from.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn host_name(&self, run: &str) -> Result<Option<String>, StoreError> {
        let origin = self.arrival(run)?;
        Ok(origin.and_then(|(source, _)| host_of(&source)))
    }

    /// Refuses a record that no command could show, and an id that pgdyno would not give.
    pub(super) fn refuse_unreadable(&self, record: &Stored) -> Result<(), StoreError> {
        let id = record.id();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if id.starts_with(['.', '-']) || id.len() > 200 || !id.chars().all(is_plain) {
            return Err(self.corrupt("a record", &format!("its id `{id}` is none of pgdyno's")));
        }
        match record {
            Stored::Run(run) => {
                self.run(run)?;
                self.sessions(run)?;
                self.fsync_rates(run)?;
                for probe in self.probes()?.iter().filter(|p| p.run.as_deref() == Some(run)) {
                    self.probe(&probe.id)?;
                }
                self.crashes_of(run)?;
                self.trial_ids(run)?.into_iter().try_for_each(|id| self.trial(id).map(|_| ()))
            }
            Stored::Probe(probe) => self.probe(probe).map(|_| ()),
            Stored::Crash(crash) => self.crash(crash).map(|_| ()),
            Stored::Imported(import) => self.import(import).map(|_| ()),
        }
    }

    pub(super) fn digest(&self, record: &str) -> Result<Option<Digest>, StoreError> {
        Digest::read(&self.connection, record).map_err(self.failed("read a record"))
    }
}

/// Copies `records` of `from` to `to`, which is in a transaction, and checks that they are as they
/// were. `also` is done for each that is new.
pub(super) fn copy_records(
    from: &Store,
    to: &Transaction<'_>,
    records: &[Stored],
    also: impl Fn(&str) -> rusqlite::Result<()>,
) -> Result<(), Failure> {
    // Lists show the newest row first where two began at one time.
    for record in records.iter().rev() {
        let id = record.id();
        let theirs = Digest::read(&from.connection, id)?;
        // Another process may have taken it over since it was looked for.
        match Digest::read(to, id)? {
            Some(ours) if Some(&ours) == theirs.as_ref() => continue,
            Some(_) => return Err(StoreError::AtWork { run: id.to_owned() }.into()),
            None => {}
        }
        copy::copy(&from.connection, to, id)?;
        also(id)?;
        if !seal::check(to, id)?.damage.is_empty() || Digest::read(to, id)? != theirs {
            let path = to.path().unwrap_or_default().into();
            let (what, found) = (format!("a copy of {id}"), "it differs from what was copied");
            return Err(StoreError::Corrupt { path, what, found: found.to_owned() }.into());
        }
    }
    Ok(())
}

/// Has `fill` write a new store, checks it, and gives it the name `file`. `stop` ends it.
pub(super) fn write_new<T>(
    file: &Path,
    stop: Arc<AtomicBool>,
    fill: impl FnOnce(&mut Store) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    refuse_existing(file)?;
    let folder = folder_of(file);
    refuse_shared(folder)?;
    let private = tempfile::Builder::new()
        .prefix(".pgdyno-archive-")
        .permissions(std::fs::Permissions::from_mode(0o700))
        .tempdir_in(folder)
        .map_err(io("make a folder in", folder))?;
    let unnamed = private.path().join("archive");
    let mut store = Store::open(&unnamed).map_err(|error| error.at(file))?;
    store.stop_by(Arc::clone(&stop))?;
    let filled = fill(&mut store).map_err(|error| error.at(file))?;
    drop(store);
    let mut written = Store::open_existing(&unnamed)?;
    written.stop_by(stop)?;
    if !written.verify(&[])?.sound {
        return Err(written.corrupt("rows", &"the file is not as it was written"));
    }
    drop(written);
    let unnamed = TempPath::try_from_path(unnamed).map_err(io("name", file))?;
    unnamed.persist_noclobber(file).map_err(|why| match why.error {
        error if error.kind() == ErrorKind::AlreadyExists => {
            StoreError::Exists { path: file.into() }
        }
        error => io("name", file)(error),
    })?;
    // The name must last as long as what it names.
    std::fs::File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(io("write the folder", folder))?;
    Ok(filled)
}

fn refuse_existing(file: &Path) -> Result<(), StoreError> {
    match file.symlink_metadata() {
        Ok(_) => Err(StoreError::Exists { path: file.into() }),
        Err(_) => Ok(()),
    }
}

/// Refuses, as root, a folder in which another account may rename what root makes.
fn refuse_shared(folder: &Path) -> Result<(), StoreError> {
    const STICKY: u32 = 0o1000;
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let found = std::fs::metadata(folder).map_err(io("look at", folder))?;
    let is_open = found.mode() & 0o022 != 0 && found.mode() & STICKY == 0;
    if found.uid() == 0 && !is_open {
        return Ok(());
    }
    Err(StoreError::SharedFolder { folder: folder.into() })
}

impl StoreError {
    /// This failure, of the archive that is to be called `file`.
    fn at(self, file: &Path) -> Self {
        match self {
            Self::Sqlite { doing, source, .. } => sqlite(file, doing)(source),
            other => other,
        }
    }
}

/// The host that a record's source names: `db1` of `ssh:db1`. Other sources are files.
pub(super) fn host_of(source: &str) -> Option<String> {
    source.parse::<LabHost>().ok().map(|host| host.name)
}
