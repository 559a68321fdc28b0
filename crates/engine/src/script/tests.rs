use super::*;
use crate::random::Random;

fn parse(text: &str) -> Script {
    Script::parse("test.sql", text).unwrap_or_else(|e| panic!("{e}"))
}

fn error(text: &str) -> String {
    Script::parse("test.sql", text).unwrap_err().to_string()
}

/// Each command as one line: its line number and text.
fn commands(text: &str) -> Vec<String> {
    parse(text).commands.iter().map(|c| format!("{}: {}", c.line, c.text)).collect()
}

/// The value of an expression without variables, as text.
fn value(expression: &str) -> Result<String, String> {
    let script =
        Script::parse("test.sql", &format!("\\set x {expression}")).map_err(|e| String::from(e.what))?;
    let Op::Set { expression, .. } = &script.commands[0].op else { panic!("no \\set") };
    let mut random = Random::new(0);
    let value =
        expression.eval(&mut Scope { variables: &[], random: &mut random }).map_err(|e| e.to_string())?;
    let mut text = Vec::new();
    value.write_text(&mut text);
    Ok(String::from_utf8(text).unwrap())
}

#[test]
fn commands_end_where_psql_ends_them() {
    assert_eq!(commands("SELECT 1; SELECT 2;\nSELECT\n  3"), ["1: SELECT 1", "1: SELECT 2", "2: SELECT 3"]);
    assert_eq!(
        commands("-- a\n;;  ; /* only a comment */ ;\n SELECT 1 -- b; c\n + 2;"),
        ["3: SELECT 1 -- b; c + 2"]
    );
    assert_eq!(
        commands("/*+ a hint; /* nested; */ ; */ SELECT ';', \";\", 'it''s;';"),
        ["1: /*+ a hint; /* nested; */ ; */ SELECT ';', \";\", 'it''s;'"]
    );
    assert_eq!(commands(r"SELECT E'\';', '\', e'\\'; SELECT name'a\'; SELECT 3;").len(), 3);
    assert_eq!(commands("DO $$ ; $x$ ; $$; DO $x$ $$ ; $x$; SELECT $1; SELECT a$b$; SELECT 2").len(), 5);
    assert_eq!(
        commands("CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2);"),
        ["1: CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2)"]
    );
    assert_eq!(
        commands("SELECT 1 \\set x 1\nSELECT 2\n\\sleep 1\n"),
        ["1: SELECT 1", "1: \\set x 1", "2: SELECT 2", "3: \\sleep 1"]
    );
    assert_eq!(commands("SELECT 1 / 2 - 1"), ["1: SELECT 1 / 2 - 1"]);
    assert_eq!(commands("SELECT 'unterminated; \\set x"), ["1: SELECT 'unterminated; \\set x"]);
}

#[test]
fn variables_are_found_where_pgbench_finds_them() {
    let script = parse("SELECT ':a', x::int, :b_2, :1, :::c, :a /* :d */, ::e, :é, a:f;");
    assert_eq!(script.variables, ["a", "b_2", "d", "é", "f"]);
    let Op::Sql(pieces) = &script.commands[0].op else { panic!("no SQL") };
    let text = |s: &str| Piece::Text(s.to_owned());
    assert_eq!(
        pieces[..6],
        [
            text("SELECT '"),
            Piece::Variable(Slot(0)),
            text("', x::int, "),
            Piece::Variable(Slot(1)),
            text(", :1, :::c, "),
            Piece::Variable(Slot(0)),
        ]
    );
}

