//! Columns as a `workload.toml` has them.

mod json;

use std::num::NonZeroU64;

use pgdyno_engine::copy::{Families, Generator, Integers, Place, Varying};
use pgdyno_model::units::Span;
use serde::Deserialize;
use thiserror::Error;

use crate::column_spec::{ColumnSpec, Values};

/// Most digits after the point of a decimal fraction.
const MOST_DIGITS: u8 = 6;
/// A decimal fraction lies below it.
const DECIMAL_END: f64 = 1e12;
/// Most digits that are spelled.
const MOST_SPELLED: u32 = 18;

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
    every: Option<Span>,
    to: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArrayTable {
    length: (u32, u32),
    of: Box<ColumnTable>,
}

/// Ways to make whole numbers.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct IntegersTable {
    row_number: bool,
    group_of: Option<NonZeroU64>,
    counter: Option<CounterTable>,
    permutation: Option<NonZeroU64>,
    uniform: Option<(i64, i64)>,
    non_uniform: Option<NonUniformTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NonUniformTable {
    mask: u32,
    from: i64,
    to: i64,
    #[serde(default)]
    shift: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DigitsTable {
    count: u32,
    #[serde(default)]
    after: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WithinTable {
    text: String,
    share: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpelledTable {
    words: [String; 10],
    digits: u32,
    number: IntegersTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstTable {
    rows: u64,
    of: NonZeroU64,
    /// Whether parents are counted, and not rows.
    #[serde(default)]
    parents: bool,
    value: Option<Box<ColumnTable>>,
}

/// A column; without a name within another one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ColumnTable {
    #[serde(default)]
    name: String,
    #[serde(default)]
    row_number: bool,
    group_of: Option<NonZeroU64>,
    counter: Option<CounterTable>,
    permutation: Option<NonZeroU64>,
    uniform: Option<(i64, i64)>,
    non_uniform: Option<NonUniformTable>,
    children: Option<(u32, u32)>,
    #[serde(default)]
    child_number: bool,
    of_parent: Option<IntegersTable>,
    decimal: Option<DecimalTable>,
    constant: Option<String>,
    choice: Option<Vec<String>>,
    weights: Option<Vec<u32>>,
    filler: Option<u32>,
    letters: Option<(u32, u32)>,
    within: Option<WithinTable>,
    digits: Option<DigitsTable>,
    spelled: Option<SpelledTable>,
    text: Option<String>,
    timestamp: Option<TimestampTable>,
    references: Option<String>,
    array: Option<ArrayTable>,
    json: Option<Vec<ColumnTable>>,
    first: Option<FirstTable>,
    #[serde(default)]
    null: f64,
}

/// The table whose column is read.
pub(crate) struct TableContext<'a> {
    /// Name of the table.
    pub(crate) name: &'a str,
    /// Families whose children its rows are, if they are.
    pub(crate) families: Option<&'a Families>,
}

/// A column that cannot be filled as it is described.
#[derive(Debug, Error)]
pub(crate) enum ColumnError {
    #[error("a column has no name")]
    Nameless,
    #[error("column `{name}`: there is no number from {low} to {high}")]
    EmptyRange { name: String, low: i64, high: i64 },
    #[error("column `{name}`: `{what}` is {share}; it is the share of rows, from 0 to 1")]
    Share { name: String, what: &'static str, share: f64 },
    #[error(
        "column `{name}`: a `decimal` goes from 0 or more to below 1e12, with up to {MOST_DIGITS} \
         digits after the point"
    )]
    Decimal { name: String },
    #[error("column `{name}`: `weights` are one for each `choice`, and one of them is above 0")]
    Weights { name: String },
    #[error("column `{name}`: `within` is for `letters`, all of which have room for its text")]
    Within { name: String },
    #[error("column `{name}`: 1 to {MOST_SPELLED} digits are spelled")]
    Spelled { name: String },
    #[error("column `{name}`: {wrong}")]
    Families { name: String, wrong: String },
    #[error(
        "column `{name}`: a `timestamp` goes on by `every` from row to row, or is drawn up to `to`"
    )]
    Timestamp { name: String },
    #[error("column `{name}`: an array has 0 to {} elements", Varying::MOST_ELEMENTS)]
    Array { name: String },
    #[error(
        "member `{name}` of json: it is a whole number, a `decimal`, `letters`, a `choice`, a \
         `constant`, or `json`"
    )]
    Json { name: String },
    #[error("column `{name}`: its table is not `children_of` another one")]
    NoParents { name: String },
    #[error(
        "column `{name}` needs exactly one of row_number, group_of, counter, permutation, uniform, \
         non_uniform, children, child_number, of_parent, decimal, constant, choice, filler, \
         letters, digits, spelled, text, timestamp, references, array, json"
    )]
    NotOneWay { name: String },
}

