//! Checksums of stored rows, in a chain for each record, so that damage shows.
//!
//! [`add`] seals rows in the transaction that wrote them: it reads them back, with every column
//! that the schema stores, and keeps the SHA-256 of each. The seals of a record, in order, are its
//! chain: each one's head is the SHA-256 of the head before it and of its own content, so that a
//! seal that is lost, moved or doubled shows too. [`check`] computes all of it once more.
//!
//! There is no key: who changes rows on purpose can seal them anew. This finds damage, not forgery.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, params};
use sha2::{Digest, Sha256};

use super::tables::{self, TABLES, Table};

/// Bytes of one checksum.
const LENGTH: usize = 32;

/// Damage: something that is not as it was stored.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Damage {
    /// The table; `seal` for the chain itself.
    pub part: String,
    /// Owner of the rows: a trial's number in the store, else the row's own name or number.
    pub key: String,
    /// The difference, in words.
    pub found: String,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "table {} of {}: {}", self.part, self.key, self.found)
    }
}

/// Result of checking a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Checked {
    /// Rows that have a checksum (count).
    pub(super) rows: u64,
    /// Rows that were stored before there were checksums (count); a trial's count as one.
    pub(super) unsealed: u64,
    /// Everything that is not as it was stored.
    pub(super) damage: Vec<Damage>,
}

/// Seals the rows of `key` in `table`, which this transaction wrote, as the next of `chain`.
pub(super) fn add(
    transaction: &Connection,
    chain: &str,
    table: &str,
    key: impl Into<Value>,
) -> rusqlite::Result<()> {
    let key = key.into();
    let sealed = tables::named(table)?;
    let rows = sealed.select(transaction, &sealed.of_key())?;
    let checksums = checksums(transaction, table, &rows, &key)?;
    let last: Option<(i64, Vec<u8>)> = transaction
        .prepare_cached(
            "SELECT position, head FROM seal WHERE chain = ? ORDER BY position DESC LIMIT 1",
        )?
        .query_row([chain], |row| row.try_into())
        .optional()?;
    let (position, before) =
        last.map_or_else(|| (0, genesis(chain)), |(position, head)| (position + 1, head));
    let head = head(&before, table, &key, &checksums);
    transaction
        .prepare_cached("INSERT INTO seal VALUES (NULL, ?, ?, ?, ?, ?, ?)")?
        .execute(params![chain, position, table, key, checksums, head])
        .map(drop)
}

/// Seals a trial and all that belongs to it.
pub(super) fn add_trial(
    transaction: &Connection,
    run: &str,
    trial: &Value,
) -> rusqlite::Result<()> {
    let mut of_trial = TABLES.iter().filter(|table| table.key().is_none() || table.name == "trial");
    of_trial.try_for_each(|table| add(transaction, run, table.name, trial.clone()))
}

/// Seals all rows of `record`, which this transaction wrote.
pub(super) fn add_record(transaction: &Connection, record: &str) -> rusqlite::Result<()> {
    for table in &TABLES {
        for (key, _) in keys(transaction, table, record)? {
            match table.name {
                "trial" => add_trial(transaction, record, &key)?,
                name => add(transaction, record, name, key)?,
            }
        }
    }
    Ok(())
}

/// Seals all rows of `record`, which this transaction changed, in place of the seals that it has.
pub(super) fn renew(transaction: &Connection, record: &str) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM seal WHERE chain = ?", [record])?;
    add_record(transaction, record)
}

/// Checks everything that `chain` seals, and that everything of that record is sealed.
pub(super) fn check(connection: &Connection, chain: &str) -> rusqlite::Result<Checked> {
    check_tables(connection, chain, false)
}

/// Checks a run's own rows, its plan and overrides, and not the chain: lists ask it of every run.
pub(super) fn check_head(connection: &Connection, run: &str) -> rusqlite::Result<Checked> {
    check_tables(connection, run, true)
}

fn check_tables(connection: &Connection, chain: &str, is_head: bool) -> rusqlite::Result<Checked> {
    let mut checked = Checked::default();
    // How often each row that has a seal of its own was sealed.
    let mut sealed: BTreeMap<(&str, String), u32> = BTreeMap::new();
    // Query of each table's rows: a table has many seals, and its columns are read once.
    let mut queries: BTreeMap<&str, String> = BTreeMap::new();
    let mut statement = connection.prepare_cached(
        "SELECT position, part, key, checksums, head FROM seal
         WHERE chain = ? AND (NOT ? OR part IN ('run', 'run_extension')) ORDER BY position",
    )?;
    let mut seals = statement.query(params![chain, is_head])?;
    let (mut expected, mut before) = (0, genesis(chain));
    while let Some(row) = seals.next()? {
        let (position, part, key, stored, stored_head): (i64, String, Value, Vec<u8>, Vec<u8>) =
            row.try_into()?;
        let place = format!("place {position}");
        if !is_head && position != expected {
            checked.add("seal", &place, format!("place {expected} of the chain is missing"));
        }
        if !is_head && stored_head != head(&before, &part, &key, &stored) {
            checked.add("seal", &place, "the chain is broken here");
        }
        (expected, before) = (position.saturating_add(1), stored_head);
        let Ok(table) = tables::named(&part) else {
            checked.add("seal", &part, "it seals a table that is not known");
            continue;
        };
        checked.rows += (stored.len() / LENGTH) as u64;
        let rows = match queries.entry(table.name) {
            Entry::Occupied(query) => query.into_mut(),
            Entry::Vacant(query) => query.insert(table.select(connection, &table.of_key())?),
        };
        let now = checksums(connection, table.name, rows, &key)?;
        checked.compare(table.name, &text(&key), &stored, &now);
        if table.key().is_some() {
            *sealed.entry((table.name, text(&key))).or_default() += 1;
        }
    }
    for table in TABLES.iter().filter(|t| !is_head || matches!(t.name, "run" | "run_extension")) {
        checked.find_without_seal(connection, table, chain, &mut sealed)?;
    }
    // Where an index is damaged, a row that is whole is not found.
    for (table, key) in sealed.keys() {
        checked.add(table, key, "it was stored, and is not found");
    }
    Ok(checked)
}

