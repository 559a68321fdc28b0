//! One attempt at a trial, and the servers that the attempts ran on.

use pgdyno_model::facts::{ServerFacts, Setting};
use pgdyno_model::measurement::{Measurement, ScriptMeasurement, Second};
use pgdyno_model::setting_value::as_shown;
use pgdyno_model::{Treatment, TrialRecord};

use super::view::{
    LatencyView, SecondView, ServerView, SettingView, StatementView, TrialState, TrialView,
};
use super::{growth, server_log, steadiness, telemetry};

pub(super) fn view(
    trial: &TrialRecord,
    treatment: &Treatment,
    state: TrialState,
    session: Option<usize>,
    server: Option<usize>,
    devices: &[&str],
) -> TrialView {
    let measured = trial.measurement.as_ref();
    let completed = measured.filter(|_| state != TrialState::Failed);
    let events = (!trial.server_log.is_empty())
        .then(|| server_log::events(&trial.server_log, trial.measured_at));
    TrialView {
        ordinal: trial.ordinal,
        block: trial.block,
        treatment: trial.treatment,
        factors: treatment.levels.clone(),
        repeat: trial.repeat,
        state,
        failure: trial.failure.clone(),
        session,
        server,
        started_at: trial.started_at,
        measured_at: trial.measured_at,
        tps: completed.and_then(Measurement::tps),
        transactions: measured.map(|m| m.transactions),
        failed: measured.map(|m| m.failed),
        failures: measured.map(|m| m.counters.failures.clone()).unwrap_or_default(),
        measured_s: measured.map(|m| m.measured_s),
        warm_up_s: measured.map(|m| m.warm_up_s),
        warm_up_transactions: measured.map(|m| m.counters.warm_up_transactions),
        connect_s: measured.map(|m| m.connect_s),
        aborted_clients: measured.map_or(0, |m| m.counters.aborted_clients),
        abort_reasons: measured.map(|m| m.counters.abort_reasons.clone()).unwrap_or_default(),
        flush_accounting: measured.and_then(|m| m.counters.flush_accounting.clone()),
        generator_cpus: measured
            .filter(|m| m.measured_s > 0.0)
            .map(|m| m.generator_cpu_s / m.measured_s),
        event_loop_lag: measured.and_then(|m| m.event_loop_lag),
        busiest_thread: measured.filter(|m| m.busiest_thread > 0.0).map(|m| m.busiest_thread),
        generator_limit: measured.and_then(Measurement::limited_by_generator),
        search: measured.and_then(|m| m.search.clone()),
        latency_us: measured.and_then(|m| LatencyView::new(&m.latency)),
        service_us: measured.and_then(|m| LatencyView::new(m.service.as_ref()?)),
        server_count: trial.server_count.clone(),
        statements: measured.map(statements).unwrap_or_default(),
        series: measured.map(seconds).unwrap_or_default(),
        telemetry: telemetry::rates(&trial.telemetry, devices),
        sizes: growth::relations(&trial.telemetry, measured),
        observer: telemetry::observer(&trial.telemetry),
        // A rate over time changes on purpose.
        steadiness: completed.filter(|_| !treatment.has_rate_stages()).and_then(|m| {
            steadiness::judge(
                &m.series,
                events.as_deref().unwrap_or_default(),
                &trial.telemetry,
                devices,
            )
        }),
        events,
    }
}

fn statements(measurement: &Measurement) -> Vec<StatementView> {
    let of_script = |script: &ScriptMeasurement| -> Vec<StatementView> {
        script.statements.iter().map(|s| StatementView::new(&script.name, s)).collect()
    };
    measurement.scripts.iter().flat_map(of_script).collect()
}

fn seconds(measurement: &Measurement) -> Vec<SecondView> {
    let places = places_of_statements(measurement);
    let second = |s: &Second| SecondView {
        statements: places.iter().map_while(|place| s.commands.get(*place).copied()).collect(),
        second: s.clone(),
        tps: (s.length_s > 0.0).then(|| s.transactions as f64 / s.length_s),
    };
    measurement.series.iter().map(second).collect()
}

/// Returns the place of each of [`statements`] among the commands of all scripts.
fn places_of_statements(measurement: &Measurement) -> Vec<usize> {
    let commands = measurement.scripts.iter().flat_map(|script| {
        let mut left = script.statements.len();
        script.commands.iter().map(move |command| {
            let is_statement = command.kind == "sql" && left > 0;
            left -= usize::from(is_statement);
            is_statement
        })
    });
    let places = commands.enumerate().filter(|(_, is_statement)| *is_statement);
    places.map(|(place, _)| place).collect()
}

/// Every distinct server: version and build. Its settings may differ from trial to trial.
#[derive(Default)]
pub(super) struct Servers(Vec<Server>);

/// A server's facts as its first trial had them, and each trial's ordinal and settings.
struct Server {
    facts: ServerFacts,
    trials: Vec<(u32, Vec<Setting>)>,
}

impl Servers {
    /// The index of the server that `trial` ran on.
    pub(super) fn add(&mut self, trial: &TrialRecord) -> Option<usize> {
        let facts = trial.server.as_ref()?;
        let same = |Server { facts: known, .. }: &Server| {
            known.version == facts.version
                && known.version_num == facts.version_num
                && known.build == facts.build
        };
        let index = self.0.iter().position(same).unwrap_or_else(|| {
            self.0.push(Server { facts: facts.clone(), trials: Vec::new() });
            self.0.len() - 1
        });
        self.0[index].trials.push((trial.ordinal, facts.settings.clone()));
        Some(index)
    }

    pub(super) fn views(self) -> Vec<ServerView> {
        self.0
            .into_iter()
            .map(|Server { facts, trials }| ServerView {
                version: facts.version,
                version_num: facts.version_num,
                build: facts.build,
                settings: settings(&trials),
                trials: trials.into_iter().map(|(ordinal, _)| ordinal).collect(),
            })
            .collect()
    }
}

/// Collects the settings by name over all trials. A setting that some trials lack has the values of
/// the trials that have it.
fn settings(trials: &[(u32, Vec<Setting>)]) -> Vec<SettingView> {
    let mut out: Vec<SettingView> = Vec::new();
    for (ordinal, settings) in trials {
        for s in settings {
            let index = out.iter().position(|known| known.name == s.name).unwrap_or_else(|| {
                let (name, unit, source) = (s.name.clone(), s.unit.clone(), s.source.clone());
                let (values, shown) = (Vec::new(), Vec::new());
                out.push(SettingView { name, unit, source, value: None, values, shown });
                out.len() - 1
            });
            let values = &mut out[index].values;
            match values.iter_mut().find(|(value, _)| *value == s.value) {
                Some((_, ordinals)) => ordinals.push(*ordinal),
                None => values.push((s.value.clone(), vec![*ordinal])),
            }
        }
    }
    for setting in &mut out {
        let show = |(value, _): &(String, _)| as_shown(value, setting.unit.as_deref());
        setting.shown = setting.values.iter().map(show).collect();
        if let [(value, ordinals)] = setting.values.as_slice()
            && ordinals.len() == trials.len()
        {
            setting.value = Some(value.clone());
            setting.values.clear();
        }
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    out
}
