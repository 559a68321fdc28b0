//! Parameters to variables: how a script draws the values of a statement's parameters.

use std::fmt;

use crate::catalog::{Column, Family, Table};
use crate::fill::{Filling, is_even, most, numeric_divisor, text_width};

/// Most values that a weighted draw tells apart. Rarer ones are alike.
const COMMON: usize = 20;

/// Expression of a `\set`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expression {
    /// A whole number from one to another, each as likely.
    Random(i64, i64),
    Other(String),
}

impl Expression {
    /// Draws one of the numbers from 1 to `most`.
    fn up_to(most: u64) -> Self {
        Self::Random(1, i64::try_from(most).unwrap_or(i64::MAX))
    }

    /// Returns how many numbers it may draw, as far as it tells.
    pub(crate) fn range(&self) -> i64 {
        match self {
            Self::Random(from, to) => to.saturating_sub(*from),
            Self::Other(_) => 0,
        }
    }

    /// Returns the expression that draws from part `at` of `parts` equal ones, from 0.
    pub(crate) fn part(&self, at: u32, parts: u32) -> Self {
        let Self::Random(from, to) = self else { return self.clone() };
        let (count, parts) = (i128::from(to - from) + 1, i128::from(parts.max(1)));
        let bound = |at: u32| (count * i128::from(at) / parts) as i64;
        let begin = from + bound(at).min(to - from);
        Self::Random(begin, (from + bound(at + 1) - 1).max(begin))
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random(from, to) => write!(f, "random({from}, {to})"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

/// Variable of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) variable: String,
    pub(crate) expression: Expression,
    /// Whether rows are looked for by it.
    pub(crate) is_key: bool,
}

/// How a parameter's values are drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drawn {
    /// Variables that are set before.
    pub(crate) sets: Vec<Set>,
    /// SQL in the parameter's place.
    pub(crate) sql: String,
    /// Sequence that gives new values.
    pub(crate) sequence: Option<Sequence>,
}

impl Drawn {
    /// Draws `variable` by `expression`.
    fn new(variable: &str, expression: Expression, sql: impl Into<String>) -> Self {
        let set = Set { variable: variable.to_owned(), expression, is_key: false };
        Self { sets: vec![set], sql: sql.into(), sequence: None }
    }

    /// Returns it for a parameter that rows are looked for by.
    pub(crate) fn of_key(mut self) -> Self {
        self.sets.iter_mut().for_each(|set| set.is_key = true);
        self
    }

    /// Has the same SQL always.
    pub(crate) fn constant(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), ..Self::default() }
    }
}

/// Sequence that gives new values of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    pub(crate) name: String,
    pub(crate) column: String,
    pub(crate) start: u64,
    /// Whether it is the default of its column.
    pub(crate) is_own: bool,
}

/// Column of a table, and how it is filled.
#[derive(Clone, Copy)]
pub(crate) struct FilledColumn<'a> {
    pub(crate) table: &'a Table,
    pub(crate) column: &'a Column,
    pub(crate) filling: &'a Filling,
}

