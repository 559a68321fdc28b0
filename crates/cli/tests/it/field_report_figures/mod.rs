//! The figures on the pages of docs/field-reports/ that come from runs at the reports' size.
//!
//! Each run lies beside the pages as a small store, in docs/field-reports/runs/, as `just
//! field-report-run` keeps it. The tables on a page are made from its run again, and must stand
//! there as they are; figures in its prose are computed anew.
//! `PGDYNO_TRUTH_WRITE=1`, with `-- --test-threads=1`, writes them.

mod page_000;

use pgdyno_analysis::host_noise::BUSY;

use crate::figures_support::bars::{Row, svg};
use crate::figures_support::page::Page;
use crate::figures_support::{
    Run, Table, Treatment, assert_drawn, count, milliseconds, percent, range, ratio,
};

/// Clients of the report on group commit.
const SWEEP: [&str; 8] = ["4", "8", "16", "32", "64", "128", "256", "512"];

/// Stages of the report on a big table, in the order of the run.
pub const STAGES: [&str; 10] = [
    "select",
    "update",
    "select-after-update",
    "select-after-6-percent",
    "select-after-50-percent",
    "select-after-every-row",
    "select-after-vacuum",
    "select-after-reindex",
    "insert",
    "delete",
];

/// Clients of the run of the report on a big table.
const ROW_CLIENTS: [&str; 4] = ["1", "16", "128", "980"];

/// Means of the report on filesystems, as parts of ext2's.
const OF_EXT2: [(&str, f64); 7] = [
    ("ext2", 1.0),
    ("ext3", 0.464),
    ("ext4", 0.168),
    ("reiserfs", 0.160),
    ("xfs", 0.873),
    ("xfs-tuned", 0.913),
    ("jfs", 0.920),
];

#[test]
fn page_001_has_each_filesystem() {
    let run = Run::open("001-filesystems");
    let ext2 = run.treatment(&[("storage", "ext2")]);
    let mut table = Table::new(
        "filesystem | tps of each trial | mean, 95% CI | of ext2's (95% CI) | \
         p50, p99 in ms | flushes/s of one writer",
    );
    for treatment in run.treatments() {
        let name = treatment.factor("storage");
        if treatment.trials().is_empty() {
            let empty = std::iter::repeat_n(String::new(), 4);
            table.row([name, "not available here".to_owned()].into_iter().chain(empty));
            continue;
        }
        let of_ext2 =
            if name == "ext2" { "100%".to_owned() } else { run.compared(&treatment, &ext2) };
        table.row([
            name,
            treatment.each(),
            treatment.mean_with_interval(),
            of_ext2,
            latencies(&treatment),
            count(treatment.number("fsync_per_second")),
        ]);
    }
    run.assert_stands("001-filesystems.md", "report size", &table.text());

    let rows: Vec<Row> = run
        .treatments()
        .map(|treatment| {
            let label = treatment.factor("storage");
            let has_run = !treatment.trials().is_empty();
            let ours = has_run.then(|| match label.as_str() {
                "ext2" => (1.0, None),
                _ => run.ratio(&treatment, &ext2),
            });
            let report = OF_EXT2.iter().find(|(name, _)| *name == label).map(|(_, ratio)| *ratio);
            Row { label, report, ours }
        })
        .filter(|row| row.report.is_some() || row.ours.is_some())
        .collect();
    assert_drawn("001-filesystems.md", "001-filesystems", &svg(&rows, percent));
}

#[test]
fn page_003_has_each_stage_and_number_of_clients() {
    let run = Run::open("003-big-table");
    let all = ROW_CLIENTS;
    let mut tps = Table::new("tps | 1 client | 16 | 128 | 980");
    let mut of_first = Table::new("÷ the first SELECT | 1 client | 16 | 128 | 980");
    for stage in STAGES {
        let at = |clients| run.treatment(&[("stage", stage), ("clients", clients)]);
        let name = stage.replace('-', " ");
        tps.row(
            [name.clone()].into_iter().chain(all.map(|clients| at(clients).median_and_range())),
        );
        if stage.starts_with("select-") {
            let first = |clients| run.treatment(&[("stage", "select"), ("clients", clients)]);
            of_first.row(
                [name]
                    .into_iter()
                    .chain(all.map(|clients| run.compared(&at(clients), &first(clients)))),
            );
        }
    }
    run.assert_stands("003-big-table.md", "stages", &tps.text());
    run.assert_stands("003-big-table.md", "selects", &of_first.text());
}

