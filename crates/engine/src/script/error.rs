//! Errors of scripts and expressions.

use std::fmt;

use pgdyno_model::{Advice, FailureKind};
use thiserror::Error;

use super::slot::Slot;
use crate::digits::six_decimals;
use crate::random::DrawError;

/// A script's name and text, for the place of an error.
#[derive(Clone, Copy)]
pub(super) struct SourceText<'a> {
    pub(super) script: &'a str,
    pub(super) text: &'a str,
}

impl SourceText<'_> {
    /// Returns the line (1-based) that holds byte `at`.
    pub(super) fn line(self, at: usize) -> u32 {
        let newlines = self.text[..at].bytes().filter(|&b| b == b'\n').count();
        u32::try_from(newlines).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// Returns the offset of line `line` (1-based).
    pub(super) fn line_begin(self, line: u32) -> usize {
        let before = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
        self.text.split_inclusive('\n').take(before).map(str::len).sum()
    }

    /// Creates an error at byte `at`, in meta command `command`.
    ///
    /// An empty `command` means none, or that the command itself is wrong.
    pub(super) fn error(self, at: usize, command: &str, what: impl Into<String>) -> ScriptError {
        let begin = self.text[..at].rfind('\n').map_or(0, |n| n + 1);
        let end = self.text[at..].find('\n').map_or(self.text.len(), |n| at + n);
        let column = self.text[begin..at].chars().count();
        ScriptError {
            script: self.script.into(),
            line: self.line(at),
            column: u32::try_from(column).unwrap_or(u32::MAX).saturating_add(1),
            command: command.into(),
            phrase: "".into(),
            what: what.into().into(),
            source_line: self.text[begin..end].trim_end().into(),
            is_of_whole_script: false,
            help: None,
        }
    }
}

/// A script that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct ScriptError {
    /// Script's name.
    pub script: Box<str>,
    /// Line (1-based).
    pub line: u32,
    /// Column in characters (1-based).
    pub column: u32,
    /// Meta command with the error; empty if none.
    pub command: Box<str>,
    /// pgbench's short message; empty where it has none.
    pub phrase: Box<str>,
    /// Longer message; may be empty.
    pub what: Box<str>,
    /// Text of the line.
    pub source_line: Box<str>,
    /// Whether the message has no place: pgbench names none.
    is_of_whole_script: bool,
    help: Option<Box<str>>,
}

impl ScriptError {
    /// Leaves the place out of the message.
    pub(super) fn of_whole_script(mut self) -> Self {
        self.is_of_whole_script = true;
        self
    }

    pub(super) fn phrased(mut self, phrase: impl Into<String>) -> Self {
        self.phrase = phrase.into().into();
        self
    }

    pub(super) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into().into());
        self
    }
}

impl Advice for ScriptError {
    fn help(&self) -> Option<String> {
        self.help.as_deref().map(str::to_owned)
    }

    fn kind(&self) -> FailureKind {
        FailureKind::Input
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_of_whole_script {
            write!(f, "{}:{}: ", self.script, self.line)?;
        }
        let first = if self.phrase.is_empty() { &self.what } else { &self.phrase };
        write!(f, "{first}")?;
        if !self.command.is_empty() {
            write!(f, " in command \"{}\"", self.command)?;
        }
        if !self.phrase.is_empty() && !self.what.is_empty() {
            write!(f, ": {}", self.what)?;
        }
        if !self.source_line.is_empty() && !self.is_of_whole_script {
            write!(f, "\n  {}\n  ", self.source_line)?;
            let column = usize::try_from(self.column).unwrap_or(1);
            for c in self.source_line.chars().take(column - 1) {
                // A tab stays one, so that the caret stands under what it points at.
                write!(f, "{}", if c == '\t' { '\t' } else { ' ' })?;
            }
            write!(f, "^ error found here")?;
        }
        Ok(())
    }
}

/// Why an expression has no value, worded as pgbench words it.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[allow(missing_docs)]
pub enum EvalError {
    #[error("division by zero")]
    DivisionByZero,
    /// The operation, with a space in front.
    #[error("bigint{0} out of range")]
    IntOverflow(&'static str),
    #[error("double to int overflow for {}", six_decimals(*.0))]
    DoubleToInt(f64),
    #[error("cannot coerce {from} to {to}")]
    Coerce { from: &'static str, to: &'static str },
    #[error("undefined variable")]
    Undefined(Slot),
    #[error("malformed variable")]
    Malformed(Slot),
    #[error(transparent)]
    Draw(DrawError),
    #[error("permute size parameter must be greater than zero")]
    PermuteSize(i64),
    #[error("too many function arguments, maximum is {0}")]
    TooManyArguments(usize),
}

// Evaluation returns its errors boxed.
impl From<DrawError> for Box<EvalError> {
    fn from(error: DrawError) -> Self {
        Self::new(EvalError::Draw(error))
    }
}
