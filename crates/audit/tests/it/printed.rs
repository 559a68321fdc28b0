//! Figures that pgbench and sysbench print twice, and commands against their reports.

use pgdyno_audit::Confidence::{Certain, Likely};
use pgdyno_audit::Severity::{Serious, Warning};
use pgdyno_audit::{Asked, DesignKind, Finding, Kind, LoadKind, RepeatsKind, RunKind};

use super::rules::{clean, run};
use super::{Figures as _, audit_of, checks, checks_of, close, finding, findings_of, speaks};

/// The parameter of a command that its report has otherwise.
fn asked_otherwise(finding: &Finding) -> Option<&Asked> {
    match &finding.kind {
        Kind::Design(DesignKind::OtherThanAsked { asked, .. }) => Some(asked),
        _ => None,
    }
}

#[test]
fn percentages_and_sums_of_failures_are_computed_again() {
    let with = |lines: &str| {
        let text = run(299_999, 333.333, 48.0, "");
        audit_of(&text.replace("latency average", &format!("{lines}\nlatency average")))
    };
    for wrong in [
        "number of failed transactions: 100 (25.000%)",
        "number of transactions above the 50.0 ms latency limit: 5/299999 (90.000%)",
        "number of transactions above the 50.0 ms latency limit: 5/150000 (0.003%)",
        "number of transactions skipped: 100 (3.000%)",
        "number of failed transactions: 7 (0.002%)\nnumber of serialization failures: 2 (0.001%)\n\
         number of deadlock failures: 1 (0.000%)",
        "number of transactions retried: 5 (0.002%)\ntotal number of retries: 4",
    ] {
        let audit = with(wrong);
        let f = finding(&audit, "printed-shares");
        assert_eq!((f.severity, f.sure), (Serious, Certain), "{wrong}");
    }
    for right in [
        "number of failed transactions: 100 (0.033%)",
        "number of transactions above the 50.0 ms latency limit: 5/299999 (0.002%)",
        "number of failed transactions: 3 (0.001%)\nnumber of serialization failures: 2 (0.001%)\n\
         number of deadlock failures: 1 (0.000%)",
        "number of transactions retried: 5 (0.002%)\ntotal number of retries: 5",
        "number of failed transactions: 0 (NaN%)",
    ] {
        let audit = with(right);
        assert!(!speaks(&audit, "printed-shares"), "{right}: {:#?}", audit.findings);
    }
    let audit = with("number of failed transactions: 100 (25.000%)");
    let f = finding(&audit, "printed-shares");
    close(&f.figure("computed"), 0.0333);
    assert_eq!(f.figure("printed"), 25.0);
}

#[test]
fn more_transactions_than_the_clients_were_to_do_are_told() {
    // As somebody edited it: a run has a duration or a count, and a sum of its own.
    let edited = run(680_421, 1136.258, 176.016, "")
        .replace("duration: 900 s", "duration: 600s\nnumber of transactions per client: 1000")
        .replace(" (without", "(without");
    let audit = audit_of(&edited);
    let f: Vec<_> = audit.findings.iter().filter(|f| f.rule == "transactions").collect();
    let (clients, each, wanted) = (16.0, 1000.0, 16_000.0);
    let kind = RunKind::BeyondClients { done: 680_421.0, clients, each, wanted };
    assert_eq!(f[0].kind, Kind::Run(kind));
    let longer = run(6_267_661, 1050.057, 380.932, "").replace("duration: 900 s", "duration: 600s");
    let audit = audit_of(&longer);
    assert_eq!(finding(&audit, "transactions").figure("printed_seconds"), 600.0);
}

#[test]
fn no_more_threads_than_clients_run() {
    let text = clean().replace("number of threads: 8", "number of threads: 40");
    let audit = audit_of(&text);
    let f: Vec<_> = audit.findings.iter().filter(|f| f.rule == "transactions").collect();
    assert_eq!((f.len(), f[0].severity), (3, Serious));
    assert_eq!(f[0].kind, Kind::Run(RunKind::Threads { threads: 40.0, clients: 16.0 }));
}

#[test]
fn rows_have_no_more_clients_at_work_than_there_are() {
    let table = |latency: &str, name: &str| {
        audit_of(&format!(
            "| clients | tps | {name} | stddev |\n|---|---|---|---|\n| 8 | 1000 | {latency} | 1 |\n\
             | 16 | 2000 | 8.0 | 1 |\n"
        ))
    };
    let audit = table("80.0", "latency avg (ms)");
    let f = finding(&audit, "littles-law");
    assert_eq!((f.severity, f.line()), (Serious, 3));
    assert_eq!((f.figure("clients_at_work"), f.figure("clients")), (80.0.into(), 8.0.into()));
    assert_eq!(checks_of(&table("8.0", "latency avg (ms)"), "littles-law")[0].lines, [3, 4]);
    for other in ["p99 latency (ms)", "max latency (ms)", "latency (us)", "latency"] {
        assert!(!speaks(&table("80.0", other), "littles-law"), "{other}");
    }
}

