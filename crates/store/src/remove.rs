//! Removal of records: each is named, and the store keeps that it was there.

use std::collections::BTreeSet;

use pgdyno_model::units::Epoch;
use rusqlite::{Connection, named_params};

use super::tables::{self, TABLES};
use super::write::{add, open_sessions_of};
use super::{SessionId, Store, StoreError, Stored};

/// Chain of the seals of removals.
pub(super) const REMOVALS: &str = "removals";

impl Store {
    /// Removes records with all that belongs to them, or none of them. `command` is kept with the
    /// names of what is gone. The file keeps its size until [`Store::compact`].
    ///
    /// # Errors
    /// [`StoreError::SessionOpen`] for a run that a process works on; [`StoreError::UnknownRun`]
    /// for one that another process removed; [`StoreError::Sqlite`].
    pub fn remove(&mut self, records: &[Stored], command: &str) -> Result<(), StoreError> {
        let now = Epoch::now();
        for record in records {
            self.refuse_at_work(record.id())?;
        }
        let (path, dead) = (self.path.clone(), self.dead.clone());
        self.amend("remove a record", |transaction| {
            for record in records {
                // A process may have begun to work on it, or have removed it, since.
                if is_at_work(transaction, record.id(), &dead)? {
                    return Err(StoreError::AtWork { run: record.id().to_owned() }.into());
                }
                if delete(transaction, record.id())? == 0 {
                    let (path, name) = (path.clone(), record.id().to_owned());
                    return Err(StoreError::UnknownRun { path, name, nearest: Vec::new() }.into());
                }
                let values = named_params! {
                    ":record": record.id(),
                    ":kind": record.kind(),
                    ":removed_at": now.0,
                    ":pgdyno_version": env!("CARGO_PKG_VERSION"),
                    ":command": command,
                };
                add(transaction, REMOVALS, "removal", values)?;
            }
            Ok(lower_unsealed(transaction)?)
        })
    }
}

/// Whether `run` has an open session that is not one of `dead`.
pub(super) fn is_at_work(
    connection: &Connection,
    run: &str,
    dead: &BTreeSet<SessionId>,
) -> rusqlite::Result<bool> {
    let open = open_sessions_of(connection, run)?;
    Ok(open.iter().any(|session| !dead.contains(session)))
}

/// Deletes a record's rows and its seals; how many rows.
fn delete(connection: &Connection, record: &str) -> rusqlite::Result<usize> {
    let mut removed = 0;
    for table in tables::of_records().rev() {
        let sql = format!("DELETE FROM {} WHERE {}", table.name, table.of_record());
        removed += connection.execute(&sql, [record])?;
    }
    connection.execute("DELETE FROM arrival WHERE record = ?", [record])?;
    connection.execute("DELETE FROM seal WHERE chain = ?", [record])?;
    Ok(removed)
}

/// SQLite gives a removed row's number to the next: none of those may count as stored before there
/// were checksums.
fn lower_unsealed(connection: &Connection) -> rusqlite::Result<()> {
    for table in TABLES.iter().filter(|table| table.key().is_some()) {
        let name = table.name;
        connection.execute(
            &format!(
                "UPDATE unsealed SET last = min(last, coalesce((SELECT max(rowid) FROM {name}), 0))
                 WHERE part = ?"
            ),
            [name],
        )?;
    }
    Ok(())
}
