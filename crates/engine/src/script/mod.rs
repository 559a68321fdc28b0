//! pgbench's script language: SQL commands and meta commands, parsed once into what a client
//! executes.
//!
//! SQL commands end at a semicolon outside quotes, comments and parentheses, or where a meta
//! command begins; meta commands (`\set`, `\sleep`, …) end at the newline, unless a backslash
//! stands before it. In the language of pgbench up to 9.5 every line is a command:
//! [`Script::parse_auto`] knows it when it sees it.

mod characters;
mod command;
mod conditions;
mod error;
mod eval;
mod expr;
mod expr_parser;
mod fold;
mod meta;
mod old;
mod parser;
mod slot;
mod split;
mod token;
mod value;

pub use characters::{is_variable_name, leading_integer};
pub use command::{Command, Op, Piece, Script, Store, WeightedScript};
pub(crate) use conditions::{BranchTargets, branch_targets};
pub use error::{EvalError, ScriptError};
pub use eval::Scope;
pub use expr::{BinaryOp, Expr, Function, UnaryOp};
pub use slot::Slot;
pub use value::{Value, VariableValue};

use parser::Parser;
use split::ScriptPart;

impl Script {
    /// Parses `text`; `name` is what errors and results call it.
    ///
    /// # Errors
    /// A meta command that is unknown or not supported yet, an expression that cannot be parsed, or
    /// a script without any command; with its place.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        let mut parser = Parser::new(name, text);
        let mut at = 0;
        while let Some(part) = split::next(text.as_bytes(), &mut at) {
            match part {
                ScriptPart::Sql { begin, end, is_ended, escapes } => {
                    let mut sql = String::with_capacity(end - begin);
                    let mut copied = begin;
                    for escape in escapes {
                        sql.push_str(&text[copied..escape]);
                        copied = escape + 1;
                    }
                    sql.push_str(&text[copied..end]);
                    parser.push_sql(begin, &sql, is_ended);
                }
                ScriptPart::Meta(begin, end) => parser.push_meta(begin, end, false)?,
            }
        }
        parser.finish()
    }
}

#[cfg(test)]
mod tests;
