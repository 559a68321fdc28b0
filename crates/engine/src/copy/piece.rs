//! Parts of a row: fields of fixed size, and at most one whose size depends on the row.

use std::num::NonZeroU64;

use super::family::{DrawnFamilies, Families};
use super::generator::{ColumnKind, CopyError, Generator, Integers, uuid_of};
use super::number::{Number, Permutation};
use super::open_field::OpenField;
use super::row_random::RowRandom;

/// Decimal digits in a digit of `numeric`.
const GROUP: u32 = 4;
/// Groups before the point of a decimal fraction: enough for twelve digits.
const WHOLE_GROUPS: usize = 3;

/// Size of a UUID (bytes).
const UUID: usize = 16;

/// Part of a row that differs from the template.
#[derive(Clone, Debug)]
enum Patch {
    Number {
        at: usize,
        width: usize,
        value: Number,
    },
    /// Digits of a `numeric`: `groups` in all, of a number of the last group's units.
    Decimal {
        at: usize,
        groups: usize,
        unit: i64,
        value: Number,
    },
    Uuid {
        at: usize,
        value: Number,
    },
    Letters {
        at: usize,
        bytes: usize,
        draw: RowRandom,
    },
    Digits {
        at: usize,
        bytes: usize,
        draw: RowRandom,
    },
}

/// Fields of fixed size, followed by at most one whose size depends on the row.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece {
    pub(super) template: Vec<u8>,
    patches: Vec<Patch>,
    then: Option<OpenField>,
}

/// Column whose values are made.
pub(super) struct Column<'a> {
    pub(super) name: &'a str,
    pub(super) table: &'a str,
    pub(super) seed: u64,
    /// Rows of the table (count).
    pub(super) rows: u64,
    pub(super) kind: ColumnKind,
}

impl Column<'_> {
    /// Returns the random numbers of the column's values.
    pub(super) fn draw(&self) -> RowRandom {
        RowRandom::new(self.seed, self.table, self.name)
    }

    /// Returns random numbers of the column for another `purpose`.
    pub(super) fn draw_for(&self, purpose: &str) -> RowRandom {
        RowRandom::new(self.seed, self.table, &format!("{}\0{purpose}", self.name))
    }

    pub(super) fn drawn(&self, families: &Families) -> DrawnFamilies {
        DrawnFamilies::new(families, self.seed)
    }

    /// Checks that the column is of `kind`: `generator` gives nothing else.
    pub(super) fn wants(
        &self,
        kind: ColumnKind,
        generator: &'static str,
        gives: &'static str,
    ) -> Result<(), CopyError> {
        if self.kind == kind { Ok(()) } else { Err(CopyError::Type { generator, gives }) }
    }
}

pub(super) fn push_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
}

impl Piece {
    /// Whether all rows have the same size up to here.
    pub(super) fn is_fixed(&self) -> bool {
        self.then.is_none()
    }

    /// Appends the part of `row` to `out`.
    #[inline]
    pub(super) fn write(&self, row: u64, out: &mut Vec<u8>) {
        let base = out.len();
        out.extend_from_slice(&self.template);
        self.patch(row, &mut out[base..]);
        if let Some(open) = &self.then {
            open.write(row, out);
        }
    }

