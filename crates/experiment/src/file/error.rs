//! Errors of experiment files, with file, line, column, the word and the nearest
//! allowed ones.

use std::ops::Range;

use pgdyno_model::{Advice, FailureKind};
use pgdyno_text::nearest::nearest;
use thiserror::Error;
use toml::Spanned;

use super::source::Source;

/// An experiment file that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum FileError {
    /// A word or value at a place in the file.
    #[error("{shown}:{line}:{column}: {what}\n{excerpt}")]
    InFile {
        /// The file, as the user named it.
        shown: String,
        /// 1-based.
        line: usize,
        /// 1-based, in characters.
        column: usize,
        /// The fault that was found.
        what: String,
        /// The line, and a caret under the word.
        excerpt: String,
        help: Option<String>,
    },
    /// A file that cannot be read, an option that does not fit, or values that are right one by
    /// one, but not together.
    #[error("{what}")]
    Refused {
        /// The file or the option, and the fault that was found.
        what: String,
        help: Option<String>,
    },
}

/// A complaint that does not know its file yet.
#[derive(Debug)]
pub(crate) struct Complaint {
    pub(crate) what: String,
    pub(crate) help: Option<String>,
    /// The bytes of the file that it is about.
    pub(crate) span: Option<Range<usize>>,
}

impl Complaint {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), help: None, span: None }
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Says what it is about.
    pub(crate) fn about(self, subject: &str) -> Self {
        Self { what: format!("{subject}: {}", self.what), ..self }
    }

    pub(crate) fn at(mut self, span: Range<usize>) -> Self {
        self.span.get_or_insert(span);
        self
    }
}

/// Reads what is `given` by `read`, whose complaints get its place in the file.
pub(super) fn read_at<T, U>(
    given: Spanned<T>,
    read: impl FnOnce(T) -> Result<U, Complaint>,
) -> Result<U, Complaint> {
    let span = given.span();
    read(given.into_inner()).map_err(|complaint| complaint.at(span))
}

impl FileError {
    pub(super) fn in_file(source: &Source, error: &toml::de::Error) -> Self {
        let (what, help) = reworded(error.message());
        Self::at_place(source, error.span().unwrap_or(0..0), what, help)
    }

    /// `complaint` about `source`, with its place if it has one.
    pub(super) fn complaint(source: &Source, complaint: Complaint) -> Self {
        let Complaint { what, help, span } = complaint;
        match span {
            Some(span) => Self::at_place(source, span, what, help),
            None => Self::Refused { what: format!("{}: {what}", source.shown), help },
        }
    }

    fn at_place(source: &Source, span: Range<usize>, what: String, help: Option<String>) -> Self {
        let start = span.start.min(source.text.len());
        let end = span.end.min(source.text.len());
        let before = source.text.get(..start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let column = before[line_start..].chars().count() + 1;
        let text = source.text[line_start..].lines().next().unwrap_or_default();
        let marked =
            source.text.get(start..end).unwrap_or_default().lines().next().unwrap_or_default();
        let caret = "^".repeat(marked.chars().count().max(1));
        let gutter = " ".repeat(line.to_string().len());
        let text = without_quoted(text);
        let excerpt = format!("{line} | {text}\n{gutter} | {}{caret}", " ".repeat(column - 1));
        Self::InFile { shown: source.shown.clone(), line, column, what, excerpt, help }
    }

    pub(super) fn in_override(given: &str, message: &str) -> Self {
        let (what, help) = reworded(message);
        Self::of_override(given, &what, help)
    }

    /// Creates the error of the override `given`, shown as `--set` has it.
    pub(super) fn of_override(given: &str, what: &str, help: Option<String>) -> Self {
        Self::Refused { what: format!("--set {given}: {what}"), help }
    }
}

impl Advice for FileError {
    fn help(&self) -> Option<String> {
        match self {
            Self::InFile { help, .. } | Self::Refused { help, .. } => help.clone(),
        }
    }

    fn kind(&self) -> FailureKind {
        FailureKind::Input
    }
}

/// A line of the file for a message: where it names a DSN, what stands between quotes is covered,
/// since a password may.
fn without_quoted(line: &str) -> String {
    if !line.contains("dsn") {
        return line.to_owned();
    }
    let mut quote = None;
    let cover = |c: char| match quote {
        None => {
            quote = Some(c).filter(|c| ['"', '\''].contains(c));
            c
        }
        Some(open) if c == open => {
            quote = None;
            c
        }
        Some(_) => '·',
    };
    line.chars().map(cover).collect()
}

/// serde's words in ours: the word that was found, and the allowed ones, nearest first.
fn reworded(message: &str) -> (String, Option<String>) {
    let message = message.trim();
    for (theirs, ours) in
        [("unknown field ", "unknown key "), ("unknown variant ", "unknown value ")]
    {
        let Some(rest) = message.strip_prefix(theirs) else { continue };
        let words: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
        let Some((found, allowed)) = words.split_first() else { continue };
        if allowed.is_empty() {
            return (format!("{ours}`{found}`"), Some("nothing is allowed here".into()));
        }
        let ordered = nearest(found, allowed);
        let help = match ordered.as_slice() {
            [only] => format!("only `{only}` is allowed here"),
            all => format!("nearest is `{}`; allowed here: {}", all[0], all.join(", ")),
        };
        return (format!("{ours}`{found}`"), Some(help));
    }
    (expected_in_words(message), None)
}

/// Names the type that was expected as people do.
fn expected_in_words(message: &str) -> String {
    const EXPECTED: &str = "expected ";
    let Some((found, wanted)) = message.rsplit_once(EXPECTED) else { return message.to_owned() };
    let wanted = match wanted {
        "a nonzero u32" | "a nonzero u64" => "a whole number from 1",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        other => other,
    };
    format!("{found}{EXPECTED}{wanted}")
}
