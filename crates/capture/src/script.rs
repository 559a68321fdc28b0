//! A statement as a script has it: variables that are drawn, and SQL that uses them.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{Column, Table};
use crate::document::Reason;
use crate::draw::{Drawn, FilledColumn, Sequence, Set, draw_small, guess};
use crate::fill::Filled;
use crate::place::{ColumnName, Place};
use crate::statement::Statement;

/// Share of all values that a range holds where the rows of a call do not tell it.
const RANGE: f64 = 0.01;
/// Most elements of an array or a list that is made.
const MOST_ELEMENTS: u64 = 20;

/// Type that a parameter is guessed to have where the server cannot tell.
const UNKNOWN_TYPE: &str = "int4";

/// A table, and how it is filled.
#[derive(Clone, Debug)]
pub(crate) struct FilledTable {
    pub(crate) table: Table,
    pub(crate) filled: Filled,
}

/// Names that a statement may have.
pub(crate) struct Names<'a> {
    /// Schema that is captured.
    pub(crate) schema: &'a str,
    pub(crate) tables: &'a BTreeMap<String, FilledTable>,
    /// Functions that PostgreSQL has.
    pub(crate) functions: &'a BTreeSet<String>,
}

/// A statement of a script.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// Variables that are set before it.
    pub(crate) sets: Vec<Set>,
    /// SQL with variables, without semicolon.
    pub(crate) sql: String,
    /// SQL with parameters in place of variables and of new numbers.
    pub(crate) checked_sql: String,
    /// Sequences that it takes numbers from, with their tables.
    pub(crate) sequences: Vec<(String, Sequence)>,
    /// Parameters whose values are a guess by their types.
    pub(crate) guessed: BTreeSet<u32>,
    /// Tables that it names.
    pub(crate) tables: BTreeSet<String>,
}

/// Prepares `statement`, of which a call returned or changed `rows` rows on average, and whose
/// parameters have these `types`, where the server knows them. Its variables begin with `prefix`.
///
/// # Errors
/// The statement cannot be replayed.
pub(crate) fn prepare(
    statement: &Statement,
    names: &Names<'_>,
    types: &[String],
    rows: f64,
    prefix: &str,
) -> Result<Prepared, Reason> {
    let tables = tables(statement, names)?;
    for function in &statement.functions {
        let name = function.strip_prefix("pg_catalog.").unwrap_or(function);
        if !names.functions.contains(name) && !IN_GRAMMAR.contains(&name) {
            return Err(Reason::Function { name: function.clone() });
        }
    }
    let script = Script { statement, tables: &tables, types, rows, prefix };
    let mut prepared = Prepared::default();
    let (mut sql, mut checked) = (BTreeMap::new(), BTreeMap::new());
    for number in lower_ends_first(statement) {
        let drawn = script.draw(number).or_else(|| {
            prepared.guessed.insert(number);
            guess(&script.variable(number), script.type_name(number).unwrap_or(UNKNOWN_TYPE))
        });
        let drawn = drawn.ok_or(Reason::Parameter { number })?;
        let mut is_checked = drawn.sql.clone();
        for set in drawn.sets {
            let parameter = format!("${}", prepared.sets.len() + 1);
            is_checked = with_parameter(&is_checked, &set.variable, &parameter);
            prepared.sets.push(set);
        }
        if let Some((table, sequence)) = script.target(number).zip(drawn.sequence) {
            is_checked = is_checked.replace(&format!("nextval('{}')", sequence.name), "1::bigint");
            prepared.sequences.push((table.table.name.clone(), sequence));
        }
        sql.insert(number, drawn.sql);
        checked.insert(number, is_checked);
    }
    for (&number, place) in &statement.places {
        if let Place::Same(other) = place {
            let other = |all: &BTreeMap<u32, String>| all.get(other).cloned().unwrap_or_default();
            let (same_sql, same_checked) = (other(&sql), other(&checked));
            sql.insert(number, same_sql);
            checked.insert(number, same_checked);
        }
    }
    prepared.sql = statement.rewritten(&sql);
    prepared.checked_sql = statement.rewritten(&checked);
    prepared.tables = tables.iter().map(|one| one.table.name.clone()).collect();
    Ok(prepared)
}

/// Returns the parameters of `statement`, upper ends of ranges behind the lower ones.
fn lower_ends_first(statement: &Statement) -> Vec<u32> {
    let is_upper_end =
        |number: &u32| matches!(statement.places.get(number), Some(Place::RangeEnd(..)));
    let (upper, mut others): (Vec<u32>, Vec<u32>) =
        statement.parameters.keys().partition(|number| is_upper_end(number));
    others.extend(upper);
    others
}

/// Returns `sql` with `parameter` in place of `variable`.
fn with_parameter(sql: &str, variable: &str, parameter: &str) -> String {
    let name = format!(":{variable}");
    let mut parts = sql.split(&name);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // A longer name begins alike.
        let is_whole = !part.starts_with(|c: char| c.is_ascii_digit() || c == '_');
        match is_whole {
            true => text += parameter,
            false => text += &name,
        }
        text += part;
    }
    text
}

