//! Command lines that pgbench refuses are refused, with its status and the words that scripts look
//! for.

use crate::pgbench_support::{Server, ended, signal, words};
use pgdyno_test_support::test_name;

/// Command lines, and what both must say.
const REFUSED: &[(&str, &str)] = &[
    // Up to some minor version pgbench says `--clients`.
    ("-c 0", "must be in range 1.."),
    ("-c x", "invalid value \"x\" for option -c/--client"),
    ("-c -1", "must be in range 1.."),
    ("-c 99999999", "open files, but system limit is"),
    ("-c ''", "must be in range 1.."),
    ("-c x --bad", "invalid value \"x\" for option -c/--client"),
    ("-f nonexist --bad", "could not open file \"nonexist\""),
    ("-f /", "could not read file \"/\": Is a directory"),
    ("-f /dev/null", "empty command list for script \"/dev/null\""),
    ("-j ''", "-j/--jobs must be in range"),
    ("-F ''", "-F/--fillfactor must be in range 10..100"),
    ("-D a=", "invalid variable definition: \"a=\""),
    ("--random-seed=++1", "unrecognized random seed option \"++1\""),
    ("-t 1 --help", "unrecognized option '--help'"),
    ("-nV", "invalid option -- 'V'"),
    ("-n?", "invalid option -- '?'"),
    ("--vers", "unrecognized option '--vers'"),
    ("--v", "is ambiguous; possibilities: '--vacuum-all' '--verbose-errors'"),
    ("--bad=1", "unrecognized option '--bad=1'"),
    ("-b se@99999999999999999999", "invalid weight specification: @99999999999999999999"),
    ("--max-tries=2147483648", "invalid number of maximum tries: \"2147483648\""),
    ("-Z", "hint: Try \"pgbench --help\" for more information."),
    ("a b", "hint: Try \"pgbench --help\" for more information."),
    ("-i nosuchdatabase", "could not create connection for initialization"),
    ("-j 0", "-j/--jobs must be in range"),
    ("-s 0", "-s/--scale must be in range"),
    ("-s 3000000000", "-s/--scale must be in range"),
    ("-s 1x", "invalid value \"1x\" for option -s/--scale"),
    ("-t 0", "-t/--transactions must be in range"),
    ("-t 99999999999", "-t/--transactions must be in range"),
    ("-T 0", "-T/--time must be in range"),
    ("-t 1 -T 1", "either a number of transactions (-t) or a duration (-T)"),
    ("-i -F 9", "-F/--fillfactor must be in range 10..100"),
    ("-i -F 101", "-F/--fillfactor must be in range 10..100"),
    ("-D foo", "invalid variable definition: \"foo\""),
    ("-D =x", "invalid variable definition: \"=x\""),
    ("-D 1a=x", "invalid variable name: \"1a\""),
    ("-D a.b=x", "invalid variable name: \"a.b\""),
    ("-M foo", "invalid query mode (-M): \"foo\""),
    ("-P 0", "-P/--progress must be in range"),
    ("-R 0", "invalid rate limit: \"0\""),
    ("-R -5", "invalid rate limit: \"-5\""),
    ("-R x", "invalid rate limit: \"x\""),
    ("-L 0", "invalid latency limit: \"0\""),
    ("-L x", "invalid latency limit: \"x\""),
    ("--sampling-rate=0", "invalid sampling rate: \"0\""),
    ("--sampling-rate=1.5", "invalid sampling rate: \"1.5\""),
    ("--sampling-rate=.5", "allowed only when logging transactions"),
    ("--aggregate-interval=0", "--aggregate-interval must be in range"),
    ("--aggregate-interval=1", "only when actually logging transactions"),
    ("--aggregate-interval=3 -T 2 -l", "must not be higher than test duration (2)"),
    ("--aggregate-interval=2 -T 3 -l", "must be a multiple of aggregation interval (2)"),
    ("--aggregate-interval=2 --sampling-rate=.5 -l -T 4", "cannot be used at the same time"),
    ("--log-prefix=x", "allowed only when logging transactions (-l)"),
    ("--progress-timestamp", "--progress-timestamp is allowed only under --progress"),
    ("--random-seed=abc", "unrecognized random seed option \"abc\""),
    ("--random-seed=12x", "error while setting random seed from --random-seed option"),
    ("--random-seed=", "unrecognized random seed option \"\""),
    ("-i --partitions=-1", "--partitions must be in range 0.."),
    ("-i --partition-method=foo", "invalid partition method"),
    ("-i --partition-method=hash", "--partition-method requires greater than zero --partitions"),
    ("-i -I xyz", "unrecognized initialization step \"x\""),
    ("-i -I ''", "no initialization steps specified"),
    ("-I dt", "cannot be used in benchmarking mode"),
    ("-q", "cannot be used in benchmarking mode"),
    ("-F 50", "cannot be used in benchmarking mode"),
    ("--foreign-keys", "cannot be used in benchmarking mode"),
    ("--tablespace=x", "cannot be used in benchmarking mode"),
    ("--index-tablespace=x", "cannot be used in benchmarking mode"),
    ("--unlogged-tables", "cannot be used in benchmarking mode"),
    ("--partitions=2", "cannot be used in benchmarking mode"),
    ("-i -c 3", "cannot be used in initialization (-i) mode"),
    ("-i -S", "cannot be used in initialization (-i) mode"),
    ("-i -t 3", "cannot be used in initialization (-i) mode"),
    ("-i -v", "cannot be used in initialization (-i) mode"),
    ("-i -r", "cannot be used in initialization (-i) mode"),
    ("-i -l", "cannot be used in initialization (-i) mode"),
    ("-i -C", "cannot be used in initialization (-i) mode"),
    ("-i -D x=1", "cannot be used in initialization (-i) mode"),
    ("-i --random-seed=1", "cannot be used in initialization (-i) mode"),
    ("-i --max-tries=2", "cannot be used in initialization (-i) mode"),
    ("-i --failures-detailed", "cannot be used in initialization (-i) mode"),
    ("-i --verbose-errors", "cannot be used in initialization (-i) mode"),
    ("--bad", "unrecognized option '--bad'"),
    ("-Z", "invalid option -- 'Z'"),
    ("--c=3", "is ambiguous; possibilities: '--client' '--connect'"),
    ("--pro=3", "is ambiguous"),
    ("-c", "option requires an argument -- 'c'"),
    ("--client", "option '--client' requires an argument"),
    ("--connect=3", "option '--connect' doesn't allow an argument"),
    ("ref a b", "too many command-line arguments (first is \"a\")"),
    ("-b foo", "no builtin script found for name \"foo\""),
    ("-b s", "ambiguous builtin name: 2 builtin scripts found for prefix \"s\""),
    ("-b ''", "ambiguous builtin name: 3 builtin scripts"),
    ("--show-script=foo", "no builtin script found for name \"foo\""),
    ("-b se@x", "invalid weight specification: @x"),
    ("-b se@-1", "weight specification out of range (0 .. 2147483647): -1"),
    ("-b se@0", "total script weight must not be zero"),
    ("-f /nonexistent", "could not open file \"/nonexistent\": No such file or directory"),
    ("-f nowhere.sql@3", "could not open file \"nowhere.sql\": No such file or directory"),
    ("--max-tries=-1", "invalid number of maximum tries: \"-1\""),
    ("--max-tries=0", "can only be used with --latency-limit or a duration (-T)"),
    ("-p x", "invalid integer value \"x\" for connection option \"port\""),
    ("-h /nonexistent", "could not create connection for setup"),
    ("nosuchdatabase", "database \"nosuchdatabase\" does not exist"),
    ("-U nobodyhere", "role \"nobodyhere\" does not exist"),
    ("-i nosuchdatabase", "database \"nosuchdatabase\" does not exist"),
    ("-i -I g", "relation \"pgbench_accounts\" does not exist"),
    ("-i -I p", "relation \"pgbench_branches\" does not exist"),
    ("-n", "pgbench_branches\" does not exist"),
    ("-n -S -s 7", "could not count number of branches"),
];

