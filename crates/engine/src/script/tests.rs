use std::time::Duration;

use super::*;
use crate::random::Random;
use pgdyno_model::Advice;

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

fn scope<'a>(variables: &'a [Option<VariableValue>], random: &'a mut Random) -> Scope<'a> {
    Scope { variables, random, seed: Slot(0), debug: &|_| {} }
}

/// The value of an expression without variables, as text.
fn value(expression: &str) -> Result<String, String> {
    let script = Script::parse("test.sql", &format!("\\set x {expression}"))
        .map_err(|e| String::from(e.what))?;
    let Op::Set { expression, .. } = &script.commands[0].op else { panic!("no \\set") };
    let mut random = Random::new(0);
    let value = expression.eval(&mut scope(&[], &mut random)).map_err(|e| e.to_string())?;
    let mut text = Vec::new();
    value.write_text(&mut text);
    Ok(String::from_utf8(text).unwrap())
}

#[test]
fn commands_end_where_psql_ends_them() {
    assert_eq!(
        commands("SELECT 1; SELECT 2;\nSELECT\n  3"),
        ["1: SELECT 1", "1: SELECT 2", "2: SELECT 3"]
    );
    assert_eq!(commands("-- a\n SELECT 1 -- b; c\n + 2;\n-- d\n"), ["2: SELECT 1 -- b; c + 2"]);
    // Whatever a semicolon ends is a command, and a comment that may carry a hint.
    assert_eq!(commands(";;\n /* a */ ;"), ["1: ", "1: ", "2: /* a */"]);
    assert_eq!(
        commands("SELECT 1; /* a */ \\gset\n/* b */"),
        ["1: SELECT 1", "1: /* a */", "2: /* b */"]
    );
    assert_eq!(commands("\\;\\; \\;SELECT 1;"), ["1: ;; ;SELECT 1"]);
    // A backslash alone ends what stands before it.
    assert_eq!(commands("SELECT 1 \\\nSELECT 2;\n\\ \n"), ["1: SELECT 1", "2: SELECT 2"]);
    assert_eq!(
        commands(
            "CREATE OR REPLACE FUNCTION f() BEGIN ATOMIC SELECT CASE WHEN 1 THEN 2 END; SELECT 2; \
             END; SELECT 3"
        ),
        [
            "1: CREATE OR REPLACE FUNCTION f() BEGIN ATOMIC SELECT CASE WHEN 1 THEN 2 END; SELECT \
             2; END",
            "1: SELECT 3"
        ]
    );
    assert_eq!(commands("CREATE VIEW v AS SELECT 1 AS begin; SELECT 2;").len(), 2);
    assert_eq!(commands("SELECT E'a'\n -- b\n 'c\\';d'; SELECT E'a' 'b\\';").len(), 2);
    assert_eq!(commands("SELECT 1; -- a\rSELECT 2;"), ["1: SELECT 1", "1: SELECT 2"]);
    assert_eq!(
        commands("/*+ a hint; /* nested; */ ; */ SELECT ';', \";\", 'it''s;';"),
        ["1: /*+ a hint; /* nested; */ ; */ SELECT ';', \";\", 'it''s;'"]
    );
    assert_eq!(commands(r"SELECT E'\';', '\', e'\\'; SELECT name'a\'; SELECT 3;").len(), 3);
    assert_eq!(
        commands("DO $$ ; $x$ ; $$; DO $x$ $$ ; $x$; SELECT $1; SELECT a$b$; SELECT 2").len(),
        5
    );
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
    let Op::Sql { pieces, .. } = &script.commands[0].op else { panic!("no SQL") };
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

/// Expressions and their values as text.
const EXPRESSIONS: &[(&str, &str)] = &[
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
    ("1/0.0", "Infinity"),
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
];

#[test]
fn a_test_whether_a_variable_exists_is_false_as_in_pgbench() {
    assert_eq!(commands("SELECT :{?x}, :{?é}, :{?1}y;"), ["1: SELECT FALSE, FALSE, FALSEy"]);
    assert_eq!(parse("SELECT :x:{?x};").variables, ["xFALSE"]);
    let sent_as_it_is =
        "SELECT ':{?x}', \":{?x}\", $$:{?x}$$, 1::{?x}, :{?a-b}, :{ ?x} /* :{?x} */ -- :{?x}";
    assert_eq!(commands(sent_as_it_is), [format!("1: {sent_as_it_is}")]);
}

#[test]
fn expressions_have_pgbenchs_precedence_types_and_limits() {
    for &(expression, expected) in EXPRESSIONS {
        assert_eq!(value(expression).as_deref(), Ok(expected), "{expression}");
    }
    for (expression, expected) in [
        ("9223372036854775807 + 1", "bigint add out of range"),
        ("-9223372036854775807 - 2", "bigint sub out of range"),
        ("4611686018427387904 * 2", "bigint mul out of range"),
        ("-9223372036854775808 / -1", "bigint div out of range"),
        ("- (-9223372036854775808)", "bigint sub out of range"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("int(1e19)", "double to int overflow for 10000000000000000000.000000"),
        ("random(2, 1)", "empty range given to random"),
        ("random(-9223372036854775808, 0)", "random range is too large"),
        (
            "random_gaussian(1, 2, 1.5)",
            "gaussian parameter must be at least 2.000000 (not 1.500000)",
        ),
        ("1 = true", "cannot coerce boolean to int"),
        ("not 1", "cannot coerce int to boolean"),
        ("true + 1.5", "cannot coerce boolean to double"),
        ("permute(1, 0, 1)", "permute size parameter must be greater than zero"),
        (
            "random_zipfian(1, 2, 1.0)",
            "zipfian parameter must be in range [1.001, 1000] (not 1.000000)",
        ),
        ("int(1e300 * 1e300)", "double to int overflow for Infinity"),
        (
            "least(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17)",
            "too many function arguments, maximum is 16",
        ),
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
    for expected in
        [[668_251, 5, 434, 329, 69], [3_615, -4, 749, 115, 207], [580_320, 1, 175, 303, 5]]
    {
        for (command, expected) in script.commands.iter().zip(expected) {
            let Op::Set { expression, .. } = &command.op else { panic!("no \\set") };
            let drawn = expression.eval(&mut scope(&[], &mut random));
            assert_eq!(drawn, Ok(Value::Int(expected)), "{}", command.text);
        }
    }
}

#[test]
fn an_error_points_at_its_place() {
    assert_eq!(
        error("SELECT 1;\n\\set aid random(1, 10 * :scale\nSELECT 2;"),
        "test.sql:2: syntax error in command \"set\": the expression ends where `)` should be\n  \
         \\set aid random(1, 10 * :scale\n                                ^ error found here"
    );
    assert_eq!(
        error("SELECT 1; \\gset\n  \\gset"),
        "test.sql:2: \\gset must follow an SQL command\n    \\gset\n    ^ error found here"
    );
    assert_eq!(
        error("\\set x 1 + \\\n  2 $ 3"),
        "test.sql:2: unexpected character ($) in command \"set\": `$` has no place in an \
         expression\n    2 $ 3\n      ^ error found here"
    );
    let help = Script::parse("test.sql", "\\set x rnd(1, 2)").unwrap_err().help().unwrap();
    assert!(help.contains("random_zipfian"), "{help}");
}

#[test]
fn what_is_no_script_is_refused_in_words() {
    for (text, words) in [
        ("", "empty command list for script \"test.sql\""),
        ("-- nothing\n\\\n -- here", "empty command list"),
        ("\\st x 1", "invalid command in command \"st\""),
        ("\\set", "missing argument in command \"set\""),
        ("\\set x", "the expression ends where a number"),
        ("\\set x 1 2", "`2` stands where an operator"),
        ("\\set x 1 < 2 < 3", "`<` stands where an operator that is no comparison"),
        ("\\set x :", "name is missing after `:`"),
        ("\\set x 1e-400", "double constant overflow (1e-400)"),
        (
            "\\set x random(1)",
            "unexpected number of arguments (random) in command \"set\": it takes 2, not 1",
        ),
        ("\\set x least()", "at least one argument expected (least)"),
        ("\\set x hash(1, 2, 3)", "it takes 1 or 2, not 3"),
        ("\\set x case when 1 end", "`end` stands where THEN should be"),
        ("\\set x rnd(1, 2)", "unexpected function name (rnd) in command \"set\""),
        ("\\set x random", "ends where `(` should be"),
        ("\\set x random 1", "stands where `(`"),
        ("\\sleep", "missing argument in command \"sleep\""),
        ("\\sleep x", "invalid sleep time, must be an integer (x)"),
        ("\\sleep 1 h", "unrecognized time unit, must be us, ms or s (h)"),
        ("\\sleep 1 ms now", "too many arguments in command \"sleep\": `now` is one word too many"),
        ("\\sleep 1.5 s", "invalid sleep time, must be an integer (1.5)"),
        ("\\sleep - 1 us", "too many arguments in command \"sleep\""),
        ("\\setrandom x 1 2", "it is of pgbench up to 9.5"),
        ("\\set x 9223372036854775808", "out of range but after a minus sign"),
        ("\\set x 1e999", "double constant overflow (1e999)"),
        ("\\set x and", "`and` stands where a number"),
        ("\\set x 1 is 2", "stands where NULL, TRUE or FALSE should be"),
        ("\\if 1", "test.sql\" command 2: \\if without matching \\endif"),
        ("\\else", "command 1: \\else without matching \\if"),
        ("\\elif 1", "\\elif without matching \\if"),
        ("\\endif", "\\endif without matching \\if"),
        ("\\if 1\n\\else\n\\elif 1\n\\endif", "command 3: \\elif after \\else"),
        ("\\if 1\n\\else\n\\else\n\\endif", "command 3: \\else after \\else"),
        ("\\if 1\n\\else 2\n\\endif", "unexpected argument in command \"else\""),
        ("\\shell", "missing command in command \"shell\""),
        ("\\setshell x", "missing argument in command \"setshell\""),
        ("\\copyfrom", "missing argument in command \"copyfrom\""),
        ("\\copyfrom readings", "the expression ends where"),
        ("SELECT 1 \\gset a b", "too many arguments in command \"gset\""),
    ] {
        let found = error(text);
        assert!(found.contains(words), "{text:?}: {found}");
    }
}

#[test]
fn a_meta_command_goes_on_behind_a_backslash_at_the_end_of_a_line() {
    let one = |text| {
        let script = parse(text);
        assert_eq!(script.commands.len(), 1, "{text:?}");
        script.commands.into_iter().next().unwrap()
    };
    let set = one("\\set x 1").op;
    for text in [
        "\\set\\\nx 1",
        "\\set\\\r\nx\\\n\\\n1",
        "\\set x 1\\\n",
        "\\set x 1 \\\n\n",
        "\\ set\x0bx 1\\\n\\\n",
    ] {
        assert_eq!(one(text).op, set, "{text:?}");
    }
    let shell = |text| match one(text).op {
        Op::Shell(pieces) => pieces,
        other => panic!("{other:?}"),
    };
    assert_eq!(shell("\\shell\\\necho a\\\\\nb"), [Piece::Text("echo a\\ b".into())]);
    assert_eq!(
        shell("\\shell echo a\\"),
        [Piece::Text("echo a\\".into())],
        "at the end of the text it is none"
    );
    assert_eq!(one("\\set x 1 + \\\n  2").summary, "\\set x 1 + \\\n  2");
    assert_eq!(one("\\set x 1 + \\\n  2").text, "\\set x 1 + 2");
    // At most 256 words, the command's name among them.
    assert_eq!(shell(&format!("\\shell{}", " a".repeat(255))).len(), 1);
    assert!(
        error(&format!("\\shell{}", " a".repeat(256)))
            .contains("too many arguments in command \"shell\"")
    );
    assert!(error(&format!("\\setshell x{}", " a".repeat(255))).contains("too many arguments"));
}

#[test]
fn a_name_that_cannot_be_assigned_to_is_parsed() {
    for text in ["\\set 1a 5", "\\set a-b 5", "\\set :x 5"] {
        let script = parse(text);
        assert!(!is_variable_name(&script.variables[0]), "{text}");
    }
    assert_eq!(parse("\\set x :1").variables, ["x", "1"]);
    assert_eq!(parse("\\sleep ::v").variables, [":v"]);
}

#[test]
fn parsing_takes_a_time_that_grows_with_the_text() {
    // Quadratic, this would be hours.
    let mut text = String::new();
    for n in 0..200_000 {
        text.push_str(&format!("\\set v{n} 1\nSELECT :v{n} \\; SELECT 2;\n"));
    }
    assert_eq!(parse(&text).commands.last().unwrap().line, 400_000);
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
    use proptest::prelude::*;

    use super::*;

    /// A pattern of texts with the characters and words that scripts treat specially.
    const TEXT: &str = "(\\PC|[\\\\\n\r;:'\"$()*/+%-]|\\\\set x |random\\(|e'){0,60}";

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn no_text_makes_the_parser_panic(text in TEXT) {
            let _ = Script::parse("any", &text);
        }

        #[test]
        fn doubles_are_written_so_that_they_read_back(x in proptest::num::f64::NORMAL) {
            let mut text = Vec::new();
            Value::Double(x).write_text(&mut text);
            let text = String::from_utf8(text).unwrap();
            let back: f64 = text.parse().unwrap();
            // 15 digits hold a double to a relative error of 5e-15 and its own rounding; the
            // largest may round up to infinity.
            prop_assert!(((back - x) / x).abs() < 5.001e-15 || back.is_infinite(), "{x} as {text}");
        }
    }
}

#[test]
fn every_part_of_the_language_has_its_value() {
    for (expression, expected) in [
        ("not 1 = 2 and null is null or 1 / 0 > 2", "true"),
        ("null or true", "NULL"),
        ("null and false", "NULL"),
        ("null and true", "NULL"),
        ("1 is true", "false"),
        ("(1 = 1) is not false", "true"),
        ("null isnull and 1 notnull", "true"),
        ("1 + 2 << 3 | 1", "25"),
        ("~ 5 & 7", "2"),
        ("~ 5 + 1", "-7"),
        ("7 # 2 & 3", "1"),
        ("case when null then 1 when 0.0 then 2 when 3 then 4 else 1 / 0 end", "4"),
        ("case when false then 1 end", "NULL"),
        ("greatest(1, null)", "NULL"),
        ("null + 1", "NULL"),
        ("1 <> 2", "true"),
        ("debug(1.5)", "1.5"),
        // As pgbench 15 has them.
        ("permute(5, 10, 42)", "8"),
        ("permute(123, 1000000, 7)", "20892"),
    ] {
        assert_eq!(value(expression).as_deref(), Ok(expected), "{expression}");
    }
    let mut seen = [0; 10];
    for n in 0..10 {
        let at: usize = value(&format!("permute({n}, 10, 42)")).unwrap().parse().unwrap();
        seen[at] += 1;
    }
    assert_eq!(seen, [1; 10]);
}

#[test]
fn text_from_outside_means_what_it_looks_like() {
    for (text, value) in [
        ("null", Some(Value::Null)),
        ("tr", Some(Value::Bool(true))),
        ("ON", Some(Value::Bool(true))),
        ("of", Some(Value::Bool(false))),
        ("o", None),
        ("007", Some(Value::Int(7))),
        ("-12", Some(Value::Int(-12))),
        ("1e3", Some(Value::Double(1000.0))),
        ("99999999999999999999", None),
        ("abc", None),
        ("", None),
    ] {
        assert_eq!(VariableValue::from(text).value(), value, "{text}");
    }
}

#[test]
fn results_shell_commands_and_combined_statements_are_parsed() {
    let script =
        parse("SELECT 1 AS a \\; SELECT 2 AS b \\gset p_\nSELECT 3;\n\\shell echo :x  ::y\n");
    let Op::Sql { pieces, store, .. } = &script.commands[0].op else { panic!("no SQL") };
    assert_eq!(pieces, &[Piece::Text("SELECT 1 AS a ; SELECT 2 AS b ".into())]);
    assert_eq!(store, &Some(Store { prefix: "p_".into(), each: false }));
    let words =
        vec![Piece::Text("echo ".into()), Piece::Variable(Slot(0)), Piece::Text(" :y".into())];
    assert_eq!(script.commands[2].op, Op::Shell(words));
}

#[test]
fn the_old_dialect_is_known_by_its_marks() {
    let login = "\\set n 10 * :scale\n\\setrandom id 1 :n gaussian 5\nBEGIN\n\
        SELECT * FROM t WHERE id = :id;\nEND\n";
    let (script, note) = Script::parse_auto("login.sql", login).unwrap();
    assert!(note.unwrap().contains("9.5"));
    let texts: Vec<_> = script.commands.iter().map(|c| (c.line, c.text.as_str())).collect();
    assert_eq!(texts[2..], [(3, "BEGIN"), (4, "SELECT * FROM t WHERE id = :id"), (5, "END")]);
    let Op::Set { expression: Expr::Call(function, arguments), .. } = &script.commands[1].op else {
        panic!()
    };
    assert_eq!((*function, arguments.len()), (Function::RandomGaussian, 3));
    for new in [
        "SELECT 1\n  + 2;",
        "WITH a AS (SELECT 1)\nSELECT * FROM a",
        "BEGIN\nSELECT 1\nEND",
        "SELECT '\n\\setrandom x 1 2\n';",
        "/*\n\\setrandom x 1 2\n*/ SELECT 2;",
    ] {
        assert_eq!(Script::parse_auto("x", new).unwrap().1, None, "{new}");
    }
    let error = Script::parse_auto("x", "\\setrandom a 1 2 zipf 3\n").unwrap_err().to_string();
    assert!(error.contains("`zipf` is no distribution"), "{error}");
}
