//! The whole load as a worker is told of it, and the worker's share.

use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use pgdyno_engine::script::{Script, ScriptError, ScriptSource, Value, VariableValue};
use pgdyno_engine::{LoadGroup, LoadSpec, ReactorChoice, WeightedScript, WindowEnd};
use pgdyno_model::experiment::{Length, LoadOptions, Protocol};
use pgdyno_model::load_rate::{LoadRate, RateStage};
use pgdyno_model::{ClientGroup, Pauses};
use serde::{Deserialize, Serialize};

use super::servers::ServersData;

/// Why a description is no load.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A script cannot be parsed.
    #[error("{0}")]
    Script(ScriptError),
    /// A reactor that this version does not know.
    #[error("unknown reactor `{0}`")]
    Reactor(String),
}

/// A [`WeightedScript`].
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ScriptText {
    name: String,
    text: String,
    is_old: bool,
    weight: u32,
    pauses: Pauses,
}

/// A variable's value. A double travels as its bits: JSON has neither infinity nor NaN.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Variable {
    Null,
    Bool(bool),
    Int(i64),
    Double(u64),
    Text(Vec<u8>),
}

impl From<&VariableValue> for Variable {
    fn from(value: &VariableValue) -> Self {
        match (value, value.value()) {
            (VariableValue::Text(text), _) => Self::Text(text.to_vec()),
            (_, Some(Value::Bool(b))) => Self::Bool(b),
            (_, Some(Value::Int(n))) => Self::Int(n),
            (_, Some(Value::Double(x))) => Self::Double(x.to_bits()),
            (_, Some(Value::Null) | None) => Self::Null,
        }
    }
}

impl From<&Variable> for VariableValue {
    fn from(variable: &Variable) -> Self {
        match variable {
            Variable::Null => Value::Null.into(),
            Variable::Bool(b) => Value::Bool(*b).into(),
            Variable::Int(n) => Value::Int(*n).into(),
            Variable::Double(bits) => Value::Double(f64::from_bits(*bits)).into(),
            Variable::Text(text) => Self::Text(text.as_slice().into()),
        }
    }
}

/// A [`LoadRate`], its figures as bits: exact, where JSON's numbers may be off in the last digit.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Rate {
    Constant(u64),
    Stages(Vec<(u32, u64, u64)>),
}

impl From<&LoadRate> for Rate {
    fn from(rate: &LoadRate) -> Self {
        let stage = |s: &RateStage| (s.seconds, s.from.to_bits(), s.to.to_bits());
        match rate {
            LoadRate::Constant(rate) => Self::Constant(rate.to_bits()),
            LoadRate::Stages(stages) => Self::Stages(stages.iter().map(stage).collect()),
        }
    }
}

impl From<&Rate> for LoadRate {
    fn from(rate: &Rate) -> Self {
        let stage = |&(seconds, from, to): &(u32, u64, u64)| RateStage {
            seconds,
            from: f64::from_bits(from),
            to: f64::from_bits(to),
        };
        match rate {
            Rate::Constant(bits) => Self::Constant(f64::from_bits(*bits)),
            Rate::Stages(stages) => Self::Stages(stages.iter().map(stage).collect()),
        }
    }
}

/// A [`LoadGroup`].
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Group {
    /// The group without its rate.
    group: ClientGroup,
    rate: Option<Rate>,
    servers: Option<ServersData>,
}

impl From<&LoadGroup> for Group {
    fn from(load: &LoadGroup) -> Self {
        Self {
            group: ClientGroup { rate: None, ..load.group.clone() },
            rate: load.group.rate.as_ref().map(Rate::from),
            servers: load.servers.as_ref().map(ServersData::new),
        }
    }
}

impl From<&Group> for LoadGroup {
    fn from(sent: &Group) -> Self {
        let rate = sent.rate.as_ref().map(LoadRate::from);
        Self {
            group: ClientGroup { rate, ..sent.group.clone() },
            servers: sent.servers.as_ref().map(ServersData::read),
        }
    }
}

/// The whole load, and which of its event loops a worker runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadDescription {
    servers: ServersData,
    scripts: Vec<ScriptText>,
    clients: NonZeroU32,
    threads: NonZeroU32,
    protocol: Protocol,
    warm_up: Duration,
    length: Length,
    seed: u64,
    variables: Vec<(String, Variable)>,
    /// Without its rate.
    options: LoadOptions,
    rate: Option<Rate>,
    groups: Vec<Group>,
    /// Whether the worker reports messages of clients.
    pub logs_clients: bool,
    logs_failures: bool,
    logs_steps: bool,
    draws_as_pgbench: bool,
    ends_with_last_transaction: bool,
    reactor: String,
    /// Event loops that the worker runs.
    pub share: Range<u32>,
}

