//! Columns as their statistics have them filled.

use super::*;
use crate::catalog::tests::{column, table};
use crate::catalog::{ForeignKey, Index};

const SMALLINT: Family = Family::Integer(i16::MAX as u64);
const INTEGER: Family = Family::Integer(i32::MAX as u64);

/// Returns a column with so many `distinct` values.
fn counted(name: &str, family: Family, distinct: u64) -> Column {
    let mut column = column(name, family);
    column.statistics.distinct = distinct;
    column
}

fn with_key(name: &str, rows: u64, columns: Vec<Column>, key: &[&str]) -> Table {
    let index = Index {
        name: "key".into(),
        columns: key.iter().map(|name| (*name).to_owned()).collect(),
        is_primary: true,
        is_unique: true,
        has_expressions: false,
        definition: String::new(),
    };
    Table { columns, indexes: vec![index], ..table(name, rows) }
}

fn reference(column: &str, parent: &str) -> ForeignKey {
    ForeignKey {
        name: format!("to_{parent}"),
        columns: vec![column.into()],
        parent: parent.into(),
        parent_columns: vec!["id".into()],
        definition: String::new(),
    }
}

/// Returns the values of `row`, from 0, in the columns of `names`.
fn values(filled: &Filled, names: &[&str], row: u64) -> Vec<u64> {
    let value = |name: &&str| match filled.columns[*name] {
        Filling::Counter { every, cycle } => {
            let group = row / every;
            1 + cycle.map_or(group, |cycle| group % cycle)
        }
        ref other => panic!("{name}: {other:?}"),
    };
    names.iter().map(value).collect()
}

#[test]
fn rows_differ_in_a_key_of_several_numbers() {
    for (distinct, rows) in [([10, 5, 20], 1000), ([1, 1, 1], 40_000), ([50, 50, 50], 7)] {
        let columns = vec![
            counted("a", INTEGER, distinct[0]),
            counted("b", SMALLINT, distinct[1]),
            counted("c", SMALLINT, distinct[2]),
        ];
        let names = ["a", "b", "c"];
        let filled = fill(&with_key("t", rows, columns, &names), &BTreeMap::new(), &[]);
        let all: BTreeSet<Vec<u64>> = (0..rows).map(|row| values(&filled, &names, row)).collect();
        assert_eq!(all.len() as u64, rows);
        let holds = |row: &Vec<u64>| row[1..].iter().all(|value| *value <= i16::MAX as u64);
        assert!(all.iter().all(holds), "{:?}", filled.columns);
        assert!(filled.kept.contains("key"));
        assert_eq!(filled.fresh, BTreeSet::from(["a".to_owned()]));
    }
}

#[test]
fn new_rows_differ_by_a_number_that_is_no_parents() {
    let parent = with_key("parent", 100, vec![column("id", INTEGER)], &["id"]);
    let parents = BTreeMap::from([("parent".to_owned(), parent)]);
    let columns = vec![counted("order_id", INTEGER, 100), counted("line", SMALLINT, 10)];
    let mut table = with_key("t", 1000, columns, &["order_id", "line"]);
    table.foreign_keys = vec![reference("order_id", "parent")];
    let filled = fill(&table, &parents, &["parent".to_owned()]);
    assert_eq!(filled.fresh, BTreeSet::from(["line".to_owned()]));
    assert!(filled.kept.contains("to_parent"));
    // Where no other column makes a new row differ, the reference is left out.
    let mut table = with_key("t", 50, vec![column("user_id", INTEGER)], &["user_id"]);
    table.foreign_keys = vec![reference("user_id", "parent")];
    let filled = fill(&table, &parents, &["parent".to_owned()]);
    assert_eq!(filled.columns["user_id"], Filling::RowNumber);
    let parts: Vec<&Part> = filled.omissions.iter().map(|omission| &omission.part).collect();
    assert_eq!(parts, [&Part::ForeignKey]);
}

#[test]
fn references_name_rows_of_the_parent() {
    let parent = with_key("parent", 100, vec![column("id", INTEGER)], &["id"]);
    let mut table = with_key(
        "t",
        1000,
        vec![column("id", INTEGER), counted("parent_id", INTEGER, 60)],
        &["id"],
    );
    table.foreign_keys = vec![reference("parent_id", "parent")];
    let parents = BTreeMap::from([("parent".to_owned(), parent)]);
    let filled = fill(&table, &parents, &["parent".to_owned()]);
    assert_eq!(filled.columns["parent_id"], Filling::References("parent".into(), 100));
    assert!(filled.omissions.is_empty());
    // Its rows are not there yet.
    let filled = fill(&table, &parents, &[]);
    assert_eq!(filled.columns["parent_id"], Filling::Permutation(100));
    let filled = fill(&table, &BTreeMap::new(), &[]);
    assert_eq!(filled.omissions[0].part, Part::ForeignKey);
}

#[test]
fn made_values_fit_their_types() {
    let values = |column: &Column| match plain(column, 100_000) {
        Filling::Choice(weights) => made_value(column, weights.len()),
        other => panic!("{other:?}"),
    };
    let mut number = counted("n", Family::Numeric, 1000);
    (number.scale, number.whole_digits) = (2, Some(1));
    assert_eq!(values(&number), "9.99");
    (number.scale, number.whole_digits) = (0, Some(2));
    assert_eq!(values(&number), "99");
    assert_eq!(values(&counted("t", Family::Text(Some(2)), 500)), "99");
}
