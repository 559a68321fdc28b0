//! HTML as a browser shows it, line by line: the tokenizer knows where each token stands.

use html5gum::{DefaultEmitter, HtmlString, StartTag, Token, Tokenizer};

use super::line::{Cell, Line};
use crate::words::Words;

/// Elements that begin and end a line.
const BLOCKS: Words = Words(
    "address|article|aside|blockquote|body|br|caption|center|dd|details|div|dl|dt|fieldset|\
     figcaption|figure|footer|form|h1|h2|h3|h4|h5|h6|header|hr|html|li|main|nav|ol|option|p|\
     pre|section|summary|table|tbody|td|textarea|tfoot|th|thead|title|tr|ul",
);

/// Elements of which nothing is shown.
const HIDDEN: Words = Words("script|style|template|noscript|svg");

/// More columns than these are a slip.
const MOST_COLUMNS: usize = 100;

/// The lines of `html`. Line ends in it are `\n`.
pub(super) fn lines(html: &str) -> Vec<Line> {
    let mut emitter = DefaultEmitter::<usize>::new_with_span();
    emitter.naively_switch_states(true);
    let mut page = Page::default();
    let mut at = Position { html: html.as_bytes(), offset: 0, line: 1 };
    for token in Tokenizer::new_with_emitter(html, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => page.start(&tag, at.line_of(tag.span.start)),
            Token::EndTag(tag) => page.end(&String::from_utf8_lossy(&tag.name)),
            Token::String(text) => {
                let line = at.line_of(text.span.start);
                page.string(&String::from_utf8_lossy(&text.value), line);
            }
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    page.flush();
    page.row();
    page.lines
}

/// Counts lines as tokens go by.
struct Position<'a> {
    html: &'a [u8],
    offset: usize,
    line: usize,
}

impl Position<'_> {
    fn line_of(&mut self, offset: usize) -> usize {
        let offset = offset.min(self.html.len());
        if offset > self.offset {
            self.line += self.html[self.offset..offset].iter().filter(|b| **b == b'\n').count();
            self.offset = offset;
        }
        self.line
    }
}

#[derive(Default)]
struct Page {
    lines: Vec<Line>,
    text: String,
    /// Where `text` begins.
    number: usize,
    cells: Vec<Cell>,
    /// Which of the cells is open.
    cell: Option<usize>,
    pre: usize,
    hidden: usize,
}

impl Page {
    fn start(&mut self, tag: &StartTag<usize>, line: usize) {
        let name = String::from_utf8_lossy(&tag.name);
        if HIDDEN.has(&name) && !tag.self_closing {
            self.hidden += 1;
        }
        if !BLOCKS.has(&name) {
            return;
        }
        match &*name {
            "tr" | "table" => {
                self.flush();
                self.row();
            }
            "td" | "th" => {
                self.flush();
                self.cell = Some(self.cells.len());
                self.cells.push(Cell { text: String::new(), line });
                // A cell over several columns stands in the first of them.
                let columns = tag.attributes.get(&HtmlString(b"colspan".to_vec()));
                let columns = columns
                    .and_then(|v| String::from_utf8_lossy(v).trim().parse().ok())
                    .unwrap_or(1);
                for _ in 1..columns.min(MOST_COLUMNS) {
                    self.cells.push(Cell { text: String::new(), line });
                }
            }
            // Listings often stand in a table of one row; their lines are lines.
            "pre" => {
                self.flush();
                self.row();
                self.cell = None;
                self.pre += 1;
            }
            _ => self.flush(),
        }
    }

    fn end(&mut self, name: &str) {
        if HIDDEN.has(name) {
            self.hidden = self.hidden.saturating_sub(1);
        }
        if !BLOCKS.has(name) {
            return;
        }
        self.flush();
        match name {
            "pre" => self.pre = self.pre.saturating_sub(1),
            "td" | "th" => self.cell = None,
            "tr" => self.row(),
            "table" => {
                self.row();
                // Two tables are not one.
                let number = self.lines.last().map_or(1, |l| l.number);
                self.lines.push(Line { number, ..Line::default() });
            }
            _ => {}
        }
    }

    fn string(&mut self, text: &str, mut line: usize) {
        if self.hidden > 0 {
            return;
        }
        for c in text.chars() {
            if c == '\n' {
                line += 1;
            }
            if self.pre > 0 && c == '\n' {
                self.flush();
            } else if self.pre > 0 {
                self.push(c, line);
            } else if c.is_whitespace() {
                if !self.text.ends_with(' ') && !self.text.is_empty() {
                    self.text.push(' ');
                }
            } else {
                self.push(c, line);
            }
        }
    }

    fn push(&mut self, c: char, line: usize) {
        if self.text.is_empty() {
            self.number = line;
        }
        self.text.push(c);
    }

    /// Ends the line, or what was said so far in a cell.
    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        if text.trim().is_empty() {
            return;
        }
        match self.cell.and_then(|open| self.cells.get_mut(open)) {
            Some(cell) if cell.text.is_empty() => {
                cell.line = self.number;
                text.trim().clone_into(&mut cell.text);
            }
            Some(cell) => {
                cell.text.push(' ');
                cell.text.push_str(text.trim());
            }
            None => {
                let text = text.trim_end().to_owned();
                self.lines.push(Line { number: self.number, text, ..Line::default() });
            }
        }
    }

    /// Ends the table's row.
    fn row(&mut self) {
        self.cell = None;
        let cells = std::mem::take(&mut self.cells);
        let Some(number) = cells.iter().map(|cell| cell.line).min() else { return };
        let text = cells.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>().join(" | ");
        let cells = if cells.len() < 2 { Vec::new() } else { cells };
        self.lines.push(Line { number, text, cells, ..Line::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(html: &str) -> Vec<(usize, String)> {
        lines(html).into_iter().filter(|l| !l.text.is_empty()).map(|l| (l.number, l.text)).collect()
    }

    #[test]
    fn listings_keep_their_lines_and_paragraphs_do_not() {
        let html = "<p>one\ntwo</p>\n<pre>tps = 5\nlatency &lt; 3 ms</pre>\n\
            <script>var tps = 9;</script><p>x<br>y";
        let expected: [(usize, &str); 5] =
            [(1, "one two"), (3, "tps = 5"), (4, "latency < 3 ms"), (5, "x"), (5, "y")];
        assert_eq!(texts(html), expected.map(|(n, t)| (n, t.to_owned())));
    }

    #[test]
    fn a_row_has_its_cells_and_each_its_line() {
        let html = "<table>\n<tr><th>fs</th><th colspan=2>tps</th></tr>\n<tr>\n<td>ext2</td>\n\
            <td>542</td>\n<td><b>605</b></td>\n</tr></table>";
        let rows: Vec<Line> = lines(html).into_iter().filter(|l| !l.cells.is_empty()).collect();
        let cells =
            |row: &Line| row.cells.iter().map(|c| (c.line, c.text.clone())).collect::<Vec<_>>();
        assert_eq!(cells(&rows[0]), [(2, "fs".into()), (2, "tps".into()), (2, String::new())]);
        assert_eq!(cells(&rows[1]), [(4, "ext2".into()), (5, "542".into()), (6, "605".into())]);
    }

    #[test]
    fn an_empty_cell_stays_in_its_column() {
        let rows = lines("<table><tr><td>a<td><td>5<tr><td>b<td>6<td>7</table>");
        let texts: Vec<Vec<&str>> =
            rows.iter().map(|r| r.cells.iter().map(|c| c.text.as_str()).collect()).collect();
        assert_eq!(texts[0], ["a", "", "5"]);
    }
}