impl FilledColumn<'_> {
    fn most(self) -> Option<u64> {
        most(self.filling, self.table.rows)
    }

    /// Draws values that stand in the column.
    pub(crate) fn draw_existing(self, variable: &str) -> Option<Drawn> {
        let set = match self.filling {
            Filling::Choice(weights) => weighted(weights),
            Filling::Decimal(_) | Filling::Times { .. } => {
                Expression::Random(0, i64::try_from(self.most()?).ok()?)
            }
            _ => Expression::up_to(self.most()?),
        };
        Some(Drawn::new(variable, set, self.of_number(&format!(":{variable}"))?))
    }

    /// Draws lists of so many values that stand in the column.
    pub(crate) fn draw_list(self, variable: &str, length: u64) -> Option<Drawn> {
        let drawn: Option<Vec<Drawn>> =
            (1..=length).map(|n| self.draw_existing(&format!("{variable}_{n}"))).collect();
        let drawn = drawn?;
        let elements: Vec<&str> = drawn.iter().map(|one| one.sql.as_str()).collect();
        Some(Drawn {
            sql: elements.join(", "),
            sets: drawn.into_iter().flat_map(|one| one.sets).collect(),
            sequence: None,
        })
    }

    /// Draws arrays of so many values that stand in the column.
    pub(crate) fn draw_array(self, variable: &str, length: u64) -> Option<Drawn> {
        let list = self.draw_list(variable, length)?;
        Some(Drawn { sql: format!("ARRAY[{}]::{}[]", list.sql, self.column.spelled), ..list })
    }

    /// Draws the end of a range that begins with variable `from` and holds `share` of the values.
    pub(crate) fn draw_range_end(self, from: &str, variable: &str, share: f64) -> Option<Drawn> {
        let is_ordered = matches!(
            self.column.family,
            Family::Integer(_) | Family::Numeric | Family::Date | Family::Timestamp
        );
        let width = (self.most()? as f64 * share).round().max(1.0);
        let sql = self.of_number(&format!(":{variable}"))?;
        let end = Expression::Other(format!(":{from} + {width}"));
        is_ordered.then(|| Drawn::new(variable, end, sql))
    }

    /// Draws values to be put into the column, which need not stand in it.
    pub(crate) fn draw_any(self, variable: &str) -> Option<Drawn> {
        if let Some(drawn) = self.draw_existing(variable) {
            return Some(drawn);
        }
        let column = self.column;
        let letters = |width: u32| {
            let repeats = width / 32 + 1;
            format!("substr(repeat(md5((:{variable})::text), {repeats}), 1, {width})")
        };
        let sql = match self.filling {
            Filling::Letters(..) => {
                let width = text_width(column.statistics.width);
                match column.family {
                    Family::Text(Some(limit)) => letters(width.min(limit)),
                    _ => letters(width),
                }
            }
            Filling::Json(width) => {
                format!("json_build_object('v', {})::{}", letters(*width), column.spelled)
            }
            Filling::Nothing => {
                return Some(Drawn::constant(format!("NULL::{}", column.spelled)));
            }
            _ => return None,
        };
        Some(Drawn::new(variable, Expression::up_to(1_000_000_000), sql))
    }

    /// Draws values that no row has: the next of a sequence.
    pub(crate) fn draw_new(self) -> Option<Drawn> {
        let sequence = self.sequence()?;
        let sql = self.of_number(&format!("nextval('{}')", sequence.name))?;
        Some(Drawn { sequence: Some(sequence), ..Drawn::constant(sql) })
    }

    /// Returns the sequence whose numbers no row has in the column.
    pub(crate) fn sequence(self) -> Option<Sequence> {
        let (table, column) = (&self.table.name, self.column);
        let name = match column.is_serial {
            true => format!("{table}_{}_seq", column.name),
            false => format!("captured_{table}_{}", column.name),
        };
        let start = match self.filling {
            Filling::RowNumber | Filling::Numbered(_) => self.table.rows + 1,
            _ => self.most()? + 1,
        };
        Some(Sequence { name, column: column.name.clone(), start, is_own: column.is_serial })
    }

    /// Returns the SQL of the column's value that belongs to a number.
    fn of_number(self, number: &str) -> Option<String> {
        let (column, filling) = (self.column, self.filling);
        Some(match (column.family, filling) {
            (Family::Numeric, Filling::Choice(_)) => match numeric_divisor(column) {
                1 => number.to_owned(),
                divisor => format!("(({number})::numeric / {divisor})"),
            },
            (Family::Integer(_) | Family::Numeric | Family::Float, _) => number.to_owned(),
            (Family::Text(_), Filling::Numbered(before)) => {
                format!("(repeat('x', {}) || ({number})::text)", before.len())
            }
            (Family::Text(limit), Filling::Choice(_)) => {
                let width = text_width(column.statistics.width).min(limit.unwrap_or(u32::MAX));
                format!("(repeat('v', {width} - length(({number})::text)) || ({number})::text)")
            }
            (Family::Boolean, _) => format!("(({number})::int = 1)"),
            (Family::Uuid, _) => {
                let digits = format!("reverse(lpad(to_hex(({number})::bigint), 16, '0'))");
                format!("({digits} || '8000000000000000')::uuid")
            }
            (Family::Date, Filling::Times { from, .. }) => {
                format!("(date '{from}' + ({number})::int / 86400)")
            }
            (Family::Timestamp, Filling::Times { from, .. }) => {
                let spelled = &column.spelled;
                format!("('{from}'::{spelled} + ({number})::bigint * interval '1 second')")
            }
            _ => return None,
        })
    }
}

