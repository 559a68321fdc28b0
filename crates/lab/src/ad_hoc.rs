//! Ad-hoc runs: a load that no experiment describes, kept in the store.
//!
//! Such a run has one treatment and one trial. Its experiment is empty, by which every command
//! knows it: nothing but the load was controlled.

use std::path::Path;

use pgdyno_connect::control;
use pgdyno_exec::process::current_owner;
use pgdyno_facts as facts;
use pgdyno_model::facts::{BuildSource, ServerFacts};
use pgdyno_model::record::{AdHocRun, SessionEnd, SessionRecord};
use pgdyno_model::target::Target;
use pgdyno_model::units::Epoch;
use pgdyno_model::{Failure, FailureKind, Plan, PlannedTrial, RunRecord, TrialRecord};

use pgdyno_provision::stores::open_store;
use pgdyno_provision::{BenchError, new_record_id};

/// Recipe of the runs of `pgdyno pgbench --store`.
pub const PGBENCH: &str = "pgbench";

/// Adds a run to the store at `path`, and makes the store if there is none. Returns the run's id.
///
/// # Errors
/// The store cannot be opened or written, or as root another account may change it.
pub fn keep(path: &Path, run: AdHocRun) -> Result<String, BenchError> {
    let server = server_facts(&run.target);
    let mut store = open_store(path)?;
    let measured_s = run.measurement.measured_s;
    let planned = PlannedTrial { ordinal: 0, block: 1, treatment: 0, repeat: 1 };
    let record = RunRecord {
        id: new_record_id(PGBENCH, run.started_at),
        recipe: PGBENCH.to_owned(),
        started_at: run.started_at,
        pgdyno_version: env!("CARGO_PKG_VERSION").to_owned(),
        experiment: String::new(),
        folder: String::new(),
        overrides: Vec::new(),
        plan: Plan {
            name: PGBENCH.to_owned(),
            treatments: vec![run.treatment],
            trials: vec![planned],
            length: run.length,
            seed: run.seed,
            ..Plan::default()
        },
    };
    let trial = TrialRecord {
        ordinal: planned.ordinal,
        block: planned.block,
        treatment: planned.treatment,
        repeat: planned.repeat,
        started_at: run.started_at,
        measured_at: Some(run.measured_at),
        failure: run.is_interrupted.then(|| {
            let message = format!("a signal ended it after {measured_s:.1} s");
            Failure::new(FailureKind::Interrupted, message)
        }),
        measurement: Some(run.measurement),
        server_count: None,
        server,
        telemetry: Vec::new(),
        server_log: String::new(),
    };
    store.begin_run(&record)?;
    let session = store.begin_session(
        &record.id,
        &SessionRecord {
            started_at: Epoch::now(),
            owner: current_owner().map_err(pgdyno_exec::journal::JournalError::Owner)?,
            host: facts::host(),
            storage: Vec::new(),
        },
    )?;
    store.add_trial(&record.id, session, &trial)?;
    let end = if run.is_interrupted { SessionEnd::Interrupted } else { SessionEnd::Completed };
    store.end_session(session, end)?;
    Ok(record.id)
}

/// Version and settings of the server; none where it does not answer any more.
fn server_facts(target: &Target) -> Option<ServerFacts> {
    let mut client = control::connect(target).ok()?;
    let build = BuildSource::Given { address: target.address.to_string() };
    pgdyno_postgres::facts::read(&mut client, build).ok()
}
