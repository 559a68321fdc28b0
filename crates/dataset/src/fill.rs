//! The whole load: looks, makes the tables, sets connections to work, watches them, ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use pgdyno_host::postgres::control::{SEARCH_PATH, path_of_schema};
use pgdyno_host::postgres::{CancelToken, ControlClient, Transaction, schema};
use pgdyno_model::target::Target;
use postgres_protocol::escape::escape_literal;

use crate::awake;
use crate::columns::Columns;
use crate::keys::Builders;
use crate::shape::{Strategy, Unit, cores, strategies, units};
use crate::traces::{self, Beginning, PROGRESS, like};
use crate::work::{Shared, finish_only, keyed_name, work};
use crate::{DatasetError, Filling};
use pgdyno_model::progress::{Event, Progress};

/// Between two looks at the connections, and two words about how far the load is.
const WATCH: Duration = Duration::from_millis(50);
/// Between two looks at what backends wait for.
const LOOK: Duration = Duration::from_millis(250);

/// What a load came to.
#[derive(Clone, Debug)]
pub struct Filled {
    /// Rows that were sent (count): those of pieces that were loaded before are not among them.
    pub rows: u64,
    /// Bytes of them on the wire.
    pub bytes: u64,
    /// From the first look to the last statement.
    pub took: Duration,
    /// What the server's side was seen doing while rows were sent and keys built, most often first
    /// (share of all sightings).
    pub limits: Vec<(String, f64)>,
}

