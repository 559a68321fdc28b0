//! One connection's work: it loads pieces, and finishes each table whose last piece it loaded.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

use pgdyno_connect::control::{ControlClient, Transaction};
use pgdyno_engine::copy::{BlockWriter, HEADER, TRAILER};
use pgdyno_model::load_strategy::LoadStrategy;
use postgres_protocol::escape::{escape_identifier, escape_literal};

use crate::bulk_load::BulkLoad;
use crate::columns::Columns;
use crate::error::DatasetError;
use crate::key_settings::Builders;
use crate::load_progress::{child, comment, like, note};
use crate::pieces::Piece;
use crate::workload::{TableSpec, Tidy};

/// Bytes that are made between two looks at the stop flag, and sent together.
const BLOCK: usize = 64 << 10;

/// State that all connections share.
pub(crate) struct Shared<'a> {
    pub(crate) load: &'a BulkLoad<'a>,
    /// By table.
    pub(crate) columns: Vec<Columns>,
    pub(crate) builders: Builders,
    /// Pieces to load, in order, without those that an earlier load completed.
    pub(crate) queue: Mutex<std::vec::IntoIter<Piece>>,
    /// Pieces that each table still lacks (count).
    pub(crate) left: Vec<AtomicU32>,
    /// Whether a table's key was built by a load that this one goes on with.
    pub(crate) keyed: Vec<bool>,
    /// Read lock: a transaction is open. Write lock: held for an instant before VACUUM freezes rows
    /// that COPY did not freeze, because an older snapshot would keep it from the last of them.
    pub(crate) open: RwLock<()>,
    /// Pieces that are being filled with FREEZE or get their key (count).
    pub(crate) writing: AtomicU32,
    pub(crate) rows: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// Set by a signal.
    pub(crate) stop: &'a AtomicBool,
    /// Set when a connection fails.
    pub(crate) failed: AtomicBool,
}

impl Shared<'_> {
    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    fn next(&self) -> Option<Piece> {
        if self.is_over() {
            return None;
        }
        match self.queue.lock() {
            Ok(mut queue) => queue.next(),
            Err(poisoned) => poisoned.into_inner().next(),
        }
    }

    /// Takes the lock that is held as long as a transaction is open.
    fn open(&self) -> RwLockReadGuard<'_, ()> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn interrupted(&self) -> DatasetError {
        DatasetError::Interrupted { data: self.load.identity() }
    }

    /// Creates the error of a statement, which was `doing` something: an interruption, if the load
    /// is over.
    pub(crate) fn error(&self, doing: &str, error: &tokio_postgres::Error) -> DatasetError {
        match self.is_over() {
            true => self.interrupted(),
            false => DatasetError::sql(self.load, doing, error),
        }
    }

    /// Returns the rows (count) and bytes that were sent.
    pub(crate) fn sent(&self) -> (u64, u64) {
        (self.rows.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    fn tablespace(&self, table: &str) -> Option<&str> {
        self.load.placed.iter().find(|(name, _)| name == table).map(|(_, place)| place.as_str())
    }
}

/// Loads pieces until none is left.
pub(crate) fn work(client: &mut ControlClient, shared: &Shared<'_>) -> Result<(), DatasetError> {
    while let Some(unit) = shared.next() {
        Work::new(client, shared, &unit).load()?;
        if shared.left[unit.table].fetch_sub(1, Ordering::AcqRel) == 1 {
            Work::new(client, shared, &unit).finish()?;
        }
    }
    if shared.is_over() { Err(shared.interrupted()) } else { Ok(()) }
}

/// Finishes a table all of whose pieces an earlier load completed.
pub(crate) fn finish_only(
    client: &mut ControlClient,
    shared: &Shared<'_>,
    last: &Piece,
) -> Result<(), DatasetError> {
    Work::new(client, shared, last).finish()
}

struct Work<'a> {
    client: &'a mut ControlClient,
    shared: &'a Shared<'a>,
    unit: &'a Piece,
    table: &'a TableSpec,
}

impl<'a> Work<'a> {
    fn new(client: &'a mut ControlClient, shared: &'a Shared<'a>, unit: &'a Piece) -> Self {
        Self { client, shared, unit, table: &shared.load.data.tables[unit.table] }
    }

    fn execute(&mut self, sql: &str) -> Result<(), DatasetError> {
        self.client.batch_execute(sql).map_err(|e| self.shared.error(sql, &e))
    }

    fn execute_alone(&mut self, sql: &str) -> Result<(), DatasetError> {
        self.client.execute_alone(sql).map_err(|e| self.shared.error(sql, &e))
    }

    /// Executes all of `sql` or nothing.
    fn execute_together(&mut self, sql: &[String], doing: &str) -> Result<(), DatasetError> {
        self.client.batch_execute(&sql.join("; ")).map_err(|e| self.shared.error(doing, &e))
    }

