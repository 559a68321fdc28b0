//! Archives: stores of their own with chosen records, and their way back.
//!
//! An archive is written into a folder that nobody else may look into, checked, and then given its
//! name, so that there is never half of one under that name.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pgdyno_model::units::Epoch;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use super::error::sqlite;
use super::{Store, StoreError, Stored, copy, seal};

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Imported {
    /// Records that are new, by id.
    pub added: Vec<String>,
    /// Records that the store held already as they are in the file, by id.
    pub identical: Vec<String>,
}

impl Store {
    /// Every record by itself, newest first: runs with all that belongs to them, then probes, crash
    /// tests and imports.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn all_records(&self) -> Result<Vec<Stored>, StoreError> {
        let ids = |sql: &str| self.rows("list what is stored", sql, params![], |row| row.get(0));
        let newest = "WHERE run IS NULL ORDER BY started_at DESC, rowid DESC";
        let mut all: Vec<Stored> = Vec::new();
        all.extend(
            ids("SELECT id FROM run ORDER BY started_at DESC, rowid DESC")?
                .into_iter()
                .map(Stored::Run),
        );
        let probes = ids(&format!("SELECT id FROM probe_record {newest}"))?;
        all.extend(probes.into_iter().map(Stored::Probe));
        let crashes = ids(&format!("SELECT id FROM crash_record {newest}"))?;
        all.extend(crashes.into_iter().map(Stored::Crash));
        all.extend(self.import_ids()?.into_iter().map(Stored::Imported));
        Ok(all)
    }

    /// Writes `records` whole into a new store at `file`, and checks it. `stop` ends it.
    ///
    /// # Errors
    /// [`StoreError::Exists`] if there is a file; [`StoreError::SharedFolder`] as root for a folder
    /// in which another account may put another file in its place; [`StoreError::SessionOpen`];
    /// [`StoreError::Damaged`]; [`StoreError::Io`]; [`StoreError::Sqlite`].
    pub fn archive(
        &self,
        records: &[Stored],
        file: &Path,
        stop: Arc<AtomicBool>,
    ) -> Result<(), StoreError> {
        if file.symlink_metadata().is_ok() {
            return Err(StoreError::Exists { path: file.into() });
        }
        for record in records {
            self.refuse_at_work(record.id())?;
            self.check(record.id())?;
        }
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| ".".as_ref());
        refuse_shared(folder)?;
        let io = |doing, path: PathBuf| move |source| StoreError::Io { doing, path, source };
        let private = tempfile::Builder::new()
            .prefix(".pgdyno-archive-")
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir_in(folder)
            .map_err(io("make a folder in", folder.into()))?;
        let unnamed = private.path().join("archive");
        let mut archive = Store::open(&unnamed).map_err(|error| error.at(file))?;
        archive.stop_by(Arc::clone(&stop))?;
        archive.take_over(self, records, |_, _| Ok(())).map_err(|error| error.at(file))?;
        drop(archive);
        let mut written = Store::open_existing(&unnamed)?;
        written.stop_by(stop)?;
        let found = written.verify(&[])?;
        if !found.sound {
            return Err(written.corrupt("rows", &"the archive is not as it was written"));
        }
        drop(written);
        give_name(&unnamed, file)?;
        // The name must last as long as what it names.
        std::fs::File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(io("write the folder", folder.into()))
    }

    /// Takes `records` of `from` into this store, all or none of them.
    ///
    /// # Errors
    /// [`StoreError::Differs`] for an id that this store has with other content;
    /// [`StoreError::SessionOpen`]; [`StoreError::Damaged`] or [`StoreError::Corrupt`] for a record
    /// of `from` that cannot be read; [`StoreError::Sqlite`].
    pub fn import_records(
        &mut self,
        from: &Self,
        records: &[Stored],
    ) -> Result<Imported, StoreError> {
        let mut imported = Imported::default();
        let mut new = Vec::new();
        let mut differ = Vec::new();
        for record in records {
            let id = record.id();
            from.refuse_at_work(id)?;
            from.check(id)?;
            from.refuse_unreadable(record)?;
            let theirs = from.digest(id)?;
            match self.digest(id)? {
                Some(ours) if Some(ours) == theirs => imported.identical.push(id.to_owned()),
                Some(_) => differ.push(id.to_owned()),
                None if self.has_name_of_another(from, id)? => differ.push(id.to_owned()),
                None => new.push(record.clone()),
            }
        }
        if !differ.is_empty() {
            return Err(StoreError::Differs {
                path: self.path.clone(),
                from: from.path.clone(),
                ids: differ,
            });
        }
        let now = Epoch::of(std::time::SystemTime::now());
        let source = from.path.display().to_string();
        self.take_over(from, &new, |transaction, id| {
            transaction.execute(
                "INSERT INTO arrival (record, source, arrived_at, pgdyno_version)
                 VALUES (?, ?, ?, ?)",
                params![id, source, now.0, env!("CARGO_PKG_VERSION")],
            )?;
            seal::add(transaction, id, "arrival", transaction.last_insert_rowid())
        })?;
        imported.added = new.iter().map(|record| record.id().to_owned()).collect();
        Ok(imported)
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
            |row| Ok((row.get(0)?, Epoch(row.get(1)?))),
        )?;
        Ok(found.into_iter().next())
    }

    /// Copies records, checks that they are what they were, and commits them together.
    fn take_over(
        &mut self,
        from: &Self,
        records: &[Stored],
        also: impl Fn(&Transaction<'_>, &str) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let failed = self.failed("copy a record");
        let path = self.path.clone();
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(&failed)?;
        // Lists show the newest row first where two began at one time.
        for record in records.iter().rev() {
            let id = record.id();
            let theirs = copy::digest(&from.connection, id).map_err(&failed)?;
            // Another process may have taken it over since it was looked for.
            match copy::digest(&transaction, id).map_err(&failed)? {
                Some(ours) if Some(ours) == theirs => continue,
                Some(_) => return Err(StoreError::AtWork { run: id.to_owned() }),
                None => {}
            }
            copy::copy(&from.connection, &transaction, id).map_err(&failed)?;
            also(&transaction, id).map_err(&failed)?;
            let is_whole = || -> rusqlite::Result<bool> {
                let is_sound = seal::check(&transaction, id)?.damage.is_empty();
                Ok(is_sound && copy::digest(&transaction, id)? == theirs)
            };
            if !is_whole().map_err(&failed)? {
                let (what, found) = (format!("a copy of {id}"), "it differs from what was copied");
                return Err(StoreError::Corrupt { path, what, found: found.to_owned() });
            }
        }
        transaction.commit().map_err(&failed)
    }

    /// Refuses a record that no command could show, and an id that pgdyno would not give.
    fn refuse_unreadable(&self, record: &Stored) -> Result<(), StoreError> {
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

    pub(super) fn digest(&self, record: &str) -> Result<Option<[u8; 32]>, StoreError> {
        copy::digest(&self.connection, record).map_err(self.failed("read a record"))
    }

    fn has_name_of_another(&self, from: &Self, record: &str) -> Result<bool, StoreError> {
        let connections: [&Connection; 2] = [&from.connection, &self.connection];
        let [from, to] = connections;
        copy::has_name_of_another(from, to, record).map_err(self.failed("look for names"))
    }
}

/// Gives `unnamed` the name `file`, which nothing may have yet.
fn give_name(unnamed: &Path, file: &Path) -> Result<(), StoreError> {
    let renamed = match rustix::fs::renameat_with(CWD, unnamed, CWD, file, RenameFlags::NOREPLACE) {
        // Some filesystems have no such call. A link to an existing name is refused by all.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            rustix::fs::linkat(CWD, unnamed, CWD, file, rustix::fs::AtFlags::empty())
        }
        other => other,
    };
    match renamed {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(StoreError::Exists { path: file.into() }),
        Err(errno) => {
            Err(StoreError::Io { doing: "name", path: file.into(), source: errno.into() })
        }
    }
}

/// Refuses, as root, a folder in which another account may rename what root makes.
fn refuse_shared(folder: &Path) -> Result<(), StoreError> {
    const STICKY: u32 = 0o1000;
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let found = std::fs::metadata(folder).map_err(|source| StoreError::Io {
        doing: "look at",
        path: folder.into(),
        source,
    })?;
    let is_open = found.mode() & 0o022 != 0 && found.mode() & STICKY == 0;
    if found.uid() == 0 && !is_open {
        return Ok(());
    }
    Err(StoreError::SharedFolder { folder: folder.into() })
}

impl StoreError {
    /// The same failure, of the archive that is to be called `file`.
    fn at(self, file: &Path) -> Self {
        match self {
            Self::Sqlite { doing, source, .. } => sqlite(file, doing)(source),
            other => other,
        }
    }
}
