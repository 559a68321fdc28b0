//! The whole load as a worker is told of it, and the worker's share.

use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use pgdyno_engine::script::{Script, ScriptError, ScriptSource, Value, VariableValue};
use pgdyno_engine::{LoadSpec, ReactorChoice, WeightedScript, WindowEnd};
use pgdyno_model::experiment::{Length, LoadOptions, Protocol};
use pgdyno_model::load_rate::LoadRate;
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

/// A script's name, text and weight.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ScriptText {
    name: String,
    text: String,
    is_old: bool,
    weight: u32,
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
    options: LoadOptions,
    /// Bits of a constant rate: exact, where JSON's numbers may be off in the last digit.
    rate: Option<u64>,
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
            options: spec.options.clone(),
            rate: match spec.options.rate {
                Some(LoadRate::Constant(rate)) => Some(rate.to_bits()),
                _ => None,
            },
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
            Ok(WeightedScript { script: Arc::new(parsed), weight: script.weight })
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
            options: match self.rate.map(f64::from_bits).map(LoadRate::Constant) {
                rate @ Some(_) => LoadOptions { rate, ..self.options.clone() },
                None => self.options.clone(),
            },
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
