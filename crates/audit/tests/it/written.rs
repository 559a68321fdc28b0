//! Reports as people write them: repeats under headings, warm-ups, quotations, settings and heads
//! of tables.

use pgdyno_audit::Severity::{Serious, Warning};

use super::rules::{clean, run};
use super::{Figures as _, audit_of, checks_of, finding, findings_of};

/// Two runs that differ a little.
fn two() -> [String; 2] {
    [3_600_000, 3_590_000].map(|n| run(n, n as f64 / 900.0, 14_400_000.0 / n as f64, ""))
}

fn n_of(text: &str) -> usize {
    audit_of(text)
        .findings
        .iter()
        .find(|f| f.rule == "one-repeat")
        .map_or(0, |f| f.figure("runs").as_u64().unwrap() as usize)
}

#[test]
fn a_warm_up_is_no_repeat() {
    let [a, b] = two();
    let warm = run(1_100_000, 3_666.0, 4.36, "").replace("900 s", "300 s");
    for heading in ["=== WARMUP ===", "## Warm-up", "Warm-up run:"] {
        let text = format!("{heading}\n{warm}\n## Run 1\n{a}\n## Run 2\n{b}");
        assert_eq!(findings_of(&audit_of(&text)), [], "{heading}");
        let intervals = checks_of(&audit_of(&text), "told-apart")[0].figure("intervals");
        assert_eq!(intervals[0]["n"], 2, "{heading}");
        assert_eq!(
            n_of(&format!("{heading}\n{warm}\n## Result\n{a}")),
            1,
            "{heading}: the only measurement"
        );
    }
    // A sentence that speaks of one names none.
    assert_eq!(n_of(&format!("After a warm-up of 60 s:\n{a}")), 1);
    let table = audit_of(
        "| fs | warm-up | run 1 | run 2 |\n|---|---|---|---|\n| xfs tps | 10 | 100 | 102 |\n\
         | zfs tps | 10 | 90 | 92 |\n\ntps\n",
    );
    assert!(
        table.recognised.tables.iter().flat_map(|t| &t.rows).all(|r| r.repeats.len() == 2),
        "{:?}",
        table.recognised.tables
    );
    let below = audit_of(
        "| run | tps |\n|---|---|\n| warm-up | 10 |\n| 1 | 100 |\n| 2 | 102 |\n| 3 | 101 |\n",
    );
    assert_eq!(below.recognised.tables[0].rows[0].repeats.len(), 3);
}

#[test]
fn runs_under_headings_that_count_are_repeats() {
    let [a, b] = two();
    let headed = |first: &str, second: &str| n_of(&format!("{first}\n{a}\n{second}\n{b}"));
    for (first, second) in [
        ("## Run 1", "## Run 2"),
        ("**Second run**", "**Third run:**"),
        ("### pgbench, run 1 of 2", "### pgbench, run 2 of 2"),
        ("[07:24:51] CHECKPOINT\n=== RUN 1 ===", "[07:34:53] CHECKPOINT\n=== RUN 2 ==="),
        ("## Run 1\n\nOutput of the machine:\n", "## Run 2\n\nOutput of the machine:\n"),
        ("", "root@host:/data$"),
    ] {
        assert_eq!(headed(first, second), 0, "{first}");
    }
    for (first, second) in [
        ("## ext4", "## xfs"),
        ("## Run 1\n- RAID0 of four", "## Run 2\n- RAID0 of two and two"),
        ("shared_buffers of 128MB", "shared_buffers of 1GB"),
    ] {
        assert_eq!(headed(first, second), 2, "{first}");
    }
}

#[test]
fn runs_with_other_settings_are_no_repeats() {
    let [a, b] = two();
    let started = |first: &str, second: &str| n_of(&format!("{first}\n{a}\n{second}\n{b}"));
    let command = "$ pgbench -c 16 -j 8 -T 900";
    assert_eq!(started(command, command), 0);
    assert_eq!(
        started(&format!("{command} > 1.log 2>&1"), &format!("{command} > 2.log 2>&1")),
        0,
        "only its output goes elsewhere"
    );
    for second in [
        "$ PGOPTIONS='-c synchronous_commit=off' pgbench -c 16 -j 8 -T 900",
        "$ docker exec pg18 pgbench -c 16 -j 8 -T 900",
        "postgres=# ALTER SYSTEM SET wal_compression = on;\n$ pgbench -c 16 -j 8 -T 900",
        "shared_buffers = 8GB\n$ pgbench -c 16 -j 8 -T 900",
    ] {
        assert_eq!(started(command, second), 2, "{second}");
    }
    let version = |v: &str, run: &str| format!("pgbench ({v})\n{run}");
    assert_eq!(n_of(&format!("{}{}", version("16.1", &a), version("17.0", &b))), 2);
    assert_eq!(n_of(&format!("{}{}", version("16.1", &a), version("16.1", &b))), 0);
}

