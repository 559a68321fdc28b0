//! Tables for a terminal.

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

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
