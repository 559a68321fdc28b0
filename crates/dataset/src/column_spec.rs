//! Columns of a workload's tables: how a `workload.toml` says that they are filled.

use std::num::NonZeroU64;

use pgdyno_engine::copy::{Generator, Integers, Varying};
use pgdyno_model::units::Span;
use serde::Deserialize;
use thiserror::Error;

/// Most digits after the point of a decimal fraction.
const MOST_DIGITS: u8 = 6;
/// A decimal fraction lies below it.
const DECIMAL_END: f64 = 1e12;

/// One column, and how its values are made.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "ColumnTable")]
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
}

/// Counting of groups of rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CounterTable {
    every: NonZeroU64,
    cycle: Option<NonZeroU64>,
    from: i64,
}

impl Default for CounterTable {
    fn default() -> Self {
        Self { every: NonZeroU64::MIN, cycle: None, from: 1 }
    }
}

impl CounterTable {
    fn into_generator(self) -> Generator {
        let Self { every, cycle, from } = self;
        Generator::Integer(Integers::Counter { every, cycle, from })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnTable {
    name: String,
    #[serde(default)]
    row_number: bool,
    group_of: Option<NonZeroU64>,
    counter: Option<CounterTable>,
    permutation: Option<NonZeroU64>,
    uniform: Option<(i64, i64)>,
    decimal: Option<DecimalTable>,
    constant: Option<String>,
    choice: Option<Vec<String>>,
    weights: Option<Vec<u32>>,
    filler: Option<u32>,
    letters: Option<(u32, u32)>,
    text: Option<String>,
    timestamp: Option<TimestampTable>,
    #[serde(default)]
    null: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DecimalTable {
    from: f64,
    to: f64,
    digits: u8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TimestampTable {
    from: String,
    every: Span,
}

/// A column that cannot be filled as it is described.
#[derive(Debug, Error)]
enum ColumnError {
    #[error("column `{name}`: there is no number from {low} to {high}")]
    EmptyRange { name: String, low: i64, high: i64 },
    #[error("column `{name}`: `null` is {share}; it is the share of rows, from 0 to 1")]
    NullShare { name: String, share: f64 },
    #[error(
        "column `{name}`: a `decimal` goes from 0 or more to below 1e12, with up to {MOST_DIGITS} \
         digits after the point"
    )]
    Decimal { name: String },
    #[error("column `{name}`: `weights` are one for each `choice`, and one of them is above 0")]
    Weights { name: String },
    #[error(
        "column `{name}` needs exactly one of row_number, group_of, counter, permutation, uniform, \
         decimal, constant, choice, filler, letters, text, timestamp"
    )]
    NotOneWay { name: String },
}

impl TryFrom<ColumnTable> for ColumnSpec {
    type Error = ColumnError;
    fn try_from(table: ColumnTable) -> Result<Self, ColumnError> {
        let (name, null) = (table.name.clone(), table.null);
        if !(0.0..=1.0).contains(&null) {
            return Err(ColumnError::NullShare { name, share: null });
        }
        Ok(Self { values: table.into_values()?, name, null })
    }
}

impl ColumnTable {
    /// Returns the one way in which values are made.
    fn into_values(self) -> Result<Values, ColumnError> {
        let name = self.name;
        let range = |low: i64, high: i64| match low <= high {
            true => Ok(()),
            false => Err(ColumnError::EmptyRange { name: name.clone(), low, high }),
        };
        if let Some((low, high)) = self.uniform {
            range(low, high)?;
        }
        if let Some((least, most)) = self.letters {
            range(least.into(), most.into())?;
        }
        let decimal = self.decimal.map(|decimal| decimal.into_units(&name)).transpose()?;
        if let Some((low, high, _)) = decimal {
            range(low, high)?;
        }
        if self.choice.is_none() && self.weights.is_some() {
            return Err(ColumnError::Weights { name });
        }
        let choice = self.choice.map(|values| choice(&name, values, self.weights)).transpose()?;
        let group = self.group_of.map(|every| CounterTable { every, ..CounterTable::default() });
        let integers = |integers| Values::Generated(Generator::Integer(integers));
        let ways: Vec<Values> = [
            self.row_number.then_some(Values::RowNumber),
            group.map(|counter| Values::Generated(counter.into_generator())),
            self.counter.map(|counter| Values::Generated(counter.into_generator())),
            self.permutation.map(|of| integers(Integers::Permutation(of))),
            self.uniform.map(|(low, high)| integers(Integers::Uniform { low, high })),
            decimal.map(|(low, high, digits)| {
                Values::Generated(Generator::Decimal { low, high, digits })
            }),
            self.constant.map(Values::Constant),
            choice,
            self.filler.map(Values::Filler),
            self.letters.map(|(least, most)| {
                Values::Generated(Generator::Varying(Varying::Letters { least, most }))
            }),
            self.text.map(text),
            self.timestamp.map(|t| Values::Timestamp(t.from, t.every.0)),
        ]
        .into_iter()
        .flatten()
        .collect();
        match <[Values; 1]>::try_from(ways) {
            Ok([values]) => Ok(values),
            Err(_) => Err(ColumnError::NotOneWay { name }),
        }
    }
}

