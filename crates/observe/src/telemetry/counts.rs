//! Counts by name, from a query with two columns: a name and its present count. Names that never
//! occurred have no column.

use pgdyno_model::telemetry::{Column, Kind};
use postgres::Statement;

use super::columns::Columns;
use super::probe::{Probe, ProbeError, float};
use super::session::Session;

struct Counts {
    name: &'static str,
    session: Session,
    query: Statement,
    columns: Columns,
}

/// Creates the probe `name` with the query `query`.
pub(super) fn make(
    name: &'static str,
    session: Session,
    query: &str,
) -> Result<Box<dyn Probe>, ProbeError> {
    let query = session.client().prepare(query)?;
    Ok(Box::new(Counts { name, session, query, columns: Columns::default() }))
}

impl Probe for Counts {
    fn name(&self) -> &'static str {
        self.name
    }

    fn columns(&self) -> &[Column] {
        self.columns.all()
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        let rows = self.session.client().query(&self.query, &[])?;
        let mut row = self.columns.row();
        for found in rows {
            let count = u64::try_from(found.try_get::<_, i64>(1)?).unwrap_or(0);
            row.set(found.try_get(0)?, "count", Kind::Gauge, float(count));
        }
        Ok(row.values())
    }
}
