//! Reports: every word and drawing. Views of `pgdyno-analysis` go in, text comes out.
//!
//! [`RunReport::read`] analyses a run and finds the words for it, [`CompareReport::read`] does so
//! for two. `prose` has the sentences that all reports share. Each view has a function here:
//! [`terminal()`] for a run, [`compare()`] for two, [`crash()`] for crash tests, [`probe()`] for
//! probes. [`json`](mod@json) prints any of them, and [`Page`] makes an HTML file of any: one file
//! that needs no network.
//!
//! ```no_run
//! use pgdyno_report::{Detail, Page, RunReport};
//! use pgdyno_store::Store;
//!
//! let store = Store::open_existing("results.sqlite3")?;
//! let report = RunReport::read(&store, &store.resolve("latest")?)?;
//! println!("{}", pgdyno_report::terminal(&report, 100, Detail::Full));
//! Page::run(&report)?.write("report.html")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod audit;
mod comparison;
mod crash;
mod document;
mod error;
pub mod export;
mod file;
pub mod fingerprint;
mod generators;
mod groups;
mod headline;
mod hosts;
pub mod json;
pub mod live;
pub mod metrics;
mod noise;
mod note;
mod page;
mod probe;
pub mod progress;
mod prose;
mod run_report;
mod smart;
mod stack;
mod stages;
mod table;
mod terminal;
pub mod text;

pub use crate::prose::on_a_busy_host;
pub(crate) use comparison::escaped as markdown_text;
pub use comparison::{CompareReport, compare, compare_markdown, side_by_side};
pub use crash::{CrashView, FaultView, FilesystemsView, PowerView, StatesView, crash};
pub use document::SideBySideReport;
pub use error::ReportError;
pub use file::is_report;
pub(crate) use file::replace;
pub use headline::{Caution, Headline, KeyFigure, Panel, Proof, ProofKind, Tier};
pub use hosts::hosts;
pub use noise::{forecast, noise};
pub use note::{Note, NoteKind};
#[cfg(feature = "schema")]
pub use page::schema;
pub use page::{ComparedPage, FrontEnd, Page, front_end};
pub use probe::probe;
pub use run_report::RunReport;
pub use terminal::terminal;
pub(crate) use terminal::{LEGEND as TABLE_LEGEND, TreatmentTable, treatment_table};
pub use text::Detail;
