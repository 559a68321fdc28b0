//! The language of pgbench up to 9.5: every line is a command, and `\setrandom` draws.

use super::error::ScriptError;
use super::parser::Parser;
use super::{Script, ScriptSource};

impl Script {
    /// Parses `text` in the current language, or in that of pgbench up to 9.5 if it has
    /// `\setrandom`.
    ///
    /// Returns a note for the user in the second case.
    ///
    /// # Errors
    /// As [`Script::parse`].
    pub fn parse_auto(name: &str, text: &str) -> Result<(Self, Option<String>), ScriptError> {
        match Self::parse(name, text) {
            Err(error) if error.command.eq_ignore_ascii_case("setrandom") => {
                let note = format!(
                    "{name} is read in the language of pgbench up to 9.5, where every line is a \
                     command: it has \\setrandom"
                );
                Self::parse_old(name, text).map(|script| (script, Some(note)))
            }
            parsed => parsed.map(|script| (script, None)),
        }
    }

    /// Parses `source` in its language.
    ///
    /// # Errors
    /// As [`Script::parse`].
    pub fn from_source(name: &str, source: &ScriptSource) -> Result<Self, ScriptError> {
        match source.is_old {
            true => Self::parse_old(name, &source.text),
            false => Self::parse(name, &source.text),
        }
    }

    /// Parses `text` in the language of pgbench up to 9.5.
    ///
    /// # Errors
    /// As [`Script::parse`].
    pub fn parse_old(name: &str, text: &str) -> Result<Self, ScriptError> {
        let mut parser = Parser::new(name, text);
        parser.script.source.is_old = true;
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let trimmed = line.trim_ascii();
            let begin = at + (line.len() - line.trim_ascii_start().len());
            at += line.len();
            if trimmed.starts_with('\\') {
                parser.push_meta(begin, begin + trimmed.len(), true)?;
            } else if !trimmed.is_empty() && !trimmed.starts_with("--") {
                let sql = trimmed.trim_end_matches([';', ' ', '\t']);
                if !sql.is_empty() {
                    parser.push_sql(begin, sql, false);
                }
            }
        }
        parser.finish()
    }
}
