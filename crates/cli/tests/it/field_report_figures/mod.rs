//! The figures on the pages of docs/field-reports/ that come from runs at the reports' size.
//!
//! Each run lies beside the pages as a small store, in docs/field-reports/runs/, as `just
//! field-report-run` keeps it. The tables on a page are made from its run again, and must stand
//! there as they are; figures in its prose are computed anew.
//! `PGDYNO_TRUTH_WRITE=1`, with `-- --test-threads=1`, writes them.

mod page_000;
mod page_001;
mod page_002;
mod page_003;
mod page_004;

use pgdyno_analysis::host_noise::BUSY;

use crate::figures_support::{Run, Treatment, milliseconds};

pub use page_003::STAGES;

#[test]
fn trials_differ_by_5_to_9_percent_and_recipes_are_planned_for_10() {
    let runs = [
        "000-ssd-acceptance",
        "001-filesystems",
        "002-commit-loss",
        "002-group-commit",
        "004-zfs-xfs",
    ];
    let noise = runs.map(|run| Run::open(run).noise());
    assert!(noise.iter().all(|noise| (0.045..0.095).contains(noise)), "{noise:?}");
    assert!(noise.iter().all(|noise| *noise < BUSY), "{noise:?}");
}

/// Median and 99th percentile of the latency, in milliseconds.
fn latencies(treatment: &Treatment<'_>) -> String {
    let of = |percentile| milliseconds(treatment.latency(percentile));
    format!("{}, {}", of("p50"), of("p99"))
}
