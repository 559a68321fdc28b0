//! The whole load: checks, makes the tables, runs the connections, watches them, cleans up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::thread::{ScopedJoinHandle, Thread};
use std::time::{Duration, Instant};

use pgdyno_connect::control::{CancelToken, ControlClient};
use pgdyno_model::load_strategy::LoadStrategy;
use pgdyno_model::progress::{Event, Notice, Progress, StrategyChoice};
use pgdyno_model::target::{Address, SslMode, Target};

use crate::bulk_load::{BulkLoad, cores};
use crate::columns::Columns;
use crate::error::DatasetError;
use crate::key_settings::Builders;
use crate::load_progress::{self, Beginning, PROGRESS};
use crate::pieces::{Piece, strategies, units};
use crate::schema::{check_schema, make_tables, move_indexes};
use crate::wal_writer_keepalive;
use crate::worker::{Shared, finish_only, keyed_name, work};

/// Time between progress events.
const WATCH: Duration = Duration::from_millis(50);
/// Time between samples of the backends' wait events.
const LOOK: Duration = Duration::from_millis(250);

/// The result of a bulk load.
#[derive(Clone, Debug)]
pub struct LoadResult {
    /// Rows sent (count), without the rows of pieces that an earlier load completed.
    pub rows: u64,
    /// Bytes sent on the wire.
    pub bytes: u64,
    /// Time from the first statement to the last.
    pub took: Duration,
    /// Wait events of the backends, most frequent first, with their share of all samples (0 to 1).
    pub limits: Vec<(String, f64)>,
}

