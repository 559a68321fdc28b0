//! The file as TOML has it; serde places its errors.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pgdyno_model::Stopping;
use pgdyno_model::experiment::{
    Between, Connect, Experiment, Loading, Order, Postgres, Telemetry, WorkloadChoice,
};
use pgdyno_model::level::LevelValue;
use pgdyno_model::target::Secret;
use pgdyno_model::units::Span;
use serde::Deserialize;
use toml::Spanned;

use super::error::{Complaint, read_at};
use super::factors::{Factors, exclusion};
use super::levels::{flattened, major, setting_value};
use super::load::LoadTable;
use super::servers::{place_programs, take_servers};
use super::source::Source;
use super::storage::{Tables, storages};

/// Seeds the rows of data sets, unless the file says otherwise: runs of one experiment hold the
/// same data.
const DATA_SEED: u64 = 1;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    experiment: ExperimentTable,
    factors: Factors,
    exclude: Vec<Spanned<toml::Table>>,
    workload: WorkloadTable,
    load: LoadTable,
    postgres: PostgresTable,
    storage: Tables,
    telemetry: TelemetryTable,
    between: BetweenTable,
    probe: super::probe::ProbeTable,
    crash: Option<super::crash::CrashTable>,
    answer: Option<super::answer::AnswerTable>,
    /// Read by [`super::sizes`]; here only for what is wrong with it.
    #[serde(rename = "size")]
    _size: BTreeMap<String, super::size::SizeTable>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ExperimentTable {
    name: Option<String>,
    question: Option<String>,
    repeats: Option<NonZeroU32>,
    order: Order,
    seed: Option<u64>,
    margin: Option<Spanned<String>>,
    precision: Option<Spanned<String>>,
    budget: Option<Spanned<Span>>,
    max_repeats: Option<Spanned<NonZeroU32>>,
}

