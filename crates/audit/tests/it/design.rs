//! Rules on how runs were made: each where it must speak, and where it must not.

use pgdyno_audit::Confidence::{Likely, Possible};
use pgdyno_audit::Severity::{Serious, Warning};

use super::rules::{clean, run};
use super::{Figures as _, audit_of, checks, checks_of, close, finding, findings_of};

fn speaks(text: &str, rule: &str) -> bool {
    super::speaks(&audit_of(text), rule)
}

#[test]
fn tpc_b_needs_a_branch_for_each_client() {
    let scaled =
        |scale: u32| clean().replace("scaling factor: 100", &format!("scaling factor: {scale}"));
    let audit = audit_of(&scaled(8));
    assert_eq!(findings_of(&audit), [("scale-below-clients", Warning)]);
    assert_eq!(
        (
            finding(&audit, "scale-below-clients").line(),
            finding(&audit, "scale-below-clients").figure("runs").as_u64()
        ),
        (2, Some(3))
    );
    assert_eq!(checks(&audit_of(&scaled(16)), "scale-below-clients"), 1);
    for kind in ["<builtin: select only>", "<builtin: simple update>", "mine.sql"] {
        assert!(
            !speaks(&scaled(8).replace("<builtin: TPC-B (sort of)>", kind), "scale-below-clients"),
            "{kind}"
        );
    }
}

#[test]
fn runs_that_follow_each_other_differ_in_one_thing() {
    let other =
        |from: &str, to: &str| format!("## a\n{}\n## b\n{}", clean(), clean().replace(from, to));
    let longer = other("duration: 900 s", "duration: 90 s");
    let f = audit_of(&longer);
    let f = f.findings.iter().find(|f| f.rule == "unequal-runs").unwrap();
    assert_eq!((f.severity, f.sure), (Warning, Possible));
    assert!(
        !speaks(&other("number of clients: 16", "number of clients: 32"), "unequal-runs"),
        "clients are what is varied"
    );
    let both = other("number of clients: 16", "number of clients: 32").replace(
        "factor: 100\nquery mode: prepared\nnumber of clients: 32",
        "factor: 500\nquery mode: prepared\nnumber of clients: 32",
    );
    assert!(speaks(&both, "unequal-runs"));
    assert!(!speaks(
        &other(
            "<builtin: TPC-B (sort of)>\nscaling factor: 100",
            "<builtin: select only>\nscaling factor: 500"
        ),
        "unequal-runs"
    ));
    assert_eq!(checks(&audit_of(&clean()), "unequal-runs"), 1);
    // A warm-up is as long as it likes.
    let warm = clean()
        .replace("900 s", "60 s")
        .lines()
        .take(10)
        .fold(String::new(), |text, line| text + line + "\n");
    assert!(!speaks(&format!("## Warm-up\n{warm}\n## Run 1\n{}", clean()), "unequal-runs"));
}

#[test]
fn reads_from_memory_compare_no_filesystems() {
    let reads = clean().replace("TPC-B (sort of)", "select only");
    let report = |memory: &str, scale: u32, names: [&str; 2]| {
        let reads = reads.replace("scaling factor: 100", &format!("scaling factor: {scale}"));
        format!("{memory}\n\n## {}\n\n{reads}\n## {}\n\n{reads}", names[0], names[1])
    };
    let audit = audit_of(&report("shared_buffers = 16GB", 100, ["ext4", "xfs"]));
    let f = finding(&audit, "cached-read-only");
    assert_eq!((f.severity, f.sure), (Warning, Likely));
    close(&f.figure("data_mb"), 1600.0);
    assert_eq!(
        checks(
            &audit_of(&report("shared_buffers = 16GB", 2000, ["ext4", "xfs"])),
            "cached-read-only"
        ),
        1
    );
    for text in [
        report("shared_buffers = 16GB", 100, ["before", "after"]),
        report("16 GB RAM, a fast one", 100, ["ext4", "xfs"]),
        report("shared_buffers = 16GB", 100, ["ext4", "xfs"])
            .replace("select only", "TPC-B (sort of)"),
    ] {
        assert!(!speaks(&text, "cached-read-only"), "{text}");
    }
}

/// A run with progress lines of these tps, one every `step` seconds.
fn progress(step: u32, tps: &[f64]) -> String {
    let lines: String = (1..)
        .zip(tps)
        .map(|(i, tps)| {
            format!(
                "progress: {}.0 s, {tps:.1} tps, lat 4.000 ms stddev 1.000, 0 failed\n",
                i * step
            )
        })
        .collect();
    lines + &run(3_600_000, 4000.0, 3.999, "")
}