/// Draws a small number, to be added to the numbers of `column`.
pub(crate) fn draw_small(variable: &str, column: &Column) -> Option<Drawn> {
    let is_number = matches!(column.family, Family::Integer(_) | Family::Numeric | Family::Float);
    is_number.then(|| Drawn::new(variable, Expression::Random(-10, 10), format!(":{variable}")))
}

/// Guesses values by their type alone, which PostgreSQL calls `type_name`.
pub(crate) fn guess(variable: &str, type_name: &str) -> Option<Drawn> {
    Some(Drawn::constant(match type_name {
        "int2" | "int4" | "int8" | "numeric" | "float4" | "float8" => {
            let sql = format!("(:{variable})::{type_name}");
            return Some(Drawn::new(variable, Expression::up_to(10), sql));
        }
        "text" | "varchar" | "bpchar" | "name" => "'x'",
        "bool" => "true",
        "date" => "current_date",
        "timestamp" => "localtimestamp",
        "timestamptz" => "now()",
        "interval" => "interval '1 hour'",
        "uuid" => "gen_random_uuid()",
        "json" | "jsonb" => "'{}'",
        _ => return None,
    }))
}

/// Returns an expression that draws 1, 2 … with these weights.
fn weighted(weights: &[u32]) -> Expression {
    let values = weights.len();
    if is_even(weights) {
        return Expression::up_to(values as u64);
    }
    let common = values.min(COMMON);
    let mut expression = String::from("case");
    let mut left: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
    for (n, weight) in weights[..common - 1].iter().enumerate() {
        // Each condition draws anew, from what is left.
        expression += &format!(" when random(1, {left}) <= {weight} then {}", n + 1);
        left = left.saturating_sub(u64::from(*weight)).max(1);
    }
    Expression::Other(format!("{expression} else random({common}, {values}) end"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::tests::{column, table};

    fn draw(family: Family, filling: &Filling) -> Option<Drawn> {
        let (table, column) = (table("t", 50), column("c", family));
        FilledColumn { table: &table, column: &column, filling }.draw_existing("p")
    }

    #[test]
    fn existing_values_are_those_that_the_loader_makes() {
        let drawn = draw(Family::Integer(9), &Filling::RowNumber).unwrap();
        assert_eq!(drawn, Drawn::new("p", Expression::Random(1, 50), ":p"));
        let drawn = draw(Family::Text(None), &Filling::Numbered("xxx".into())).unwrap();
        assert_eq!(drawn.sql, "(repeat('x', 3) || (:p)::text)");
        assert_eq!(draw(Family::Text(None), &Filling::Letters(1, 2)), None);
    }

    #[test]
    fn weights_are_drawn_one_after_another() {
        assert_eq!(weighted(&[5, 4]), Expression::Random(1, 2));
        let expected = "case when random(1, 100) <= 90 then 1 else random(2, 2) end";
        assert_eq!(weighted(&[90, 10]).to_string(), expected);
    }

    #[test]
    fn parts_of_a_range_are_equal_and_in_order() {
        let parts = |to, count| {
            let part = |at| Expression::Random(1, to).part(at, count).to_string();
            (0..count).map(part).collect::<Vec<_>>()
        };
        assert_eq!(parts(10, 3), ["random(1, 3)", "random(4, 6)", "random(7, 10)"]);
        assert_eq!(parts(2, 3), ["random(1, 1)", "random(1, 1)", "random(2, 2)"]);
    }

    #[test]
    fn new_values_come_from_a_sequence() {
        let (table, column) = (table("t", 50), column("c", Family::Integer(9)));
        let of = FilledColumn { table: &table, column: &column, filling: &Filling::RowNumber };
        let drawn = of.draw_new().unwrap();
        assert_eq!(drawn.sql, "nextval('captured_t_c')");
        assert_eq!(drawn.sequence.unwrap().start, 51);
    }
}
