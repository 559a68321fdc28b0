//! Heavyweight locks by mode, held and waited for, from `pg_locks`, without pgdyno's own. Modes
//! that never occurred have no column.

use super::context::TelemetryContext;
use super::counts;
use super::probe::{Probe, ProbeError};

pub(super) fn make(context: &TelemetryContext) -> Result<Option<Box<dyn Probe>>, ProbeError> {
    let query = "SELECT CASE WHEN granted THEN mode || '.held' ELSE mode || '.waiting.' || locktype END, count(*) \
                 FROM pg_catalog.pg_lock_status() AS l WHERE pid IS DISTINCT FROM pg_catalog.pg_backend_pid() GROUP BY 1";
    counts::make("pg_locks", context.session()?.clone(), query)
}
