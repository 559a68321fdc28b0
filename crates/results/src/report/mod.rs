//! Reports: renders views for terminal, Markdown, HTML and JSON.
//!
//! Each view has a function here: [`terminal()`] and [`write_html`] for a run, [`compare()`] for
//! two, [`crash()`] for crash tests, [`probe()`] for probes. [`json`](mod@json) prints any of them.
//! The HTML report is one file that needs no network.

pub mod audit;
mod charts;
mod compare;
mod crash;
mod error;
mod file;
pub mod fingerprint;
mod html;
pub mod json;
mod probe;
mod side_by_side;
mod stack;
mod terminal;
pub mod text;
mod verdicts;
mod why;

pub(crate) use compare::escaped as markdown_text;
pub use compare::{compare, compare_markdown};
pub use crash::{CrashView, FaultView, GravestFault, PowerView, crash};
pub use error::ReportError;
pub(crate) use file::replace;
pub use file::{is_report, write_html};
pub use html::html;
pub use probe::probe;
pub use side_by_side::side_by_side;
pub use terminal::terminal;
pub(crate) use terminal::{LEGEND as TABLE_LEGEND, treatments};
pub use text::Detail;
