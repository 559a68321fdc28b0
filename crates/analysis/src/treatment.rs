//! Treatments over their trials.

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_model::facts::ServerFacts;
use pgdyno_model::measurement::StatementMeasurement;
use pgdyno_model::telemetry::Table;
use pgdyno_model::{Latencies, Levels, Measurement, Treatment, TrialRecord};
use pgdyno_stats as stats;

use super::client_groups::GroupSamples;
use super::generators::GeneratorSamples;
use super::profile::Profile;
use super::rate_stages::StageSamples;
use super::rates::growth;
use super::view::{
    FsyncView, LatencyInterval, LatencyView, PERCENTILES, StatementView, TpsView, TreatmentView,
    TrialState,
};
use super::waits::Waits;
use crate::comparison::pairing::Pairing;
use crate::gate::Measure;

/// Samples of one treatment: the figures of its trials.
#[derive(Default)]
pub(super) struct TreatmentSamples {
    /// tps (or the maximum rate) of each completed trial, as (block, value).
    pub(super) tps: Vec<(u32, f64)>,
    /// tps of all transactions of each completed trial, where a script alone is compared.
    all_tps: Vec<f64>,
    /// Latency at each of [`PERCENTILES`] (microseconds) as (block, value), for trials with enough
    /// transactions.
    pub(super) percentiles: [Vec<(u32, f64)>; PERCENTILES.len()],
    /// Completed trials in which the generator may have been the limit (count).
    pub(super) generator_limited: usize,
    /// Names, weights and statements of its scripts.
    pub(super) scripts: BTreeSet<String>,
    /// Profile of each completed trial.
    pub(super) profiles: Vec<Profile>,
    /// Whether a server of its completed trials had fsync off.
    pub(super) fsync_off: bool,
    /// Whether the highest rate was looked for.
    searched: bool,
    latency: Latencies,
    service: Option<Latencies>,
    transactions: u64,
    failed: u64,
    failures: BTreeMap<String, u64>,
    /// Statements with the names of their scripts.
    statements: Vec<(String, StatementMeasurement)>,
    attempts_failed: usize,
    commits_wait: Option<bool>,
    sync_method: Option<String>,
    waits: Waits,
    generators: GeneratorSamples,
    groups: GroupSamples,
    stages: StageSamples,
    /// Flushes of WAL in trials whose telemetry counts them, and their time (seconds).
    wal_flushes: (f64, f64),
}

impl TreatmentSamples {
    pub(super) fn add(
        &mut self,
        trial: &TrialRecord,
        state: TrialState,
        treatment: &Treatment,
        devices: &[&str],
    ) {
        if state == TrialState::Failed {
            self.attempts_failed += 1;
        }
        let (TrialState::Completed, Some(m)) = (state, &trial.measurement) else { return };
        self.tps.extend(m.compared().map(|tps| (trial.block, tps)));
        self.all_tps.extend(m.headline.as_ref().and_then(|_| m.tps()));
        self.searched |= m.search.is_some();
        self.generator_limited += usize::from(m.limited_by_generator().is_some());
        for ((_, quantile), values) in PERCENTILES.iter().zip(&mut self.percentiles) {
            values.extend(percentile(m, *quantile).map(|us| (trial.block, us)));
        }
        self.waits.add(&trial.telemetry);
        self.generators.add(m);
        self.groups.add(trial.block, treatment, m);
        self.stages.add(treatment.options.rate_stages(), m);
        self.profiles.extend(Profile::new(trial.block, m, &trial.telemetry, devices));
        if let Some((flushes, seconds)) = wal_flushes(&trial.telemetry) {
            self.wal_flushes = (self.wal_flushes.0 + flushes, self.wal_flushes.1 + seconds);
        }
        self.latency.merge(&m.latency);
        if let Some(service) = &m.service {
            self.service.get_or_insert_with(Latencies::new).merge(service);
        }
        self.transactions += m.transactions;
        self.failed += m.failed;
        for (sqlstate, count) in &m.counters.failures {
            *self.failures.entry(sqlstate.clone()).or_default() += count;
        }
        for script in &m.scripts {
            let statements: Vec<&str> = script.statements.iter().map(|s| s.text.as_str()).collect();
            self.scripts.insert(format!(
                "{} × {}: {}",
                script.weight,
                script.name,
                statements.join(" ")
            ));
            for s in &script.statements {
                let same = |(name, known): &&mut (String, StatementMeasurement)| {
                    *name == script.name && known.line == s.line && known.text == s.text
                };
                if let Some((_, known)) = self.statements.iter_mut().find(same) {
                    known.failed += s.failed;
                    known.latency.merge(&s.latency);
                    known.first_byte.merge(&s.first_byte);
                } else {
                    self.statements.push((script.name.clone(), s.clone()));
                }
            }
        }
        if let Some(server) = &trial.server {
            self.fsync_off |= server.setting("fsync") == Some("off");
            self.commits_wait = commits_wait(server, treatment);
            self.sync_method = server.setting("wal_sync_method").map(str::to_owned);
        }
    }