    fn load(&mut self) -> Result<(), DatasetError> {
        let load = self.shared.load;
        let table = self.table.name.as_str();
        let target = load.table(&match self.unit.strategy {
            LoadStrategy::Partitions => child(table, self.unit.number),
            LoadStrategy::Freeze | LoadStrategy::Chunks => table.to_owned(),
        });
        let columns = &self.shared.columns[self.unit.table];
        let freeze = self.unit.strategy != LoadStrategy::Chunks;
        let mut before = match self.unit.strategy {
            // FREEZE wants a table made or emptied in the same transaction; frozen rows need no
            // second write later.
            LoadStrategy::Freeze => vec![format!("TRUNCATE {target}")],
            LoadStrategy::Chunks => Vec::new(),
            LoadStrategy::Partitions => vec![self.partition(&target)?],
        };
        before.extend(columns.set_defaults(&target));
        let mut after: Vec<String> = columns.drop_defaults(&target).into_iter().collect();
        if freeze {
            after.extend(self.key(&target, self.unit.rows));
        }
        after.push(note(load, &self.unit.name(&load.data.tables)));
        let (shared, unit) = (self.shared, self.unit);
        let doing = format!("filling {target}");
        let open = shared.open();
        let failed = |e: tokio_postgres::Error| shared.error(&doing, &e);
        let mut transaction = self.client.transaction().map_err(failed)?;
        for sql in &before {
            transaction.batch_execute(sql).map_err(failed)?;
        }
        let writing = freeze.then(|| Writing::new(shared));
        copy(&mut transaction, shared, unit, &columns.copy_statement(&target, freeze), &doing)?;
        for sql in &after {
            transaction.batch_execute(sql).map_err(failed)?;
        }
        drop(writing);
        transaction.commit().map_err(failed)?;
        drop(open);
        match self.unit.strategy {
            // ANALYZE of the whole table looks at its partitions too.
            LoadStrategy::Partitions if self.table.tidy == Tidy::Vacuum => {
                self.execute_alone(&format!("VACUUM {target}"))
            }
            _ => Ok(()),
        }
    }

    /// Returns SQL that makes a partition, with a CHECK that spares attaching a scan of the rows.
    fn partition(&mut self, child: &str) -> Result<String, DatasetError> {
        const ASKED: &str = "SELECT pg_catalog.array_to_string(c.reloptions, ', '), \
            s.spcname::text, \
            pg_catalog.format_type(a.atttypid, a.atttypmod) FROM pg_catalog.pg_class c \
            JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = $2 \
            LEFT JOIN pg_catalog.pg_tablespace s ON s.oid = c.reltablespace \
            WHERE c.oid = $1::text::regclass";
        let like = self.shared.load.table(&like(&self.table.name));
        let by = self.table.partition_by.clone().unwrap_or_default();
        let row = self
            .client
            .query_one(ASKED, &[&like, &by])
            .map_err(|e| self.shared.error(&format!("looking at {like}"), &e))?;
        let (options, place, kind): (Option<String>, Option<String>, String) =
            (row.get(0), row.get(1), row.get(2));
        let (first, beyond) = (self.unit.first, self.unit.first + self.unit.rows);
        let mut bounds = Vec::new();
        if self.unit.number > 1 {
            bounds.push(format!("{by} >= {first}::{kind}"));
        }
        if self.unit.number < self.unit.of {
            bounds.push(format!("{by} < {beyond}::{kind}"));
        }
        let check = match bounds.is_empty() {
            true => String::new(),
            false => format!(", CONSTRAINT {CHECK} CHECK ({})", bounds.join(" AND ")),
        };
        let options = options.map_or_else(String::new, |o| format!(" WITH ({o})"));
        let place =
            place.map_or_else(String::new, |p| format!(" TABLESPACE {}", escape_identifier(&p)));
        let comment = escape_literal(&comment(self.shared.load));
        Ok(format!(
            "CREATE TABLE {child} (LIKE {like} INCLUDING ALL{check}){options}{place}; \
             COMMENT ON TABLE {child} IS {comment}"
        ))
    }

    /// Returns SQL that gives `target`, the table or a partition, its primary key over `rows` rows.
    fn key(&self, target: &str, rows: u64) -> Vec<String> {
        let columns = &self.table.primary_key;
        if columns.is_empty() {
            return Vec::new();
        }
        let shared = self.shared;
        let mut sql = shared.builders.settings(shared.load, self.table, self.unit.strategy, rows);
        let place = shared.tablespace(&self.table.name);
        let place = place.map_or_else(String::new, |p| format!(" USING INDEX TABLESPACE {p}"));
        sql.push(format!("ALTER TABLE {target} ADD PRIMARY KEY ({}){place}", columns.join(", ")));
        sql
    }

