//! Which long commands are under way, and in what phase, from the views `pg_stat_progress_…` that
//! the server's version has. What never ran has no column.

use super::context::TelemetryContext;
use super::counts;
use super::probe::{Probe, ProbeError};

/// Each view's last part and its column that says most.
const VIEWS: &[(&str, &str)] = &[
    ("vacuum", "phase"),
    ("analyze", "phase"),
    ("create_index", "phase"),
    ("cluster", "phase"),
    ("basebackup", "phase"),
    ("copy", "command"),
];

/// None before PostgreSQL 9.6, which has the first of these views.
pub(super) fn make(context: &TelemetryContext) -> Result<Option<Box<dyn Probe>>, ProbeError> {
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
    counts::make("pg_stat_progress", session, &parts.join(" UNION ALL ")).map(Some)
}
