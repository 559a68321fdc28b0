//! `--init-batch-size`: rows are committed in batches, and a lost connection is replaced.
//!
//! Tables are filled one after the other, in the order of their keys, so that a [`Position`] says
//! which rows are there. After a lost connection the server is asked for it: the reply to a COMMIT
//! may be lost although the server carried it out, and a server that crashed may have lost what it
//! acknowledged. [`Work::fill_in_batches`] does all of it.

use std::ops::RangeInclusive;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pgdyno_connect::control::ControlClient;
use postgres_protocol::escape::escape_literal;
use tokio_postgres::SimpleQueryMessage;

use super::Work;
use super::filling::{FILLED, Filling};
use super::progress::Lines;
use super::reconnect::{Failure, LIMIT, MAX_PAUSE, persist, rest, try_limit};
use crate::server_messages::{failed, without_number};
use crate::tables::Names;
use crate::usage_error::{Stopped, UsageError};

/// How often in a row the connection may be lost during one batch: whatever is in the batch may be
/// what ends the server.
const LOSSES: u32 = 5;

/// How far the tables are filled: all before `table` to their ends, and that one up to row `row`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    /// Index in [`FILLED`].
    table: usize,
    row: u64,
}

/// How the rows of the tables are parted.
struct Batches {
    /// Rows of a batch; the last one of a table may have fewer.
    size: u64,
    /// Rows of each table.
    rows: [u64; FILLED.len()],
}

impl Batches {
    /// Returns the rows of the batch that follows `at`.
    fn next(&self, at: Position) -> RangeInclusive<u64> {
        at.row + 1..=self.rows[at.table].min(at.row + self.size)
    }

    /// Returns the position when that batch is committed.
    fn after(&self, at: Position) -> Position {
        match *self.next(at).end() {
            end if end == self.rows[at.table] => Position { table: at.table + 1, row: 0 },
            row => Position { row, ..at },
        }
    }

    /// Returns the position at which the last rows of the tables are `found`; none if there is no
    /// such position.
    fn position(&self, found: &[u64]) -> Option<Position> {
        let table = found.iter().zip(&self.rows).take_while(|(last, all)| last == all).count();
        let row = found.get(table).copied().unwrap_or(0);
        let is_rest_empty = found.iter().skip(table + 1).all(|last| *last == 0);
        let is_end =
            row.is_multiple_of(self.size) && self.rows.get(table).is_none_or(|all| row < *all);
        (is_end && is_rest_empty).then_some(Position { table, row })
    }
}