#[test]
fn progress_that_collapses_climbs_or_swings_is_told() {
    let lines =
        |tps: &[f64]| finding(&audit_of(&progress(10, tps)), "unsteady-progress").lines.clone();
    assert_eq!(lines(&[4000.0, 4100.0, 900.0, 4050.0, 4000.0]), [3], "one collapsed");
    assert_eq!(lines(&[7060.0, 6420.0, 5040.0]).len(), 3, "they fall");
    assert_eq!(lines(&[3000.0, 3500.0, 4200.0]).len(), 3, "they rise");
    assert_eq!(lines(&[4440.0, 2950.0, 4780.0]).len(), 3, "they swing");
    for steady in
        [&[4000.0, 4100.0, 3900.0, 4050.0][..], &[4000.0, 3900.0, 3800.0], &[4000.0, 900.0]]
    {
        assert!(!speaks(&progress(10, steady), "unsteady-progress"), "{steady:?}");
    }
    // Single seconds vary; so do a few transactions.
    let seconds = [
        4000.0, 4100.0, 900.0, 4050.0, 4000.0, 4020.0, 4060.0, 4000.0, 3900.0, 4000.0, 4000.0,
        4000.0, 4010.0, 4000.0, 4000.0,
    ];
    assert!(!speaks(&progress(1, &seconds), "unsteady-progress"));
    assert!(!speaks(&progress(10, &[4.0, 1.0, 6.0, 3.0]), "unsteady-progress"));
}

#[test]
fn many_failures_are_told() {
    let with = |failed: u64| {
        let line = format!("number of failed transactions: {failed} (1.000%)\nlatency average");
        audit_of(&clean().replace("latency average", &line))
    };
    assert_eq!(
        with(400_000).findings.iter().filter(|f| f.rule == "failed-transactions").count(),
        3
    );
    assert!(with(4_000).findings.iter().all(|f| f.rule != "failed-transactions"));
    let abort = |clients: u32| {
        (0..clients)
            .map(|c| {
                format!("pgbench: error: client {c} aborted in command 5 (SQL) of script 0; lost\n")
            })
            .collect::<String>()
    };
    let audit = audit_of(&format!("{}{}", abort(10), run(3_600_000, 4000.0, 3.999, "")));
    assert_eq!(finding(&audit, "failed-transactions").lines.len(), 10);
    close(&finding(&audit, "failed-transactions").figure("percent"), 62.5);
}

/// sysbench 1.0 with 16 threads.
fn sysbench(per_second: &str, sum: &str, errors: u32) -> String {
    format!(
        "Number of threads: 16\n\nSQL statistics:\n    queries performed:\n        \
         read:                            61096\n        \
         write:                           12922\n        other:                           \
         9695\n        total:                           83713\n    \
         transactions:                        3125   ({per_second} per sec.)\n    \
         queries:                             83713  (139.28 per sec.)\n    \
         ignored errors:                      {errors}   (0.00 per sec.)\n\n\
         General statistics:\n    total time:                          601.0460s\n    \
         total number of events:              3125\n\nLatency (ms):\n         \
         min:                                   10.53\n         \
         avg:                                 3076.48\n         \
         max:                                19170.98\n         \
         sum:                              {sum}\n\n\
         Threads fairness:\n    events (avg/stddev):           195.3125/8.45\n    \
         execution time (avg/stddev):   600.8750/0.02\n"
    )
}

#[test]
fn sysbench_agrees_with_itself() {
    let right = audit_of(&sysbench("5.20", "9614000.00", 0));
    assert_eq!(right.recognised.sysbench.len(), 1);
    assert_eq!(findings_of(&right), [("one-repeat", Warning)], "{:#?}", right.findings);
    assert_eq!(checks_of(&right, "sysbench-arithmetic")[0].figure("figures"), 6);
    let wrong = audit_of(&sysbench("52.00", "9614000.00", 0));
    assert_eq!(finding(&wrong, "sysbench-arithmetic").severity, Serious);
    close(&finding(&wrong, "sysbench-arithmetic").figure("computed"), 5.2);
    // Both sums of latencies speak against it.
    assert_eq!(
        audit_of(&sysbench("5.20", "5000000.00", 0))
            .findings
            .iter()
            .filter(|f| f.rule == "sysbench-arithmetic")
            .count(),
        2
    );
    assert_eq!(
        finding(&audit_of(&sysbench("5.20", "9614000.00", 1239)), "failed-transactions").severity,
        Warning
    );
    let short = sysbench("52.00", "9614000.00", 0).replace("601.0460s", "60.1046s");
    assert_eq!(finding(&audit_of(&short), "checkpoint-cycle").sure, Likely);
    // Three in a row are repeats.
    let three = ["5.20", "5.20", "5.20"].map(|r| sysbench(r, "9614000.00", 0)).join("\n");
    let three = three.replacen("3125   (5.20", "3131   (5.21", 1);
    assert_eq!(audit_of(&three).recognised.sysbench.len(), 3);
    assert!(!speaks(&three, "one-repeat"));
}

