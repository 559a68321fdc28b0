//! Looks at a server's statistics: statements, transactions, and sessions at work.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pgdyno_connect::control::ControlClient;
use tokio_postgres::Row;

use crate::activity::{Activity, DatabaseCounts, Sessions, Snapshot, StatementCounts};
use crate::error::CaptureError;

/// Time between two looks at the sessions.
const LOOK: Duration = Duration::from_millis(100);
/// Time between two checks for the end.
const TICK: Duration = Duration::from_millis(20);

/// Comment in this module's statements, by which they are told from those of others.
const OWN: &str = "/* pgdyno capture */";

/// SQLSTATE of a view whose library the server does not load.
const NOT_LOADED: &str = "55000";

/// SQLSTATEs of a view or column that an older extension lacks.
const NO_COLUMN: &str = "42703";
const NO_RELATION: &str = "42P01";

/// Session that looks at a database's statistics.
pub(crate) struct Statistics {
    client: ControlClient,
    /// View of the extension, with its schema.
    view: String,
    schema: String,
    /// Transactions of the session's own since it began (count).
    own: u64,
}

impl Statistics {
    /// Looks for the extension, and whether the role may see the statements of others.
    pub(crate) fn new(mut client: ControlClient, schema: &str) -> Result<Self, CaptureError> {
        let asked = format!(
            "SELECT {OWN} quote_ident(n.nspname), current_user::text, \
             pg_has_role('pg_read_all_stats', 'USAGE'), to_regnamespace(quote_ident($1)) IS NULL \
             FROM (SELECT 1) one LEFT JOIN pg_extension e ON e.extname = 'pg_stat_statements' \
             LEFT JOIN pg_namespace n ON n.oid = e.extnamespace"
        );
        let row = client.query_one(&asked, &[&schema]);
        let row = row.map_err(|e| CaptureError::query("ask for pg_stat_statements", &e))?;
        let found: Option<String> = row.get(0);
        if row.get(3) {
            return Err(CaptureError::NoSchema(schema.to_owned()));
        }
        let view = found.map(|found| format!("{found}.pg_stat_statements"));
        let view = view.ok_or(CaptureError::NoExtension)?;
        if !row.get::<_, bool>(2) {
            return Err(CaptureError::NoRight { role: row.get(1) });
        }
        Ok(Self { client, view, schema: schema.to_owned(), own: 1 })
    }

    pub(crate) fn client(&mut self) -> &mut ControlClient {
        &mut self.client
    }

    fn rows(&mut self, what: &'static str, sql: &str) -> Result<Vec<Row>, CaptureError> {
        self.own += 1;
        self.client.query(sql, &[]).map_err(|e| {
            match e.code().map(tokio_postgres::error::SqlState::code) {
                Some(NOT_LOADED) => CaptureError::NotLoaded,
                Some(NO_COLUMN | NO_RELATION) => CaptureError::OldExtension,
                _ => CaptureError::query(what, &e),
            }
        })
    }

