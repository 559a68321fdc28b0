//! Scripts: what is taken and what is refused, when, and with which words, beside the pgbench of each major version.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod pgbench_support;

use pgbench_support::{Ended, Server, normal, words};

/// Runs `script` with both; what differs, if anything: exit status, report, and what is said once the script runs.
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
    let same =
        theirs.code == ours.code && normal(&theirs.out) == normal(&ours.out) && says(&theirs) == says(&ours);
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

const NOTICES: &str = "DO $$ BEGIN RAISE NOTICE 'n' USING DETAIL = 'd', HINT = 'h'; RAISE WARNING 'w'; RAISE INFO 'i'; END $$;\n";
const FAILS: &str = "DO $$ BEGIN RAISE EXCEPTION 'no' USING DETAIL = 'd', HINT = 'h'; END $$;\n";
const CANNOT_SERIALIZE: &str =
    "DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40001', DETAIL = 'd'; END $$;\n";

#[test]
fn the_servers_words_are_shown_whole() {
    for server in Server::each("the_servers_words_are_shown_whole") {
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
        // The parameters of the portal are part of the context, where the server is set to tell them.
        server.ask("postgres", "ALTER SYSTEM SET log_parameter_max_length_on_error = -1");
        server.ask("postgres", "SELECT pg_reload_conf()");
        let script = "\\set x 0\nSELECT 5 / :x;";
        for protocol in ["extended", "prepared"] {
            differences.extend(difference(&server, script, &format!("-t 1 -M {protocol}")));
        }
        assert_none(&differences);
        let run = server.run("our", "-n -f script.sql -t 1 -M extended");
        assert!(run.err.contains("\nCONTEXT:  unnamed portal with parameters: $1 = '0'\n"), "{}", run.err);
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
    for server in Server::each("scripts_are_taken_and_refused_as_in_pgbench") {
        let words = |command: &str, count| format!("\\{command}{}\n", " true".repeat(count));
        let long = [
            words("shell", 255),
            words("shell", 256),
            words("setshell x", 255),
            format!("\\shell true {}\n", "x".repeat(249)),
            format!("\\shell true {}\n", "x".repeat(250)),
            format!("\\set x 1\nSELECT {}::int;\n", vec![":x"; 255].join(" + ")),
            format!("\\set x 1\nSELECT {}::int;\n", vec![":x"; 256].join(" + ")),
            format!("SELECT '{}';\n", "x".repeat(200)),
        ];
        let mut differences = Vec::new();
        let all = SCRIPTS.iter().copied().chain(long.iter().map(String::as_str));
        for (number, script) in all.enumerate() {
            let protocol = ["simple", "extended", "prepared"][number % 3];
            differences.extend(difference(&server, script, &format!("-t 2 -r -M {protocol}")));
        }
        for script in ["\\set x null\nSELECT (:x || '')::text = 'NULL';", "BEGIN;\n", "\\set 1a 5\n", ";;\n"]
        {
            for protocol in ["simple", "extended", "prepared"] {
                differences.extend(difference(&server, script, &format!("-t 2 -c 2 -M {protocol}")));
            }
        }
        assert_none(&differences);
    }
}

/// Scripts at random.
struct Grammar(fastrand::Rng);

impl Grammar {
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.0.usize(..from.len())]
    }

    /// What stands between the words of a meta command.
    fn blank(&mut self) -> &'static str {
        self.pick(&[" ", " ", " ", " ", "  ", "\t", " \\\n ", "\\\n", "\\\r\n", "\x0b"])
    }

    /// A meta command: mostly a right one.
    fn meta(&mut self, major: u32) -> String {
        let mut text = String::from(self.pick(&["\\", "\\", "\\", "\\", "\\ "]));
        let command = self.pick(&[
            "set",
            "set",
            "set",
            "set",
            "setshell",
            "shell",
            "sleep",
            "if",
            "elif",
            "else",
            "endif",
            "endif",
            "SET",
            "startpipeline",
            "endpipeline",
            "endpipeline",
            "syncpipeline",
            "nothing",
        ]);
        // Of the older ones it is no command.
        let command = if command == "syncpipeline" && major < 17 { "endpipeline" } else { command };
        text.push_str(command);
        let words: Vec<&str> = match command.to_ascii_lowercase().as_str() {
            "set" => {
                let name = self.pick(&["x", "y", "x", "y", "_z", "1a", "a-b", ""]);
                let value = self.pick(&[
                    "1",
                    "2 + 3",
                    ":x",
                    ":y * 2",
                    "random(5, 5)",
                    "null",
                    "true",
                    "0.5",
                    "1 / 0",
                    ":nothing",
                    "1 2",
                    "",
                    "abs(-3)",
                    "case when :x > 1 then 2 else 3 end",
                ]);
                vec![name, value]
            }
            "setshell" => vec![
                self.pick(&["x", "y", "1a"]),
                self.pick(&["echo 7", "echo 3 :x", "echo x", "false", "", "expr 1 + 1"]),
            ],
            "shell" => vec![self.pick(&["true", "true a  b", "false", "true :x", "", "exit 3"])],
            "sleep" => vec![
                self.pick(&["1", "1", ":x", ":nothing", "x", "", "-3", "2us"]),
                self.pick(&["us", "us", "us", "", "min"]),
                self.pick(&["", "", "", "", "more"]),
            ],
            "if" | "elif" => {
                vec![self.pick(&["1", "0", ":x", ":x > 1", "null", "true", "false", "", ":nothing"])]
            }
            _ => vec![self.pick(&["", "", "", "", "", "", "more"])],
        };
        // A second of sleep for each script would be too long.
        let words = match words[..] {
            ["1" | ":x", ""] | ["1" | ":x", "", ""] => vec!["1", "us"],
            _ => words,
        };
        for word in words.into_iter().filter(|word| !word.is_empty()) {
            text.push_str(self.blank());
            text.push_str(word);
        }
        text.push_str(self.pick(&["\n", "\n", "\n", " \n", "\\\n\n"]));
        text
    }

    fn sql(&mut self) -> String {
        let mut text = String::new();
        for part in 0..self.0.usize(1..3) {
            if part > 0 {
                text.push_str(self.pick(&[" \\; ", "\\;\\; ", " \\;\n"]));
            }
            text.push_str(self.pick(&[
                "SELECT 1",
                "SELECT :x",
                "SELECT 5 AS x",
                "SELECT 6 AS y, 7 AS x",
                "SELECT 8 AS x WHERE false",
                "SELECT\n  2",
                "SELECT ';' -- ;\n",
                "SELECT 1 / 0",
                "/* a */",
                "",
                "SELECT $$;$$",
                "SELECT (1);",
                "BEGIN; END",
            ]));
        }
        let end = self.pick(&[
            ";\n",
            ";\n",
            ";\n",
            ";\n",
            "; ",
            ";; \n",
            " \\gset\n",
            " \\gset p_\n",
            " \\aset\n",
            " \\gset a b\n",
            "; \\gset\n",
            " \\\n",
            "\n",
        ]);
        text.push_str(end);
        text
    }

    fn script(&mut self, major: u32) -> String {
        let mut text = String::from("\\set x 2\n");
        for _ in 0..self.0.usize(1..6) {
            match self.0.u32(0..8) {
                0..4 => text.push_str(&self.meta(major)),
                4..7 => text.push_str(&self.sql()),
                // Those that go together, so that they do not only fail.
                _ => {
                    let inner = self.sql();
                    let condition = self.pick(&["1", "0", ":x = 2"]);
                    text.push_str(&format!("\\if {condition}\n{inner}\\else\nSELECT 9;\n\\endif\n"));
                }
            }
        }
        text
    }
}

#[test]
fn scripts_at_random_do_what_they_do_in_pgbench() {
    const SCRIPTS: u64 = 150;
    for server in Server::each("scripts_at_random_do_what_they_do_in_pgbench") {
        let mut grammar = Grammar(fastrand::Rng::with_seed(20_261_122 + u64::from(server.major)));
        let mut differences = Vec::new();
        let mut well = 0;
        for number in 0..SCRIPTS {
            let script = grammar.script(server.major);
            let protocol = ["simple", "extended", "prepared"][usize::try_from(number % 3).unwrap()];
            let tries = if number % 2 == 0 { "" } else { " --max-tries=2" };
            differences.extend(difference(&server, &script, &format!("-t 2 -r -M {protocol}{tries}")));
            well += u64::from(server.run("our", "-n -f script.sql -t 1").code == Some(0));
        }
        assert_none(&differences);
        assert!(well > SCRIPTS / 10, "the grammar drowns in errors: {well}");
    }
}
