//! Keeps runs, analyses them and renders reports.
//!
//! This crate opens a run anywhere: it needs neither PostgreSQL nor root nor the machine that
//! measured. The way of a run through it:
//!
//! 1. [`store`] keeps records in one SQLite file: [`Store::open`], `Store::begin_run`, one
//!    transaction for each trial. [`Store::resolve`] finds a run by a part of its name.
//! 2. [`analysis`] turns records into views: [`analyse`] for one run,
//!    [`analysis::compare_runs::compare`] for two. A view is plain data and the JSON of
//!    `pgdyno show --json`. [`gate`] reads the conditions of `--fail-if`.
//! 3. `prose` has the sentences that all reports share.
//! 4. [`export`] writes a run as tables for other programs.
//! 5. [`report`] renders a view for terminal, Markdown, HTML and JSON.
//! 6. [`notes`] and [`digest`] keep beside a store what is not measured: what users write on results,
//!    and results in brief. [`lock`] holds open sessions of a store that machines share.
//!
//! ```no_run
//! use pgdyno_results::{Store, analyse, report};
//!
//! let store = Store::open_existing("results.sqlite3")?;
//! let run = store.resolve("latest")?;
//! let view = analyse(&store, &run)?;
//! println!("{}", report::terminal(&view, 100, report::Detail::Full));
//! report::Page::run(&view)?.write("report.html")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod analysis;
pub mod digest;
pub mod export;
pub mod gate;
pub mod lock;
pub mod notes;
mod prose;
pub mod report;
mod side_file;
pub mod store;

pub use analysis::{RunView, analyse};
pub use side_file::SideFileError;
pub use store::{SessionId, Store, StoreError};
