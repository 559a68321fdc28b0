//! The file as TOML has it; serde places its errors.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use pgdyno_model::experiment::{Between, Experiment, Telemetry};
use pgdyno_model::units::Span;
use serde::Deserialize;
use toml::Spanned;

use super::error::{Complaint, read_at};
use super::experiment::ExperimentTable;
use super::factors::{Factors, exclusion};
use super::groups::keys_of;
use super::load::LoadTable;
use super::postgres::PostgresTable;
use super::rate::read_factors;
use super::servers::{place_programs, take_groups_servers, take_servers};
use super::source::Source;
use super::storage::{Tables, storages};
use super::workload::WorkloadTable;

/// An experiment of pgdyno: a question, what varies, the load, the server and the storage. Every
/// key has a default.
#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    /// The question, and how often and in which order trials run.
    experiment: ExperimentTable,
    /// Factors, which vary. Each key is a factor with a list of levels; all combinations are run.
    factors: Factors,
    /// Leaves out every treatment with these levels of factors.
    #[cfg_attr(test, schemars(with = "Vec<super::schema::FreeTable>"))]
    exclude: Vec<Spanned<toml::Table>>,
    /// The data set and its scripts.
    workload: WorkloadTable,
    /// The load that clients offer.
    load: LoadTable,
    /// Values of groups of the workload's clients, by the group's name, over their own.
    groups: BTreeMap<String, super::groups::GroupTable>,
    /// Processes or hosts that offer the load together.
    generators: super::generators::GeneratorsTable,
    /// The server: its version and settings, or the DSN of a running one.
    postgres: PostgresTable,
    /// Where the data lie, by a name of your choice.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, super::storage::StorageTable>"))]
    storage: Tables,
    /// Telemetry, sampled beside the load.
    telemetry: TelemetryTable,
    /// Work before every trial, in this order: vacuum, command, checkpoint, trim, drop_caches,
    /// prewarm, pause.
    between: BetweenTable,
    /// Probes of each storage before and after all trials.
    probe: super::probe::ProbeTable,
    /// Crash tests: after all trials, every treatment is crashed on a new storage and cluster.
    crash: Option<super::crash::CrashTable>,
    /// The kind of the report's first sentences.
    answer: Option<super::answer::AnswerTable>,
    /// Other values for some keys, under a name: `pgdyno run FILE --size NAME` sets them.
    #[serde(rename = "size")]
    _size: BTreeMap<String, super::size::SizeTable>,
    /// Other values for some keys on a host of `pgdyno run FILE --hosts ssh:NAME,…`, under its
    /// name.
    #[serde(rename = "hosts")]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, BTreeMap<String, serde_json::Value>>"))]
    _hosts: BTreeMap<String, toml::Table>,
}

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
struct TelemetryTable {
    /// Time between samples, at least 100ms.
    #[cfg_attr(test, schemars(extend("default" = "1s")))]
    interval: Option<Span>,
    /// Time for measuring each storage's fsync rate before the first trial. "0s" leaves it out.
    #[cfg_attr(test, schemars(extend("default" = "2s")))]
    fsync: Option<Span>,
    /// Time between samples of wait events, at least 10ms. "0s" leaves them out.
    #[cfg_attr(test, schemars(extend("default" = "100ms")))]
    wait_events: Option<Span>,
    /// Read `pg_stat_statements`.
    statements: bool,
    /// Read `pg_buffercache`.
    buffercache: bool,
    /// Store disks' serial numbers as they are, not as hashes.
    keep_serials: bool,
}

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
struct BetweenTable {
    /// Run the workload's own SQL, which empties history tables and vacuums.
    #[cfg_attr(test, schemars(extend("default" = true)))]
    vacuum: Option<bool>,
    /// Run CHECKPOINT. By default yes, and no on a server that a DSN names.
    checkpoint: Option<bool>,
    /// Stop the server, drop the kernel's page cache and start it again. Needs root.
    drop_caches: bool,
    /// Read the workload's tables and indexes into shared buffers (`pg_prewarm`). Not together
    /// with `drop_caches`.
    prewarm: bool,
    /// Free unused blocks on every storage under the cluster.
    trim: bool,
    /// A rest.
    pause: Span,
    /// A program with arguments, without a shell. It must end with status 0.
    command: Vec<String>,
}

