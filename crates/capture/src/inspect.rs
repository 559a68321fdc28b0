//! Asks the server's catalogue about tables, without reading a row of them.

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_connect::control::Client;
use tokio_postgres::Row;

use crate::catalog::{Column, ColumnStatistics, Family, ForeignKey, Index, Table};
use crate::document::Obstacle;
use crate::error::CaptureError;

/// Tables of the schema that pgdyno could make: their properties, and why others cannot be made.
const TABLES: &str = "\
    SELECT c.relname::text, \
      CASE WHEN coalesce(s.n_live_tup, 0) > 0 THEN s.n_live_tup \
        ELSE greatest(c.reltuples, 0)::bigint END, \
      pg_total_relation_size(c.oid), coalesce(c.reloptions, '{}')::text[], \
      c.relpersistence = 'u', \
      CASE WHEN c.relkind <> 'r' OR c.relispartition \
             OR EXISTS (SELECT FROM pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent)) \
           THEN 'inheritance' \
           WHEN c.relpersistence = 't' OR c.relrowsecurity THEN 'security' \
           WHEN NOT has_table_privilege(c.oid, 'SELECT') THEN 'right' END, \
      ARRAY(SELECT conname::text FROM pg_constraint \
            WHERE conrelid = c.oid AND contype IN ('c', 'x') \
            UNION ALL SELECT tgname::text FROM pg_trigger \
            WHERE tgrelid = c.oid AND NOT tgisinternal ORDER BY 1) \
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid \
    WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'f', 'v', 'm') ORDER BY 1";

/// Columns with their statistics. Of values, only the months of a time column's first and last.
const COLUMNS: &str = "\
    SELECT c.relname::text, a.attname::text, \
      CASE WHEN y.typtype = 'b' AND y.typnamespace = 'pg_catalog'::regnamespace \
        THEN y.oid::bigint ELSE 0 END, \
      a.atttypmod, format_type(a.atttypid, a.atttypmod), a.attnotnull, \
      coalesce(pg_get_serial_sequence(quote_ident($1) || '.' || quote_ident(c.relname), \
        a.attname), '') <> '', \
      pg_get_expr(d.adbin, d.adrelid), a.attgenerated <> '', \
      coalesce(s.null_frac, 0)::float8, coalesce(s.avg_width, 0), s.n_distinct::float8, \
      coalesce(s.most_common_freqs, '{}')::float4[], \
      coalesce(s.correlation, 0)::float8, m.months, coalesce(m.span_s, 0) \
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid \
    JOIN pg_type y ON y.oid = a.atttypid \
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum \
    LEFT JOIN pg_stats s ON s.schemaname = $1 AND s.tablename = c.relname \
      AND s.attname = a.attname AND NOT s.inherited \
    LEFT JOIN LATERAL ( \
      SELECT ARRAY[to_char(min(t), 'YYYY-MM-01'), \
               to_char(max(t) + interval '1 month', 'YYYY-MM-01')] AS months, \
        extract(epoch FROM max(t) - min(t))::bigint AS span_s \
      FROM unnest(CASE WHEN a.atttypid \
          IN ('date'::regtype, 'timestamp'::regtype, 'timestamptz'::regtype) \
        THEN s.histogram_bounds::text::text[] || s.most_common_vals::text::text[] END) AS b (b), \
        LATERAL (SELECT b::timestamp AS t) AS moment WHERE isfinite(t)) m ON true \
    WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) \
      AND c.relname = ANY ($2) AND a.attnum > 0 AND NOT a.attisdropped \
    ORDER BY c.relname, a.attnum";

