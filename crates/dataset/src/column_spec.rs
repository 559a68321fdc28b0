//! Columns of a workload's tables, and how they are filled.

use pgdyno_engine::copy::{Generator, Place};

/// One column, and how its values are made.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSpec {
    /// Name of the column.
    pub name: String,
    /// How its values are made.
    pub values: Values,
    /// Share of rows in which it is null instead (0 to 1).
    pub null: f64,
}

impl ColumnSpec {
    /// Whether the column holds the row's number in every row.
    pub fn is_row_number(&self) -> bool {
        self.values == Values::RowNumber && self.null == 0.0
    }
}

/// How a column's values are made.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// The row's number, from 1.
    RowNumber,
    /// As the generator makes them, whatever the server's type is.
    Generated(Generator),
    /// One value for all rows, in SQL's text form.
    Constant(String),
    /// Values in SQL's text form, with their weights.
    Choice(Vec<(u32, String)>),
    /// So many characters, of which `workload.filler_compress_percentage` are blanks.
    Filler(u32),
    /// A moment in SQL's text form for the first row, and the time from each row to the next.
    Timestamp(String, std::time::Duration),
    /// Moments or days drawn evenly between two, in SQL's text form.
    Between(String, String),
    /// Number of a row of this table, drawn evenly.
    References(String),
    /// Arrays of so many elements.
    Array {
        /// Least elements (count).
        least: u32,
        /// Most elements (count).
        most: u32,
        /// Their values.
        values: Box<Values>,
        /// Share of elements that are null instead (0 to 1).
        null: f64,
    },
    /// Values at a place, and others elsewhere; null where there are none.
    First {
        /// Place.
        place: Place,
        /// Values at the place.
        first: Option<Box<Values>>,
        /// Values elsewhere.
        rest: Option<Box<Values>>,
    },
}
