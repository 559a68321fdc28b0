//! PostgreSQL's cumulative statistics: every numeric column of this server's version, and the time
//! of the last reset.

use std::time::Duration;

use pgdyno_model::telemetry::{Column, Kind, STATS_RESET};
use postgres::Statement;

use super::context::TelemetryContext;
use super::probe::{Probe, ProbeError, SLOW, column};
use super::session::Session;

struct View {
    name: &'static str,
    columns: Vec<Column>,
    query: Statement,
    database: Option<String>,
    session: Session,
    interval: Duration,
}

pub(super) fn wal(context: &TelemetryContext) -> Result<Option<Box<dyn Probe>>, ProbeError> {
    view(context, "pg_stat_wal", false, Duration::ZERO)
}

pub(super) fn database(context: &TelemetryContext) -> Result<Option<Box<dyn Probe>>, ProbeError> {
    view(context, "pg_stat_database", true, Duration::ZERO)
}

pub(super) fn bgwriter(context: &TelemetryContext) -> Result<Option<Box<dyn Probe>>, ProbeError> {
    view(context, "pg_stat_bgwriter", false, Duration::ZERO)
}

/// Creates the probe from PostgreSQL 17 on. Before, `pg_stat_bgwriter` has its counters.
pub(super) fn checkpointer(
    context: &TelemetryContext,
) -> Result<Option<Box<dyn Probe>>, ProbeError> {
    view(context, "pg_stat_checkpointer", false, Duration::ZERO)
}

pub(super) fn archiver(context: &TelemetryContext) -> Result<Option<Box<dyn Probe>>, ProbeError> {
    view(context, "pg_stat_archiver", false, SLOW)
}

/// Columns that are gauges.
const GAUGES: &[&str] = &["numbackends", STATS_RESET];

fn view(
    context: &TelemetryContext,
    name: &'static str,
    of_database: bool,
    interval: Duration,
) -> Result<Option<Box<dyn Probe>>, ProbeError> {
    let session = context.session()?.clone();
    let mut client = session.client();
    let rows = client
        .query(
            "SELECT attname::text FROM pg_catalog.pg_attribute \
             WHERE attrelid = pg_catalog.to_regclass('pg_catalog.' || $1) AND attnum > 0 AND NOT attisdropped \
             AND (atttypid IN ('int4'::regtype, 'int8'::regtype, 'float8'::regtype, 'numeric'::regtype) \
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
    let query = client.prepare(&format!("SELECT {list} FROM pg_catalog.{name}{which}"))?;
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
    drop(client);
    Ok(Some(Box::new(View { name, columns, query, database, session, interval })))
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

impl Probe for View {
    fn name(&self) -> &'static str {
        self.name
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        let mut client = self.session.client();
        let row = match &self.database {
            Some(database) => client.query_opt(&self.query, &[database]),
            None => client.query_opt(&self.query, &[]),
        };
        let row = row?;
        let row = row.ok_or_else(|| format!("{} has no row{}", self.name, self.which()))?;
        Ok((0..self.columns.len()).map(|i| row.try_get(i)).collect::<Result<_, _>>()?)
    }

    fn interval(&self) -> Duration {
        self.interval
    }
}

impl View {
    fn which(&self) -> String {
        self.database.as_ref().map_or_else(String::new, |d| format!(" for database {d}"))
    }
}
