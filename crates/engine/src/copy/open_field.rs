//! Fields whose size depends on the row.

use std::num::NonZeroU64;

use super::drawn::{Choice, Length};
use super::family::DrawnFamilies;
use super::generator::{ColumnKind, CopyError, Generator, Place, Varying};
use super::json::Object;
use super::number::Number;
use super::piece::{Column, Piece, number, push_length};
use super::row_random::RowRandom;
use crate::digits;

/// First byte of jsonb's binary format (PostgreSQL's `jsonb_recv`).
const JSONB_VERSION: u8 = 1;
/// Length of a field that is null.
const NULL: [u8; 4] = (-1_i32).to_be_bytes();

/// Field whose size depends on the row.
#[derive(Clone, Debug)]
pub(super) enum OpenField {
    Numbered {
        before: Vec<u8>,
        after: Vec<u8>,
    },
    Letters {
        length: Length,
        within: Option<Within>,
    },
    Spelled {
        number: Number,
        digits: u32,
        words: Box<[String; 10]>,
    },
    /// Rows of a place, of so many each, counted by parents if there are any; null without a piece.
    First {
        rows: u64,
        of: NonZeroU64,
        parents: Option<DrawnFamilies>,
        first: Option<Box<Piece>>,
        rest: Option<Box<Piece>>,
    },
    /// Fields with their lengths.
    Choice(Choice<Vec<u8>>),
    /// Elements (count), their type, and what makes them.
    Array {
        length: Length,
        oid: u32,
        element: Box<Piece>,
    },
    /// Whether it is jsonb, and the object.
    Json(bool, Object),
    /// Null where what is drawn lies below the limit.
    Nullable {
        draw: RowRandom,
        below: u64,
        other: Box<Piece>,
    },
}

/// Text within letters, where what is drawn lies below the limit.
#[derive(Clone, Debug)]
pub(super) struct Within {
    text: Vec<u8>,
    draw: RowRandom,
    below: u64,
}

/// Returns the piece of one field that `generator` fills.
fn piece(generator: &Generator, column: &Column<'_>) -> Result<Box<Piece>, CopyError> {
    let mut piece = Piece::default();
    piece.field(generator, column)?;
    Ok(Box::new(piece))
}

/// Returns the 64-bit numbers (count) of which a `share` lies below it. At 1 all but one do.
pub(super) fn below(share: f64) -> u64 {
    (share.clamp(0.0, 1.0) * 2_f64.powi(64)) as u64
}