impl Checked {
    /// Result for a chain that cannot be read.
    pub(super) fn unreadable(key: &str, error: &rusqlite::Error) -> Self {
        let mut checked = Self::default();
        checked.add("seal", key, format!("it cannot be read: {error}"));
        checked
    }

    fn add(&mut self, part: &str, key: &str, found: impl Into<String>) {
        let found = found.into();
        self.damage.push(Damage { part: part.to_owned(), key: key.to_owned(), found });
    }

    /// Adds how the checksums of rows differ from those that were stored.
    fn compare(&mut self, table: &str, key: &str, stored: &[u8], now: &[u8]) {
        /// As many rows are named; of others the number is told.
        const NAMED: usize = 3;
        let rows = |checksums: &[u8]| checksums.len() / LENGTH;
        if stored.len() != now.len() {
            let found = format!("{} rows were stored, {} are there", rows(stored), rows(now));
            self.add(table, key, found);
        }
        let pairs = stored.chunks(LENGTH).zip(now.chunks(LENGTH));
        let differ: Vec<usize> =
            pairs.zip(1..).filter(|((a, b), _)| a != b).map(|(_, n)| n).collect();
        for n in differ.iter().take(NAMED) {
            self.add(table, key, format!("row {n} is not as it was stored"));
        }
        if let Some(more) = differ.len().checked_sub(NAMED).filter(|more| *more > 0) {
            self.add(table, key, format!("{more} more rows are not as they were stored"));
        }
    }

    /// Counts the rows of `record` that were stored before there were seals, and adds those that
    /// lack one although they were not. Takes rows that are found out of `sealed`.
    fn find_without_seal(
        &mut self,
        connection: &Connection,
        table: &Table,
        record: &str,
        sealed: &mut BTreeMap<(&str, String), u32>,
    ) -> rusqlite::Result<()> {
        let last: i64 = connection
            .prepare_cached("SELECT coalesce(max(last), 0) FROM unsealed WHERE part = ?")?
            .query_row([table.name], |row| row.get(0))?;
        for (key, number) in keys(connection, table, record)? {
            match sealed.remove(&(table.name, text(&key))) {
                Some(1) => {}
                Some(n) => self.add(table.name, &text(&key), format!("it was sealed {n} times")),
                None if number <= last => self.unsealed += 1,
                None => self.add(table.name, &text(&key), "it has no checksum"),
            }
        }
        Ok(())
    }
}

/// Keys and numbers of the rows of `record` that have a seal of their own, as reports find them.
fn keys(
    connection: &Connection,
    table: &Table,
    record: &str,
) -> rusqlite::Result<Vec<(Value, i64)>> {
    let Some(key) = table.key() else { return Ok(Vec::new()) };
    let sql = format!("SELECT {key}, rowid FROM {} WHERE {}", table.name, table.of_record());
    connection.prepare_cached(&sql)?.query_map([record], |row| row.try_into())?.collect()
}

/// Checksums of the rows of `key` in `table`, which the query `rows` selects in order.
fn checksums(
    connection: &Connection,
    table: &str,
    rows: &str,
    key: &Value,
) -> rusqlite::Result<Vec<u8>> {
    let mut statement = connection.prepare_cached(rows)?;
    let columns = statement.column_count();
    let mut rows = statement.query([key])?;
    let mut checksums = Vec::new();
    while let Some(row) = rows.next()? {
        let mut hash = Sha256::new();
        add_value(&mut hash, ValueRef::Text(table.as_bytes()));
        for column in 0..columns {
            add_value(&mut hash, row.get_ref(column)?);
        }
        checksums.extend_from_slice(&hash.finalize());
    }
    Ok(checksums)
}

/// Adds a value's kind, length and bytes: no two lists of values come to the same bytes.
pub(super) fn add_value(hash: &mut Sha256, value: ValueRef<'_>) {
    let number;
    let (kind, bytes): (u8, &[u8]) = match value {
        ValueRef::Null => (0, &[]),
        ValueRef::Integer(i) => {
            number = i.to_le_bytes();
            (1, &number)
        }
        ValueRef::Real(x) => {
            number = x.to_bits().to_le_bytes();
            (2, &number)
        }
        ValueRef::Text(text) => (3, text),
        ValueRef::Blob(blob) => (4, blob),
    };
    hash.update([kind]);
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

fn genesis(chain: &str) -> Vec<u8> {
    Sha256::digest(chain.as_bytes()).to_vec()
}

fn head(before: &[u8], part: &str, key: &Value, checksums: &[u8]) -> Vec<u8> {
    let mut hash = Sha256::new();
    for value in [
        ValueRef::Blob(before),
        ValueRef::Text(part.as_bytes()),
        ValueRef::from(key),
        ValueRef::Blob(checksums),
    ] {
        add_value(&mut hash, value);
    }
    hash.finalize().to_vec()
}

/// A key as people read it.
fn text(key: &Value) -> String {
    match key {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}
