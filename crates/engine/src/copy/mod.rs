//! Rows for a bulk load: made from a seed and the row's number, in COPY's binary format.
//!
//! A row depends on nothing else, so that a table has the same rows whoever makes which of them,
//! and in which order. Source of the format: PostgreSQL's documentation, COPY, "Binary Format".

mod row_random;
#[cfg(test)]
mod tests;

use std::num::NonZeroU64;
use std::ops::RangeInclusive;

use thiserror::Error;

use crate::digits;

pub use row_random::RowRandom;

// facade: removed at integration
#[doc(hidden)]
pub use {BlockWriter as Blocks, ColumnKind as Kind};

/// What COPY's binary format begins with: its signature, no flags, no extension.
pub const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What it ends with.
pub const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();

/// How a column's values are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Generator {
    /// The row's number, from 1.
    RowNumber,
    /// The number of the group of so many rows that the row is in, from 1.
    GroupOf(NonZeroU64),
    /// Drawn evenly from these and all between.
    Uniform {
        /// The least.
        low: i64,
        /// The greatest.
        high: i64,
    },
    /// The same in every row: the value as the server's own send function gives it.
    Constant(Vec<u8>),
    /// Characters of which so many are drawn from 64 letters and digits; the rest are blanks.
    Filler {
        /// All of them (bytes).
        bytes: u32,
        /// Those that are drawn (bytes).
        drawn: u32,
    },
    /// Text around the row's number.
    Numbered {
        /// Before the number.
        before: String,
        /// After it.
        after: String,
    },
    /// A time for each row.
    Moment {
        /// That of the first row (microseconds since 2000-01-01, as PostgreSQL counts).
        from_us: i64,
        /// From each row to the next (microseconds).
        step_us: i64,
    },
}

/// What a column's values look like on the wire.
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
    /// Any other type: only the server knows its form, so only constants can fill it.
    Other,
}

impl ColumnKind {
    /// The kind of the type of that number in `pg_type`.
    #[must_use]
    pub fn of(oid: u32) -> Self {
        match oid {
            21 => Self::Int2,
            23 => Self::Int4,
            20 => Self::Int8,
            25 | 1042 | 1043 => Self::Text,
            1114 | 1184 => Self::Timestamp,
            _ => Self::Other,
        }
    }

    /// The numbers that it holds, if it holds numbers.
    fn integers(self) -> Option<RangeInclusive<i64>> {
        match self {
            Self::Int2 => Some(i16::MIN.into()..=i16::MAX.into()),
            Self::Int4 => Some(i32::MIN.into()..=i32::MAX.into()),
            Self::Int8 => Some(i64::MIN..=i64::MAX),
            Self::Text | Self::Timestamp | Self::Other => None,
        }
    }

    /// Bytes that its numbers take.
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
        /// The generator's name.
        generator: &'static str,
        /// What it gives.
        gives: &'static str,
    },
    /// Numbers that the column's type does not hold.
    #[error("it is to hold {low} to {high}, and its type holds {} to {}", holds.start(), holds.end())]
    TooBig {
        /// The least number.
        low: i64,
        /// The greatest.
        high: i64,
        /// What the type holds.
        holds: RangeInclusive<i64>,
    },
}

/// What is written over a place of the row's template.
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
    fn of(&self, row: u64) -> i64 {
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

/// Fields of a fixed size, and after them at most one whose size follows from the row's number.
#[derive(Clone, Debug, Default)]
struct Piece {
    template: Vec<u8>,
    patches: Vec<Patch>,
    then: Option<(Vec<u8>, Vec<u8>)>,
}

/// Writes a table's rows.
#[derive(Clone, Debug)]
pub struct RowWriter {
    pieces: Vec<Piece>,
}

impl RowWriter {
    /// A writer of `rows` rows with these columns (name, generator, kind); what is drawn follows
    /// from `seed`, the `table`'s name and the column's.
    ///
    /// # Errors
    /// The place of a column among them, and why its values cannot be made.
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

/// Rows in blocks of bytes. Where all rows have one size, a block is laid out once and only what
/// differs is written again.
#[derive(Debug)]
pub struct BlockWriter<'a> {
    writer: &'a RowWriter,
    bytes: Vec<u8>,
    /// A block's size at which no row is added to it (bytes).
    size: usize,
}

impl<'a> BlockWriter<'a> {
    /// BlockWriter of about `size` bytes.
    #[must_use]
    pub fn new(writer: &'a RowWriter, size: usize) -> Self {
        Self { writer, bytes: Vec::with_capacity(size + (size >> 2)), size }
    }

    /// The rows from `first` on that fill a block, `beyond` not among them, and the first that is
    /// not in it.
    pub fn next(&mut self, first: u64, beyond: u64) -> (&[u8], u64) {
        match self.writer.pieces.as_slice() {
            [piece] => self.patched(piece, first, beyond),
            _ => self.written(first, beyond),
        }
    }

    fn written(&mut self, first: u64, beyond: u64) -> (&[u8], u64) {
        self.bytes.clear();
        let mut row = first;
        while row < beyond && self.bytes.len() < self.size {
            self.writer.write(row, &mut self.bytes);
            row += 1;
        }
        (&self.bytes, row)
    }

    fn patched(&mut self, piece: &Piece, first: u64, beyond: u64) -> (&[u8], u64) {
        let row_bytes = piece.template.len();
        if self.bytes.is_empty() {
            let rows = (self.size / row_bytes).max(1);
            self.bytes = piece.template.repeat(rows);
        }
        let rows = beyond.saturating_sub(first).min((self.bytes.len() / row_bytes) as u64);
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
    /// Writes what differs from row to row into `place`, which begins with the template.
    #[inline]
    fn patch(&self, row: u64, place: &mut [u8]) {
        for patch in &self.patches {
            match patch {
                Patch::Number { at, width, value } => {
                    let bytes = value.of(row).to_be_bytes();
                    // Sizes that the compiler knows become single stores.
                    match width {
                        2 => place[*at..at + 2].copy_from_slice(&bytes[6..]),
                        4 => place[*at..at + 4].copy_from_slice(&bytes[4..]),
                        _ => place[*at..at + 8].copy_from_slice(&bytes),
                    }
                }
                Patch::Letters { at, bytes, draw } => {
                    draw.letters(row, &mut place[*at..at + bytes])
                }
            }
        }
    }

    /// Adds a field; gives back what stands around its number if its size is not fixed.
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
