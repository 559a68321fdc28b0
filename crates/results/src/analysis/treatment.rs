//! Treatments over their trials, and their comparison.

use std::collections::BTreeMap;

use pgdyno_model::facts::ServerFacts;
use pgdyno_model::{Latencies, LevelValue, Treatment, TrialRecord};

use super::view::{
    Comparison, FsyncView, RatioView, RunView, StatementView, TpsView, TreatmentView, TrialState,
};
use super::{latency_view, words};
use crate::stats;

/// What the trials of one treatment come to.
#[derive(Default)]
pub(super) struct Sums {
    /// (block, tps) of each completed trial.
    tps: Vec<(u32, f64)>,
    latency: Latencies,
    transactions: u64,
    failed: u64,
    failures: BTreeMap<String, u64>,
    statements: Vec<Statement>,
    attempts_failed: usize,
    commits_wait: Option<bool>,
    sync_method: Option<String>,
}

struct Statement {
    script: String,
    line: u32,
    text: String,
    failed: u64,
    latency: Latencies,
}

impl Sums {
    pub(super) fn add(&mut self, trial: &TrialRecord, state: TrialState, treatment: &Treatment) {
        if state == TrialState::Failed {
            self.attempts_failed += 1;
        }
        let (TrialState::Completed, Some(m)) = (state, &trial.measurement) else { return };
        self.tps.extend(m.tps().map(|tps| (trial.block, tps)));
        self.latency.merge(&m.latency);
        self.transactions += m.transactions;
        self.failed += m.failed;
        for (sqlstate, count) in &m.failures {
            *self.failures.entry(sqlstate.clone()).or_default() += count;
        }
        for script in &m.scripts {
            for s in &script.statements {
                let same = |known: &&mut Statement| {
                    known.script == script.name && known.line == s.line && known.text == s.text
                };
                if let Some(known) = self.statements.iter_mut().find(same) {
                    known.failed += s.failed;
                    known.latency.merge(&s.latency);
                } else {
                    self.statements.push(Statement {
                        script: script.name.clone(),
                        line: s.line,
                        text: s.text.clone(),
                        failed: s.failed,
                        latency: s.latency.clone(),
                    });
                }
            }
        }
        if let Some(server) = &trial.server {
            self.commits_wait = commits_wait(server, treatment);
            self.sync_method = server.setting("wal_sync_method").map(str::to_owned);
        }
    }

