//! Copies records from one store into another, row by row.
//!
//! Sessions, trials and others are numbered in each store by itself: [`copy`] gives them new
//! numbers, and seals the rows anew. [`Digest`] covers a record's rows without those numbers, so
//! that it is equal in every store that holds the record.

use std::collections::BTreeMap;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use sha2::{Digest as _, Sha256};

use super::remove::REMOVALS;
use super::seal;
use super::tables::{Table, numbered_by, of_records};

/// New numbers of rows: those that `after` has come before them, or none.
#[derive(Debug, Default)]
struct Renumbering<'a> {
    after: Option<&'a Connection>,
    /// New numbers by table and old number.
    new: BTreeMap<(&'static str, i64), i64>,
    last: BTreeMap<&'static str, i64>,
}

impl Renumbering<'_> {
    /// Gives a value that numbers a row of `table` its new number: rows that have none yet get the
    /// next.
    fn renumber(&mut self, table: Option<&'static str>, value: Value) -> rusqlite::Result<Value> {
        let (Some(table), Value::Integer(old)) = (table, &value) else { return Ok(value) };
        if let Some(new) = self.new.get(&(table, *old)) {
            return Ok(Value::Integer(*new));
        }
        let last = match (self.last.get(table), self.after) {
            (Some(last), _) => *last,
            (None, None) => 0,
            (None, Some(to)) => {
                let sql = format!("SELECT coalesce(max(id), 0) FROM {table}");
                to.query_row(&sql, [], |row| row.get(0))?
            }
        };
        self.last.insert(table, last + 1);
        self.new.insert((table, *old), last + 1);
        Ok(Value::Integer(last + 1))
    }
}

/// Copies all rows of `record` from `from` to `to`, which is in a transaction, and seals them.
pub(super) fn copy(from: &Connection, to: &Connection, record: &str) -> rusqlite::Result<()> {
    let mut renumbering = Renumbering { after: Some(to), ..Renumbering::default() };
    for table in of_records() {
        let columns = table.columns(from)?;
        let places = vec!["?"; columns.len()].join(", ");
        let list = columns.join(", ");
        let mut insert =
            to.prepare(&format!("INSERT INTO {} ({list}) VALUES ({places})", table.name))?;
        each_row(from, table, record, &mut renumbering, |row| {
            insert.execute(params_from_iter(row)).map(drop)
        })?;
    }
    seal::add_record(to, record)
}

/// SHA-256 of a record's rows by table, row numbers counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Digest(Vec<[u8; 32]>);

impl Digest {
    /// Reads a record; none if there is no such record.
    pub(super) fn read(connection: &Connection, record: &str) -> rusqlite::Result<Option<Self>> {
        // All tables at one moment: another process may write the record between two of them.
        let moment = connection.is_autocommit().then(|| connection.unchecked_transaction());
        let moment = moment.transpose()?;
        let mut rows = 0_u64;
        let mut renumbering = Renumbering::default();
        let mut tables = Vec::new();
        for table in of_records() {
            let mut hash = Sha256::new();
            each_row(connection, table, record, &mut renumbering, |row| {
                rows += 1;
                hash.update((row.len() as u64).to_le_bytes());
                row.iter().for_each(|value| seal::add_value(&mut hash, value.into()));
                Ok(())
            })?;
            tables.push(hash.finalize().into());
        }
        drop(moment);
        Ok((rows > 0).then_some(Self(tables)))
    }

    /// Kinds of content in which two records of one id differ, each once.
    pub(super) fn differences(&self, other: &Self) -> Vec<&'static str> {
        let mut contents: Vec<&'static str> = Vec::new();
        for ((table, a), b) in of_records().zip(&self.0).zip(&other.0) {
            if a != b && !contents.contains(&table.content) {
                contents.push(table.content);
            }
        }
        contents
    }
}

/// Copies the removals of `from` that `to` lacks, oldest first, and seals them. Returns how many.
/// `to` is in a transaction.
pub(super) fn copy_removals(from: &Connection, to: &Connection) -> rusqlite::Result<u64> {
    const COLUMNS: &str = "record, kind, removed_at, pgdyno_version, command";
    let mut insert = to.prepare(&format!(
        "INSERT INTO removal ({COLUMNS}) SELECT ?1, ?2, ?3, ?4, ?5 WHERE NOT EXISTS
         (SELECT 1 FROM removal WHERE ({COLUMNS}) = (?1, ?2, ?3, ?4, ?5))"
    ))?;
    let mut statement = from.prepare(&format!("SELECT {COLUMNS} FROM removal ORDER BY id"))?;
    let mut rows = statement.query([])?;
    let mut added = 0;
    while let Some(row) = rows.next()? {
        let values: Vec<Value> = (0..5).map(|at| row.get(at)).collect::<rusqlite::Result<_>>()?;
        if insert.execute(params_from_iter(values))? > 0 {
            seal::add(to, REMOVALS, "removal", to.last_insert_rowid())?;
            added += 1;
        }
    }
    Ok(added)
}

/// Hands every row of `record` in `table` to `take`, renumbered, in the order of its key.
fn each_row(
    connection: &Connection,
    table: &Table,
    record: &str,
    renumbering: &mut Renumbering<'_>,
    mut take: impl FnMut(Vec<Value>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let columns = table.columns(connection)?;
    let numbered: Vec<_> = columns.iter().map(|column| numbered_by(table.name, column)).collect();
    let mut statement = connection.prepare(&table.select(connection, &table.of_record())?)?;
    let mut rows = statement.query([record])?;
    while let Some(row) = rows.next()? {
        let value = |(at, by): (usize, &Option<_>)| renumbering.renumber(*by, row.get(at)?);
        take(numbered.iter().enumerate().map(value).collect::<rusqlite::Result<_>>()?)?;
    }
    Ok(())
}

/// Whether `to` holds a row of another record under a name that a row of `record` has in `from`:
/// names of probes and crash tests are their own, also within runs.
pub(super) fn has_name_of_another(
    from: &Connection,
    to: &Connection,
    record: &str,
) -> rusqlite::Result<bool> {
    for table in ["probe_record", "crash_record"] {
        let names = format!("SELECT id FROM {table} WHERE coalesce(run, id) = ?");
        let other = format!("SELECT 1 FROM {table} WHERE id = ? AND coalesce(run, id) <> ?");
        let (mut names, mut other) = (from.prepare(&names)?, to.prepare(&other)?);
        let mut names = names.query([record])?;
        while let Some(row) = names.next()? {
            if other.exists([row.get::<_, String>(0)?.as_str(), record])? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
