//! pgbench's script language: SQL commands and meta commands, parsed once into what a client executes.
//!
//! SQL commands end at a semicolon outside quotes, comments and parentheses, or where a meta command begins; meta
//! commands (`\set`, `\sleep`, …) end at the newline, unless a backslash stands before it. In the language of pgbench
//! up to 9.5 every line is a command: [`Script::parse_auto`] knows it when it sees it.

mod conditions;
mod error;
mod eval;
mod expr;
mod fold;
mod meta;
mod old;
mod split;
mod token;
mod value;

use std::time::Duration;

pub(crate) use conditions::ways;
pub use error::{EvalError, ScriptError};
pub use eval::Scope;
pub use expr::{BinaryOp, Expr, Function, UnaryOp};
pub(crate) use token::name_length;
pub use value::{Content, Value};

use error::Place;
use split::Part;

/// A variable's place in its script's [`Script::variables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(pub u32);

impl Slot {
    /// As an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

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
    },
    /// `\set`: evaluates an expression.
    Set {
        /// The variable that takes the result.
        variable: Slot,
        /// The expression.
        expression: Expr,
    },
    /// `\sleep`: waits.
    Sleep {
        /// How many units: a number or a variable.
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
        /// The variable.
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
    /// `\aset`: of all queries of the command, and one without a row changes nothing. Else only the last query counts,
    /// and it must give one row.
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

impl Script {
    /// Parses `text`; `name` is what errors and results call it.
    ///
    /// # Errors
    /// A meta command that is unknown or not supported yet, an expression that cannot be parsed, or a script without
    /// any command; with its place.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        let place = Place { script: name, text };
        let mut script = Self { name: name.to_owned(), commands: Vec::new(), variables: Vec::new() };
        let mut at = 0;
        while let Some(part) = split::next(place, &mut at) {
            match part {
                Part::Sql(begin, end, escapes) => {
                    let mut sql = text[begin..end].to_owned();
                    for escape in escapes.into_iter().rev().filter(|at| *at < end) {
                        sql.remove(escape - begin);
                    }
                    script.push_sql(place.line(begin), &sql);
                }
                Part::Meta(begin, end) => script.push_meta(place, begin, end, false)?,
            }
        }
        script.checked(place)
    }

    fn push_sql(&mut self, line: u32, sql: &str) {
        let pieces = self.pieces(sql);
        self.commands.push(Command { line, text: fold(sql), op: Op::Sql { pieces, store: None } });
    }

    /// The script, whole, if it can be run.
    fn checked(self, place: Place<'_>) -> Result<Self, ScriptError> {
        if self.commands.is_empty() {
            let phrase = format!("empty command list for script \"{}\"", self.name);
            return Err(place.error(0, "", "the script holds no command").phrased(phrase));
        }
        conditions::check(&self, place)?;
        Ok(self)
    }

    /// The slot of variable `name`, made if it is new.
    fn slot(&mut self, name: &str) -> Slot {
        let index = self.variables.iter().position(|v| v == name).unwrap_or_else(|| {
            self.variables.push(name.to_owned());
            self.variables.len() - 1
        });
        // A script of more than 2³² variables would be larger than 4 GB.
        Slot(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// Splits SQL at its variables, inside quotes and comments too, as pgbench does.
    fn pieces(&mut self, sql: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut text = 0;
        let mut at = 0;
        while let Some(colon) = sql[at..].find(':').map(|n| at + n) {
            let length = token::name_length(&sql[colon + 1..]);
            if length == 0 {
                // Of `::type`, no colon begins a variable.
                at = colon + sql[colon..].bytes().take_while(|&b| b == b':').count();
                continue;
            }
            let end = colon + 1 + length;
            if text < colon {
                pieces.push(Piece::Text(sql[text..colon].to_owned()));
            }
            let slot = self.slot(&sql[colon + 1..end]);
            pieces.push(Piece::Variable(slot));
            text = end;
            at = end;
        }
        if text < sql.len() {
            pieces.push(Piece::Text(sql[text..].to_owned()));
        }
        pieces
    }
}

/// `text` with every run of white space as one space.
fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
}

#[cfg(test)]
mod tests;
