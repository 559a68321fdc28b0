//! Statements as scripts have them.

use super::*;
use crate::catalog::tests::{column, table};
use crate::catalog::{Family, Index};
use crate::fill::fill;
use crate::statement::parse;

const INTEGER: Family = Family::Integer(i32::MAX as u64);

/// Returns a table of so many `rows` of whole numbers, with a primary key.
fn filled(name: &str, rows: u64, columns: &[&str], key: &[&str]) -> FilledTable {
    let mut table = table(name, rows);
    table.columns = columns.iter().map(|name| column(name, INTEGER)).collect();
    for column in &mut table.columns {
        column.statistics.distinct = rows / 10;
    }
    table.indexes = vec![Index {
        name: format!("{name}_pkey"),
        columns: key.iter().map(|name| (*name).to_owned()).collect(),
        is_primary: true,
        is_unique: true,
        has_expressions: false,
        definition: String::new(),
    }];
    table.indexes.retain(|index| !index.columns.is_empty());
    let filled = fill(&table, &BTreeMap::new(), &[]);
    FilledTable { table, filled }
}

fn tables() -> BTreeMap<String, FilledTable> {
    let tables = [
        filled("pgbench_accounts", 100_000, &["aid", "bid", "abalance"], &["aid"]),
        filled("pgbench_tellers", 10, &["tid", "bid", "tbalance"], &["tid"]),
        filled("pgbench_branches", 1, &["bid", "bbalance"], &["bid"]),
        filled("pgbench_history", 0, &["tid", "bid", "aid", "delta", "mtime"], &[]),
        filled("lines", 1000, &["number", "line", "item"], &["number", "line"]),
    ];
    tables.into_iter().map(|one| (one.table.name.clone(), one)).collect()
}

fn prepare_with(sql: &str, types: &[&str], rows: f64) -> Result<Prepared, Reason> {
    let names = Names {
        schema: "public",
        tables: &tables(),
        functions: &BTreeSet::from(["now".to_owned()]),
    };
    let types: Vec<String> = types.iter().map(|name| (*name).to_owned()).collect();
    prepare(&parse(sql)?, &names, &types, rows, "s1_")
}

/// Returns the variables, the statement, and the statement that the server checks.
fn script(sql: &str, rows: f64) -> (Vec<String>, String, String) {
    let prepared = prepare_with(sql, &[], rows).unwrap();
    let sets = prepared.sets.iter().map(|set| format!("{} {}", set.variable, set.expression));
    (sets.collect(), prepared.sql, prepared.checked_sql)
}

#[test]
fn rows_are_updated_and_selected_by_key() {
    for (name, key, value, rows) in [
        ("accounts", "aid", "abalance", 100_000),
        ("tellers", "tid", "tbalance", 10),
        ("branches", "bid", "bbalance", 1),
    ] {
        let update = format!("UPDATE pgbench_{name} SET {value} = {value} ");
        let (sets, sql, checked) = script(&format!("{update}+ $1 WHERE {key} = $2"), 1.0);
        assert_eq!(sets, ["s1_1 random(-10, 10)".to_owned(), format!("s1_2 random(1, {rows})")]);
        assert_eq!(sql, format!("{update}+ :s1_1 WHERE {key} = :s1_2"));
        assert_eq!(checked, format!("{update}+ $1 WHERE {key} = $2"));
    }
    let (sets, sql, _) = script("SELECT abalance FROM pgbench_accounts WHERE aid = $1;", 1.0);
    assert_eq!(sets, ["s1_1 random(1, 100000)"]);
    assert_eq!(sql, "SELECT abalance FROM pgbench_accounts WHERE aid = :s1_1");
}

#[test]
fn rows_are_inserted() {
    let insert = "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES";
    let (sets, sql, _) = script(&format!("{insert} ($1, $2, $3, $4, CURRENT_TIMESTAMP)"), 1.0);
    assert_eq!(sets.len(), 4);
    assert_eq!(sql, format!("{insert} (:s1_1, :s1_2, :s1_3, :s1_4, CURRENT_TIMESTAMP)"));
}

