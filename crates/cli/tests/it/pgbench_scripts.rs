//! Scripts: what is taken and what is refused, when, and with which words, beside the pgbench of
//! each major version.

use crate::pgbench_support::{Ended, Server, normal, words};
use pgdyno_test_support::test_name;

/// Runs `script` with both; what differs, if anything: exit status, report, and what is said once
/// the script runs.
fn difference(server: &Server, script: &str, options: &str) -> Option<String> {
    server.script("script.sql", script);
    let args = format!("-n -f script.sql {options}");
    let (theirs, ours) = (server.run("ref", &args), server.run("our", &args));
    // pgbench prepares apart, and goes on where that failed: it has two errors of what is one.
    let is_prepared_apart = theirs.err.contains("pgbench: error: ERROR:");
    let says = |ended: &Ended| match ended.code {
        // A refusal shows its place in another way.
        Some(1) => vec![],
        _ if is_prepared_apart => vec![],
        _ => words(&ended.err),
    };
    let same = theirs.code == ours.code
        && normal(&theirs.out) == normal(&ours.out)
        && says(&theirs) == says(&ours);
    (!same).then(|| {
        format!(
            "{script:?} with {options}\n--- pgbench {} ({:?}):\n{}{}--- pgdyno ({:?}):\n{}{}",
            server.major, theirs.code, theirs.out, theirs.err, ours.code, ours.out, ours.err
        )
    })
}

