//! Generators of columns' values, and the formats that they fill.

use std::num::NonZeroU64;
use std::ops::RangeInclusive;

use thiserror::Error;

use super::family::Families;

/// Generator of a column's values.
#[derive(Clone, Debug, PartialEq)]
pub enum Generator {
    /// Whole numbers.
    Integer(Integers),
    /// Decimal fractions drawn uniformly from `low..=high`, in units of the last digit.
    Decimal {
        /// Lowest number of units, 0 or more.
        low: i64,
        /// Highest number of units.
        high: i64,
        /// Digits after the point.
        digits: u8,
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
    /// Decimal digits, so many, drawn evenly, and text behind them.
    Digits {
        /// Digits (count).
        count: u32,
        /// Text behind them.
        after: String,
    },
    /// Timestamps at equal steps.
    Moment {
        /// Timestamp of the first row (microseconds since 2000-01-01, as PostgreSQL counts).
        from_us: i64,
        /// Step from row to row (microseconds).
        step_us: i64,
    },
    /// Days of timestamps at equal steps.
    Day {
        /// Day of the first row (days since 2000-01-01, as PostgreSQL counts).
        from: i64,
        /// Step from row to row (microseconds).
        step_us: i64,
    },
    /// Days or timestamps drawn uniformly from `low..=high`, as PostgreSQL counts those.
    Time {
        /// Lowest.
        low: i64,
        /// Highest.
        high: i64,
    },
    /// Values whose sizes differ.
    Varying(Varying),
}

/// Generator of whole numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Integers {
    /// Number of the group of `every` rows that the row is in: `from` for the first one, and after
    /// `cycle` groups `from` again.
    Counter {
        /// Rows of a group (count).
        every: NonZeroU64,
        /// Groups after which numbers begin anew; none if they never do.
        cycle: Option<NonZeroU64>,
        /// Number of the first group.
        from: i64,
    },
    /// Numbers from 1 to this, in each block of so many rows each once, in a drawn order.
    Permutation(NonZeroU64),
    /// Numbers drawn uniformly from `low..=high`.
    Uniform {
        /// Lowest number.
        low: i64,
        /// Highest number.
        high: i64,
    },
    /// Numbers from `low..=high`, of which some are much likelier than others: `((A | B) + shift) %
    /// (high - low + 1) + low` for A drawn uniformly from `0..=mask` and B from `low..=high` (TPC
    /// Benchmark C 5.11, 2.1.6).
    NonUniform {
        /// Highest number of A.
        mask: u32,
        /// Lowest number.
        low: i64,
        /// Highest number.
        high: i64,
        /// Number that is added.
        shift: u32,
    },
    /// Children of the row (count).
    Children(Families),
    /// The row's number among its siblings, from 1.
    ChildNumber(Families),
    /// Numbers of the row's parent.
    OfParent(Families, Box<Integers>),
}

/// The first rows of each so many: `rows` of `of`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Rows that belong to it (count).
    pub rows: u64,
    /// Rows after which it begins anew (count).
    pub of: NonZeroU64,
    /// Families whose parents are counted; none: the rows themselves.
    pub families: Option<Families>,
}

/// Generator of values whose sizes differ.
#[derive(Clone, Debug, PartialEq)]
pub enum Varying {
    /// One of some values, as the type's send function writes them, each with its weight.
    Choice(Vec<(u32, Vec<u8>)>),
    /// Text of letters and digits of a drawn length.
    Letters {
        /// Least length (bytes).
        least: u32,
        /// Greatest length (bytes).
        most: u32,
        /// Text that stands at a drawn place within a share of the values; the share (0 to 1).
        within: Option<(String, f64)>,
    },
    /// Words for the decimal digits of a number.
    Spelled {
        /// Number.
        number: Integers,
        /// Digits that are spelled, the last ones (count).
        digits: u32,
        /// Words for 0 to 9.
        words: Box<[String; 10]>,
    },
    /// A value of one generator at a place, and of another elsewhere; null where there is none.
    First {
        /// Place.
        place: Place,
        /// Generator at the place.
        first: Option<Box<Generator>>,
        /// Generator elsewhere.
        rest: Option<Box<Generator>>,
    },
    /// Text with the row's number in it.
    Numbered {
        /// Text before the number.
        before: String,
        /// Text after the number.
        after: String,
    },
    /// Arrays of so many elements, drawn evenly.
    Array {
        /// Least elements (count).
        least: u32,
        /// Most elements, at most [`Varying::MOST_ELEMENTS`] (count).
        most: u32,
        /// Type of the elements, by its number in `pg_type`.
        oid: u32,
        /// Generator of the elements.
        element: Box<Generator>,
    },
    /// JSON objects.
    Json(Vec<JsonMember>),
    /// Null in a share of rows, else a value of another generator.
    Nullable {
        /// Share of rows (0 to 1).
        share: f64,
        /// Generator of the other rows' values.
        other: Box<Generator>,
    },
}

