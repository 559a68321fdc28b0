//! What happens before every trial, so that all begin alike; and the counts around it.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgdyno_host::postgres::Client;
use pgdyno_host::postgres::control::said;
use pgdyno_model::experiment::Between;
use pgdyno_model::record::ServerCount;
use postgres_protocol::escape::{escape_identifier, escape_literal};

use super::provision::Ready;
use super::server::{Server, execute, number};
use crate::LabError;
use pgdyno_dataset::workload::Workload;

/// Waits `time`, or until `stop`.
pub(super) fn rest(time: Duration, stop: &AtomicBool) -> Result<(), LabError> {
    let until = Instant::now() + time;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}

/// Settles the server before a trial: tidying, the user's command, CHECKPOINT, TRIM, cold or warm
/// caches, a rest; in this order.
pub(super) fn settle(
    ready: &mut Ready<'_>,
    between: &Between,
    workload: &Workload,
    stop: &AtomicBool,
) -> Result<(), LabError> {
    if between.vacuum && !workload.between.is_empty() {
        let mut client = ready.server.loaded()?;
        for sql in &workload.between {
            execute(&mut client, &format!("tidy up before the trial (`{sql}`)"), sql)?;
        }
    }
    if !between.command.is_empty() {
        run_command(&between.command, stop)?;
    }
    if between.checkpoint {
        execute(&mut ready.server.aside()?, "checkpoint before the trial", "CHECKPOINT")?;
    }
    ready.trim()?;
    if between.drop_caches {
        drop_caches(ready.server, stop)?;
    }
    if between.prewarm {
        prewarm(ready.server, workload)?;
    }
    rest(between.pause.0, stop)
}

/// Whether the server can do what [`prewarm`] asks of it.
pub(super) fn check_prewarm(server: &Server) -> Result<(), LabError> {
    let mut client = server.aside()?;
    let asked = "SELECT pg_catalog.count(*) FROM pg_catalog.pg_available_extensions WHERE name = 'pg_prewarm'";
    if number(&mut client, "look for the extension pg_prewarm", asked)? > 0 {
        return Ok(());
    }
    let version = server.facts()?.version;
    Err(LabError::NoPrewarm { version })
}

/// Reads the workload's tables and their indexes into shared buffers, whole.
fn prewarm(server: &Server, workload: &Workload) -> Result<(), LabError> {
    let mut client = server.loaded()?;
    let extension = prewarm_extension(server, &mut client)?;
    for name in workload.data.table_names() {
        // All five arguments with their types: no other function of that name in the extension's
        // schema fits better.
        let sql = format!(
            "SELECT coalesce(pg_catalog.sum({extension}.pg_prewarm(r, 'buffer'::pg_catalog.text, \
             'main'::pg_catalog.text, NULL::pg_catalog.int8, NULL::pg_catalog.int8)), 0)::pg_catalog.int8 \
             FROM (WITH leaf AS (SELECT oid FROM pg_catalog.pg_class \
             WHERE oid = '{name}'::regclass AND relkind = 'r' UNION ALL \
             SELECT relid FROM pg_catalog.pg_partition_tree('{name}') WHERE isleaf) \
             SELECT oid::regclass AS r FROM leaf UNION ALL \
             SELECT indexrelid::regclass FROM pg_catalog.pg_index JOIN leaf ON leaf.oid = indrelid) AS relations"
        );
        number(&mut client, &format!("read {name} into shared buffers"), &sql)?;
    }
    Ok(())
}

/// The schema of the extension `pg_prewarm`, quoted; it is made where it is missing, and then goes
/// with what the run made.
fn prewarm_extension(server: &Server, client: &mut Client) -> Result<String, LabError> {
    const ASKED: &str = "SELECT n.nspname::text FROM pg_catalog.pg_extension AS e \
        JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'pg_prewarm'";
    let found = client.query_opt(ASKED, &[]);
    let found = found.map_err(|e| LabError::Sql {
        doing: "look for the extension pg_prewarm".into(),
        found: said(&e),
    })?;
    if let Some(row) = found {
        return Ok(escape_identifier(row.get(0)));
    }
    let schema = escape_identifier(server.schema());
    let mut sql = format!("CREATE EXTENSION pg_prewarm SCHEMA {schema}");
    if let Some(mark) = server.mark() {
        sql = format!("{sql}; COMMENT ON EXTENSION pg_prewarm IS {}", escape_literal(&mark));
    }
    execute(client, "make the extension pg_prewarm", &sql)?;
    Ok(schema)
}

/// The user's command; a signal to pgdyno ends it too.
fn run_command(words: &[String], stop: &AtomicBool) -> Result<(), LabError> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let wrong = |found: String| LabError::Command { command: words.join(" "), found };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| wrong(e.to_string()))?;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(wrong(format!("it ended with {status}"))),
            Err(e) => return Err(wrong(e.to_string())),
            Ok(None) => {}
        }
        if let Err(stopped) = rest(Duration::from_millis(20), stop) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(stopped);
        }
    }
}

/// Stops the server, has the kernel drop its caches, and starts the server again.
fn drop_caches(server: &mut Server, stop: &AtomicBool) -> Result<(), LabError> {
    let Server::Managed(cluster) = server else {
        return Err(LabError::DropCaches { why: "the server is not pgdyno's to stop meanwhile" });
    };
    cluster.stop(pgdyno_host::postgres::StopMode::Fast);
    pgdyno_host::caches::drop_caches()
        .map_err(|_| LabError::DropCaches { why: "the kernel refuses; a container may not" })?;
    Ok(cluster.start(stop)?)
}

/// Counters of the server, read when no client of ours is connected to the loaded database.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counters {
    xact_commit: i64,
    rows: Option<i64>,
}

/// Reads the counters that a trial is checked against.
pub(super) fn counters(
    server: &Server,
    workload: &Workload,
    stop: &AtomicBool,
) -> Result<Counters, LabError> {
    let rows = match &workload.count {
        Some(count) => {
            Some(number(&mut server.loaded()?, "count the workload's rows", &count.query)?)
        }
        None => None,
    };
    let mut aside = server.aside()?;
    let database = escape_literal(&server.database());
    if matches!(server, Server::Managed(_)) {
        // A backend adds what it did to the statistics as it exits, which is after its client has
        // seen it go.
        let clients = format!(
            "SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity WHERE datname = {database} AND backend_type = 'client backend'"
        );
        let patience = Instant::now() + Duration::from_secs(10);
        while number(&mut aside, "wait for the clients to leave", &clients)? > 0
            && Instant::now() < patience
        {
            rest(Duration::from_millis(5), stop)?;
        }
    }
    let commits =
        format!("SELECT xact_commit FROM pg_catalog.pg_stat_database WHERE datname = {database}");
    let xact_commit = number(&mut aside, "read pg_stat_database", &commits)?;
    Ok(Counters { xact_commit, rows })
}

impl Counters {
    /// What came between `self` and `after`, beside what `acknowledged` transactions should have
    /// brought.
    pub(super) fn until(self, after: Self, workload: &Workload, acknowledged: u64) -> ServerCount {
        let rows_each = workload.count.as_ref().map(|c| i64::from(c.rows_per_transaction));
        let acknowledged = i64::try_from(acknowledged).unwrap_or(i64::MAX);
        ServerCount {
            xact_commit: after.xact_commit - self.xact_commit,
            rows: self.rows.zip(after.rows).map(|(before, after)| after - before),
            rows_expected: rows_each.map(|each| each * acknowledged),
        }
    }
}
