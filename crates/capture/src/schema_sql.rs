//! SQL of a captured schema: sequences and tables before the rows, keys and indexes after them.

use std::collections::BTreeMap;

use crate::catalog::{Column, Family, Table};
use crate::document::{Omission, Part};
use crate::draw::Sequence;
use crate::fill::{Filled, made_value};

/// SQL of a schema.
#[derive(Debug, Default)]
pub(crate) struct SchemaSql {
    /// Before the rows.
    pub(crate) schema: String,
    /// After the rows.
    pub(crate) keys: String,
    /// Defaults that are made up, or missing.
    pub(crate) omissions: Vec<Omission>,
}

/// Returns the SQL of `tables`, whose new rows take their numbers from `sequences`.
pub(crate) fn schema_sql(
    tables: &[(&Table, &Filled)],
    sequences: &BTreeMap<String, (String, Sequence)>,
) -> SchemaSql {
    let mut sql = SchemaSql::default();
    for (name, (_, sequence)) in sequences {
        sql.schema += &format!("CREATE SEQUENCE {name} START WITH {};\n", sequence.start);
    }
    for (table, _) in tables {
        let created = create_table(table, sequences, &mut sql.omissions);
        sql.schema += &created;
    }
    for (name, (table, sequence)) in sequences {
        let column = &sequence.column;
        sql.schema += &format!("ALTER SEQUENCE {name} OWNED BY {table}.{column};\n");
    }
    for (table, filled) in tables {
        let indexes = table.indexes.iter().map(|index| (&index.name, &index.definition));
        for (_, definition) in indexes.filter(|(name, _)| filled.kept.contains(*name)) {
            sql.keys += &format!("{definition};\n");
        }
    }
    // They need the keys of other tables.
    for (table, filled) in tables {
        for key in table.foreign_keys.iter().filter(|key| filled.kept.contains(&key.name)) {
            sql.keys += &format!("{};\n", key.definition);
        }
    }
    sql
}

fn create_table(
    table: &Table,
    sequences: &BTreeMap<String, (String, Sequence)>,
    omissions: &mut Vec<Omission>,
) -> String {
    let mut lines = Vec::new();
    for column in &table.columns {
        let serial = sequences.iter().find(|(_, (of, sequence))| {
            *of == table.name && sequence.is_own && sequence.column == column.name
        });
        let default = match (serial, &column.default) {
            (Some((name, _)), _) => Some(format!("nextval('{name}')")),
            (None, Some(default)) => {
                let (default, is_whole) = default_of(column, default);
                if !is_whole {
                    let (table, name) = (table.name.clone(), column.name.clone());
                    omissions.push(Omission { table, name, part: Part::Default });
                }
                default
            }
            (None, None) => None,
        };
        let default = default.map(|default| format!(" DEFAULT {default}")).unwrap_or_default();
        let not_null = if column.is_not_null { " NOT NULL" } else { "" };
        lines.push(format!("    {} {}{not_null}{default}", column.name, column.spelled));
    }
    let options = match &table.options[..] {
        [] => String::new(),
        options => format!(" WITH ({})", options.join(", ")),
    };
    let kind = if table.is_unlogged { "UNLOGGED TABLE" } else { "TABLE" };
    format!("CREATE {kind} {} (\n{}){options};\n", table.name, lines.join(",\n"))
}

/// Returns the default that stands for `original`, and whether it is the same. A text is made up.
fn default_of(column: &Column, original: &str) -> (Option<String>, bool) {
    // PostgreSQL names the schema of what is not its own: `public.f()`.
    let is_qualified = |(at, _): (usize, &str)| {
        original[..at].ends_with(|c: char| c.is_alphabetic() || c == '_' || c == '"')
    };
    if original.match_indices('.').any(is_qualified) {
        return (None, false);
    }
    let constant = original.split("::").next().unwrap_or(original);
    if ["''", "'{}'", "'[]'"].contains(&constant) || !original.contains('\'') {
        return (Some(original.to_owned()), true);
    }
    match column.family {
        Family::Text(_) => (Some(format!("'{}'", made_value(column, 1))), false),
        // Numbers below 0 are written in quotes.
        Family::Integer(_) | Family::Numeric | Family::Float => (Some("0".to_owned()), false),
        _ => (None, false),
    }
}
