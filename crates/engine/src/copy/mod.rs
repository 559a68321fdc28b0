//! Generated rows for a bulk load, in COPY's binary format.
//!
//! A row depends only on the seed, the table and its number. Any number of threads can make a
//! table's rows in any order. Source of the format: PostgreSQL's documentation, COPY, "Binary
//! Format".
//!
//! Create a [`RowWriter`] for the columns. Send [`HEADER`], the blocks of a [`BlockWriter`], and
//! [`TRAILER`].
//!
//! ```
//! use pgdyno_engine::copy::{BlockWriter, ColumnKind, Generator, RowWriter};
//!
//! let columns = [
//!     ("id", Generator::RowNumber, ColumnKind::Int4),
//!     ("price", Generator::Uniform { low: 1, high: 100 }, ColumnKind::Int4),
//! ];
//! let writer = RowWriter::new(42, "articles", 1_000, &columns).map_err(|(_, error)| error)?;
//! let mut blocks = BlockWriter::new(&writer, 64 * 1024);
//! let (bytes, next) = blocks.next(1, 1_001);
//! assert_eq!((bytes.len(), next), (1_000 * 18, 1_001));
//! # Ok::<(), pgdyno_engine::copy::CopyError>(())
//! ```

mod row_random;
#[cfg(test)]
mod tests;

use std::num::NonZeroU64;
use std::ops::RangeInclusive;

pub use row_random::RowRandom;
use thiserror::Error;

use crate::digits;

/// Header of COPY's binary format: signature, no flags, no extension.
pub const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Trailer of COPY's binary format.
pub const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();

/// Generator of a column's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Generator {
    /// Number of the row, from 1.
    RowNumber,
    /// Number of the group that the row is in, from 1; the field is the size of a group (rows).
    GroupOf(NonZeroU64),
    /// Numbers drawn uniformly from `low..=high`.
    Uniform {
        /// Lowest number.
        low: i64,
        /// Highest number.
        high: i64,
    },
    /// One value for all rows, as the type's send function writes it.
    Constant(Vec<u8>),
    /// Text of letters and digits, padded with blanks.
    Filler {
        /// Length (bytes).
        bytes: u32,
        /// Letters and digits that are drawn (bytes).
        drawn: u32,
    },
    /// Text with the row's number in it.
    Numbered {
        /// Text before the number.
        before: String,
        /// Text after the number.
        after: String,
    },
    /// Timestamps at equal steps.
    Moment {
        /// Timestamp of the first row (microseconds since 2000-01-01, as PostgreSQL counts).
        from_us: i64,
        /// Step from row to row (microseconds).
        step_us: i64,
    },
}

/// Binary format of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// `smallint`.
    Int2,
    /// `integer`.
    Int4,
    /// `bigint`.
    Int8,
    /// `text`, `varchar`, `char(n)`.
    Text,
    /// `timestamp`, with time zone or without.
    Timestamp,
    /// Any other type. Only constants can fill it, for only the server knows its format.
    Other,
}

impl ColumnKind {
    /// Returns the kind of the type with `oid` in `pg_type`.
    pub fn from_oid(oid: u32) -> Self {
        match oid {
            21 => Self::Int2,
            23 => Self::Int4,
            20 => Self::Int8,
            25 | 1042 | 1043 => Self::Text,
            1114 | 1184 => Self::Timestamp,
            _ => Self::Other,
        }
    }

    /// Returns the range of an integer type.
    fn integers(self) -> Option<RangeInclusive<i64>> {
        match self {
            Self::Int2 => Some(i16::MIN.into()..=i16::MAX.into()),
            Self::Int4 => Some(i32::MIN.into()..=i32::MAX.into()),
            Self::Int8 => Some(i64::MIN..=i64::MAX),
            Self::Text | Self::Timestamp | Self::Other => None,
        }
    }

    /// Returns the size of a value (bytes).
    fn width(self) -> usize {
        match self {
            Self::Int2 => 2,
            Self::Int4 => 4,
            _ => 8,
        }
    }
}

/// Why values cannot be made for a column.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The generator does not make values of the column's type.
    #[error("{generator} gives {gives}, and the column's type is another")]
    Type {
        /// Generator's name.
        generator: &'static str,
        /// Kind of values that it gives.
        gives: &'static str,
    },
    /// The generator gives numbers beyond the range of the column's type.
    #[error(
        "it is to hold {low} to {high}, and its type holds {} to {}",
        holds.start(),
        holds.end()
    )]
    TooBig {
        /// Lowest number.
        low: i64,
        /// Highest number.
        high: i64,
        /// Range of the type.
        holds: RangeInclusive<i64>,
    },
}

/// Part of a row that differs from the template.
#[derive(Clone, Debug)]
enum Patch {
    Number { at: usize, width: usize, value: Number },
    Letters { at: usize, bytes: usize, draw: RowRandom },
}

#[derive(Clone, Debug)]
enum Number {
    Row,
    Group(NonZeroU64),
    Drawn(RowRandom, i64, u64),
    Moment(i64, i64),
}

impl Number {
    #[inline]
    fn at(&self, row: u64) -> i64 {
        match self {
            Self::Row => row.cast_signed(),
            Self::Group(of) => ((row - 1) / *of + 1).cast_signed(),
            Self::Drawn(draw, low, span) => {
                draw.below_or_at(row, *span).wrapping_add_signed(*low).cast_signed()
            }
            Self::Moment(from, step) => {
                from.wrapping_add(step.wrapping_mul((row - 1).cast_signed()))
            }
        }
    }
}