impl DecimalTable {
    /// Returns both ends in units of the last digit, and the digits.
    fn into_units(self, name: &str) -> Result<(i64, i64, u8), ColumnError> {
        let Self { from, to, digits } = self;
        let holds = |value: f64| (0.0..DECIMAL_END).contains(&value);
        if digits > MOST_DIGITS || !holds(from) || !holds(to) {
            return Err(ColumnError::Decimal { name: name.to_owned() });
        }
        let units = |value: f64| (value * 10_f64.powi(digits.into())).round() as i64;
        Ok((units(from), units(to), digits))
    }
}

/// Returns a choice of `values`; without weights each is as likely as any other.
fn choice(
    name: &str,
    values: Vec<String>,
    weights: Option<Vec<u32>>,
) -> Result<Values, ColumnError> {
    let weights = weights.unwrap_or_else(|| vec![1; values.len()]);
    if weights.len() != values.len() || weights.iter().all(|weight| *weight == 0) {
        return Err(ColumnError::Weights { name: name.to_owned() });
    }
    Ok(Values::Choice(weights.into_iter().zip(values).collect()))
}

/// Returns text with the row's number in the place of `{row}`.
fn text(text: String) -> Values {
    match text.split_once("{row}") {
        Some((before, after)) => {
            let (before, after) = (before.to_owned(), after.to_owned());
            Values::Generated(Generator::Varying(Varying::Numbered { before, after }))
        }
        None => Values::Constant(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(line: &str) -> Result<ColumnSpec, toml::de::Error> {
        toml::from_str(&format!("name = \"x\"\n{line}"))
    }

    #[test]
    fn a_column_has_one_way_to_be_filled() {
        let values = |line: &str| column(line).unwrap().values;
        let every = |n| NonZeroU64::new(n).unwrap();
        let counter = |every, cycle, from| {
            Values::Generated(Generator::Integer(Integers::Counter { every, cycle, from }))
        };
        assert_eq!(values("group_of = 10"), counter(every(10), None, 1));
        assert_eq!(
            values("counter = { cycle = 3, from = 0 }"),
            counter(every(1), Some(every(3)), 0)
        );
        assert_eq!(
            values("decimal = { from = 0.29, to = 9_999.99, digits = 2 }"),
            Values::Generated(Generator::Decimal { low: 29, high: 999_999, digits: 2 })
        );
        assert_eq!(
            values("choice = [\"a\", \"b\"]\nweights = [9, 1]"),
            Values::Choice(vec![(9, "a".into()), (1, "b".into())])
        );
        let numbered = Varying::Numbered { before: "a".into(), after: "b".into() };
        assert_eq!(values("text = \"a{row}b\""), Values::Generated(Generator::Varying(numbered)));
        assert_eq!(values("text = \"ab\""), Values::Constant("ab".into()));
        assert_eq!(column("letters = [1, 2]\nnull = 0.5").unwrap().null, 0.5);
    }

    #[test]
    fn what_cannot_be_filled_is_refused() {
        for (line, words) in [
            ("", "needs exactly one"),
            ("row_number = true\nuniform = [1, 2]", "needs exactly one"),
            ("uniform = [2, 1]", "no number from 2 to 1"),
            ("letters = [2, 1]", "no number from 2 to 1"),
            ("decimal = { from = 2, to = 1, digits = 0 }", "no number from 2 to 1"),
            ("decimal = { from = -1, to = 1, digits = 0 }", "0 or more"),
            ("decimal = { from = 0, to = 1, digits = 7 }", "up to 6"),
            ("choice = [\"a\"]\nweights = [1, 2]", "one for each"),
            ("choice = [\"a\"]\nweights = [0]", "above 0"),
            ("choice = []", "above 0"),
            ("filler = 1\nweights = [1]", "one for each"),
            ("filler = 1\nnull = 1.5", "from 0 to 1"),
        ] {
            let error = column(line).unwrap_err().to_string();
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
