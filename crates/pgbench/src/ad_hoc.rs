//! Record of a run for the store (`--store`).

use std::time::{Duration, SystemTime};

use pgdyno_model::record::AdHocRun;
use pgdyno_model::target::Target;
use pgdyno_model::units::Epoch;
use pgdyno_model::{Measurement, Treatment};

use crate::request::Run;
use crate::tables::Tables;

/// Returns a run that was reported, with the options that made its load.
pub(crate) fn ad_hoc_run(
    run: &Run,
    tables: &Tables,
    target: Target,
    began: SystemTime,
    measurement: &Measurement,
    is_interrupted: bool,
) -> AdHocRun {
    let names: Vec<&str> = run.scripts.iter().map(|s| s.script.name.as_str()).collect();
    let connecting = Duration::try_from_secs_f64(measurement.connect_s).unwrap_or_default();
    AdHocRun {
        treatment: Treatment {
            workload: names.join(", "),
            scale: tables.scale,
            clients: run.clients,
            threads: run.threads,
            protocol: run.protocol,
            options: run.load_options(),
            ..Treatment::default()
        },
        length: run.length(),
        seed: run.seed.unwrap_or_default(),
        started_at: Epoch::from_time(began),
        measured_at: Epoch::from_time(began + connecting),
        measurement: measurement.clone(),
        target,
        is_interrupted,
    }
}
