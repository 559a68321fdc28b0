//! pgbench's script language, parsed once into commands.
//!
//! An SQL command ends at a semicolon outside quotes, comments and parentheses, or where a meta
//! command begins. A meta command (`\set`, `\sleep`, …) ends at the newline, unless a backslash
//! precedes it. In the language of pgbench up to 9.5 every line is a command:
//! [`Script::parse_auto`] recognises it by `\setrandom`.
//!
//! [`Script::parse`] cuts the text into commands (`split`), reads the words of meta commands
//! (`token`, `meta`) and their expressions (`expr_parser`). [`Expr::eval`] evaluates an expression
//! in a [`Scope`].

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
pub use command::{Command, Op, Piece, Script, ScriptSource, Store, WeightedScript};
pub(crate) use conditions::{BranchTargets, branch_targets};
pub use error::{EvalError, ScriptError};
pub use eval::Scope;
pub use expr::{BinaryOp, Expr, Function, UnaryOp};
use parser::Parser;
pub use slot::Slot;
use split::{Replacement, ScriptPart};
pub use value::{Value, VariableValue};

impl Script {
    /// Parses `text`; errors and results call the script `name`.
    ///
    /// ```
    /// use pgdyno_engine::script::{Op, Script};
    ///
    /// let script = Script::parse("two.sql", "\\set id random(1, 10)\nSELECT :id;")?;
    /// assert_eq!(script.variables, ["id"]);
    /// assert!(matches!(script.commands[1].op, Op::Sql { .. }));
    ///
    /// let error = Script::parse("bad.sql", "SELECT 1;\n\\sett x 1").unwrap_err();
    /// assert_eq!((error.line, &*error.command), (2, "sett"));
    /// # Ok::<(), pgdyno_engine::script::ScriptError>(())
    /// ```
    ///
    /// # Errors
    /// A meta command that is unknown or malformed, an expression that cannot be parsed, or a
    /// script without commands. The error has the line and column.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        let mut parser = Parser::new(name, text);
        let mut at = 0;
        while let Some(part) = split::next(text.as_bytes(), &mut at) {
            match part {
                ScriptPart::Sql { begin, end, is_ended, replacements } => {
                    let mut sql = String::with_capacity(end - begin);
                    let mut copied = begin;
                    for Replacement { range, with } in replacements {
                        sql.push_str(&text[copied..range.start]);
                        sql.push_str(with);
                        copied = range.end;
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
