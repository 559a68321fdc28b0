//! Statistics to generators: how each column of a captured table is filled.

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_engine::copy::uuid_of;

use crate::catalog::{Column, Family, Table};
use crate::document::{Omission, Part};

/// Most values of a choice.
const CHOICE: u64 = 1000;
/// Most bytes of a choice's values.
const CHOICE_BYTES: u64 = 50_000;
/// Widest text whose values statements are likely to ask for (bytes).
const NARROW: u32 = 50;
/// From this correlation on, values follow the physical order.
const ORDERED: f64 = 0.9;

/// How a column is filled. All values are made up.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Filling {
    RowNumber,
    /// Row number of another table, of so many rows.
    References(String, u64),
    /// Numbers of groups of rows; after so many groups from 1 again.
    Counter {
        every: u64,
        cycle: Option<u64>,
    },
    Permutation(u64),
    /// Row number behind a text.
    Numbered(String),
    Letters(u32, u32),
    /// Value 1, 2 … with its weight.
    Choice(Vec<u32>),
    /// From 0 to this.
    Decimal(u64),
    /// Times from a day on, so many seconds long; from row to row where they follow the order.
    Times {
        from: String,
        to: String,
        span_s: u64,
        is_ordered: bool,
    },
    /// Object with so many letters.
    Json(u32),
    /// Null in all rows.
    Nothing,
}

/// A captured table's columns.
#[derive(Clone, Debug)]
pub(crate) struct Filled {
    /// Columns that are filled, in order.
    pub(crate) columns: BTreeMap<String, Filling>,
    /// Columns whose values are all unlike: a new row needs a new value.
    pub(crate) fresh: BTreeSet<String>,
    /// Indexes and foreign keys that hold of the rows, by name.
    pub(crate) kept: BTreeSet<String>,
    pub(crate) omissions: Vec<Omission>,
}

/// Decides how `table` is filled. `parents` are the captured tables.
pub(crate) fn fill(table: &Table, parents: &BTreeMap<String, Table>, before: &[String]) -> Filled {
    let mut filled = Filled {
        columns: BTreeMap::new(),
        fresh: BTreeSet::new(),
        kept: BTreeSet::new(),
        omissions: Vec::new(),
    };
    fill_keys(table, &mut filled);
    fill_references(table, parents, before, &mut filled);
    for index in table.indexes.iter().filter(|index| !index.is_unique) {
        match index.has_expressions {
            true => filled.omit(table, &index.name, Part::IndexExpression),
            false => drop(filled.kept.insert(index.name.clone())),
        }
    }
    let is_known = |column: &Column| column.statistics.is_known;
    if table.rows > 0 && !table.columns.iter().any(is_known) {
        filled.omit(table, "*", Part::Statistics);
    }
    for name in &table.left_out {
        filled.omit(table, name, Part::Check);
    }
    for column in &table.columns {
        if !filled.columns.contains_key(&column.name) {
            let filling = plain(column, table.rows);
            let counted: f64 = column.statistics.frequencies.iter().sum();
            if matches!(filling, Filling::Permutation(_)) && counted > 0.5 {
                filled.omit(table, &column.name, Part::Frequencies);
            }
            filled.columns.insert(column.name.clone(), filling);
        }
    }
    filled
}

impl Filled {
    fn omit(&mut self, table: &Table, name: &str, part: Part) {
        self.omissions.push(Omission { table: table.name.clone(), name: name.to_owned(), part });
    }
}

/// Whether whole numbers fill `column`.
fn is_of_numbers(column: &Column) -> bool {
    matches!(column.family, Family::Integer(_) | Family::Uuid)
}

/// Whether rows of `table` are known by their number in `column`.
pub(crate) fn is_numbered(table: &Table, column: &str) -> bool {
    let is_key =
        |i: &&crate::catalog::Index| i.is_unique && !i.has_expressions && i.columns == [column];
    table.indexes.iter().any(|index| is_key(&index))
        && table
            .column(column)
            .is_some_and(|column| is_of_numbers(column) && column.statistics.nulls == 0.0)
}