    /// Builds the table's key and vacuums it, once all its rows are loaded.
    fn finish(&mut self) -> Result<(), DatasetError> {
        let load = self.shared.load;
        let table = load.table(&self.table.name);
        let keyed = self.shared.keyed[self.unit.table];
        let shared = self.shared;
        if self.unit.strategy == LoadStrategy::Chunks {
            drop(shared.open.write());
        }
        // ANALYZE and a key are transactions too.
        let _open = shared.open();
        match self.unit.strategy {
            LoadStrategy::Freeze => self.tidy(&table, false),
            LoadStrategy::Chunks => {
                // Before there is a key, which it would have to look through.
                self.tidy(&table, true)?;
                let all = crate::pieces::rows(self.shared.load, self.table);
                let mut sql = self.key(&table, all);
                if keyed || sql.is_empty() {
                    return Ok(());
                }
                sql.push(note(load, &keyed_name(&self.table.name)));
                self.execute_together(&sql, &format!("building the key of {table}"))
            }
            LoadStrategy::Partitions => {
                if !keyed {
                    self.attach()?;
                }
                match self.table.tidy {
                    Tidy::Vacuum | Tidy::Analyze => self.execute(&format!("ANALYZE {table}")),
                    Tidy::Nothing => Ok(()),
                }
            }
        }
    }

    /// Attaches all partitions, and makes their keys the table's.
    fn attach(&mut self) -> Result<(), DatasetError> {
        let (load, of) = (self.shared.load, self.unit.of);
        let table = load.table(&self.table.name);
        // All are of one size but the last.
        let all = crate::pieces::rows(self.shared.load, self.table);
        let size = all.div_ceil(u64::from(of)).max(1);
        let mut sql = Vec::new();
        for number in 1..=of {
            let part = load.table(&child(&self.table.name, number));
            let bound = |parts: u32| match parts {
                0 => "MINVALUE".to_owned(),
                n if n == of => "MAXVALUE".to_owned(),
                n => (u64::from(n) * size + 1).to_string(),
            };
            let (from, to) = (bound(number - 1), bound(number));
            sql.push(format!(
                "ALTER TABLE {table} ATTACH PARTITION {part} FOR VALUES FROM ({from}) TO ({to})"
            ));
            if of > 1 {
                sql.push(format!("ALTER TABLE {part} DROP CONSTRAINT {CHECK}"));
            }
        }
        sql.extend(self.key(&table, all));
        sql.push(format!("DROP TABLE {} RESTRICT", load.table(&like(&self.table.name))));
        sql.push(note(load, &keyed_name(&self.table.name)));
        self.execute_together(&sql, &format!("attaching the partitions of {table}"))
    }

    fn tidy(&mut self, target: &str, freeze: bool) -> Result<(), DatasetError> {
        match self.table.tidy {
            Tidy::Vacuum if freeze => {
                self.execute_alone(&format!("VACUUM (FREEZE, ANALYZE) {target}"))
            }
            Tidy::Vacuum => self.execute_alone(&format!("VACUUM (ANALYZE) {target}")),
            Tidy::Analyze => self.execute(&format!("ANALYZE {target}")),
            Tidy::Nothing => Ok(()),
        }
    }
}

/// Counts a piece among those being filled, until it is dropped.
struct Writing<'a>(&'a AtomicU32);

impl<'a> Writing<'a> {
    fn new(shared: &'a Shared<'_>) -> Self {
        shared.writing.fetch_add(1, Ordering::Relaxed);
        Self(&shared.writing)
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The CHECK that a partition has until it is attached.
const CHECK: &str = "pgdyno_bounds";

/// Returns the progress table's name for the key of `table`.
pub(crate) fn keyed_name(table: &str) -> String {
    format!("{table} key")
}

/// Streams the rows of `unit`.
fn copy(
    transaction: &mut Transaction<'_>,
    shared: &Shared<'_>,
    unit: &Piece,
    statement: &str,
    doing: &str,
) -> Result<(), DatasetError> {
    let mut copy = transaction.copy_in(statement).map_err(|e| shared.error(doing, &e))?;
    let mut blocks = BlockWriter::new(&shared.columns[unit.table].writer, BLOCK);
    let mut send = |bytes: &[u8]| {
        shared.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        // The writer wraps the server's error into one of I/O.
        copy.write_all(bytes).map_err(|e| match e.downcast::<tokio_postgres::Error>() {
            Ok(error) => shared.error(doing, &error),
            Err(e) => DatasetError::Sql {
                data: shared.load.identity(),
                doing: doing.to_owned(),
                found: e.to_string(),
                sqlstate: None,
            },
        })
    };
    send(HEADER)?;
    let (mut row, beyond) = (unit.first, unit.first + unit.rows);
    while row < beyond {
        if shared.is_over() {
            return Err(shared.interrupted());
        }
        let (block, next) = blocks.next(row, beyond);
        send(block)?;
        shared.rows.fetch_add(next - row, Ordering::Relaxed);
        row = next;
    }
    send(&TRAILER)?;
    copy.finish().map_err(|e| shared.error(doing, &e))?;
    Ok(())
}