#[test]
fn a_percentile_at_the_end_of_sysbenchs_histogram_is_told() {
    let report = |percentile: &str| {
        format!(
            "SQL statistics:\n    transactions:                        1000   (10.00 per sec.)\n\
             Latency (ms):\n         avg:                                  100.00\n         \
             95th percentile:                     {percentile}\n"
        )
    };
    assert_eq!(finding(&audit_of(&report("100000.00")), "capped-percentile").line(), 5);
    assert!(!speaks(&audit_of(&report("99999.99")), "capped-percentile"));
    assert!(!speaks(&audit_of("In theory:\n 95th percentile: 100000.00\n"), "capped-percentile"));
}

#[test]
fn a_report_of_sysbench_is_of_what_its_command_asks_for() {
    let report = |command: &str| {
        audit_of(&format!(
            "{command}\n\nRunning the test with following options:\nNumber of threads: 256\n\n\
             SQL statistics:\n    transactions:                        36026  (10.00 per sec.)\n\
             General statistics:\n    total time:                          3602.6152s\n"
        ))
    };
    let rule = "sysbench-command";
    for (wrong, asked) in [
        ("sysbench oltp.lua --num-threads=10 --max-time=3600 run", Asked::Threads(10.0)),
        ("sysbench oltp_read_write --threads=256 --time=1800 run", Asked::Seconds(1800.0)),
    ] {
        let audit = report(wrong);
        let f = finding(&audit, rule);
        assert_eq!(asked_otherwise(f), Some(&asked), "{wrong}");
    }
    for fine in [
        "sysbench oltp_read_write --threads=256 --time=3600 run",
        // It may end by its number of events.
        "sysbench oltp_read_write --threads=256 --time=9000 run",
        "sysbench oltp_read_write --threads=16 prepare",
        "sysbench oltp_read_write --threads=$n run",
    ] {
        assert!(!speaks(&report(fine), rule), "{fine}");
    }
}

#[test]
fn a_report_is_of_what_the_command_above_it_asks_for() {
    let report = run(3_600_000, 4000.0, 3.999, "");
    let above = |command: &str| audit_of(&format!("{command}\n{report}"));
    for fits in
        ["$ pgbench -M prepared -c 16 -j 8 -T 900 bench", "pgbench -nrM prepared -c16 -j8 -T900"]
    {
        let audit = above(fits);
        assert_eq!(checks_of(&audit, "command-contradiction").len(), 1, "{:#?}", audit.findings);
    }
    for (wrong, asked) in [
        ("pgbench -M prepared -c 65 -j 8 -T 900 bench", Asked::Clients(65.0)),
        ("pgbench -M prepared -c 16 -j 4 -T 900 bench", Asked::Threads(4.0)),
        ("pgbench -M prepared -c 16 -j 8 -T 60 bench", Asked::Seconds(60.0)),
        ("pgbench -M prepared -c 16 -j 8 -t 1000 bench", Asked::Transactions(1000.0)),
        ("pgbench -M extended -c 16 -j 8 -T 900 bench", Asked::QueryMode("extended".to_owned())),
        (
            "sudo -u postgres pgbench -M prepared -S -c 16 -j 8 -T 900",
            Asked::Load(LoadKind::SelectOnly),
        ),
        ("pgbench -M prepared -N -c 16 -j 8 -T 900 bench", Asked::Load(LoadKind::SimpleUpdate)),
        (
            "pgbench -M prepared -b select-only -c 16 -j 8 -T 900 bench",
            Asked::Load(LoadKind::SelectOnly),
        ),
        ("pgbench -M prepared -f own.sql -c 16 -j 8 -T 900 bench", Asked::Load(LoadKind::File)),
        ("pgbench -M prepared -c 16 -j 8 -T 900 -R 1000 bench", Asked::Rate(true)),
        ("pgbench -M prepared -j 8 -T 900 bench", Asked::Clients(1.0)),
        ("pgbench -M prepared -c 16 -T 900 bench", Asked::Threads(1.0)),
        ("pgbench -c 16 -j 8 -T 900 bench", Asked::QueryMode("simple".to_owned())),
        ("pgbench -M prepared -c 16 -j 8 bench", Asked::Transactions(10.0)),
    ] {
        let audit = above(wrong);
        let f = audit.findings.iter().find(|f| asked_otherwise(f) == Some(&asked));
        let f = f.unwrap_or_else(|| panic!("{wrong}: {:#?}", audit.findings));
        assert_eq!(
            (f.rule, f.severity, f.sure),
            ("command-contradiction", Warning, Likely),
            "{wrong}"
        );
    }
    for open in [
        "We ran pgbench -c 65 first.",
        "for c in 1 2; do pgbench -c 65 -T 900; done",
        "pgbench -c $clients -T 60",
        "pgbench -c 65 … bench",
        "pgbench -c 65 \\\n  -T 60",
        "pgbench -c 65 -T 900 bench\npgbench -c 16 -T 900 bench",
    ] {
        assert!(!speaks(&above(open), "command-contradiction"), "{open}");
    }
    // Threads beyond the clients are not run.
    let few = report.replace("number of clients: 16", "number of clients: 4");
    let few = few.replace("number of threads: 8", "number of threads: 4");
    let audit = audit_of(&format!("pgbench -M prepared -c 4 -j 8 -T 900 bench\n{few}"));
    assert!(!speaks(&audit, "command-contradiction"), "{:#?}", audit.findings);
}