/// Fills columns of unique indexes without repetition.
fn fill_keys(table: &Table, filled: &mut Filled) {
    let mut keys: Vec<_> = table.indexes.iter().filter(|index| index.is_unique).collect();
    keys.sort_by_key(|index| (index.columns.len(), !index.is_primary));
    for key in keys {
        let columns: Option<Vec<&Column>> =
            key.columns.iter().map(|name| table.column(name)).collect();
        let columns = columns.filter(|columns| !key.has_expressions && !columns.is_empty());
        let is_unique = columns.is_some_and(|columns| fill_key(table, &columns, filled));
        match is_unique {
            true => drop(filled.kept.insert(key.name.clone())),
            false => filled.omit(table, &key.name, Part::UniqueIndex),
        }
    }
}

/// Fills the columns of a key. Returns whether no two rows are alike in them.
fn fill_key(table: &Table, columns: &[&Column], filled: &mut Filled) -> bool {
    if columns.iter().any(|column| filled.fresh.contains(&column.name)) {
        return true;
    }
    let is_free = |column: &&&Column| !filled.columns.contains_key(&column.name);
    let are_of_numbers = columns.iter().all(|column| is_of_numbers(column));
    if let [column] = columns
        && is_of_numbers(column)
    {
        filled.columns.insert(column.name.clone(), Filling::RowNumber);
        filled.fresh.insert(column.name.clone());
        return true;
    }
    let text = columns.iter().find(|column| matches!(column.family, Family::Text(_)));
    let numbered = text
        .filter(is_free)
        .and_then(|column| numbered(column, table.rows).map(|numbered| (column, numbered)));
    if let Some((column, numbered)) = numbered {
        filled.columns.insert(column.name.clone(), numbered);
        filled.fresh.insert(column.name.clone());
        return true;
    }
    if !are_of_numbers || !columns.iter().all(|column| is_free(&column)) {
        return false;
    }
    fill_combination(table, columns, filled);
    true
}

/// Fills several whole numbers, so that all rows differ: the last counts fastest. New rows differ
/// by the number that has the most room.
fn fill_combination(table: &Table, columns: &[&Column], filled: &mut Filled) {
    let rows = table.rows;
    let distinct = |column: &&Column| column.statistics.distinct.max(1);
    let firsts = columns[..columns.len() - 1].iter();
    let combinations = firsts.map(distinct).fold(1, u64::saturating_mul).min(rows.max(1));
    let mut every = 1;
    for (at, column) in columns.iter().enumerate().rev() {
        let size = match at {
            0 => None,
            _ if at == columns.len() - 1 => {
                Some(rows.div_ceil(combinations).clamp(1, room(column)))
            }
            _ => Some(distinct(column).min(room(column))),
        };
        filled.columns.insert(column.name.clone(), Filling::Counter { every, cycle: size });
        every = every.saturating_mul(size.unwrap_or(1));
    }
    // A new number is no parent's.
    let is_own =
        |column: &Column| !table.foreign_keys.iter().any(|key| key.columns.contains(&column.name));
    let rank = |column: &&&Column| (is_own(column), room(column), column.statistics.distinct);
    filled.fresh.extend(columns.iter().max_by_key(rank).map(|column| column.name.clone()));
}