/// Loads a data set into the database at `target`.
///
/// # Errors
/// Before anything is made: tables exist, another load is at work, or others may write to the
/// schema. Later: a statement or a connection fails. Complete pieces stay then, and the same load
/// begun again continues.
pub fn bulk_load(
    load: &BulkLoad<'_>,
    target: &Target,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<LoadResult, DatasetError> {
    let began = Instant::now();
    let connect = || {
        ControlClient::connect(target, None)
            .map_err(|e| DatasetError::Connect { data: load.identity(), source: Box::new(e) })
    };
    check_strategy(load)?;
    let mut client = connect()?;
    check_schema(&mut client, load)?;
    let strategies = strategies(load, cores());
    let done = match load_progress::begin(&mut client, load)? {
        Beginning::Fresh => {
            make_tables(&mut client, load, &strategies)?;
            BTreeSet::new()
        }
        Beginning::GoOn(done) => {
            progress.event(&Event::Note(Notice::LoadContinues {
                data: load.identity(),
                pieces: done.len(),
            }));
            done
        }
    };
    for (table, strategy) in load.data.tables.iter().zip(&strategies) {
        if crate::pieces::rows(load, table) > load.chunk || *strategy != LoadStrategy::Freeze {
            progress.event(&Event::Note(Notice::Strategy {
                table: table.name.clone(),
                strategy: *strategy,
                chosen_by: match (load.strategy, load.data.after_schema.is_empty()) {
                    (_, false) => StrategyChoice::AfterSchema,
                    (Some(_), true) => StrategyChoice::Caller,
                    (None, true) => StrategyChoice::Cores,
                },
                partitions: load.loading.partitions,
                connections: load.jobs(),
                cores: cores(),
            }));
        }
    }
    let builders = Builders::ask(&mut client, load, target.is_here().then(cores))?;
    for (table, strategy) in load.data.tables.iter().zip(&strategies) {
        let rows = crate::pieces::piece_rows(load, table, *strategy);
        let settings = builders.settings(load, table, *strategy, rows);
        if rows > load.chunk && !settings.is_empty() {
            let settings = settings.iter().map(|sql| sql.replace("SET LOCAL ", "")).collect();
            let table = table.name.clone();
            progress.event(&Event::Note(Notice::KeySettings { table, settings }));
        }
    }
    let loader = Loader::new(&mut client, load, &strategies, builders, &done, stop)?;
    let limits = loader.run(&mut client, target, &connect, progress)?;
    let shared = &loader.shared;
    let keys = client.execute_in_schema(load.schema, &load.data.keys);
    keys.map_err(|e| shared.error("building indexes", &e))?;
    move_indexes(&mut client, load)?;
    let drop = format!("DROP TABLE {} RESTRICT", load.table(PROGRESS));
    client.batch_execute(&drop).map_err(|e| shared.error("dropping its own table", &e))?;
    let (rows, bytes) = shared.sent();
    Ok(LoadResult { rows, bytes, took: began.elapsed(), limits })
}

/// Refuses a way to load that the data set does not allow.
fn check_strategy(load: &BulkLoad<'_>) -> Result<(), DatasetError> {
    let refused = |how: &str, why: &str, help: &str| {
        Err(DatasetError::refused(format!("load {} {how}: {why}", load.identity()), help))
    };
    let is_partitioned = load.loading.partitions > 0;
    if is_partitioned && !load.data.tables.iter().any(|t| t.partition_by.is_some()) {
        return refused(
            "in partitions",
            "none of its tables has a `partition_by`",
            "leave the partitions out",
        );
    }
    if load.data.after_schema.is_empty() {
        return Ok(());
    }
    const WHY: &str = "its `after_schema` says what its tables are";
    if is_partitioned {
        return refused("in partitions", WHY, "leave the partitions out");
    }
    if load.strategy == Some(LoadStrategy::Freeze) {
        return refused(
            "by COPY with FREEZE",
            WHY,
            "leave the strategy out, or ask for `chunks`: tables of other engines take no FREEZE",
        );
    }
    Ok(())
}

/// Connections that load side by side.
struct Loader<'a> {
    shared: Shared<'a>,
    /// Tables all of whose pieces were loaded before: the last piece of each.
    to_finish: Vec<Piece>,
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
        load: &'a BulkLoad<'a>,
        strategies: &[LoadStrategy],
        builders: Builders,
        done: &BTreeSet<String>,
        stop: &'a AtomicBool,
    ) -> Result<Self, DatasetError> {
        let tables = &load.data.tables;
        let columns = (tables.iter().zip(strategies))
            .map(|(table, strategy)| Columns::read(client, load, table, *strategy))
            .collect::<Result<_, _>>()?;
        let (before, todo): (Vec<Piece>, Vec<Piece>) =
            units(load, strategies).into_iter().partition(|unit| done.contains(&unit.name(tables)));
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
        let wakes = todo.iter().any(|u| u.strategy != LoadStrategy::Chunks && u.rows > load.chunk);
        let jobs = load.jobs().min(todo.len()).max(1);
        let shared = Shared {
            load,
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

    /// Runs all connections and waits for them. Returns the backends' wait events with shares.
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
        let mut clients = (0..self.jobs).map(|_| connect()).collect::<Result<Vec<_>, _>>()?;
        let backend = |client: &mut ControlClient| {
            let pid = client.query_one("SELECT pg_catalog.pg_backend_pid()", &[]);
            pid.map_or(0_i32, |row| row.get(0))
        };
        let backends: Vec<i32> = clients.iter_mut().map(backend).collect();
        let tokens: Vec<CancelToken> = clients.iter().map(ControlClient::cancel_token).collect();
        let plain =
            matches!(target.address, Address::Unix { .. }) || target.tls.mode == SslMode::Disable;
        let working = AtomicU32::new(u32::try_from(clients.len()).unwrap_or(u32::MAX));
        let mut waker =
            (self.wakes && wal_writer_keepalive::helps(client)).then(|| connect().ok()).flatten();
        if waker.is_some() {
            progress.event(&Event::Note(Notice::WalWriterKeptAwake));
        }
        let waking = waker.as_ref().map(ControlClient::cancel_token).filter(|_| plain);
        std::thread::scope(|scope| {
            let keeper = waker.as_mut().map(|waker| {
                let (working, backends) = (&working, &backends);
                scope.spawn(move || wal_writer_keepalive::keep(waker, shared, backends, working))
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
            let worked = join_all(threads);
            // It ends by itself too, a moment later.
            if keeper.is_some_and(|keeper| !keeper.is_finished())
                && let Some(token) = waking
            {
                let _ = token.cancel_query();
            }
            worked.map(|()| limits)
        })
    }

    /// Reports progress until all connections are done. If the load is over, cancels their
    /// statements.
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
        let what = self.shared.load.identity();
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

    fn state(&self, what: &str, elapsed: Duration) -> Event {
        let (rows, bytes) = self.shared.sent();
        let seconds = elapsed.as_secs_f64().max(0.001);
        let rows_per_s = rows as f64 / seconds;
        let left =
            (rows > 0).then(|| Duration::from_secs_f64((self.rows - rows) as f64 / rows_per_s));
        Event::Loading {
            data: what.to_owned(),
            rows,
            of: self.rows,
            rows_per_s,
            bytes_per_s: bytes as f64 / seconds,
            left,
        }
    }
}

/// Waits for all `threads`. Returns the first error that did not follow from another's.
fn join_all(
    threads: Vec<ScopedJoinHandle<'_, Result<(), DatasetError>>>,
) -> Result<(), DatasetError> {
    let mut ended = Ok(());
    for thread in threads {
        let worked = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        if worked.is_err() && matches!(ended, Ok(()) | Err(DatasetError::Interrupted { .. })) {
            ended = worked;
        }
    }
    ended
}

/// Counts a connection as done when it is dropped, also after a panic.
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