/// Indexes, but for those that constraints other than keys have.
const INDEXES: &str = "\
    SELECT t.relname::text, i.relname::text, \
      ARRAY(SELECT a.attname::text FROM unnest(x.indkey[0:x.indnkeyatts - 1]) WITH ORDINALITY \
              AS k (attnum, n) JOIN pg_attribute a ON a.attrelid = t.oid \
              AND a.attnum = k.attnum ORDER BY k.n), \
      x.indisprimary, x.indisunique, \
      x.indpred IS NOT NULL OR x.indexprs IS NOT NULL \
        OR EXISTS (SELECT FROM unnest(x.indclass) AS u (o) JOIN pg_opclass p ON p.oid = u.o \
                   WHERE p.opcnamespace <> 'pg_catalog'::regnamespace), \
      CASE WHEN k.oid IS NOT NULL THEN format('ALTER TABLE %s ADD CONSTRAINT %I %s', \
             t.relname, k.conname, pg_get_constraintdef(k.oid)) \
           ELSE replace(pg_get_indexdef(x.indexrelid), format('%I.%I', $1::text, t.relname), \
             t.relname) END \
    FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid \
    LEFT JOIN pg_constraint k ON k.conindid = i.oid AND k.conrelid = t.oid \
      AND k.contype IN ('p', 'u') \
    WHERE t.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) \
      AND t.relname = ANY ($2) AND x.indisvalid \
      AND NOT EXISTS (SELECT FROM pg_constraint e WHERE e.conindid = i.oid AND e.contype = 'x') \
    ORDER BY t.relname, NOT x.indisprimary, i.relname";

const FOREIGN_KEYS: &str = "\
    SELECT t.relname::text, k.conname::text, \
      ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY AS u (attnum, n) \
            JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.attnum ORDER BY u.n), \
      CASE WHEN p.relnamespace = t.relnamespace THEN p.relname::text ELSE '' END, \
      ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY AS u (attnum, n) \
            JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.attnum ORDER BY u.n), \
      format('ALTER TABLE %s ADD CONSTRAINT %I %s', t.relname, k.conname, \
        replace(pg_get_constraintdef(k.oid), format('%I.%I', $1::text, p.relname), p.relname)) \
    FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid \
    JOIN pg_class p ON p.oid = k.confrelid \
    WHERE t.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) \
      AND t.relname = ANY ($2) AND k.contype = 'f' AND k.conparentid = 0 ORDER BY 1, 2";

/// Distinct values where there are no statistics: PostgreSQL's planner assumes as many.
const UNKNOWN_DISTINCT: f64 = 200.0;
/// Width where there are no statistics (bytes): PostgreSQL's planner assumes as much of a text.
const UNKNOWN_WIDTH: i32 = 32;

/// Returns the tables of `schema` that are `wanted`, by name.
///
/// # Errors
/// The server's.
pub(crate) fn tables(
    client: &mut Client,
    schema: &str,
    wanted: &BTreeSet<String>,
) -> Result<BTreeMap<String, Table>, CaptureError> {
    let mut ask = |what: &'static str, sql: &str, names: Option<&Vec<String>>| {
        let rows = match names {
            Some(names) => client.query(sql, &[&schema, names]),
            None => client.query(sql, &[&schema]),
        };
        rows.map_err(|e| CaptureError::query(what, &e))
    };
    let mut tables: BTreeMap<String, Table> = BTreeMap::new();
    for row in ask("read the tables of the schema", TABLES, None)? {
        let table = table(&row);
        if wanted.contains(&table.name) {
            tables.insert(table.name.clone(), table);
        }
    }
    let names: Vec<String> = tables.keys().cloned().collect();
    for row in ask("read the columns of tables", COLUMNS, Some(&names))? {
        if let Some(table) = tables.get_mut(row.get::<_, &str>(0)) {
            let column = column(&row, table.rows);
            table.columns.push(column);
        }
    }
    for row in ask("read the indexes of tables", INDEXES, Some(&names))? {
        if let Some(table) = tables.get_mut(row.get::<_, &str>(0)) {
            table.indexes.push(index(&row));
        }
    }
    for row in ask("read the foreign keys of tables", FOREIGN_KEYS, Some(&names))? {
        if let Some(table) = tables.get_mut(row.get::<_, &str>(0)) {
            table.foreign_keys.push(ForeignKey {
                name: row.get(1),
                columns: row.get(2),
                parent: row.get(3),
                parent_columns: row.get(4),
                definition: row.get(5),
            });
        }
    }
    for table in tables.values_mut() {
        table.obstacle = table.obstacle.take().or_else(|| obstacle(table));
    }
    Ok(tables)
}