impl IntegersTable {
    /// Returns all ways that are given.
    fn ways(self, name: &str) -> Result<Vec<Integers>, ColumnError> {
        let counter = |counter: CounterTable| {
            let CounterTable { every, cycle, from } = counter;
            Integers::Counter { every, cycle, from }
        };
        let group = self.group_of.map(|every| CounterTable { every, ..CounterTable::default() });
        let row = self.row_number.then(CounterTable::default);
        let counters = row.into_iter().chain(group).chain(self.counter).map(counter);
        let permutation = self.permutation.map(Integers::Permutation);
        let uniform = self.uniform.map(|(low, high)| {
            range(name, low, high)?;
            Ok(Integers::Uniform { low, high })
        });
        let non_uniform = self.non_uniform.map(|table| {
            let NonUniformTable { mask, from: low, to: high, shift } = table;
            range(name, low.max(-1), high)?;
            range(name, 0, low)?;
            Ok(Integers::NonUniform { mask, low, high, shift })
        });
        let sure = counters.chain(permutation).map(Ok);
        sure.chain(uniform).chain(non_uniform).collect()
    }

    fn one(self, name: &str) -> Result<Integers, ColumnError> {
        let ways = <[Integers; 1]>::try_from(self.ways(name)?);
        let [only] = ways.map_err(|_| ColumnError::NotOneWay { name: name.to_owned() })?;
        Ok(only)
    }
}

impl ColumnTable {
    /// Returns the column of the table that `context` tells.
    pub(crate) fn into_spec(self, context: &TableContext<'_>) -> Result<ColumnSpec, ColumnError> {
        let (name, null) = (self.name.clone(), self.null);
        if name.is_empty() {
            return Err(ColumnError::Nameless);
        }
        share(&name, "null", null)?;
        Ok(ColumnSpec { values: self.into_values(&name, context)?, name, null })
    }

    /// Returns the one way in which values are made.
    fn into_values(
        mut self,
        name: &str,
        context: &TableContext<'_>,
    ) -> Result<Values, ColumnError> {
        let first = self.first.take();
        let mut ways = self.ways(name, context)?;
        let rest = ways.pop();
        if !ways.is_empty() {
            return Err(ColumnError::NotOneWay { name: name.to_owned() });
        }
        let Some(FirstTable { rows, of, parents, value }) = first else {
            return rest.ok_or_else(|| ColumnError::NotOneWay { name: name.to_owned() });
        };
        let families = match parents {
            true => Some(parents_of(name, context)?.clone()),
            false => None,
        };
        let first = value.map(|value| value.into_values(name, context)).transpose()?;
        Ok(Values::First {
            place: Place { rows, of, families },
            first: first.map(Box::new),
            rest: rest.map(Box::new),
        })
    }

    /// Returns all ways that are given.
    fn ways(self, name: &str, context: &TableContext<'_>) -> Result<Vec<Values>, ColumnError> {
        if self.choice.is_none() && self.weights.is_some() {
            return Err(ColumnError::Weights { name: name.to_owned() });
        }
        if self.letters.is_none() && self.within.is_some() {
            return Err(ColumnError::Within { name: name.to_owned() });
        }
        let integers = IntegersTable {
            row_number: false,
            group_of: self.group_of,
            counter: self.counter,
            permutation: self.permutation,
            uniform: self.uniform,
            non_uniform: self.non_uniform,
        };
        let mut integers = integers.ways(name)?;
        if let Some((least, most)) = self.children {
            let families = families(context.name, least, most)
                .map_err(|wrong| ColumnError::Families { name: name.to_owned(), wrong })?;
            integers.push(Integers::Children(families));
        }
        if self.child_number {
            integers.push(Integers::ChildNumber(parents_of(name, context)?.clone()));
        }
        if let Some(of_parent) = self.of_parent {
            let families = parents_of(name, context)?.clone();
            integers.push(Integers::OfParent(families, Box::new(of_parent.one(name)?)));
        }
        let decimal = self.decimal.map(|decimal| decimal.into_generator(name)).transpose()?;
        let choice = self.choice.map(|values| choice(name, values, self.weights)).transpose()?;
        let letters = self.letters.map(|range| letters(name, range, self.within)).transpose()?;
        let spelled = self.spelled.map(|spelled| spelled.into_generator(name)).transpose()?;
        let digits =
            self.digits.map(|DigitsTable { count, after }| Generator::Digits { count, after });
        let json = self.json.map(|members| json::object(members, context)).transpose()?;
        let json = json.map(|members| Generator::Varying(Varying::Json(members)));
        let generators = integers.into_iter().map(Generator::Integer);
        let generators = generators.chain(decimal).chain(letters).chain(spelled).chain(digits);
        let generators = generators.chain(json);
        let others = [
            self.row_number.then_some(Values::RowNumber),
            self.constant.map(Values::Constant),
            choice,
            self.filler.map(Values::Filler),
            self.text.map(text),
            self.timestamp.map(|timestamp| timestamp.into_values(name)).transpose()?,
            self.references.map(Values::References),
            self.array.map(|array| array.into_values(name, context)).transpose()?,
        ];
        Ok(generators.map(Values::Generated).chain(others.into_iter().flatten()).collect())
    }
}

