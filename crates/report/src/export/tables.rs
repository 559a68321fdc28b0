//! Rows of the exported tables. docs/export.md lists the columns.

use pgdyno_model::measurement::{GeneratorMeasurement, Measurement, ScriptMeasurement};
use pgdyno_model::{Latencies, TrialRecord};

use super::table::{Column, Kind, TableName, Value};
use super::{Export, ExportError, redaction};
use pgdyno_analysis::TrialState;

use Kind::{Integer, Real, Text};

const TRIALS: &[(&str, Kind)] = &[
    ("trial", Integer),
    ("block", Integer),
    ("treatment", Integer),
    ("treatment_label", Text),
    ("repeat", Integer),
    ("state", Text),
    ("failure", Text),
    ("failure_kind", Text),
    ("started_at", Text),
    ("measured_at", Text),
    ("warm_up_s", Real),
    ("measured_s", Real),
    ("transactions", Integer),
    ("failed", Integer),
    ("tps", Real),
    ("max_rate", Real),
    ("latency_us_mean", Real),
    ("latency_us_p50", Real),
    ("latency_us_p95", Real),
    ("latency_us_p99", Real),
    ("latency_us_max", Real),
    ("latency_us_stddev", Real),
    ("generator_cpu_s", Real),
    ("server_version_num", Integer),
    ("thinned_at", Text),
    ("telemetry_every_s", Integer),
    ("commits_judged", Integer),
    ("commits_early", Integer),
];

const SECONDS: &[(&str, Kind)] = &[
    ("trial", Integer),
    ("t_s", Integer),
    ("length_s", Real),
    ("transactions", Integer),
    ("failed", Integer),
    ("tps", Real),
    ("latency_us_p50", Real),
    ("latency_us_p95", Real),
    ("latency_us_p99", Real),
    ("latency_us_max", Real),
];

const TELEMETRY: &[(&str, Kind)] = &[
    ("trial", Integer),
    ("probe", Text),
    ("t_s", Real),
    ("name", Text),
    ("unit", Text),
    ("kind", Text),
    ("value", Real),
];

const STATEMENTS: &[(&str, Kind)] = &[
    ("trial", Integer),
    ("script", Integer),
    ("script_name", Text),
    ("statement", Integer),
    ("line", Integer),
    ("text", Text),
    ("executions", Integer),
    ("failed", Integer),
    ("latency_us_mean", Real),
    ("latency_us_p50", Real),
    ("latency_us_p95", Real),
    ("latency_us_p99", Real),
    ("latency_us_max", Real),
    ("latency_us_stddev", Real),
];

const GENERATORS: &[(&str, Kind)] = &[
    ("trial", Integer),
    ("generator", Text),
    ("clients", Integer),
    ("threads", Integer),
    ("transactions", Integer),
    ("failed", Integer),
    ("latency_us_mean", Real),
    ("latency_us_p50", Real),
    ("latency_us_p99", Real),
    ("cpu_s", Real),
    ("busiest_thread", Real),
    ("start_skew_us", Real),
    ("clock_uncertainty_us", Real),
];

/// Takes a row of a table.
type TakeRow<'a> = dyn FnMut(TableName, &[Value]) -> Result<(), ExportError> + 'a;

