//! What a store keeps of a run.

use std::time::{Duration, SystemTime};

use pgdyno_model::experiment::Length;
use pgdyno_model::target::Target;
use pgdyno_model::units::Epoch;
use pgdyno_model::{Levels, Measurement, Treatment};

use crate::request::Run;
use crate::tables::Tables;

/// A run that was reported, with the options that made its load.
///
/// The arguments themselves are not here: a connection string may hold a password.
#[derive(Debug)]
pub struct Measured {
    /// The load.
    pub treatment: Treatment,
    /// How long it was to last.
    pub length: Length,
    /// The seed of the load.
    pub seed: u64,
    /// When the load began.
    pub started_at: Epoch,
    /// When the measured window opened.
    pub measured_at: Epoch,
    /// The figures.
    pub measurement: Measurement,
    /// The server that was asked for its version and tables before the load.
    pub target: Target,
    /// Whether a signal ended it.
    pub is_interrupted: bool,
}

impl Measured {
    pub(crate) fn new(
        run: &Run,
        tables: &Tables,
        target: Target,
        began: SystemTime,
        measurement: &Measurement,
        is_interrupted: bool,
    ) -> Self {
        let names: Vec<&str> = run.scripts.iter().map(|s| s.script.name.as_str()).collect();
        let connecting = Duration::try_from_secs_f64(measurement.connect_s).unwrap_or_default();
        Self {
            treatment: Treatment {
                levels: Levels(Vec::new()),
                storage: String::new(),
                device: Default::default(),
                workload: names.join(", "),
                scale: tables.scale,
                clients: run.clients,
                threads: run.threads,
                protocol: run.protocol,
                options: run.load_options(),
                postgres_version: None,
                postgres_bindir: None,
                server: None,
                settings: Default::default(),
            },
            length: run.length(),
            seed: run.seed.unwrap_or_default(),
            started_at: Epoch::of(began),
            measured_at: Epoch::of(began + connecting),
            measurement: measurement.clone(),
            target,
            is_interrupted,
        }
    }
}
