//! The page on ssd-acceptance.

use super::latencies;
use crate::figures_support::bars::{Row, svg};
use crate::figures_support::page::Page;
use crate::figures_support::{Run, Table, assert_drawn, count, operations, percent, range, ratio};

/// Flush methods of the report, in its order.
const FLUSH_METHODS: [&str; 4] = ["open_datasync", "fdatasync", "fsync", "open_sync"];

#[test]
fn page_000_has_logins_and_logouts() {
    let run = Run::open("000-ssd-acceptance");
    let mut table = Table::new(
        " | tps of each trial | mean, 95% CI | p50, p99 in ms | CPU idle, iowait | \
         disk busy | 16 clients ÷ latency ÷ tps",
    );
    for workload in ["user-login", "user-logout"] {
        let treatment = run.treatment(&[("workload", workload)]);
        table.row([
            workload.to_owned(),
            treatment.each(),
            treatment.mean_with_interval(),
            latencies(&treatment),
            treatment.idle_and_waiting(),
            treatment.disk_busy(),
            ratio(treatment.number("little")),
        ]);
    }
    run.assert_stands(
        "000-ssd-acceptance.md",
        "runs",
        &Run::table(&["000-ssd-acceptance", "000-wal-blocks"]),
    );
    run.assert_stands("000-ssd-acceptance.md", "logins", &table.text());

    let mut growth = Table::new("bytes a row | the report | ours");
    let users = run.size("public.user_info") / 20e6;
    growth.row(["user_info, 20 million".into(), "157.6 (3,006 MB)".into(), format!("{users:.1}")]);
    for (table, report) in [("login", "89.3, if its two runs had made all rows"), ("logout", "")] {
        let workload = format!("user-{table}");
        let grown =
            run.treatment(&[("workload", &workload)]).grown(&format!("public.user_{table}_rec"));
        growth.row([format!("user_{table}_rec"), report.into(), format!("{grown:.1}")]);
    }
    run.assert_stands("000-ssd-acceptance.md", "growth", &growth.text());

    let report = |label: &str, tps| Row { label: label.into(), report: Some(tps), ours: None };
    let login = run.treatment(&[("workload", "user-login")]);
    let rows = [
        report("write back", 13_467.7),
        report("write through", 14_061.9),
        Row { label: "user-login".into(), report: None, ours: Some(login.mean()) },
    ];
    let picture = svg(&rows, |tps| format!("{} tps", count(tps)));
    assert_drawn("000-ssd-acceptance.md", "000-ssd-acceptance", &picture);
}

#[test]
fn page_000_has_flushes_and_crashes() {
    let run = Run::open("000-ssd-acceptance");
    let probes: [_; 4] = run.probes().iter().collect::<Vec<_>>().try_into().unwrap();
    let blocks = probes.map(|probe| probe["result"]["block_bytes"].as_u64().unwrap());
    assert_eq!(blocks, [8192, 16384, 8192, 16384]);
    let mut flushes = Table::new(
        "flushes/s of one block | before: 8 kB | before: 16 kB | after: 8 kB | after: 16 kB",
    );
    for method in FLUSH_METHODS {
        let each = probes.map(|probe| count(operations(probe, "one-block", method)));
        flushes.row([method.to_owned()].into_iter().chain(each));
    }
    run.assert_stands("000-ssd-acceptance.md", "flushes", &flushes.text());

    let mut crashes = Table::new(
        "crash rounds, user-login | rounds | acknowledged | lost | \
         a round fails with at most (95% confidence) | verdict",
    );
    for fault in run.crashes()[0]["faults"].as_array().unwrap() {
        let number = |key: &str| count(fault[key].as_f64().unwrap());
        crashes.row([
            fault["fault"].as_str().unwrap().to_owned(),
            number("rounds"),
            number("acknowledged"),
            number("lost"),
            percent(fault["chance_at_most"].as_f64().unwrap()),
            fault["verdict"].as_str().unwrap().to_owned(),
        ]);
    }
    run.assert_stands("000-ssd-acceptance.md", "crashes", &crashes.text());
}

#[test]
fn page_000_has_wal_blocks_of_16_kb() {
    let run = Run::open("000-wal-blocks");
    let of = |size| run.treatment(&[("postgres.bindir", &format!("/opt/pg-{size}k/bin"))]);
    let mut table = Table::new(
        "WAL blocks | tps of each trial | mean, 95% CI | of 8 kB's (95% CI) | p50, p99 in ms | \
         WAL for each login",
    );
    for size in [8, 16] {
        let treatment = of(size);
        table.row([
            format!("{size} kB"),
            treatment.each(),
            treatment.mean_with_interval(),
            if size == 8 { "100%".to_owned() } else { run.compared(&treatment, &of(8)) },
            latencies(&treatment),
            format!("{} bytes", count(treatment.per_transaction("pg_stat_wal wal_bytes"))),
        ]);
    }
    run.assert_stands("000-ssd-acceptance.md", "wal blocks", &table.text());
}

#[test]
fn page_000_has_figures_of_its_runs_only() {
    let (run, blocks) = (Run::open("000-ssd-acceptance"), Run::open("000-wal-blocks"));
    let [login, logout] = ["user-login", "user-logout"].map(|w| run.treatment(&[("workload", w)]));
    let of = |size| format!("/opt/pg-{size}k/bin");
    let [small, large] = [8, 16].map(|size| blocks.treatment(&[("postgres.bindir", &of(size))]));
    let flushes = login.number("fsync_per_second");
    let rates = FLUSH_METHODS.map(|method| operations(&run.probes()[0], "one-block", method));
    let [slowest, quickest] = range(&rates);
    let (of_login, Some([from, to])) = run.ratio(&logout, &login) else { panic!("no interval") };
    let (of_small, Some([low, high])) = blocks.ratio(&large, &small) else { panic!("no interval") };
    let relations = ["user_info", "user_session", "user_info_pkey", "user_session_pkey"];
    let all: f64 = relations.iter().map(|name| run.size(&format!("public.{name}"))).sum();
    let claims = [
        format!(
            "ours {} and {}, beside {} and {}.",
            login.disk_busy(),
            logout.disk_busy(),
            login.at_work(),
            logout.at_work()
        ),
        format!("{} logins a second are a third", count(login.mean().0)),
        format!("one writer gets {} flushes a second", count(flushes)),
        format!(
            "Logout has {} times the tps of login (95% CI {} to {})",
            ratio(of_login),
            ratio(from),
            ratio(to)
        ),
        format!("find a difference of {} in 80%", percent(run.detectable(&logout, &login))),
        format!(
            "have {} of the logins of 8 kB (95% CI {} to {})",
            percent(of_small),
            percent(low),
            percent(high)
        ),
        format!("find a difference of {} in 80%", percent(blocks.detectable(&large, &small))),
        format!(
            "logins are {} times one writer's flushes, logouts {} times",
            ratio(login.mean().0 / flushes),
            ratio(logout.mean().0 / flushes)
        ),
        format!("Ours differ by {} with blocks of 8 kB", percent(quickest / slowest - 1.0)),
        format!("Tables and keys of 20 million users are {:.1} GB", all / 1e9),
    ];
    // Memory of the machine, its load, and what the runs were asked for.
    let given = ["25", "0.26", "300", "30", "100", "1,800", "75", "13,468"];
    Page::open("000-ssd-acceptance.md").assert_computed(&claims, &given);
}