    /// Looks at the counts of statements, transactions and tables.
    pub(crate) fn snapshot(&mut self) -> Result<Snapshot, CaptureError> {
        let view = self.view.clone();
        let asked = format!(
            "SELECT {OWN} queryid::text, min(query), sum(calls)::bigint, sum(rows)::bigint, \
             sum(total_exec_time)::float8, sum(shared_blks_hit)::bigint, \
             sum(shared_blks_read)::bigint, sum(wal_bytes)::bigint \
             FROM {view} WHERE toplevel AND queryid IS NOT NULL \
             AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) \
             AND query NOT LIKE '%{OWN}%' GROUP BY queryid"
        );
        let rows = self.rows("read pg_stat_statements", &asked)?;
        let count = |row: &Row, at: usize| u64::try_from(row.get::<_, i64>(at)).unwrap_or(0);
        let statements = rows.iter().map(|row| {
            let text: Option<String> = row.get(1);
            // What a role without rights sees.
            let text = text.filter(|text| text != "<insufficient privilege>");
            let counts = StatementCounts {
                calls: count(row, 2),
                rows: count(row, 3),
                time_ms: row.get(4),
                blocks_hit: count(row, 5),
                blocks_read: count(row, 6),
                wal_bytes: count(row, 7),
            };
            (row.get::<_, String>(0), (text, counts))
        });
        let statements: BTreeMap<_, _> = statements.collect();
        let asked = format!(
            "SELECT {OWN} xact_commit, xact_rollback, i.dealloc, \
             extract(epoch FROM clock_timestamp() - i.stats_reset)::float8, t.updates, t.hot \
             FROM pg_stat_database d, {view}_info i, \
             (SELECT coalesce(sum(n_tup_upd), 0)::bigint AS updates, \
              coalesce(sum(n_tup_hot_upd), 0)::bigint AS hot FROM pg_stat_user_tables \
              WHERE schemaname = {}) t WHERE d.datname = current_database()",
            postgres_protocol::escape::escape_literal(&self.schema)
        );
        let rows = self.rows("read the database's statistics", &asked)?;
        let row = rows.first().ok_or(CaptureError::NotLoaded)?;
        let database = DatabaseCounts {
            commits: count(row, 0).saturating_sub(self.own),
            rollbacks: count(row, 1),
            updates: count(row, 4),
            hot_updates: count(row, 5),
        };
        Ok(Snapshot { statements, database, forgotten: count(row, 2), age_s: row.get(3) })
    }

    /// Watches the database for `length`, unless it `is_over` before.
    pub(crate) fn watch(
        &mut self,
        length: Duration,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Activity, CaptureError> {
        let earlier = self.snapshot()?;
        let began = Instant::now();
        let mut seen = SeenSessions::default();
        let mut next = began;
        while began.elapsed() < length {
            if is_over() {
                return Err(CaptureError::Interrupted);
            }
            if Instant::now() >= next {
                next += LOOK;
                self.look(&mut seen)?;
            }
            std::thread::sleep(TICK.min(length.saturating_sub(began.elapsed())));
        }
        let seconds = began.elapsed().as_secs_f64();
        let later = self.snapshot()?;
        Ok(Activity::between(&earlier, later, seconds, seen.average()))
    }

    /// Returns what the server has counted since its statistics were reset.
    pub(crate) fn since_reset(&mut self) -> Result<Activity, CaptureError> {
        let later = self.snapshot()?;
        let seconds = later.age_s.unwrap_or(0.0).max(0.001);
        Ok(Activity::between(&Snapshot::default(), later, seconds, Sessions::default()))
    }

    /// Counts the sessions of the database.
    fn look(&mut self, seen: &mut SeenSessions) -> Result<(), CaptureError> {
        let asked = format!(
            "SELECT {OWN} CASE WHEN state <> 'active' THEN NULL \
             ELSE coalesce(wait_event_type || ':' || wait_event, 'running') END, count(*) \
             FROM pg_stat_activity WHERE datname = current_database() \
             AND backend_type = 'client backend' AND pid <> pg_backend_pid() GROUP BY 1"
        );
        let rows = self.rows("read pg_stat_activity", &asked)?;
        seen.looks += 1;
        for row in rows {
            let count: i64 = row.get(1);
            let count = u64::try_from(count).unwrap_or(0);
            seen.connected += count;
            // A session that reads from its client is about to tell that it is idle.
            let wait: Option<String> = row.get(0);
            if let Some(wait) = wait.filter(|wait| wait != "Client:ClientRead") {
                *seen.waits.entry(wait).or_default() += count;
            }
        }
        Ok(())
    }
}

/// Sums of looks at the sessions.
#[derive(Default)]
struct SeenSessions {
    looks: u64,
    connected: u64,
    waits: BTreeMap<String, u64>,
}

impl SeenSessions {
    fn average(self) -> Sessions {
        let looks = (self.looks as f64).max(1.0);
        let waits = self.waits.into_iter().map(|(wait, count)| (wait, count as f64 / looks));
        Sessions {
            looks: self.looks,
            connected: self.connected as f64 / looks,
            waits: waits.collect(),
        }
    }
}