#[test]
fn what_pgbench_refuses_is_refused_with_its_words() {
    for server in Server::each(test_name!()) {
        for (args, phrase) in REFUSED {
            server.same(args, &[phrase]).with_case(args).exits(1);
        }
    }
}

#[test]
fn what_is_only_printed_is_the_same() {
    for server in Server::each(test_name!()) {
        for args in [
            "-b list",
            "--show-script=se",
            "--show-script=tpcb-like",
            "--show-script=si",
            "-n -b list -c 3",
            "-b list --bad",
            "-b list -c",
            "--show-script=t --bad",
        ] {
            let ours = server.same(args, &[]);
            let theirs = server.run("ref", args);
            assert_eq!((ours.out, ours.err), (theirs.out, theirs.err), "to the letter: {args}");
        }
        let version = server.run("our", "--version");
        assert!(
            version.out.starts_with("pgbench (PostgreSQL) ") && version.code == Some(0),
            "{}",
            version.out
        );
        let help = server.run("our", "--help");
        let theirs = server.run("ref", "--help").out;
        let headings = |help: &str| -> Vec<String> {
            let ends = |line: &&str| line.ends_with(':') && !line.starts_with([' ', 'p']);
            help.lines().filter(ends).map(str::to_owned).collect()
        };
        let ours = headings(&help.out);
        assert_eq!(
            ours[..ours.len() - 1],
            headings(&theirs),
            "and then pgdyno's own: {}",
            help.out
        );
        // The options under each heading, in the same order.
        let first_words = |help: &str| -> Vec<String> {
            let options =
                help.lines().filter_map(|line| line.strip_prefix("  ")?.split([' ', '=']).next());
            options
                .filter(|word| word.starts_with('-'))
                .map(|word| word.trim_end_matches(',').to_owned())
                .collect()
        };
        let (all, theirs_in_order) = (first_words(&help.out), first_words(&theirs));
        assert_eq!(all[..theirs_in_order.len()], theirs_in_order);
        let options = theirs.split_whitespace().filter(|w| w.starts_with("--"));
        for option in options {
            let name = option.trim_end_matches(',').split('=').next().unwrap();
            assert!(help.out.contains(name), "{name} is missing in {}", help.out);
        }
    }
}

