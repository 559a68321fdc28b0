//! Tables for a terminal.

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use pgdyno_text::format;

use super::text::{Detail, plain, wrap};

/// Tables have a line under the header only, so that the numbers stand out.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

/// Stands for a missing value.
pub(super) const NONE: &str = "–";

/// Returns a right-aligned cell.
pub(super) fn right(text: impl ToString) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Renders a table in at most `width` columns, line by line.
pub(super) fn table_lines(header: Vec<Cell>, rows: Vec<Vec<Cell>>, width: u16) -> Vec<String> {
    let mut table = Table::new();
    table
        .load_style(STYLE)
        .set_width(width)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header)
        .add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    table.to_string().lines().map(|line| line.trim_end().to_owned()).collect()
}

/// A table of a report with a title above and a legend below it.
pub(super) struct TitledTable {
    pub(super) title: &'static str,
    pub(super) header: Vec<Cell>,
    pub(super) rows: Vec<Vec<Cell>>,
    /// Rows of a brief report (count).
    pub(super) most: usize,
    pub(super) legend: &'static str,
}

impl TitledTable {
    /// Renders the table in at most `width` columns; nothing without rows.
    pub(super) fn lines(mut self, width: u16, detail: Detail) -> Vec<String> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        let more = match detail {
            Detail::Full => 0,
            _ => self.rows.len().saturating_sub(self.most),
        };
        self.rows.truncate(self.rows.len() - more);
        let mut out = vec![String::new(), self.title.to_owned()];
        out.extend(table_lines(self.header, self.rows, width));
        if more > 0 {
            out.push(format!("{more} more with `--verbose`."));
        }
        out.extend(wrap(self.legend, usize::from(width), ""));
        out
    }
}

/// Returns the rows that `row` makes of `items` and of `label`, which only the first row has.
pub(super) fn labelled_rows<'a, T: 'a>(
    label: &'a str,
    items: &'a [T],
    row: impl Fn(&str, &T) -> Vec<Cell> + 'a,
) -> impl Iterator<Item = Vec<Cell>> + 'a {
    let labels = std::iter::once(plain(label)).chain(std::iter::repeat(String::new()));
    items.iter().zip(labels).map(move |(item, label)| row(&label, item))
}

/// Formats microseconds as milliseconds, or a dash.
pub(super) fn milliseconds(us: Option<f64>) -> String {
    us.map_or_else(|| NONE.to_owned(), format::milliseconds)
}