impl Work<'_> {
    /// Empties the tables and fills them in batches of `size` rows.
    pub(super) fn fill_in_batches(&mut self, size: u32) -> Result<(), Stopped> {
        let rows = FILLED.each_ref().map(|filling| filling.rows(self.what.scale));
        let batches = Batches { size: size.into(), rows };
        self.client.end_silence(true);
        let names = self.names()?;
        self.execute(&format!("truncate table {}", names.all()))?;
        let oids = oids(&mut self.client, &names)?;
        let mut tables = FilledTables { names, oids, backend: None };
        let mut at = Position::default();
        while let Some(filling) = FILLED.get(at.table) {
            let mut lines = Lines::new(self.what, filling);
            let filled = self.fill_table(&batches, &mut tables, at, &mut lines);
            lines.clear(self.err);
            at = filled?;
        }
        self.client.end_silence(false);
        Ok(())
    }

    /// Fills the table of `at` from there on. Returns where to go on.
    fn fill_table(
        &mut self,
        batches: &Batches,
        tables: &mut FilledTables,
        mut at: Position,
        lines: &mut Lines<'_>,
    ) -> Result<Position, Stopped> {
        let (table, mut losses) = (at.table, 0);
        while at.table == table {
            let filling = &FILLED[table];
            let lost = match self.batch(filling, batches.next(at), tables, lines) {
                Err(Stopped::Error(error)) if self.is_lost() => error,
                done => {
                    done?;
                    self.notices.relay(self.err);
                    (at, losses) = (batches.after(at), 0);
                    continue;
                }
            };
            losses += 1;
            lines.clear(self.err);
            self.notices.relay(self.err);
            at = self.find_place(batches, tables, at, &lost, losses)?;
        }
        Ok(at)
    }

    /// Whether the connection is lost, after an error. An interrupted statement loses it too.
    fn is_lost(&mut self) -> bool {
        !self.stop.load(Ordering::Relaxed) && !is_alive(&mut self.client)
    }

    /// Sends `rows` of a table in a transaction of their own.
    fn batch(
        &mut self,
        filling: &Filling,
        rows: RangeInclusive<u64>,
        tables: &mut FilledTables,
        lines: &mut Lines<'_>,
    ) -> Result<(), Stopped> {
        tables.backend = None;
        self.client.begin().map_err(|e| failed(&e, "begin"))?;
        // In each batch, since a pooler may give each to another process.
        let backend = first_row(&mut self.client, "select pg_catalog.pg_backend_pid()")?;
        tables.backend = backend.into_iter().flatten().next();
        self.copy(filling, rows, &filling.copy_into(&tables.names.spelled(filling.table)), lines)?;
        Ok(self.commit()?)
    }

    /// Replaces the connection that was `lost` in the batch after `at`, for the time `losses` in a
    /// row. Returns where to go on.
    fn find_place(
        &mut self,
        batches: &Batches,
        tables: &FilledTables,
        at: Position,
        lost: &UsageError,
        losses: u32,
    ) -> Result<Position, Stopped> {
        let (table, rows) = (FILLED[at.table].table, batches.next(at));
        let during = format!("during rows {} to {} of {table}", rows.start(), rows.end());
        if losses > LOSSES {
            let error = format!("lost the connection {losses} times in a row {during}");
            let hint = "does the server's log say why? A smaller --init-batch-size asks less of it";
            return Err(UsageError::new(error).detail(lost.what()).hint(hint).into());
        }
        self.say(&format!("pgbench: warning: lost the connection {during}"));
        self.say(&format!("pgbench: detail: {}", without_number(lost.what())));
        self.say(&format!("connecting again, for {} s at most...", LIMIT.as_secs()));
        if losses > 1 {
            rest(MAX_PAUSE, self.stop);
        }
        let judged = self.reconnect(tables).and_then(|last| Ok(self.judge(batches, at, &last)?));
        judged.map_err(|stopped| match stopped {
            Stopped::Error(error) => {
                error.then(format!("could not go on after row {} of {table}", at.row)).into()
            }
            Stopped::Interrupted => stopped,
        })
    }

    /// Takes another connection, and asks it for the last committed row of each table.
    fn reconnect(&mut self, tables: &FilledTables) -> Result<Vec<u64>, Stopped> {
        let Self { target, token, schemas, notices, err, stop, .. } = self;
        let mut say = |line: &str| {
            let _ = writeln!(err, "{line}");
        };
        let (client, last) = persist(LIMIT, stop, &mut say, |say, left| {
            let mut target = target.clone();
            target.connect_timeout = Some(try_limit(target.connect_timeout, left));
            let mut client = notices.connect(&target)?;
            client.end_silence(true);
            *token.lock().unwrap_or_else(PoisonError::into_inner) = client.cancel_token();
            if stop.load(Ordering::Relaxed) {
                // The flag may have been seen when the token was still that of the lost session.
                return Err(Failure::Passing(UsageError::new("interrupted")));
            }
            say("connected; asking for the last committed row...");
            match tables.last_rows(&mut client, schemas, left) {
                Ok(last) => Ok((client, last)),
                Err(error) if is_alive(&mut client) => Err(Failure::Final(error)),
                Err(error) => Err(Failure::Passing(error)),
            }
        })?;
        self.client = client;
        Ok(last)
    }

    /// Returns where to go on if the batch after `at` was under way and `last` are the tables' last
    /// rows.
    fn judge(
        &mut self,
        batches: &Batches,
        at: Position,
        last: &[u64],
    ) -> Result<Position, UsageError> {
        let is_possible = |found: &Position| *found <= batches.after(at);
        let Some(found) = batches.position(last).filter(is_possible) else {
            let last = FILLED.iter().zip(last).map(|(f, last)| format!("{last} of {}", f.table));
            let last = last.collect::<Vec<_>>().join(", ");
            return Err(UsageError::new("the tables hold rows that no batch has left")
                .detail(format!("their last rows: {last}"))
                .hint("see that nobody else writes to them, and begin again"));
        };
        if found < at {
            self.say("pgbench: warning: the server lost rows that it had committed");
            self.say("pgbench: detail: unlogged tables and synchronous_commit = off permit that");
        }
        self.say(&match FILLED.get(found.table) {
            Some(Filling { table, .. }) => format!("going on after row {} of {table}", found.row),
            None => "all rows are committed".to_owned(),
        });
        Ok(found)
    }
}

/// The tables that are filled.
struct FilledTables {
    names: Names,
    /// Their object ids.
    oids: Row,
    /// The process of the server that has the present batch, once it is known.
    backend: Option<String>,
}

