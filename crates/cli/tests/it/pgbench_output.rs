//! A report of `pgdyno pgbench` that cannot be written.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::{Output, Stdio};

use crate::pgbench_support::Server;
use pgdyno_test_support::test_name;

const RUN: [&str; 4] = ["-n", "-S", "-t", "2"];

/// A run of `who` that writes its report to `out`.
fn run_onto(server: &Server, who: &str, out: impl Into<Stdio>) -> Output {
    server.command(who).args(RUN).stdout(out).stderr(Stdio::piped()).output().unwrap()
}

#[test]
fn a_log_that_loses_lines_is_told_after_the_report() {
    let Some(server) = Server::newest(test_name!()) else { return };
    server.run("our", "-i -q -I dtGvp").exits(0);
    // A log is named by its process: the shell makes that name lead to a full device and becomes
    // the process.
    let words = "ln -s /dev/full log.$$ && exec \"$0\" pgbench -n -S -t 2 -l --log-prefix=log";
    let mut shell = server.command_of(std::path::Path::new("sh"));
    let shell = shell.env("PGDATABASE", "our").args(["-c", words, env!("CARGO_BIN_EXE_pgdyno")]);
    let ended = shell.output().unwrap();
    let (out, said) =
        (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(
        out.contains("tps = ") && said.contains("error: could not write to logfile"),
        "{out}{said}"
    );
}

#[test]
fn a_report_that_cannot_be_written_is_told() {
    for server in Server::each(test_name!()) {
        server.fill();
        let full =
            |who| run_onto(&server, who, File::options().write(true).open("/dev/full").unwrap());
        // pgbench loses its report and calls that success; ours does not (docs/pgbench.md, What
        // differs).
        assert_eq!(full("ref").status.code(), Some(0));
        let ours = full("our");
        let said = String::from_utf8_lossy(&ours.stderr);
        assert_eq!(ours.status.code(), Some(1), "{said}");
        let errors: Vec<&str> = said.lines().filter(|line| line.contains("error: ")).collect();
        assert_eq!(errors.len(), 1, "{said}");
        assert!(
            errors[0].starts_with("pgbench: error: ") && errors[0].contains("No space left"),
            "{said}"
        );

        let gone = |who| {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            run_onto(&server, who, writer)
        };
        // SIGPIPE ends pgbench; a shell reports 128 and the signal's number, and so does ours.
        let signal = gone("ref").status.signal().unwrap();
        let ours = gone("our");
        assert_eq!(ours.status.code(), Some(128 + signal));
        let said = String::from_utf8_lossy(&ours.stderr);
        assert!(!said.contains("error") && !said.contains("panic"), "{said}");
    }
}

#[test]
fn a_standard_output_that_is_closed_is_told() {
    for args in ["pgbench --version", "pgbench --show-script=select-only", "--version", "help run"]
    {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("exec \"$0\" {args} >&-"), env!("CARGO_BIN_EXE_pgdyno")]);
        let ended = shell.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        // Built-in scripts are shown on standard error, as by pgbench.
        if args.contains("show-script") {
            assert_eq!(ended.status.code(), Some(0), "{args}: {said}");
            continue;
        }
        assert_eq!(ended.status.code(), Some(1), "{args}: {said}");
        assert!(said.contains("standard output") && said.contains("Bad file"), "{args}: {said}");
    }
}