#[test]
fn a_rate_that_was_not_reached_is_told() {
    let limited = |tps: f64| {
        let transactions = (tps * 900.0) as u64;
        let report = run(transactions, tps, 3.999, "");
        let lag = "rate limit schedule lag: avg 9.000 (max 90.000) ms\ninitial";
        audit_of(&format!(
            "pgbench -M prepared -c 16 -j 8 -T 900 -R 1000\n{}",
            report.replace("initial", lag)
        ))
    };
    let audit = limited(310.0);
    let f = finding(&audit, "rate-reached");
    close(&f.figure("percent"), 31.0);
    assert_eq!(checks(&limited(995.0), "rate-reached"), 1);
}

#[test]
fn runs_that_differ_are_not_called_alike() {
    let two = |second: &str| {
        let first = run(3_600_000, 4000.0, 3.999, "");
        let other = run(3_590_000, 3990.0, 4.01, "").replace("number of clients: 16", second);
        audit_of(&format!("## a\n{first}\n## b\n{other}"))
    };
    assert_eq!(checks(&two("number of clients: 16"), "unequal-runs"), 1);
    assert_eq!(checks(&two("number of clients: 65"), "unequal-runs"), 0);
}

#[test]
fn a_column_that_counts_rows_names_no_repeats() {
    let audit = audit_of(
        "| Run | filesystem | tps |\n|---|---|---|\n| 1 | ext4 | 1000 |\n| 2 | xfs | 1210 |\n\
         | 3 | btrfs | 395 |\n",
    );
    let labels: Vec<&str> =
        audit.recognised.tables[0].rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(labels, ["ext4", "xfs", "btrfs"]);
    assert_eq!(findings_of(&audit), [("one-repeat", Warning)]);
    assert!(checks_of(&audit, "told-apart").is_empty());

    let threads = audit_of(
        "| # | threads | tps |\n|---|---|---|\n| 1 | 1 | 100 |\n| 2 | 2 | 190 |\n| 3 | 4 | 350 |\n\
         | 4 | 8 | 600 |\n| 5 | 16 | 900 |\n",
    );
    assert!(!speaks(&threads, "rising-repeats"), "{:#?}", threads.findings);
    assert_eq!(threads.recognised.tables[0].rows[2].label, "threads 4");
    let columns = audit_of(
        "| tps with threads | 1 | 2 | 3 | 4 |\n|---|---|---|---|---|\n\
         | xfs | 100 | 190 | 270 | 350 |\n| zfs | 90 | 170 | 250 | 310 |\n",
    );
    assert!(!speaks(&columns, "rising-repeats"), "{:#?}", columns.findings);
    // Runs are still repeats where nothing else tells them apart.
    let runs = audit_of(
        "| Run | tps | filesystem |\n|---|---|---|\n| 1 | 1000 | xfs |\n| 2 | 1010 | xfs |\n\
         | 3 | 995 | xfs |\n",
    );
    assert_eq!(runs.recognised.tables[0].rows[0].repeats.len(), 3);
}

#[test]
fn two_units_are_not_told_apart() {
    let audit = audit_of(
        "| Run | TPM | NOPM |\n|---|---|---|\n| 1 | 21000 | 9100 |\n| 2 | 21100 | 9150 |\n\
         | 3 | 20900 | 9050 |\n",
    );
    let rows = &audit.recognised.tables[0].rows;
    assert!(rows.len() == 2 && rows.iter().all(|row| row.repeats.len() == 3), "{rows:?}");
    let kinds: Vec<&Kind> = checks_of(&audit, "told-apart").iter().map(|c| &c.kind).collect();
    let is_interval = |kind: &Kind| matches!(kind, Kind::Repeats(RepeatsKind::Intervals { .. }));
    assert!(kinds.len() == 2 && kinds.into_iter().all(is_interval), "{:?}", audit.checked);
}
