//! The page on a big table.

use crate::figures_support::page::Page;
use crate::figures_support::{Run, Table, Treatment, count, highest, percent, range, ratio};

const PAGE: &str = "003-big-table.md";

/// Output of examples/client-library/compare.py of 2026-11-24, and versions of what it ran.
const OF_CLIENT_LIBRARIES: [&str; 26] = [
    "3.3.9", "2.1.9", "15.18", "52,667", "64,041", "30,161", "32,976", "11,230", "13,094", "0.54",
    "0.48", "0.59", "0.21", "0.19", "0.23", "7.9", "9.3", "35", "38", "112", "128", "4.4", "4.1",
    "4.8", "14", "13",
];

/// Rows of the table.
const ROWS: f64 = 1e8;

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

#[test]
fn page_003_has_each_stage_and_number_of_clients() {
    let run = Run::open("003-big-table");
    let first = sweep(run, STAGES[0]);
    let mut tps = Table::new("tps | 1 client | 16 | 128 | 980");
    let mut of_first = Table::new("÷ the first SELECT | 1 client | 16 | 128 | 980");
    for stage in STAGES {
        let treatments = sweep(run, stage);
        let name = || std::iter::once(stage.replace('-', " "));
        tps.row(name().chain(treatments.each_ref().map(Treatment::median_and_range)));
        if stage.starts_with("select-") {
            let compared = treatments.iter().zip(&first).map(|(a, b)| run.compared(a, b));
            of_first.row(name().chain(compared));
        }
    }
    run.assert_stands(PAGE, "run", &Run::table(&["003-big-table"]));
    run.assert_stands(PAGE, "stages", &tps.text());
    run.assert_stands(PAGE, "selects", &of_first.text());
}

#[test]
fn page_003_has_memory_and_the_disks_curves() {
    let run = Run::open("003-big-table");
    let mut backends = Table::new(
        "stage, clients | private memory of a backend | all backends' memory | \
         CPUs of the load generator | CPU idle, iowait | disk busy",
    );
    for stage in ["select", "update"] {
        for (clients, treatment) in ROW_CLIENTS.iter().zip(sweep(run, stage)) {
            backends.row([
                format!("{stage}, {clients}"),
                format!("{:.1} MB", treatment.gauge("processes backend_private") / 1e6),
                format!("{} MB", count(treatment.gauge("processes backends_pss") / 1e6)),
                ratio(treatment.generator()),
                treatment.idle_and_waiting(),
                treatment.disk_busy(),
            ]);
        }
    }
    run.assert_stands(PAGE, "backends", &backends.text());

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
    run.assert_stands(PAGE, "curves", &curves.text());
}

/// A stage with each number of clients.
fn sweep<'a>(run: &'a Run, stage: &str) -> [Treatment<'a>; ROW_CLIENTS.len()] {
    ROW_CLIENTS.map(|clients| run.treatment(&[("stage", stage), ("clients", clients)]))
}

#[test]
fn page_003_has_figures_of_its_run_only() {
    let run = Run::open("003-big-table");
    let mut claims = claims_of_selects(run);
    claims.extend(claims_of_the_disk(run));
    let [table, key] = ["public.numbers", "public.numbers_pkey"].map(|of| run.size_before(of));
    let (significant, all) = run.comparisons();
    let first = sweep(run, STAGES[0]);
    let later = STAGES.into_iter().filter(|stage| stage.starts_with("select-"));
    let ratios: Vec<_> =
        later.flat_map(|stage| sweep(run, stage).into_iter().zip(&first)).collect();
    let of_selects = ratios.iter().filter(|(later, first)| run.is_significant(later, first));
    claims.extend([
        format!(
            "the table has {:.2} GB, its key {:.2} GB: {:.1} and {:.1} bytes a row",
            table / 1e9,
            key / 1e9,
            table / ROWS,
            key / ROWS
        ),
        format!("{significant} of {all} comparisons are significant"),
        format!("of these {} ratios {}", ratios.len(), of_selects.count()),
    ]);
    // Intervals (percent); rows (millions), memory and room (GB) that the run was asked for or had.
    let mut given = vec!["95", "100", "2", "25", "71"];
    given.extend(OF_CLIENT_LIBRARIES);
    Page::open(PAGE).assert_computed(&claims, &given);
}

fn claims_of_selects(run: &Run) -> Vec<String> {
    let first = sweep(run, STAGES[0]);
    let of_first = |stage: &str| {
        let ratios: Vec<f64> =
            sweep(run, stage).iter().zip(&first).map(|(a, b)| run.ratio(a, b).0).collect();
        let [lowest, most] = range(&ratios);
        format!("{} to {}", ratio(lowest), ratio(most))
    };
    let highest = highest(&first);
    vec![
        format!("After 6% it has {} of the tps before", of_first(STAGES[3])),
        format!("after 50% {}", of_first(STAGES[4])),
        format!("after every row {}", of_first(STAGES[5])),
        format!("to {}", of_first(STAGES[6])),
        format!(
            "SELECT has {} of its peak's tps with them",
            percent(first[3].median() / highest.median())
        ),
        format!("peak at {}", highest.factor("clients")),
        format!("the disk {} busy", highest.disk_busy()),
    ]
}

fn claims_of_the_disk(run: &Run) -> Vec<String> {
    let busy = |stage: &str| {
        let [lowest, most] = range(&sweep(run, stage).map(|treatment| treatment.of_disk()));
        format!("{:.0} to {}", 100.0 * lowest, percent(most))
    };
    let waiting = sweep(run, STAGES[5]).map(|treatment| treatment.of_cpu("iowait"));
    vec![
        format!("the disk {} busy in those trials, beside {}", busy(STAGES[5]), busy(STAGES[0])),
        format!("up to {} of the CPU's time", percent(range(&waiting)[1])),
        format!("the disk is {} busy again", busy(STAGES[6])),
        format!("{} busy)", busy(STAGES[9])),
    ]
}
