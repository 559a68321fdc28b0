//! Long commands in progress and their phases, from the server's views `pg_stat_progress_…`.
//! Commands that never ran have no column.

use super::context::TelemetryContext;
use super::counts;
use super::probe::{Probe, ProbeError};

/// The last part of each view's name, and its most telling column.
const VIEWS: &[(&str, &str)] = &[
    ("vacuum", "phase"),
    ("analyze", "phase"),
    ("create_index", "phase"),
    ("cluster", "phase"),
    ("basebackup", "phase"),
    ("copy", "command"),
];

/// Returns none before PostgreSQL 9.6, which introduced the first of these views.
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
    counts::make("pg_stat_progress", session, &parts.join(" UNION ALL "))
}