/// Loads what `filling` says into the database at `target`.
///
/// # Errors
/// What refuses it before anything is made; or what went wrong: then what was loaded stays, for the
/// same load to go on.
pub fn fill(
    filling: &Filling<'_>,
    target: &Target,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Filled, DatasetError> {
    let began = Instant::now();
    let connect = || {
        ControlClient::connect(target, None)
            .map_err(|e| DatasetError::Connect { data: filling.identity(), source: Box::new(e) })
    };
    if filling.loading.partitions > 0
        && !filling.data.tables.iter().any(|t| t.partition_by.is_some())
    {
        return Err(DatasetError::NotPartitioned { data: filling.identity() });
    }
    let mut client = connect()?;
    check_schema(&mut client, filling)?;
    let strategies = strategies(filling, cores());
    let done = match traces::begin(&mut client, filling)? {
        Beginning::Fresh => {
            make_tables(&mut client, filling, &strategies)?;
            BTreeSet::new()
        }
        Beginning::GoOn(done) => {
            let note = format!(
                "going on with {}: {} pieces are loaded already",
                filling.identity(),
                done.len()
            );
            progress.event(&Event::Note(note));
            done
        }
    };
    for (table, strategy) in filling.data.tables.iter().zip(&strategies) {
        if crate::shape::rows(filling, table) > filling.chunk || *strategy != Strategy::Freeze {
            progress.event(&Event::Note(format!("{}: {}", table.name, why(*strategy, filling))));
        }
    }
    let builders = Builders::ask(&mut client, filling, target.is_here().then(cores))?;
    for (table, strategy) in filling.data.tables.iter().zip(&strategies) {
        let rows = crate::shape::piece_rows(filling, table, *strategy);
        let settings = builders.settings(filling, table, *strategy, rows);
        if rows > filling.chunk && !settings.is_empty() {
            let settings = settings.join(", ").replace("SET LOCAL ", "");
            progress
                .event(&Event::Note(format!("{}: its key is built with {settings}", table.name)));
        }
    }
    let loader = Loader::new(&mut client, filling, &strategies, builders, &done, stop)?;
    let limits = loader.run(&mut client, target, &connect, progress)?;
    let failed = |doing: &str, e: &postgres::Error| match stop.load(Ordering::Relaxed) {
        true => DatasetError::Interrupted { data: filling.identity() },
        false => DatasetError::sql(filling, doing, e),
    };
    let keys = client.execute_in_schema(filling.schema, &filling.data.keys);
    keys.map_err(|e| failed("building indexes", &e))?;
    move_indexes(&mut client, filling)?;
    let drop = format!("DROP TABLE {} RESTRICT", filling.table(PROGRESS));
    client.batch_execute(&drop).map_err(|e| failed("dropping its own table", &e))?;
    let (rows, bytes) =
        (loader.shared.rows.load(Ordering::Relaxed), loader.shared.bytes.load(Ordering::Relaxed));
    Ok(Filled { rows, bytes, took: began.elapsed(), limits })
}

/// A strategy, and why it was chosen.
fn why(strategy: Strategy, filling: &Filling<'_>) -> String {
    let cores = cores();
    let jobs = filling.jobs();
    match strategy {
        Strategy::Freeze if filling.strategy.is_none() => format!(
            "{strategy} ({cores} cores, {jobs} connections: several into one table would lose FREEZE, write WAL and pay a vacuum)"
        ),
        Strategy::Chunks if filling.strategy.is_none() => {
            format!(
                "{strategy}, over {jobs} connections ({cores} cores outweigh the vacuum that follows)"
            )
        }
        Strategy::Freeze | Strategy::Chunks => {
            format!("{strategy}, over {jobs} connections, as asked")
        }
        Strategy::Partitions => {
            format!("{} {strategy}, over {jobs} connections", filling.loading.partitions)
        }
    }
}

/// Makes the tables, and the table that says how far the load is, together.
fn make_tables(
    client: &mut ControlClient,
    filling: &Filling<'_>,
    strategies: &[Strategy],
) -> Result<(), DatasetError> {
    let failed = |doing: &str, e: &postgres::Error| DatasetError::sql(filling, doing, e);
    let mut transaction = client.transaction().map_err(|e| failed("making its tables", &e))?;
    let before =
        make_schema(&mut transaction, filling).map_err(|e| failed("making its tables", &e))?;
    for (table, tablespace) in filling.placed {
        let moving = format!("ALTER TABLE {} SET TABLESPACE {tablespace}", filling.table(table));
        transaction.batch_execute(&moving).map_err(|e| failed(&moving, &e))?;
    }
    for (table, strategy) in filling.data.tables.iter().zip(strategies) {
        if let (Strategy::Partitions, Some(by)) = (strategy, &table.partition_by) {
            let (name, new_name) = (filling.table(&table.name), like(&table.name));
            let like = filling.table(&new_name);
            let sql = format!(
                "ALTER TABLE {name} RENAME TO {new_name}; \
                 CREATE TABLE {name} (LIKE {like} INCLUDING ALL) PARTITION BY RANGE ({by})"
            );
            transaction.batch_execute(&sql).map_err(|e| failed(&sql, &e))?;
        }
    }
    let comment = traces::comment(filling);
    match before {
        Some(before) => {
            schema::mark_new_objects(&mut transaction, filling.schema, &before, &comment)
                .map_err(|e| failed("marking what it made", &e))?
        }
        None => {
            for name in filling.data.table_names() {
                let (name, comment) = (filling.table(name), escape_literal(&comment));
                let sql = format!("COMMENT ON TABLE {name} IS {comment}");
                transaction.batch_execute(&sql).map_err(|e| failed(&sql, &e))?;
            }
        }
    }
    let sql = traces::make_progress(filling);
    transaction.batch_execute(&sql).map_err(|e| failed("making pgdyno's own table", &e))?;
    transaction.commit().map_err(|e| failed("making its tables", &e))
}

/// Runs the workload's own SQL, whose names mean those of the schema. Where all that it makes is to
/// be marked: what was in the schema before, which from then on shows nobody else's.
fn make_schema(
    transaction: &mut Transaction<'_>,
    filling: &Filling<'_>,
) -> Result<Option<Vec<(u32, u32)>>, postgres::Error> {
    let before = match filling.mark {
        schema::MARK => None,
        _ => {
            transaction.batch_execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
            Some(schema::objects_in(transaction, filling.schema)?)
        }
    };
    let path = path_of_schema(filling.schema);
    transaction.batch_execute(&format!("SET LOCAL search_path = {path}"))?;
    transaction.batch_execute(&filling.data.schema)?;
    transaction.batch_execute(&format!("SET LOCAL search_path = {SEARCH_PATH}"))?;
    Ok(before)
}

/// Refuses a schema into which others could put what a superuser's session then runs.
fn check_schema(client: &mut ControlClient, filling: &Filling<'_>) -> Result<(), DatasetError> {
    let failed =
        |e: &postgres::Error| DatasetError::sql(filling, "asking who may write to its schema", e);
    let mut transaction = client.transaction().map_err(|e| failed(&e))?;
    let writers = schema::writers(&mut transaction, filling.schema).map_err(|e| failed(&e))?;
    transaction.commit().map_err(|e| failed(&e))?;
    match writers.is_empty() {
        true => Ok(()),
        false => Err(DatasetError::OpenSchema {
            data: filling.identity(),
            schema: filling.schema.to_owned(),
            writers: writers.join(", "),
        }),
    }
}

/// An index that the workload's own SQL made lies where PGDATA does, wherever its table is.
fn move_indexes(client: &mut ControlClient, filling: &Filling<'_>) -> Result<(), DatasetError> {
    const ASKED: &str = "SELECT indexrelid::regclass::text FROM pg_catalog.pg_index WHERE indrelid = $1::text::regclass";
    for (table, tablespace) in filling.placed {
        let doing = format!("moving the indexes of {table} to {tablespace}");
        let failed = |e: postgres::Error| DatasetError::sql(filling, &doing, &e);
        for index in client
            .query(ASKED, &[&filling.table(table)])
            .map_err(failed)?
            .iter()
            .map(|row| row.get::<_, String>(0))
        {
            let sql = format!("ALTER INDEX {index} SET TABLESPACE {tablespace}");
            client.batch_execute(&sql).map_err(failed)?;
        }
    }
    Ok(())
}

/// Connections at work.
struct Loader<'a> {
    shared: Shared<'a>,
    /// Tables all of whose pieces were loaded before: the last piece of each.
    to_finish: Vec<Unit>,
    /// Rows still to be sent (count).
    rows: u64,
    /// Whether a piece that is filled with FREEZE is large enough for the server's WAL writer to be
    /// kept awake.
    wakes: bool,
    jobs: usize,
}

