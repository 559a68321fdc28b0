//! A line of the view: pieces of text, cut to the terminal's width.

use pgdyno_text::printable::escape_line;
use unicode_width::UnicodeWidthChar;

/// How a piece of a line looks. It repeats what a mark or a word says, and says nothing alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    /// As the terminal's other text.
    Plain,
    /// The most important words.
    Bold,
    /// Labels, and what is still to come.
    Dim,
    /// Done.
    Good,
    /// Failed.
    Bad,
    /// Under way.
    Active,
}

impl Paint {
    /// Returns the parameter of the escape sequence that selects it.
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Good => "32",
            Self::Bad => "31",
            Self::Active => "33",
        }
    }
}

/// Columns and colours of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Most columns of a line.
    pub(crate) width: usize,
    /// Whether lines have colours.
    pub(crate) is_colored: bool,
}

/// A line that fits its terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rendered {
    /// The text with its escape sequences.
    pub(crate) text: String,
    /// Columns that it takes.
    pub(crate) columns: usize,
}

/// A line while it is made.
#[derive(Debug, Default)]
pub(super) struct Line {
    pieces: Vec<(Paint, String)>,
}

impl Line {
    /// Appends text. What a terminal would obey in it is written out.
    pub(super) fn push(&mut self, paint: Paint, text: &str) {
        let text = escape_line(text);
        match self.pieces.last_mut() {
            Some((last, piece)) if *last == paint => piece.push_str(&text),
            _ => self.pieces.push((paint, text.into_owned())),
        }
    }

    /// Appends blanks up to a column.
    pub(super) fn pad(&mut self, column: usize) {
        let blanks = column.saturating_sub(self.columns());
        self.push(Paint::Plain, &" ".repeat(blanks));
    }

    /// Returns the columns that the line takes.
    pub(super) fn columns(&self) -> usize {
        self.pieces.iter().flat_map(|(_, text)| text.chars()).map(columns).sum()
    }

    /// Renders the line; `…` stands for what has no room.
    pub(super) fn render(&self, look: Look) -> Rendered {
        let is_cut = self.columns() > look.width;
        let room = if is_cut { look.width.saturating_sub(1) } else { look.width };
        let (mut used, mut text) = (0, String::new());
        for (paint, piece) in &self.pieces {
            let fits = |c: &char| {
                let end = used + columns(*c);
                // What follows a character without room has none either.
                used = if end <= room { end } else { usize::MAX / 2 };
                end <= room
            };
            let fitting: String = piece.chars().take_while(fits).collect();
            if look.is_colored && *paint != Paint::Plain && !fitting.is_empty() {
                text.push_str(&format!("\x1b[{}m{fitting}\x1b[0m", paint.code()));
            } else {
                text.push_str(&fitting);
            }
        }
        if is_cut {
            text.push('…');
        }
        Rendered { text, columns: self.columns().min(look.width.max(1)) }
    }
}

fn columns(c: char) -> usize {
    c.width().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        let mut line = Line::default();
        line.push(Paint::Good, "done");
        line.push(Paint::Plain, " 日本");
        line
    }

    #[test]
    fn a_line_is_cut_where_a_wide_character_has_no_room() {
        let at = |width| line().render(Look { width, is_colored: false });
        assert_eq!(at(9), Rendered { text: "done 日本".into(), columns: 9 });
        assert_eq!(at(8).text, "done 日…");
        assert_eq!(at(7).text, "done …");
        assert_eq!(at(0).text, "…");
        for width in 1..12 {
            assert!(at(width).columns <= width, "{width}: {:?}", at(width));
        }
    }

    #[test]
    fn colours_end_where_their_piece_ends() {
        let text = line().render(Look { width: 6, is_colored: true }).text;
        assert_eq!(text, "\x1b[32mdone\x1b[0m …");
    }

    #[test]
    fn a_name_gives_the_terminal_no_orders() {
        let mut line = Line::default();
        line.push(Paint::Plain, "a\x1b[2J\n\u{9b}2J\u{202e}");
        let rendered = line.render(Look { width: 80, is_colored: false });
        assert_eq!(rendered.text, "a\\x1b[2J\\n\\x9b2J\\u{202e}");
    }
}
