//! The quickstart, short and at a rate that leaves the CPUs to the tests beside it.

use std::path::Path;

use pgdyno_experiment::file::Override;
use pgdyno_experiment::{ResolvedExperiment, recipes};
use pgdyno_provision::ThisHost;
use pgdyno_test_support::small_workload;

/// Returns the short quickstart with `overrides` and then with `sets`, of which the later take the
/// place of the earlier.
pub(crate) fn quickstart(mut overrides: Vec<Override>, sets: &[&str]) -> ResolvedExperiment {
    let workload = small_workload(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let workload = format!("workload.name={}", workload.display());
    let short = [
        workload.as_str(),
        "load.duration=1s",
        "load.rate=100",
        "load.warm_up=100ms",
        "workload.scale=1",
        "experiment.repeats=1",
    ];
    overrides.extend(short.iter().chain(sets).map(|set| Override::parse(set).unwrap()));
    ResolvedExperiment::new(recipes::source("quickstart").unwrap(), overrides, &ThisHost).unwrap()
}

/// Returns the short quickstart on the server of `dsn`.
pub(crate) fn quickstart_on(dsn: &str, sets: &[&str]) -> ResolvedExperiment {
    let given = Override::text("postgres.dsn", dsn, &format!("postgres.dsn={dsn}"));
    quickstart(vec![given], sets)
}
