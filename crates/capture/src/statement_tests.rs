//! Statements as they are recognised.

use super::*;

fn column(name: &str) -> ColumnName {
    match name.split_once('.') {
        Some((table, name)) => {
            ColumnName { qualifier: Some(table.to_owned()), name: name.to_owned() }
        }
        None => ColumnName { qualifier: None, name: name.to_owned() },
    }
}

fn compared(name: &str) -> Option<Place> {
    Some(Place::Compared(column(name)))
}

/// Returns the places of all parameters, in the order of their numbers.
fn places(sql: &str) -> Vec<Option<Place>> {
    let statement = parse(sql).unwrap();
    statement.parameters.keys().map(|number| statement.places.get(number).cloned()).collect()
}

fn relations(sql: &str) -> Vec<String> {
    let name = |relation: &Relation| match &relation.alias {
        Some(alias) => format!("{} {alias}", relation.name),
        None => relation.name.clone(),
    };
    parse(sql).unwrap().relations.iter().map(name).collect()
}

#[test]
fn parameters_are_compared_with_columns() {
    let sql = "SELECT * FROM orders o WHERE o.id = $1 AND state <> $2::text AND $3 < total \
               AND at BETWEEN $4 AND $5 AND shop IN ($6, $7) LIMIT $8 OFFSET $9";
    assert_eq!(
        places(sql),
        [
            compared("o.id"),
            compared("state"),
            compared("total"),
            compared("at"),
            Some(Place::RangeEnd(column("at"), 4)),
            compared("shop"),
            compared("shop"),
            Some(Place::Limit),
            Some(Place::Offset),
        ]
    );
}

#[test]
fn parameters_are_assigned_and_added() {
    let sql =
        "UPDATE t SET a = $1, b = b + $2, c = coalesce(c, $3), (d, f) = ($4, now()) WHERE e = $5";
    assert_eq!(
        places(sql),
        [
            Some(Place::Assigned(column("a"))),
            Some(Place::Added(column("b"))),
            Some(Place::Assigned(column("c"))),
            Some(Place::Assigned(column("d"))),
            compared("e"),
        ]
    );
}

#[test]
fn parameters_are_inserted() {
    let inserted = |name: &str| {
        Some(Place::Inserted(ColumnName { qualifier: Some("t".into()), name: name.into() }))
    };
    let inserted_at = |at| Some(Place::InsertedAt("t".into(), at));
    let sql = "INSERT INTO t (a, \"B\", c) VALUES ($1, $2::text, now()), ($3, $4, $5 + $6) \
               ON CONFLICT (a) DO UPDATE SET c = $7";
    assert_eq!(
        places(sql),
        [
            inserted("a"),
            inserted("B"),
            inserted("a"),
            inserted("B"),
            inserted("c"),
            Some(Place::Distance),
            Some(Place::Assigned(column("c"))),
        ]
    );
    assert!(parse(sql).unwrap().has_conflict_clause);
    let sql = "INSERT INTO t VALUES ($1, $2)";
    assert_eq!(places(sql), [inserted_at(0), inserted_at(1)]);
    assert_eq!(places("INSERT INTO s.t SELECT a, $1 FROM u"), [inserted_at(1)]);
    let sql = "WITH w AS (INSERT INTO t (a) VALUES ($1)) INSERT INTO u (b) SELECT $2 FROM w";
    assert_eq!(places(sql), [inserted("a"), Some(Place::Inserted(column("u.b")))]);
}

#[test]
fn what_is_not_recognised_stays_unknown() {
    for sql in [
        "SELECT * FROM t WHERE lower(a) = $1",
        "SELECT * FROM t WHERE a = ANY (ARRAY[b, c])[$1]",
        "SELECT * FROM t WHERE a = f(ARRAY[$1])",
        "SELECT * FROM t WHERE a->>$1 IS NULL",
        "SELECT substr(a, $1) FROM t",
        "SELECT * FROM t WHERE a < $1 - b",
        "SELECT * FROM t WHERE f($1)",
    ] {
        assert_eq!(places(sql), [None], "{sql}");
    }
    assert_eq!(places("SELECT $1 FROM t"), [Some(Place::Output)]);
}

#[test]
fn tables_are_found_with_their_aliases() {
    assert_eq!(
        relations("SELECT * FROM a, only b AS x JOIN s.c ON true WHERE EXTRACT(year FROM at) > $1"),
        ["a", "b x", "c"]
    );
    assert_eq!(relations("SELECT * FROM a x WHERE EXISTS (SELECT $1 FROM b)"), ["a x", "b"]);
    assert_eq!(
        relations("WITH w AS (SELECT * FROM a) SELECT * FROM w JOIN b USING (id)"),
        ["a", "b"]
    );
    assert_eq!(relations("SELECT * FROM a FOR UPDATE"), ["a"]);
    assert_eq!(relations("DELETE FROM a USING b WHERE a.id IS DISTINCT FROM b.id"), ["a", "b"]);
    assert_eq!(relations("INSERT INTO a (id) VALUES ($1)"), ["a"]);
    assert_eq!(relations("UPDATE a SET b = $1"), ["a"]);
    assert!(relations("SELECT * FROM generate_series($1, $2)").is_empty());
}

