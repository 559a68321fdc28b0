//! Renders stored results as pages or as JSON.

use std::path::Path;

use pgdyno_model::crash::CrashRecord;

use pgdyno_model::ProbeRecord;
use pgdyno_model::json::Document;
use pgdyno_report as report;
use pgdyno_report::{CrashView, json};

use crate::error::CommandError;

/// Renders a document as JSON.
pub(crate) fn to_json<T: Document>(document: &T) -> Result<String, CommandError> {
    Ok(json::json(document)?)
}

/// Renders documents as a JSON list.
pub(crate) fn to_json_list<T: Document>(documents: &[T]) -> Result<String, CommandError> {
    Ok(json::json_list(documents)?)
}

/// Renders a probe's result.
pub(crate) fn render_probe(record: &ProbeRecord, as_json: bool) -> Result<String, CommandError> {
    if as_json { to_json(record) } else { Ok(report::probe(record)) }
}

/// Renders the crash tests of one session.
pub(crate) fn render_crash(record: &CrashRecord, as_json: bool) -> Result<String, CommandError> {
    if as_json {
        return to_json(&CrashView::from(record));
    }
    Ok(report::crash(record, &|kept| Path::new(kept).exists()))
}
