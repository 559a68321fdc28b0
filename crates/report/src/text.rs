//! Plain text for terminals: lines, notes, rows of a description.

use pgdyno_text::printable::{escape_line, escape_text};
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
    /// The first few notes, and how many more there are. A note takes one line.
    Brief,
    /// Everything.
    Full,
}

impl Detail {
    /// Cuts `notes` to the printed ones of at most `width` columns, with a line for the rest.
    pub(super) fn notes(self, notes: Vec<String>, width: u16) -> Vec<String> {
        const SHOWN: usize = 5;
        let more = notes.len().saturating_sub(SHOWN);
        let mut lines = self.lines(notes, width);
        if self == Self::Full {
            return lines;
        }
        lines.truncate(SHOWN);
        let is_cut = lines.iter().any(|line| line.ends_with('…'));
        lines.extend(match (more, is_cut) {
            (0, false) => None,
            (0, true) => Some("Whole with `--verbose`.".to_owned()),
            (more, _) => Some(format!("{more} more, and all of them whole, with `--verbose`.")),
        });
        lines
    }

    /// Cuts each of `items` to one line of a list that is `width` columns wide.
    pub(super) fn lines(self, items: Vec<String>, width: u16) -> Vec<String> {
        match self {
            Self::Brief => items.iter().map(|item| cut(item, usize::from(width) - 2)).collect(),
            Self::Full => items,
        }
    }
}

/// Cuts `text` to one line of at most `width` characters; `…` stands for the rest.
pub(super) fn cut(text: &str, width: usize) -> String {
    let text = plain(text);
    if text.chars().count() <= width {
        return text;
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// One subject of a description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// Name of the subject.
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

    #[test]
    fn a_cut_line_says_that_it_is_one() {
        assert_eq!(cut("one two", 7), "one two");
        assert_eq!(cut("one two three", 8), "one two…");
        assert_eq!(cut("one two", 5), "one…");
        assert_eq!(cut("a\nb\u{1b}[2J", 80), "a\\nb\\x1b[2J");
    }
}
