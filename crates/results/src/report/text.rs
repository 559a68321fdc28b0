//! Plain text for terminals: lines, notes, rows of a description.

use pgdyno_model::printable::{escape_line, escape_text};
use serde::Serialize;

/// Escapes control characters in `text`, and puts it on one line.
///
/// Servers, disks and files supply much of a report's text, and a terminal would obey theirs.
pub fn plain(text: &str) -> String {
    escape_line(text).into_owned()
}

/// Wraps `text` to lines of at most `width` characters, where words allow it.
///
/// Lines after the first begin with `indent`.
pub fn wrap(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in escape_text(text).split_whitespace() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        let used = line.chars().count();
        if line.trim().is_empty() {
            line.push_str(word);
        } else if used + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("{indent}{word}"));
        }
    }
    lines
}

/// How much of a report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The first few notes, and how many more there are.
    Brief,
    /// Everything.
    Full,
}

impl Detail {
    /// Cuts `notes` to the printed ones, with a line for the rest.
    pub(super) fn notes(self, notes: Vec<String>) -> Vec<String> {
        const SHOWN: usize = 5;
        if self == Self::Full || notes.len() <= SHOWN {
            return notes;
        }
        let more = format!("{} more with `--verbose`.", notes.len() - SHOWN);
        notes[..SHOWN].iter().cloned().chain([more]).collect()
    }
}

/// One subject of a description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Description of the subject.
    pub text: String,
    /// Whether only a detailed description shows it.
    pub detail: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_whole_and_lines_short() {
        assert_eq!(wrap("- one two three", 9, "  "), ["- one two", "  three"]);
        assert_eq!(wrap("averyveryverylongword b", 5, ""), ["averyveryverylongword", "b"]);
        assert_eq!(wrap("", 5, ""), [""]);
        assert_eq!(wrap("a\u{1b}[31m red", 80, ""), ["a\\x1b[31m red"]);
    }
}
