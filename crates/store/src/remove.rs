//! Removal of records: each is named, and the store keeps that it was there.

use std::collections::BTreeSet;

use pgdyno_model::units::Epoch;
use rusqlite::{Connection, params};

use super::tables::TABLES;
use super::write::open_sessions_of;
use super::{SessionId, Store, StoreError, Stored, seal};

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
        let now = Epoch::from_time(std::time::SystemTime::now());
        for record in records {
            self.refuse_at_work(record.id())?;
        }
        let failed = self.failed("remove a record");
        let (path, dead) = (self.path.clone(), self.dead.clone());
        self.amend("remove a record", |transaction| {
            for record in records {
                // A process may have begun to work on it, or have removed it, since.
                if is_at_work(transaction, record.id(), &dead).map_err(&failed)? {
                    return Err(StoreError::AtWork { run: record.id().to_owned() });
                }
                let removed = delete(transaction, record.id()).map_err(&failed)?;
                if removed == 0 {
                    let name = record.id().to_owned();
                    return Err(StoreError::UnknownRun {
                        path: path.clone(),
                        name,
                        nearest: Vec::new(),
                    });
                }
                keep_name(transaction, record, now, command).map_err(&failed)?;
            }
            lower_unsealed(transaction).map_err(&failed)
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
    for table in TABLES.iter().rev() {
        let sql = format!("DELETE FROM {} WHERE {}", table.name, table.of_record);
        removed += connection.execute(&sql, [record])?;
    }
    connection.execute("DELETE FROM arrival WHERE record = ?", [record])?;
    connection.execute("DELETE FROM seal WHERE chain = ?", [record])?;
    Ok(removed)
}

fn keep_name(
    connection: &Connection,
    record: &Stored,
    now: Epoch,
    command: &str,
) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT INTO removal (record, kind, removed_at, pgdyno_version, command)
         VALUES (?, ?, ?, ?, ?)",
        params![record.id(), record.kind(), now.0, env!("CARGO_PKG_VERSION"), command],
    )?;
    seal::add(connection, REMOVALS, "removal", connection.last_insert_rowid())
}

/// SQLite gives a removed row's number to the next: none of those may count as stored before there
/// were checksums.
fn lower_unsealed(connection: &Connection) -> rusqlite::Result<()> {
    let parts: Vec<String> = connection
        .prepare("SELECT part FROM unsealed")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for table in TABLES.iter().filter(|table| parts.iter().any(|part| part == table.name)) {
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
