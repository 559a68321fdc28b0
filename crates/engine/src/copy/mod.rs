//! Generated rows for a bulk load and for `\copyfrom`, in COPY's binary format.
//!
//! A row depends only on the seed, the table and its number. Any number of threads can make a
//! table's rows in any order. Source of the format: PostgreSQL's documentation, COPY, "Binary
//! Format".
//!
//! Create a [`RowWriter`] for the columns. Send [`HEADER`], the blocks of a [`BlockWriter`], and
//! [`TRAILER`].
//!
//! ```
//! use pgdyno_engine::copy::{BlockWriter, ColumnKind, Generator, Integers, RowWriter};
//!
//! let columns = [
//!     ("id", Generator::ROW_NUMBER, ColumnKind::Int4),
//!     ("price", Generator::Integer(Integers::Uniform { low: 1, high: 100 }), ColumnKind::Int4),
//! ];
//! let writer = RowWriter::new(42, "articles", 1_000, &columns).map_err(|(_, error)| error)?;
//! let mut blocks = BlockWriter::new(&writer, 64 * 1024);
//! let (bytes, next) = blocks.next(1, 1_001);
//! assert_eq!((bytes.len(), next), (1_000 * 18, 1_001));
//! # Ok::<(), pgdyno_engine::copy::CopyError>(())
//! ```

mod drawn;
mod family;
mod generator;
mod growing_table;
mod json;
mod number;
mod open_field;
mod piece;
mod row_random;
#[cfg(test)]
mod tests;

pub use family::{Families, MOST_CHILDREN};
pub use generator::{
    ColumnKind, CopyError, Generator, Integers, JsonMember, JsonValue, Place, Varying, uuid_of,
};
pub use growing_table::GrowingTable;
use piece::{Column, Piece};
pub use row_random::RowRandom;

/// Header of COPY's binary format: signature, no flags, no extension.
pub const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Trailer of COPY's binary format.
pub const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();

/// Writes the rows of a table.
#[derive(Clone, Debug)]
pub struct RowWriter {
    pieces: Vec<Piece>,
}

impl RowWriter {
    /// Creates a writer of `rows` rows with `columns` (name, generator, kind).
    ///
    /// Random values depend on `seed`, the name of the `table` and the name of the column.
    ///
    /// # Errors
    /// Index of a column, and why its values cannot be made.
    pub fn new(
        seed: u64,
        table: &str,
        rows: u64,
        columns: &[(&str, Generator, ColumnKind)],
    ) -> Result<Self, (usize, CopyError)> {
        let mut piece = Piece::default();
        let count = u16::try_from(columns.len()).unwrap_or(u16::MAX);
        piece.template.extend_from_slice(&count.to_be_bytes());
        let mut pieces = vec![piece];
        for (place, (name, generator, kind)) in columns.iter().enumerate() {
            if pieces.last().is_none_or(|piece| !piece.is_fixed()) {
                pieces.push(Piece::default());
            }
            let last = pieces.len() - 1;
            let column = Column { name, table, seed, rows, kind: *kind };
            pieces[last].field(generator, &column).map_err(|e| (place, e))?;
        }
        Ok(Self { pieces })
    }

    /// Appends row number `row` (from 1) to `out`.
    #[inline]
    pub fn write(&self, row: u64, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            piece.write(row, out);
        }
    }
}

/// Writes rows in blocks.
///
/// If all rows have one size, a block is laid out once; then only parts that differ are written.
#[derive(Debug)]
pub struct BlockWriter<'a> {
    writer: &'a RowWriter,
    bytes: Vec<u8>,
    /// Size at which a block is full (bytes).
    size: usize,
}

impl<'a> BlockWriter<'a> {
    /// Creates a writer of blocks of about `size` bytes.
    pub fn new(writer: &'a RowWriter, size: usize) -> Self {
        Self { writer, bytes: Vec::with_capacity(size + (size >> 2)), size }
    }

    /// Writes a block of rows from `first` on, up to but not including `end`; returns it and the
    /// number of the first row that is not in it.
    pub fn next(&mut self, first: u64, end: u64) -> (&[u8], u64) {
        match self.writer.pieces.as_slice() {
            [piece] if piece.is_fixed() => self.patched(piece, first, end),
            _ => self.written(first, end),
        }
    }

    fn written(&mut self, first: u64, end: u64) -> (&[u8], u64) {
        self.bytes.clear();
        let mut row = first;
        while row < end && self.bytes.len() < self.size {
            self.writer.write(row, &mut self.bytes);
            row += 1;
        }
        (&self.bytes, row)
    }

    fn patched(&mut self, piece: &Piece, first: u64, end: u64) -> (&[u8], u64) {
        let row_bytes = piece.template.len();
        if self.bytes.is_empty() {
            let rows = (self.size / row_bytes).max(1);
            self.bytes = piece.template.repeat(rows);
        }
        let rows = end.saturating_sub(first).min((self.bytes.len() / row_bytes) as u64);
        for (row, place) in (first..first + rows).zip(self.bytes.chunks_exact_mut(row_bytes)) {
            piece.patch(row, place);
        }
        // `rows` of them fit into memory, and so does their number.
        (&self.bytes[..row_bytes * usize::try_from(rows).unwrap_or_default()], first + rows)
    }
}
