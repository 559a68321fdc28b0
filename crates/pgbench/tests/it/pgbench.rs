//! The script language against the pgbench of each major version: values, errors, and what
//! `--random-seed` draws.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use crate::expressions::{FIXED, Grammar};
use pgdyno_engine::random::Random;
use pgdyno_engine::run_load;
use pgdyno_engine::script::{Op, Scope, Script, Slot, Value};
use pgdyno_model::experiment::Length;
use pgdyno_model::target::Address;
use pgdyno_postgres::find;
use pgdyno_test_support::load::{spec, unwatched};
use pgdyno_test_support::{Server, Session, pgbench_folders, test_name};

static RUNNING: AtomicBool = AtomicBool::new(false);

/// The pgbench of each major version to compare with, and a server of the same version.
fn pgbenches(test: &str) -> impl Iterator<Item = (PathBuf, Server)> {
    pgbench_folders(test).into_iter().map(|(major, folder)| {
        let install = find(Some(&folder), Some(major)).unwrap().unwrap();
        (install.program("pgbench"), Server::with_install(install))
    })
}

/// Runs pgbench on `script`; what it writes to its error output.
fn run(program: &PathBuf, server: &Server, script: &str, arguments: &[&str]) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), script).unwrap();
    let target = server.unix();
    let Address::Unix { directory, port } = &target.address else { panic!("no socket") };
    let output = Command::new(program)
        .args(["-n", "-U", &target.user, "-p", &port.to_string(), "-h"])
        .arg(directory)
        .arg("-f")
        .arg(file.path())
        .args(arguments)
        .arg(&target.database)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Evaluates `expression` with our engine and draws of `random`: a type and a value, or an error.
fn ours(expression: &str, random: &mut Random) -> Result<String, String> {
    let script =
        Script::parse("x", &format!("\\set x {expression}")).map_err(|e| e.phrase.to_string())?;
    let Op::Set { expression, .. } = &script.commands[0].op else { panic!("no \\set") };
    let variables = [Some(Value::Int(5).into())];
    let mut scope = Scope { variables: &variables, random, seed: Slot(0), debug: &|_| {} };
    let value = expression.eval(&mut scope).map_err(|e| e.to_string())?;
    let mut text = Vec::new();
    value.write_text(&mut text);
    Ok(match value {
        Value::Null => "null".to_owned(),
        _ => format!("{} {}", value.kind(), String::from_utf8(text).unwrap()),
    })
}

/// Returns the generator of a client's draws with `--random-seed=42`.
fn seeded() -> Random {
    Random::new(Random::new(42).next_u64())
}

/// Compares our value or error of `expression` with pgbench's; returns both if they differ.
fn difference(expression: &str, theirs: &dyn Fn(&str) -> String) -> Option<String> {
    let ours = ours(expression, &mut seeded());
    // What cannot be parsed is shown without a wrapper that changes it.
    let theirs = theirs(&if ours.is_err() {
        format!("\\set x {expression}\n")
    } else {
        format!("\\set x debug({expression})\n")
    });
    let agrees = match &ours {
        Ok(value) => theirs.contains(&format!("debug(script=0,command=1): {value}\n")),
        // Numbers inside errors are written in other ways.
        Err(words) => {
            let words = words.split([':', ',']).next().unwrap();
            theirs.contains(words.split(" for ").next().unwrap())
        }
    };
    // There abs() of a boolean reads memory that holds none.
    let undefined = ours.as_ref().is_err_and(|e| e.contains("boolean to double"))
        && expression.to_ascii_lowercase().contains("abs(");
    (!agrees && !undefined)
        .then(|| format!("{expression}\n    ours: {ours:?}\n    theirs: {theirs}"))
}

