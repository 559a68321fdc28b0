//! Whole reports: the field reports behind this project, reduced to figures and tool output, and
//! pgbench's output of every version.

use pgdyno_audit::Confidence::{Likely, Possible};
use pgdyno_audit::Severity::{Note, Serious, Warning};
use pgdyno_audit::WhyNot;
use serde_json::Value;

use super::{Figures as _, checks, checks_of, close, finding, findings_of, fixture};

#[test]
fn filesystems_are_recomputed_and_what_four_repeats_cannot_show_is_said() {
    let audit = fixture("filesystems.txt");
    let ratios = checks_of(&audit, "ratios");
    assert_eq!(ratios[0].lines.len(), 6);
    close(&ratios[0].figure("ext3"), 46.361);
    close(&ratios[0].figure("jfs"), 91.970);
    assert_eq!(checks_of(&audit, "means")[0].lines.len(), 7);

    let alike = finding(&audit, "told-apart");
    assert_eq!(
        alike.figure("rows"),
        serde_json::json!(["ext2", "xfs-default", "xfs-optimized", "jfs"])
    );
    assert_eq!((alike.severity, alike.line()), (Warning, 15));
    assert_eq!(alike.figure("highest"), Value::Null);
    assert_eq!(alike.figure("others"), serde_json::json!([]));

    let singles: Vec<_> = audit.findings.iter().filter(|f| f.rule == "one-repeat").collect();
    assert_eq!(singles[0].figure("equal_values"), serde_json::json!([101.0, 101.0]));
    assert_eq!((singles[0].quoted.as_str(), singles[0].line()), ("reiserfs 101 101.00 15.98", 18));

    let rising = finding(&audit, "rising-repeats");
    assert_eq!((rising.lines.as_slice(), rising.sure), (&[15, 19, 21][..], Likely));
    assert_eq!(finding(&audit, "barriers-off").lines, [3, 7]);
    assert!(audit.is_serious());
}

#[test]
fn a_ratio_in_prose_is_not_checked_and_the_gap_has_its_statement() {
    let audit = fixture("zfs-xfs.txt");
    let claim = audit.not_understood.iter().find(|line| line.line == 3).unwrap();
    assert!(claim.quoted.contains("75%") && claim.why == WhyNot::Percentage, "{claim:?}");
    let gap = finding(&audit, "latency-gap");
    close(&gap.figure("share_percent"), 93.17);
    assert!(gap.figure("statement").as_str().unwrap().starts_with("UPDATE pgbench_accounts"));
    close(&finding(&audit, "one-repeat").figure("ratio"), 0.690_615);
    for rule in ["transactions", "littles-law", "statements", "client-limit"] {
        assert_eq!(checks_of(&audit, rule).len(), 2, "{rule}");
    }
    assert_eq!(checks_of(&audit, "checkpoint-cycle")[0].lines.len(), 2);
    assert_eq!(finding(&audit, "synchronous-commit-off").severity, Warning);
    assert_eq!(finding(&audit, "barriers-off").severity, Serious);
    // sync is set at the top and shown otherwise at the end.
    assert_eq!(finding(&audit, "property-contradiction").lines, [76, 4]);
    assert_eq!(finding(&audit, "zfs-logbias").line(), 75);
    // Three devices below ZFS, and nothing is said of what lies below XFS.
    assert_eq!(finding(&audit, "untold-layout").figure("filesystem"), "xfs");
    assert_eq!(audit.findings.len(), 7);
}

#[test]
fn a_cache_experiment_is_consistent_and_one_trial_each() {
    let audit = fixture("ssd-acceptance.txt");
    assert_eq!(
        findings_of(&audit),
        [("write-cache", Warning), ("one-repeat", Warning), ("idle-device", Warning),]
    );
    // "util below 100%" says nothing of a disk that waited for processors.
    close(&finding(&audit, "idle-device").figure("utilised_percent"), 45.2);
    close(&finding(&audit, "idle-device").figure("cpu_percent"), 74.53);
    close(&finding(&audit, "one-repeat").figure("ratio"), 0.957_742);
    // wal_sync_method says which of the rates it is.
    let ceiling = checks_of(&audit, "fsync-ceiling")[0];
    close(&ceiling.figure("fsync_per_second"), 11309.527);
    close(&checks_of(&audit, "littles-law")[0].figure("clients_at_work"), 15.9778);
    assert_eq!(checks(&audit, "percentages"), 1);
    assert_eq!(audit.recognised.fsync.len(), 16);
}

#[test]
fn scenarios_that_vary_a_setting_are_no_slip() {
    let audit = fixture("group-commit.txt");
    assert_eq!(finding(&audit, "synchronous-commit-off").severity, Note);
    assert_eq!(finding(&audit, "checkpoint-cycle").sure, Possible);
    assert_eq!(finding(&audit, "write-cache").severity, Warning);
    assert_eq!(audit.findings.len(), 3);
    assert!(!audit.is_serious());
}

#[test]
fn a_report_without_figures_is_said_to_hold_none() {
    let audit = fixture("billion-rows.txt");
    assert!(
        audit.findings.is_empty() && audit.checked.is_empty() && !audit.recognised.has_figures()
    );
}

#[test]
fn a_clean_report_has_no_finding() {
    let audit = fixture("clean.md");
    assert_eq!(findings_of(&audit), [], "{:#?}", audit.findings);
    for rule in [
        "transactions",
        "littles-law",
        "means",
        "ratios",
        "told-apart",
        "checkpoint-cycle",
        "client-limit",
        "fsync-off",
        "synchronous-commit-off",
    ] {
        assert!(!checks_of(&audit, rule).is_empty(), "{rule} was not checked");
    }
    assert_eq!(audit.not_understood, []);
    assert_eq!(audit.recognised.runs.len(), 6);
}