    /// The (block, value) of `measure` in its trials.
    pub(super) fn values(&self, measure: Measure) -> &[(u32, f64)] {
        match PERCENTILES.iter().position(|(name, _)| *name == measure.name()) {
            Some(i) => &self.percentiles[i],
            None => &self.tps,
        }
    }

    /// Returns the [`values`](TreatmentSamples::values) of each treatment of a run.
    pub(super) fn all_values(all: &[Self], measure: Measure) -> Vec<&[(u32, f64)]> {
        all.iter().map(|samples| samples.values(measure)).collect()
    }

    pub(super) fn view(
        &self,
        index: usize,
        t: &Treatment,
        planned: usize,
        fsync: &[FsyncView],
        pairing: &Pairing,
    ) -> TreatmentView {
        let level = pairing.share(&self.tps, &self.tps);
        let (tps, reason) = tps_view(level, &self.tps);
        let flushes = (self.wal_flushes.1 > 0.0).then(|| self.wal_flushes.0 / self.wal_flushes.1);
        let flushes = flushes.filter(|_| self.commits_wait == Some(true));
        // Of all transactions: each may commit and wait.
        let mean_tps = match &self.all_tps[..] {
            [] => tps.as_ref().map(|tps| tps.mean),
            all => Some(all.iter().sum::<f64>() / all.len() as f64),
        };
        let per_flush = flushes.and_then(|flushes| Some(mean_tps? / flushes));
        // A flush carries one commit of each client at most. Where there are more (twice, for the
        // two are not counted over the very same time), most transactions wrote nothing, and
        // flushes were no limit of theirs.
        let writes = per_flush.is_none_or(|commits| commits <= 2.0 * f64::from(t.clients));
        TreatmentView {
            little: self.little(t, mean_tps),
            wal_flushes_per_second: flushes.filter(|_| writes),
            commits_per_flush: per_flush.filter(|_| writes),
            index,
            label: label(&t.levels),
            factors: t.levels.clone(),
            trials: self.tps.len(),
            trials_planned: planned,
            attempts_failed: self.attempts_failed,
            tps,
            crash: None,
            reason,
            latency_us: LatencyView::new(&self.latency),
            unavailable: None,
            latency_intervals: self.latency_intervals(level),
            generator_limited: self.generator_limited,
            drift: None,
            service_us: self.service.as_ref().and_then(LatencyView::new),
            not_ranked: None,
            may_be_best: None,
            ratio_to_best: None,
            transactions: self.transactions,
            failed: self.failed,
            failures: self.failures.clone(),
            commits_wait: self.commits_wait,
            fsync_per_second: self.fsync(&t.storage, fsync).filter(|_| writes),
            generators: self.generators.views(),
            groups: self.groups.views(level),
            stages: self.stages.views(),
            statements: self
                .statements
                .iter()
                .map(|(script, s)| StatementView::new(script, s))
                .collect(),
            waits: self.waits.view(),
            quantiles: quantiles(&self.latency),
        }
    }

    /// Clients' share of the time that is in latency: tps × mean latency ÷ clients (J. D. C.
    /// Little, *A proof for the queuing formula L = λW*, Operations Research 9, 1961). Of a closed
    /// loop only, and where all time is in transactions that ended well.
    fn little(&self, t: &Treatment, tps: Option<f64>) -> Option<f64> {
        let closed =
            t.is_closed_loop() && !self.searched && !t.options.reconnect && self.failed == 0;
        let latency = self.latency.mean_us().filter(|_| closed && t.clients > 0)?;
        Some(tps? * latency / 1e6 / f64::from(t.clients))
    }