#[test]
fn what_zfs_is_told_and_what_it_shows_agree() {
    let report = |set: &str, shown: &str| {
        audit_of(&format!(
            "zfs set sync={set} tank/pg\n\nNAME PROPERTY VALUE SOURCE\n\
             tank/pg logbias latency default\ntank/pg sync {shown} local\n\n{}",
            clean()
        ))
    };
    assert_eq!(findings_of(&report("always", "always")), []);
    assert_eq!(finding(&report("always", "standard"), "property-contradiction").severity, Warning);
    let audit = report("standard", "disabled");
    let f = finding(&audit, "property-contradiction");
    assert_eq!((f.severity, f.sure, f.lines.as_slice()), (Serious, Likely, &[5, 1][..]));
    // What a parent is told holds below it, and another dataset is another.
    let text = |dataset: &str| {
        format!(
            "zfs set sync=always {dataset}\n\nNAME PROPERTY VALUE SOURCE\n\
             tank/pg sync standard default\n\n{}",
            clean()
        )
    };
    assert!(
        speaks(&text("tank"), "property-contradiction")
            && !speaks(&text("tank/other"), "property-contradiction")
    );
}

#[test]
fn what_is_asked_for_and_listed_otherwise_is_told_of_any_property() {
    let after = |text: &str| format!("{text}\n\n{}", clean());
    let zfs = |asked: &str, row: &str| {
        after(&format!("{asked}\n\nNAME PROPERTY VALUE SOURCE\ntank/pg {row}\n"))
    };
    let mounted = "/dev/sdb1 on /data type ext4 (rw,relatime,data=ordered)";
    let show = "SHOW wal_sync_method;\nwal_sync_method\n-----------------\nfdatasync\n(1 row)";
    let rule = "property-contradiction";
    for (text, severity) in [
        (zfs("recordsize = 8K", "recordsize 128K default"), Warning),
        (zfs("zfs set compression=lz4 tank", "compression off default"), Warning),
        (zfs("ashift = 13 (blocks of 8 kB)", "ashift 12 local"), Warning),
        (after(&format!("mount -o data=writeback /dev/sdb1 /data\n\n{mounted}")), Warning),
        (after(&format!("wal_sync_method = open_datasync\n\n{show}")), Warning),
    ] {
        assert_eq!(finding(&audit_of(&text), rule).severity, severity, "{text}");
    }
    let first = show.replace("fdatasync", "open_datasync");
    for text in [
        // Listed as asked for, and changed later.
        after(&format!("wal_sync_method = open_datasync\n\n{first}\n\nNow the other.\n\n{show}")),
        // Equal, in another spelling.
        zfs("recordsize = 8192", "recordsize 8K local"),
        zfs("zfs set atime=off tank", "atime off inherited from tank"),
        // The dataset's own value wins over its parent's.
        zfs("zfs set compression=lz4 tank", "compression off local"),
        // Varied: one of the values is listed.
        zfs("zfs set sync=always tank\nzfs set sync=standard tank", "sync standard default"),
        // A question, and another device.
        zfs("Is sync=always better?", "sync standard default"),
        after(&format!("mount -o data=writeback /dev/sdc1 /data\n\n{mounted}")),
        after(&format!("wal_sync_method = fdatasync\n\n{show}")),
        // Set after it was shown.
        after(&format!("{show}\n\nwal_sync_method = open_datasync")),
    ] {
        assert!(!speaks(&text, rule), "{text}");
    }
}

#[test]
fn logbias_is_told() {
    for set in [
        "zfs set logbias=throughput tank",
        "zfs create -o recordsize=8k -o logbias=throughput tank/pg",
        "sudo zpool create -O logbias=throughput tank sda",
    ] {
        let audit = audit_of(&format!("{set}\n\n{}", clean()));
        assert_eq!(
            (findings_of(&audit), finding(&audit, "zfs-logbias").line()),
            (vec![("zfs-logbias", Warning)], 1),
            "{set}"
        );
    }
    for fine in [
        "zfs set logbias=latency tank",
        "zpool create -o ashift=12 tank sda",
        "Is logbias=throughput better?",
    ] {
        assert_eq!(findings_of(&audit_of(&format!("{fine}\n\n{}", clean()))), [], "{fine}");
    }
}