#[test]
fn the_output_of_every_version_is_read_and_agrees_with_itself() {
    // (fixture, clients, threads, transactions, tps as printed without connecting, statements)
    for (name, clients, threads, transactions, statements) in [
        ("8.4", 16.0, None, 64000.0, 0),
        ("9.1", 16.0, Some(8.0), 612_345.0, 7),
        ("9.4", 32.0, Some(4.0), 1_234_567.0, 0),
        ("9.5", 8.0, Some(2.0), 400_000.0, 0),
        ("9.6", 8.0, Some(8.0), 403_579.0, 0),
        ("10", 64.0, Some(16.0), 3_456_789.0, 7),
        ("13", 64.0, Some(16.0), 3_456_789.0, 7),
        ("14", 64.0, Some(16.0), 3_456_789.0, 7),
        ("16", 64.0, Some(16.0), 3_456_789.0, 7),
        ("17", 64.0, Some(16.0), 3_456_789.0, 7),
        ("18", 8.0, Some(8.0), 403_579.0, 0),
    ] {
        let audit = fixture(&format!("pgbench-{name}.txt"));
        let [run] = audit.recognised.runs.as_slice() else {
            panic!("{name}: {:?}", audit.recognised.runs)
        };
        let value = |f: Option<pgdyno_audit::Figure>| f.map(|f| f.value);
        assert_eq!(value(run.clients), Some(clients), "{name}");
        assert_eq!(value(run.threads), threads, "{name}");
        assert_eq!(value(run.transactions), Some(transactions), "{name}");
        assert_eq!(run.statements.len(), statements, "{name}");
        assert_eq!(
            run.version.is_some(),
            name.parse::<f64>().unwrap() >= 14.0 && !name.contains('.'),
            "{name}"
        );
        // One run of each, and the counted ones are short: no more is to be said.
        let rules: Vec<_> =
            audit.findings.iter().map(|f| f.rule).filter(|r| *r != "checkpoint-cycle").collect();
        assert_eq!(rules, ["one-repeat"], "{name}: {:#?}", audit.findings);
        assert!(!checks_of(&audit, "transactions").is_empty(), "{name}");
        assert_eq!(audit.not_understood, [], "{name}");
        if matches!(name, "9.6" | "18") {
            assert_eq!(run.scripts.len(), 2, "{name}");
            assert_eq!(
                (run.scripts[0].statements.len(), run.scripts[1].statements.len()),
                (7, 1),
                "{name}"
            );
            assert!(run.scripts.iter().all(|s| s.tps.is_some() && s.percent.is_some()), "{name}");
            assert!(checks_of(&audit, "scripts").len() >= 3, "{name}");
            assert_eq!(checks_of(&audit, "statements").len(), 2, "{name}");
        }
        assert_eq!(run.progress.len(), if matches!(name, "9.4" | "18") { 3 } else { 0 }, "{name}");
    }
}

#[test]
fn progress_without_its_report_is_kept_and_nothing_is_concluded_from_it() {
    let audit = super::audit_of(
        "progress: 5.0 s, 4123.1 tps, lat 3.801 ms stddev 3.299\n\
         progress: 10.0 s, 4100.0 tps, lat 3.9 ms stddev 3.1\n",
    );
    assert_eq!(audit.recognised.summary(), "1 pgbench report, 2 progress lines");
    assert!(
        audit.recognised.has_figures()
            && audit.findings.is_empty()
            && audit.not_understood.is_empty()
    );
}

#[test]
fn what_the_installed_pgbench_and_pgdyno_printed_agrees_with_itself() {
    for (name, runs) in [
        ("pgbench-15-repeats.txt", 3),
        ("pgbench-15-scripts.txt", 1),
        ("pgbench-15-rate.txt", 1),
        ("pgbench-15-reconnect.txt", 1),
        ("pgbench-15-counted.txt", 1),
        ("pgdyno-repeats.txt", 3),
        ("pgdyno-scripts.txt", 1),
    ] {
        let audit = fixture(name);
        assert_eq!(audit.recognised.runs.len(), runs, "{name}");
        // They are short and small, and some are single; nothing else.
        let known = ["checkpoint-cycle", "one-repeat", "scale-below-clients"];
        let others: Vec<_> = audit.findings.iter().filter(|f| !known.contains(&f.rule)).collect();
        assert!(others.is_empty(), "{name}: {others:#?}");
        assert_eq!(audit.findings.iter().any(|f| f.rule == "one-repeat"), runs == 1, "{name}");
        assert_eq!(audit.not_understood, [], "{name}");
    }
}

#[test]
fn tables_are_read_in_html_and_in_german() {
    let audit = fixture("filesystems.html");
    assert_eq!(checks_of(&audit, "ratios")[0].lines.len(), 4);
    assert_eq!(checks_of(&audit, "means")[0].lines.len(), 5);
    let single = audit.findings.iter().find(|f| f.figure("row") == "reiserfs").unwrap();
    assert_eq!((single.rule, single.line()), ("one-repeat", 16));
    // The figure of a cell has its own line.
    assert_eq!(audit.recognised.tables[0].rows[0].mean.unwrap().line, 8);
    assert_eq!(audit.recognised.runs[0].tps_excluding.unwrap().line, 26);

    let german = fixture("dateisysteme.md");
    let table = &german.recognised.tables[0];
    assert_eq!(table.rows[0].repeats[0].value, 12839.5);
    assert_eq!(
        table.rows[2].repeats[0].value, 9012.0,
        "the comma elsewhere tells what the point is"
    );
    assert_eq!(checks_of(&german, "means")[0].lines.len(), 3);
    assert_eq!(checks_of(&german, "ratios")[0].lines.len(), 2);
}
