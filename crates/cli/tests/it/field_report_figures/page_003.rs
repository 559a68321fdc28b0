//! The page on a big table.

use crate::figures_support::{Run, Table, count, ratio};

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
