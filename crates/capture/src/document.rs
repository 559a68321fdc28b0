//! `captured.json`: figures of the original, and what of it was left out.

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_model::json::Document;
use serde::{Deserialize, Serialize};

use crate::activity::{DatabaseCounts, Sessions, StatementCounts};
use crate::catalog::Table;

/// Reason for which a table was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Obstacle {
    /// It is partitioned, a partition or a child of another table.
    Inheritance,
    /// It is temporary, or has policies by row.
    RowSecurity,
    /// The role may not read its statistics.
    NoRight,
    /// A column has a type that the database defines, is generated, or cannot be filled.
    Column {
        /// Name of the column.
        column: String,
        /// Type of the column.
        r#type: String,
    },
    /// A name in it needs quotes.
    Quotes,
}

/// Reason for which a statement was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// It neither reads nor changes rows: such statements keep their values in the statistics.
    Utility,
    /// It ran less than the statements that were asked for.
    Beyond,
    /// The statistics hold its text with values.
    HoldsValues,
    /// The role may not see its text.
    NoRight,
    /// The text is not PostgreSQL's grammar, as with `extract($1 FROM a)`.
    NotUnderstood,
    /// It names a relation that is not captured.
    Relation {
        /// Name of the relation.
        name: String,
    },
    /// It calls a function of the database.
    Function {
        /// Name of the function.
        name: String,
    },
    /// The values of a parameter cannot be known.
    Parameter {
        /// Number of the parameter.
        number: u32,
    },
    /// The server does not accept the rewritten statement.
    Refused {
        /// SQLSTATE.
        sqlstate: String,
    },
}

/// Part of a table that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Part {
    /// Unique index whose columns cannot be filled without repetition.
    UniqueIndex,
    /// Index with a predicate or expressions.
    IndexExpression,
    /// Foreign key whose parent is left out, or whose columns are not whole numbers of one key.
    ForeignKey,
    /// CHECK, exclusion constraint or trigger.
    Check,
    /// Default that is no constant.
    Default,
    /// Statistics: the table was not analyzed since it had rows.
    Statistics,
    /// Unlike frequencies of more values than a choice has.
    Frequencies,
}

/// Part of a table that was left out, with its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omission {
    /// Table.
    pub table: String,
    /// Name of the index, constraint or column.
    pub name: String,
    /// Part.
    pub part: Part,
}

/// Statement that is captured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CapturedStatement {
    /// Number in the comment of its script.
    pub number: usize,
    /// Text, without comments.
    pub text: String,
    /// Parameters whose values are a guess by their types.
    pub guessed: BTreeSet<u32>,
    /// Counts of the original.
    pub counts: StatementCounts,
}

/// Statement that is left out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LeftOutStatement {
    /// Text without comments; none where it may hold values.
    pub text: Option<String>,
    /// Reason.
    pub reason: Reason,
    /// Counts of the original.
    pub counts: StatementCounts,
}

/// Table that is captured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CapturedTable {
    /// Name.
    pub name: String,
    /// Rows (count).
    pub rows: u64,
    /// Size with indexes (bytes).
    pub bytes: u64,
}

impl From<&Table> for CapturedTable {
    fn from(table: &Table) -> Self {
        Self { name: table.name.clone(), rows: table.rows, bytes: table.bytes }
    }
}

/// Table that is left out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LeftOutTable {
    /// Name.
    pub name: String,
    /// Reason.
    pub obstacle: Obstacle,
}

/// The whole document.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Captured {
    /// Version of the server.
    pub server_version: String,
    /// Time of the capture (RFC 3339).
    pub captured_at: String,
    /// Schema of the tables.
    pub table_schema: String,
    /// Length of the stretch that the counts are of (s).
    pub seconds: f64,
    /// Counts of the database.
    pub database: DatabaseCounts,
    /// Transaction blocks that were committed (count).
    pub blocks: u64,
    /// Sessions, where they were watched.
    pub sessions: Sessions,
    /// Counts of all statements, with those that are left out.
    pub total: StatementCounts,
    /// Times that the server forgot statements to make room (count).
    pub forgotten: u64,
    /// Settings of the server that the counts depend on.
    pub settings: BTreeMap<String, String>,
    /// Tables.
    pub tables: Vec<CapturedTable>,
    /// Statements, those with the most time first.
    pub statements: Vec<CapturedStatement>,
    /// Statements that are left out, those with the most time first.
    pub statements_left_out: Vec<LeftOutStatement>,
    /// Tables that are left out.
    pub tables_left_out: Vec<LeftOutTable>,
    /// Parts of captured tables that are left out.
    pub omissions: Vec<Omission>,
}

impl Document for Captured {
    const SCHEMA: &'static str = "pgdyno.captured/1";
}

impl Captured {
    /// Name of the document in its folder.
    pub const FILE: &str = "captured.json";

    /// Returns the transactions of the original (1/s).
    pub fn commits_per_s(&self) -> f64 {
        self.database.commits as f64 / self.seconds.max(0.001)
    }
}