impl<'a> Loader<'a> {
    fn new(
        client: &mut ControlClient,
        filling: &'a Filling<'a>,
        strategies: &[Strategy],
        builders: Builders,
        done: &BTreeSet<String>,
        stop: &'a AtomicBool,
    ) -> Result<Self, DatasetError> {
        let tables = &filling.data.tables;
        let columns = (tables.iter().zip(strategies))
            .map(|(table, strategy)| Columns::of(client, filling, table, *strategy))
            .collect::<Result<_, _>>()?;
        let (before, todo): (Vec<Unit>, Vec<Unit>) = units(filling, strategies)
            .into_iter()
            .partition(|unit| done.contains(&unit.name(tables)));
        let lacks = |table: usize| todo.iter().filter(|unit| unit.table == table).count();
        let left = (0..tables.len())
            .map(|n| AtomicU32::new(u32::try_from(lacks(n)).unwrap_or(u32::MAX)))
            .collect();
        let to_finish = (0..tables.len())
            .filter(|n| lacks(*n) == 0)
            .filter_map(|n| before.iter().rev().find(|unit| unit.table == n).cloned())
            .collect();
        let keyed = tables.iter().map(|table| done.contains(&keyed_name(&table.name))).collect();
        let rows = todo.iter().map(|unit| unit.rows).sum();
        let wakes = todo.iter().any(|u| u.strategy != Strategy::Chunks && u.rows > filling.chunk);
        let jobs = filling.jobs().min(todo.len()).max(1);
        let shared = Shared {
            filling,
            columns,
            builders,
            queue: Mutex::new(todo.into_iter()),
            left,
            keyed,
            open: RwLock::new(()),
            writing: AtomicU32::new(0),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            stop,
            failed: AtomicBool::new(false),
        };
        Ok(Self { shared, to_finish, rows, wakes, jobs })
    }