impl BetweenTable {
    fn check(&self) -> Result<(), Complaint> {
        if self.prewarm && self.drop_caches {
            return Err(Complaint::new(
                "`between.prewarm` and `between.drop_caches` are both asked for",
            )
            .with_help("a trial begins warm or cold: keep one of the two"));
        }
        Ok(())
    }

    /// Returns what happens between trials; `is_external`: on a server that is not pgdyno's.
    fn into_between(self, is_external: bool) -> Between {
        Between {
            vacuum: self.vacuum.unwrap_or(true),
            // An external server makes a checkpoint only if the file says so.
            checkpoint: self.checkpoint.unwrap_or(!is_external),
            drop_caches: self.drop_caches,
            prewarm: self.prewarm,
            pause: self.pause,
            command: self.command,
        }
    }
}

impl File {
    /// Returns the experiment, after checking tables against each other.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place where that is known.
    pub(super) fn into_experiment(mut self, source: &Source) -> Result<Experiment, Complaint> {
        let at = |path: PathBuf| source.absolute(path);
        let load = self.load.into_load(source)?;
        let settings = self.postgres.settings()?;
        let storage = storages(self.storage, &at, self.between.trim)?;
        self.between.check()?;
        let mut factors = self.factors.into_factors()?;
        let mut groups = keys_of(self.groups, source)?;
        let mut servers = take_servers(&mut factors);
        place_programs(&mut factors, at);
        read_factors(&mut factors, source)?;
        let is_external = self.postgres.dsn.is_some() || !servers.is_empty();
        take_groups_servers(&mut factors, &mut groups, is_external, &mut servers)?;
        self.postgres.check(is_external)?;
        let exclude = |table| read_at(table, |table| exclusion(&table, &factors));
        let exclude = self.exclude.into_iter().map(exclude).collect::<Result<_, _>>()?;
        let generators =
            self.generators.into_choice(is_external || self.postgres.listen.is_some(), &factors)?;
        let planted = self.crash.as_mut().map(|crash| crash.take_planted(&factors)).transpose()?;
        let (repeats, stopping) = self.experiment.repeats()?;
        Ok(Experiment {
            answer: self.answer.map(super::answer::AnswerTable::into_answer).transpose()?,
            margin: self.experiment.margin()?,
            host_noise: self.experiment.host_noise.unwrap_or(true),
            stopping,
            name: self.experiment.name.unwrap_or_else(|| source.name.clone()),
            question: self.experiment.question,
            repeats,
            order: self.experiment.order,
            seed: self.experiment.seed,
            exclude,
            factors,
            workload: self.workload.into_choice(is_external, source)?,
            load,
            groups,
            generators,
            postgres: self.postgres.into_postgres(settings, servers, source),
            storage,
            telemetry: telemetry(&self.telemetry)?,
            between: self.between.into_between(is_external),
            probe: self.probe.into_stages(is_external)?,
            crash: self.crash.map(|crash| crash.into_options(is_external)).transpose()?,
            planted: planted.unwrap_or_default(),
        })
    }
}

fn telemetry(table: &TelemetryTable) -> Result<Telemetry, Complaint> {
    let interval = table.interval.unwrap_or(Span::from_secs(1));
    if interval.0.as_millis() < 100 {
        return Err(Complaint::new(format!("`telemetry.interval` is {interval}"))
            .with_help("the shortest interval is 100ms: watching must not become the load"));
    }
    let wait_events = table.wait_events.unwrap_or(Span(Duration::from_millis(100)));
    if !wait_events.0.is_zero() && wait_events.0.as_millis() < 10 {
        return Err(Complaint::new(format!("`telemetry.wait_events` is {wait_events}"))
            .with_help("the shortest time between looks is 10ms; \"0s\" leaves them out"));
    }
    Ok(Telemetry {
        interval,
        fsync: table.fsync.unwrap_or(Span::from_secs(2)),
        wait_events,
        statements: table.statements,
        buffercache: table.buffercache,
        keep_serials: table.keep_serials,
    })
}