#[test]
fn expressions_have_pgbenchs_precedence_types_and_limits() {
    for (expression, expected) in [
        ("1 + 2 * 3 - 4", "3"),
        ("(1 + 2) * 3", "9"),
        ("2 - 3 - 4", "-5"),
        ("-2 * -3", "6"),
        ("- - 2", "2"),
        ("1 - -2 * 3 + 10 / 4", "9"),
        ("-7 / 2", "-3"),
        ("-7 % 2", "-1"),
        ("7.5 % 4", "0"),
        ("1 / 4.0", "0.25"),
        ("1/0.0", "inf"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-9223372036854775808 % -1", "0"),
        ("9223372036854775807", "9223372036854775807"),
        ("int(2.5) + int(3.5)", "6"),
        ("greatest(1, 2.5, 3)", "3"),
        ("least(4, -1, 2)", "-1"),
        ("abs(-3) + abs(-3.5)", "6.5"),
        ("mod(7, -4)", "3"),
        ("POWER(2, 10)", "1024"),
        ("pow(2, -1)", "0.5"),
        ("exp(0) + ln(1)", "1"),
        ("pi()", "3.14159265358979"),
        ("sqrt(2)", "1.4142135623731"),
        ("double(1) / 3", "0.333333333333333"),
        ("1e20", "1e+20"),
        ("1e-7", "1e-07"),
        ("1e-5 * 10", "0.0001"),
        (".5e1", "5"),
        ("123456789012345678.0", "1.23456789012346e+17"),
        ("1000000.0 * 1000000000", "1e+15"),
        ("999999999999999.0", "999999999999999"),
        ("-0.0", "0"),
        ("1 \\\n + 2", "3"),
    ] {
        assert_eq!(value(expression).as_deref(), Ok(expected), "{expression}");
    }
    for (expression, expected) in [
        ("9223372036854775807 + 1", "bigint out of range"),
        ("-9223372036854775807 - 2", "bigint out of range"),
        ("4611686018427387904 * 2", "bigint out of range"),
        ("-9223372036854775808 / -1", "bigint out of range"),
        ("- (-9223372036854775808)", "bigint out of range"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("int(1e19)", "double 10000000000000000000 does not fit into a bigint"),
        ("random(2, 1)", "empty range given to random: 2 to 1"),
        ("random(-9223372036854775808, 0)", "random range is too large: -9223372036854775808 to 0"),
        ("random_gaussian(1, 2, 1.5)", "random_gaussian's parameter is 1.5; it must be at least 2"),
        ("9223372036854775808", "`9223372036854775808` is out of range"),
        ("1e999", "`1e999` is out of range"),
    ] {
        assert_eq!(value(expression), Err(expected.to_owned()), "{expression}");
    }
}

#[test]
fn random_sequences_are_those_of_pgbench_15() {
    let script = parse(
        "\\set a random(1, 1000000)\n\\set b random(-5, 5)\n\\set g random_gaussian(1, 1000, 2.5)\n\
         \\set e random_exponential(1, 1000, 3.0)\n\\set z random_zipfian(1, 1000, 1.3)",
    );
    // As `pgbench --random-seed=42` seeds its first client.
    let mut random = Random::new(Random::new(42).next_u64());
    // What that pgbench, of PostgreSQL 15, drew in three transactions.
    for expected in [[668_251, 5, 434, 329, 69], [3_615, -4, 749, 115, 207], [580_320, 1, 175, 303, 5]] {
        for (command, expected) in script.commands.iter().zip(expected) {
            let Op::Set { expression, .. } = &command.op else { panic!("no \\set") };
            let drawn = expression.eval(&mut Scope { variables: &[], random: &mut random });
            assert_eq!(drawn, Ok(Value::Int(expected)), "{}", command.text);
        }
    }
}

#[test]
fn an_error_points_at_its_place() {
    assert_eq!(
        error("SELECT 1;\n\\set aid random(1, 10 * :scale\nSELECT 2;"),
        "test.sql:2:31: the expression ends where `)` should be, in command `\\set`\n  \
         \\set aid random(1, 10 * :scale\n                                ^"
    );
    assert_eq!(
        error("SELECT 1; \\gset"),
        "test.sql:1:11: `\\gset` is not supported yet\n  SELECT 1; \\gset\n            ^"
    );
    assert_eq!(
        error("\\set x 1 + \\\n  2 $ 3"),
        "test.sql:2:5: `$` has no place in an expression, in command `\\set`\n    2 $ 3\n      ^"
    );
    let help = Script::parse("test.sql", "\\set x rnd(1, 2)").unwrap_err().help().unwrap();
    assert!(help.contains("random_zipfian"), "{help}");
}

#[test]
fn what_is_no_script_is_refused_in_words() {
    for (text, words) in [
        ("", "holds no command"),
        ("-- nothing\n /* here */ ;", "holds no command"),
        ("\\st x 1", "there is no meta command `\\st`"),
        ("\\", "there is no meta command `\\`"),
        ("SELECT 1\\; SELECT 2;", "`\\;` is not supported yet"),
        ("\\set", "a variable's name is missing"),
        ("\\set 1x 2", "`1x` is no variable name"),
        ("\\set x", "the expression ends where a number"),
        ("\\set x 1 2", "`2` stands where an operator"),
        ("\\set x 1 < 2", "operator `<` is not supported yet"),
        ("\\set x :1", "name is missing after `:`"),
        ("\\set x random(1)", "takes 2 arguments, not 1"),
        ("\\set x least()", "takes at least 1 arguments, not 0"),
        ("\\set x hash(1)", "`hash` is not supported yet"),
        ("\\set x case when", "`case` is not supported yet"),
        ("\\set x rnd(1, 2)", "there is no function `rnd`"),
        ("\\set x random", "ends where `(` should be"),
        ("\\set x random 1", "stands where `(`"),
        ("\\sleep", "is no number to wait for"),
        ("\\sleep -1", "is no number to wait for"),
        ("\\sleep 1 h", "`h` is no unit of time"),
        ("\\sleep 1 ms now", "`now` is one word too many"),
        ("\\sleep :", "`:` is no variable"),
        ("\\setrandom x 1 2", "not supported yet"),
    ] {
        let found = error(text);
        assert!(found.contains(words), "{text:?}: {found}");
    }
}

#[test]
fn sleeping_takes_pgbenchs_units() {
    for (text, amount, unit) in [
        ("\\sleep 2", 2, Duration::from_secs(1)),
        ("\\sleep 10 ms", 10, Duration::from_millis(1)),
        ("\\sleep 10us", 10, Duration::from_micros(1)),
    ] {
        let expected = Op::Sleep { amount: Expr::Constant(Value::Int(amount)), unit };
        assert_eq!(parse(text).commands[0].op, expected, "{text}");
    }
    let expected = Op::Sleep { amount: Expr::Variable(Slot(0)), unit: Duration::from_secs(1) };
    assert_eq!(parse("\\sleep :pause").commands[0].op, expected);
}

#[test]
fn expressions_too_large_for_a_stack_are_refused() {
    let deep = format!("\\set x {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(error(&deep).contains("nested more than"));
    let long = format!("\\set x 1{}", "+1".repeat(100_000));
    assert!(error(&long).contains("more than 2000 parts"));
    assert!(error(&format!("\\set x {}1", "-".repeat(100_000))).contains("nested more than"));
    // The largest that are taken can be evaluated.
    assert_eq!(value(&format!("1{}", "+1".repeat(999))).as_deref(), Ok("1000"));
}

mod hostile {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_text_makes_the_parser_panic(text in "(\\PC|[\\\\\n\r;:'\"$()*/+%-]|\\\\set x |random\\(|e'){0,60}") {
            let _ = Script::parse("any", &text);
        }

        #[test]
        fn doubles_are_written_so_that_they_read_back(x in proptest::num::f64::NORMAL) {
            let mut text = Vec::new();
            Value::Double(x).write_text(&mut text);
            let text = String::from_utf8(text).unwrap();
            let back: f64 = text.parse().unwrap();
            // 15 digits hold a double to a relative error of 5e-15 and its own rounding; the largest may round up to infinity.
            prop_assert!(((back - x) / x).abs() < 5.001e-15 || back.is_infinite(), "{x} as {text}");
        }
    }
}
