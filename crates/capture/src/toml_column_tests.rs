//! Columns as the reader of workloads understands them.

use std::fs;

use super::*;
use crate::catalog::Family;
use crate::catalog::tests::column;

/// Returns a column of each filling, with its spelling.
fn spelled() -> Vec<(&'static str, String)> {
    let integer = || column("c", Family::Integer(i32::MAX as u64));
    let text = || column("c", Family::Text(Some(9)));
    let with_nulls = |nulls| {
        let mut column = integer();
        (column.is_not_null, column.statistics.nulls) = (false, nulls);
        column
    };
    let mut money = column("c", Family::Numeric);
    (money.scale, money.whole_digits) = (8, Some(2));
    let mut rate = column("c", Family::Numeric);
    (rate.scale, rate.whole_digits) = (2, Some(1));
    let time = |is_ordered| Filling::Times {
        from: "2024-01-01".into(),
        to: "2024-03-01".into(),
        span_s: 86_400,
        is_ordered,
    };
    let filled = [
        ("row", integer(), Filling::RowNumber),
        ("reference", with_nulls(0.25), Filling::References("t_row".into(), 10)),
        ("group", integer(), Filling::Counter { every: 5, cycle: None }),
        ("cycle", integer(), Filling::Counter { every: 5, cycle: Some(3) }),
        ("permutation", with_nulls(0.99999), Filling::Permutation(100)),
        ("numbered", text(), Filling::Numbered("xx".into())),
        ("letters", text(), Filling::Letters(4, 9)),
        ("choice", text(), Filling::Choice(vec![9, 1])),
        ("even", column("c", Family::Uuid), Filling::Choice(vec![1, 1])),
        ("rate", rate, Filling::Choice(vec![1, 1])),
        ("money", money, Filling::Decimal(99)),
        ("ordered", column("c", Family::Date), time(true)),
        ("between", column("c", Family::Timestamp), time(false)),
        ("json", column("c", Family::Json), Filling::Json(20)),
    ];
    let spelled = filled.iter().map(|(name, column, filling)| {
        (*name, toml_column(column, filling, 10).unwrap().to_string())
    });
    spelled.collect()
}

#[test]
fn columns_are_spelled_in_few_words() {
    let all = spelled();
    let spelled = |name: &str| all.iter().find(|(n, _)| *n == name).unwrap().1.as_str();
    assert_eq!(spelled("row"), "{ name = \"c\", row_number = true }");
    assert_eq!(spelled("reference"), "{ name = \"c\", references = \"t_row\", null = 0.25 }");
    assert_eq!(spelled("cycle"), "{ name = \"c\", counter = { every = 5, cycle = 3 } }");
    // Some rows have a value.
    assert_eq!(spelled("permutation"), "{ name = \"c\", permutation = 100, null = 0.9999 }");
    assert_eq!(spelled("numbered"), "{ name = \"c\", text = \"xx{row}\" }");
    assert_eq!(spelled("rate"), "{ name = \"c\", choice = [\"0.01\", \"0.02\"] }");
    let money = "{ name = \"c\", decimal = { from = 0, to = 99.999999, digits = 6 } }";
    assert_eq!(spelled("money"), money);
    let nothing = toml_column(&column("c", Family::Json), &Filling::Nothing, 10);
    assert_eq!(nothing, None);
}

#[test]
fn a_workload_of_all_fillings_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "description = \"x\"\n\n[data]\nschema = \"schema.sql\"\n".to_owned();
    for (name, column) in spelled() {
        text +=
            &format!("\n[[data.table]]\nname = \"t_{name}\"\nrows = 10\ncolumns = [{column}]\n");
    }
    text += "\n[[script]]\nfile = \"select.sql\"\n";
    for (name, text) in
        [("workload.toml", text.as_str()), ("schema.sql", ""), ("select.sql", "SELECT 1;\n")]
    {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let path = folder.path().to_str().unwrap();
    let workload = pgdyno_dataset::workload::load(path, &[]).unwrap();
    assert_eq!(workload.data.tables.len(), spelled().len());
}
