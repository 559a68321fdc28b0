//! Findings: kinds with the figures that they rest on, and how sure they are.
//!
//! This crate makes no sentences: whoever prints a finding chooses its words by [`Finding::kind`].

mod design;
mod repeats;
mod runs;
mod storage;
mod tables;

pub use design::{
    Asked, CheckpointCycle, CountedOut, Course, DesignKind, Difference, Lost, MachineUse,
};
pub use repeats::{Compared, Interval, RepeatsKind, RowTrend, RowsCompared, Trends};
pub use runs::{
    ClientsAtWork, LatencyGap, LatencyOf, PrintedFigure, RunKind, ScriptFigure, StatementSum,
};
use serde::Serialize;
pub use storage::{Protection, StorageKind, Switch};
use strum::Display;
pub use tables::{TableKind, Whole};

/// Weight of a finding.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// A conclusion has less evidence than it seems.
    Warning,
    /// Figures contradict each other, or the measured commits were not durable.
    Serious,
}

/// Certainty of a finding.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// There may be another explanation.
    Possible,
    /// The finding rests on an assumption that its sentence names.
    Likely,
    /// The finding follows from the printed figures.
    Certain,
}

/// Fault that a rule found in a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Name of the rule.
    pub rule: &'static str,
    /// Weight of the finding.
    pub severity: Severity,
    /// Certainty of the finding.
    pub sure: Confidence,
    /// Lines of the report that the finding is about, from 1; at least one.
    pub lines: Vec<usize>,
    /// Text of the first of `lines`.
    pub quoted: String,
    /// Fault and its figures.
    pub kind: Kind,
}

impl Finding {
    /// Returns the line that the finding is about first of all.
    pub fn line(&self) -> usize {
        first(&self.lines)
    }
}

/// Figures that a rule checked and found right.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// Name of the rule.
    pub rule: &'static str,
    /// Lines of the report that were checked, from 1; at least one.
    pub lines: Vec<usize>,
    /// Check and its figures.
    pub kind: Kind,
}

impl Checked {
    /// Returns the line that was checked first of all.
    pub fn line(&self) -> usize {
        first(&self.lines)
    }
}

fn first(lines: &[usize]) -> usize {
    lines.first().copied().unwrap_or(1)
}

/// Comparison that a rule made, with its figures.
///
/// One kind serves both outcomes: in a [`Finding`] the figures are at fault, in a [`Checked`] they
/// are right. Serialized it is the object of figures by name that `--json` has as `computed`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Kind {
    /// Figures of a run that follow from its other figures.
    Run(RunKind),
    /// Figures of a table that follow from its other figures.
    Table(TableKind),
    /// Repeats: how many there are, and how they spread.
    Repeats(RepeatsKind),
    /// Conditions of the measurement: load, length, comparability.
    Design(DesignKind),
    /// Storage: whether commits were durable.
    Storage(StorageKind),
}

macro_rules! into_kind {
    ($($from:ty => $kind:ident),+) => {
        $(impl From<$from> for Kind {
            fn from(kind: $from) -> Self {
                Self::$kind(kind)
            }
        })+
    };
}

into_kind!(
    RunKind => Run,
    TableKind => Table,
    RepeatsKind => Repeats,
    DesignKind => Design,
    StorageKind => Storage
);

/// Load generator.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq, Serialize)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// pgbench, or pgdyno in its place.
    Pgbench,
    /// sysbench.
    Sysbench,
}

/// Line that seems to hold a figure that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotUnderstood {
    /// Number of the line, from 1.
    pub line: usize,
    /// Text of the line.
    pub quoted: String,
    /// Reason why it could not be read.
    pub why: WhyNot,
}

/// Reason why a line could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// Bytes of the document are not UTF-8.
    Garbled,
    /// This number has two readings, a thousand times apart.
    AmbiguousNumber(String),
    /// No recogniser reads the figure.
    Figure,
    /// A percentage of something unknown.
    Percentage,
}