#[test]
fn expressions_have_the_values_and_errors_of_pgbench() {
    let mut grammar = Grammar(Random::new(20_261_121));
    let mut expressions: Vec<String> = FIXED.iter().map(|&e| e.to_owned()).collect();
    for n in 0..250 {
        expressions.push(grammar.expression(1 + n % 4));
    }
    // What has a value goes into one script, whose draws follow each other; an error ends a script.
    let mut random = seeded();
    let (mut script, mut values, mut failing) = (String::new(), Vec::new(), Vec::new());
    for expression in &expressions {
        let mut next = random.clone();
        if let Ok(value) = ours(expression, &mut next) {
            random = next;
            script.push_str(&format!("\\set x debug({expression})\n"));
            values.push((expression, value));
        } else {
            failing.push(expression);
        }
    }
    // The grammar must not drown in errors.
    assert!(values.len() > 100 && failing.len() > 50, "{} {}", values.len(), failing.len());
    for (program, server) in pgbenches(test_name!()) {
        let arguments = ["-t", "1", "--random-seed=42", "-D", "default_seed=5"];
        let theirs = run(&program, &server, &script, &arguments);
        for (n, (expression, value)) in values.iter().enumerate() {
            // The last of the command's lines: an expression may have a debug() of its own.
            let begin = format!("debug(script=0,command={}): ", n + 1);
            let line = theirs.lines().rfind(|line| line.contains(&begin));
            let line = line.unwrap_or_else(|| panic!("{expression}: {theirs}"));
            assert!(
                line.ends_with(&format!("{begin}{value}")),
                "{expression}\n    ours: {value}\n    theirs: {line}"
            );
        }
        let ask = |script: &str| run(&program, &server, script, &arguments);
        let wrong: Vec<_> = failing.iter().filter_map(|text| difference(text, &ask)).collect();
        assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), failing.len(), wrong.join("\n"));
    }
}

#[test]
fn a_random_seed_gives_the_draws_of_pgbench() {
    for (program, server) in pgbenches(test_name!()) {
        let mut session = Session::new(&server.unix());
        session.ask(
            "CREATE TABLE drawn (who text, n bigserial, c int, a int, g int, s bigint, h bigint, p \
             int)",
        );
        let script = |who: &str| {
            format!(
                "\\set a random(1, 1000000)\n\\set g random_gaussian(1, 1000, 2.5)\n\
             \\set h hash(:a)\n\
             \\set p permute(:a, 5000)\n\\set s :random_seed\n\
             INSERT INTO drawn (who, c, a, g, s, h, p) VALUES ('{who}', :client_id, :a, :g, :s, \
             :h, :p);\n"
            )
        };
        for (clients, threads) in [(1, 1), (3, 1), (5, 2)] {
            session.ask("TRUNCATE drawn");
            let (c, j) = (clients.to_string(), threads.to_string());
            run(
                &program,
                &server,
                &script("pgbench"),
                &["-t", "20", "--random-seed=77", "-c", &c, "-j", &j],
            );
            let mut spec = spec(server.unix(), &script("pgdyno"));
            spec.clients = clients.try_into().unwrap();
            spec.threads = threads.try_into().unwrap();
            spec.length = Length::Transactions(20);
            (spec.seed, spec.draws_as_pgbench) = (77, true);
            run_load(&spec, &unwatched(&RUNNING)).unwrap();
            let digest = |session: &mut Session, who| {
                session.ask(&format!(
                    "SELECT count(*) || ' ' || string_agg(concat_ws(',', c, a, g, s, h, p), ' ' \
                 ORDER BY c, n)
                 FROM drawn WHERE who = '{who}'"
                ))
            };
            let (theirs, ours) = (digest(&mut session, "pgbench"), digest(&mut session, "pgdyno"));
            assert!(
                theirs.as_ref().unwrap().starts_with(&format!("{} ", 20 * clients)),
                "{theirs:?}"
            );
            assert_eq!(ours, theirs, "{clients} clients on {threads} threads");
        }
    }
}

#[test]
fn scripts_are_chosen_in_pgbenchs_order() {
    for (program, server) in pgbenches(test_name!()) {
        let mut session = Session::new(&server.unix());
        session.ask("CREATE TABLE chosen (who text, n bigserial, s int)");
        let text =
            |who: &str, s: u32| format!("INSERT INTO chosen (who, s) VALUES ('{who}', {s});\n");
        let second = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(second.path(), text("pgbench", 2)).unwrap();
        let other = format!("{}@3", second.path().display());
        run(&program, &server, &text("pgbench", 1), &["-f", &other, "-t", "60", "--random-seed=5"]);
        let mut load = spec(server.unix(), &text("pgdyno", 1));
        let second = Script::parse("second", &text("pgdyno", 2)).unwrap();
        load.scripts.push(pgdyno_engine::WeightedScript::new(second.into(), 3));
        load.length = Length::Transactions(60);
        (load.seed, load.draws_as_pgbench) = (5, true);
        run_load(&load, &unwatched(&RUNNING)).unwrap();
        let order = |session: &mut Session, who| {
            session.ask(&format!(
                "SELECT string_agg(s::text, '' ORDER BY n) FROM chosen WHERE who = '{who}'"
            ))
        };
        let theirs = order(&mut session, "pgbench");
        assert_eq!(theirs.as_ref().unwrap().len(), 60);
        assert_eq!(order(&mut session, "pgdyno"), theirs);
    }
}

