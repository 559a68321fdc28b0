//! Stages of a rate over a treatment's trials.

use pgdyno_model::load_rate::RateStage;
use pgdyno_model::measurement::Second;
use pgdyno_model::{Measurement, SecondLatencies};

use super::view::StageView;

/// Most stages that are told apart; of more, neighbours become one.
const MOST: usize = 24;

/// Stages of a treatment's rate, and what ended in each; empty without stages.
#[derive(Default)]
pub(super) struct StageSamples(Vec<StageSample>);

struct StageSample {
    view: StageView,
    measured_s: f64,
    latencies: SecondLatencies,
}

impl StageSamples {
    /// Adds a trial of a treatment whose rate has `stages`, if it has any.
    pub(super) fn add(&mut self, stages: Option<&[RateStage]>, measurement: &Measurement) {
        let Some(stages) = stages else { return };
        if self.0.is_empty() {
            self.0 = joined(stages);
        }
        let length_s: u64 = self.0.iter().map(|sample| sample.view.seconds).sum();
        for second in &measurement.series {
            let at = u64::from(second.t_s) % length_s;
            if let Some(sample) = self.0.iter_mut().rfind(|sample| sample.view.begin_s <= at) {
                sample.add(second);
            }
        }
    }

    pub(super) fn views(&self) -> Vec<StageView> {
        self.0.iter().map(StageSample::view).collect()
    }
}

impl StageSample {
    fn add(&mut self, second: &Second) {
        self.measured_s += second.length_s;
        self.view.transactions += second.transactions;
        self.view.failed += second.failed;
        let longest = self.view.latency_us_max.into_iter().chain(second.latency_us_max);
        self.view.latency_us_max = longest.reduce(f64::max);
        if let Some(latencies) = &second.latencies {
            self.latencies.merge(latencies);
        }
    }

    fn view(&self) -> StageView {
        let tps = self.view.transactions as f64 / self.measured_s;
        StageView {
            tps: (self.measured_s > 0.0).then_some(tps),
            latency_us_p50: self.latencies.quantile_us(0.5),
            latency_us_p95: self.latencies.quantile_us(0.95),
            latency_us_p99: self.latencies.quantile_us(0.99),
            ..self.view.clone()
        }
    }
}

/// Returns `stages` without samples, so many neighbours as one that there are [`MOST`] at most.
fn joined(stages: &[RateStage]) -> Vec<StageSample> {
    let mut begin_s = 0;
    let one = |stages: &[RateStage]| {
        let seconds = stages.iter().map(|stage| u64::from(stage.seconds)).sum();
        let due: f64 = stages.iter().map(RateStage::due).sum();
        let view = StageView {
            stages: stages.len(),
            begin_s,
            seconds,
            from: stages[0].from,
            to: stages[stages.len() - 1].to,
            due: due / seconds as f64,
            ..StageView::default()
        };
        begin_s += seconds;
        StageSample { view, measured_s: 0.0, latencies: SecondLatencies::default() }
    };
    stages.chunks(stages.len().div_ceil(MOST)).map(one).collect()
}

#[cfg(test)]
mod tests {
    use pgdyno_model::Latencies;
    use pgdyno_model::load_rate::LoadRate;

    use super::*;

    /// A second in which `count` transactions took `ms` milliseconds each.
    fn second(t_s: u32, count: u64, ms: u64) -> Second {
        let mut latencies = Latencies::new();
        latencies.record_many(ms * 1_000_000, count);
        Second {
            t_s,
            length_s: 1.0,
            transactions: count,
            failed: 1,
            latency_us_max: latencies.max_us(),
            latencies: Some(SecondLatencies::from(&latencies)),
            ..Second::default()
        }
    }

    #[test]
    fn each_second_belongs_to_its_stage_in_every_round_and_trial() {
        let rate: LoadRate = "10 for 2s, 10 to 50 for 1s".parse().unwrap();
        let series = (0..6).map(|t| match t % 3 {
            2 => second(t, 30, 100),
            _ => second(t, 10, 5 + u64::from(t)),
        });
        let trial = Measurement { series: series.collect(), ..Measurement::default() };
        let mut samples = StageSamples::default();
        samples.add(rate.stages(), &trial);
        samples.add(rate.stages(), &trial);
        let [steady, ramp] = &samples.views()[..] else { panic!() };
        assert_eq!((steady.begin_s, steady.seconds, ramp.begin_s, ramp.seconds), (0, 2, 2, 1));
        assert_eq!((steady.due, ramp.due, ramp.from, ramp.to), (10.0, 30.0, 10.0, 50.0));
        assert_eq!((steady.tps, ramp.tps), (Some(10.0), Some(30.0)));
        assert_eq!((steady.transactions, steady.failed, ramp.transactions), (80, 8, 120));
        let near = |us: Option<f64>, ms: f64| (us.unwrap() / 1e3 / ms - 1.0).abs() < 0.02;
        assert!(near(steady.latency_us_p50, 6.0), "{steady:?}");
        assert!(near(steady.latency_us_max, 9.0), "{steady:?}");
        assert!(near(ramp.latency_us_p99, 100.0), "{ramp:?}");

        let mut constant = StageSamples::default();
        constant.add(LoadRate::Constant(3.0).stages(), &trial);
        constant.add(None, &trial);
        assert!(constant.views().is_empty());
    }

    #[test]
    fn many_stages_become_few() {
        let stages: Vec<String> = (1..=50).map(|n| format!("{n} for 2s")).collect();
        let rate: LoadRate = stages.join(", ").parse().unwrap();
        let mut samples = StageSamples::default();
        let trial = Measurement { series: vec![second(99, 7, 1)], ..Measurement::default() };
        samples.add(rate.stages(), &trial);
        let views = samples.views();
        assert_eq!(views.len(), 17);
        assert_eq!((views[0].stages, views[0].seconds, views[0].due), (3, 6, 2.0));
        let last = &views[16];
        assert_eq!((last.stages, last.begin_s, last.to, last.transactions), (2, 96, 50.0, 7));
        assert_eq!(views[0].tps, None);
    }
}
