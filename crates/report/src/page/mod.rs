//! Results as pages: one HTML file that loads nothing from elsewhere.
//!
//! The front end (`web/`) draws everything. A page adds three things to it: the document (JSON),
//! the details of trials (compressed, decoded when they are looked at), and the answer with its
//! table as plain HTML, for readers without JavaScript.
//!
//! Make a [`Page`] with the function of its kind, then [`Page::to_html`] or [`Page::write`].

mod archive;
mod detail;
mod document;
mod environment;
mod heat;
mod reduction;
#[cfg(feature = "schema")]
pub mod schema;
mod served;
mod static_html;
mod steadiness;
mod template;

use std::path::Path;

#[cfg(test)]
pub(super) use document::SCHEMA;
use document::{Kind, PageDocument};
use environment::Environment;
use pgdyno_audit::ImportedRun;
use pgdyno_model::{CrashRecord, ProbeRecord};
use serde::Serialize;
use serde_json::Value;
pub use served::{ComparedPage, FrontEnd, front_end};

use super::{
    CompareReport, CrashView, ReportError, RunReport, SideBySideReport, audit, crash, file, probe,
};
use crate::headline::{Caution, Tier};
use crate::prose;
use pgdyno_analysis::RunView;
use pgdyno_analysis::comparison::imported::SideBySideView;

/// A page, ready to be rendered.
#[derive(Debug)]
pub struct Page {
    title: String,
    /// Answer and table, as HTML.
    body: String,
    /// The document, as JSON.
    document: String,
    /// Encoded details of trials, with their indices.
    details: Vec<(usize, String)>,
}

impl Page {
    /// Makes the page of a run.
    ///
    /// # Errors
    /// [`ReportError::Render`].
    pub fn run(report: &RunReport) -> Result<Self, ReportError> {
        let view = &report.view;
        let subject = &view.run.id;
        let mut value = to_value(report, subject)?;
        lighten(&mut value);
        let title = format!("{} · {}", view.run.recipe, view.run.id);
        let headline = report.headline.clone();
        let mut document = PageDocument::new(Kind::Run, title, headline, value);
        document.cautions.clone_from(&report.cautions);
        document.environment = Environment::of_run(view);
        document.pairs = Some(view.pairs.clone());
        document.steadiness = Some(steadiness::rows(view));
        let mut page = Self::new(subject, document, &static_html::treatments(report))?;
        let taken = page.document.len() + page.body.len();
        page.details = archive::details(&view.trials, taken).map_err(render(subject))?;
        Ok(page)
    }

    /// Makes the page of crash tests.
    ///
    /// # Errors
    /// [`ReportError::Render`].
    pub fn crash(record: &CrashRecord) -> Result<Self, ReportError> {
        let view = CrashView::from(record);
        let mut value = to_value(&view, &record.id)?;
        add_commands(&mut value, record);
        let title = format!("crash tests · {}", record.id);
        let headline = prose::crash_headline(record, &view);
        let mut document = PageDocument::new(Kind::Crash, title, headline, value);
        let faults: Vec<&str> = view.faults.iter().map(|fault| fault.fault.as_str()).collect();
        let notes = prose::joined_by_fault(&view.notes, &faults);
        document.cautions = prose::plain_cautions("crash", Tier::Conclusion, &notes);
        let begun = format!("begun {}", record.started_at);
        document.environment = vec![Environment::new(begun, &record.host, [&record.storage])];
        let table = static_html::preformatted(&crash(record, &|_| true));
        Self::new(&record.id, document, &table)
    }

    /// Makes the page of a probe.
    ///
    /// # Errors
    /// [`ReportError::Render`].
    pub fn probe(record: &ProbeRecord) -> Result<Self, ReportError> {
        let value = to_value(record, &record.id)?;
        let title = format!("{} probe of {} · {}", record.result.kind(), record.name, record.id);
        let headline = prose::probe_headline(record);
        let mut document = PageDocument::new(Kind::Probe, title, headline, value);
        let warnings = record.result.warnings();
        document.cautions = prose::plain_cautions("suspect", Tier::Conclusion, warnings);
        let begun = format!("begun {}", record.started_at);
        document.environment = vec![Environment::new(begun, &record.host, [&record.storage])];
        let table = static_html::preformatted(&probe(record));
        Self::new(&record.id, document, &table)
    }