impl Export<'_> {
    /// Columns of `table`. Trials have one more for each factor.
    pub(super) fn columns(&self, table: TableName) -> Vec<Column> {
        let fixed = match table {
            TableName::Trials => TRIALS,
            TableName::Seconds => SECONDS,
            TableName::Telemetry => TELEMETRY,
            TableName::Statements => STATEMENTS,
            TableName::Generators => GENERATORS,
        };
        let column = |(name, kind): &(&str, Kind)| Column { name: (*name).to_owned(), kind: *kind };
        let mut columns: Vec<Column> = fixed.iter().map(column).collect();
        if table == TableName::Trials {
            let factors = &self.report.view.plan.factors;
            columns.extend(
                factors
                    .iter()
                    .enumerate()
                    .map(|(n, factor)| Column { name: self.factor_column(n, factor), kind: Text }),
            );
        }
        columns
    }

    /// Name of the column of the `n`th factor: `level_` and the factor, with `_` for whatever needs
    /// quotes in SQL. Factors that come to one name are numbered.
    fn factor_column(&self, n: usize, factor: &str) -> String {
        let plain = |text: &str| -> String {
            let text = self.text(text);
            text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
        };
        let name = plain(factor);
        let earlier = &self.report.view.plan.factors[..n];
        match earlier.iter().filter(|other| plain(other) == name).count() {
            0 => format!("level_{name}"),
            count => format!("level_{name}_{}", count + 1),
        }
    }

    /// Hands every row of every table to `take`, trial by trial.
    pub(super) fn rows(&self, take: &mut TakeRow<'_>) -> Result<(), ExportError> {
        // The analysis has the attempts in this order too.
        let ids = self.store.trial_ids(&self.report.view.run.id)?;
        for (id, attempt) in ids.into_iter().zip(&self.report.view.trials) {
            let (_, trial) = self.store.trial(id)?;
            take(TableName::Trials, &self.trial(&trial, attempt.state))?;
            let Some(measurement) = &trial.measurement else { continue };
            if attempt.state != TrialState::Completed {
                continue;
            }
            let number = Value::from(trial.ordinal + 1);
            for row in seconds(&number, measurement) {
                take(TableName::Seconds, &row)?;
            }
            self.telemetry(&number, &trial, take)?;
            for (script, index) in measurement.scripts.iter().zip(1_u32..) {
                for row in self.statements(&number, index, script) {
                    take(TableName::Statements, &row)?;
                }
            }
            for (generator, place) in measurement.generators.iter().zip(1..) {
                take(TableName::Generators, &self.generator(&number, place, generator))?;
            }
        }
        Ok(())
    }

    fn trial(&self, trial: &TrialRecord, state: TrialState) -> Vec<Value> {
        let state: &str = match state {
            TrialState::Completed => "completed",
            TrialState::Failed => "failed",
            TrialState::Superfluous => "superfluous",
        };
        let treatment = self.report.view.treatments.get(trial.treatment);
        let label = treatment.map(|treatment| self.text(&treatment.label));
        // It may quote the server's log.
        let failure = trial.failure.as_ref().filter(|_| self.redaction.is_none());
        let m = trial.measurement.as_ref();
        let mut row = vec![
            Value::from(trial.ordinal + 1),
            trial.block.into(),
            (trial.treatment as u64 + 1).into(),
            label.into(),
            trial.repeat.into(),
            state.to_owned().into(),
            failure.map(ToString::to_string).into(),
            trial.failure.as_ref().map(|failure| <&str>::from(failure.kind).to_owned()).into(),
            trial.started_at.to_string().into(),
            trial.measured_at.map(|at| at.to_string()).into(),
            m.map(|m| m.warm_up_s).into(),
            m.map(|m| m.measured_s).into(),
            m.map(|m| m.transactions).into(),
            m.map(|m| m.failed).into(),
            m.and_then(Measurement::tps).into(),
            m.and_then(|m| m.search.as_ref()?.max_rate).into(),
        ];
        row.extend(m.map_or(vec![Value::Missing; 6], |m| latency(&m.latency).into()));
        row.push(m.map(|m| m.generator_cpu_s).into());
        row.push(trial.server.as_ref().map(|server| server.version_num).into());
        let thinned = self.report.view.thinned.last();
        row.push(thinned.map(|thinned| thinned.thinned_at.to_string()).into());
        row.push(thinned.map(|thinned| thinned.every_s).into());
        let flushes = m.and_then(|m| m.counters.flush_accounting.as_ref());
        row.push(flushes.map(|found| found.judged).into());
        row.push(flushes.map(|found| found.early).into());
        let level = |factor: &String| {
            let level = treatment.and_then(|treatment| treatment.factors.get(factor));
            Value::from(level.map(|level| self.text(&level.to_string())))
        };
        row.extend(self.report.view.plan.factors.iter().map(level));
        row
    }

    fn telemetry(
        &self,
        number: &Value,
        trial: &TrialRecord,
        take: &mut TakeRow<'_>,
    ) -> Result<(), ExportError> {
        for table in &trial.telemetry {
            let heads: Vec<[Value; 3]> = table
                .columns
                .iter()
                .map(|column| {
                    let kind = match column.kind {
                        pgdyno_model::telemetry::Kind::Counter => "counter",
                        pgdyno_model::telemetry::Kind::Gauge => "gauge",
                    };
                    [self.text(&column.name), column.unit.clone(), kind.to_owned()].map(Value::from)
                })
                .collect();
            let probe = Value::from(table.probe.clone());
            for sample in &table.samples {
                for ([name, unit, kind], value) in heads.iter().zip(&sample.values) {
                    let Some(value) = value else { continue };
                    let head =
                        [number, &probe, &sample.t_s.into(), name, unit, kind].map(Clone::clone);
                    let row = [&head[..], &[(*value).into()]].concat();
                    take(TableName::Telemetry, &row)?;
                }
            }
        }
        Ok(())
    }

    fn statements(
        &self,
        trial: &Value,
        index: u32,
        script: &ScriptMeasurement,
    ) -> impl Iterator<Item = Vec<Value>> {
        let name = Value::from(self.text(&script.name));
        script.statements.iter().zip(1_u32..).map(move |(statement, number)| {
            let mut row = vec![
                trial.clone(),
                index.into(),
                name.clone(),
                number.into(),
                statement.line.into(),
                self.text(&statement.text).into(),
                statement.latency.count().into(),
                statement.failed.into(),
            ];
            row.extend(latency(&statement.latency));
            row
        })
    }

    fn generator(
        &self,
        trial: &Value,
        place: usize,
        generator: &GeneratorMeasurement,
    ) -> [Value; 13] {
        let name = match self.redaction {
            Some(_) => redaction::generator(place),
            None => generator.name.clone(),
        };
        [
            trial.clone(),
            name.into(),
            generator.clients.into(),
            generator.threads.into(),
            generator.transactions.into(),
            generator.failed.into(),
            generator.latency_us_mean.into(),
            generator.latency_us_p50.into(),
            generator.latency_us_p99.into(),
            generator.cpu_s.into(),
            generator.busiest_thread.into(),
            generator.start_skew_us.into(),
            generator.clock_uncertainty_us.into(),
        ]
    }
}

fn seconds(trial: &Value, measurement: &Measurement) -> impl Iterator<Item = [Value; 10]> {
    measurement.series.iter().map(|second| {
        let tps = second.transactions as f64 / second.length_s;
        [
            trial.clone(),
            second.t_s.into(),
            second.length_s.into(),
            second.transactions.into(),
            second.failed.into(),
            tps.into(),
            second.latency_us_p50.into(),
            second.latency_us_p95.into(),
            second.latency_us_p99.into(),
            second.latency_us_max.into(),
        ]
    })
}

/// Mean, p50, p95, p99, the longest and the standard deviation, in microseconds.
fn latency(latencies: &Latencies) -> [Value; 6] {
    [
        latencies.mean_us(),
        latencies.quantile_us(0.5),
        latencies.quantile_us(0.95),
        latencies.quantile_us(0.99),
        latencies.max_us(),
        latencies.stddev_us(),
    ]
    .map(Value::from)
}