/// Command lines that pgbench takes, though they look wrong.
const TAKEN: &[&str] = &[
    "--random-seed=-1 -S -t 1",
    "--random-seed=18446744073709551616 -S -t 1",
    "--random-seed=1 --random-seed=2 -S -t 1",
    "-R inf -S -t 3",
    "-R 0x1000 -S -t 3",
    "-L 0.0009 -S -t 3",
    "-R 1000 -L 0.0001 -S -t 3",
    "--ver -S -t 1",
    "-S -t 2 -C -c 3",
    "-S -t 1 -s 1",
    "-s 7 -S -t 1",
    "-S -t 1 -b tpcb@0",
    "-n -c1 -j4 -t1 -S",
];

#[test]
fn what_pgbench_takes_is_taken_and_told_alike() {
    for server in Server::each(test_name!()) {
        server.fill();
        for args in TAKEN {
            let args = format!("-n {args}");
            let ours = server.same(&args, &[]);
            let theirs = server.run("ref", &args);
            assert_eq!(words(&ours.err), words(&theirs.err), "{args}");
            assert_eq!(ours.code, Some(0), "{args}");
        }
        // Of seventy connections some cannot be had: their clients end, and the others'
        // transactions count.
        server.script("busy.sql", "SELECT pg_sleep(0.3);\n");
        let busy = "-n -f busy.sql -t 1 -C -c 70 -j 70";
        let (theirs, ours) = (server.run("ref", busy), server.run("our", busy));
        assert_eq!((theirs.code, ours.code), (Some(2), Some(2)), "{}{}", ours.out, ours.err);
        for ended in [theirs, ours] {
            ended.says("too many clients already").says(" aborted while establishing connection");
            ended.prints("number of transactions actually processed: ");
        }
    }
}

