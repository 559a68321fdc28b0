//! Audits benchmark reports that others wrote: which figures they hold, whether these agree, and
//! what they cannot show.
//!
//! This crate is pure: bytes in, an [`Audit`] out. A report passes four stations:
//!
//! 1. `document` reads it as lines, from text, Markdown or HTML;
//! 2. `recognise` finds figures in the lines: reports of pgbench and sysbench, tables, settings;
//! 3. `rules` judge the figures, each with a tolerance that comes from the printed digits;
//! 4. [`Audit::from_bytes`] returns findings, checks that held, and lines that were not understood.
//!
//! A finding is a [`Kind`] with its figures; the crate that prints it makes the sentence.
//!
//! Nothing is concluded from a figure that was not recognised. [`ImportedRun`] is how a store keeps
//! the figures.
//!
//! ```
//! use pgdyno_audit::{Audit, Severity};
//!
//! let report = "transaction type: <builtin: TPC-B (sort of)>\n\
//!               number of clients: 10\n\
//!               number of transactions actually processed: 10000/10000\n\
//!               latency average = 50.000 ms\n\
//!               tps = 900.000000 (without initial connection time)\n";
//! let audit = Audit::from_bytes("report.txt", report.as_bytes()).expect("it is text");
//!
//! // Ten clients at 50 ms make 200 transactions a second, not 900.
//! assert!(audit.findings.iter().any(|f| f.severity == Severity::Serious));
//! ```
//!
//! # Adding a rule
//!
//! 1. Add an `AuditRule` to the `RULES` of the file in `src/rules/` that it belongs to, with a
//!    function that looks at the evidence and reports to `Verdicts`. Nothing else has to be
//!    registered.
//!    A new file needs its `mod` line and its line in the list of `src/rules/mod.rs`.
//! 2. A fault of a new sort is a new [`Kind`] in `src/finding/`, and a sentence in
//!    `report/src/prose/finding/`.
//! 3. Add a case to `tests/it/rules.rs`: a report that the rule finds fault with, and one that it
//!    does not.
//! 4. Add the rule's row to docs/audit.md: its tolerance, and its source.
//!
//! A rule that needs a figure nobody recognises yet comes with a recogniser in `src/recognise/`.

mod audit;
mod document;
mod figure;
mod finding;
mod import;
mod recognise;
mod rules;
mod words;

pub use audit::Audit;
pub use figure::Figure;
pub use finding::{
    Asked, Checked, CheckpointCycle, ClientsAtWork, Compared, Confidence, CountedOut, Course,
    DesignKind, Difference, Finding, Interval, Kind, LatencyGap, LatencyOf, Lost, MachineUse,
    NotUnderstood, PrintedFigure, Program, Protection, RepeatsKind, RowTrend, RowsCompared,
    RunKind, ScriptFigure, Severity, StatementSum, StorageKind, Switch, TableKind, Trends, Whole,
    WhyNot,
};
pub use import::{ImportedRun, Provenance};
pub use recognise::{
    CpuLine, DeviceLine, FsyncLine, LoadKind, Meaning, PgbenchRun, Progress, Recognised, Row,
    Script, Setting, Statement, StorageFact, StorageWhat, SysbenchRun, Table,
};
pub use rules::rule_names;