fn assert_none(differences: &[String]) {
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

const NOTICES: &str = "DO $$ BEGIN RAISE NOTICE 'n' USING DETAIL = 'd', HINT = 'h'; RAISE WARNING \
    'w'; RAISE INFO 'i'; END $$;\n";
const FAILS: &str = "DO $$ BEGIN RAISE EXCEPTION 'no' USING DETAIL = 'd', HINT = 'h'; END $$;\n";
const CANNOT_SERIALIZE: &str =
    "DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40001', DETAIL = 'd'; END $$;\n";

#[test]
fn the_servers_words_are_shown_whole() {
    for server in Server::each(test_name!()) {
        let pipelined = format!("\\startpipeline\nSELECT 1;\n{NOTICES}\\endpipeline\n");
        let mut differences = Vec::new();
        for (script, options) in [
            (NOTICES, "-t 2 -M simple"),
            (NOTICES, "-t 2 -M extended"),
            (NOTICES, "-t 2 -M prepared -c 2"),
            (pipelined.as_str(), "-t 2 -M extended"),
            (pipelined.as_str(), "-t 2 -M prepared"),
            (FAILS, "-t 1 -M simple"),
            (FAILS, "-t 1 -M extended"),
            (FAILS, "-t 1 -M prepared"),
            (CANNOT_SERIALIZE, "-t 1 --verbose-errors --max-tries=2"),
            (CANNOT_SERIALIZE, "-t 1 --verbose-errors -L 10000 --max-tries=3"),
            (CANNOT_SERIALIZE, "-t 1 --verbose-errors -L 10000 --max-tries=1"),
            ("SELECT 1,\n  foo\n FROM nowhere\n WHERE a = 1;", "-t 1 -M simple"),
            ("\\set x 1\nSELECT 1,\n  :x,\n FROM nowhere;", "-t 1 -M extended"),
            ("SELECT 1 \\; SELECT 2 \\; SELECT 1 / 0;", "-t 1"),
            ("SELECT 1 \\; SELECT 2 WHERE false \\gset", "-t 1"),
            ("SELECT 1 AS \"a b\" \\gset", "-t 1"),
            ("SELECT 1 AS a \\; SELECT 1 AS \"a b\" \\aset", "-t 1"),
            ("BEGIN;\nBEGIN;\nEND;\nEND;", "-t 1"),
        ] {
            differences.extend(difference(&server, script, options));
        }
        // The parameters of the portal are part of the context, where the server is set to tell
        // them.
        server.ask("postgres", "ALTER SYSTEM SET log_parameter_max_length_on_error = -1");
        server.ask("postgres", "SELECT pg_reload_conf()");
        let script = "\\set x 0\nSELECT 5 / :x;";
        for protocol in ["extended", "prepared"] {
            differences.extend(difference(&server, script, &format!("-t 1 -M {protocol}")));
        }
        assert_none(&differences);
        server
            .run("our", "-n -f script.sql -t 1 -M extended")
            .says("\nCONTEXT:  unnamed portal with parameters: $1 = '0'\n");
    }
}

/// Scripts on which the two once differed.
const SCRIPTS: &[&str] = &[
    // A backslash at the end of a line is white space in a meta command, wherever it stands.
    "\\set\\\nx 1\n",
    "\\set\\\r\nx 1\n",
    "\\setshell x\\\necho 1\nSELECT :x;",
    "\\setshell x echo\\\n1\nSELECT :x;",
    "\\set x 1\\\n",
    "\\set x 1 \\\n\\\n\nSELECT :x;",
    "\\sleep 1\\\nus\n",
    "SELECT 1 AS x \\gset\\\np_\nSELECT :p_x;",
    "\\shell \\\n",
    "\\set x 1\\\n0\n",
    "\\ set x 1\nSELECT :x;",
    "SELECT 1 \\\nSELECT 2;",
    "\\ \nSELECT 1;",
    "\\\n",
    "\\set x\x0b1\nSELECT :x;",
    // Whatever a semicolon ends is a command.
    ";",
    ";;",
    "-- a\n;",
    "\\;",
    "\\;\\;;",
    "\\; \\; SELECT 1;",
    "/* a */",
    "SELECT 1; /* a */",
    "/* a */ ; /* b */ ;",
    "SELECT 1 AS x;; \\gset",
    "SELECT 1 AS x; /* c */ \\gset",
    "; \\gset",
    "\\; \\gset",
    ";\n\\aset\n",
    "\\; \\aset",
    "SELECT 1 AS a \\;\\; \\; SELECT 2 AS b \\gset\nSELECT :b;",
    "SELECT 1 AS a \\;\\; \\; SELECT 2 AS b \\aset p_\nSELECT :p_a, :p_b;",
    "\\; SELECT 1 AS a \\; \\gset",
    "SELECT 1; -- a\rSELECT 1/0;",
    "CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END;",
    "SELECT E'a'\n'b\\';c';",
    // Names that cannot be assigned to, when they are.
    "\\set 1a 5\n",
    "\\set a-b 5\n",
    "\\set 1a 1/0\n",
    "\\setshell 1a echo 5\n",
    "\\if 0\n\\set 1a 5\n\\endif\nSELECT 1;",
    "\\set x :1\n",
    "\\shell echo :1\n",
    "\\shell echo :scale.\n",
    // Too many.
    "\\set x least(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16)\nSELECT :x;",
    "\\set x least(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17)\nSELECT :x;",
    "\\if 0\n\\set x least(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17)\n\\endif\nSELECT 1;",
    "\\set x 1 2\n",
    "SELECT 1 \\gset a b\n",
    "\\else x\n",
    // What \sleep takes.
    "\\sleep x\n",
    "\\sleep 1 h\n",
    "\\sleep 1 us us\n",
    "\\sleep 1.5 s\n",
    "\\sleep 1us\n",
    "\\sleep - 1 us\n",
    "\\sleep -1 s\n",
    "\\sleep :zz\n",
    "\\sleep :\n",
    "\\sleep ::v\n",
    "\\set v 'x'\n\\sleep :v\n",
    "SELECT '1 x' AS v \\gset\n\\sleep :v us\n",
    "SELECT 'x' AS v \\gset\n\\sleep :v us\n",
    "SELECT '' AS v \\gset\n\\sleep :v us\n",
    "SELECT '-0' AS v \\gset\n\\sleep :v us\n",
    // Limits in words.
    "\\set x random_zipfian(1, 10, 1)\n",
    "\\set x random_gaussian(1, 10, 1)\n",
    "\\set x random_exponential(1, 10, 0)\n",
    "\\set x random(2, 1)\n",
    "\\set x random(-9223372036854775807, 10)\n",
    "\\set x permute(1, 0)\n",
    "\\set x int(1e30)\n",
    "\\set x 1e-400\n",
    // Values.
    "\\set x null\nSELECT CASE WHEN :x IS NULL THEN 1 ELSE 1 / (:x = 'NULL')::int END;",
    "\\setshell x echo ''\nSELECT 1 / (1 - :x);",
    "\\setshell x true\n",
    "\\setshell x echo x\n",
    "\\shell false\n",
    // Scripts that end in the middle.
    "BEGIN;\nSELECT 1;\n",
    "BEGIN;\n",
    "\\startpipeline\nSELECT 1;\n",
    "\\if 1\n",
    // Commands as reports show them.
    "SELECT 1\n  AS x \\gset\nSELECT :x\\:\\:int;\n\\set  y   1 + \\\n  2\nSELECT 'a  b';",
];

#[test]
fn scripts_are_taken_and_refused_as_in_pgbench() {
    for server in Server::each(test_name!()) {
        let words = |command: &str, count| format!("\\{command}{}\n", " true".repeat(count));
        let long = [
            words("shell", 255),
            words("shell", 256),
            words("setshell x", 255),
            format!("\\shell true {}\n", "x".repeat(249)),
            format!("\\shell true {}\n", "x".repeat(250)),
            format!("SELECT '{}';\n", "x".repeat(200)),
        ];
        let mut differences = Vec::new();
        let all = SCRIPTS.iter().copied().chain(long.iter().map(String::as_str));
        for (number, script) in all.enumerate() {
            let protocol = ["simple", "extended", "prepared"][number % 3];
            differences.extend(difference(&server, script, &format!("-t 2 -r -M {protocol}")));
        }
        for parameters in [255, 256] {
            let script =
                format!("\\set x 1\nSELECT {}::int;\n", vec![":x"; parameters].join(" + "));
            for protocol in ["simple", "extended", "prepared"] {
                differences.extend(difference(&server, &script, &format!("-t 2 -M {protocol}")));
            }
        }
        for script in
            ["\\set x null\nSELECT (:x || '')::text = 'NULL';", "BEGIN;\n", "\\set 1a 5\n", ";;\n"]
        {
            for protocol in ["simple", "extended", "prepared"] {
                differences.extend(difference(
                    &server,
                    script,
                    &format!("-t 2 -c 2 -M {protocol}"),
                ));
            }
        }
        assert_none(&differences);
    }
}

/// Scripts at random: each word mostly a right one, so that not every script ends at its beginning.
struct Grammar(fastrand::Rng);

impl Grammar {
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.0.usize(..from.len())]
    }

    fn mostly<'a>(&mut self, right: &[&'a str], wrong: &[&'a str]) -> &'a str {
        if self.0.u32(..20) == 0 { self.pick(wrong) } else { self.pick(right) }
    }

    /// A meta command of `words` (an empty one is left out), with blanks of any kind between them.
    fn meta(&mut self, words: &[&str]) -> String {
        let mut text = String::from(self.mostly(&["\\"], &["\\ ", "\\\t"]));
        for (number, word) in words.iter().filter(|word| !word.is_empty()).enumerate() {
            if number > 0 {
                text.push_str(
                    self.pick(&[" ", " ", " ", "  ", "\t", " \\\n ", "\\\n", "\\\r\n", "\x0b"]),
                );
            }
            text.push_str(word);
        }
        text + self.pick(&["\n", "\n", "\n", " \n", "\\\n\n"])
    }

    fn condition(&mut self) -> &'static str {
        self.mostly(
            &["1", "0", ":x > 1", "true", "false", "null", ":x is null"],
            &["", ":nothing", "'a'", "1 +"],
        )
    }

    /// A meta command that takes no part in any structure.
    fn single(&mut self) -> String {
        let name = self.mostly(&["x", "y", "_z"], &["1a", "a-b", "", "é"]);
        let more = self.mostly(&[""], &["more", "0"]);
        match self.0.u32(..5) {
            0..=1 => {
                let value = self.mostly(
                    &[
                        "1",
                        "2 + 3",
                        ":x",
                        "random(5, 5)",
                        "null",
                        "0.5",
                        "abs(-3)",
                        "case when :x > 1 then 2 else 3 end",
                    ],
                    &["1 / 0", ":nothing", "1 2", "", "true + 1", "least()", "[1]"],
                );
                let set = self.mostly(&["set"], &["SET", "sett"]);
                self.meta(&[set, name, value])
            }
            2 => {
                let line = self.mostly(
                    &["echo 7", "echo 3 5", "expr 1 + 1"],
                    &["echo x", "false", "", "echo :nothing"],
                );
                self.meta(&["setshell", name, line])
            }
            3 => {
                let line = self.mostly(
                    &["true", "true a  b", "true :x ::y"],
                    &["false", "", "exit 3", "true :nothing"],
                );
                self.meta(&["shell", line])
            }
            _ => {
                let amount = self.mostly(&["1", "2", "-3", "0"], &["x", "", ":nothing", "1.5"]);
                let unit = self.mostly(&["us", "US", "ms"], &["min", "us us"]);
                self.meta(&["sleep", amount, unit, more])
            }
        }
    }

    fn sql(&mut self) -> String {
        let mut text = String::new();
        for part in 0..self.0.usize(1..3) {
            if part > 0 {
                text.push_str(self.pick(&[" \\; ", "\\;\\; ", " \\;\n"]));
            }
            text.push_str(self.mostly(
                &[
                    "SELECT 1",
                    "SELECT :x",
                    "SELECT 5 AS x",
                    "SELECT 6 AS y, 7 AS x",
                    "SELECT\n  2",
                    "SELECT ';' -- ;\n",
                    "SELECT $$;$$",
                ],
                &[
                    "SELECT 8 AS x WHERE false",
                    "SELECT 1 / 0",
                    "/* a */",
                    "",
                    "SELECT (1);",
                    "BEGIN; END",
                    "BEGIN",
                    "SELECT 1)",
                ],
            ));
        }
        let end = self.mostly(
            &[
                ";\n",
                ";\n",
                "; ",
                ";; \n",
                ";\n\\;",
                " \\gset\n",
                " \\gset p_\n",
                " \\aset\n",
                " \\\n",
            ],
            &[" \\gset a b\n", "; \\gset\n", "\n"],
        );
        text + end
    }

    /// Commands that go together, or one.
    fn part(&mut self, major: u32, pipelines: bool) -> String {
        match self.0.u32(..10) {
            0..=3 => self.single(),
            4..=7 => self.sql(),
            8 if pipelines => {
                let inside = self.pick(&[
                    "SELECT 1;\n",
                    "SELECT 1;\nSELECT 2;\n",
                    "\\set y 3\n",
                    "SELECT 1 AS x \\gset\n",
                    ";\n",
                ]);
                let sync = if major < 17 { "" } else { self.pick(&["\\syncpipeline\n", ""]) };
                let end = self
                    .mostly(&["\\endpipeline\n"], &["\\startpipeline\n", "\\endpipeline x\n", ""]);
                format!("\\startpipeline\n{inside}{sync}SELECT 3;\n{end}")
            }
            _ => {
                let (condition, other) = (self.condition(), self.condition());
                let (first, second, third) = (self.single(), self.sql(), self.single());
                let open = self.meta(&["if", condition]);
                let elif = self.meta(&["elif", other]);
                let end = self.mostly(
                    &["\\endif\n"],
                    &["", "\\endif more\n", "\\else\n\\endif\n", "\\endif\n\\endif\n"],
                );
                format!("{open}{first}{elif}{second}\\else\n{third}{end}")
            }
        }
    }

    fn script(&mut self, major: u32, pipelines: bool) -> String {
        let mut text = String::from("\\set x 2\n");
        for _ in 0..self.0.usize(1..6) {
            text.push_str(&self.part(major, pipelines));
        }
        text
    }
}