    /// Writes the parts of `row` that differ from the template into `place`.
    #[inline]
    pub(super) fn patch(&self, row: u64, place: &mut [u8]) {
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
                Patch::Decimal { at, groups, unit, value } => {
                    let digits = &mut place[*at..at + 2 * groups];
                    write_groups(value.at(row).wrapping_mul(*unit).unsigned_abs(), digits);
                }
                Patch::Uuid { at, value } => {
                    let uuid = uuid_of(value.at(row).cast_unsigned());
                    place[*at..at + uuid.len()].copy_from_slice(&uuid);
                }
                Patch::Letters { at, bytes, draw } => {
                    draw.letters(row, &mut place[*at..at + bytes]);
                }
                Patch::Digits { at, bytes, draw } => {
                    draw.digits(row, &mut place[*at..at + bytes]);
                }
            }
        }
    }

    /// Adds a field.
    pub(super) fn field(
        &mut self,
        generator: &Generator,
        column: &Column<'_>,
    ) -> Result<(), CopyError> {
        match generator {
            Generator::Integer(integers) => self.integer(integers, column)?,
            Generator::Decimal { low, high, digits } => {
                column.wants(ColumnKind::Numeric, "decimal", "decimal fractions")?;
                let value = Number::Drawn(column.draw(), *low, span(*low, *high));
                self.decimal(value, (*digits).into());
            }
            Generator::Moment { from_us, step_us } => {
                column.wants(ColumnKind::Timestamp, "timestamp", "timestamps")?;
                self.place(Number::Moment(*from_us, *step_us), column.kind);
            }
            Generator::Day { from, step_us } => {
                column.wants(ColumnKind::Date, "timestamp", "dates")?;
                self.place(Number::Day(*from, *step_us), column.kind);
            }
            Generator::Time { low, high } => {
                if !matches!(column.kind, ColumnKind::Date | ColumnKind::Timestamp) {
                    let (generator, gives) = ("timestamp", "timestamps and dates");
                    return Err(CopyError::Type { generator, gives });
                }
                self.place(Number::Drawn(column.draw(), *low, span(*low, *high)), column.kind);
            }
            Generator::Constant(value) => {
                push_length(&mut self.template, value.len());
                self.template.extend_from_slice(value);
            }
            Generator::Filler { bytes, drawn } => {
                column.wants(ColumnKind::Text, "filler", "text")?;
                let (bytes, drawn) = (*bytes as usize, (*drawn).min(*bytes) as usize);
                push_length(&mut self.template, bytes);
                let at = self.template.len();
                self.template.resize(at + bytes, b' ');
                if drawn > 0 {
                    let draw = column.draw();
                    self.patches.push(Patch::Letters { at, bytes: drawn, draw });
                }
            }
            Generator::Digits { count, after } => {
                column.wants(ColumnKind::Text, "digits", "text")?;
                let bytes = *count as usize;
                push_length(&mut self.template, bytes + after.len());
                let at = self.template.len();
                self.template.resize(at + bytes, b'0');
                self.template.extend_from_slice(after.as_bytes());
                self.patches.push(Patch::Digits { at, bytes, draw: column.draw() });
            }
            Generator::Varying(varying) => self.then = Some(OpenField::new(varying, column)?),
        }
        Ok(())
    }

    /// Adds an integer, if the column's type holds all that `integers` gives.
    fn integer(&mut self, integers: &Integers, column: &Column<'_>) -> Result<(), CopyError> {
        let (generator, value, (low, high)) = number(integers, column, column.rows);
        let Some(holds) = column.kind.integers() else {
            return Err(CopyError::Type { generator, gives: "whole numbers" });
        };
        if !holds.contains(&low) || !holds.contains(&high) {
            return Err(CopyError::TooBig { low, high, holds });
        }
        match column.kind {
            ColumnKind::Uuid => {
                push_length(&mut self.template, UUID);
                self.patches.push(Patch::Uuid { at: self.template.len(), value });
                self.template.resize(self.template.len() + UUID, 0);
            }
            kind => self.place(value, kind),
        }
        Ok(())
    }

    fn place(&mut self, value: Number, kind: ColumnKind) {
        let width = kind.width();
        push_length(&mut self.template, width);
        self.patches.push(Patch::Number { at: self.template.len(), width, value });
        self.template.resize(self.template.len() + width, 0);
    }

    /// Adds a `numeric` with `digits` after the point: its digits in groups of four, the weight of
    /// the first one, the sign, and the scale (PostgreSQL's `numeric_recv`, which takes groups of
    /// zeros).
    fn decimal(&mut self, value: Number, digits: u32) {
        let fraction = digits.div_ceil(GROUP);
        let groups = WHOLE_GROUPS + fraction as usize;
        push_length(&mut self.template, 8 + 2 * groups);
        let head = [groups as u16, WHOLE_GROUPS as u16 - 1, 0, digits as u16];
        self.template.extend(head.iter().flat_map(|word| word.to_be_bytes()));
        let unit = 10_i64.pow(fraction * GROUP - digits);
        self.patches.push(Patch::Decimal { at: self.template.len(), groups, unit, value });
        self.template.resize(self.template.len() + 2 * groups, 0);
    }
}

/// Returns the name of `integers`, the numbers for `rows` rows, and the lowest and the highest one.
pub(super) fn number(
    integers: &Integers,
    column: &Column<'_>,
    rows: u64,
) -> (&'static str, Number, (i64, i64)) {
    let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let draw = column.draw();
    match integers {
        Integers::Counter { every, cycle, from } => {
            let groups = (rows.max(1) - 1) / *every;
            let cycle = cycle.map_or(0, NonZeroU64::get);
            let last = if cycle > 0 { groups.min(cycle - 1) } else { groups };
            let value = match (every.get(), cycle) {
                (1, 0) => Number::Row(from.wrapping_sub(1)),
                _ => Number::Counter(*every, cycle, *from),
            };
            ("a counter", value, (*from, from.saturating_add(whole(last))))
        }
        Integers::Permutation(of) => {
            let value = Number::Permutation(Permutation::new(draw, *of));
            ("permutation", value, (1, whole(of.get())))
        }
        Integers::Uniform { low, high } => {
            ("uniform", Number::Drawn(draw, *low, span(*low, *high)), (*low, *high))
        }
        Integers::NonUniform { mask, low, high, shift } => {
            let numbers = span(*low, *high).saturating_add(1);
            let value =
                Number::NonUniform(draw, u64::from(*mask), u64::from(*shift), *low, numbers);
            ("non_uniform", value, (*low, *high))
        }
        Integers::Children(families) => {
            let range = (families.least.into(), families.most.into());
            ("children", Number::Children(column.drawn(families)), range)
        }
        Integers::ChildNumber(families) => {
            let range = (1, families.most.into());
            ("child_number", Number::Sibling(column.drawn(families)), range)
        }
        Integers::OfParent(families, other) => {
            let (_, value, range) = number(other, column, families.most_parents(rows));
            ("of_parent", Number::OfParent(column.drawn(families), Box::new(value)), range)
        }
    }
}

/// Writes `value` into `digits`, groups of four decimal digits, the last ones last.
fn write_groups(mut value: u64, digits: &mut [u8]) {
    const BASE: u64 = 10_000;
    for group in digits.chunks_exact_mut(2).rev() {
        group.copy_from_slice(&((value % BASE) as u16).to_be_bytes());
        value /= BASE;
    }
}

fn span(low: i64, high: i64) -> u64 {
    high.wrapping_sub(low).cast_unsigned()
}