impl ExperimentTable {
    /// The most repeats, and when the run ends before them.
    fn repeats(&self) -> Result<(NonZeroU32, Option<Stopping>), Complaint> {
        /// Where repeats are not fixed: the least, and the most.
        const RANGE: (u32, u32) = (4, 30);
        let precision = self.precision.clone();
        let precision = precision.map(|p| read_at(p, |text| percentage("precision", &text)));
        let precision = precision.transpose()?;
        let Some(first) =
            self.precision.as_ref().map(Spanned::span).or(self.budget.as_ref().map(Spanned::span))
        else {
            if let Some(most) = &self.max_repeats {
                return Err(Complaint::new(
                    "`max_repeats` is given without `precision` or `budget`",
                )
                .with_help("`repeats` alone is how often every treatment is run")
                .at(most.span()));
            }
            return Ok((self.repeats.unwrap_or(NonZeroU32::MIN.saturating_add(2)), None));
        };
        if self.order == Order::Sequential {
            return Err(Complaint::new(
                "`order = \"sequential\"` leaves no blocks after which a run could end",
            )
            .with_help("leave `order` out, or give `repeats` alone")
            .at(first));
        }
        if let Some(budget) = self.budget.as_ref().filter(|b| b.get_ref().0.is_zero()) {
            return Err(Complaint::new("`budget` is no time at all")
                .with_help("such as \"30m\"")
                .at(budget.span()));
        }
        let floor = self.repeats.map_or(RANGE.0, NonZeroU32::get);
        let most = self.max_repeats.as_ref();
        let ceiling = most.map_or(RANGE.1.max(floor), |most| most.get_ref().get());
        if floor < 2 {
            return Err(Complaint::new("`repeats = 1` is too few for a run that ends by itself")
                .with_help("its first look needs at least 2 repeats; 4 unless said otherwise")
                .at(first));
        }
        if ceiling < floor {
            return Err(Complaint::new(format!(
                "`max_repeats` is {ceiling}, and at least {floor} repeats are run"
            ))
            .with_help("give less `repeats`, or more `max_repeats`")
            .at(most.map_or(first, Spanned::span)));
        }
        let budget = self.budget.as_ref().map(|b| *b.get_ref());
        let ceiling = NonZeroU32::MIN.saturating_add(ceiling - 1);
        Ok((ceiling, Some(Stopping { floor, ceiling: ceiling.get(), precision, budget })))
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WorkloadTable {
    name: Option<String>,
    scale: Option<NonZeroU32>,
    seed: Option<u64>,
    scripts: Vec<ScriptTable>,
    filler_compress_percentage: Option<Spanned<i64>>,
    partitions: u32,
    jobs: Option<NonZeroU32>,
    load_settings: toml::Table,
    keep_template: bool,
}

impl WorkloadTable {
    /// How its rows are made and loaded; `given`: on a server that is not pgdyno's.
    fn loading(&mut self, given: bool) -> Result<Loading, Complaint> {
        let percentage = match self.filler_compress_percentage.take() {
            None => Loading::default().filler_compress_percentage,
            Some(given) => {
                u8::try_from(*given.get_ref()).ok().filter(|p| *p <= 100).ok_or_else(|| {
                    Complaint::new(format!("{}% of filler cannot be blanks", given.get_ref()))
                        .with_help("0 to 100: 100 is what pgbench writes, 0 hardly shrinks")
                        .at(given.span())
                })?
            }
        };
        if given && !self.load_settings.is_empty() {
            return Err(Complaint::new(
                "`workload.load_settings` changes a server, and `postgres.dsn` names one that is not pgdyno's",
            )
            .with_help("keep one of the two"));
        }
        let mut settings = BTreeMap::new();
        for (name, value) in flattened(&self.load_settings) {
            let value = setting_value(&name, value)?.to_string();
            settings.insert(name, value);
        }
        Ok(Loading {
            filler_compress_percentage: percentage,
            partitions: self.partitions,
            jobs: self.jobs,
            settings,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptTable {
    file: PathBuf,
    weight: Option<u32>,
}

/// A share from its text in percent: 0.03 from `3%`.
fn percentage(name: &str, text: &str) -> Result<f64, Complaint> {
    let percent =
        text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match percent {
        Some(percent) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        _ => Err(Complaint::new(format!("`{text}` is no {name}"))
            .with_help("a percentage above 0 and below 100, such as \"3%\"")),
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PostgresTable {
    bindir: Option<PathBuf>,
    version: Option<Major>,
    dsn: Option<String>,
    alter_system: bool,
    initdb: Vec<String>,
    settings: toml::Table,
    connect: Connect,
    schema: Option<String>,
}

/// A major version: `17` or `"17"`.
struct Major(u32);

impl<'de> Deserialize<'de> for Major {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = LevelValue::deserialize(from)?;
        major(&value).map(Self).map_err(|c| serde::de::Error::custom(c.what))
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TelemetryTable {
    interval: Option<Span>,
    fsync: Option<Span>,
    wait_events: Option<Span>,
    statements: bool,
    buffercache: bool,
    keep_serials: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BetweenTable {
    vacuum: Option<bool>,
    checkpoint: Option<bool>,
    drop_caches: bool,
    prewarm: bool,
    trim: bool,
    pause: Span,
    command: Vec<String>,
}

impl WorkloadTable {
    /// Returns the workload; `is_external`: on a server that is not pgdyno's.
    fn into_choice(
        mut self,
        is_external: bool,
        source: &Source,
    ) -> Result<WorkloadChoice, Complaint> {
        let loading = self.loading(is_external)?;
        if self.keep_template && is_external {
            return Err(Complaint::new(
                "`workload.keep_template` keeps a cluster, and `postgres.dsn` names one that is not pgdyno's",
            )
            .with_help("keep one of the two"));
        }
        let script = |s: ScriptTable| (absolute(s.file, source), s.weight.unwrap_or(1));
        Ok(WorkloadChoice {
            seed: self.seed.unwrap_or(DATA_SEED),
            loading,
            keep_template: self.keep_template,
            name: workload_name(self.name, &source.base),
            scale: self.scale.unwrap_or(NonZeroU32::MIN),
            scripts: self.scripts.into_iter().map(script).collect(),
        })
    }
}

impl PostgresTable {
    /// Checks that keys for external servers and keys for pgdyno's own do not meet.
    fn check(&self, is_external: bool) -> Result<(), Complaint> {
        if is_external && (self.bindir.is_some() || !self.initdb.is_empty()) {
            return Err(Complaint::new(
                "`postgres.dsn` names a running server, `bindir` and `initdb` make a new one",
            )
            .with_help("keep one of the two"));
        }
        if self.alter_system && !is_external {
            return Err(Complaint::new(
                "`postgres.alter_system` is for servers that pgdyno does not own, and no `postgres.dsn` names one",
            )
            .with_help("leave it out: settings of a server that pgdyno makes are changed in any case"));
        }
        Ok(())
    }

    /// Returns the values of `postgres.settings`.
    fn settings(&self) -> Result<BTreeMap<String, LevelValue>, Complaint> {
        let settings = flattened(&self.settings).into_iter();
        settings.map(|(name, value)| setting_value(&name, value).map(|v| (name, v))).collect()
    }

    /// Returns the servers; `servers` are those that factors choose among.
    fn into_postgres(
        self,
        settings: BTreeMap<String, LevelValue>,
        servers: BTreeMap<String, Secret>,
        source: &Source,
    ) -> Postgres {
        Postgres {
            bindir: self.bindir.map(|path| absolute(path, source)),
            version: self.version.map(|m| m.0),
            dsn: self.dsn.map(Secret::new),
            servers,
            alter_system: self.alter_system,
            initdb: self.initdb,
            settings,
            connect: self.connect,
            schema: self.schema,
        }
    }
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

/// Returns `path`, which starts from the folder of `source`.
fn absolute(path: PathBuf, source: &Source) -> PathBuf {
    if path.is_absolute() { path } else { source.base.join(path) }
}

impl File {
    /// Returns the experiment, after checking tables against each other.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place where that is known.
    pub(super) fn into_experiment(mut self, source: &Source) -> Result<Experiment, Complaint> {
        let at = |path: PathBuf| absolute(path, source);
        let load = self.load.into_load()?;
        let settings = self.postgres.settings()?;
        let storage = storages(self.storage, &at, self.between.trim)?;
        self.between.check()?;
        let mut factors = self.factors.into_factors()?;
        let servers = take_servers(&mut factors);
        place_programs(&mut factors, at);
        let is_external = self.postgres.dsn.is_some() || !servers.is_empty();
        self.postgres.check(is_external)?;
        let exclude = |table| read_at(table, |table| exclusion(&table, &factors));
        let exclude = self.exclude.into_iter().map(exclude).collect::<Result<_, _>>()?;
        let planted = self.crash.as_mut().map(|crash| crash.take_planted(&factors)).transpose()?;
        let (repeats, stopping) = self.experiment.repeats()?;
        let margin = self.experiment.margin.map(|m| read_at(m, |text| percentage("margin", &text)));
        Ok(Experiment {
            answer: self.answer.map(super::answer::AnswerTable::into_answer).transpose()?,
            margin: margin.transpose()?,
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

/// A folder is meant where the name has a slash; it is then taken from the file's folder.
fn workload_name(name: Option<String>, base: &Path) -> String {
    match name {
        None => "tpcb-like".into(),
        Some(n) if n.contains('/') && !n.starts_with('/') => base.join(n).display().to_string(),
        Some(n) => n,
    }
}
