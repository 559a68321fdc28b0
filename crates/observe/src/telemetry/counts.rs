//! Counts by name, from a query with two columns: a name and its present count. Names that never
//! occurred have no column.
//!
//! So are counted locks, by `pg_locks`, and commands in progress.

use pgdyno_model::telemetry::Kind;

use super::columns::growing_columns;
use super::context::TelemetryContext;
use super::probe::{ProbeResult, float};
use super::session::TelemetrySession;

/// Creates a probe with the query `query`.
fn make(session: TelemetrySession, query: &str) -> ProbeResult {
    let mut query = session.prepare(query)?;
    Ok(growing_columns(move |row| {
        for found in session.rows(&mut query, &[])? {
            let count = u64::try_from(found.try_get::<_, i64>(1)?).unwrap_or(0);
            row.set(found.try_get(0)?, "count", Kind::Gauge, float(count));
        }
        Ok(())
    }))
}

/// Creates the probe of heavyweight locks by mode, held and waited for, without pgdyno's own.
pub(super) fn locks(context: &TelemetryContext) -> ProbeResult {
    let query = "SELECT CASE WHEN granted THEN mode || '.held' \
                 ELSE mode || '.waiting.' || locktype END, count(*) \
                 FROM pg_catalog.pg_lock_status() AS l \
                 WHERE pid IS DISTINCT FROM pg_catalog.pg_backend_pid() GROUP BY 1";
    make(context.session()?.clone(), query)
}

/// The last part of each view's name, and its most telling column.
const VIEWS: &[(&str, &str)] = &[
    ("vacuum", "phase"),
    ("analyze", "phase"),
    ("create_index", "phase"),
    ("cluster", "phase"),
    ("basebackup", "phase"),
    ("copy", "command"),
];

/// Creates the probe of long commands in progress and their phases, from the server's views
/// `pg_stat_progress_…`. Returns none before PostgreSQL 9.6, which introduced the first of these
/// views.
pub(super) fn progress(context: &TelemetryContext) -> ProbeResult {
    let session = context.session()?.clone();
    let mut parts = Vec::new();
    for (command, phase) in VIEWS {
        if session.has_relation(&format!("pg_catalog.pg_stat_progress_{command}"))? {
            parts.push(format!(
                "SELECT '{command}.' || coalesce({phase}, 'unknown'), count(*) \
                 FROM pg_catalog.pg_stat_progress_{command} GROUP BY 1"
            ));
        }
    }
    if parts.is_empty() {
        return Ok(None);
    }
    make(session, &parts.join(" UNION ALL "))
}
