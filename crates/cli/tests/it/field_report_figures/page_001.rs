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
        table.row([
            name,
            treatment.each(),
            treatment.mean_with_interval(),
            run.compared(&treatment, &ext2),
            latencies(&treatment),
            count(treatment.number("fsync_per_second")),
        ]);
    }
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
            let ours = has_run.then(|| run.ratio(&treatment, &ext2));
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
    let share = |treatment: &Treatment<'_>| {
        treatment.mean_of("UPDATE pgbench_branches") / treatment.mean_of_all()
    };
    let other: Vec<f64> =
        measured.iter().filter(|of| of.factor("storage") != "zfs").map(share).collect();
    let [least, most] = range(&other);
    let tps: Vec<f64> = measured.iter().map(|treatment| treatment.mean().0).collect();
    let of_each =
        |name: &str, statement| format!("{} ms", milliseconds(of(name).mean_of(statement)));
    let [lowest, highest] = range(&tps);
    let mut claims = claims_of_options();
    claims.extend([
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
    // Sizes of files (GiB, MiB), blocks (kB) and logs (MB); kernels; what the run was asked for.
    let given = ["4", "128", "8", "2", "576", "5", "3", "32", "1,000", "6.12", "6.19", "1.05"];
    Page::open(PAGE).assert_computed(&claims, &given);
}

fn claims_of_options() -> Vec<String> {
    let run = Run::open("001-filesystem-options");
    let of = |option: &str| run.treatment(&[("options", option)]);
    let ext3 = of("ext3");
    let names = run.treatments().map(|treatment| treatment.factor("options"));
    let measured: Vec<String> = names.filter(|name| !of(name).trials().is_empty()).collect();
    let differ: Vec<String> = measured
        .iter()
        .filter(|name| *name != "ext3" && run.is_significant(&of(name), &ext3))
        .cloned()
        .collect();
    let (significant, all) = run.comparisons();
    let faults = |name: &str| of(name).crash()["faults"][0].clone();
    let mounts: Vec<f64> = measured
        .iter()
        .map(|name| faults(name)["filesystems"]["mount_ms"].as_f64().unwrap())
        .collect();
    let [quickest, slowest] = range(&mounts);
    let complaints = |name: &String| faults(name)["filesystems"]["complaints"] != 0;
    assert!(!measured.iter().any(complaints), "the page says that fsck found nothing wrong");
    let rounds: Vec<_> = ["ext3-nobarrier", "ext4-nobarrier"]
        .into_iter()
        .flat_map(|name| faults(name)["each"].as_array().unwrap().clone())
        .collect();
    let ended = |word: &str| {
        let all = rounds.iter().filter(|round| round["verdict"].as_str().unwrap().contains(word));
        all.count()
    };
    let (dead, corrupt) = (ended("will not start"), ended("corrupt"));
    assert_eq!(dead + corrupt, rounds.len(), "the page says that none came back whole");
    let of_ext3 = |name: &str| percent(run.ratio(&of(name), &ext3).0);
    let (journal, Some([from, to])) = run.ratio(&of("ext3-journal"), &ext3) else { panic!() };
    let (plan, Some([low, high])) = run.ratio(&of("ext3-writeback-commit600"), &ext3) else {
        panic!()
    };
    vec![
        format!("took {quickest:.0} to {slowest:.0} ms"),
        format!(
            "Of {all} comparisons with ext3 {significant} are significant: {}",
            listed(&differ)
        ),
        format!(
            "has {} of ext3's tps (95% CI {} to {})",
            percent(journal),
            percent(from),
            percent(to)
        ),
        format!("plan, has {} ({} to {})", percent(plan), percent(low), percent(high)),
        format!("none of {} rounds without barriers", rounds.len()),
        format!("in {dead} PostgreSQL did not start, in {corrupt} it was corrupt"),
        format!("They have {} and {}", of_ext3("ext3-nobarrier"), of_ext3("ext4-nobarrier")),
    ]
}

#[test]
fn page_001_has_each_option() {
    let run = Run::open("001-filesystem-options");
    let ext3 = run.treatment(&[("options", "ext3")]);
    let mut table = Table::new(
        "level | tps of each trial | mean, 95% CI | of ext3's (95% CI) | mount, ms | fsck, ms | \
         three power cuts",
    );
    for treatment in run.treatments() {
        let name = treatment.factor("options");
        if treatment.trials().is_empty() {
            let empty = std::iter::repeat_n(String::new(), 5);
            table.row([name, "not available here".to_owned()].into_iter().chain(empty));
            continue;
        }
        let fault = &treatment.crash()["faults"][0];
        let ms = |key: &str| fault["filesystems"][key].as_f64().map_or("–".to_owned(), count);
        table.row([
            name,
            treatment.each(),
            treatment.mean_with_interval(),
            run.compared(&treatment, &ext3),
            ms("mount_ms"),
            ms("fsck_ms"),
            fault["verdict"].as_str().unwrap().to_owned(),
        ]);
    }
    let runs = ["001-filesystems", "001-filesystem-options"];
    run.assert_stands(PAGE, "run", &Run::table(&runs));
    run.assert_stands(PAGE, "options", &table.text());
}

/// Names as a sentence has them.
fn listed(names: &[String]) -> String {
    let (last, others) = names.split_last().unwrap();
    format!("{} and {last}", others.join(", "))
}
