//! Copies records from one store into another, row by row.
//!
//! Sessions, trials and others are numbered in each store by itself: [`copy`] gives them new
//! numbers, and seals the rows anew in the order in which they were sealed. [`Digest`] is that of a
//! record's rows without those numbers, so that it is the same in every store that holds the
//! record.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, params_from_iter};
use sha2::{Digest as _, Sha256};

use super::remove::REMOVALS;
use super::seal;
use super::tables::{Column, Numbers, TABLES, Table, columns};

/// New numbers of rows, by what they number and their old number.
#[derive(Debug, Default)]
struct Renumbering {
    new: BTreeMap<(Numbers, i64), i64>,
    last: BTreeMap<Numbers, i64>,
}

impl Renumbering {
    /// Numbers rows after those that `to` has.
    fn after_rows_of(to: &Connection) -> rusqlite::Result<Self> {
        let mut last = BTreeMap::new();
        for (numbers, table) in Numbers::ALL {
            let sql = format!("SELECT coalesce(max(id), 0) FROM {table}");
            last.insert(numbers, to.query_row(&sql, [], |row| row.get(0))?);
        }
        Ok(Self { last, ..Self::default() })
    }

    /// The new number of a row; rows that have none yet get the next.
    fn number(&mut self, numbers: Numbers, old: i64) -> i64 {
        let last = self.last.entry(numbers).or_insert(0);
        *self.new.entry((numbers, old)).or_insert_with(|| {
            *last += 1;
            *last
        })
    }

    fn renumber(&mut self, numbers: Option<Numbers>, value: Value) -> Value {
        match (numbers, value) {
            (Some(numbers), Value::Integer(old)) => Value::Integer(self.number(numbers, old)),
            (_, other) => other,
        }
    }
}

/// Copies all rows of `record` from `from` to `to`, which is in a transaction, and seals them.
pub(super) fn copy(from: &Connection, to: &Connection, record: &str) -> rusqlite::Result<()> {
    let mut renumbering = Renumbering::after_rows_of(to)?;
    for table in TABLES {
        let (names, _) = columns(from, table.name)?;
        let list = names.iter().map(|column| column.name.as_str()).collect::<Vec<_>>();
        let places = vec!["?"; list.len()].join(", ");
        let sql = format!("INSERT INTO {} ({}) VALUES ({places})", table.name, list.join(", "));
        let mut insert = to.prepare(&sql)?;
        each_row(from, table, record, &mut renumbering, |row| {
            insert.execute(params_from_iter(row)).map(|_| ())
        })?;
    }
    copy_seals(from, to, record, &mut renumbering)
}

/// Seals the copied rows in the order of the chain in `from`, and then those that have no seal
/// there.
fn copy_seals(
    from: &Connection,
    to: &Connection,
    record: &str,
    renumbering: &mut Renumbering,
) -> rusqlite::Result<()> {
    let mut statement = from.prepare(
        "SELECT part, key FROM seal WHERE chain = ? AND part <> 'arrival' ORDER BY position",
    )?;
    let seals = statement.query_map([record], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut sealed: BTreeSet<String> = BTreeSet::new();
    for found in seals {
        let (part, key): (String, Value) = found?;
        let key = renumbering.renumber(Numbers::of_seal(&part), key);
        sealed.insert(format!("{part} {key:?}"));
        seal::add(to, record, &part, key)?;
    }
    for (part, key) in seal::roots(to, record)? {
        if sealed.contains(&format!("{part} {key:?}")) {
            continue;
        }
        match (part, &key) {
            ("trial", Value::Integer(trial)) => seal::add_trial(to, record, *trial)?,
            _ => seal::add(to, record, part, key)?,
        }
    }
    Ok(())
}

/// SHA-256 of a record's rows in each of [`TABLES`], its row numbers counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Digest(Vec<[u8; 32]>);

impl Digest {
    /// Reads a record; none if there is no such record.
    pub(super) fn read(connection: &Connection, record: &str) -> rusqlite::Result<Option<Self>> {
        // All tables at one moment: another process may write the record between two of them.
        let moment = match connection.is_autocommit() {
            true => Some(connection.unchecked_transaction()?),
            false => None,
        };
        let mut rows = 0_u64;
        let mut renumbering = Renumbering::default();
        let mut tables = Vec::with_capacity(TABLES.len());
        for table in TABLES {
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
        for ((table, a), b) in TABLES.iter().zip(&self.0).zip(&other.0) {
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
    renumbering: &mut Renumbering,
    mut take: impl FnMut(Vec<Value>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let (columns, keys) = columns(connection, table.name)?;
    let list = columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ");
    let mut statement = connection.prepare(&format!(
        "SELECT {list} FROM {} WHERE {} ORDER BY {}",
        table.name,
        table.of_record,
        keys.join(", ")
    ))?;
    let mut rows = statement.query([record])?;
    while let Some(row) = rows.next()? {
        let value =
            |(at, column): (usize, &Column)| Ok(renumbering.renumber(column.numbers, row.get(at)?));
        let values = columns.iter().enumerate().map(value).collect::<rusqlite::Result<_>>()?;
        take(values)?;
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
        let sql = format!("SELECT id FROM {table} WHERE coalesce(run, id) = ?");
        let mut statement = from.prepare(&sql)?;
        let names: Vec<String> =
            statement.query_map([record], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        let other = format!("SELECT 1 FROM {table} WHERE id = ? AND coalesce(run, id) <> ?");
        for name in names {
            let found: Option<i64> =
                to.query_row(&other, [name.as_str(), record], |row| row.get(0)).optional()?;
            if found.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