    /// Makes the page of a comparison; `a` and `b` are the runs of its sides.
    ///
    /// # Errors
    /// [`ReportError::Render`].
    pub fn compare(report: &CompareReport, a: &RunView, b: &RunView) -> Result<Self, ReportError> {
        let view = &report.view;
        let subject = format!("{} and {}", view.a.run, view.b.run);
        let value = to_value(report, &subject)?;
        let headline = prose::comparison_headline(view, &report.answer);
        let title = format!("comparison · {subject}");
        let mut document = PageDocument::new(Kind::Compare, title, headline, value);
        document.cautions = compare_cautions(report);
        document.differences = Some(environment::differences(a, b));
        Self::new(&subject, document, &static_html::pairs(view))
    }

    /// Makes the page of a run beside imported figures.
    ///
    /// # Errors
    /// [`ReportError::Render`].
    pub fn side_by_side(view: &SideBySideView) -> Result<Self, ReportError> {
        let subject = format!("{} and {}", view.imported, view.run);
        let value = to_value(&SideBySideReport(view), &subject)?;
        let headline = prose::side_by_side_headline(view);
        let title = format!("beside a published report · {subject}");
        let mut document = PageDocument::new(Kind::Beside, title, headline, value);
        let notes = prose::side_by_side_notes(view);
        document.cautions = prose::plain_cautions("side-by-side", Tier::Conclusion, &notes);
        Self::new(&subject, document, &static_html::sides(view))
    }

    /// Makes the page of imported figures.
    ///
    /// # Errors
    /// [`ReportError::Render`].
    pub fn import(import: &ImportedRun) -> Result<Self, ReportError> {
        let value = to_value(import, &import.id)?;
        let headline = prose::import_headline(import);
        let title = format!("imported figures · {}", import.id);
        let document = PageDocument::new(Kind::Import, title, headline, value);
        let table = static_html::preformatted(&audit::imported(import));
        Self::new(&import.id, document, &table)
    }

    /// Makes a page without details of trials.
    fn new(subject: &str, document: PageDocument, table: &str) -> Result<Self, ReportError> {
        let json = serde_json::to_string(&document).map_err(render(subject))?;
        let PageDocument { title, headline, cautions, .. } = document;
        let body = static_html::head(&title, &headline, &cautions) + table + "</main>\n";
        Ok(Self { title, body, document: json, details: Vec::new() })
    }

    /// Renders the page as one HTML file.
    ///
    /// Texts of the result stay text. The content security policy allows the front end's own script
    /// and style only, by their hashes.
    pub fn to_html(&self) -> String {
        let Self { title, body, document, details } = self;
        template::insert(&template::Parts { title, body, document, details })
    }

    /// Writes the page to `path`, atomically.
    ///
    /// # Errors
    /// [`ReportError::Write`].
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), ReportError> {
        file::write(path.as_ref(), &self.to_html())
    }
}

fn to_value<T: Serialize>(view: &T, subject: &str) -> Result<Value, ReportError> {
    serde_json::to_value(view).map_err(render(subject))
}

/// Returns the error of rendering the page of `subject`.
fn render(subject: &str) -> impl Fn(serde_json::Error) -> ReportError + use<'_> {
    move |source| ReportError::Render { subject: subject.to_owned(), source }
}

/// Takes what the details hold out of a run's view.
fn lighten(value: &mut Value) {
    let trials = value.get_mut("trials").and_then(Value::as_array_mut);
    for trial in trials.into_iter().flatten().filter_map(Value::as_object_mut) {
        trial.remove("series");
        trial.remove("telemetry");
    }
}

/// Adds to each round of crash tests the command that repeats it.
fn add_commands(value: &mut Value, record: &CrashRecord) {
    for (i, fault) in record.outcome.faults.iter().enumerate() {
        for (j, round) in fault.rounds.iter().enumerate() {
            let command = prose::round_command(record, fault.fault, round);
            let round = value.pointer_mut(&format!("/faults/{i}/each/{j}"));
            if let Some(round) = round.and_then(Value::as_object_mut) {
                round.insert("command".to_owned(), command.into());
            }
        }
    }
}

/// Returns what differs although it must not, then the notes.
fn compare_cautions(report: &CompareReport) -> Vec<Caution> {
    let unequal = report.view.unequal.iter().filter(|unequal| !unequal.on_purpose);
    let unequal: Vec<String> =
        unequal.map(|u| format!("Not equal: {}: A: {}; B: {}.", u.what, u.a, u.b)).collect();
    let mut cautions = prose::plain_cautions("not-equal", Tier::Conclusion, &unequal);
    cautions.extend(prose::plain_cautions("note", Tier::Context, &report.notes));
    cautions
}
