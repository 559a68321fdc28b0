//! Renders stored results as pages or as JSON.

use std::path::Path;

use pgdyno_model::ProbeRecord;
use pgdyno_model::crash::CrashRecord;
use pgdyno_report as report;
use pgdyno_report::CrashView;
use pgdyno_report::json::json;

use crate::error::CommandError;

/// Renders a probe's result.
pub(crate) fn render_probe(record: &ProbeRecord, as_json: bool) -> Result<String, CommandError> {
    if as_json { Ok(json(record)?) } else { Ok(report::probe(record)) }
}

/// Renders the crash tests of one session.
pub(crate) fn render_crash(record: &CrashRecord, as_json: bool) -> Result<String, CommandError> {
    if as_json {
        return Ok(json(&CrashView::from(record))?);
    }
    Ok(report::crash(record, &|kept| Path::new(kept).exists()))
}