#[test]
fn the_extra_lines_are_off_under_the_name_pgbench_until_they_are_asked_for() {
    let Some(server) = Server::newest(test_name!()) else { return };
    let link = server.directory("our").join("pgbench");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pgdyno"), &link).unwrap();
    server.script("two.sql", "SELECT 1;\nSELECT 2;\n");
    let extra = |program: &std::path::Path, args: &str| -> Vec<String> {
        let mut command = server.command_of(program);
        let ended =
            ended(command.env("PGDATABASE", "our").args(args.split_whitespace()).output().unwrap())
                .exits(0);
        assert!(!ended.err.contains("pgdyno:"), "{}", ended.err);
        ended.out.lines().filter(|line| line.starts_with("pgdyno:")).map(str::to_owned).collect()
    };
    assert_eq!(extra(&link, "-n -t 5 -r -f two.sql"), [""; 0]);
    let asked = extra(&link, "-n -t 5 -r -f two.sql --extra-report");
    assert!(asked.iter().any(|line| line.contains("p99.99 = ")), "{asked:?}");
    // A line for each statement, as wide as a terminal.
    let statements: Vec<_> =
        asked.iter().filter(|line| line.starts_with("pgdyno: line ")).collect();
    assert!(statements.len() == 2 && statements.iter().all(|line| line.len() <= 80), "{asked:?}");
    let pgdyno = std::path::Path::new(env!("CARGO_BIN_EXE_pgdyno"));
    assert!(!extra(pgdyno, "pgbench -n -t 5 -f two.sql").is_empty());
}

#[test]
fn a_signal_ends_it_while_it_reads_a_script() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pgdyno"));
    command.args(["pgbench", "-n", "-f", "-"]).stdin(std::process::Stdio::piped());
    let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    // More than a pipe holds: once it is written, some is read, and as long as nobody closes the
    // pipe there may be more.
    let mut script = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut script, "SELECT 1;\n".repeat(100_000).as_bytes()).unwrap();
    signal(child.id(), "TERM");
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
}

#[test]
fn a_password_file_that_is_not_used_is_told_of_however_the_connection_ends() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".pgpass");
    std::fs::write(&file, "*:*:*:*:secret\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&file, mode).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pgdyno"));
    command.args(["pgbench", "-n", "-S"]).env("HOME", home.path());
    // Nobody listens there.
    let output = command.env("PGHOST", "/nonexistent").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(".pgpass") && said.contains("0600"), "{said}");
}

#[test]
fn called_by_the_name_pgbench_it_is_pgbench() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("pgbench");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pgdyno"), &link).unwrap();
    let said = std::process::Command::new(link).arg("--version").output().unwrap();
    assert!(String::from_utf8_lossy(&said.stdout).starts_with("pgbench (PostgreSQL) 18.0 "));
}

#[test]
fn a_dialect_is_named_by_its_version_and_one_without_a_report_is_refused() {
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pgdyno"));
        ended(command.arg("pgbench").args(args).output().unwrap())
    };
    for args in [["--dialect=15", "--version"], ["-V", "--dialect=15"]] {
        let said = run(&args);
        assert!(said.out.starts_with("pgbench (PostgreSQL) 15.0 "), "{args:?}: {}", said.out);
    }
    for older in ["9.4", "13", "14"] {
        let refused = run(&["--dialect", older, "-n"]);
        let known = format!("unknown dialect \"{older}\"; known are 15, 16, 17, 18:");
        assert!(refused.code == Some(1) && refused.err.contains(&known), "{}", refused.err);
    }
    for (args, option) in [("--hdr-log=-", "--hdr-log"), ("--store=-", "--store")] {
        let refused = run(&[args, "-n"]);
        let why = format!("{option} cannot write to standard output");
        assert!(refused.code == Some(1) && refused.err.contains(&why), "{}", refused.err);
    }
}

#[test]
fn the_meaning_of_d_is_told_where_it_matters() {
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pgdyno"));
        // Nobody listens there.
        let output =
            command.arg("pgbench").args(args).env("PGHOST", "/nonexistent").output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(run(&["-d", "mydb"]).contains("read as the database's name"));
    assert!(run(&["-d", "-c", "2", "mydb"]).contains("as pgbench 16 reads them"));
    assert!(!run(&["-d", "mydb", "--dialect=17"]).contains("note:"));
    assert!(!run(&["-c", "2", "mydb"]).contains("note:"));
}
