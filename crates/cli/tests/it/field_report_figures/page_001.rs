//! The page on filesystems and their options.

use super::latencies;
use crate::figures_support::bars::{Row, svg};
use crate::figures_support::page::Page;
use crate::figures_support::{
    Run, Table, Treatment, assert_drawn, count, milliseconds, percent, range, ratio,
};

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

const PAGE: &str = "001-filesystems.md";

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
    run.assert_stands(PAGE, "run", &Run::table(&["001-filesystems"]));
    run.assert_stands(PAGE, "report size", &table.text());
}

#[test]
fn page_001_draws_each_filesystem_as_a_part_of_ext2() {
    let run = Run::open("001-filesystems");
    let ext2 = run.treatment(&[("storage", "ext2")]);
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
    assert_drawn(PAGE, "001-filesystems", &svg(&rows, percent));
}

#[test]
fn page_001_has_figures_of_its_run() {
    let run = Run::open("001-filesystems");
    let of = |storage: &str| run.treatment(&[("storage", storage)]);
    let [ext2, ext4, xfs, tuned] = ["ext2", "ext4", "xfs", "xfs-tuned"].map(of);
    let measured: Vec<Treatment<'_>> =
        run.treatments().filter(|treatment| !treatment.trials().is_empty()).collect();
    let differ: Vec<String> = measured
        .iter()
        .map(|treatment| treatment.factor("storage"))
        .filter(|name| name != "ext2" && run.is_significant(&of(name), &ext2))
        .collect();
    let mean = |treatment: &Treatment<'_>, statement: &str| {
        let all = treatment.statements();
        all.iter().find(|(text, ..)| text.starts_with(statement)).unwrap().1
    };
    let share = |treatment: &Treatment<'_>| {
        let all: f64 = treatment.statements().iter().map(|(_, mean, _)| mean).sum();
        mean(treatment, "UPDATE pgbench_branches") / all
    };
    let other: Vec<f64> =
        measured.iter().filter(|of| of.factor("storage") != "zfs").map(share).collect();
    let [least, most] = range(&other);
    let tps: Vec<f64> = measured.iter().map(|treatment| treatment.mean().0).collect();
    let of_each =
        |name: &str, statement| format!("{} ms", milliseconds(mean(&of(name), statement)));
    let [lowest, highest] = range(&tps);
    Page::open(PAGE).assert_has(&[
        format!("only {} differ significantly", listed(&differ)),
        format!(
            "A difference of ext4 from ext2 is found in 80% of cases if it is {}",
            percent(run.detectable(&ext4, &ext2))
        ),
        format!("It has {} times the mean of plain xfs here", ratio(tuned.mean().0 / xfs.mean().0)),
        format!("takes {} to {} of each transaction", percent(least), percent(most)),
        format!("gets {} of ext4's flushes/s", percent(run.flushes("btrfs") / run.flushes("ext4"))),
        format!(
            "END takes {} with it and {} with ext2",
            of_each("btrfs", "END"),
            of_each("ext2", "END")
        ),
        format!(
            "END takes {}, UPDATE pgbench_accounts {}",
            of_each("zfs", "END"),
            of_each("zfs", "UPDATE pgbench_accounts")
        ),
        format!("*The level*: {} to {} tps", count(lowest), count(highest)),
    ]);
}

/// Names as a sentence has them.
fn listed(names: &[String]) -> String {
    let (last, others) = names.split_last().unwrap();
    format!("{} and {last}", others.join(", "))
}
