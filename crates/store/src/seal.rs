//! Checksums of stored rows, in a chain for each record, so that damage shows.
//!
//! [`add`] seals rows in the transaction that wrote them: it reads them back and stores the SHA-256
//! of each. The seals of a run, in order, are its chain: each one's head is the SHA-256 of the head
//! before it and of its own content, so that a seal that is lost, moved or doubled shows too.
//! [`check`] computes all of it once more.
//!
//! There is no key: who changes rows on purpose can seal them anew. This finds damage, not forgery.

use std::collections::BTreeSet;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row, params};
use sha2::{Digest, Sha256};

/// Bytes of one checksum.
const LENGTH: usize = 32;

/// Rows that are sealed together: those of one table that belong to one key.
#[derive(Debug)]
pub(super) struct Part {
    /// The table.
    pub(super) name: &'static str,
    /// Its rows of one key, in their order, without columns that SQLite computes.
    rows: &'static str,
    /// Rows of one record that must have a seal: their keys and rowids, by the record's name, found
    /// by the index that reports find them by. None for what belongs to a trial, and is sealed with
    /// it.
    roots: Option<&'static str>,
}

macro_rules! part {
    ($name:literal, $rows:literal) => {
        Part { name: $name, rows: $rows, roots: None }
    };
    ($name:literal, $rows:literal, $roots:literal) => {
        Part { name: $name, rows: $rows, roots: Some($roots) }
    };
}

const PARTS: &[Part] = &[
    part!(
        "run",
        "SELECT id, recipe, started_at, pgdyno_version, experiment, folder, overrides, plan FROM run WHERE id = ?",
        "SELECT id, rowid FROM run WHERE id = ?"
    ),
    part!(
        "run_extension",
        "SELECT id, run, extended_at, overrides, plan FROM run_extension WHERE id = ?",
        "SELECT id, id FROM run_extension WHERE run = ?"
    ),
    part!(
        "thinning",
        "SELECT id, run, thinned_at, pgdyno_version, every_s, samples, seconds FROM thinning WHERE id = ?",
        "SELECT id, id FROM thinning WHERE run = ?"
    ),
    part!(
        "arrival",
        "SELECT id, record, source, arrived_at, pgdyno_version FROM arrival WHERE id = ?",
        "SELECT id, id FROM arrival WHERE record = ?"
    ),
    part!(
        "removal",
        "SELECT id, record, kind, removed_at, pgdyno_version, command FROM removal WHERE id = ?",
        "SELECT id, id FROM removal WHERE ? = 'removals'"
    ),
    part!(
        "session",
        "SELECT id, run, started_at, owner_pid, owner_started_ticks, owner_boot_id, host, storage
         FROM session WHERE id = ?",
        "SELECT id, id FROM session WHERE run = ?"
    ),
    part!(
        "session_end",
        "SELECT session, ended_at, state FROM session_end WHERE session = ?",
        "SELECT e.session, e.session FROM session s JOIN session_end e ON e.session = s.id WHERE s.run = ?"
    ),
    part!(
        "trial",
        "SELECT id, run, session, ordinal, block, treatment, repeat, started_at, measured_at, failure, measurement,
                server_count, server
         FROM trial WHERE id = ?",
        "SELECT id, id FROM trial WHERE run = ?"
    ),
    part!(
        "second",
        "SELECT trial, t_s, length_s, transactions, failed, latency_us_p50, latency_us_p95, latency_us_p99,
                latency_us_max
         FROM second WHERE trial = ? ORDER BY t_s"
    ),
    part!(
        "second_histogram",
        "SELECT trial, t_s, latencies, counts FROM second_histogram WHERE trial = ? ORDER BY t_s"
    ),
    part!(
        "second_command",
        "SELECT trial, t_s, done FROM second_command WHERE trial = ? ORDER BY t_s"
    ),
    part!(
        "histogram",
        "SELECT trial, scope, script, statement, latencies, latency_us_p50, latency_us_p99, latency_us_max, v2
         FROM histogram WHERE trial = ? ORDER BY scope, script, statement"
    ),
    part!(
        "setting",
        "SELECT trial, position, name, value, unit, source FROM setting WHERE trial = ? ORDER BY position"
    ),
    part!(
        "telemetry",
        "SELECT id, trial, probe, columns, unavailable FROM telemetry WHERE trial = ? ORDER BY id"
    ),
    part!(
        "sample",
        "SELECT s.telemetry, s.position, s.t_s, s.readings
         FROM telemetry t JOIN sample s ON s.telemetry = t.id WHERE t.trial = ? ORDER BY t.id, s.position"
    ),
    part!("server_log", "SELECT trial, text FROM server_log WHERE trial = ?"),
    part!(
        "fsync_rate",
        "SELECT id, run, session, storage, method, block_bytes, flushes, seconds, measured_at, latency_us_p50,
                latency_us_p99, latency_us_max, v2
         FROM fsync_rate WHERE id = ?",
        "SELECT id, id FROM fsync_rate WHERE run = ?"
    ),
    part!(
        "probe_record",
        "SELECT id, run, session, kind, name, started_at, pgdyno_version, host, storage, result
         FROM probe_record WHERE id = ?",
        "SELECT id, rowid FROM probe_record WHERE run = ?1 UNION ALL
         SELECT id, rowid FROM probe_record WHERE id = ?1 AND run IS NULL"
    ),
    part!(
        "crash_record",
        "SELECT id, run, session, treatment, name, started_at, pgdyno_version, host, storage, outcome
         FROM crash_record WHERE id = ?",
        "SELECT id, rowid FROM crash_record WHERE run = ?1 UNION ALL
         SELECT id, rowid FROM crash_record WHERE id = ?1 AND run IS NULL"
    ),
    part!(
        "imported_run",
        "SELECT id, source, sha256, imported_at, pgdyno_version, recognised FROM imported_run WHERE id = ?",
        "SELECT id, rowid FROM imported_run WHERE id = ?"
    ),
];

