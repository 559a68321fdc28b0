//! PostgreSQL's cumulative statistics: every numeric column of this server's version, and the time
//! of the last reset.

use std::time::Duration;

use pgdyno_model::telemetry::{Kind, STATS_RESET};

use super::context::TelemetryContext;
use super::probe::{EACH_SAMPLE, ProbeError, ProbeResult, SLOW, column, fixed_columns};

pub(super) fn wal(context: &TelemetryContext) -> ProbeResult {
    view(context, "pg_stat_wal", false, EACH_SAMPLE)
}

pub(super) fn database(context: &TelemetryContext) -> ProbeResult {
    view(context, "pg_stat_database", true, EACH_SAMPLE)
}

pub(super) fn bgwriter(context: &TelemetryContext) -> ProbeResult {
    view(context, "pg_stat_bgwriter", false, EACH_SAMPLE)
}

/// Creates the probe from PostgreSQL 17 on. Before, `pg_stat_bgwriter` has its counters.
pub(super) fn checkpointer(context: &TelemetryContext) -> ProbeResult {
    view(context, "pg_stat_checkpointer", false, EACH_SAMPLE)
}

pub(super) fn archiver(context: &TelemetryContext) -> ProbeResult {
    view(context, "pg_stat_archiver", false, SLOW)
}

/// Columns that are gauges.
const GAUGES: &[&str] = &["numbackends", STATS_RESET];

fn view(
    context: &TelemetryContext,
    name: &'static str,
    of_database: bool,
    interval: Duration,
) -> ProbeResult {
    let session = context.session()?.clone();
    let rows = session.rows_once(
        "SELECT attname::text FROM pg_catalog.pg_attribute \
         WHERE attrelid = pg_catalog.to_regclass('pg_catalog.' || $1) AND attnum > 0 \
         AND NOT attisdropped \
         AND (atttypid IN ('int4'::regtype, 'int8'::regtype, 'float8'::regtype, \
                           'numeric'::regtype) \
              OR attname = $2) \
         ORDER BY attnum",
        &[&name, &STATS_RESET],
    )?;
    if rows.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = rows.iter().map(|r| r.try_get(0)).collect::<Result<_, _>>()?;
    let select = |n: &String| match n.as_str() {
        STATS_RESET => format!("extract(epoch FROM {n})::float8"),
        _ => format!("{n}::float8"),
    };
    let list = names.iter().map(select).collect::<Vec<_>>().join(", ");
    let which = if of_database { " WHERE datname = $1" } else { "" };
    let mut query = session.prepare(format!("SELECT {list} FROM pg_catalog.{name}{which}"))?;
    let columns = names
        .iter()
        .map(|n| {
            column(
                n,
                unit(n),
                if GAUGES.contains(&n.as_str()) { Kind::Gauge } else { Kind::Counter },
            )
        })
        .collect();
    let database = of_database.then(|| context.server.loaded.database.clone());
    Ok(fixed_columns(interval, columns, move || {
        let rows = match &database {
            Some(database) => session.rows(&mut query, &[database]),
            None => session.rows(&mut query, &[]),
        }?;
        let row = rows.first().ok_or_else(|| match &database {
            Some(database) => ProbeError::NoDatabase(database.clone()),
            None => ProbeError::NoRow(name),
        })?;
        Ok((0..row.len()).map(|i| row.try_get(i)).collect::<Result<_, _>>()?)
    }))
}

/// Returns the unit of a statistics column, by PostgreSQL's naming.
pub(super) fn unit(column: &str) -> &'static str {
    if column == STATS_RESET {
        "s"
    } else if column.ends_with("_time") {
        "ms"
    } else if column.ends_with("_bytes") {
        "bytes"
    } else {
        "count"
    }
}
