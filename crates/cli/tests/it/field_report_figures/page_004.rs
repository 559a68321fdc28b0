//! The page on ZFS and XFS.

use super::latencies;
use crate::figures_support::bars::{Row, svg};
use crate::figures_support::page::Page;
use crate::figures_support::{
    Run, Table, Treatment, assert_drawn, count, milliseconds, percent, range, ratio,
};

const PAGE: &str = "004-zfs-xfs.md";

/// The statement with the largest part of the gap.
const LARGEST: &str = "UPDATE pgbench_accounts";

/// The two storages, XFS first.
fn storages(run: &Run) -> [Treatment<'_>; 2] {
    ["xfs", "zfs"].map(|storage| run.treatment(&[("storage", storage)]))
}

#[test]
fn page_004_has_both_filesystems() {
    let run = Run::open("004-zfs-xfs");
    let storages = storages(run);
    let [xfs, _] = &storages;
    let mut table = Table::new(
        "storage | tps of each trial | mean, 95% CI | of XFS's (95% CI) | \
         latency: mean ± standard deviation; p50, p99 in ms | CPU idle, iowait | disk busy",
    );
    for treatment in &storages {
        let of = |key| milliseconds(treatment.latency(key));
        table.row([
            treatment.factor("storage"),
            treatment.each(),
            treatment.mean_with_interval(),
            run.compared(treatment, xfs),
            format!("{} ± {}; {}", of("mean"), of("stddev"), latencies(treatment)),
            treatment.idle_and_waiting(),
            treatment.disk_busy(),
        ]);
    }
    run.assert_stands(PAGE, "run", &Run::table(&["004-zfs-xfs"]));
    run.assert_stands(PAGE, "report size", &table.text());

    let mut waits = Table::new("backends that wait, of 48 | XFS | ZFS");
    for event in ["IO:DataFileWrite", "IO:DataFileRead", "Lock:transactionid"] {
        let each = storages.each_ref().map(|treatment| ratio(treatment.waiting(event)));
        waits.row([format!("`{event}`")].into_iter().chain(each));
    }
    run.assert_stands(PAGE, "waits", &waits.text());
}

#[test]
fn page_004_has_each_statement() {
    let run = Run::open("004-zfs-xfs");
    let mut table =
        Table::new("statement, mean ± standard deviation in ms | XFS | ZFS | of the gap");
    let storages = storages(run);
    let [ours, theirs] = storages.each_ref().map(|treatment| treatment.statements());
    let [xfs, zfs] = &storages;
    let gap = zfs.mean_of_all() - xfs.mean_of_all();
    for ((text, mean, deviation), (same, zfs_mean, zfs_deviation)) in ours.into_iter().zip(theirs) {
        assert_eq!(text, same);
        let both =
            |mean, deviation| format!("{} ± {}", milliseconds(mean), milliseconds(deviation));
        let words: Vec<&str> = text.split_whitespace().take(2).collect();
        table.row([
            words.join(" "),
            both(mean, deviation),
            both(zfs_mean, zfs_deviation),
            percent((zfs_mean - mean) / gap),
        ]);
    }
    run.assert_stands(PAGE, "statements", &table.text());
}

#[test]
fn page_004_has_figures_of_its_run_only() {
    let run = Run::open("004-zfs-xfs");
    let [xfs, zfs] = &storages(run);
    let (of_xfs, Some([from, to])) = run.ratio(zfs, xfs) else { panic!("no interval") };
    let both = xfs.statements().into_iter().zip(zfs.statements());
    let others: Vec<f64> = both
        .filter(|((text, ..), _)| !text.starts_with(LARGEST))
        .map(|(a, b)| b.1 / a.1 - 1.0)
        .collect();
    let [least, most] = range(&others);
    let spread =
        |treatment: &Treatment<'_>| ratio(treatment.latency("stddev") / treatment.latency("mean"));
    let gap = zfs.mean_of_all() - xfs.mean_of_all();
    let [a, b] = [xfs, zfs].map(|treatment| treatment.mean_of(LARGEST));
    let claims = [
        format!("{} of XFS's tps (95% CI {} to {})", percent(of_xfs), percent(from), percent(to)),
        format!("find one of {} in 80%", percent(run.detectable(zfs, xfs))),
        format!("has the largest part of the gap, {} here", percent((b - a) / gap)),
        format!("of {} times their mean, XFS's of {} times", spread(zfs), spread(xfs)),
        format!("ZFS's p99 is {:.1} times XFS's", zfs.latency("p99") / xfs.latency("p99")),
        format!("hardly differ*, by {} to {}.", percent(least), percent(most)),
        format!(
            "{} a second by one writer against {}",
            count(run.flushes("zfs")),
            count(run.flushes("xfs"))
        ),
    ];
    // Room and length of the report's size, the pool's format, and the load.
    let given = ["0.7", "300", "60", "2", "3", "23", "150", "80"];
    Page::open(PAGE).assert_computed(&claims, &given);
}

#[test]
fn page_004_draws_zfs_as_a_part_of_xfs() {
    let run = Run::open("004-zfs-xfs");
    let [xfs, zfs] = &storages(run);
    let of_xfs = |label: &str, report, ours: (f64, _)| Row {
        label: label.into(),
        report: Some(report),
        ours: Some(ours),
    };
    let mean = |treatment: &Treatment<'_>| treatment.latency("mean");
    let update = |treatment: &Treatment<'_>| treatment.mean_of(LARGEST);
    let rows = [
        of_xfs("tps", 7_530.6 / 10_904.3, run.ratio(zfs, xfs)),
        of_xfs("latency", 6.370 / 4.400, (mean(zfs) / mean(xfs), None)),
        of_xfs(LARGEST, 3.357 / 1.522, (update(zfs) / update(xfs), None)),
    ];
    assert_drawn(PAGE, "004-zfs-xfs", &svg(&rows, percent));
}