/// Fills columns of foreign keys, where the parent's rows are known by a number.
fn fill_references(
    table: &Table,
    parents: &BTreeMap<String, Table>,
    before: &[String],
    filled: &mut Filled,
) {
    for key in &table.foreign_keys {
        let parent = parents.get(&key.parent);
        let is_kept = match (parent, &key.columns[..], &key.parent_columns[..]) {
            (Some(parent), [column], [of]) if is_numbered(parent, of) && parent.rows > 0 => {
                match filled.columns.get(column) {
                    None if before.contains(&parent.name) => {
                        let filling = Filling::References(parent.name.clone(), parent.rows);
                        filled.columns.insert(column.clone(), filling);
                        true
                    }
                    // A table that refers to itself, or a circle of tables.
                    None => {
                        filled.columns.insert(column.clone(), Filling::Permutation(parent.rows));
                        true
                    }
                    // New rows have numbers that are no parent's.
                    Some(_) if filled.fresh.contains(column) => false,
                    Some(filling) => most(filling, table.rows).is_some_and(|n| n <= parent.rows),
                }
            }
            (Some(parent), [_], [of]) => is_numbered(parent, of) && table.rows == 0,
            _ => false,
        };
        match is_kept {
            true => drop(filled.kept.insert(key.name.clone())),
            false => filled.omit(table, &key.name, Part::ForeignKey),
        }
    }
}

/// Returns the greatest number that `filling` gives in `rows` rows.
pub(crate) fn most(filling: &Filling, rows: u64) -> Option<u64> {
    match filling {
        Filling::RowNumber | Filling::Numbered(_) => Some(rows.max(1)),
        Filling::References(_, rows) | Filling::Permutation(rows) => Some(*rows),
        Filling::Counter { every, cycle } => {
            let groups = rows.div_ceil((*every).max(1)).max(1);
            Some(cycle.map_or(groups, |cycle| cycle.min(groups)))
        }
        Filling::Choice(weights) => Some(weights.len() as u64),
        Filling::Decimal(to) => Some(*to),
        Filling::Times { span_s, .. } => Some(*span_s),
        _ => None,
    }
}

/// Returns how a column without a key is filled.
fn plain(column: &Column, rows: u64) -> Filling {
    let statistics = &column.statistics;
    if statistics.nulls >= 1.0 {
        return Filling::Nothing;
    }
    let distinct = statistics.distinct.clamp(1, rows.max(1)).min(room(column));
    let is_ordered = statistics.correlation.abs() > ORDERED;
    let is_even =
        statistics.frequencies.first().is_none_or(|first| first * (distinct as f64) < 3.0);
    match column.family {
        Family::Integer(_) if is_ordered && is_even && distinct > 1 => {
            Filling::Counter { every: rows.div_ceil(distinct), cycle: None }
        }
        Family::Boolean => Filling::Choice(weights(statistics, distinct.min(2))),
        Family::Date | Family::Timestamp => times(column, is_ordered),
        Family::Json => Filling::Json(statistics.width.saturating_sub(12).max(1)),
        _ if distinct <= CHOICE && distinct * u64::from(statistics.width) <= CHOICE_BYTES => {
            Filling::Choice(weights(statistics, distinct))
        }
        Family::Integer(_) | Family::Uuid => Filling::Permutation(distinct),
        Family::Numeric => {
            let groups = statistics.width.saturating_sub(3) / 2;
            let digits = (groups * 4).saturating_sub(u32::from(column.scale)).clamp(1, 9);
            let digits = digits.min(column.whole_digits.unwrap_or(9));
            Filling::Decimal(10_u64.pow(digits) - 1)
        }
        Family::Text(_) if text_width(statistics.width) <= NARROW => {
            let numbered = numbered(column, rows).filter(|_| distinct > rows / 2);
            let values = distinct.min(CHOICE);
            numbered.unwrap_or_else(|| Filling::Choice(weights(statistics, values)))
        }
        Family::Text(limit) => {
            let width = text_width(statistics.width);
            let limit = limit.unwrap_or(u32::MAX);
            Filling::Letters((width / 2).clamp(1, limit), (width + width / 2).clamp(1, limit))
        }
        _ => Filling::Choice(weights(statistics, CHOICE)),
    }
}

fn times(column: &Column, is_ordered: bool) -> Filling {
    let statistics = &column.statistics;
    let months = statistics.months.clone();
    let (from, to) = months.unwrap_or_else(|| ("2000-01-01".into(), "2001-01-01".into()));
    let span_s = u64::try_from(statistics.span_s).ok().filter(|s| *s > 0).unwrap_or(366 * 86_400);
    Filling::Times { from, to, span_s, is_ordered }
}