impl TimestampTable {
    fn into_values(self, name: &str) -> Result<Values, ColumnError> {
        match (self.every, self.to) {
            (Some(every), None) => Ok(Values::Timestamp(self.from, every.0)),
            (None, Some(to)) => Ok(Values::Between(self.from, to)),
            _ => Err(ColumnError::Timestamp { name: name.to_owned() }),
        }
    }
}

impl ArrayTable {
    fn into_values(self, name: &str, context: &TableContext<'_>) -> Result<Values, ColumnError> {
        let (least, most) = self.length;
        range(name, least.into(), most.into())?;
        if most > Varying::MOST_ELEMENTS {
            return Err(ColumnError::Array { name: name.to_owned() });
        }
        let null = self.of.null;
        share(name, "of.null", null)?;
        let values = Box::new(self.of.into_values(name, context)?);
        Ok(Values::Array { least, most, values, null })
    }
}

impl SpelledTable {
    fn into_generator(self, name: &str) -> Result<Generator, ColumnError> {
        let Self { words, digits, number } = self;
        if !(1..=MOST_SPELLED).contains(&digits) {
            return Err(ColumnError::Spelled { name: name.to_owned() });
        }
        let number = number.one(name)?;
        Ok(Generator::Varying(Varying::Spelled { number, digits, words: Box::new(words) }))
    }
}

/// Returns the families of `parents` with `least` to `most` children, or the error in them.
pub(crate) fn families(parents: &str, least: u32, most: u32) -> Result<Families, String> {
    use pgdyno_engine::copy::MOST_CHILDREN;
    if least > most || !(1..=MOST_CHILDREN).contains(&most) {
        return Err(format!(
            "a row has no {least} to {most} children: the most is 1 to {MOST_CHILDREN}, and not \
             below the least"
        ));
    }
    Ok(Families { parents: parents.to_owned(), least, most })
}

/// Returns the families whose children the table's rows are.
fn parents_of<'a>(name: &str, context: &TableContext<'a>) -> Result<&'a Families, ColumnError> {
    context.families.ok_or_else(|| ColumnError::NoParents { name: name.to_owned() })
}

/// Checks that there is a number from `low` to `high`.
fn range(name: &str, low: i64, high: i64) -> Result<(), ColumnError> {
    match low <= high {
        true => Ok(()),
        false => Err(ColumnError::EmptyRange { name: name.to_owned(), low, high }),
    }
}

/// Checks that `share`, which the file calls `what`, is one.
fn share(name: &str, what: &'static str, share: f64) -> Result<(), ColumnError> {
    match (0.0..=1.0).contains(&share) {
        true => Ok(()),
        false => Err(ColumnError::Share { name: name.to_owned(), what, share }),
    }
}

/// Returns letters of a length in a range, with a text within some of them.
fn letters(
    name: &str,
    (least, most): (u32, u32),
    within: Option<WithinTable>,
) -> Result<Generator, ColumnError> {
    range(name, least.into(), most.into())?;
    if let Some(WithinTable { text, share: of }) = &within {
        share(name, "within.share", *of)?;
        if text.len() > least as usize {
            return Err(ColumnError::Within { name: name.to_owned() });
        }
    }
    let within = within.map(|within| (within.text, within.share));
    Ok(Generator::Varying(Varying::Letters { least, most, within }))
}

impl DecimalTable {
    fn into_generator(self, name: &str) -> Result<Generator, ColumnError> {
        let Self { from, to, digits } = self;
        let holds = |value: f64| (0.0..DECIMAL_END).contains(&value);
        if digits > MOST_DIGITS || !holds(from) || !holds(to) {
            return Err(ColumnError::Decimal { name: name.to_owned() });
        }
        let units = |value: f64| (value * 10_f64.powi(digits.into())).round() as i64;
        let (low, high) = (units(from), units(to));
        range(name, low, high)?;
        Ok(Generator::Decimal { low, high, digits })
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
mod tests;