#[test]
#[ignore = "long: scripts at random"]
fn scripts_at_random_do_what_they_do_in_pgbench() {
    let scripts = std::env::var("PGDYNO_TEST_SCRIPTS").map_or(40, |number| number.parse().unwrap());
    for server in Server::each(test_name!()) {
        let mut grammar = Grammar(fastrand::Rng::with_seed(20_261_122 + u64::from(server.major)));
        let mut differences = Vec::new();
        let mut well = 0;
        for number in 0..scripts {
            let protocol = ["simple", "extended", "prepared"][usize::try_from(number % 3).unwrap()];
            let script = grammar.script(server.major, protocol != "simple");
            let tries = if number % 2 == 0 { "" } else { " --max-tries=2" };
            // What is sent has the values of variables in it.
            let debug = match (protocol, server.major) {
                ("simple", ..17) => " -d",
                ("simple", _) => " --debug",
                _ => "",
            };
            differences.extend(difference(
                &server,
                &script,
                &format!("-t 2 -r -M {protocol}{tries}{debug}"),
            ));
            let ours = server.run("our", &format!("-n -f script.sql -t 1 -M {protocol}"));
            well += u64::from(ours.code == Some(0));
        }
        assert_none(&differences);
        assert!(well > scripts / 4, "the grammar drowns in errors: {well}");
    }
}