#[test]
fn texts_with_values_are_told() {
    let holds = |sql: &str| parse(sql).err() == Some(Reason::HoldsValues);
    assert!(holds("SELECT * FROM t WHERE phone = 5551234"));
    assert!(holds("SELECT * FROM t WHERE name = 'secret'"));
    assert!(holds("SELECT $$secret$$"));
    assert!(holds("SELECT * FROM t GROUP BY 1 HAVING count(*) > 5"));
    assert!(holds("SELECT * FROM t ORDER BY a + 5"));
    assert!(!holds("SELECT a, $1::numeric(10, 2) FROM t GROUP BY 1 ORDER BY 1, 2 DESC LIMIT $2"));
}

#[test]
fn statements_of_rows_are_told_from_others() {
    let reason = |sql: &str| parse(sql).err();
    assert_eq!(reason("/* x */ (select $1)"), None);
    assert_eq!(reason("WITH a AS (SELECT b FROM c) INSERT INTO d SELECT * FROM a"), None);
    for sql in ["ALTER ROLE x PASSWORD 'y'", "SET application_name = $1"] {
        assert_eq!(reason(sql), Some(Reason::Utility), "{sql}");
    }
    for sql in ["", "no sql", "SELECT interval $1 day to", "SELECT 1; SELECT 2", "SELECT 'a"] {
        assert_eq!(reason(sql), Some(Reason::NotUnderstood), "{sql}");
    }
}

#[test]
fn ranges_are_pairs_of_bounds() {
    let end = |name: &str, from| Some(Place::RangeEnd(column(name), from));
    let sql = "SELECT * FROM t WHERE b = $1 AND (a >= $2 AND a < $3)";
    assert_eq!(places(sql), [compared("b"), compared("a"), end("a", 2)]);
    let sql = "SELECT * FROM t WHERE $1 > a AND a > $2";
    assert_eq!(places(sql), [end("a", 2), compared("a")]);
    let sql = "SELECT * FROM t WHERE a < $1 AND a >= $2 - $3";
    assert_eq!(places(sql), [compared("a"), Some(Place::Same(1)), Some(Place::Distance)]);
    let sql = "SELECT * FROM t WHERE a BETWEEN $1 - $2 AND $3 - $4";
    let distance = Some(Place::Distance);
    assert_eq!(places(sql), [compared("a"), distance.clone(), end("a", 1), distance]);
    let sql = "SELECT * FROM t WHERE a < $1 OR a >= $2";
    assert_eq!(places(sql), [compared("a"), compared("a")]);
}

#[test]
fn arrays_are_compared_by_their_elements() {
    let sql = "SELECT * FROM t WHERE a = ANY ($1::int[]) AND b = ANY ((ARRAY[$2]::int[])[$3:$4])";
    assert_eq!(places(sql), [Some(Place::AnyOf(column("a"))), compared("b"), None, None]);
    let sql = "SELECT * FROM t WHERE a IN ($1 /*, ... */) AND b = ANY (ARRAY[$2 /*, ... */]) \
               AND (c = $3 /* why */) OR f($4 /*, ... */)";
    let first_of = |name| Some(Place::FirstOf(column(name)));
    assert_eq!(places(sql), [first_of("a"), first_of("b"), compared("c"), None]);
}

#[test]
fn texts_are_rewritten_without_comments() {
    let sql = "SELECT /* who: me */ a  FROM t -- why\n WHERE \"a  b\"=$1 AND c = $12;";
    let statement = parse(sql).unwrap();
    assert_eq!(statement.text(), "SELECT a FROM t WHERE \"a  b\"=$1 AND c = $12");
    let statement_of = |sql| parse(sql).unwrap();
    let values = BTreeMap::from([(1, ":x".to_owned())]);
    let sql = "SELECT a -$1, (b::int[])[$1:$1], b[c:d] FROM t";
    let expected = "SELECT a - :x, (b::int[])[:x: :x], b[c: d] FROM t";
    assert_eq!(statement_of(sql).rewritten(&values), expected);
    assert!(parse("SELECT a AS \"a:x\" FROM t").is_err());
    assert_eq!(statement.rewritten(&values), "SELECT a FROM t WHERE \"a  b\"=:x AND c = $12");
}

#[test]
fn columns_are_those_of_the_innermost_query() {
    let relation = |sql: &str, number| {
        let statement = parse(sql).unwrap();
        let Some(Place::Compared(column)) = statement.places.get(&number) else { panic!("{sql}") };
        let relations = statement.relations_of(column, number);
        relations.iter().map(|relation| relation.name.clone()).collect::<Vec<_>>()
    };
    let sql = "SELECT * FROM a WHERE id = $1 AND EXISTS (SELECT FROM b WHERE id = $2 AND a.c = $3)";
    assert_eq!(relation(sql, 1), ["a", "b"]);
    assert_eq!(relation(sql, 2), ["b", "a"]);
    assert_eq!(relation(sql, 3), ["a"]);
    let sql = "WITH w AS (SELECT * FROM a) SELECT * FROM w JOIN b USING (id) WHERE id = $1";
    assert_eq!(relation(sql, 1), ["b", "a"]);
}

#[test]
fn a_value_behind_its_type_gets_a_cast() {
    let statement =
        parse("SELECT a FROM t WHERE b > now() - interval  $1 AND c < date $2").unwrap();
    assert_eq!(statement.text(), "SELECT a FROM t WHERE b > now() - $1::interval AND c < $2::date");
    assert_eq!(statement.places.get(&2), Some(&Place::Compared(column("c"))));
}
