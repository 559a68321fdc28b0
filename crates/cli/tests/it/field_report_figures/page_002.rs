//! The page on group commit.

use crate::figures_support::page::Page;
use crate::figures_support::{Run, Table, Treatment, count, highest, percent, range, ratio};
use crate::support::docs;

/// Clients of the report on group commit.
const SWEEP: [&str; 8] = ["4", "8", "16", "32", "64", "128", "256", "512"];

/// Forms of the load.
const FORMS: [&str; 3] = ["group-commit", "group-commit-block", "group-commit-function"];

const PAGE: &str = "002-group-commit.md";

/// The treatments of a form of the load and a way to commit, by clients.
fn sweep<'a>(run: &'a Run, workload: &str, commit: &str) -> [Treatment<'a>; SWEEP.len()] {
    SWEEP.map(|clients| {
        run.treatment(&[("workload", workload), ("clients", clients), ("commit", commit)])
    })
}

#[test]
fn page_002_has_the_sweep_over_clients() {
    let run = Run::open("002-group-commit");
    let mut table = Table::new(
        "clients | sync | per flush | idle, iowait | group | per flush | \
         group ÷ sync (95% CI) | async | idle, iowait | async ÷ sync",
    );
    let [sync, group, without] =
        ["sync", "group", "async"].map(|commit| sweep(run, FORMS[0], commit));
    for (((clients, sync), group), without) in SWEEP.iter().zip(&sync).zip(&group).zip(&without) {
        table.row([
            (*clients).to_owned(),
            sync.median_and_range(),
            ratio(sync.number("commits_per_flush")),
            sync.idle_and_waiting(),
            group.median_and_range(),
            ratio(group.number("commits_per_flush")),
            run.compared(group, sync),
            without.median_and_range(),
            without.idle_and_waiting(),
            ratio(without.median() / sync.median()),
        ]);
    }
    let runs = ["002-group-commit", "002-group-commit-sustained", "002-commit-loss"];
    run.assert_stands(PAGE, "runs", &Run::table(&runs));
    run.assert_stands(PAGE, "sweep", &table.text());

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
            let of = |commit| ratio(median(workload, commit) / median(FORMS[0], commit));
            format!("{}; {}", of("sync"), of("async"))
        };
        let all = FORMS[1..]
            .iter()
            .copied()
            .flat_map(|workload| ["sync", "group", "async"].map(|c| count(median(workload, c))));
        forms.row(
            [clients.to_owned()]
                .into_iter()
                .chain(all)
                .chain(FORMS[1..].iter().copied().map(of_bare)),
        );
    }
    run.assert_stands(PAGE, "forms", &forms.text());
}

#[test]
fn page_002_has_what_asynchronous_commits_lost() {
    let run = Run::open("002-commit-loss");
    let mut table = Table::new(
        " | tps, mean and 95% CI | power cuts | acknowledged | lost | \
         oldest lost: median of the rounds | of all | allowed | verdict",
    );
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
    run.assert_stands(PAGE, "loss", &table.text());
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
            ratio(billions_a_day(mean)),
            checkpoints.join("; "),
            treatment.idle_and_waiting(),
            treatment.disk_busy(),
        ]);
    }
    run.assert_stands(PAGE, "sustained", &table.text());
}

#[test]
fn page_002_has_figures_of_its_runs_only() {
    let claims = [claims_of_flushes(), claims_of_peaks(), claims_of_the_day(), claims_of_noise()];
    let all: Vec<String> = claims.into_iter().flatten().chain(claims_of_losses()).collect();
    // What the runs were asked for, what the manual allows, and what other pages measured.
    let given = ["9", "3", "0.25", "44", "66", "120", "72"];
    Page::open(PAGE).assert_computed(&all, &given);
}