#[test]
fn page_003_has_memory_and_the_disks_curves() {
    let run = Run::open("003-big-table");
    let mut backends = Table::new(
        "stage, clients | private memory of a backend | all backends' memory | \
         CPUs that backends took | CPU idle, iowait | disk busy",
    );
    for stage in ["select", "update"] {
        for clients in ROW_CLIENTS {
            let treatment = run.treatment(&[("stage", stage), ("clients", clients)]);
            backends.row([
                format!("{stage}, {clients}"),
                format!("{:.1} MB", treatment.gauge("processes backend_private") / 1e6),
                format!("{} MB", count(treatment.gauge("processes backends_pss") / 1e6)),
                ratio(treatment.rate("processes backends_cpu")),
                treatment.idle_and_waiting(),
                treatment.disk_busy(),
            ]);
        }
    }
    run.assert_stands("003-big-table.md", "backends", &backends.text());

    let mut curves = Table::new(
        "the disk, raw | sequential write | sequential read | random reads of 8 kB | \
         random writes of 8 kB",
    );
    let names = ["before", "after the trials", "after `fstrim`"];
    assert_eq!(run.probes().len(), names.len());
    for (name, probe) in names.into_iter().zip(run.probes()) {
        let number = |key: &str| probe[key].as_f64().unwrap();
        let megabytes = |key| format!("{} MB/s", count(number(key) / 1e6));
        let most = |key| format!("up to {}/s", count(number(key)));
        curves.row([
            name.to_owned(),
            megabytes("write_bytes_per_second"),
            megabytes("read_bytes_per_second"),
            most("randread_iops"),
            most("randwrite_iops"),
        ]);
    }
    run.assert_stands("003-big-table.md", "curves", &curves.text());
}

#[test]
fn page_002_has_the_sweep_over_clients() {
    let run = Run::open("002-group-commit");
    let mut table = Table::new(
        "clients | sync | per flush | idle, iowait | group | per flush | \
         group ÷ sync (95% CI) | async | idle, iowait | async ÷ sync",
    );
    for clients in SWEEP {
        let of = |commit| {
            run.treatment(&[("workload", "group-commit"), ("clients", clients), ("commit", commit)])
        };
        let (sync, group, without) = (of("sync"), of("group"), of("async"));
        table.row([
            clients.to_owned(),
            sync.median_and_range(),
            ratio(sync.number("commits_per_flush")),
            sync.idle_and_waiting(),
            group.median_and_range(),
            ratio(group.number("commits_per_flush")),
            run.compared(&group, &sync),
            without.median_and_range(),
            without.idle_and_waiting(),
            ratio(without.median() / sync.median()),
        ]);
    }
    let load = format!(
        "\nThe load average over a minute was {:.1} when the run began.\n",
        run.load_average()
    );
    run.assert_stands("002-group-commit.md", "sweep", &(table.text() + &load));

    let mut forms = Table::new(
        "clients | block: sync | group | async | function: sync | group | async | \
         block ÷ bare (sync; async) | function ÷ bare (sync; async)",
    );
    for clients in SWEEP {
        let median = |workload, commit| {
            run.treatment(&[("workload", workload), ("clients", clients), ("commit", commit)])
                .median()
        };
        let of_bare = |workload| {
            let of = |commit| ratio(median(workload, commit) / median("group-commit", commit));
            format!("{}; {}", of("sync"), of("async"))
        };
        let all = ["group-commit-block", "group-commit-function"]
            .into_iter()
            .flat_map(|workload| ["sync", "group", "async"].map(|c| count(median(workload, c))));
        forms.row(
            [clients.to_owned()]
                .into_iter()
                .chain(all)
                .chain([of_bare("group-commit-block"), of_bare("group-commit-function")]),
        );
    }
    run.assert_stands("002-group-commit.md", "forms", &forms.text());
}

