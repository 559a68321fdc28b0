//! The file as TOML has it; serde places its errors.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pgdyno_model::experiment::{
    Between, Connect, Experiment, Length, Load, Order, Postgres, Protocol, Storage, Telemetry, WorkloadChoice,
};
use pgdyno_model::level::{Key, LevelValue};
use pgdyno_model::target::Secret;
use pgdyno_model::units::Span;
use serde::Deserialize;
use toml::Spanned;

use super::Source;
use super::error::Complaint;
use super::factors::Factors;

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
    storage: BTreeMap<String, StorageTable>,
    #[serde(default)]
    telemetry: TelemetryTable,
    #[serde(default)]
    between: BetweenTable,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExperimentTable {
    name: Option<String>,
    question: Option<String>,
    repeats: Option<NonZeroU32>,
    order: Option<Order>,
    seed: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadTable {
    name: Option<String>,
    scale: Option<NonZeroU32>,
    #[serde(default)]
    scripts: Vec<ScriptTable>,
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
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PostgresTable {
    bindir: Option<PathBuf>,
    version: Option<Major>,
    dsn: Option<String>,
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StorageTable {
    directory: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TelemetryTable {
    interval: Option<Span>,
    fsync: Option<Span>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct BetweenTable {
    vacuum: Option<bool>,
    checkpoint: Option<bool>,
    drop_caches: Option<bool>,
    pause: Option<Span>,
    #[serde(default)]
    command: Vec<String>,
}

/// The major version that `value` spells.
pub(crate) fn major(value: &LevelValue) -> Result<u32, Complaint> {
    let text = value.to_string();
    match text.parse::<u32>() {
        Ok(n) if (9..=99).contains(&n) => Ok(n),
        _ => Err(Complaint::new(format!("`{text}` is no major version of PostgreSQL; write it like \"17\""))),
    }
}

/// A PostgreSQL setting's value as the file has it.
pub(super) fn setting_value(name: &str, value: &toml::Value) -> Result<LevelValue, Complaint> {
    match value {
        toml::Value::String(s) => Ok(LevelValue::Text(s.clone())),
        toml::Value::Integer(n) => Ok(LevelValue::Int(*n)),
        toml::Value::Float(x) => Ok(LevelValue::Float(*x)),
        toml::Value::Boolean(b) => Ok(LevelValue::Bool(*b)),
        other => Err(Complaint::new(format!(
            "`{name}` wants a string, a number or a boolean, and was given {}",
            with_article(other.type_str())
        ))),
    }
}

fn with_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {noun}")
}

/// `a = { b = 1 }` as `("a.b", 1)`, for names with dots in them.
pub(super) fn flattened(map: &toml::Table) -> Vec<(String, &toml::Value)> {
    let mut flat = Vec::new();
    for (name, value) in map {
        match value {
            toml::Value::Table(inner) => {
                flat.extend(flattened(inner).into_iter().map(|(n, v)| (format!("{name}.{n}"), v)));
            }
            leaf => flat.push((name.clone(), leaf)),
        }
    }
    flat
}

impl File {
    /// All tables together, checked against each other.
    pub(super) fn into_experiment(self, source: &Source) -> Result<Experiment, Complaint> {
        let at = |path: PathBuf| if path.is_absolute() { path } else { source.base.join(path) };
        let length = match (self.load.duration, self.load.transactions) {
            (Some(_), Some(_)) => {
                return Err(Complaint::new("`load.duration` and `load.transactions` are both given")
                    .with_help("keep the one that shall end a trial"));
            }
            (None, Some(n)) => Length::Transactions(n.get()),
            (Some(duration), None) if duration.get_ref().0 < Duration::from_secs(1) => {
                return Err(Complaint::new(format!("`load.duration` is {}", duration.get_ref()))
                    .with_help("a trial needs at least a second: \"5s\", \"2m\"")
                    .at(duration.span()));
            }
            (duration, None) => Length::Duration(duration.map_or(Span::from_secs(5), Spanned::into_inner)),
        };
        let mut settings = BTreeMap::new();
        for (name, value) in flattened(&self.postgres.settings) {
            let value = setting_value(&name, value)?;
            settings.insert(name, value);
        }
        let mut storage: BTreeMap<String, Storage> = BTreeMap::new();
        for (name, table) in self.storage {
            storage.insert(name, Storage { directory: table.directory.map(at) });
        }
        if storage.is_empty() {
            storage.insert("disk".into(), Storage { directory: None });
        }
        if self.postgres.dsn.is_some() && (self.postgres.bindir.is_some() || !self.postgres.initdb.is_empty())
        {
            return Err(Complaint::new(
                "`postgres.dsn` names a running server, `bindir` and `initdb` make a new one",
            )
            .with_help("keep one of the two"));
        }
        let one = NonZeroU32::MIN;
        let factors = self.factors.into_factors()?;
        let given = self.postgres.dsn.is_some();
        let exclude = self
            .exclude
            .iter()
            .map(|e| exclusion(e.get_ref(), &factors).map_err(|complaint| complaint.at(e.span())))
            .collect::<Result<_, _>>()?;
        let clients = self.load.clients.unwrap_or(one);
        Ok(Experiment {
            name: self.experiment.name.unwrap_or_else(|| source.name.clone()),
            question: self.experiment.question,
            repeats: self.experiment.repeats.unwrap_or(NonZeroU32::MIN.saturating_add(2)),
            order: self.experiment.order.unwrap_or_default(),
            seed: self.experiment.seed.unwrap_or(1),
            exclude,
            factors,
            workload: WorkloadChoice {
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
            },
            postgres: Postgres {
                bindir: self.postgres.bindir.map(at),
                version: self.postgres.version.map(|m| m.0),
                dsn: self.postgres.dsn.map(Secret::new),
                initdb: self.postgres.initdb,
                settings,
                connect: self.postgres.connect.unwrap_or_default(),
                schema: self.postgres.schema,
            },
            storage,
            telemetry: telemetry(&self.telemetry)?,
            between: Between {
                vacuum: self.between.vacuum.unwrap_or(true),
                // On a server that is not ours a checkpoint is asked for only where the file says so.
                checkpoint: self.between.checkpoint.unwrap_or(!given),
                drop_caches: self.between.drop_caches.unwrap_or(false),
                pause: self.between.pause.unwrap_or_default(),
                command: self.between.command,
            },
        })
    }
}

fn telemetry(table: &TelemetryTable) -> Result<Telemetry, Complaint> {
    let interval = table.interval.unwrap_or(Span::from_secs(1));
    if interval.0.as_millis() < 100 {
        return Err(Complaint::new(format!("`telemetry.interval` is {interval}"))
            .with_help("the shortest interval is 100ms: watching must not become the load"));
    }
    Ok(Telemetry { interval, fsync: table.fsync.unwrap_or(Span::from_secs(2)) })
}

/// A folder is meant where the name has a slash; it is then taken from the file's folder.
fn workload_name(name: Option<String>, base: &Path) -> String {
    match name {
        None => "tpcb-like".into(),
        Some(n) if n.contains('/') && !n.starts_with('/') => base.join(n).display().to_string(),
        Some(n) => n,
    }
}

fn exclusion(
    table: &toml::Table,
    factors: &[pgdyno_model::experiment::Factor],
) -> Result<Vec<(String, LevelValue)>, Complaint> {
    let mut pairs = Vec::new();
    for (name, value) in flattened(table) {
        let value = setting_value(&name, value)?;
        let Some(factor) = factors.iter().find(|f| f.name == name) else {
            let names: Vec<&str> = factors.iter().map(|f| f.name.as_str()).collect();
            return Err(Complaint::new(format!("`[[exclude]]` names `{name}`, which is no factor"))
                .with_help(format!("the factors are {}", names.join(", "))));
        };
        // `"on"` in one place and `true` in the other mean the same level.
        let Some(level) = factor.levels.iter().find(|l| l.label.to_string() == value.to_string()) else {
            let labels: Vec<String> = factor.levels.iter().map(|l| l.label.to_string()).collect();
            return Err(Complaint::new(format!(
                "`[[exclude]]` names {name} = {value}, which is no level of it"
            ))
            .with_help(format!("its levels are {}", labels.join(", "))));
        };
        pairs.push((name, level.label.clone()));
    }
    if pairs.is_empty() {
        return Err(Complaint::new("an `[[exclude]]` is empty: it would leave out everything"));
    }
    Ok(pairs)
}

/// The value that a plain level of `key` may have.
pub(super) fn check_level(key: &Key, value: &LevelValue) -> Result<(), Complaint> {
    let text = value.to_string();
    match key {
        Key::Clients | Key::Threads | Key::Scale => match text.parse::<u32>() {
            Ok(n) if n > 0 => Ok(()),
            _ => {
                Err(Complaint::new(format!("`{text}` is no number of {}; it must be 1 or more", plural(key))))
            }
        },
        Key::Protocol if Protocol::parse(&text).is_none() => {
            let near = crate::nearest::nearest(&text, Protocol::NAMES);
            Err(Complaint::new(format!("unknown protocol `{text}`")).with_help(format!(
                "nearest is `{}`; allowed: {}",
                near[0],
                Protocol::NAMES.join(", ")
            )))
        }
        Key::PostgresVersion => major(value).map(drop),
        Key::Protocol | Key::Workload | Key::Storage | Key::Setting(_) => Ok(()),
    }
}

fn plural(key: &Key) -> &'static str {
    match key {
        Key::Threads => "threads",
        Key::Scale => "units of scale",
        _ => "clients",
    }
}
