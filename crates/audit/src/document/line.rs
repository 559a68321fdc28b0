//! Lines of a document, and cells of a table row.

/// One line; of HTML, one line of what is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Line {
    /// Where it begins in the file, from 1.
    pub(crate) number: usize,
    pub(crate) text: String,
    /// The cells, where it is a table's row; of HTML and Markdown, else none.
    pub(crate) cells: Vec<Cell>,
    /// Whether it stands in a quotation, behind `>`.
    pub(crate) quoted: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// Where it stands in the file, from 1.
    pub(crate) line: usize,
}
