//! What a parsed script consists of.

use std::sync::Arc;
use std::time::Duration;

use super::expr::Expr;
use super::slot::Slot;

/// A parsed script.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Its name: a built-in one, or its file.
    pub name: String,
    /// What it does, in order; at least one command.
    pub commands: Vec<Command>,
    /// The variables it names; [`Slot`]s point here.
    pub variables: Vec<String>,
}

/// One command of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// The line it begins on (1-based).
    pub line: u32,
    /// As the script has it, white space folded.
    pub text: String,
    /// As reports show it: the first line of an SQL command, cut where pgbench cuts it, and the
    /// whole of a meta command.
    pub summary: String,
    /// What it does.
    pub op: Op,
}

/// What a command does.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Sends SQL and awaits its result.
    Sql {
        /// The text, cut at its variables.
        pieces: Vec<Piece>,
        /// `\gset`, `\aset`: what becomes of the result.
        store: Option<Store>,
        /// Whether it may hold several queries, combined by `\;`.
        may_be_several: bool,
    },
    /// `\set`: evaluates an expression.
    Set {
        /// The variable that takes the result; one whose name is none ends the client.
        variable: Slot,
        /// The expression.
        expression: Expr,
    },
    /// `\sleep`: waits.
    Sleep {
        /// How many units: an integer, or a variable whose text begins with one.
        amount: Expr,
        /// The unit.
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
    /// `\shell`: runs a command line and waits for its end.
    Shell(Vec<Piece>),
    /// `\setshell`: the same, and a variable takes the integer that it writes.
    SetShell {
        /// The variable; one whose name is none ends the client.
        variable: Slot,
        /// The command line.
        command: Vec<Piece>,
    },
    /// `\startpipeline`: from here on statements are sent without waiting for replies.
    StartPipeline,
    /// `\syncpipeline`: an implicit transaction ends here.
    SyncPipeline,
    /// `\endpipeline`: waits for all replies.
    EndPipeline,
}

impl Op {
    /// Whether it is an SQL command.
    #[must_use]
    pub fn is_sql(&self) -> bool {
        matches!(self, Self::Sql { .. })
    }

    /// Variables in an SQL command, each as often as it stands there (count); 0 for meta commands.
    #[must_use]
    pub fn parameters(&self) -> usize {
        match self {
            Self::Sql { pieces, .. } => {
                pieces.iter().filter(|p| matches!(p, Piece::Variable(_))).count()
            }
            _ => 0,
        }
    }

    /// `sql`, or the meta command's name.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Sql { .. } => "sql",
            Self::Set { .. } => "set",
            Self::Sleep { .. } => "sleep",
            Self::If(_) => "if",
            Self::Elif(_) => "elif",
            Self::Else => "else",
            Self::Endif => "endif",
            Self::Shell(_) => "shell",
            Self::SetShell { .. } => "setshell",
            Self::StartPipeline => "startpipeline",
            Self::SyncPipeline => "syncpipeline",
            Self::EndPipeline => "endpipeline",
        }
    }
}

/// Which variables take a result's columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Stands before every column's name.
    pub prefix: String,
    /// `\aset`: of all queries of the command, and one without a row changes nothing. Else only the
    /// last query counts, and it must give one row.
    pub each: bool,
}

/// A piece of an SQL command.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Text to be sent as it is.
    Text(String),
    /// `:name`.
    Variable(Slot),
}

/// A script and how often it is chosen.
#[derive(Clone, Debug)]
pub struct WeightedScript {
    /// The script.
    pub script: Arc<Script>,
    /// Its share among the weights of all; 0 means never.
    pub weight: u32,
}