/// Something that is not as it was stored.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Damage {
    /// The table; `seal` for the chain itself.
    pub part: String,
    /// Whose rows: a trial's number in the store, else the row's own name or number.
    pub key: String,
    /// What was found.
    pub found: String,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "table {} of {}: {}", self.part, self.key, self.found)
    }
}

/// What a chain's check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Checked {
    /// Rows that have a checksum (count).
    pub(super) rows: u64,
    /// Rows that were stored before there were checksums (count); a trial's count as one.
    pub(super) unsealed: u64,
    /// What is not as it was stored.
    pub(super) damage: Vec<Damage>,
}

/// Seals the rows of `key` in the table `part`, which this transaction wrote, as the next of
/// `chain`.
pub(super) fn add(
    transaction: &Connection,
    chain: &str,
    part: &str,
    key: impl Into<Value>,
) -> rusqlite::Result<()> {
    let key = key.into();
    let part = named(part)?;
    let checksums = checksums(transaction, part, &key)?.concat();
    let last: Option<(i64, Vec<u8>)> = first(
        transaction,
        "SELECT position, head FROM seal WHERE chain = ? ORDER BY position DESC LIMIT 1",
        params![chain],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let (position, before) =
        last.map_or((0, genesis(chain)), |(position, head)| (position + 1, head));
    let head = head(&before, part.name, &key, &checksums);
    transaction
        .prepare_cached(
            "INSERT INTO seal (chain, position, part, key, checksums, head) VALUES (?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![chain, position, part.name, key, checksums, head])
        .map(|_| ())
}

/// Seals a trial and all that belongs to it.
pub(super) fn add_trial(transaction: &Connection, run: &str, trial: i64) -> rusqlite::Result<()> {
    let mut of_trial = PARTS.iter().filter(|part| part.roots.is_none() || part.name == "trial");
    of_trial.try_for_each(|part| add(transaction, run, part.name, trial))
}

/// Seals the rows of `parts` in `chain` anew, as they are now, and with them the chain.
pub(super) fn renew(connection: &Connection, chain: &str, parts: &[&str]) -> rusqlite::Result<()> {
    let seals: Vec<(i64, String, Value, Vec<u8>)> = connection
        .prepare("SELECT id, part, key, checksums FROM seal WHERE chain = ? ORDER BY position")?
        .query_map([chain], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut update = connection.prepare("UPDATE seal SET checksums = ?, head = ? WHERE id = ?")?;
    let mut before = genesis(chain);
    for (id, part, key, mut sealed) in seals {
        if parts.contains(&part.as_str()) {
            sealed = checksums(connection, named(&part)?, &key)?.concat();
        }
        before = head(&before, &part, &key, &sealed);
        update.execute(params![sealed, before, id])?;
    }
    Ok(())
}

/// What of `record` must have a seal: tables and keys.
pub(super) fn roots(
    connection: &Connection,
    record: &str,
) -> rusqlite::Result<Vec<(&'static str, Value)>> {
    let mut all = Vec::new();
    for part in PARTS {
        let Some(roots) = part.roots else { continue };
        let mut statement = connection.prepare_cached(roots)?;
        let keys = statement.query_map([record], |row| row.get(0))?;
        for key in keys {
            all.push((part.name, key?));
        }
    }
    Ok(all)
}

/// Checks everything that `chain` seals, and that everything of that record is sealed.
pub(super) fn check(connection: &Connection, chain: &str) -> rusqlite::Result<Checked> {
    let mut checked = Checked::default();
    let mut before = genesis(chain);
    let mut statement = connection.prepare_cached(
        "SELECT position, part, key, checksums, head FROM seal WHERE chain = ? ORDER BY position",
    )?;
    let mut seals = statement.query([chain])?;
    let mut expected: i64 = 0;
    while let Some(row) = seals.next()? {
        let (position, part): (i64, String) = (row.get(0)?, row.get(1)?);
        let (key, stored, its_head): (Value, Vec<u8>, Vec<u8>) =
            (row.get(2)?, row.get(3)?, row.get(4)?);
        let place = format!("place {position}");
        if position != expected {
            let found = format!("place {expected} of the chain is missing");
            checked.damage.push(Damage::of_chain(&place, &found));
        }
        expected = position.saturating_add(1);
        if its_head != head(&before, &part, &key, &stored) {
            checked.damage.push(Damage::of_chain(&place, "the chain is broken here"));
        }
        before = its_head;
        checked.compare(connection, &part, &key, &stored)?;
    }
    PARTS.iter().try_for_each(|part| checked.add_unsealed(connection, part, chain))?;
    Ok(checked)
}

/// Checks a run's own rows, its plan and overrides, and not the chain: lists ask it of every run.
pub(super) fn check_head(connection: &Connection, run: &str) -> rusqlite::Result<Checked> {
    let mut checked = Checked::default();
    let mut statement = connection.prepare_cached(
        "SELECT part, key, checksums FROM seal WHERE chain = ? AND part IN ('run', 'run_extension')",
    )?;
    let mut seals = statement.query([run])?;
    while let Some(row) = seals.next()? {
        checked.compare(
            connection,
            &row.get::<_, String>(0)?,
            &row.get(1)?,
            &row.get::<_, Vec<u8>>(2)?,
        )?;
    }
    for part in PARTS.iter().filter(|part| matches!(part.name, "run" | "run_extension")) {
        checked.add_unsealed(connection, part, run)?;
    }
    Ok(checked)
}

impl Checked {
    /// Compares the rows of `key` in the table `part` with their checksums.
    fn compare(
        &mut self,
        connection: &Connection,
        part: &str,
        key: &Value,
        stored: &[u8],
    ) -> rusqlite::Result<()> {
        let Ok(part) = named(part) else {
            self.damage.push(Damage::of_chain(part, "it seals a table that is not known"));
            return Ok(());
        };
        let now = checksums(connection, part, key)?;
        self.rows += (stored.len() / LENGTH) as u64;
        self.damage.extend(compare(part.name, key, stored, &now));
        Ok(())
    }

    fn add_unsealed(
        &mut self,
        connection: &Connection,
        part: &Part,
        record: &str,
    ) -> rusqlite::Result<()> {
        let (unsealed, damage) = without_seal(connection, part, record)?;
        self.unsealed += unsealed;
        self.damage.extend(damage);
        Ok(())
    }
}

impl Damage {
    fn of_chain(place: &str, found: &str) -> Self {
        Self { part: "seal".into(), key: place.to_owned(), found: found.to_owned() }
    }
}

/// What of the rows differs from what was sealed.
fn compare(part: &str, key: &Value, stored: &[u8], now: &[[u8; LENGTH]]) -> Vec<Damage> {
    /// As many rows are named; the number of all others is told.
    const NAMED: usize = 3;
    let damage = |found: String| Damage { part: part.to_owned(), key: text(key), found };
    let stored: Vec<&[u8]> = stored.chunks(LENGTH).collect();
    let mut out = Vec::new();
    if stored.len() != now.len() {
        out.push(damage(format!("{} rows were stored, {} are there", stored.len(), now.len())));
    }
    let differ: Vec<usize> =
        (0..stored.len().min(now.len())).filter(|&n| stored[n] != now[n].as_slice()).collect();
    out.extend(
        differ.iter().take(NAMED).map(|n| damage(format!("row {} is not as it was stored", n + 1))),
    );
    if differ.len() > NAMED {
        out.push(damage(format!("{} more rows are not as they were stored", differ.len() - NAMED)));
    }
    out
}

/// How many rows of the record were stored before there were seals, and those that lack one
/// although they were not.
fn without_seal(
    connection: &Connection,
    part: &Part,
    record: &str,
) -> rusqlite::Result<(u64, Vec<Damage>)> {
    let Some(roots) = part.roots else { return Ok((0, Vec::new())) };
    let last: i64 =
        first(connection, "SELECT last FROM unsealed WHERE part = ?", [part.name], |row| {
            row.get(0)
        })?
        .unwrap_or(0);
    let mut statement = connection.prepare_cached(roots)?;
    let roots: Vec<(Value, i64)> = statement
        .query_map([record], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let (mut before, mut damage) = (0, hidden(connection, part, record, &roots)?);
    for (key, number) in roots {
        let seals: i64 = first(
            connection,
            "SELECT count(*) FROM seal WHERE part = ? AND key = ? AND chain = ?",
            params![part.name, key, record],
            |row| row.get(0),
        )?
        .unwrap_or(0);
        let found = match seals {
            1 => continue,
            0 if number <= last => {
                before += 1;
                continue;
            }
            0 => "it has no checksum".to_owned(),
            n => format!("it was sealed {n} times"),
        };
        damage.push(Damage { part: part.name.to_owned(), key: text(&key), found });
    }
    Ok((before, damage))
}

/// Rows that were sealed and that the record's own list lacks: where an index is damaged, a row that
/// is whole is not found.
fn hidden(
    connection: &Connection,
    part: &Part,
    record: &str,
    roots: &[(Value, i64)],
) -> rusqlite::Result<Vec<Damage>> {
    let listed: BTreeSet<String> = roots.iter().map(|(key, _)| text(key)).collect();
    let mut statement =
        connection.prepare_cached("SELECT key FROM seal WHERE chain = ? AND +part = ?")?;
    let sealed = statement.query_map([record, part.name], |row| Ok(text(&row.get(0)?)))?;
    let sealed = sealed.collect::<rusqlite::Result<BTreeSet<String>>>()?;
    let damage = |key: &String| Damage {
        part: part.name.to_owned(),
        key: key.clone(),
        found: "it was stored, and is not found".to_owned(),
    };
    Ok(sealed.difference(&listed).map(damage).collect())
}

fn named(name: &str) -> rusqlite::Result<&'static Part> {
    PARTS
        .iter()
        .find(|part| part.name == name)
        .ok_or_else(|| rusqlite::Error::InvalidParameterName(name.to_owned()))
}

/// The checksum of each row of `key` in `part`, in order.
fn checksums(
    connection: &Connection,
    part: &Part,
    key: &Value,
) -> rusqlite::Result<Vec<[u8; LENGTH]>> {
    let mut statement = connection.prepare_cached(part.rows)?;
    let columns = statement.column_count();
    let rows = statement.query_map([key], |row| checksum(part.name, row, columns))?;
    rows.collect()
}

fn checksum(part: &str, row: &Row<'_>, columns: usize) -> rusqlite::Result<[u8; LENGTH]> {
    let mut hash = Sha256::new();
    add_value(&mut hash, ValueRef::Text(part.as_bytes()));
    for column in 0..columns {
        add_value(&mut hash, row.get_ref(column)?);
    }
    Ok(hash.finalize().into())
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

/// A key in words.
fn text(key: &Value) -> String {
    match key {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

pub(super) fn first<T>(
    connection: &Connection,
    query: &str,
    parameters: impl rusqlite::Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    use rusqlite::OptionalExtension as _;
    connection.prepare_cached(query)?.query_row(parameters, read).optional()
}
