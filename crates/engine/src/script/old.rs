//! The language of pgbench up to 9.5: every line is a command, and `\setrandom` draws.

use super::Script;
use super::error::ScriptError;
use super::parser::Parser;

/// Words that SQL commands of scripts begin with.
const BEGINNINGS: [&str; 22] = [
    "abort",
    "analyze",
    "begin",
    "call",
    "checkpoint",
    "commit",
    "copy",
    "create",
    "delete",
    "do",
    "drop",
    "end",
    "execute",
    "insert",
    "lock",
    "rollback",
    "select",
    "set",
    "truncate",
    "update",
    "vacuum",
    "with",
];

impl Script {
    /// Parses `text` in the present language, or in that of pgbench up to 9.5 where it bears its marks: a `\setrandom`,
    /// or several lines that each begin an SQL command and have no semicolon. The note says so.
    ///
    /// # Errors
    /// As [`Script::parse`].
    pub fn parse_auto(name: &str, text: &str) -> Result<(Self, Option<String>), ScriptError> {
        let Some(mark) = mark(text) else { return Self::parse(name, text).map(|script| (script, None)) };
        let note = format!(
            "{name} is read in the language of pgbench up to 9.5, where every line is a command: {mark}"
        );
        Self::parse_old(name, text).map(|script| (script, Some(note)))
    }

    /// Parses `text` in the language of pgbench up to 9.5.
    ///
    /// # Errors
    /// As [`Script::parse`].
    pub fn parse_old(name: &str, text: &str) -> Result<Self, ScriptError> {
        let mut parser = Parser::new(name, text);
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

/// What shows that `text` is in the old language.
fn mark(text: &str) -> Option<&'static str> {
    let lines = text.lines().map(str::trim_ascii).filter(|line| !line.is_empty() && !line.starts_with("--"));
    let mut sql = 0;
    let mut all_begin = true;
    for line in lines {
        if let Some(meta) = line.strip_prefix('\\') {
            let name = meta.split_ascii_whitespace().next().unwrap_or_default();
            if name.eq_ignore_ascii_case("setrandom") {
                return Some("it has \\setrandom");
            }
            continue;
        }
        sql += 1;
        let end = line.bytes().position(|b| !b.is_ascii_alphabetic()).unwrap_or(line.len());
        let first = line[..end].to_ascii_lowercase();
        all_begin &= BEGINNINGS.contains(&first.as_str()) && !line.contains(';');
    }
    (sql > 1 && all_begin).then_some("its lines are commands without semicolons")
}
