//! Merges: all records of several stores in one.
//!
//! Runs, crash tests and all others are told apart by their ids. [`Merge::add`] compares a source
//! with the target and with the sources before it, and writes nothing. [`Merge::write`] then copies
//! what is new in one transaction, so that a merge is done whole or not at all. Sources are only
//! read.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pgdyno_model::units::Epoch;
use rusqlite::{Transaction, named_params};

use super::archive::{copy_records, write_new};
use super::copy::{self, Digest};
use super::remove::REMOVALS;
use super::write::{Failure, add};
use super::{Store, StoreError, Stored};

/// Result of taking records out of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Imported {
    /// File that they came from.
    pub source: String,
    /// Records that are new, by id.
    pub added: Vec<String>,
    /// Records that the store held already as they are in the file, by id.
    pub identical: Vec<String>,
    /// Entries in the list of removed records that are new (count).
    pub removals: u64,
}

/// Result of `pgdyno store merge`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Merged {
    /// File of the store that holds all records now.
    pub store: String,
    /// Records of each file, in the order in which the files were named.
    pub sources: Vec<Imported>,
}

/// Records of several stores that fit together.
#[derive(Debug, Default)]
pub struct Merge<'a> {
    sources: Vec<Source<'a>>,
    /// New records, and the source that each comes from.
    digests: BTreeMap<String, (&'a Store, Digest)>,
}

#[derive(Debug)]
struct Source<'a> {
    store: &'a Store,
    new: Vec<Stored>,
    /// Whether its list of removed records is taken, too.
    is_whole: bool,
    imported: Imported,
}

impl<'a> Merge<'a> {
    /// Adds `records` of `from` to what will be written to `target`; none stands for a new store.
    ///
    /// # Errors
    /// [`StoreError::Differs`] for an id that the target or an earlier source has with other
    /// content; [`StoreError::SessionOpen`]; [`StoreError::Damaged`] or [`StoreError::Corrupt`] for
    /// a record of `from` that cannot be read; [`StoreError::Sqlite`].
    pub fn add(
        &mut self,
        target: Option<&Store>,
        from: &'a Store,
        records: &[Stored],
    ) -> Result<(), StoreError> {
        let source = from.path.display().to_string();
        let mut new = Source {
            store: from,
            new: Vec::new(),
            is_whole: false,
            imported: Imported { source, ..Imported::default() },
        };
        let mut differing: Option<StoreError> = None;
        for record in records {
            let id = record.id();
            from.refuse_at_work(id)?;
            from.check(id)?;
            from.refuse_unreadable(record)?;
            let Some(theirs) = from.digest(id)? else { return Err(from.unknown(id)?) };
            let conflict = match self.known(target, id)? {
                Some((_, ours)) if ours == theirs => {
                    new.imported.identical.push(id.to_owned());
                    continue;
                }
                Some((store, ours)) => Some((store, ours.differences(&theirs))),
                None => self.taken_name(target, from, id)?,
            };
            match (conflict, &mut differing) {
                (None, _) => {
                    self.digests.insert(id.to_owned(), (from, theirs));
                    new.imported.added.push(id.to_owned());
                    new.new.push(record.clone());
                }
                (Some(_), Some(StoreError::Differs { others, .. })) => others.push(id.to_owned()),
                (Some((store, parts)), _) => {
                    let (path, from) = (store.path.clone(), from.path.clone());
                    let (id, others) = (id.to_owned(), Vec::new());
                    differing = Some(StoreError::Differs { id, path, from, parts, others });
                }
            }
        }
        self.sources.push(new);
        differing.map_or(Ok(()), Err)
    }

    /// Adds all records of `from`, and its list of removed ones.
    ///
    /// # Errors
    /// As [`Merge::add`].
    pub fn add_store(&mut self, target: Option<&Store>, from: &'a Store) -> Result<(), StoreError> {
        self.add_store_of(target, from, &from.path.display().to_string())
    }

    /// Adds a store like [`Merge::add_store`], and notes that its records came from `origin`.
    ///
    /// # Errors
    /// As [`Merge::add`].
    pub fn add_store_of(
        &mut self,
        target: Option<&Store>,
        from: &'a Store,
        origin: &str,
    ) -> Result<(), StoreError> {
        from.check(REMOVALS)?;
        self.add(target, from, &from.all_records()?)?;
        self.sources.iter_mut().next_back().into_iter().for_each(|source| {
            source.is_whole = true;
            origin.clone_into(&mut source.imported.source);
        });
        Ok(())
    }

    /// The record `id` of the target, else of an earlier source.
    fn known<'b>(
        &'b self,
        target: Option<&'b Store>,
        id: &str,
    ) -> Result<Option<(&'b Store, Digest)>, StoreError> {
        if let Some(store) = target
            && let Some(digest) = store.digest(id)?
        {
            return Ok(Some((store, digest)));
        }
        Ok(self.digests.get(id).cloned())
    }

    /// A store where another record has a name that the record `id` of `from` has in it.
    fn taken_name<'b>(
        &'b self,
        target: Option<&'b Store>,
        from: &Store,
        id: &str,
    ) -> Result<Option<(&'b Store, Vec<&'static str>)>, StoreError> {
        for store in target.into_iter().chain(self.sources.iter().map(|source| source.store)) {
            let is_taken = copy::has_name_of_another(&from.connection, &store.connection, id);
            if is_taken.map_err(from.failed("look for names"))? {
                let found = "another record has a name of its probes or crash tests";
                return Ok(Some((store, vec![found])));
            }
        }
        Ok(None)
    }

    /// Writes new records to `target`: all of them, or none.
    ///
    /// # Errors
    /// [`StoreError::AtWork`] where another process wrote one of the records meanwhile;
    /// [`StoreError::Corrupt`]; [`StoreError::Sqlite`].
    pub fn write(self, target: &mut Store) -> Result<Vec<Imported>, StoreError> {
        target.write("copy a record", |to| {
            let mut all = Vec::new();
            for Source { store, new, is_whole, mut imported } in self.sources {
                let now = Epoch::now();
                copy_records(store, to, &new, |id| add_arrival(to, id, &imported.source, now))?;
                if is_whole {
                    imported.removals = copy::copy_removals(&store.connection, to)?;
                }
                all.push(imported);
            }
            Ok::<_, Failure>(all)
        })
    }

    /// Writes everything to a new store at `file`, and checks it. `stop` ends it.
    ///
    /// # Errors
    /// [`StoreError::Exists`]; [`StoreError::SharedFolder`] as root for a folder in which another
    /// account may put another file in its place; as [`Merge::write`].
    pub fn write_new(
        self,
        file: &Path,
        stop: Arc<AtomicBool>,
    ) -> Result<Vec<Imported>, StoreError> {
        write_new(file, stop, |target| self.write(target))
    }
}

fn add_arrival(
    to: &Transaction<'_>,
    record: &str,
    source: &str,
    now: Epoch,
) -> rusqlite::Result<()> {
    let values = named_params! {
        ":record": record,
        ":source": source,
        ":arrived_at": now.0,
        ":pgdyno_version": env!("CARGO_PKG_VERSION"),
    };
    add(to, record, "arrival", values).map(drop)
}
