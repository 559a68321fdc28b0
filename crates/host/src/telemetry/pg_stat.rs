//! PostgreSQL's own counters: every numeric column that the server's version has, by its own name.

use std::sync::{Arc, Mutex, PoisonError};

use postgres::{Client, Statement};

use super::{Column, Kind, Probe, Watched, column};
use crate::postgres::control::said;

struct View {
    name: &'static str,
    columns: Vec<Column>,
    query: Statement,
    database: Option<String>,
    client: Arc<Mutex<Client>>,
}

pub(super) fn wal(watched: &Watched) -> Result<Option<Box<dyn Probe>>, String> {
    view(watched, "pg_stat_wal", false)
}

pub(super) fn database(watched: &Watched) -> Result<Option<Box<dyn Probe>>, String> {
    view(watched, "pg_stat_database", true)
}

pub(super) fn bgwriter(watched: &Watched) -> Result<Option<Box<dyn Probe>>, String> {
    view(watched, "pg_stat_bgwriter", false)
}

/// From PostgreSQL 17 on; before, `pg_stat_bgwriter` has its counters.
pub(super) fn checkpointer(watched: &Watched) -> Result<Option<Box<dyn Probe>>, String> {
    view(watched, "pg_stat_checkpointer", false)
}

/// Columns that are no counters: what they say is how it is now.
const GAUGES: &[&str] = &["numbackends"];

fn view(watched: &Watched, name: &'static str, of_database: bool) -> Result<Option<Box<dyn Probe>>, String> {
    let shared = watched.client.as_ref().map_err(Clone::clone)?;
    let mut client = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let rows = client
        .query(
            "SELECT attname::text FROM pg_catalog.pg_attribute \
             WHERE attrelid = to_regclass('pg_catalog.' || $1) AND attnum > 0 AND NOT attisdropped \
             AND atttypid IN ('int4'::regtype, 'int8'::regtype, 'float8'::regtype, 'numeric'::regtype) \
             ORDER BY attnum",
            &[&name],
        )
        .map_err(|e| said(&e))?;
    if rows.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = rows.iter().map(|r| r.get(0)).collect();
    let list = names.iter().map(|n| format!("{n}::float8")).collect::<Vec<_>>().join(", ");
    let which = if of_database { " WHERE datname = $1" } else { "" };
    let query =
        client.prepare(&format!("SELECT {list} FROM pg_catalog.{name}{which}")).map_err(|e| said(&e))?;
    let columns = names
        .iter()
        .map(|n| {
            let unit = if n.ends_with("_time") {
                "ms"
            } else if n.ends_with("_bytes") {
                "bytes"
            } else {
                "count"
            };
            column(n, unit, if GAUGES.contains(&n.as_str()) { Kind::Gauge } else { Kind::Counter })
        })
        .collect();
    let database = of_database.then(|| watched.database.clone());
    Ok(Some(Box::new(View { name, columns, query, database, client: Arc::clone(shared) })))
}

impl Probe for View {
    fn name(&self) -> &'static str {
        self.name
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, String> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let row = match &self.database {
            Some(database) => client.query_opt(&self.query, &[database]),
            None => client.query_opt(&self.query, &[]),
        };
        let row = row.map_err(|e| said(&e))?;
        let row = row.ok_or_else(|| format!("{} has no row{}", self.name, self.which()))?;
        Ok((0..self.columns.len()).map(|i| row.get(i)).collect())
    }
}

impl View {
    fn which(&self) -> String {
        self.database.as_ref().map_or_else(String::new, |d| format!(" for database {d}"))
    }
}