/// Returns the letters of a text that takes `width` bytes with its header.
pub(crate) fn text_width(width: u32) -> u32 {
    width.saturating_sub(if width > 127 { 4 } else { 1 }).max(1)
}

/// Returns how many made-up values the type of `column` has room for.
fn room(column: &Column) -> u64 {
    match column.family {
        Family::Integer(most) => most,
        Family::Numeric => column.whole_digits.map_or(u64::MAX, |whole| {
            10_u64.saturating_pow(whole + u32::from(column.scale)).saturating_sub(1)
        }),
        Family::Text(Some(limit)) => 10_u64.saturating_pow(limit) - 1,
        _ => u64::MAX,
    }
}

/// Returns the row's number behind as much text as the column is wide; none if it has no room.
fn numbered(column: &Column, rows: u64) -> Option<Filling> {
    // Scripts add rows.
    let digits = rows.max(1).ilog10() + 2;
    let limit = match column.family {
        Family::Text(limit) => limit.unwrap_or(u32::MAX),
        _ => u32::MAX,
    };
    let width = text_width(column.statistics.width).min(limit).saturating_sub(digits);
    (digits <= limit).then(|| Filling::Numbered("x".repeat(width as usize)))
}

/// Returns the weights of `values` values: the frequencies of the most common ones, the rest alike.
fn weights(statistics: &crate::catalog::ColumnStatistics, values: u64) -> Vec<u32> {
    const ALL: f64 = 1e6;
    let values = usize::try_from(values).unwrap_or(1).max(1);
    let known = &statistics.frequencies[..statistics.frequencies.len().min(values)];
    let rest = (1.0 - statistics.nulls - known.iter().sum::<f64>()).max(0.0);
    let others = values - known.len();
    let weight = |share: f64| (share * ALL).round().max(1.0) as u32;
    let mut weights: Vec<u32> = known.iter().map(|share| weight(*share)).collect();
    weights.extend(std::iter::repeat_n(weight(rest / others.max(1) as f64), others));
    weights
}

/// Whether values of these weights are about equally frequent: what a sample of equal ones shows.
pub(crate) fn is_even(weights: &[u32]) -> bool {
    let (least, most) = (weights.iter().min(), weights.iter().max());
    least.zip(most).is_none_or(|(least, most)| f64::from(*most) <= f64::from(*least) * 1.5)
}

/// Returns the number that the numbers of a choice are divided by, so that its column holds them.
pub(crate) fn numeric_divisor(column: &Column) -> u64 {
    let is_narrow = column.whole_digits.is_some_and(|digits| 10_u64.pow(digits.min(9)) <= CHOICE);
    if is_narrow { 10_u64.pow(column.scale.min(9).into()) } else { 1 }
}

/// Returns made-up value `n` of a choice, as SQL's text form has it.
pub(crate) fn made_value(column: &Column, n: usize) -> String {
    match column.family {
        Family::Text(limit) => {
            let width = text_width(column.statistics.width).min(limit.unwrap_or(u32::MAX)) as usize;
            let number = n.to_string();
            format!("{}{number}", "v".repeat(width.saturating_sub(number.len())))
        }
        Family::Boolean => (n == 1).to_string(),
        Family::Numeric if numeric_divisor(column) > 1 => {
            let scale = usize::from(column.scale);
            format!("{:.scale$}", n as f64 / numeric_divisor(column) as f64)
        }
        Family::Uuid => format!("{:032x}", u128::from_be_bytes(uuid_of(n as u64))),
        Family::Bytes => {
            let bytes = text_width(column.statistics.width).max(2) as usize;
            format!("\\x{n:0width$x}", width = bytes * 2)
        }
        _ => n.to_string(),
    }
}

#[cfg(test)]
#[path = "fill_tests.rs"]
mod tests;