#[test]
fn page_002_has_what_asynchronous_commits_lost() {
    let run = Run::open("002-commit-loss");
    let mut table = Table::new(
        " | tps, mean and 95% CI | power cuts | acknowledged | lost | \
         oldest lost: median of the rounds | of all | allowed | verdict",
    );
    let age = |treatment: &Treatment<'_>, key: &str| {
        let age_ms = treatment.crash()["faults"][0][key].as_f64();
        age_ms.map_or("none".to_owned(), |ms| format!("{ms:.0} ms"))
    };
    for (commit, allowed) in [("sync", "0 ms"), ("async", "600 ms"), ("async-10ms", "30 ms")] {
        let treatment = run.treatment(&[("commit", commit)]);
        let fault = &treatment.crash()["faults"][0];
        let number = |key: &str| count(fault[key].as_f64().unwrap());
        table.row([
            commit.to_owned(),
            treatment.mean_with_interval(),
            number("rounds"),
            number("acknowledged"),
            number("lost"),
            age(&treatment, "median_lost_ms"),
            age(&treatment, "oldest_lost_ms"),
            allowed.to_owned(),
            fault["verdict"].as_str().unwrap().to_owned(),
        ]);
    }
    run.assert_stands("002-group-commit.md", "loss run", &Run::table(&["002-commit-loss"]));
    run.assert_stands("002-group-commit.md", "loss", &table.text());

    let [async_200, async_10] =
        ["async", "async-10ms"].map(|commit| run.treatment(&[("commit", commit)]));
    let (median, oldest) = ("median_lost_ms", "oldest_lost_ms");
    let power = &async_200.crash()["faults"][0]["power"];
    let (of_best, [from, to]) = async_10.of_best();
    Page::open("002-group-commit.md").assert_has(&[
        format!("was {} old in the median of ten power cuts", age(&async_200, median)),
        format!("and {} in the worst", age(&async_200, oldest)),
        format!("was flushed {} times", count(power["flushes"].as_f64().unwrap())),
        format!("those of {} checkpoints", power["checkpoints"]),
        format!("it was {} and {}", age(&async_10, median), age(&async_10, oldest)),
        format!(
            "for {} of the tps (95% CI {} to {})",
            percent(of_best),
            percent(from),
            percent(to)
        ),
    ]);
}

#[test]
fn page_002_has_the_sustained_load() {
    let run = Run::open("002-group-commit-sustained");
    let mut table = Table::new(
        "16 clients | tps of each minute | mean | rows a day, were it to last, in billions | \
         checkpoints by time; by WAL | CPU idle, iowait | disk busy",
    );
    for treatment in run.treatments() {
        let minutes = treatment.minutes();
        let mean = treatment.median();
        let checkpoints = ["checkpoints_timed", "checkpoints_req"]
            .map(|of| count(treatment.gained(&format!("pg_stat_bgwriter {of}"))));
        table.row([
            treatment.factor("commit"),
            minutes.into_iter().map(count).collect::<Vec<_>>().join(" · "),
            count(mean),
            ratio(mean * 86_400.0 / 1e9),
            checkpoints.join("; "),
            treatment.idle_and_waiting(),
            treatment.disk_busy(),
        ]);
    }
    run.assert_stands("002-group-commit.md", "sustained", &table.text());
}