/// Fields of fixed size, followed by at most one whose size depends on the row's number.
#[derive(Clone, Debug, Default)]
struct Piece {
    template: Vec<u8>,
    patches: Vec<Patch>,
    then: Option<(Vec<u8>, Vec<u8>)>,
}

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
        let mut pieces = vec![Piece::default()];
        let count = u16::try_from(columns.len()).unwrap_or(u16::MAX);
        pieces[0].template.extend_from_slice(&count.to_be_bytes());
        for (place, (name, generator, kind)) in columns.iter().enumerate() {
            let draw = RowRandom::new(seed, table, name);
            let piece = pieces.len() - 1;
            if let Some(open) =
                pieces[piece].field(generator, *kind, rows, draw).map_err(|e| (place, e))?
            {
                pieces[piece].then = Some(open);
                pieces.push(Piece::default());
            }
        }
        Ok(Self { pieces })
    }

    /// Appends row number `row` (from 1) to `out`.
    #[inline]
    pub fn write(&self, row: u64, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            let base = out.len();
            out.extend_from_slice(&piece.template);
            piece.patch(row, &mut out[base..]);
            if let Some((before, after)) = &piece.then {
                let at = out.len();
                out.extend([0; 4]);
                out.extend_from_slice(before);
                digits::write(row, out);
                out.extend_from_slice(after);
                let length = u32::try_from(out.len() - at - 4).unwrap_or(u32::MAX);
                out[at..at + 4].copy_from_slice(&length.to_be_bytes());
            }
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
            [piece] => self.patched(piece, first, end),
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

fn push_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
}

impl Piece {
    /// Writes the parts of `row` that differ from the template into `place`.
    #[inline]
    fn patch(&self, row: u64, place: &mut [u8]) {
        for patch in &self.patches {
            match patch {
                Patch::Number { at, width, value } => {
                    let bytes = value.at(row).to_be_bytes();
                    // Sizes that the compiler knows become single stores.
                    match width {
                        2 => place[*at..at + 2].copy_from_slice(&bytes[6..]),
                        4 => place[*at..at + 4].copy_from_slice(&bytes[4..]),
                        _ => place[*at..at + 8].copy_from_slice(&bytes),
                    }
                }
                Patch::Letters { at, bytes, draw } => {
                    draw.letters(row, &mut place[*at..at + bytes]);
                }
            }
        }
    }

    /// Adds a field. Returns the text around the row's number if the field's size is not fixed.
    #[allow(clippy::type_complexity)]
    fn field(
        &mut self,
        generator: &Generator,
        kind: ColumnKind,
        rows: u64,
        draw: RowRandom,
    ) -> Result<Option<(Vec<u8>, Vec<u8>)>, CopyError> {
        let last = rows.max(1);
        let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        match generator {
            Generator::RowNumber => {
                self.number(Number::Row, kind, "row_number", 1, whole(last))?;
            }
            Generator::GroupOf(of) => {
                self.number(Number::Group(*of), kind, "group_of", 1, whole((last - 1) / *of + 1))?;
            }
            Generator::Uniform { low, high } => {
                let span = high.wrapping_sub(*low).cast_unsigned();
                self.number(Number::Drawn(draw, *low, span), kind, "uniform", *low, *high)?;
            }
            Generator::Moment { from_us, step_us } => {
                if kind != ColumnKind::Timestamp {
                    return Err(CopyError::Type { generator: "timestamp", gives: "timestamps" });
                }
                self.place(Number::Moment(*from_us, *step_us), kind);
            }
            Generator::Constant(value) => {
                push_length(&mut self.template, value.len());
                self.template.extend_from_slice(value);
            }
            Generator::Filler { .. } | Generator::Numbered { .. } if kind != ColumnKind::Text => {
                let generator = if matches!(generator, Generator::Filler { .. }) {
                    "filler"
                } else {
                    "numbered"
                };
                return Err(CopyError::Type { generator, gives: "text" });
            }
            Generator::Filler { bytes, drawn } => {
                let (bytes, drawn) = (*bytes as usize, (*drawn).min(*bytes) as usize);
                push_length(&mut self.template, bytes);
                let at = self.template.len();
                self.template.resize(at + bytes, b' ');
                if drawn > 0 {
                    self.patches.push(Patch::Letters { at, bytes: drawn, draw });
                }
            }
            Generator::Numbered { before, after } => {
                return Ok(Some((before.clone().into_bytes(), after.clone().into_bytes())));
            }
        }
        Ok(None)
    }

    fn number(
        &mut self,
        value: Number,
        kind: ColumnKind,
        generator: &'static str,
        low: i64,
        high: i64,
    ) -> Result<(), CopyError> {
        let holds = kind.integers().ok_or(CopyError::Type { generator, gives: "whole numbers" })?;
        if !holds.contains(&low) || !holds.contains(&high) {
            return Err(CopyError::TooBig { low, high, holds });
        }
        self.place(value, kind);
        Ok(())
    }

    fn place(&mut self, value: Number, kind: ColumnKind) {
        let width = kind.width();
        push_length(&mut self.template, width);
        self.patches.push(Patch::Number { at: self.template.len(), width, value });
        self.template.resize(self.template.len() + width, 0);
    }
}
