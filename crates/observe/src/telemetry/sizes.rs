//! Sizes of the loaded database, its largest relations and `pg_wal`, at the trial's start and end
//! and every ten seconds in between.

use std::time::Duration;

use pgdyno_model::telemetry::{Column, Kind};

use super::columns::Columns;
use super::context::TelemetryContext;
use super::probe::{Probe, ProbeError, ProbeResult, SLOW, parts_text};
use super::session::{Query, TelemetrySession};

/// The largest relations at the trial's start. All others count in the database's size only.
const LARGEST: &str = "SELECT c.oid FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind IN ('r', 'm', 'i') AND n.nspname NOT IN ('pg_catalog', 'information_schema') \
    AND n.nspname NOT LIKE 'pg\\_toast%' AND NOT c.relisshared \
    ORDER BY pg_catalog.pg_relation_size(c.oid) DESC, c.oid LIMIT 30";

/// `$1` are the relations. A table's size includes all that belongs to it but its indexes.
const SIZES: &str = "SELECT oid::regclass::text, \
    (CASE relkind WHEN 'i' THEN pg_catalog.pg_relation_size(oid) \
    ELSE pg_catalog.pg_table_size(oid) END)::float8 \
    FROM pg_catalog.pg_class WHERE oid = ANY ($1) ORDER BY pg_catalog.array_position($1, oid)";

struct Sizes {
    control: TelemetrySession,
    /// A session with the loaded database, since other catalogs do not have its relations.
    loaded: Result<(TelemetrySession, Query, Vec<u32>), ProbeError>,
    database: String,
    columns: Columns,
    missing: Option<String>,
}

pub(super) fn make(context: &TelemetryContext) -> ProbeResult {
    let control = context.session()?.clone();
    let loaded = context.own_session(&context.server.loaded).and_then(|session| {
        let rows = session.rows_once(LARGEST, &[])?;
        let query = session.prepare(SIZES)?;
        Ok((session, query, rows.iter().map(|r| r.try_get(0)).collect::<Result<_, _>>()?))
    });
    let database = context.server.loaded.database.clone();
    Ok(Some(Box::new(Sizes {
        control,
        loaded,
        database,
        columns: Columns::default(),
        missing: None,
    })))
}

type Named = Vec<(String, f64)>;

impl Sizes {
    fn database(&self) -> Result<Named, ProbeError> {
        let query = "SELECT 'database', pg_catalog.pg_database_size(oid)::float8 \
            FROM pg_catalog.pg_database WHERE datname = $1";
        named(self.control.rows_once(query, &[&self.database])?)
    }

    fn wal(&self) -> Result<Named, ProbeError> {
        named(self.control.rows_once(
            "SELECT 'pg_wal', pg_catalog.sum(size)::float8 FROM pg_catalog.pg_ls_waldir()",
            &[],
        )?)
    }

    fn relations(&mut self) -> Result<Named, ProbeError> {
        let (session, query, oids) = self.loaded.as_mut().map_err(|why| why.clone())?;
        named(session.rows(query, &[oids])?)
    }
}

fn named(rows: Vec<tokio_postgres::Row>) -> Result<Named, ProbeError> {
    let mut named = Named::new();
    for row in rows {
        if let Some(value) = row.try_get::<_, Option<f64>>(1)? {
            named.push((row.try_get(0)?, value));
        }
    }
    Ok(named)
}

impl Probe for Sizes {
    fn columns(&self) -> &[Column] {
        self.columns.all()
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        let found = [
            ("the database's size", self.database()),
            ("the size of pg_wal", self.wal()),
            ("the sizes of relations", self.relations()),
        ];
        let mut errors = found.iter().filter_map(|(_, result)| result.as_ref().err());
        if let Some(lost) = errors.find(|error| matches!(error, ProbeError::Lost(_))) {
            return Err(lost.clone());
        }
        let failed = |(what, result): &(&'static str, Result<Named, ProbeError>)| {
            result.as_ref().err().map(|why| (*what, why.clone()))
        };
        let missing: Vec<(&str, ProbeError)> = found.iter().filter_map(failed).collect();
        if missing.len() == found.len() {
            return Err(ProbeError::Parts(missing));
        }
        if !missing.is_empty() {
            self.missing = Some(parts_text(&missing));
        }
        let mut row = self.columns.row_unknown();
        for (name, bytes) in found.into_iter().filter_map(|(_, result)| result.ok()).flatten() {
            row.set(&name, "bytes", Kind::Gauge, bytes);
        }
        Ok(row.values())
    }

    fn interval(&self) -> Duration {
        SLOW
    }

    fn missing_data(&self) -> Option<String> {
        self.missing.clone()
    }
}
