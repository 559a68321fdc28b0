//! The end of a terminal's text, drawn anew in its place.
//!
//! Everything is written at once, between the marks of a synchronised update, and lines that stand
//! there already are passed over: nothing flickers. No mode of the terminal is changed and the
//! cursor stays visible, so that a process that is killed leaves nothing to repair.

use super::line::Rendered;

/// Size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// The lines that stand on the terminal. The cursor is at the beginning of the line below.
#[derive(Debug, Default)]
pub(super) struct Screen {
    lines: Vec<Rendered>,
    size: Option<Size>,
}

impl Screen {
    /// Returns what to write so that `above`, whole lines, scrolls by and `lines` stand below it.
    /// Lines without room at the bottom are left out.
    pub(super) fn draw(&mut self, above: &str, mut lines: Vec<Rendered>, size: Size) -> String {
        lines.truncate(size.rows.saturating_sub(1));
        let is_resized = self.size.is_some_and(|before| before != size);
        if above.is_empty() && self.lines == lines && !is_resized {
            return String::new();
        }
        let mut out = String::from("\x1b[?2026h\r");
        let rows = self.rows(size);
        if rows > 0 {
            out.push_str(&format!("\x1b[{rows}A"));
        }
        if is_resized || !above.is_empty() {
            out.push_str("\x1b[J");
        }
        for line in above.lines() {
            out.push_str(&format!("{line}\r\n"));
        }
        for (n, line) in lines.iter().enumerate() {
            let stands = above.is_empty() && !is_resized && self.lines.get(n) == Some(line);
            if !stands {
                out.push_str(&line.text);
                out.push_str("\x1b[K");
            }
            out.push_str("\r\n");
        }
        out.push_str("\x1b[J\x1b[?2026l");
        (self.lines, self.size) = (lines, Some(size));
        out
    }

    /// Returns the rows that the lines take in a terminal that may have become narrower since:
    /// most terminals wrap lines then.
    fn rows(&self, size: Size) -> usize {
        self.lines.iter().map(|line| line.columns.div_ceil(size.columns.max(1)).max(1)).sum()
    }
}

#[cfg(test)]
mod tests {
    use avt::Terminal;

    use super::*;

    fn lines(texts: &[&str]) -> Vec<Rendered> {
        let line = |text: &&str| Rendered { text: (*text).into(), columns: text.chars().count() };
        texts.iter().map(line).collect()
    }

    fn rows(terminal: &Terminal) -> Vec<String> {
        let mut rows: Vec<String> =
            terminal.screen().text().iter().map(|row| row.trim_end().to_owned()).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    const SIZE: Size = Size { columns: 20, rows: 5 };

    fn terminal() -> Terminal {
        Terminal::new(SIZE.columns, SIZE.rows).unwrap()
    }

    #[test]
    fn lines_scroll_by_above_and_the_view_takes_itself_away() {
        let (mut screen, mut terminal) = (Screen::default(), terminal());
        terminal.feed("$ pgdyno\r\n");
        terminal.feed(screen.draw("", lines(&["one", "two"]), SIZE));
        assert_eq!(rows(&terminal), ["$ pgdyno", "one", "two"]);
        terminal.feed(screen.draw("note: a\n", lines(&["longer", "two"]), SIZE));
        assert_eq!(rows(&terminal), ["$ pgdyno", "note: a", "longer", "two"]);
        terminal.feed(screen.draw("note: b\nnote: c\n", lines(&["x"]), SIZE));
        assert_eq!(rows(&terminal), ["note: a", "note: b", "note: c", "x"]);
        terminal.feed(screen.draw("", vec![], SIZE));
        assert_eq!(rows(&terminal), ["note: a", "note: b", "note: c"]);
        terminal.feed("$ ");
        assert_eq!(rows(&terminal), ["note: a", "note: b", "note: c", "$"]);
    }

    #[test]
    fn what_stands_there_is_not_written_again() {
        let mut screen = Screen::default();
        screen.draw("", lines(&["one", "two"]), SIZE);
        assert_eq!(screen.draw("", lines(&["one", "two"]), SIZE), "");
        let changed = screen.draw("", lines(&["one", "TWO"]), SIZE);
        assert!(changed.contains("TWO") && !changed.contains("one"), "{changed:?}");
    }

    #[test]
    fn a_view_higher_than_the_terminal_keeps_its_place() {
        let (mut screen, mut terminal) = (Screen::default(), terminal());
        for number in ["1", "2", "3"] {
            let all = ["a", "b", "c", "d", "e", "f"].map(|name| format!("{name}{number}"));
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            terminal.feed(screen.draw("", lines(&all), SIZE));
            assert_eq!(rows(&terminal), all[..4]);
        }
    }

    #[test]
    fn a_terminal_that_becomes_narrower_or_wider_keeps_no_remains() {
        let (mut screen, mut terminal) = (Screen::default(), terminal());
        terminal.feed(screen.draw("", lines(&["seventeen columns", "two"]), SIZE));
        let narrow = Size { columns: 10, rows: 5 };
        terminal.resize(narrow.columns, narrow.rows);
        terminal.feed(screen.draw("", lines(&["ten colum", "two"]), narrow));
        assert_eq!(rows(&terminal), ["ten colum", "two"]);
        let wide = Size { columns: 30, rows: 5 };
        terminal.resize(wide.columns, wide.rows);
        terminal.feed(screen.draw("", lines(&["wide", "two"]), wide));
        assert_eq!(rows(&terminal), ["wide", "two"]);
    }
}