/// Appends a field's value by `write`, behind its length.
fn with_length(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend([0; 4]);
    write(out);
    let length = u32::try_from(out.len() - at - 4).unwrap_or(u32::MAX);
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

impl OpenField {
    pub(super) fn new(varying: &Varying, column: &Column<'_>) -> Result<Self, CopyError> {
        let draw = column.draw();
        Ok(match varying {
            Varying::Choice(values) => {
                let field = |(weight, value): &(u32, Vec<u8>)| {
                    let mut field = Vec::new();
                    push_length(&mut field, value.len());
                    field.extend_from_slice(value);
                    (*weight, field)
                };
                Self::Choice(Choice::new(draw, values.iter().map(field)))
            }
            Varying::Letters { least, most, within } => {
                column.wants(ColumnKind::Text, "letters", "text")?;
                let within = within.as_ref().map(|(text, share)| Within {
                    text: text.clone().into_bytes(),
                    draw: column.draw_for("within"),
                    below: below(*share),
                });
                Self::Letters { length: Length::new(draw, *least, *most), within }
            }
            Varying::Spelled { number: of, digits, words } => {
                column.wants(ColumnKind::Text, "spelled", "text")?;
                let (_, number, _) = number(of, column, column.rows);
                Self::Spelled { number, digits: *digits, words: words.clone() }
            }
            Varying::First { place: Place { rows, of, families }, first, rest } => Self::First {
                rows: *rows,
                of: *of,
                parents: families.as_ref().map(|families| column.drawn(families)),
                first: first.as_ref().map(|first| piece(first, column)).transpose()?,
                rest: rest.as_ref().map(|rest| piece(rest, column)).transpose()?,
            },
            Varying::Numbered { before, after } => {
                column.wants(ColumnKind::Text, "numbered", "text")?;
                let (before, after) = (before.clone().into_bytes(), after.clone().into_bytes());
                Self::Numbered { before, after }
            }
            Varying::Array { least, most, oid, element } => {
                let (name, kind) =
                    (format!("{}\0element", column.name), ColumnKind::from_oid(*oid));
                let column = Column { name: &name, kind, ..*column };
                let length = Length::new(draw, *least, *most);
                Self::Array { length, oid: *oid, element: piece(element, &column)? }
            }
            Varying::Json(members) => {
                if !matches!(column.kind, ColumnKind::Json | ColumnKind::Jsonb) {
                    return Err(CopyError::Type { generator: "json", gives: "json and jsonb" });
                }
                Self::Json(column.kind == ColumnKind::Jsonb, Object::new(members, column)?)
            }
            Varying::Nullable { share, other } => {
                let draw = column.draw_for("null");
                Self::Nullable { draw, below: below(*share), other: piece(other, column)? }
            }
        })
    }

    pub(super) fn write(&self, row: u64, out: &mut Vec<u8>) {
        match self {
            Self::Numbered { before, after } => with_length(out, |out| {
                out.extend_from_slice(before);
                digits::write(row, out);
                out.extend_from_slice(after);
            }),
            Self::Letters { length, within } => {
                let drawn = length.at(row);
                push_length(out, drawn as usize);
                let at = length.write_letters(row, drawn, out);
                if let Some(within) = within {
                    within.write(row, &mut out[at..]);
                }
            }
            Self::Spelled { number, digits, words } => with_length(out, |out| {
                let number = number.at(row).unsigned_abs();
                for place in (0..*digits).rev() {
                    let digit = number / 10_u64.pow(place) % 10;
                    out.extend_from_slice(words[digit as usize].as_bytes());
                }
            }),
            Self::First { rows, of, parents, first, rest } => {
                let counted = parents.as_ref().map_or(row, |parents| parents.parent(row).0);
                let is_first = (counted - 1) % *of < *rows;
                match if is_first { first } else { rest } {
                    Some(piece) => piece.write(row, out),
                    None => out.extend_from_slice(&NULL),
                }
            }
            Self::Choice(fields) => {
                out.extend_from_slice(fields.at(row).map_or(&NULL[..], Vec::as_slice));
            }
            Self::Array { length, oid, element } => with_length(out, |out| {
                let count = length.at(row);
                let dimensions = u32::from(count > 0);
                // That there are nulls may be said where there are none.
                let head = [dimensions, 1, *oid];
                out.extend(head.iter().flat_map(|word| word.to_be_bytes()));
                if dimensions > 0 {
                    out.extend([count, 1].iter().flat_map(|word| word.to_be_bytes()));
                }
                let first = (row - 1) * u64::from(Varying::MOST_ELEMENTS) + 1;
                (0..count).for_each(|place| element.write(first + u64::from(place), out));
            }),
            Self::Json(is_binary, object) => with_length(out, |out| {
                out.extend(is_binary.then_some(JSONB_VERSION));
                object.write(row, out);
            }),
            Self::Nullable { draw, below, other } => match draw.bits(row, 0) < *below {
                true => out.extend_from_slice(&NULL),
                false => other.write(row, out),
            },
        }
    }
}

impl Within {
    /// Writes the text at a drawn place of `letters`, if they are among those that have it.
    fn write(&self, row: u64, letters: &mut [u8]) {
        let Some(room) = letters.len().checked_sub(self.text.len()) else { return };
        if self.draw.bits(row, 0) < self.below {
            let at = self.draw.below_or_at_of(row, 1, room as u64) as usize;
            letters[at..at + self.text.len()].copy_from_slice(&self.text);
        }
    }
}
