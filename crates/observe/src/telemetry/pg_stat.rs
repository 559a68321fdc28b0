//! PostgreSQL's own counters: every numeric column that the server's version has, by its own name,
//! and when they were last reset.

use std::time::Duration;

use postgres::Statement;

use pgdyno_model::telemetry::{Column, Kind, STATS_RESET};

use super::session::Session;
use super::{Probe, SLOW, Watched, column};
use pgdyno_connect::control::error_text;

struct View {
    name: &'static str,
    columns: Vec<Column>,
    query: Statement,
    database: Option<String>,
    session: Session,
    every: Duration,
}

pub(super) fn wal(watched: &Watched) -> Result<Option<Box<dyn Probe>>, String> {
    view(watched, "pg_stat_wal", false, Duration::ZERO)
}

pub(super) fn database(watched: &Watched) -> Result<Option<Box<dyn Probe>>, String> {
    view(watched, "pg_stat_database", true, Duration::ZERO)
}

pub(super) fn bgwriter(watched: &Watched) -> Result<Option<Box<dyn Probe>>, String> {
    view(watched, "pg_stat_bgwriter", false, Duration::ZERO)
}

/// From PostgreSQL 17 on; before, `pg_stat_bgwriter` has its counters.
pub(super) fn checkpointer(watched: &Watched) -> Result<Option<Box<dyn Probe>>, String> {
    view(watched, "pg_stat_checkpointer", false, Duration::ZERO)
}

pub(super) fn archiver(watched: &Watched) -> Result<Option<Box<dyn Probe>>, String> {
    view(watched, "pg_stat_archiver", false, SLOW)
}

/// Columns that are no counters: what they say is how it is now.
const GAUGES: &[&str] = &["numbackends", STATS_RESET];

fn view(
    watched: &Watched,
    name: &'static str,
    of_database: bool,
    every: Duration,
) -> Result<Option<Box<dyn Probe>>, String> {
    let session = watched.session()?.clone();
    let mut client = session.client();
    let rows = client
        .query(
            "SELECT attname::text FROM pg_catalog.pg_attribute \
             WHERE attrelid = pg_catalog.to_regclass('pg_catalog.' || $1) AND attnum > 0 AND NOT attisdropped \
             AND (atttypid IN ('int4'::regtype, 'int8'::regtype, 'float8'::regtype, 'numeric'::regtype) \
                  OR attname = $2) \
             ORDER BY attnum",
            &[&name, &STATS_RESET],
        )
        .map_err(|e| error_text(&e))?;
    if rows.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = rows.iter().map(|r| r.get(0)).collect();
    let select = |n: &String| match n.as_str() {
        STATS_RESET => format!("extract(epoch FROM {n})::float8"),
        _ => format!("{n}::float8"),
    };
    let list = names.iter().map(select).collect::<Vec<_>>().join(", ");
    let which = if of_database { " WHERE datname = $1" } else { "" };
    let query = client
        .prepare(&format!("SELECT {list} FROM pg_catalog.{name}{which}"))
        .map_err(|e| error_text(&e))?;
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
    let database = of_database.then(|| watched.subject.loaded.database.clone());
    drop(client);
    Ok(Some(Box::new(View { name, columns, query, database, session, every })))
}

/// The unit of a column of PostgreSQL's statistics, as they are named throughout.
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

    fn sample(&mut self) -> Result<Vec<Option<f64>>, String> {
        let mut client = self.session.client();
        let row = match &self.database {
            Some(database) => client.query_opt(&self.query, &[database]),
            None => client.query_opt(&self.query, &[]),
        };
        let row = row.map_err(|e| error_text(&e))?;
        let row = row.ok_or_else(|| format!("{} has no row{}", self.name, self.which()))?;
        Ok((0..self.columns.len()).map(|i| row.get(i)).collect())
    }

    fn every(&self) -> Duration {
        self.every
    }
}

impl View {
    fn which(&self) -> String {
        self.database.as_ref().map_or_else(String::new, |d| format!(" for database {d}"))
    }
}