fn count(row: &Row, at: usize) -> u64 {
    u64::try_from(row.get::<_, i64>(at)).unwrap_or(0)
}

fn table(row: &Row) -> Table {
    let obstacle = row.get::<_, Option<&str>>(5).map(|word| match word {
        "inheritance" => Obstacle::Inheritance,
        "security" => Obstacle::RowSecurity,
        _ => Obstacle::NoRight,
    });
    Table {
        name: row.get(0),
        rows: count(row, 1),
        bytes: count(row, 2),
        options: row.get(3),
        is_unlogged: row.get(4),
        columns: Vec::new(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        left_out: row.get(6),
        obstacle,
    }
}

fn column(row: &Row, rows: u64) -> Column {
    let oid: i64 = row.get(2);
    let distinct: Option<f64> = row.get(11);
    let is_known = distinct.is_some();
    // Below 0: a share of the rows. Not known: as PostgreSQL's planner assumes.
    let distinct = match distinct.unwrap_or(UNKNOWN_DISTINCT) {
        share if share < 0.0 => -share * rows as f64,
        count => count,
    };
    let width: i32 = if is_known { row.get(10) } else { UNKNOWN_WIDTH };
    let months: Option<Vec<Option<String>>> = row.get(14);
    let months = months.and_then(|months| match &months[..] {
        [Some(from), Some(to)] => Some((from.clone(), to.clone())),
        _ => None,
    });
    let spelled: String = row.get(4);
    let digits = digits(&spelled);
    Column {
        name: row.get(1),
        family: Family::new(oid, row.get(3), oid == 0),
        scale: digits.map_or(0, |(_, scale)| scale),
        whole_digits: digits.map(|(whole, _)| whole),
        spelled,
        is_not_null: row.get(5),
        is_serial: row.get(6),
        default: row.get(7),
        is_generated: row.get(8),
        statistics: ColumnStatistics {
            is_known,
            nulls: row.get(9),
            width: u32::try_from(width).unwrap_or(0),
            distinct: distinct.round() as u64,
            frequencies: row.get::<_, Vec<f32>>(12).into_iter().map(f64::from).collect(),
            correlation: row.get(13),
            months,
            span_s: row.get(15),
        },
    }
}

/// Returns the digits before and after the point of a `numeric(p,s)`.
fn digits(spelled: &str) -> Option<(u32, u8)> {
    let inner = spelled.strip_prefix("numeric(")?.strip_suffix(')')?;
    let (precision, scale) = inner.split_once(',').unwrap_or((inner, "0"));
    let (precision, scale): (u32, u8) = (precision.parse().ok()?, scale.parse().ok()?);
    Some((precision.saturating_sub(u32::from(scale)), scale))
}

fn index(row: &Row) -> Index {
    Index {
        name: row.get(1),
        columns: row.get(2),
        is_primary: row.get(3),
        is_unique: row.get(4),
        has_expressions: row.get(5),
        definition: row.get(6),
    }
}

/// Returns why `table` cannot be made: its names, or its columns.
fn obstacle(table: &Table) -> Option<Obstacle> {
    let is_plain = |name: &str| {
        let mut characters = name.chars();
        characters.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_')
            && characters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let names = table.columns.iter().map(|column| column.name.as_str());
    if !names.chain([table.name.as_str()]).all(is_plain) {
        return Some(Obstacle::Quotes);
    }
    let cannot_be_made = |column: &&Column| {
        column.is_generated || matches!(column.family, Family::Foreign | Family::Other)
    };
    table.columns.iter().find(cannot_be_made).map(|column| Obstacle::Column {
        column: column.name.clone(),
        r#type: column.spelled.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_type() {
        assert_eq!(digits("numeric(12,2)"), Some((10, 2)));
        assert_eq!(digits("numeric(5)"), Some((5, 0)));
        assert_eq!((digits("numeric"), digits("text")), (None, None));
    }
}