impl Varying {
    /// Most elements of an array (count).
    pub const MOST_ELEMENTS: u32 = 1000;
}

/// Member of a JSON object.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonMember {
    /// Name, as JSON spells it: in quotes.
    pub name: String,
    /// Generator of its value.
    pub value: JsonValue,
    /// Share of objects in which it is null instead (0 to 1).
    pub null: f64,
}

/// Generator of a value within JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonValue {
    /// Whole numbers.
    Integer(Integers),
    /// Decimal fractions, as those of [`Generator::Decimal`].
    Decimal {
        /// Lowest number of units.
        low: i64,
        /// Highest number of units.
        high: i64,
        /// Digits after the point.
        digits: u8,
    },
    /// Text of letters and digits of a drawn length.
    Letters {
        /// Least length (bytes).
        least: u32,
        /// Greatest length (bytes).
        most: u32,
    },
    /// One of some values, as JSON spells them, each with its weight.
    Choice(Vec<(u32, String)>),
    /// An object.
    Object(Vec<JsonMember>),
}

impl Generator {
    /// Number of the row, from 1.
    pub const ROW_NUMBER: Self =
        Self::Integer(Integers::Counter { every: NonZeroU64::MIN, cycle: None, from: 1 });
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
    /// `numeric`.
    Numeric,
    /// `text`, `varchar`, `char(n)`.
    Text,
    /// `timestamp`, with time zone or without.
    Timestamp,
    /// `date`.
    Date,
    /// `json`.
    Json,
    /// `jsonb`.
    Jsonb,
    /// `uuid`. Whole numbers fill it ([`uuid_of`]).
    Uuid,
    /// Any other type: constants and choices can fill it, for only the server knows its format, and
    /// arrays.
    Other,
}

impl ColumnKind {
    /// Returns the kind of the type with `oid` in `pg_type`.
    pub fn from_oid(oid: u32) -> Self {
        match oid {
            21 => Self::Int2,
            23 => Self::Int4,
            20 => Self::Int8,
            1700 => Self::Numeric,
            25 | 1042 | 1043 => Self::Text,
            1114 | 1184 => Self::Timestamp,
            1082 => Self::Date,
            114 => Self::Json,
            3802 => Self::Jsonb,
            2950 => Self::Uuid,
            _ => Self::Other,
        }
    }

    /// Returns the range of a type that whole numbers fill.
    pub(super) fn integers(self) -> Option<RangeInclusive<i64>> {
        match self {
            Self::Int2 => Some(i16::MIN.into()..=i16::MAX.into()),
            Self::Int4 => Some(i32::MIN.into()..=i32::MAX.into()),
            Self::Int8 => Some(i64::MIN..=i64::MAX),
            Self::Uuid => Some(0..=i64::MAX),
            _ => None,
        }
    }

    /// Returns the size of a value (bytes).
    pub(super) fn width(self) -> usize {
        match self {
            Self::Int2 => 2,
            Self::Int4 | Self::Date => 4,
            _ => 8,
        }
    }
}

/// Returns the UUID that stands for a whole number: its 16 hexadecimal digits in reverse order, so
/// that neighbours are far apart as random UUIDs are, and behind them a fixed half.
pub fn uuid_of(number: u64) -> [u8; 16] {
    let bytes = number.swap_bytes();
    let digits = (bytes & 0x0f0f_0f0f_0f0f_0f0f) << 4 | (bytes >> 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&digits.to_be_bytes());
    uuid[8] = 0x80;
    uuid
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