/// Functions of the grammar, which the catalogue does not have under these names.
const IN_GRAMMAR: [&str; 6] = ["coalesce", "nullif", "greatest", "least", "grouping", "xmlelement"];

/// Returns the tables that `statement` names.
fn tables<'a>(statement: &Statement, names: &Names<'a>) -> Result<Vec<&'a FilledTable>, Reason> {
    let found = statement.relations.iter().map(|relation| {
        let is_here = relation.schema.as_deref().is_none_or(|schema| schema == names.schema);
        let table = names.tables.get(&relation.name).filter(|_| is_here);
        table.ok_or_else(|| {
            let schema = relation.schema.as_ref().map(|s| format!("{s}.")).unwrap_or_default();
            Reason::Relation { name: format!("{schema}{}", relation.name) }
        })
    });
    found.collect()
}

struct Script<'a> {
    statement: &'a Statement,
    /// Tables of its relations, in order.
    tables: &'a [&'a FilledTable],
    /// Types of its parameters, where the server knows them.
    types: &'a [String],
    rows: f64,
    prefix: &'a str,
}

impl Script<'_> {
    fn variable(&self, number: u32) -> String {
        format!("{}{number}", self.prefix)
    }

    fn type_name(&self, number: u32) -> Option<&str> {
        self.types.get(number as usize - 1).map(String::as_str)
    }

    /// Returns the table that parameter `number` is inserted into.
    fn target(&self, number: u32) -> Option<&FilledTable> {
        let table = match self.statement.places.get(&number)? {
            Place::Inserted(column) => column.qualifier.as_ref()?,
            Place::InsertedAt(table, _) => table,
            _ => return None,
        };
        self.tables.iter().find(|one| one.table.name == *table).copied()
    }

    /// Draws the values of parameter `number`; none if its place does not tell them.
    fn draw(&self, number: u32) -> Option<Drawn> {
        let variable = self.variable(number);
        Some(match self.statement.places.get(&number)? {
            Place::Compared(name) => self.column(name, number)?.draw_existing(&variable)?.of_key(),
            Place::AnyOf(name) => {
                let length = (self.rows.round() as u64).clamp(1, MOST_ELEMENTS);
                return self.column(name, number)?.draw_array(&variable, length);
            }
            Place::FirstOf(name) => {
                let length = (self.rows.round() as u64).clamp(2, MOST_ELEMENTS);
                return self.column(name, number)?.draw_list(&variable, length);
            }
            Place::RangeEnd(name, from) => {
                let of = self.column(name, number)?;
                // The lower end may be drawn for another column.
                if self.statement.places.get(from) != Some(&Place::Compared(name.clone())) {
                    return of.draw_existing(&variable);
                }
                let share = match self.tables {
                    [_] if self.rows > 1.0 => (self.rows / of.table.rows.max(1) as f64).min(1.0),
                    _ => RANGE,
                };
                return of.draw_range_end(&self.variable(*from), &variable, share);
            }
            // Its text is that of the other parameter.
            Place::Same(_) => Drawn::default(),
            Place::Assigned(name) => return self.column(name, number)?.draw_any(&variable),
            Place::Added(name) => return draw_small(&variable, self.column(name, number)?.column),
            Place::Distance if self.type_name(number) == Some("interval") => return None,
            Place::Distance => Drawn::constant("10"),
            Place::Inserted(name) => {
                let of = self.target(number)?;
                return self.insert(&variable, of, of.table.column(&name.name)?);
            }
            Place::InsertedAt(_, at) => {
                let of = self.target(number)?;
                return self.insert(&variable, of, of.table.columns.get(*at)?);
            }
            Place::Limit => Drawn::constant((self.rows.round().max(1.0) as u64).to_string()),
            Place::Offset => Drawn::constant("0"),
            Place::Output => return None,
        })
    }

    /// Draws values that are inserted into `column` of `of`.
    fn insert(&self, variable: &str, of: &FilledTable, column: &Column) -> Option<Drawn> {
        let filled = filled_column(of, column)?;
        match (of.filled.fresh.contains(&column.name), self.statement.has_conflict_clause) {
            (true, false) => filled.draw_new(),
            (true, true) => filled.draw_existing(variable),
            (false, _) => filled.draw_any(variable),
        }
    }

    /// Returns the column that `name` means where parameter `number` stands.
    fn column(&self, name: &ColumnName, number: u32) -> Option<FilledColumn<'_>> {
        let mut relations = self.statement.relations_of(name, number).into_iter();
        relations.find_map(|relation| {
            let of = self.tables.iter().find(|one| relation.name == one.table.name)?;
            filled_column(of, of.table.column(&name.name)?)
        })
    }
}

/// Returns `column` of `of` with its filling.
pub(crate) fn filled_column<'a>(
    of: &'a FilledTable,
    column: &'a Column,
) -> Option<FilledColumn<'a>> {
    let filling = of.filled.columns.get(&column.name)?;
    Some(FilledColumn { table: &of.table, column, filling })
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
