//! The documents of the API. `docs/json.md` lists their schemas.

use axum::response::Response;
use pgdyno_analysis::Badge;
use pgdyno_model::json::{self, Document as Schema};
use pgdyno_model::record::RunState;
use pgdyno_report::json::for_browser;
use pgdyno_store::RunSummary;
use pgdyno_store::notes::NoteVersion;
use serde::Serialize;

use crate::listing::OtherRow;
use crate::response::{ApiError, json_text};

/// Responds with `document` under its schema.
///
/// # Errors
/// The document's serializer fails.
pub(crate) fn respond<T: Schema>(document: &T) -> Result<Response, ApiError> {
    Ok(json_text(for_browser(&json::compact(document)?)))
}

macro_rules! schemas {
    ($($what:ty => $schema:literal),* $(,)?) => {
        $(impl Schema for $what {
            const SCHEMA: &'static str = $schema;
        })*

        /// The schemas of the API.
        #[cfg(test)]
        pub(crate) const SCHEMAS: &[&str] = &[$($schema),*];
    };
}

schemas! {
    Info => "pgdyno.serve-info/1",
    Runs => "pgdyno.serve-runs/1",
    History => "pgdyno.serve-history/1",
    NoteHistory => "pgdyno.serve-note/1",
    LiveRuns => "pgdyno.serve-live-runs/1",
    StopAsked => "pgdyno.serve-stop/1",
}

/// The store that is served, and the actions that visitors may take.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Info {
    /// The server's version.
    pub(crate) pgdyno_version: &'static str,
    /// The store's path.
    pub(crate) store: String,
    /// Whether notes can be written.
    pub(crate) can_write_notes: bool,
    /// Why notes cannot be written; null if they can.
    pub(crate) notes_reason: Option<String>,
    /// Whether runs may be asked to stop.
    pub(crate) allows_control: bool,
}

/// Contents of the store, newest first.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Runs {
    /// The runs.
    pub(crate) runs: Vec<RunRow>,
    /// Probes, crash tests and imports.
    pub(crate) others: Vec<NotedRow>,
    /// Runs whose badge, headline and sparkline are not known yet (count). They are found in the
    /// background while no run is measured.
    pub(crate) pending: usize,
}

/// A run in the list.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunRow {
    /// The run, and where it stands.
    #[serde(flatten)]
    pub(crate) summary: RunSummary,
    /// The last session's machine, in words; null while it is not known.
    pub(crate) host: Option<String>,
    /// How far the run answers its question; null while that is not known.
    pub(crate) badge: Option<Badge>,
    /// The answer in one or two sentences; null while it is not known.
    pub(crate) headline: Option<String>,
    /// Transactions per second of completed trials in order, at most 40.
    pub(crate) spark: Vec<f64>,
    /// The user's note; empty where there is none.
    pub(crate) note: String,
    /// The user's tags.
    pub(crate) tags: Vec<String>,
    /// Whether the run's process is at work and can be watched.
    pub(crate) is_live: bool,
}

/// A probe, crash tests or an import with the user's note.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct NotedRow {
    /// The probe, crash tests or import.
    #[serde(flatten)]
    pub(crate) row: OtherRow,
    /// The user's note; empty where there is none.
    pub(crate) note: String,
    /// The user's tags.
    pub(crate) tags: Vec<String>,
}

/// One recipe over time and hosts.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct History {
    /// The recipe's or the file's name.
    pub(crate) recipe: String,
    /// Treatments, in the order of the newest run that has each.
    pub(crate) treatments: Vec<TreatmentHistory>,
    /// Runs that are not analysed yet (count): ask again for them.
    pub(crate) pending: usize,
}

/// One treatment over time and hosts.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TreatmentHistory {
    /// Levels of the treatment's factors, in one line.
    pub(crate) treatment: String,
    /// Results of the treatment, oldest first.
    pub(crate) points: Vec<HistoryPoint>,
}

/// A treatment in one run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HistoryPoint {
    /// The run's id.
    pub(crate) run: String,
    /// When the run began (RFC 3339, UTC).
    pub(crate) started_at: String,
    /// The last session's machine, in words.
    pub(crate) host: Option<String>,
    /// Completed trials (count).
    pub(crate) trials: usize,
    /// Mean transactions per second.
    pub(crate) tps: f64,
    /// 95% confidence interval of `tps`; null where none can be formed.
    pub(crate) ci95: Option<[f64; 2]>,
    /// 99th percentile of latency (microseconds).
    pub(crate) latency_us_p99: Option<f64>,
    /// Version of the pgdyno that ran it.
    pub(crate) pgdyno_version: String,
    /// PostgreSQL's version.
    pub(crate) postgres_version: Option<String>,
    /// Where the run stands.
    pub(crate) state: RunState,
}

/// A note with its earlier versions.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct NoteHistory {
    /// Id of the result.
    pub(crate) id: String,
    /// Every version, newest first; empty where nobody wrote one.
    pub(crate) versions: Vec<NoteVersion>,
}

/// Runs that can be watched, newest first.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LiveRuns {
    /// The runs.
    pub(crate) runs: Vec<LiveRow>,
    /// Another number once the store holds something else than before: `/api/runs` is to be read
    /// again. Notes and headlines do not count.
    pub(crate) version: u64,
}

/// A run that can be watched.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LiveRow {
    /// The run's id.
    pub(crate) id: String,
    /// The recipe's or the file's name.
    pub(crate) recipe: String,
    /// When the session began (RFC 3339, UTC).
    pub(crate) started_at: String,
    /// Whether the run's process still works.
    pub(crate) is_alive: bool,
    /// How the run ended; null while it works, and if its process died.
    pub(crate) ended: Option<String>,
    /// Why the run could not go on.
    pub(crate) error: Option<String>,
}

/// A run was asked to end after the trial in progress.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct StopAsked {
    /// The run's id.
    pub(crate) run: String,
}

#[cfg(test)]
mod tests {
    use super::SCHEMAS;

    #[test]
    fn each_schema_has_a_name_of_its_own_that_the_docs_list() {
        let docs =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md"))
                .unwrap();
        for (n, schema) in SCHEMAS.iter().enumerate() {
            assert!(!SCHEMAS[..n].contains(schema), "{schema} twice");
            assert!(docs.contains(&format!("| `{schema}` |")), "docs/json.md lacks {schema}");
        }
    }
}
