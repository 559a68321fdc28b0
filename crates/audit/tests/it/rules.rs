//! Each rule: where it must speak, and where it must not.

use pgdyno_audit::Confidence::{Certain, Likely, Possible};
use pgdyno_audit::Severity::{Note, Serious, Warning};
use pgdyno_audit::{Kind, RunKind, WhyNot, rule_names};

use super::{Figures as _, audit_of, checks, checks_of, close, finding, findings_of, speaks};

/// A report of pgbench 16: 16 clients, 900 s.
pub(crate) fn run(transactions: u64, tps: f64, latency_ms: f64, more: &str) -> String {
    format!(
        "transaction type: <builtin: TPC-B (sort of)>\nscaling factor: 100\nquery mode: prepared\n\
         number of clients: 16\n\
         number of threads: 8\nduration: 900 s\nnumber of transactions actually processed: \
         {transactions}\n\
         latency average = {latency_ms:.3} ms\nlatency stddev = 1.000 ms\n\
         initial connection time = 20.000 ms\n\
         tps = {tps:.6} (without initial connection time)\n{more}",
    )
}

#[test]
fn every_rule_has_a_name_of_its_own() {
    let mut names: Vec<&str> = rule_names().collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn transactions_are_tps_times_duration() {
    let wrong = audit_of(&run(3_600_000, 4400.0, 3.999, ""));
    let f = finding(&wrong, "transactions");
    assert_eq!((f.severity, f.sure, f.line()), (Serious, Certain, 7));
    close(&f.figure("seconds"), 818.1818);
    // Longer than asked: a transaction that did not end, or a slip.
    assert_eq!(finding(&audit_of(&run(3_600_000, 3900.0, 3.999, "")), "transactions").sure, Likely);
    for tps in [4000.0, 4001.0, 3998.0] {
        assert_eq!(checks(&audit_of(&run(3_600_000, tps, 3.997, "")), "transactions"), 1);
    }
    // Connecting is part of the duration, and is told.
    let slow = "transaction type: x\nnumber of clients: 150\nduration: 10 s\n\
        number of transactions actually processed: 10112\n\
                latency average = 114.126 ms\ninitial connection time = 2419.960 ms\n\
                tps = 1314.338679 (without initial connection time)\n";
    assert_eq!(checks(&audit_of(slow), "transactions"), 1);
}

#[test]
fn counted_transactions_are_those_of_all_clients() {
    let text = |done: u32, wanted: u32| {
        format!(
            "number of clients: 8\nnumber of threads: 8\nnumber of transactions per client: 100\n\
             number of transactions actually processed: {done}/{wanted}\n\
             tps = 100.000000 (including connections establishing)\n"
        )
    };
    let early = audit_of(&text(790, 800));
    let f = finding(&early, "transactions");
    assert_eq!(f.severity, Warning);
    let kind = RunKind::Done { done: 790.0, wanted: 800.0, lost: 0.0 };
    assert_eq!(f.kind, Kind::Run(kind));
    assert_eq!(finding(&audit_of(&text(900, 900)), "transactions").severity, Serious);
    assert_eq!(checks(&audit_of(&text(800, 800)), "transactions"), 1);
    let failed =
        text(700, 800).replace("tps =", "number of failed transactions: 100 (12.500%)\ntps =");
    assert_eq!(checks_of(&audit_of(&failed), "transactions").len(), 1, "failed ones were done too");
}

#[test]
fn latency_times_tps_is_the_clients() {
    let over = audit_of(&run(3_600_000, 4000.0, 5.0, ""));
    let f = finding(&over, "littles-law");
    assert_eq!((f.severity, f.sure), (Serious, Certain));
    close(&f.figure("clients_at_work"), 20.0);
    let under = audit_of(&run(3_600_000, 4000.0, 3.5, ""));
    assert_eq!(finding(&under, "littles-law").severity, Warning);
    assert_eq!(checks(&audit_of(&run(3_600_000, 4000.0, 3.98, "")), "littles-law"), 1);
    // With a rate clients wait on purpose, and latency counts their waiting.
    let rate = run(3_600_000, 4000.0, 9.0, "").replace(
        "latency stddev",
        "rate limit schedule lag: avg 2.859 (max 27.065) ms\nlatency stddev",
    );
    assert!(!speaks(&audit_of(&rate), "littles-law"));
}

#[test]
fn statements_are_no_more_than_their_transaction() {
    let list = |a: f64, b: f64| {
        format!(
            "statement latencies in milliseconds:\n  {a:.3}  UPDATE a SET x = 1;\n  {b:.3}  END;\n"
        )
    };
    let with = |a, b| audit_of(&run(3_600_000, 4000.0, 3.99, &list(a, b)));
    assert_eq!(finding(&with(3.0, 2.0), "statements").severity, Serious);
    assert_eq!(finding(&with(1.5, 1.0), "statements").severity, Warning);
    assert_eq!(checks(&with(3.0, 0.98), "statements"), 1);
    // Rounding may add up: half a unit of each.
    assert_eq!(checks(&with(3.0, 0.991), "statements"), 1);
    // A branch is not always taken.
    let branch = "statement latencies in milliseconds:\n 0.001  \\if :x\n \
        3.000 UPDATE a SET x = 1;\n 2.000 END;\n";
    let audit = audit_of(&run(3_600_000, 4000.0, 3.99, branch));
    assert!(!speaks(&audit, "statements"));
}

#[test]
fn a_gap_is_named_only_where_there_is_one() {
    let list = |a: f64| {
        format!(
            "statement latencies in milliseconds:\n  {a:.3}  UPDATE a SET x = 1;\n  1.000  END;\n"
        )
    };
    let two = |a: f64, b: f64| {
        audit_of(&format!(
            "one\n\n{}\ntwo\n\n{}",
            run(3_600_000, 16.0 / (a + 1.0) * 1000.0, a + 1.0, &list(a)),
            run(3_600_000, 16.0 / (b + 1.0) * 1000.0, b + 1.0, &list(b))
        ))
    };
    close(&finding(&two(5.0, 3.0), "latency-gap").figure("share_percent"), 100.0);
    assert!(!speaks(&two(3.0, 3.01), "latency-gap"));
}

#[test]
fn scripts_add_up() {
    let text = super::fixture("pgbench-18.txt");
    assert!(checks_of(&text, "scripts").len() >= 3);
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/audit/pgbench-18.txt");
    let wrong = std::fs::read_to_string(path).unwrap().replace("101234 (tps", "90123 (tps");
    assert_eq!(finding(&audit_of(&wrong), "scripts").severity, Warning);
}

const HEAD: &str = "fs tps mean tps ratio %\n";

#[test]
fn means_and_ratios_of_tables_are_computed_again() {
    let right = "ext4 100 104 102 102.0 100\nxfs 90 92 91 91.0 89.2\nzfs 50 54 52 52.0 51.0\n";
    let audit = audit_of(&format!("{HEAD}{right}"));
    assert_eq!(
        (checks_of(&audit, "means").len(), checks_of(&audit, "ratios")[0].lines.len()),
        (1, 2)
    );
    let mean = audit_of(&format!("{HEAD}{}", right.replace("91.0", "93.0")));
    let f = finding(&mean, "means");
    assert_eq!((f.severity, f.line()), (Serious, 3));
    close(&f.figure("mean"), 91.0);
    let ratio = audit_of(&format!("{HEAD}{}", right.replace("51.0", "56.0")));
    let f = finding(&ratio, "ratios");
    close(&f.figure("ratio"), 50.980_392);
    assert_eq!((f.line(), f.quoted.as_str()), (4, "zfs 50 54 52 52.0 56.0"));
    // Cut off instead of rounded is no mistake.
    let cut = audit_of(&format!("{HEAD}{}", right.replace("51.0", "50.9")));
    assert!(!speaks(&cut, "ratios"));
    // A column that is something else throughout is no ratio.
    let other = right.replace("89.2", "12.0").replace("51.0", "77.0");
    let other = audit_of(&format!("{HEAD}{other}tmpfs 200 204 202 202.0 44.0\n"));
    assert!(!speaks(&other, "ratios"), "{:#?}", other.findings);
}

#[test]
fn a_ratio_column_beside_one_column_of_tps() {
    let table = |ratio: &str| {
        format!(
            "| fs | tps | ratio |\n|---|---|---|\n| xfs | 10904 | 100% |\n\
             | zfs | 7530 | {ratio} |\n"
        )
    };
    assert_eq!(checks(&audit_of(&table("69.1%")), "ratios"), 1);
    assert!(audit_of(&table("69.1%")).findings.iter().all(|f| f.rule == "one-repeat"));
    // Without a row of 100% nobody knows of what.
    let based = audit_of(&table("75%").replace("100%", "90%"));
    assert!(!speaks(&based, "ratios"));
}

#[test]
fn numbers_that_may_be_two_are_told_and_not_guessed() {
    let audit = audit_of("| fs | tps |\n|---|---|\n| xfs | 10,904 |\n| zfs | 75 |\n");
    assert!(
        audit
            .not_understood
            .iter()
            .any(|n| n.line == 3 && n.why == WhyNot::AmbiguousNumber("10,904".to_owned())),
        "{:?}",
        audit.not_understood
    );
}

#[test]
fn one_measurement_is_one() {
    let single = audit_of(&run(3_600_000, 4000.0, 3.99, ""));
    assert_eq!(findings_of(&single), [("one-repeat", Warning)]);
    let repeats: String =
        [3_600_000, 3_590_000, 3_610_000].map(|n| run(n, n as f64 / 900.0, 3.99, "")).concat();
    assert_eq!(findings_of(&audit_of(&repeats)), []);
    // The same figures twice are one measurement, copied.
    let twice = run(3_600_000, 4000.0, 3.99, "").repeat(2);
    assert_eq!(findings_of(&audit_of(&twice)), [("one-repeat", Warning)]);
    // Text between parts them.
    let parted = format!(
        "{}\nNow with the cache off:\n\n{}",
        run(3_600_000, 4000.0, 3.99, ""),
        run(3_690_000, 4100.0, 3.89, "")
    );
    assert_eq!(finding(&audit_of(&parted), "one-repeat").sure, Likely);
    // Another command, or other options in it, makes another thing.
    let commands =
        ["", " --max-tries=10"].map(|more| format!("pgbench -M prepared -c 16 -j 8 -T 900{more}"));
    let two = [3_600_000, 3_590_000].map(|n| run(n, n as f64 / 900.0, 3.99, ""));
    let differ = format!("$ {}\n{}\n$ {}\n{}", commands[0], two[0], commands[1], two[1]);
    assert_eq!(finding(&audit_of(&differ), "one-repeat").figure("runs"), 2);
    let alike = format!("$ {}\n{}\n$ {}\n{}", commands[0], two[0], commands[0], two[1]);
    assert_eq!(findings_of(&audit_of(&alike)), []);
    // Headings that count make no different things; others do.
    let headed = |a: &str, b: &str| audit_of(&format!("{a}\n{}\n{b}\n{}", two[0], two[1]));
    assert_eq!(findings_of(&headed("## Run 1", "## Run 2:")), []);
    assert_eq!(findings_of(&headed("1st repeat", "2nd repeat")), []);
    assert_eq!(finding(&headed("## ext4", "## xfs"), "one-repeat").figure("runs"), 2);
    let table = |head: &str| {
        audit_of(&format!("| fs | {head} |\n|---|---|\n| xfs | 10904 |\n| zfs | 7530 |\n"))
    };
    assert_eq!(finding(&table("tps"), "one-repeat").sure, Likely);
    assert_eq!(finding(&table("mean tps"), "one-repeat").severity, Note);
    assert_eq!(findings_of(&table("median tps")), []);
    // Rows that are repeats.
    let below = |head: &str| {
        audit_of(&format!(
            "| {head} | tps |\n|---|---|\n| 1 | 4012.5 |\n| 2 | 3987.1 |\n| 3 | 4055.9 |\n"
        ))
    };
    assert_eq!(findings_of(&below("run")), []);
    assert_eq!(checks_of(&below("run"), "told-apart")[0].figure("intervals")[0]["n"], 3);
    assert_eq!(findings_of(&below("")), [], "numbers that count may be of repeats");
    assert_eq!(
        finding(
            &audit_of("| clients | tps |\n|---|---|\n| 1 | 401.5 |\n| 8 | 3987.1 |\n"),
            "one-repeat"
        )
        .line(),
        3
    );
    let spread = audit_of(
        "| fs | tps | stddev |\n|---|---|---|\n| xfs | 10904 | 31 |\n| zfs | 7530 | 28 |\n",
    );
    assert_eq!(findings_of(&spread), []);
}

#[test]
fn repeats_that_rise_are_told_with_their_odds() {
    let rows = "ext4 100 104 108 112 106.0\nxfs 90 95 97 99 95.25\n";
    let audit = audit_of(&format!("fs tps tps tps tps mean\n{rows}"));
    let f = finding(&audit, "rising-repeats");
    assert_eq!(f.lines, [2, 3]);
    close(&f.figure("rows")[0]["chance"], 2.0 / 24.0);
    close(&f.figure("chance_of_so_many"), 1.0 / 144.0);
    // One such row alone is in 1 of 12 reports.
    let audit =
        audit_of("fs tps tps tps tps mean\next4 100 104 108 112 106.0\nxfs 90 97 91 94 93.0\n");
    assert!(!speaks(&audit, "rising-repeats"));
    let steady = "ext4 100 104 98 102 101.0\nxfs 90 95 91 94 92.5\n";
    let audit = audit_of(&format!("fs tps tps tps tps mean\n{steady}"));
    assert!(checks_of(&audit, "rising-repeats").len() == 1 && !speaks(&audit, "rising-repeats"));
}

#[test]
fn rows_are_told_apart_or_not() {
    let apart = audit_of("fs tps mean\na 100 101 99 100.0\nb 200 202 198 200.0\n");
    assert_eq!(findings_of(&apart), []);
    assert_eq!(checks(&apart, "told-apart"), 2);
    let alike = audit_of("fs tps mean\na 100 110 90 100.0\nb 101 111 92 101.3\nc 20 21 22 21.0\n");
    let f = finding(&alike, "told-apart");
    assert_eq!(f.figure("rows"), serde_json::json!(["a", "b"]));
    assert_eq!(f.lines, [2, 3]);
}

/// Three runs that agree with themselves and differ a little.
pub(crate) fn clean() -> String {
    [3_600_000, 3_590_000, 3_610_000]
        .map(|n| run(n, n as f64 / 900.0, 14_400_000.0 / n as f64, ""))
        .concat()
}

#[test]
fn settings_that_give_durability_away_are_told() {
    assert_eq!(findings_of(&audit_of(&clean())), []);
    for (setting, rule, severity) in [
        ("fsync = off", "fsync-off", Serious),
        ("full_page_writes = off", "full-page-writes-off", Serious),
        ("synchronous_commit = off", "synchronous-commit-off", Warning),
        ("zfs set sync=disabled tank", "zfs-sync-disabled", Serious),
        ("mount -o rw,nobarrier /dev/sda /mnt", "barriers-off", Serious),
        ("All mounts without barriers.", "barriers-off", Serious),
        ("Write cache is:   Enabled", "write-cache", Warning),
    ] {
        let audit = audit_of(&format!("x\n{setting}\n\n{}", clean()));
        assert_eq!(findings_of(&audit), [(rule, severity)], "{setting}");
        assert_eq!(finding(&audit, rule).line(), 2, "{setting}");
    }
    for fine in [
        "fsync = on",
        "#fsync = off",
        "full_page_writes = on",
        "zfs set sync=always tank",
        "Write cache is: Disabled",
        "/dev/sda / ext3 rw,data=writeback 0 0",
        "Never mount nobarrier, and never run with barriers disabled.",
        "Is the write cache on or off?",
        "| barriers off | dangerous |",
    ] {
        assert_eq!(findings_of(&audit_of(&format!("{fine}\n\n{}", clean()))), [], "{fine}");
    }
    let protected =
        "RAID controller with BBU\nmount -o nobarrier /dev/sda /mnt\nWrite cache is: Enabled\n\n";
    let audit = audit_of(&format!("{protected}{}", clean()));
    assert_eq!(findings_of(&audit), [("barriers-off", Note)]);
    assert_eq!(checks(&audit, "write-cache"), 1);
    let varied = audit_of("fsync = on\nfsync = off\n");
    assert_eq!(findings_of(&varied), [("fsync-off", Warning)]);
    // Between two runs, it is what is compared; quoted lines are lines.
    let runs =
        [3_600_000, 32_400_000].map(|n| run(n, n as f64 / 900.0, 14_400_000.0 / n as f64, ""));
    let compared = format!(
        "{}\n```sql\nALTER SYSTEM SET synchronous_commit = off;\n```\n{}",
        runs[0], runs[1]
    );
    let quoted: String = compared.lines().map(|l| format!(">{l}  \n")).collect();
    for text in [compared, quoted] {
        let audit = audit_of(&text);
        assert_eq!(finding(&audit, "synchronous-commit-off").severity, Note);
        assert_eq!(finding(&audit, "one-repeat").figure("runs"), 2);
    }
    let zfs = audit_of("full_page_writes = off\nzfs set recordsize=8k tank\n");
    assert_eq!(findings_of(&zfs), [("full-page-writes-off", Note)]);
    // A text on storage without a figure is no report.
    assert_eq!(
        findings_of(&audit_of("mount -o rw,nobarrier /dev/sda /mnt\nWrite cache is: Enabled\n")),
        []
    );
}

#[test]
fn commits_cannot_outrun_the_flushes() {
    let probe = |rate: f64| {
        format!(
            "Compare file sync methods using one 8kB write:\n        \
             fdatasync   {rate:.3} ops/sec   {:.0} usecs/op\n\n",
            1e6 / rate
        )
    };
    let over = audit_of(&format!("{}{}", probe(100.0), run(3_600_000, 4000.0, 3.99, "")));
    let f = finding(&over, "fsync-ceiling");
    assert_eq!((f.severity, f.sure), (Serious, Likely));
    close(&f.figure("ceiling_tps"), 1600.0);
    assert_eq!(
        checks(
            &audit_of(&format!("{}{}", probe(400.0), run(3_600_000, 4000.0, 3.99, ""))),
            "fsync-ceiling"
        ),
        1
    );
    // Commits that do not wait, and loads that do not write, are not bound.
    let asynchronous = audit_of(&format!(
        "synchronous_commit = off\n{}{}",
        probe(100.0),
        run(3_600_000, 4000.0, 3.99, "")
    ));
    assert!(!speaks(&asynchronous, "fsync-ceiling"));
    let reads = run(3_600_000, 4000.0, 3.99, "").replace("TPC-B (sort of)", "select only");
    assert!(!speaks(&audit_of(&format!("{}{reads}", probe(100.0))), "fsync-ceiling"));
}

#[test]
fn fsync_rates_agree_with_their_times() {
    let line = |rate: &str, us: u32| {
        audit_of(&format!(
            "Compare file sync methods using one 8kB write:\n \
             fdatasync {rate} ops/sec {us} usecs/op\n"
        ))
    };
    assert_eq!(checks(&line("12839.525", 78), "fsync-arithmetic"), 1);
    assert_eq!(finding(&line("12839.525", 88), "fsync-arithmetic").severity, Serious);
}

#[test]
fn a_run_is_to_hold_a_checkpoint() {
    let short =
        |more: &str| format!("{more}{}", run(240_000, 4000.0, 3.99, "").replace("900 s", "60 s"));
    let f = audit_of(&short(""));
    assert_eq!(
        (finding(&f, "checkpoint-cycle").severity, finding(&f, "checkpoint-cycle").sure),
        (Warning, Likely)
    );
    assert_eq!(
        finding(&audit_of(&short("checkpoint_timeout = 2min\n")), "checkpoint-cycle").sure,
        Certain
    );
    assert_eq!(checks(&audit_of(&short("checkpoint_timeout = 30s\n")), "checkpoint-cycle"), 1);
    let reads = short("").replace("TPC-B (sort of)", "select only");
    assert!(!speaks(&audit_of(&reads), "checkpoint-cycle"));
    // A command of which no output is shown.
    assert_eq!(finding(&audit_of("pgbench -c 8 -T 60 bench\n"), "checkpoint-cycle").line(), 1);
    assert_eq!(findings_of(&audit_of("pgbench -S -c 8 -T 60 bench\n")), []);
    assert_eq!(findings_of(&audit_of("pgbench -c 8 -T 600 bench\n")), []);
}

#[test]
fn a_busy_thread_may_be_the_limit() {
    let threads = |n: u32, tps: u64| {
        audit_of(
            &run(tps * 900, tps as f64, 16000.0 / tps as f64 * 0.995, "")
                .replace("threads: 8", &format!("threads: {n}")),
        )
    };
    assert_eq!(finding(&threads(1, 20_000), "client-limit").sure, Possible);
    assert_eq!(finding(&threads(1, 8_000), "client-limit").severity, Warning);
    assert_eq!(checks(&threads(8, 20_000), "client-limit"), 1);
    assert_eq!(checks(&threads(1, 545), "client-limit"), 1);
}

#[test]
fn a_device_with_time_left_beside_busy_processors_was_not_under_test() {
    let iostat = |user: &str, idle: &str, util: &str| {
        audit_of(&format!(
            "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n          \
             {user}    0.00   13.89    2.42    0.00   {idle}\n\n\
             Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz avgqu-sz   \
             await  svctm  %util\n\
             sda               0.00     0.00    0.00    0.00     0.00     0.00     0.00     \
             0.00    0.00   0.00   0.00\n\
             sdc               0.00     7.00    1.00 5076.00    56.00 86788.00    34.21     \
             0.46    0.09   0.09  {util}\n"
        ))
    };
    let audit = iostat("60.64", "23.06", "45.20");
    let found = finding(&audit, "idle-device");
    assert_eq!((found.severity, found.sure, found.line()), (Warning, Possible, 6));
    assert_eq!(
        (&found.figure("device"), &found.figure("utilised_percent")),
        (&"sdc".into(), &45.2.into())
    );
    assert!((found.figure("cpu_percent").as_f64().unwrap() - 74.53).abs() < 1e-9);
    // The device was at its limit, or nothing was.
    assert_eq!(checks(&iostat("60.64", "23.06", "99.20"), "idle-device"), 1);
    assert_eq!(checks(&iostat("10.64", "73.06", "45.20"), "idle-device"), 1);
}

#[test]
fn a_filesystem_beside_zfs_whose_making_is_not_told_cannot_be_repeated() {
    let report = |told: &str| {
        let run = |label: &str, tps: &str| {
            format!(
                "{label}\ntransaction type: TPC-B (sort of)\nscaling factor: 100\n\
                 number of clients: 8\n\
                 number of threads: 8\nduration: 60 s\nnumber of transactions actually processed: \
                 {tps}0\n\
                 tps = {tps}.000000 (including connections establishing)\n"
            )
        };
        let (zfs, xfs) = (run("ZFS", "700"), run("XFS", "1000"));
        audit_of(&format!("zfs set recordsize=8K tank/pg\n{told}\n{zfs}{xfs}"))
    };
    let untold = report("The data lie on three disks.");
    let found = finding(&untold, "untold-layout");
    assert_eq!((found.severity, found.sure), (Warning, Likely));
    assert_eq!(found.figure("filesystem"), "xfs");
    let told = report("mkfs.xfs -d agcount=32 /dev/md0");
    assert_eq!(checks(&told, "untold-layout"), 1);
    // Without a property of ZFS nothing is shown of either.
    let neither = audit_of("ZFS\nXFS\n");
    assert!(!speaks(&neither, "untold-layout"));
}

#[test]
fn percentages_add_up() {
    let cpu = |idle: &str| {
        audit_of(&format!(
            "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n          \
             60.64    0.00   13.89    2.42    0.00   {idle}\n"
        ))
    };
    assert_eq!(checks(&cpu("23.06"), "percentages"), 1);
    assert_eq!(finding(&cpu("33.06"), "percentages").line(), 2);
    let shares = |last: &str| {
        audit_of(&format!(
            "| event | share |\n|---|---|\n| wal | 60% |\n| lock | 30% |\n| io | {last} |\n"
        ))
    };
    assert_eq!(checks(&shares("10%"), "percentages"), 1);
    assert_eq!(finding(&shares("25%"), "percentages").severity, Warning);
    // Parts may have been left out.
    assert_eq!(findings_of(&shares("5%")), []);
}