impl LoadDescription {
    /// Describes `spec` for a worker that runs the event loops `share`.
    pub fn new(spec: &LoadSpec, share: Range<u32>) -> Self {
        let script = |weighted: &WeightedScript| ScriptText {
            name: weighted.script.name.clone(),
            text: weighted.script.source.text.to_string(),
            is_old: weighted.script.source.is_old,
            weight: weighted.weight,
            pauses: weighted.pauses,
        };
        let variables = spec.variables.iter();
        Self {
            servers: ServersData::new(&spec.servers),
            scripts: spec.scripts.iter().map(script).collect(),
            clients: spec.clients,
            threads: spec.threads,
            protocol: spec.protocol,
            warm_up: spec.warm_up,
            length: spec.length,
            seed: spec.seed,
            variables: variables.map(|(name, value)| (name.clone(), value.into())).collect(),
            options: LoadOptions { rate: None, ..spec.options.clone() },
            rate: spec.options.rate.as_ref().map(Rate::from),
            groups: spec.groups.iter().map(Group::from).collect(),
            logs_clients: spec.client_log.is_some(),
            logs_failures: spec.log_failures,
            logs_steps: spec.log_steps,
            draws_as_pgbench: spec.draws_as_pgbench,
            ends_with_last_transaction: spec.window_end == WindowEnd::WithLastTransaction,
            reactor: <&str>::from(spec.reactor).to_owned(),
            share,
        }
    }

    /// Returns the whole load.
    pub fn read(&self) -> Result<LoadSpec, LoadError> {
        let script = |script: &ScriptText| {
            let source = ScriptSource { text: script.text.as_str().into(), is_old: script.is_old };
            let parsed = Script::from_source(&script.name, &source).map_err(LoadError::Script)?;
            let (weight, pauses) = (script.weight, script.pauses);
            Ok(WeightedScript { script: Arc::new(parsed), weight, pauses })
        };
        let scripts = self.scripts.iter().map(script).collect::<Result<_, LoadError>>()?;
        let variables = self.variables.iter();
        Ok(LoadSpec {
            clients: self.clients,
            threads: self.threads,
            protocol: self.protocol,
            warm_up: self.warm_up,
            length: self.length,
            seed: self.seed,
            variables: variables.map(|(name, value)| (name.clone(), value.into())).collect(),
            options: LoadOptions {
                rate: self.rate.as_ref().map(LoadRate::from),
                ..self.options.clone()
            },
            groups: self.groups.iter().map(LoadGroup::from).collect(),
            log_failures: self.logs_failures,
            log_steps: self.logs_steps,
            draws_as_pgbench: self.draws_as_pgbench,
            window_end: match self.ends_with_last_transaction {
                true => WindowEnd::WithLastTransaction,
                false => WindowEnd::AtTime,
            },
            reactor: ReactorChoice::parse(&self.reactor)
                .ok_or_else(|| LoadError::Reactor(self.reactor.clone()))?,
            ..LoadSpec::new(self.servers.read(), scripts)
        })
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_model::target::{Address, Target};
    use pgdyno_model::units::Span;

    use super::*;

    #[test]
    fn groups_and_rates_arrive_to_the_last_digit() {
        let target =
            |host: &str| Target::new(Address::Tcp { host: host.into(), port: 1 }, "me", "bench");
        let script = Arc::new(Script::parse("one", "SELECT 1;").unwrap());
        let (keying_time, think_time) = (Span::from_secs(18), Span(Duration::from_nanos(7)));
        let pauses = Pauses { keying_time, think_time };
        let scripts = vec![WeightedScript { script, weight: 1, pauses }; 2];
        let third = LoadRate::Constant(1e3 / 3.0);
        let stages: LoadRate = "0.1 for 1m, 0.3 to 0.7 for 3s".parse().unwrap();
        let group = |name: &str, rate: &LoadRate| ClientGroup {
            rate: Some(rate.clone()),
            think_time: Span::from_secs(1),
            server: Some("replica".into()),
            ..ClientGroup::new(name, 1)
        };
        let groups = vec![
            LoadGroup { group: group("a", &third), servers: Some(target("replica").into()) },
            LoadGroup { group: group("b", &stages), servers: None },
        ];
        let spec = LoadSpec {
            options: LoadOptions { rate: Some(stages), max_tries: 3, ..LoadOptions::default() },
            ..LoadSpec::new(target("db"), scripts).with_groups(groups)
        };
        let sent = serde_json::to_string(&LoadDescription::new(&spec, 0..1)).unwrap();
        let read = serde_json::from_str::<LoadDescription>(&sent).unwrap().read().unwrap();
        assert_eq!((&read.groups, &read.options), (&spec.groups, &spec.options));
        assert_eq!(read.scripts[1].pauses, pauses);
        assert_eq!((read.clients, read.servers), (spec.clients, spec.servers));
    }
}
