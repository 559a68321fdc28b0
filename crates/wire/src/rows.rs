//! Rows and columns of a result, read in place.

use crate::WireError;
use crate::cursor::Cursor;

/// Values of a result's row. All lengths were checked when the message was read.
#[derive(Clone, Copy, Debug)]
pub struct DataRow<'a> {
    count: usize,
    values: Cursor<'a>,
}

impl<'a> DataRow<'a> {
    /// Reads the body of a `DataRow`.
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, WireError> {
        let mut c = Cursor::new("DataRow", body);
        let count = c.count(4, "values")?;
        let values = c;
        for _ in 0..count {
            c.value("value")?;
        }
        c.end()?;
        Ok(Self { count, values })
    }

    /// Returns the values in order; `None` for NULL.
    pub fn values(self) -> impl Iterator<Item = Option<&'a [u8]>> {
        let mut values = self.values;
        (0..self.count).map_while(move |_| values.value("value").ok())
    }
}

/// Length of a column's numbers: table, attribute, type, its size and modifier, format (bytes).
const COLUMN_NUMBERS: usize = 18;

/// Columns of a result. All were checked when the message was read.
#[derive(Clone, Copy, Debug)]
pub struct RowDescription<'a> {
    count: usize,
    columns: Cursor<'a>,
}

impl<'a> RowDescription<'a> {
    /// Reads the body of a `RowDescription`.
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, WireError> {
        let mut c = Cursor::new("RowDescription", body);
        // The name is at least a NUL.
        let count = c.count(1 + COLUMN_NUMBERS, "columns")?;
        let columns = c;
        for _ in 0..count {
            column_name(&mut c)?;
        }
        c.end()?;
        Ok(Self { count, columns })
    }

    /// Returns the columns' names in order.
    pub fn names(self) -> impl Iterator<Item = &'a [u8]> {
        let mut columns = self.columns;
        (0..self.count).map_while(move |_| column_name(&mut columns).ok())
    }
}

/// Reads a column and returns its name. Table, type and format are not needed.
fn column_name<'a>(from: &mut Cursor<'a>) -> Result<&'a [u8], WireError> {
    let name = from.string("name")?;
    from.bytes(COLUMN_NUMBERS, "numbers")?;
    Ok(name)
}
