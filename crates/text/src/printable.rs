//! Text from elsewhere, made fit to be shown.
//!
//! Servers, markers, file names and stores word much of what pgdyno prints. A terminal obeys
//! control characters in it, and bidirectional overrides show another text than is there. Whatever
//! goes to a terminal or a text stream passes [`escape_text`]; what is put into a line of pgdyno's
//! own passes [`escape_line`] first, so that it forges no second line.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether `c` may not be shown as it is: a control character other than newline and tab, a
/// bidirectional override or isolate, or a line separator that is no newline.
pub fn is_hazard(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

/// `text` with every hazard written out, such as `\x1b` or `\u{202e}`; newlines and tabs stay.
///
/// ```
/// # use pgdyno_text::printable::escape_text;
/// assert_eq!(escape_text("a\u{1b}[31m\tb\n"), "a\\x1b[31m\tb\n");
/// ```
pub fn escape_text(text: &str) -> Cow<'_, str> {
    escape(text, is_hazard)
}

/// As [`escape_text`], with newlines and tabs written out too: the result is one line.
///
/// ```
/// # use pgdyno_text::printable::escape_line;
/// assert_eq!(escape_line("a\nerror: b"), "a\\nerror: b");
/// ```
pub fn escape_line(text: &str) -> Cow<'_, str> {
    escape(text, |c| matches!(c, '\n' | '\t') || is_hazard(c))
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if !is_escaped(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) <= 0xff => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_written_out_and_ordinary_text_is_not_touched() {
        let ordinary = "Zürich\t日本語 שלום 👩‍🚀\n";
        assert!(matches!(escape_text(ordinary), Cow::Borrowed(text) if text == ordinary));
        assert_eq!(
            escape_text("\u{1b}]0;x\u{7}\r\u{7f}\u{9b}2J\0"),
            "\\x1b]0;x\\x07\\x0d\\x7f\\x9b2J\\x00"
        );
        assert_eq!(escape_text("a\u{202e}b\u{2066}\u{2028}"), "a\\u{202e}b\\u{2066}\\u{2028}");
    }

    #[test]
    fn a_line_stays_one() {
        assert_eq!(escape_line("x\r\n\terror: y"), "x\\x0d\\n\\terror: y");
        assert_eq!(escape_line("é"), "é");
    }
}