#[test]
fn page_004_has_both_filesystems_and_their_statements() {
    let run = Run::open("004-zfs-xfs");
    let storages = ["xfs", "zfs"].map(|storage| run.treatment(&[("storage", storage)]));
    let [xfs, zfs] = &storages;
    let mut table = Table::new(
        "storage | tps of each trial | mean, 95% CI | of XFS's (95% CI) | \
         latency: mean ± standard deviation; p50, p99 in ms | CPU idle, iowait | disk busy",
    );
    for treatment in &storages {
        let of = |key| milliseconds(treatment.latency(key));
        let name = treatment.factor("storage");
        let of_xfs = if name == "xfs" { "100%".to_owned() } else { run.compared(zfs, xfs) };
        table.row([
            name,
            treatment.each(),
            treatment.mean_with_interval(),
            of_xfs,
            format!("{} ± {}; {}", of("mean"), of("stddev"), latencies(treatment)),
            treatment.idle_and_waiting(),
            treatment.disk_busy(),
        ]);
    }
    run.assert_stands("004-zfs-xfs.md", "run", &Run::table(&["004-zfs-xfs"]));
    run.assert_stands("004-zfs-xfs.md", "report size", &table.text());

    let mut waits = Table::new("backends that wait, of 48 | XFS | ZFS");
    for event in ["IO:DataFileWrite", "IO:DataFileRead", "Lock:transactionid"] {
        let each = storages.each_ref().map(|treatment| ratio(treatment.waiting(event)));
        waits.row([format!("`{event}`")].into_iter().chain(each));
    }
    run.assert_stands("004-zfs-xfs.md", "waits", &waits.text());

    let mut statements =
        Table::new("statement, mean ± standard deviation in ms | XFS | ZFS | of the gap");
    let (ours, theirs) = (xfs.statements(), zfs.statements());
    let sum = |all: &[(&str, f64, f64)]| all.iter().map(|(_, mean, _)| mean).sum::<f64>();
    let gap = sum(&theirs) - sum(&ours);
    for ((text, mean, deviation), (same, zfs_mean, zfs_deviation)) in ours.into_iter().zip(theirs) {
        assert_eq!(text, same);
        let both =
            |mean, deviation| format!("{} ± {}", milliseconds(mean), milliseconds(deviation));
        let words: Vec<&str> = text.split_whitespace().take(2).collect();
        statements.row([
            words.join(" "),
            both(mean, deviation),
            both(zfs_mean, zfs_deviation),
            percent((zfs_mean - mean) / gap),
        ]);
    }
    run.assert_stands("004-zfs-xfs.md", "statements", &statements.text());

    let (of_xfs, Some([from, to])) = run.ratio(zfs, xfs) else { panic!("no interval") };
    let slower: Vec<f64> =
        xfs.statements().iter().zip(zfs.statements()).map(|(a, b)| b.1 / a.1 - 1.0).collect();
    // All but UPDATE pgbench_accounts.
    let others: Vec<f64> =
        slower.iter().enumerate().filter(|(i, _)| *i != 1).map(|(_, s)| *s).collect();
    let [least, most] = range(&others);
    let spread =
        |treatment: &Treatment<'_>| ratio(treatment.latency("stddev") / treatment.latency("mean"));
    let (a, b) = (&xfs.statements()[1], &zfs.statements()[1]);
    let claims = [
        format!("{} of XFS's tps (95% CI {} to {})", percent(of_xfs), percent(from), percent(to)),
        format!("find one of {} in 80%", percent(run.detectable(zfs, xfs))),
        format!("has the largest part of the gap, {} here", percent((b.1 - a.1) / gap)),
        format!("of {} times their mean, XFS's of {} times", spread(zfs), spread(xfs)),
        format!("ZFS's p99 is {:.1} times XFS's", zfs.latency("p99") / xfs.latency("p99")),
        format!("too*, by {} to {}.", percent(least), percent(most)),
        format!(
            "{} a second by one writer against {}",
            count(run.flushes("zfs")),
            count(run.flushes("xfs"))
        ),
    ];
    // Room and length of the report's size, the pool's format, and the load.
    let given = ["0.7", "0.26", "300", "60", "2", "3", "23", "150", "80"];
    Page::open("004-zfs-xfs.md").assert_computed(&claims, &given);

    let of_xfs = |label: &str, report, ours: (f64, _)| Row {
        label: label.into(),
        report: Some(report),
        ours: Some(ours),
    };
    let mean = |treatment: &Treatment<'_>| treatment.latency("mean");
    let update = |treatment: &Treatment<'_>| {
        let all = treatment.statements();
        all.iter().find(|(text, ..)| text.starts_with("UPDATE pgbench_accounts")).unwrap().1
    };
    let rows = [
        of_xfs("tps", 7_530.6 / 10_904.3, run.ratio(zfs, xfs)),
        of_xfs("latency", 6.370 / 4.400, (mean(zfs) / mean(xfs), None)),
        of_xfs("UPDATE pgbench_accounts", 3.357 / 1.522, (update(zfs) / update(xfs), None)),
    ];
    assert_drawn("004-zfs-xfs.md", "004-zfs-xfs", &svg(&rows, percent));
}

#[test]
fn trials_differ_by_5_to_12_percent_and_recipes_are_planned_for_10() {
    let runs = [
        "000-ssd-acceptance",
        "001-filesystems",
        "002-commit-loss",
        "002-group-commit",
        "004-zfs-xfs",
    ];
    let noise = runs.map(|run| Run::open(run).noise());
    assert!(noise.iter().all(|noise| (0.045..0.125).contains(noise)), "{noise:?}");
    let quieter = noise.iter().filter(|noise| **noise < BUSY).count();
    assert!((1..5).contains(&quieter), "{BUSY} lies among them: {noise:?}");
}

/// Median and 99th percentile of the latency, in milliseconds.
fn latencies(treatment: &Treatment<'_>) -> String {
    let of = |percentile| milliseconds(treatment.latency(percentile));
    format!("{}, {}", of("p50"), of("p99"))
}
