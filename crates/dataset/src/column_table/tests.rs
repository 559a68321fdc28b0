//! Columns, as they are read.

use super::*;

fn column(line: &str) -> Result<ColumnSpec, ColumnError> {
    column_of(line, None)
}

/// A column of a table whose rows are children of `families`.
fn column_of(line: &str, families: Option<&Families>) -> Result<ColumnSpec, ColumnError> {
    let table: ColumnTable = toml::from_str(&format!("name = \"x\"\n{line}")).unwrap();
    table.into_spec(&TableContext { name: "t", families })
}

#[test]
fn a_column_has_one_way_to_be_filled() {
    let values = |line: &str| column(line).unwrap().values;
    let every = |n| NonZeroU64::new(n).unwrap();
    let counter = |every, cycle, from| {
        Values::Generated(Generator::Integer(Integers::Counter { every, cycle, from }))
    };
    assert_eq!(values("group_of = 10"), counter(every(10), None, 1));
    assert_eq!(values("counter = { cycle = 3, from = 0 }"), counter(every(1), Some(every(3)), 0));
    assert_eq!(
        values("decimal = { from = 0.29, to = 9_999.99, digits = 2 }"),
        Values::Generated(Generator::Decimal { low: 29, high: 999_999, digits: 2 })
    );
    assert_eq!(
        values("choice = [\"a\", \"b\"]\nweights = [9, 1]"),
        Values::Choice(vec![(9, "a".into()), (1, "b".into())])
    );
    let numbered = Varying::Numbered { before: "a".into(), after: "b".into() };
    assert_eq!(values("text = \"a{row}b\""), Values::Generated(Generator::Varying(numbered)));
    assert_eq!(values("text = \"ab\""), Values::Constant("ab".into()));
    assert_eq!(column("letters = [1, 2]\nnull = 0.5").unwrap().null, 0.5);
    assert_eq!(
        values("non_uniform = { mask = 255, from = 0, to = 999, shift = 7 }"),
        Values::Generated(Generator::Integer(Integers::NonUniform {
            mask: 255,
            low: 0,
            high: 999,
            shift: 7
        }))
    );
    let families = |parents: &str, least, most| families(parents, least, most).unwrap();
    assert_eq!(
        values("children = [5, 15]"),
        Values::Generated(Generator::Integer(Integers::Children(families("t", 5, 15))))
    );
    let orders = families("orders", 5, 15);
    let of = |line: &str| column_of(line, Some(&orders)).unwrap().values;
    let number = Integers::Counter { every: every(1), cycle: Some(every(3000)), from: 1 };
    assert_eq!(
        of("of_parent = { counter = { cycle = 3000 } }"),
        Values::Generated(Generator::Integer(Integers::OfParent(orders.clone(), number.into())))
    );
    let of_parents = Some(orders.clone());
    assert_eq!(
        of("first = { rows = 2, of = 3, parents = true, value = { constant = \"now\" } }"),
        Values::First {
            place: Place { rows: 2, of: every(3), families: of_parents },
            first: Some(Box::new(Values::Constant("now".into()))),
            rest: None
        }
    );
}

#[test]
fn what_cannot_be_filled_is_refused() {
    for (line, words) in [
        ("", "needs exactly one"),
        ("row_number = true\nuniform = [1, 2]", "needs exactly one"),
        ("uniform = [2, 1]", "no number from 2 to 1"),
        ("letters = [2, 1]", "no number from 2 to 1"),
        ("decimal = { from = 2, to = 1, digits = 0 }", "no number from 2 to 1"),
        ("decimal = { from = -1, to = 1, digits = 0 }", "0 or more"),
        ("decimal = { from = 0, to = 1, digits = 7 }", "up to 6"),
        ("choice = [\"a\"]\nweights = [1, 2]", "one for each"),
        ("choice = [\"a\"]\nweights = [0]", "above 0"),
        ("timestamp = { from = 'a' }", "drawn up to `to`"),
        ("timestamp = { from = 'a', to = 'b', every = '1s' }", "drawn up to `to`"),
        ("array = { length = [1, 1001], of = { uniform = [1, 2] } }", "0 to 1000 elements"),
        ("array = { length = [2, 1], of = { uniform = [1, 2] } }", "no number from 2 to 1"),
        ("array = { length = [1, 2], of = {} }", "needs exactly one"),
        ("json = [{ uniform = [1, 2] }]", "has no name"),
        ("json = [{ name = 'm', filler = 3 }]", "member `m` of json"),
        ("json = [{ name = 'm', references = 't' }]", "member `m` of json"),
        ("choice = []", "above 0"),
        ("filler = 1\nweights = [1]", "one for each"),
        ("filler = 1\nnull = 1.5", "from 0 to 1"),
        ("non_uniform = { mask = 1, from = 2, to = 1 }", "no number from 2 to 1"),
        ("non_uniform = { mask = 1, from = -2, to = 1 }", "no number from 0 to -2"),
        ("children = [5, 4]", "no 5 to 4 children"),
        ("children = [0, 101]", "the most is 1 to 100"),
        ("child_number = true", "is not `children_of`"),
        ("of_parent = { row_number = true }", "is not `children_of`"),
        ("first = { rows = 1, of = 2, parents = true }", "is not `children_of`"),
        ("first = { rows = 1, of = 2, value = {} }", "needs exactly one"),
        ("letters = [3, 4]\nwithin = { text = \"four\", share = 0.1 }", "room for its text"),
        ("filler = 4\nwithin = { text = \"a\", share = 0.1 }", "is for `letters`"),
        ("letters = [3, 4]\nwithin = { text = \"a\", share = 2 }", "`within.share` is 2"),
        (
            "spelled = { words = ['', '', '', '', '', '', '', '', '', ''], digits = 0, \
             number = { row_number = true } }",
            "1 to 18 digits",
        ),
    ] {
        let error = column(line).unwrap_err().to_string();
        assert!(error.contains(words), "{line}: {error}");
    }
}