impl FilledTables {
    /// Returns the number of each table's last row; 0 where there is none.
    ///
    /// A batch is committed whole or not at all and its keys are contiguous, so that the largest
    /// key says which rows there are: they need not be counted. There is no index yet (step `p`
    /// comes later), so that the server scans the tables: 13 GB at scale 1000.
    fn last_rows(
        &self,
        client: &mut ControlClient,
        schemas: &[String],
        left: Duration,
    ) -> Result<Vec<u64>, UsageError> {
        client.begin().map_err(|e| failed(&e, "begin"))?;
        let limit = left.as_millis().max(1);
        execute(client, &format!("set local lock_timeout = {limit}"))?;
        self.check(client, schemas)?;
        // The lost session may live on where the network alone failed, and its COMMIT may still be
        // under way. It has had this lock since before it was sent the batch's first row.
        if let Some(backend) = &self.backend {
            let oids = self.oids.iter().flatten().cloned().collect::<Vec<_>>().join(", ");
            let terminate = format!(
                "select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_locks where pid = \
                 {backend} and pid <> pg_catalog.pg_backend_pid() and mode = 'RowExclusiveLock' \
                 and relation in ({oids})"
            );
            execute(client, &terminate)?;
        }
        let names = FILLED.each_ref().map(|filling| self.names.spelled(filling.table));
        execute(client, &format!("lock table {} in share mode", names.join(", ")))?;
        // Again, since only now nobody can put another table in the place of one.
        self.check(client, schemas)?;
        let last = FILLED.iter().zip(&names);
        let last = last.map(|(f, name)| format!("(select max({}) from {name})", f.key));
        let last = first_row(client, &format!("select {}", last.collect::<Vec<_>>().join(", ")))?;
        client.commit().map_err(|e| failed(&e, "commit"))?;
        // An empty table has no last row. A key that is no number is no row of ours.
        Ok(last.iter().map(|l| l.as_ref().map_or(0, |l| l.parse().unwrap_or(u64::MAX))).collect())
    }

    /// Checks that the names still mean the tables that were filled.
    fn check(&self, client: &mut ControlClient, schemas: &[String]) -> Result<(), UsageError> {
        let names = Names::look(client, schemas)?;
        let oids = oids(client, &names)?;
        let changed =
            FILLED.iter().zip(self.oids.iter().zip(&oids)).find(|(_, (was, is))| was != is);
        let Some((Filling { table, .. }, (_, is))) = changed else { return Ok(()) };
        let what = match is {
            Some(_) => format!("{table} is another table than the one that was filled"),
            None => format!("{table} is not there any more"),
        };
        Err(UsageError::new(what).hint("see that nobody else makes these tables, and begin again"))
    }
}

/// A row of a query's result.
type Row = Vec<Option<String>>;

/// Returns the object ids of the tables that are filled; none for a table that is missing.
fn oids(client: &mut ControlClient, names: &Names) -> Result<Row, UsageError> {
    let oid = |filling: &Filling| {
        let name = escape_literal(&names.spelled(filling.table));
        format!("pg_catalog.to_regclass({name})::oid")
    };
    first_row(client, &format!("select {}", FILLED.each_ref().map(oid).join(", ")))
}

/// Returns the first row of a query.
fn first_row(client: &mut ControlClient, query: &str) -> Result<Row, UsageError> {
    let messages = client.simple_query(query).map_err(|e| failed(&e, query))?;
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let row = row.ok_or_else(|| UsageError::new(format!("no answer to the query: {query}")))?;
    Ok((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect())
}

fn execute(client: &mut ControlClient, statement: &str) -> Result<(), UsageError> {
    client.batch_execute(statement).map_err(|e| failed(&e, statement))
}

/// Whether the session survived an error: then the error is the statement's own.
fn is_alive(client: &mut ControlClient) -> bool {
    client.batch_execute("rollback").is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scale 2 in batches of 8.
    const BATCHES: Batches = Batches { size: 8, rows: [2, 20, 200_000] };

    fn at(table: usize, row: u64) -> Position {
        Position { table, row }
    }

    #[test]
    fn batches_follow_each_other_to_the_last_row_of_the_last_table() {
        let mut places = vec![Position::default()];
        while places[places.len() - 1].table < FILLED.len() {
            places.push(BATCHES.after(places[places.len() - 1]));
        }
        assert_eq!(places[..5], [at(0, 0), at(1, 0), at(1, 8), at(1, 16), at(2, 0)]);
        assert_eq!(places[places.len() - 2..], [at(2, 199_992), at(3, 0)]);
        assert_eq!(BATCHES.next(at(1, 16)), 17..=20);
        assert!(places.is_sorted());
    }

    #[test]
    fn a_place_is_found_only_where_batches_end() {
        for (last, place) in [
            ([0, 0, 0], Some(at(0, 0))),
            ([2, 0, 0], Some(at(1, 0))),
            ([2, 16, 0], Some(at(1, 16))),
            ([2, 20, 8], Some(at(2, 8))),
            ([2, 20, 200_000], Some(at(3, 0))),
            // In the middle of a batch; beyond the table's end; a table after one that is not full.
            ([2, 20, 9], None),
            ([2, 20, 200_001], None),
            ([2, 24, 0], None),
            ([1, 0, 0], None),
            ([2, 16, 8], None),
            ([0, 20, 0], None),
        ] {
            assert_eq!(BATCHES.position(&last), place, "{last:?}");
        }
    }
}
