//! A parsed script: its commands, and the variables that they name.

use std::sync::Arc;
use std::time::Duration;

use pgdyno_model::Pauses;
use strum::IntoStaticStr;

use super::expr::Expr;
use super::slot::Slot;

/// Text of a script, and the language that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptSource {
    /// Text.
    pub text: Arc<str>,
    /// Whether it is in the language of pgbench up to 9.5.
    pub is_old: bool,
}

/// A parsed script.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Script's name: a built-in one, or the file's.
    pub name: String,
    /// Commands, in order; at least one.
    pub commands: Vec<Command>,
    /// Names of the variables; a [`Slot`] is an index here.
    pub variables: Vec<String>,
    /// Text that the script was parsed from.
    pub source: ScriptSource,
}

impl Script {
    /// Returns the tables that `\copyfrom` names, with the lines.
    pub fn copied_tables(&self) -> impl Iterator<Item = (u32, &str)> {
        self.commands.iter().filter_map(|command| match &command.op {
            Op::CopyFrom { table, .. } => Some((command.line, table.as_str())),
            _ => None,
        })
    }
}

/// One command of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// Line that the command begins on (1-based).
    pub line: u32,
    /// Text as the script has it, white space folded.
    pub text: String,
    /// Text as reports show it: a whole meta command, or the first line of an SQL command, cut at
    /// pgbench's length.
    pub summary: String,
    /// The command's operation.
    pub op: Op,
}

/// Operation of a command.
#[derive(Clone, Debug, PartialEq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Op {
    /// SQL: sends it and waits for the result.
    Sql {
        /// Text, split at its variables.
        pieces: Vec<Piece>,
        /// Variables that take the result: `\gset` or `\aset`.
        store: Option<Store>,
        /// Whether the text may hold several queries, combined by `\;`.
        may_be_several: bool,
    },
    /// `\set`: evaluates an expression.
    Set {
        /// Variable that takes the value. A name that cannot be assigned ends the client.
        variable: Slot,
        /// Expression that is evaluated.
        expression: Expr,
    },
    /// `\sleep`: waits.
    Sleep {
        /// Number of units: an integer, or a variable whose text begins with one.
        amount: Expr,
        /// Length of a unit.
        unit: Duration,
    },
    /// `\if`.
    If(Expr),
    /// `\elif`.
    Elif(Expr),
    /// `\else`.
    Else,
    /// `\endif`.
    Endif,
    /// `\shell`: runs a command line and waits until it ends.
    Shell(Vec<Piece>),
    /// `\setshell`: runs a command line and stores the integer that it writes.
    SetShell {
        /// Variable that takes the integer. A name that cannot be assigned ends the client.
        variable: Slot,
        /// Command line.
        command: Vec<Piece>,
    },
    /// `\copyfrom`: makes rows and adds them to a table by one COPY.
    CopyFrom {
        /// Name of the table.
        table: String,
        /// Number of rows.
        rows: Expr,
    },
    /// `\startpipeline`: sends the following statements without waiting for replies.
    StartPipeline,
    /// `\syncpipeline`: ends an implicit transaction.
    SyncPipeline,
    /// `\endpipeline`: ends the pipeline and waits for all replies.
    EndPipeline,
}

impl Op {
    /// Returns whether it is sent to the server: an SQL command, or a `\copyfrom`.
    pub fn is_statement(&self) -> bool {
        matches!(self, Self::Sql { .. } | Self::CopyFrom { .. })
    }

    /// Returns the number of variables in an SQL command, repeated ones included; 0 for meta
    /// commands.
    pub fn parameters(&self) -> usize {
        match self {
            Self::Sql { pieces, .. } => {
                pieces.iter().filter(|p| matches!(p, Piece::Variable(_))).count()
            }
            _ => 0,
        }
    }

    /// Returns `sql`, or the meta command's name.
    pub fn kind(&self) -> &'static str {
        self.into()
    }
}

/// Variables that take a result's columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Prefix of each variable's name; the column's name follows.
    pub prefix: String,
    /// `\aset`: stores the results of all queries of the command, and none of queries without rows.
    /// Else `\gset`: stores the last query's result, which must be one row.
    pub each: bool,
}

/// A piece of an SQL command.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Text that is sent as it is.
    Text(String),
    /// A variable, `:name`.
    Variable(Slot),
}

/// A script, how often it is chosen, and how long clients pause for it.
#[derive(Clone, Debug)]
pub struct WeightedScript {
    /// Script.
    pub script: Arc<Script>,
    /// Weight among all scripts; 0 means never.
    pub weight: u32,
    /// Pauses of a client around its transactions.
    pub pauses: Pauses,
}

impl WeightedScript {
    /// Creates a script without pauses.
    pub fn new(script: Arc<Script>, weight: u32) -> Self {
        Self { script, weight, pauses: Pauses::default() }
    }
}
