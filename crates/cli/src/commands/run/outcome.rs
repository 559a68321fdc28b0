//! How a run ended, for the command of `--notify`.

use std::path::{Path, PathBuf};

use pgdyno_lab::run::Outcome;
use pgdyno_model::json::Document;
use pgdyno_model::record::SessionEnd;
use pgdyno_report::RunReport;
use serde::Serialize;

use crate::error::{CommandError, render_chain};
use crate::exit_status::ExitStatus;

/// How a run ended, as a JSON document.
#[derive(Debug, Serialize)]
pub(super) struct OutcomeDocument {
    /// The run's id; none if it ended before it had a place in the store.
    run: Option<String>,
    /// How it ended: `completed`, `failed` or `interrupted`.
    state: &'static str,
    /// The exit status of the process.
    exit_status: u8,
    /// Why it could not go on.
    error: Option<String>,
    /// Trials that failed, and crash tests that were not done to the end (count).
    failed: u32,
    /// The answer to the run's question, in sentences; empty if it has none.
    answer: Vec<String>,
    /// The store's path.
    store: String,
    /// The report's path; none if no file was written.
    report: Option<String>,
}

impl Document for OutcomeDocument {
    const SCHEMA: &'static str = "pgdyno.outcome/1";
}

impl OutcomeDocument {
    /// Creates the outcome of a run on `store` that did not begin yet.
    pub(super) fn new(store: &Path) -> Self {
        Self {
            run: None,
            state: SessionEnd::Failed.into(),
            exit_status: 1,
            error: None,
            failed: 0,
            answer: Vec::new(),
            store: store.display().to_string(),
            report: None,
        }
    }

    /// Notes what was measured.
    pub(super) fn record_results(&mut self, outcome: &Outcome, report: &RunReport) {
        self.run = Some(outcome.run.clone());
        self.state = outcome.end.into();
        self.failed = outcome.failed;
        self.answer.clone_from(&report.answer);
    }

    /// Notes where the report is, if it is a file.
    pub(super) fn record_report(&mut self, file: Option<PathBuf>) {
        self.report = file.map(|file| file.display().to_string());
    }

    /// Returns the outcome of a command that ended with `ended`.
    pub(super) fn record_end(mut self, ended: &Result<ExitStatus, CommandError>) -> Self {
        match ended {
            Ok(status) => {
                self.exit_status = status.code();
                if self.run.is_none() && *status == ExitStatus::Interrupted {
                    self.state = SessionEnd::Interrupted.into();
                }
            }
            Err(error) if error.is_interruption() => {
                self.state = SessionEnd::Interrupted.into();
                self.exit_status = ExitStatus::Interrupted.code();
            }
            Err(error) => self.error = Some(render_chain(error)),
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_docs_list_the_schema() {
        let docs =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md"))
                .unwrap();
        assert!(docs.contains(&format!("| `{}` |", OutcomeDocument::SCHEMA)));
    }

    #[test]
    fn a_run_that_could_not_begin_has_an_error_and_no_id() {
        let outcome =
            OutcomeDocument::new(Path::new("s")).record_end(&Err(CommandError::new("no disk")));
        assert_eq!((outcome.run, outcome.state, outcome.exit_status), (None, "failed", 1));
        assert!(outcome.error.is_some());
        let outcome = OutcomeDocument::new(Path::new("s")).record_end(&Ok(ExitStatus::Interrupted));
        assert_eq!((outcome.state, outcome.exit_status), ("interrupted", 130));
    }
}