fn claims_of_flushes() -> Vec<String> {
    let run = Run::open("002-group-commit");
    let [sync, group] = ["sync", "group"].map(|commit| sweep(run, FORMS[0], commit));
    let flushes =
        |of: &[Treatment<'_>], at: usize| format!("{:.1}", of[at].number("commits_per_flush"));
    // From 32 clients on, `commit_siblings` = 16 can be met.
    let ratios: Vec<f64> =
        group.iter().zip(&sync).skip(3).map(|(group, sync)| run.ratio(group, sync).0).collect();
    let [lowest, most] = range(&ratios);
    let significant = group.iter().zip(&sync).filter(|(a, b)| run.is_significant(a, b)).count();
    assert_eq!(significant, 0, "the page says that none is");
    vec![
        format!(
            "{} commits a flush against {} at 32 clients, {} against {} at 128",
            flushes(&group, 3),
            flushes(&sync, 3),
            flushes(&group, 5),
            flushes(&sync, 5)
        ),
        format!("Its tps are {} to {} times sync's", ratio(lowest), ratio(most)),
        format!("rise from {} with 4 clients", flushes(&sync, 0)),
        format!("to {} with 128", flushes(&sync, 5)),
        format!("One writer got {} flushes/s", count(sync[0].number("fsync_per_second"))),
        format!("{:.0} µs", 1e6 / sync[0].number("fsync_per_second")),
    ]
}

fn claims_of_peaks() -> Vec<String> {
    let run = Run::open("002-group-commit");
    let [sync, without] = ["sync", "async"].map(|commit| sweep(run, FORMS[0], commit));
    let peaks = [&sync, &without].map(|sweep| highest(sweep));
    let places = peaks.map(|peak| peak.factor("clients"));
    let of_peak = |sweep: &[Treatment<'_>], peak: &Treatment<'_>| {
        ratio(sweep[SWEEP.len() - 1].median() / peak.median())
    };
    let [from, to] = run.peak(peaks[1]);
    let [sync_from, sync_to] = run.peak(peaks[0]);
    let of_sync = without.iter().zip(&sync).map(|(a, b)| a.median() / b.median());
    let [_, most] = range(&of_sync.collect::<Vec<_>>());
    let [block, function] = [FORMS[1], FORMS[2]].map(|form| {
        let all = sweep(run, form, "async");
        range(&all.iter().zip(&without).map(|(a, b)| a.median() / b.median()).collect::<Vec<_>>())
    });
    vec![
        format!("at {} clients, with {}% idle", places[1], peaks[1].idle()),
        format!("*sync* peaks with more, at {}", places[0]),
        format!("has up to {} times sync's tps", ratio(most)),
        format!("anywhere between {from} and {to} clients"),
        format!("For sync it is {sync_from} to {sync_to}"),
        format!("{}% at {} clients, and {}% with 4", peaks[0].idle(), places[0], sync[0].idle()),
        format!("sync has {} of its peak's tps with 512", of_peak(&sync, peaks[0])),
        format!("async {}", of_peak(&without, peaks[1])),
        format!("has {} to {} of the bare INSERT's", ratio(block[0]), ratio(block[1])),
        format!("has {} to {} of them", ratio(function[0]), ratio(function[1])),
    ]
}

/// Rows of a day at a rate, in billions.
fn billions_a_day(tps: f64) -> f64 {
    tps * 86_400.0 / 1e9
}

fn claims_of_the_day() -> Vec<String> {
    let run = Run::open("002-group-commit");
    let without = sweep(run, FORMS[0], "async");
    let best = without.iter().max_by(|a, b| a.mean().0.total_cmp(&b.mean().0)).unwrap();
    let (mean, Some(ends)) = best.mean() else { panic!("no interval") };
    let [from, to] = ends.map(|end| format!("{:.1}", billions_a_day(end)));
    let sustained = Run::open("002-group-commit-sustained");
    let of = |commit| sustained.treatment(&[("commit", commit)]);
    let minutes = |treatment: &Treatment<'_>| range(&treatment.minutes());
    let (long, sync) = (of("async"), of("sync"));
    let farthest = minutes(&long)
        .map(|minute| (minute / long.median() - 1.0).abs())
        .into_iter()
        .fold(0.0, f64::max);
    let [slowest, quickest] = minutes(&sync);
    let before = sweep(run, FORMS[0], "sync")[2].median();
    vec![
        format!("async's highest mean, {} tps,", count(mean)),
        format!("is {:.1} billion (95% CI {from} to {to} billion)", billions_a_day(mean)),
        format!(
            "16 clients had {} tps, {} of what they had for 9 s: {:.1} billion",
            count(long.median()),
            ratio(long.median() / without[2].median()),
            billions_a_day(long.median())
        ),
        format!("within {} of that", percent(farthest)),
        format!("*sync* had {} of its tps", ratio(sync.median() / before)),
        format!("its minutes differ by {}", percent(quickest / slowest - 1.0)),
    ]
}

/// `group` and `sync` with too few clients for a difference: how far their trials differ.
fn claims_of_noise() -> Vec<String> {
    let run = Run::open("002-group-commit");
    let mut logs = Vec::new();
    for form in FORMS {
        let [sync, group] = ["sync", "group"].map(|commit| sweep(run, form, commit));
        for (sync, group) in sync.iter().zip(&group).take(3) {
            let pairs = group.trials().into_iter().zip(sync.trials());
            logs.extend(pairs.map(|(group, sync)| (group / sync).ln()));
        }
    }
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let [lowest, most] = range(&logs).map(f64::exp);
    let (significant, all) = run.comparisons();
    let [sync, without] = ["sync", "async"].map(|commit| sweep(run, FORMS[0], commit));
    let differ = without.iter().zip(&sync).filter(|(a, b)| run.is_significant(a, b)).count();
    vec![
        format!("Their {n} pairs"),
        format!("geometric mean ratio of {}", ratio(mean.exp())),
        format!("by a factor of {}", ratio(variance.sqrt().exp())),
        format!("extremes are {} and {}", ratio(lowest), ratio(most)),
        format!("{significant} of {all} comparisons are significant"),
        format!("significantly with {differ} of the {} numbers of clients", SWEEP.len()),
    ]
}

fn claims_of_losses() -> Vec<String> {
    let run = Run::open("002-commit-loss");
    let [async_200, async_10] =
        ["async", "async-10ms"].map(|commit| run.treatment(&[("commit", commit)]));
    let (median, oldest) = ("median_lost_ms", "oldest_lost_ms");
    let power = &async_200.crash()["faults"][0]["power"];
    let (of_best, [from, to]) = async_10.of_best();
    let readme = std::fs::read_to_string(docs::path("field-reports/README.md")).unwrap();
    let [usual, worst] = [median, oldest].map(|key| age(&async_200, key));
    let item = format!("median {usual}, at most {worst} in ten power cuts");
    assert!(readme.contains(&item), "item 37: {item}");
    vec![
        format!("was {usual} old in the median of ten power cuts"),
        format!("and {worst} in the worst"),
        format!("was flushed {} times", count(power["flushes"].as_f64().unwrap())),
        format!("those of {} checkpoints", power["checkpoints"]),
        format!("it was {} and {}", age(&async_10, median), age(&async_10, oldest)),
        format!(
            "for {} of the tps (95% CI {} to {})",
            percent(of_best),
            percent(from),
            percent(to)
        ),
    ]
}

/// An age of lost commits in a crash test.
fn age(treatment: &Treatment<'_>, key: &str) -> String {
    let age_ms = treatment.crash()["faults"][0][key].as_f64();
    age_ms.map_or("none".to_owned(), |ms| match ms {
        ..0.5 => "under 1 ms".to_owned(),
        ms => format!("{ms:.0} ms"),
    })
}
