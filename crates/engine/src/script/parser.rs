//! Collecting a script's commands while its text is parsed.
//!
//! Call [`Parser::push_sql`] and [`Parser::push_meta`] for the commands in order, then
//! [`Parser::finish`]. The time is linear in the length of the text.

use std::collections::HashMap;

use super::error::{ScriptError, SourceText};
use super::{Command, Op, Piece, Script, ScriptSource, Slot, characters, conditions};

/// Longest summary of an SQL command (bytes).
const MAX_SUMMARY: usize = 127;

/// A script that is being parsed.
pub(super) struct Parser<'a> {
    pub(super) place: SourceText<'a>,
    pub(super) script: Script,
    /// Slots of the script's variables by name.
    slots: HashMap<String, Slot>,
    /// Offset in the text, and the line (1-based) that holds it.
    counted: (usize, u32),
}

impl<'a> Parser<'a> {
    pub(super) fn new(name: &'a str, text: &'a str) -> Self {
        Self {
            place: SourceText { script: name, text },
            script: Script {
                name: name.to_owned(),
                commands: Vec::new(),
                variables: Vec::new(),
                source: ScriptSource { text: text.into(), is_old: false },
            },
            slots: HashMap::new(),
            counted: (0, 1),
        }
    }

    /// Returns the line (1-based) that holds byte `at`. Calls must have ascending offsets.
    pub(super) fn line(&mut self, at: usize) -> u32 {
        let (from, line) = self.counted;
        let newlines =
            self.place.text.as_bytes()[from..at].iter().filter(|&&byte| byte == b'\n').count();
        self.counted = (at, line.saturating_add(u32::try_from(newlines).unwrap_or(u32::MAX)));
        self.counted.1
    }

    /// Adds the SQL command `sql`, which begins at byte `begin` of the text.
    ///
    /// `is_ended` says whether the last byte is the semicolon that ends the command. The semicolon
    /// is sent, as in pgbench, but is no part of the command's text.
    pub(super) fn push_sql(&mut self, begin: usize, sql: &str, is_ended: bool) {
        let queries = 1 + sql[..sql.len() - usize::from(is_ended)].matches(';').count();
        let pieces = self.pieces(sql);
        let text = fold(if is_ended { &sql[..sql.len() - 1] } else { sql });
        let first_line = sql.split(['\n', '\r']).next().unwrap_or_default();
        let mut cut = first_line.len().min(MAX_SUMMARY);
        while !first_line.is_char_boundary(cut) {
            cut -= 1;
        }
        let summary = first_line[..cut].to_owned();
        let op = Op::Sql { pieces, store: None, may_be_several: queries > 1 };
        let command = Command { line: self.line(begin), text, summary, op };
        self.script.commands.push(command);
    }

    /// Returns the script, if it can be run.
    pub(super) fn finish(self) -> Result<Script, ScriptError> {
        let Self { place, script, .. } = self;
        if script.commands.is_empty() {
            let phrase = format!("empty command list for script \"{}\"", script.name);
            return Err(place.error(0, "", "").phrased(phrase).of_whole_script());
        }
        conditions::check(&script, place)?;
        Ok(script)
    }

    /// Returns the slot of variable `name`; a new variable gets one.
    pub(super) fn slot(&mut self, name: &str) -> Slot {
        if let Some(slot) = self.slots.get(name) {
            return *slot;
        }
        // A script of more than 2³² variables would be larger than 4 GB.
        let slot = Slot(u32::try_from(self.script.variables.len()).unwrap_or(u32::MAX));
        self.script.variables.push(name.to_owned());
        self.slots.insert(name.to_owned(), slot);
        slot
    }

    /// Splits SQL at its variables, inside quotes and comments too, as pgbench does.
    fn pieces(&mut self, sql: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut text = 0;
        let mut at = 0;
        while let Some(colon) = sql[at..].find(':').map(|n| at + n) {
            let length = characters::name_length(&sql[colon + 1..]);
            if length == 0 {
                // The colons of `::type` begin no variable.
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

/// Returns `text` with each run of white space folded to one space.
pub(super) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
}