    /// Sets all connections to work and waits for them; what backends were seen doing.
    fn run(
        &self,
        client: &mut ControlClient,
        target: &Target,
        connect: &(dyn Fn() -> Result<ControlClient, DatasetError> + Sync),
        progress: &dyn Progress,
    ) -> Result<Vec<(String, f64)>, DatasetError> {
        let shared = &self.shared;
        for unit in &self.to_finish {
            finish_only(client, shared, unit)?;
        }
        let mut clients = Vec::new();
        let mut backends = Vec::new();
        for _ in 0..self.jobs {
            let mut client = connect()?;
            let pid = client.query_one("SELECT pg_catalog.pg_backend_pid()", &[]);
            backends.push(pid.map(|row| row.get(0)).unwrap_or(0_i32));
            clients.push(client);
        }
        let tokens: Vec<CancelToken> = clients.iter().map(ControlClient::cancel_token).collect();
        let plain = matches!(target.address, pgdyno_model::target::Address::Unix { .. })
            || target.tls.mode == pgdyno_model::target::SslMode::Disable;
        let working = AtomicU32::new(u32::try_from(clients.len()).unwrap_or(u32::MAX));
        let mut waker = (self.wakes && awake::helps(client)).then(|| connect().ok()).flatten();
        if waker.is_some() {
            let note = "the server's WAL writer is kept awake by empty logical messages (docs/workloads.md)";
            progress.event(&Event::Note(note.to_owned()));
        }
        let waking = waker.as_ref().map(ControlClient::cancel_token).filter(|_| plain);
        std::thread::scope(|scope| {
            let keeper = waker.as_mut().map(|waker| {
                let (working, backends) = (&working, &backends);
                scope.spawn(move || awake::keep(waker, shared, backends, working))
            });
            let threads: Vec<_> = clients
                .into_iter()
                .map(|mut client| {
                    let working = &working;
                    let mut waiting = vec![std::thread::current()];
                    waiting.extend(keeper.as_ref().map(|keeper| keeper.thread().clone()));
                    scope.spawn(move || {
                        // Also where it panics, so that nobody waits for it.
                        let _ending = Ending { shared, working, waiting };
                        let worked = work(&mut client, shared);
                        if worked.is_err() {
                            shared.failed.store(true, Ordering::Relaxed);
                        }
                        worked
                    })
                })
                .collect();
            let limits = self.watch(client, &backends, &working, progress, &|| {
                for token in tokens.iter().filter(|_| plain) {
                    // A statement of the server's can take minutes; where this fails, it ends by
                    // itself.
                    let _ = token.cancel_query();
                }
            });
            let mut first = None;
            for thread in threads {
                match thread.join() {
                    Ok(Ok(())) => {}
                    // What only followed from another's failure tells less than that one.
                    Ok(Err(e)) => match &first {
                        None | Some(DatasetError::Interrupted { .. }) => first = Some(e),
                        Some(_) => {}
                    },
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            // It ends by itself too, a moment later.
            if keeper.is_some_and(|keeper| !keeper.is_finished())
                && let Some(token) = waking
            {
                let _ = token.cancel_query();
            }
            first.map_or(Ok(limits), Err)
        })
    }

    /// Tells how far the load is until all connections are done; ends what they are at when they
    /// are to stop.
    fn watch(
        &self,
        client: &mut ControlClient,
        backends: &[i32],
        working: &AtomicU32,
        progress: &dyn Progress,
        cancel: &dyn Fn(),
    ) -> Vec<(String, f64)> {
        const SEEN: &str = "SELECT coalesce(wait_event_type || ':' || wait_event, 'running') \
            FROM pg_catalog.pg_stat_activity WHERE pid = ANY($1) AND state <> 'idle'";
        let began = Instant::now();
        let mut looked = began;
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        let what = format!("loading {}", self.shared.filling.identity());
        while working.load(Ordering::Acquire) > 0 {
            std::thread::park_timeout(WATCH);
            if self.shared.is_over() {
                cancel();
                continue;
            }
            progress.event(&self.state(&what, began.elapsed()));
            if looked.elapsed() < LOOK {
                continue;
            }
            let Ok(_open) = self.shared.open.try_read() else { continue };
            looked = Instant::now();
            for row in client.query(SEEN, &[&backends]).unwrap_or_default() {
                *seen.entry(row.get(0)).or_default() += 1;
            }
        }
        progress.event(&self.state(&what, began.elapsed()));
        let all: u32 = seen.values().sum();
        let mut limits: Vec<(String, f64)> = seen
            .into_iter()
            .map(|(what, n)| (what, f64::from(n) / f64::from(all.max(1))))
            .collect();
        limits.sort_by(|a, b| b.1.total_cmp(&a.1));
        limits
    }

    #[allow(clippy::cast_precision_loss)]
    fn state<'e>(&self, what: &'e str, elapsed: Duration) -> Event<'e> {
        let (rows, bytes) =
            (self.shared.rows.load(Ordering::Relaxed), self.shared.bytes.load(Ordering::Relaxed));
        let seconds = elapsed.as_secs_f64().max(0.001);
        let rows_per_s = rows as f64 / seconds;
        let left =
            (rows > 0).then(|| Duration::from_secs_f64((self.rows - rows) as f64 / rows_per_s));
        Event::Loading {
            what,
            rows,
            of: self.rows,
            rows_per_s,
            bytes_per_s: bytes as f64 / seconds,
            left,
        }
    }
}

/// Counts a connection as done, however it ends.
struct Ending<'a> {
    shared: &'a Shared<'a>,
    working: &'a AtomicU32,
    /// Who waits for all of them.
    waiting: Vec<Thread>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.failed.store(true, Ordering::Relaxed);
        }
        self.working.fetch_sub(1, Ordering::Release);
        self.waiting.iter().for_each(Thread::unpark);
    }
}
