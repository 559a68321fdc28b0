//! pgbench's script language: SQL commands and meta commands, parsed once into what a client executes.
//!
//! SQL commands end at a semicolon outside quotes, comments and parentheses, or where a meta command begins; meta
//! commands (`\set`, `\sleep`) end at the newline, unless a backslash stands before it.

mod error;
mod eval;
mod expr;
mod split;
mod token;
mod value;

use std::time::Duration;

pub use error::{EvalError, ScriptError};
pub use eval::Scope;
pub use expr::{BinaryOp, Expr, Function, UnaryOp};
pub use value::Value;

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
    Sql(Vec<Piece>),
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
        while let Some(part) = split::next(place, &mut at)? {
            let (begin, end) = match part {
                Part::Sql(begin, end) | Part::Meta(begin, end) => (begin, end),
            };
            let op = match part {
                Part::Sql(..) => Op::Sql(script.pieces(&text[begin..end])),
                Part::Meta(..) => script.meta(place, begin, end)?,
            };
            let text = fold(&text[begin..end]);
            script.commands.push(Command { line: place.line(begin), text, op });
        }
        if script.commands.is_empty() {
            return Err(place.error(0, "", "the script holds no command"));
        }
        Ok(script)
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

    /// Parses the meta command that begins with the backslash at `begin`.
    fn meta(&mut self, place: Place<'_>, begin: usize, end: usize) -> Result<Op, ScriptError> {
        let line = &place.text[begin..end];
        let name_end = line.find(char::is_whitespace).unwrap_or(line.len());
        let name = &line[1..name_end];
        let mut tokens = token::Tokens::new(place, begin + name_end, end, name);
        match name {
            "set" => {
                let (at, variable) = tokens.variable_name()?;
                if token::name_length(variable) != variable.len() {
                    return Err(place
                        .error(at, name, format!("`{variable}` is no variable name"))
                        .with_help(
                            "a name is made of letters, digits and underscores, and begins with no digit",
                        ));
                }
                let variable = self.slot(variable);
                let expression = expr::parse(&mut tokens, &mut |name| self.slot(name))?;
                Ok(Op::Set { variable, expression })
            }
            "sleep" => {
                let (amount, unit) = tokens.sleep(&mut |name| self.slot(name))?;
                Ok(Op::Sleep { amount, unit })
            }
            "gset" | "aset" | "if" | "elif" | "else" | "endif" | "shell" | "setshell" | "startpipeline"
            | "syncpipeline" | "endpipeline" | "setrandom" | ";" => Err(place
                .error(begin, "", format!("`\\{name}` is not supported yet"))
                .with_help("supported are \\set and \\sleep")),
            _ => Err(place
                .error(begin, "", format!("there is no meta command `\\{name}`"))
                .with_help("supported are \\set and \\sleep")),
        }
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