#[test]
fn new_rows_have_new_keys() {
    let sql = "INSERT INTO pgbench_accounts VALUES ($1, $2, $3)";
    let prepared = prepare_with(sql, &[], 1.0).unwrap();
    let (table, sequence) = &prepared.sequences[0];
    assert_eq!((table.as_str(), sequence.start), ("pgbench_accounts", 100_001));
    assert!(prepared.sql.contains("VALUES (nextval('captured_pgbench_accounts_aid'), :s1_2"));
    assert!(prepared.checked_sql.contains("VALUES (1::bigint, $1, $2)"));
    // A row that is there may be met.
    let sql = format!("{sql} ON CONFLICT (aid) DO UPDATE SET bid = $4");
    let prepared = prepare_with(&sql, &[], 1.0).unwrap();
    assert!(prepared.sequences.is_empty());
    assert_eq!(prepared.sets[0].expression.to_string(), "random(1, 100000)");
    let sql = "WITH w AS (INSERT INTO pgbench_tellers (tid) VALUES ($1) RETURNING bid) \
               INSERT INTO lines (number, line) SELECT bid, $2 FROM w";
    let prepared = prepare_with(sql, &[], 1.0).unwrap();
    let owners: Vec<&str> = prepared.sequences.iter().map(|(name, _)| name.as_str()).collect();
    assert!(owners.contains(&"pgbench_tellers"), "{owners:?}");
}

#[test]
fn ranges_are_as_wide_as_the_rows_of_a_call() {
    let expected = ["s1_2 random(1, 100000)", "s1_1 :s1_2 + 50"];
    let sql = "SELECT * FROM pgbench_accounts WHERE aid < $1 AND aid >= $2 LIMIT $3 OFFSET $4";
    let (sets, sql, _) = script(sql, 50.0);
    assert_eq!(sets, expected);
    assert!(sql.ends_with("aid < :s1_1 AND aid >= :s1_2 LIMIT 50 OFFSET 0"), "{sql}");
    let (sets, ..) = script("SELECT * FROM pgbench_accounts WHERE aid BETWEEN $1 AND $2", 1.0);
    assert_eq!(sets, ["s1_1 random(1, 100000)", "s1_2 :s1_1 + 1000"]);
}

#[test]
fn shortened_lists_are_as_long_as_the_rows_of_a_call() {
    let text = "SELECT * FROM pgbench_tellers WHERE tid IN ($1 /*, ... */) AND bid = $2";
    let (sets, sql, checked) = script(text, 3.2);
    assert_eq!(sets.len(), 4);
    assert_eq!(sets[2], "s1_1_3 random(1, 10)");
    let begin = "SELECT * FROM pgbench_tellers WHERE tid IN";
    assert_eq!(sql, format!("{begin} (:s1_1_1, :s1_1_2, :s1_1_3 ) AND bid = :s1_2"));
    assert_eq!(checked, format!("{begin} ($1, $2, $3 ) AND bid = $4"));
}

#[test]
fn values_are_those_of_the_innermost_table() {
    let sql = "SELECT * FROM pgbench_accounts WHERE EXISTS \
               (SELECT FROM pgbench_tellers t WHERE bid = $1 AND tid = $2)";
    let (sets, ..) = script(sql, 1.0);
    assert_eq!(sets, ["s1_1 random(1, 1)", "s1_2 random(1, 10)"]);
}

#[test]
fn what_cannot_be_replayed_is_told() {
    let reason = |sql, types| prepare_with(sql, types, 1.0).err();
    let relation = |name: &str| Some(Reason::Relation { name: name.into() });
    assert_eq!(reason("SELECT * FROM x", &[]), relation("x"));
    assert_eq!(reason("SELECT * FROM other.lines", &[]), relation("other.lines"));
    let function = |name: &str| Some(Reason::Function { name: name.into() });
    assert_eq!(reason("SELECT f(item), now() FROM lines", &[]), function("f"));
    assert_eq!(reason("SELECT public.now()", &[]), function("public.now"));
    assert_eq!(reason("SELECT pg_catalog.now()", &[]), None);
    let parameter = Some(Reason::Parameter { number: 1 });
    assert_eq!(reason("SELECT now($1)", &["regclass"]), parameter);
    assert_eq!(reason("SELECT item FROM lines WHERE item = 5", &[]), Some(Reason::HoldsValues));
}