    fn latency_intervals(&self, level: f64) -> Vec<LatencyInterval> {
        let of = |((name, _), trials): (&(&'static str, f64), &Vec<(u32, f64)>)| {
            let values: Vec<f64> = trials.iter().map(|(_, us)| *us).collect();
            let estimate = stats::geometric_mean_ci95(level, &values);
            Some(LatencyInterval { percentile: name, us: estimate.mean?, ci95: estimate.ci95 })
        };
        PERCENTILES.iter().zip(&self.percentiles).filter_map(of).collect()
    }

    /// The newest rate of the server's own method on `storage`, else the newest of any.
    fn fsync(&self, storage: &str, fsync: &[FsyncView]) -> Option<f64> {
        if self.commits_wait != Some(true) {
            return None;
        }
        let here = || fsync.iter().rev().filter(|f| f.storage == storage);
        let of_method = here().find(|f| Some(&f.method) == self.sync_method.as_ref());
        of_method.or_else(|| here().next())?.per_second
    }
}

/// Returns the mean of `tps` of each trial, as (block, value), with its interval of coverage
/// `level`; and why either is missing.
pub(super) fn tps_view(
    level: f64,
    tps: &[(u32, f64)],
) -> (Option<TpsView>, Option<stats::NoInterval>) {
    let values: Vec<f64> = tps.iter().map(|(_, tps)| *tps).collect();
    let estimate = stats::mean_ci95_at(level, &values);
    let tps = estimate.mean.map(|mean| TpsView {
        mean,
        // No rate is negative, whatever a symmetric interval of few repeats says.
        ci95: estimate.ci95.map(|[lo, hi]| [lo.max(0.0), hi]),
        sd: estimate.sd,
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    });
    (tps, estimate.why)
}

/// A treatment in one line.
pub fn label(levels: &Levels) -> String {
    if levels.0.is_empty() { "the only treatment".to_owned() } else { levels.to_string() }
}

/// Flushes of the write-ahead log over a trial's telemetry, and its length (seconds):
/// `pg_stat_wal.wal_sync`, from PostgreSQL 18 on the `fsyncs` of `pg_stat_io` on WAL. None where
/// neither was read. With a `wal_sync_method` that opens the file for synchronous writing nothing
/// is counted.
fn wal_flushes(tables: &[Table]) -> Option<(f64, f64)> {
    let of = |probe: &str, wanted: &dyn Fn(&str) -> bool| {
        let table = tables.iter().find(|t| t.probe == probe)?;
        let seconds = table.samples.last()?.t_s - table.samples.first()?.t_s;
        let columns = (0..table.columns.len()).filter(|i| wanted(&table.columns[*i].name));
        let flushes = columns.filter_map(|i| growth(table, i)).reduce(|a, b| a + b)?;
        (seconds > 0.0 && flushes > 0.0).then_some((flushes, seconds))
    };
    of("pg_stat_wal", &|name| name == "wal_sync")
        .or_else(|| of("pg_stat_io", &|name| name.contains(".wal.") && name.ends_with(".fsyncs")))
}

/// The latency of `quantile` in one trial; none where fewer than ten transactions lie beyond it.
pub(super) fn percentile(measurement: &Measurement, quantile: f64) -> Option<f64> {
    const BEYOND: f64 = 10.0;
    let latency = &measurement.latency;
    (latency.count() as f64 * (1.0 - quantile) >= BEYOND - 1e-6)
        .then(|| latency.quantile_us(quantile))?
}

/// The trends of tps over repeats of all treatments of a run, in the order of blocks, judged
/// together.
pub(super) fn drifts(treatments: &[TreatmentSamples]) -> Vec<Option<stats::Trend>> {
    let in_order = |sums: &TreatmentSamples| {
        let mut tps = sums.tps.clone();
        tps.sort_by_key(|(block, _)| *block);
        tps.into_iter().map(|(_, tps)| tps).collect()
    };
    stats::trends(&treatments.iter().map(in_order).collect::<Vec<_>>())
}

/// Whether commits wait for a flush. A workload that only reads commits nothing.
fn commits_wait(server: &ServerFacts, treatment: &Treatment) -> Option<bool> {
    if treatment.workload == "select-only" {
        return Some(false);
    }
    let setting = |name: &str| {
        server.setting(name).or_else(|| treatment.settings.get(name).map(String::as_str))
    };
    Some(setting("fsync")? == "on" && setting("synchronous_commit")? != "off")
}

/// Latency at evenly spaced nines, to where ten transactions are left.
fn quantiles(latency: &Latencies) -> Vec<(f64, f64)> {
    let last = (latency.count() as f64 / 10.0).log10().min(5.0);
    (0..=100)
        .map(|step| f64::from(step) / 20.0)
        .take_while(|nines| *nines <= last)
        .map(|nines| 1.0 - 10f64.powf(-nines))
        .filter_map(|q| Some((q, latency.quantile_us(q)?)))
        .collect()
}
