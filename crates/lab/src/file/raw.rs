//! The file as TOML has it; serde places its errors.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pgdyno_model::experiment::{
    Between, Connect, Experiment, Length, Load, LoadOptions, Loading, OnError, Order, Postgres,
    Protocol, ReconnectLost, Telemetry, WorkloadChoice,
};
use pgdyno_model::level::{Key, LevelValue};
use pgdyno_model::target::Secret;
use pgdyno_model::units::Span;
use pgdyno_model::{Slo, Stopping};
use serde::Deserialize;
use toml::Spanned;

use super::error::Complaint;
use super::factors::{Factors, exclusion};
use super::levels::{check_level, flattened, major, set_option, setting_value};
use super::servers::{place_programs, take_servers};
use super::source::Source;
use super::storage::{Tables, storages};

/// Seeds the rows of data sets, unless the file says otherwise: runs of one experiment hold the
/// same data.
const DATA_SEED: u64 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    experiment: ExperimentTable,
    #[serde(default)]
    factors: Factors,
    #[serde(default)]
    exclude: Vec<Spanned<toml::Table>>,
    #[serde(default)]
    workload: WorkloadTable,
    #[serde(default)]
    load: LoadTable,
    #[serde(default)]
    postgres: PostgresTable,
    #[serde(default)]
    storage: Tables,
    #[serde(default)]
    telemetry: TelemetryTable,
    #[serde(default)]
    between: BetweenTable,
    #[serde(default)]
    probe: super::probe::ProbeTable,
    crash: Option<super::crash::CrashTable>,
    answer: Option<super::answer::AnswerTable>,
    /// Read by [`super::sizes`]; here only for what is wrong with it.
    #[serde(default, rename = "size")]
    _size: BTreeMap<String, super::size::SizeTable>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExperimentTable {
    name: Option<String>,
    question: Option<String>,
    repeats: Option<NonZeroU32>,
    order: Option<Order>,
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
        let precision = self.precision.as_ref();
        let precision = precision
            .map(|p| percentage("precision", p.get_ref()).map_err(|c| c.at(p.span())))
            .transpose()?;
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
        if self.order == Some(Order::Sequential) {
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
#[serde(deny_unknown_fields)]
struct WorkloadTable {
    name: Option<String>,
    scale: Option<NonZeroU32>,
    seed: Option<u64>,
    #[serde(default)]
    scripts: Vec<ScriptTable>,
    filler_compress_percentage: Option<Spanned<i64>>,
    partitions: Option<u32>,
    jobs: Option<NonZeroU32>,
    #[serde(default)]
    load_settings: toml::Table,
    keep_template: Option<bool>,
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
            partitions: self.partitions.unwrap_or(0),
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

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadTable {
    clients: Option<NonZeroU32>,
    threads: Option<NonZeroU32>,
    protocol: Option<Protocol>,
    duration: Option<Spanned<Span>>,
    transactions: Option<std::num::NonZeroU64>,
    warm_up: Option<Span>,
    rate: Option<Spanned<LevelValue>>,
    latency_limit: Option<Spanned<LevelValue>>,
    max_tries: Option<u32>,
    on_error: Option<OnError>,
    reconnect: Option<bool>,
    reconnect_lost: Option<ReconnectLost>,
    find: Option<Spanned<Quarry>>,
    slo: Option<Spanned<String>>,
    #[serde(default)]
    define: BTreeMap<Spanned<String>, LevelValue>,
}

/// What `load.find` can name.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Quarry {
    MaxRate,
}

impl LoadTable {
    /// What the rate must keep, where one is looked for.
    fn find(&self) -> Result<Option<Slo>, Complaint> {
        let (find, slo) = match (&self.find, &self.slo) {
            (None, None) => return Ok(None),
            (Some(find), Some(slo)) => (find, slo),
            (Some(find), None) => {
                return Err(Complaint::new("`load.find` is given without `load.slo`")
                    .with_help("what shall the rate keep? `slo = \"p99 < 20ms, failed < 0.1%\"`")
                    .at(find.span()));
            }
            (None, Some(slo)) => {
                return Err(Complaint::new("`load.slo` is given without `load.find`")
                    .with_help("`find = \"max_rate\"` looks for the highest rate that keeps it")
                    .at(slo.span()));
            }
        };
        let Quarry::MaxRate = find.get_ref();
        if self.rate.is_some() {
            return Err(Complaint::new("`load.rate` and `load.find` are both given")
                .with_help("a rate is offered or looked for: keep one of the two")
                .at(find.span()));
        }
        if self.transactions.is_some() {
            return Err(Complaint::new("`load.find` cannot be with `load.transactions`")
                .with_help("give `load.duration`: over so long the answer is confirmed, each step takes a quarter of it")
                .at(find.span()));
        }
        let parsed = slo.get_ref().parse::<Slo>().map_err(|e| {
            // The text begins after its quote; what has escapes in it is marked a little off.
            let begin = slo.span().start + 1;
            Complaint::new(e.what)
                .with_help("write it like \"p99 < 20ms, failed < 0.1%\"")
                .at(begin + e.at.start..begin + e.at.end)
        })?;
        Ok(Some(parsed))
    }

    /// What of it goes beyond the scripts.
    fn options(&mut self) -> Result<LoadOptions, Complaint> {
        let mut options = LoadOptions::default();
        for (key, value) in
            [(Key::Rate, self.rate.take()), (Key::LatencyLimit, self.latency_limit.take())]
        {
            if let Some(value) = value {
                let (span, value) = (value.span(), value.into_inner());
                check_level(&key, &value).map_err(|c| c.at(span))?;
                set_option(&mut options, &key, &value);
            }
        }
        options.max_tries = self.max_tries.unwrap_or(options.max_tries);
        options.on_error = self.on_error.unwrap_or_default();
        options.reconnect = self.reconnect.unwrap_or_default();
        options.reconnect_lost = self.reconnect_lost.unwrap_or_default();
        for (name, value) in std::mem::take(&mut self.define) {
            if !pgdyno_engine::script::is_variable_name(name.get_ref()) {
                return Err(Complaint::new(format!(
                    "`{}` cannot be a variable's name",
                    name.get_ref()
                ))
                .with_help("letters, digits and underscores, no digit first")
                .at(name.span()));
            }
            let text = match value {
                LevelValue::Bool(b) => b.to_string(),
                // With a point, so that scripts find a double.
                LevelValue::Float(x) => format!("{x:?}"),
                LevelValue::Int(_) | LevelValue::Text(_) => value.to_string(),
            };
            options.define.insert(name.into_inner(), text);
        }
        Ok(options)
    }
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
#[serde(deny_unknown_fields)]
struct PostgresTable {
    bindir: Option<PathBuf>,
    version: Option<Major>,
    dsn: Option<String>,
    alter_system: Option<bool>,
    #[serde(default)]
    initdb: Vec<String>,
    #[serde(default)]
    settings: toml::Table,
    connect: Option<Connect>,
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
#[serde(deny_unknown_fields)]
struct TelemetryTable {
    interval: Option<Span>,
    fsync: Option<Span>,
    wait_events: Option<Span>,
    statements: Option<bool>,
    buffercache: Option<bool>,
    keep_serials: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct BetweenTable {
    vacuum: Option<bool>,
    checkpoint: Option<bool>,
    drop_caches: Option<bool>,
    prewarm: Option<bool>,
    trim: Option<bool>,
    pause: Option<Span>,
    #[serde(default)]
    command: Vec<String>,
}

impl File {
    /// All tables together, checked against each other.
    pub(super) fn into_experiment(mut self, source: &Source) -> Result<Experiment, Complaint> {
        let at = |path: PathBuf| if path.is_absolute() { path } else { source.base.join(path) };
        let find = self.load.find()?;
        let options = self.load.options()?;
        let length = match (self.load.duration, self.load.transactions) {
            (Some(_), Some(_)) => {
                return Err(Complaint::new(
                    "`load.duration` and `load.transactions` are both given",
                )
                .with_help("keep the one that shall end a trial"));
            }
            (None, Some(n)) => Length::Transactions(n.get()),
            (Some(duration), None) if duration.get_ref().0 < Duration::from_secs(1) => {
                return Err(Complaint::new(format!("`load.duration` is {}", duration.get_ref()))
                    .with_help("a trial needs at least a second: \"5s\", \"2m\"")
                    .at(duration.span()));
            }
            (duration, None) => {
                Length::Duration(duration.map_or(Span::from_secs(5), Spanned::into_inner))
            }
        };
        let mut settings = BTreeMap::new();
        for (name, value) in flattened(&self.postgres.settings) {
            let value = setting_value(&name, value)?;
            settings.insert(name, value);
        }
        let storage = storages(self.storage, &at, self.between.trim.unwrap_or(false))?;
        if self.between.prewarm == Some(true) && self.between.drop_caches == Some(true) {
            return Err(Complaint::new(
                "`between.prewarm` and `between.drop_caches` are both asked for",
            )
            .with_help("a trial begins warm or cold: keep one of the two"));
        }
        let mut factors = self.factors.into_factors()?;
        let servers = take_servers(&mut factors);
        place_programs(&mut factors, at);
        let given = self.postgres.dsn.is_some() || !servers.is_empty();
        if given && (self.postgres.bindir.is_some() || !self.postgres.initdb.is_empty()) {
            return Err(Complaint::new(
                "`postgres.dsn` names a running server, `bindir` and `initdb` make a new one",
            )
            .with_help("keep one of the two"));
        }
        if self.postgres.alter_system == Some(true) && !given {
            return Err(Complaint::new(
                "`postgres.alter_system` is for servers that pgdyno does not own, and no `postgres.dsn` names one",
            )
            .with_help("leave it out: settings of a server that pgdyno makes are changed in any case"));
        }
        let one = NonZeroU32::MIN;
        let exclude = self
            .exclude
            .iter()
            .map(|e| exclusion(e.get_ref(), &factors).map_err(|complaint| complaint.at(e.span())))
            .collect::<Result<_, _>>()?;
        let planted = self.crash.as_mut().map(|crash| crash.take_planted(&factors)).transpose()?;
        let clients = self.load.clients.unwrap_or(one);
        let (repeats, stopping) = self.experiment.repeats()?;
        let margin = self
            .experiment
            .margin
            .map(|m| percentage("margin", m.get_ref()).map_err(|c| c.at(m.span())));
        Ok(Experiment {
            answer: self.answer.map(super::answer::AnswerTable::into_answer).transpose()?,
            margin: margin.transpose()?,
            stopping,
            name: self.experiment.name.unwrap_or_else(|| source.name.clone()),
            question: self.experiment.question,
            repeats,
            order: self.experiment.order.unwrap_or_default(),
            seed: self.experiment.seed,
            exclude,
            factors,
            workload: WorkloadChoice {
                seed: self.workload.seed.unwrap_or(DATA_SEED),
                loading: self.workload.loading(given)?,
                keep_template: match (self.workload.keep_template, given) {
                    (Some(true), true) => {
                        return Err(Complaint::new(
                            "`workload.keep_template` keeps a cluster, and `postgres.dsn` names one that is not pgdyno's",
                        )
                        .with_help("keep one of the two"));
                    }
                    (keep, _) => keep.unwrap_or(false),
                },
                name: workload_name(self.workload.name, &source.base),
                scale: self.workload.scale.unwrap_or(one),
                scripts: self
                    .workload
                    .scripts
                    .into_iter()
                    .map(|s| (at(s.file), s.weight.unwrap_or(1)))
                    .collect(),
            },
            load: Load {
                clients,
                threads: self.load.threads.unwrap_or(one),
                protocol: self.load.protocol.unwrap_or_default(),
                length,
                warm_up: self.load.warm_up.unwrap_or(Span::from_secs(1)),
                options,
                find,
            },
            postgres: Postgres {
                bindir: self.postgres.bindir.map(at),
                version: self.postgres.version.map(|m| m.0),
                dsn: self.postgres.dsn.map(Secret::new),
                servers,
                alter_system: self.postgres.alter_system.unwrap_or(false),
                initdb: self.postgres.initdb,
                settings,
                connect: self.postgres.connect.unwrap_or_default(),
                schema: self.postgres.schema,
            },
            storage,
            telemetry: telemetry(&self.telemetry)?,
            between: Between {
                vacuum: self.between.vacuum.unwrap_or(true),
                // On a server that is not ours a checkpoint is asked for only where the file says
                // so.
                checkpoint: self.between.checkpoint.unwrap_or(!given),
                drop_caches: self.between.drop_caches.unwrap_or(false),
                prewarm: self.between.prewarm.unwrap_or(false),
                pause: self.between.pause.unwrap_or_default(),
                command: self.between.command,
            },
            probe: self.probe.into_stages(given)?,
            crash: self.crash.map(|crash| crash.into_options(given)).transpose()?,
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
        statements: table.statements.unwrap_or(false),
        buffercache: table.buffercache.unwrap_or(false),
        keep_serials: table.keep_serials.unwrap_or(false),
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