    pub(super) fn view(
        &self,
        index: usize,
        t: &Treatment,
        planned: usize,
        fsync: &[FsyncView],
    ) -> TreatmentView {
        let values: Vec<f64> = self.tps.iter().map(|(_, tps)| *tps).collect();
        let estimate = stats::mean_ci95(&values);
        let tps = estimate.mean.map(|mean| TpsView {
            mean,
            // No rate is negative, whatever a symmetric interval of few repeats says.
            ci95: estimate.ci95.map(|[lo, hi]| [lo.max(0.0), hi]),
            sd: estimate.sd,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        });
        let statement = |s: &Statement| StatementView {
            script: s.script.clone(),
            line: s.line,
            text: s.text.clone(),
            failed: s.failed,
            latency_us: latency_view(&s.latency),
        };
        TreatmentView {
            index,
            label: words::label(&t.levels),
            factors: t.levels.clone(),
            trials: self.tps.len(),
            trials_planned: planned,
            attempts_failed: self.attempts_failed,
            tps,
            reason: estimate.why.map(str::to_owned),
            latency_us: latency_view(&self.latency),
            ratio_to_best: None,
            transactions: self.transactions,
            failed: self.failed,
            failures: self.failures.clone(),
            commits_wait: self.commits_wait,
            fsync_per_second: self.fsync(&t.storage, fsync),
            statements: self.statements.iter().map(statement).collect(),
            quantiles: quantiles(&self.latency),
        }
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

/// Whether commits wait for a flush. A workload that only reads commits nothing.
fn commits_wait(server: &ServerFacts, treatment: &Treatment) -> Option<bool> {
    if treatment.workload == "select-only" {
        return Some(false);
    }
    let setting =
        |name: &str| server.setting(name).or_else(|| treatment.settings.get(name).map(String::as_str));
    Some(setting("fsync")? == "on" && setting("synchronous_commit")? != "off")
}

/// Latency at evenly spaced nines, to where ten transactions are left.
#[allow(clippy::cast_precision_loss)]
fn quantiles(latency: &Latencies) -> Vec<(f64, f64)> {
    let last = (latency.count() as f64 / 10.0).log10().min(5.0);
    (0..=100)
        .map(|step| f64::from(step) / 20.0)
        .take_while(|nines| *nines <= last)
        .map(|nines| 1.0 - 10f64.powf(-nines))
        .filter_map(|q| Some((q, latency.quantile_us(q)?)))
        .collect()
}

/// Fills in every treatment's ratio to the best. The best has the highest geometric mean: ratios are geometric means
/// too, so that with all trials complete none is above 1.
pub(super) fn rank(view: &mut RunView, sums: &[Sums]) {
    let mean_log = |t: &TreatmentView| {
        let tps = &sums[t.index].tps;
        #[allow(clippy::cast_precision_loss)]
        let count = tps.len() as f64;
        (!tps.is_empty() && tps.iter().all(|(_, v)| *v > 0.0))
            .then(|| tps.iter().map(|(_, v)| v.ln()).sum::<f64>() / count)
    };
    let best = view
        .treatments
        .iter()
        .filter_map(|t| Some((t.index, mean_log(t)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(index, _)| index);
    view.best = best;
    for t in &mut view.treatments {
        if t.trials == 0 {
            continue;
        }
        t.ratio_to_best = Some(match best {
            None => RatioView {
                value: None,
                ci95: None,
                method: None,
                told_apart: None,
                verdict: "no transaction was completed, so that no ratio can be formed".into(),
            },
            Some(best) if best == t.index => RatioView {
                value: Some(1.0),
                ci95: None,
                method: None,
                told_apart: None,
                verdict: "the best: the highest geometric mean".into(),
            },
            Some(best) => words::ratio_to_best(&stats::ratio(&sums[t.index].tps, &sums[best].tps)),
        });
    }
}

/// For every factor: each treatment against the one that differs in that factor only and has its first level.
pub(super) fn compare(view: &RunView, sums: &[Sums]) -> Vec<Comparison> {
    let mut pairs = Vec::new();
    for factor in &view.plan.factors {
        for (index, t) in view.plan.treatments.iter().enumerate() {
            let Some(first) = view.plan.treatments.iter().position(|o| alike_but(factor, o, t)) else {
                continue;
            };
            if first != index && !sums[index].tps.is_empty() && !sums[first].tps.is_empty() {
                pairs.push((factor, index, first, stats::ratio(&sums[index].tps, &sums[first].tps)));
            }
        }
    }
    // Pairs without an interval were not judged and do not make the others' verdicts stricter.
    let p: Vec<f64> = pairs.iter().filter_map(|(.., ratio)| ratio.p).collect();
    let known = p.len();
    let mut holds = stats::holm(&p, 1.0 - stats::CONFIDENCE).into_iter();
    pairs
        .into_iter()
        .map(|(factor, treatment, to, ratio)| {
            let levels = |index: usize| &view.plan.treatments[index].levels;
            let holm = ratio.p.and_then(|_| holds.next());
            words::comparison(factor, (treatment, levels(treatment)), (to, levels(to)), &ratio, (holm, known))
        })
        .collect()
}

/// Whether two treatments agree in all factors but `factor`.
fn alike_but(factor: &str, a: &Treatment, b: &Treatment) -> bool {
    let others = |t: &Treatment| -> Vec<(String, LevelValue)> {
        t.levels.0.iter().filter(|(name, _)| name != factor).cloned().collect()
    };
    others(a) == others(b)
}