#[test]
fn quoted_figures_are_not_counted_again() {
    let [a, b] = two();
    let quoted: String = a.lines().map(|l| format!("> {l}\n")).collect();
    let audit = audit_of(&format!(
        "## ext4\n{a}\nNow the other:\n\n{b}\nYou wrote:\n\n{quoted}\nwhich is odd.\n"
    ));
    assert_eq!(audit.recognised.runs.len(), 2);
    // Figures that stand in a quotation only are figures.
    assert_eq!(audit_of(&quoted).recognised.runs.len(), 1);
    let said = audit_of(&format!("{a}\nIn short:\n\ntps = 4000.000000\n"));
    assert_eq!(said.recognised.runs.len(), 1, "a figure that is said again");
}

#[test]
fn settings_are_read_as_people_write_them() {
    for (text, line) in [
        ("postgres=# ALTER SYSTEM SET fsync = off;", 2),
        ("bench=> alter system set fsync to off;", 2),
        ("3. ALTER SYSTEM SET fsync = off", 2),
        ("psql -c \"ALTER SYSTEM SET fsync = off\"", 2),
        ("    command: postgres -c fsync=off -c shared_buffers=8GB", 2),
        ("command: [\"postgres\", \"-c\", \"fsync=off\"]", 2),
        ("      - -c\n      - fsync=off", 3),
        ("      - \"fsync=off\"", 2),
        ("      -c fsync=off \\", 2),
        ("  fsync: \"off\"", 2),
        ("  \"fsync\": \"off\",", 2),
        ("docker run -d postgres:17 -c fsync=off", 2),
        (" name  | setting \n-------+---------\n fsync | off", 4),
        (" fsync \n-------\n off", 2),
        ("export PGOPTIONS=\"-c fsync=off\"", 2),
    ] {
        let audit = audit_of(&format!("x\n{text}\n\n{}", clean()));
        assert_eq!(
            (findings_of(&audit), finding(&audit, "fsync-off").line()),
            (vec![("fsync-off", Serious)], line),
            "{text}"
        );
    }
    // Prose is not believed: it may be of anything.
    for said in ["All of this with fsync off.", "fsync was disabled", "We turned off fsync for it."]
    {
        assert_eq!(findings_of(&audit_of(&format!("{said}\n\n{}", clean()))), [], "{said}");
    }
    for fine in [
        "Never run with fsync off.",
        "What if fsync is off?",
        "fsync=off would be faster, and loses data.",
        "  fsync: \"on\"",
        "| fsync | 1200 |",
        "pg_test_fsync disabled",
        "| option | effect |\n|---|---|\n| fsync=off | 3 times faster |",
        " name  | setting \n-------+---------\n fsync | on",
    ] {
        assert_eq!(findings_of(&audit_of(&format!("{fine}\n\n{}", clean()))), [], "{fine}");
    }
}

#[test]
fn tables_are_read_whatever_their_throughput_is_called() {
    let table = |head: &str| {
        audit_of(&format!("| fs | {head} |\n|---|---|\n| xfs | 10904 |\n| zfs | 7530 |\n"))
    };
    for head in [
        "transactions/sec",
        "Transactions per second",
        "TPS (K)",
        "ops/s",
        "throughput",
        "queries/s",
        "txn/s",
        "latency (ms)",
        "Runtime",
    ] {
        assert_eq!(findings_of(&table(head)), [("one-repeat", Warning)], "{head}");
    }
    for other in [
        "throughput (MB/s)",
        "IOPS",
        "clients",
        "size",
        "p99 latency",
        "median runtime",
        "average latency",
    ] {
        assert_eq!(findings_of(&table(other)), [], "{other}");
    }
    // Whatever is said above: the table has no spread.
    for said in [
        "Each test was run 3 times.",
        "These are one-shot runs.",
        "No repeats were made.",
        "best viewed on paper",
    ] {
        let text = format!("{said}\n\n| fs | tps |\n|---|---|\n| xfs | 10904 |\n| zfs | 7530 |\n");
        assert_eq!(findings_of(&audit_of(&text)), [("one-repeat", Warning)], "{said}");
    }
    // A row without figures is no head.
    let audit = audit_of(
        "| cpu | tps |\n|---|---|\n| this one is the client | |\n| first | 160.9 |\n\
         | second | 158.2 |\n",
    );
    assert_eq!(finding(&audit, "one-repeat").lines, [4, 5]);
}

#[test]
fn what_earlier_versions_kept_still_reads() {
    let mut kept = serde_json::to_value(audit_of(&clean()).recognised).unwrap();
    kept.as_object_mut().unwrap().remove("sysbench").unwrap();
    let read: pgdyno_audit::Recognised = serde_json::from_value(kept).unwrap();
    assert_eq!((read.runs.len(), read.sysbench.len()), (3, 0));
}
