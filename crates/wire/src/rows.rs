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

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether the row has no values.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the values in order; `None` for NULL.
    pub fn values(self) -> impl Iterator<Item = Option<&'a [u8]>> {
        let mut values = self.values;
        (0..self.count).map_while(move |_| values.value("value").ok())
    }
}

/// Columns of a result. All were checked when the message was read.
#[derive(Clone, Copy, Debug)]
pub struct RowDescription<'a> {
    count: usize,
    columns: Cursor<'a>,
}

/// A column of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<'a> {
    /// Column's name.
    pub name: &'a [u8],
    /// OID of the table that the column comes from; 0 if from none.
    pub table: u32,
    /// Number of the column in that table; 0 if from none.
    pub attribute: i16,
    /// OID of the type (`pg_type.oid`).
    pub type_oid: u32,
    /// Size of the type (bytes); negative for types of variable width.
    pub type_size: i16,
    /// Type modifier (`pg_attribute.atttypmod`).
    pub type_modifier: i32,
    /// Format of the values: 0 for text, 1 for binary.
    pub format: i16,
}

impl<'a> Column<'a> {
    pub(crate) fn read(from: &mut Cursor<'a>) -> Result<Self, WireError> {
        Ok(Self {
            name: from.string("name")?,
            table: from.u32("table")?,
            attribute: from.i16("attribute")?,
            type_oid: from.u32("type")?,
            type_size: from.i16("type size")?,
            type_modifier: from.i32("type modifier")?,
            format: from.i16("format")?,
        })
    }
}

impl<'a> RowDescription<'a> {
    /// Reads the body of a `RowDescription`.
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, WireError> {
        let mut c = Cursor::new("RowDescription", body);
        // A name's NUL and 18 bytes of numbers.
        let count = c.count(19, "columns")?;
        let columns = c;
        for _ in 0..count {
            Column::read(&mut c)?;
        }
        c.end()?;
        Ok(Self { count, columns })
    }

    /// Returns the number of columns.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether rows have no columns.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the columns in order.
    pub fn columns(self) -> impl Iterator<Item = Column<'a>> {
        let mut columns = self.columns;
        (0..self.count).map_while(move |_| Column::read(&mut columns).ok())
    }
}
