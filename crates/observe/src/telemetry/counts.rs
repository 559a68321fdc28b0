//! Counts by name, from a query with two columns: a name and its present count. Names that never
//! occurred have no column.

use pgdyno_model::telemetry::Kind;

use super::columns::growing_columns;
use super::probe::{Probe, ProbeError, float};
use super::session::Session;

/// Creates the probe `name` with the query `query`.
pub(super) fn make(
    name: &'static str,
    session: Session,
    query: &str,
) -> Result<Option<Box<dyn Probe>>, ProbeError> {
    let query = session.client().prepare(query)?;
    Ok(growing_columns(name, move |row| {
        for found in session.client().query(&query, &[])? {
            let count = u64::try_from(found.try_get::<_, i64>(1)?).unwrap_or(0);
            row.set(found.try_get(0)?, "count", Kind::Gauge, float(count));
        }
        Ok(())
    }))
}
