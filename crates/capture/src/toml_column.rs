//! A column of `workload.toml`.

use toml::{Table, Value};

use crate::catalog::Column;
use crate::fill::{Filling, is_even, made_value};

/// Most digits after the point of a `decimal`.
const MOST_DIGITS: u8 = 6;

/// Returns the column of a table with so many `rows` as `workload.toml` spells it; none for one
/// that stays empty.
pub(crate) fn toml_column(column: &Column, filling: &Filling, rows: u64) -> Option<Value> {
    let mut table = Table::new();
    table.insert("name".into(), column.name.clone().into());
    let integer = |n: u64| Value::from(i64::try_from(n).unwrap_or(i64::MAX));
    let list = |values: Vec<Value>| Value::Array(values);
    match filling {
        Filling::RowNumber => table.insert("row_number".into(), true.into()),
        Filling::References(parent, _) => table.insert("references".into(), parent.clone().into()),
        Filling::Counter { every, cycle } => {
            let mut counter = Table::from_iter([("every".to_owned(), integer(*every))]);
            counter.extend(cycle.map(|cycle| ("cycle".to_owned(), integer(cycle))));
            table.insert("counter".into(), counter.into())
        }
        Filling::Permutation(n) => table.insert("permutation".into(), integer(*n)),
        Filling::Numbered(before) => table.insert("text".into(), format!("{before}{{row}}").into()),
        Filling::Letters(least, most) => {
            let ends = [*least, *most].map(|n| integer(n.into()));
            table.insert("letters".into(), list(ends.to_vec()))
        }
        Filling::Choice(weights) => {
            let values = (1..=weights.len()).map(|n| made_value(column, n).into());
            if !is_even(weights) {
                let weights = weights.iter().map(|weight| integer((*weight).into()));
                table.insert("weights".into(), list(weights.collect()));
            }
            table.insert("choice".into(), list(values.collect()))
        }
        Filling::Decimal(to) => {
            let digits = column.scale.min(MOST_DIGITS);
            let to = *to as f64 + 1.0 - 0.1_f64.powi(digits.into());
            let decimal = Table::from_iter([
                ("from".to_owned(), Value::from(0)),
                ("to".to_owned(), to.into()),
                ("digits".to_owned(), integer(digits.into())),
            ]);
            table.insert("decimal".into(), decimal.into())
        }
        Filling::Times { from, to, span_s, is_ordered } => {
            let last = match is_ordered {
                true => {
                    let every = (*span_s as f64 * 1000.0 / rows.max(1) as f64).max(1.0) as u64;
                    ("every", format!("{every}ms"))
                }
                false => ("to", to.clone()),
            };
            let times = Table::from_iter([
                ("from".to_owned(), Value::from(from.clone())),
                (last.0.to_owned(), last.1.into()),
            ]);
            table.insert("timestamp".into(), times.into())
        }
        Filling::Json(letters) => {
            let member = Table::from_iter([
                ("name".to_owned(), Value::from("v")),
                ("letters".to_owned(), list(vec![integer((*letters).into()); 2])),
            ]);
            table.insert("json".into(), list(vec![member.into()]))
        }
        Filling::Nothing => return None,
    };
    let nulls = column.statistics.nulls;
    if nulls > 0.0 && !column.is_not_null {
        table.insert("null".into(), ((nulls * 1e4).round() / 1e4).clamp(0.0001, 0.9999).into());
    }
    Some(Value::Table(table))
}

#[cfg(test)]
#[path = "toml_column_tests.rs"]
mod tests;