/// Scripts with a protocol.
const COMBINED: &[(&str, &str)] = &[
    (
        "SELECT 1 AS a, 'x y' AS b, NULL AS c \\gset p_\n\
         INSERT INTO seen (who, v) VALUES (':who', :p_a + 1);\n",
        "simple",
    ),
    (
        "SELECT 7 AS a \\; SELECT 8 AS b \\; SELECT 9 AS c \\aset\n\
         \\set s :a * 100 + :b * 10 + :c\n\
         INSERT INTO seen (who, v) VALUES (':who', :s);\n",
        "simple",
    ),
    (
        "\\set i 0\n\\if :client_id = 0 and not false\nSELECT 5 AS i \\gset\n\\elif 1\n\
         SELECT 6 AS i \\gset\n\\else\n\
         SELECT 7 AS i \\gset\n\\endif\n\\if :i = 6\n\\set i 9\n\\endif\n\
         INSERT INTO seen (who, v) VALUES (':who', :i);\n",
        "simple",
    ),
    ("\\setshell x echo 4 :scale\nINSERT INTO seen (who, v) VALUES (':who', :x);\n", "simple"),
    ("\\setshell x expr 40 + :scale\nINSERT INTO seen (who, v) VALUES (':who', :x);\n", "simple"),
    (
        "SELECT 3 AS a \\gset\n\\startpipeline\n\
         INSERT INTO seen (who, v) VALUES (':who', :a::int);\n\
         INSERT INTO seen (who, v) VALUES (':who', (:a::int * 2)::text);\n\\endpipeline\n",
        "prepared",
    ),
    ("SELECT 1 AS a WHERE false \\gset\nINSERT INTO seen (who, v) VALUES (':who', 1);\n", "simple"),
    ("\\startpipeline\nSELECT 1 AS a \\gset\n\\endpipeline\n", "prepared"),
    ("SELECT 1 / 0 AS a \\gset\n", "simple"),
    ("\\shell false\n", "simple"),
    ("\\shell echo :zz\n", "simple"),
    ("\\sleep :zz\n", "simple"),
    ("\\if :zz\n\\endif\n", "simple"),
    ("\\startpipeline\nSELECT 1;\n\\endpipeline\n", "simple"),
    ("\\startpipeline\nSELECT 1;\n", "prepared"),
    ("\\startpipeline\n\\startpipeline\n", "prepared"),
    ("\\endpipeline\n", "prepared"),
    ("BEGIN;\n", "simple"),
    ("SELECT 1;\nSELECT 1 / 0;\n", "prepared"),
    ("SELEKT 1;\n", "simple"),
    ("COPY (SELECT 1) TO STDOUT;\n", "simple"),
    ("SELECT pg_terminate_backend(pg_backend_pid());\n", "simple"),
    ("\\set x 1 / :client_id\nINSERT INTO seen (who, v) VALUES (':who', :x);\n", "simple"),
];

/// Runs `body` with pgbench and with pgdyno: both store the same rows, and say the same.
fn compare(program: &PathBuf, server: &Server, session: &mut Session, body: &str, protocol: &str) {
    session.ask("TRUNCATE seen");
    let text = |who: &str| body.replace("':who'", &format!("'{who}'"));
    let theirs = run(program, server, &text("pgbench"), &["-t", "2", "-c", "2", "-M", protocol]);
    let mut load = spec(server.unix(), &text("pgdyno"));
    load.clients = 2.try_into().unwrap();
    load.length = Length::Transactions(2);
    if protocol == "prepared" {
        load.protocol = pgdyno_model::experiment::Protocol::Prepared;
    }
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let hear = Arc::clone(&said);
    load.client_log = Some(Arc::new(move |_, words| hear.lock().unwrap().push(words.to_owned())));
    run_load(&load, &unwatched(&RUNNING)).unwrap();
    let rows = |session: &mut Session, who| {
        session.ask(&format!("SELECT string_agg(v, ' ' ORDER BY v) FROM seen WHERE who = '{who}'"))
    };
    let (expected, found) = (rows(session, "pgbench"), rows(session, "pgdyno"));
    let said = said.lock().unwrap();
    assert_eq!(found, expected, "{body}\ntheirs: {theirs}\nours: {said:?}");
    for words in said.iter() {
        assert!(theirs.contains(words.as_str()), "{body}\ntheirs: {theirs}\nours: {words}");
    }
}

#[test]
fn results_become_variables_and_commands_are_combined_as_in_pgbench() {
    for (program, server) in pgbenches(test_name!()) {
        let mut session = Session::new(&server.unix());
        session.ask("CREATE TABLE seen (who text, n bigserial, v text)");
        for (body, protocol) in COMBINED {
            compare(&program, &server, &mut session, body, protocol);
        }
    }
}
