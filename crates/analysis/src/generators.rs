//! Generators over a treatment's trials.
//!
//! A trial keeps percentiles of each generator, not its histogram. So percentiles are shown as the
//! range over trials, and never averaged.

use pgdyno_model::Measurement;
use pgdyno_model::measurement::GeneratorMeasurement;

use super::view::GeneratorView;

/// Generators of a treatment's completed trials, in the order in which they first appear.
#[derive(Default)]
pub(super) struct GeneratorSamples(Vec<(GeneratorView, Totals)>);

/// Sums from which a view's means are computed.
#[derive(Default)]
struct Totals {
    measured_s: f64,
    cpu_s: f64,
    latency_us: f64,
    /// Transactions that `latency_us` sums up (count).
    timed: f64,
}

impl GeneratorSamples {
    /// Adds a trial's generators.
    pub(super) fn add(&mut self, measurement: &Measurement) {
        for generator in &measurement.generators {
            let place = self.0.iter().position(|(view, _)| view.name == generator.name);
            let place = place.unwrap_or_else(|| {
                let view = GeneratorView { name: generator.name.clone(), ..Default::default() };
                self.0.push((view, Totals::default()));
                self.0.len() - 1
            });
            let (view, totals) = &mut self.0[place];
            totals.add(generator, measurement.measured_s);
            add(view, generator);
        }
    }

    /// Returns the generators; empty where one process offered the load.
    pub(super) fn views(&self) -> Vec<GeneratorView> {
        let view = |(view, totals): &(GeneratorView, Totals)| {
            let transactions = view.transactions as f64;
            let per_second = |sum: f64| (totals.measured_s > 0.0).then(|| sum / totals.measured_s);
            GeneratorView {
                tps: per_second(transactions),
                cpus: per_second(totals.cpu_s),
                latency_us_mean: (totals.timed > 0.0).then(|| totals.latency_us / totals.timed),
                ..view.clone()
            }
        };
        self.0.iter().map(view).collect()
    }
}

impl Totals {
    fn add(&mut self, generator: &GeneratorMeasurement, measured_s: f64) {
        self.measured_s += measured_s;
        self.cpu_s += generator.cpu_s;
        if let Some(mean) = generator.latency_us_mean {
            let transactions = generator.transactions as f64;
            self.latency_us += mean * transactions;
            self.timed += transactions;
        }
    }
}

fn add(view: &mut GeneratorView, generator: &GeneratorMeasurement) {
    view.clients = generator.clients;
    view.threads = generator.threads;
    view.trials += 1;
    view.transactions += generator.transactions;
    view.failed += generator.failed;
    widen(&mut view.latency_us_p50, generator.latency_us_p50);
    widen(&mut view.latency_us_p99, generator.latency_us_p99);
    view.busiest_thread = view.busiest_thread.max(generator.busiest_thread);
    let known = view.start_skew_us.abs() + view.clock_uncertainty_us;
    if generator.start_skew_us.abs() + generator.clock_uncertainty_us > known {
        view.start_skew_us = generator.start_skew_us;
        view.clock_uncertainty_us = generator.clock_uncertainty_us;
    }
}

/// Widens a range to hold `value`.
fn widen(range: &mut Option<[f64; 2]>, value: Option<f64>) {
    let Some(value) = value else { return };
    let [low, high] = range.unwrap_or([value; 2]);
    *range = Some([low.min(value), high.max(value)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(measured_s: f64, generators: &[GeneratorMeasurement]) -> Measurement {
        Measurement { measured_s, generators: generators.to_vec(), ..Measurement::default() }
    }

    fn generator(transactions: u64, mean: f64, p99: f64, skew: f64) -> GeneratorMeasurement {
        GeneratorMeasurement {
            name: "gen1".into(),
            clients: 4,
            threads: 2,
            transactions,
            failed: 1,
            latency_us_mean: Some(mean),
            latency_us_p50: Some(mean),
            latency_us_p99: Some(p99),
            cpu_s: 5.0,
            busiest_thread: 0.25,
            start_skew_us: skew,
            clock_uncertainty_us: 100.0,
        }
    }

    #[test]
    fn means_weigh_by_transactions_and_time_and_percentiles_are_ranges() {
        let mut samples = GeneratorSamples::default();
        samples.add(&trial(10.0, &[generator(100, 1000.0, 9000.0, -700.0)]));
        samples.add(&trial(30.0, &[generator(300, 2000.0, 4000.0, 300.0)]));
        let views = samples.views();
        assert_eq!(
            views,
            [GeneratorView {
                name: "gen1".into(),
                clients: 4,
                threads: 2,
                trials: 2,
                transactions: 400,
                failed: 2,
                tps: Some(10.0),
                latency_us_mean: Some(1750.0),
                latency_us_p50: Some([1000.0, 2000.0]),
                latency_us_p99: Some([4000.0, 9000.0]),
                cpus: Some(0.25),
                busiest_thread: 0.25,
                start_skew_us: -700.0,
                clock_uncertainty_us: 100.0,
            }]
        );
    }

    #[test]
    fn one_process_has_no_generators_and_a_generator_without_a_transaction_no_latency() {
        let mut samples = GeneratorSamples::default();
        samples.add(&trial(10.0, &[]));
        assert_eq!(samples.views(), []);
        let idle = GeneratorMeasurement {
            latency_us_mean: None,
            latency_us_p50: None,
            latency_us_p99: None,
            ..generator(0, 0.0, 0.0, 0.0)
        };
        samples.add(&trial(10.0, &[idle]));
        let view = &samples.views()[0];
        assert_eq!((view.tps, view.latency_us_mean, view.latency_us_p99), (Some(0.0), None, None));
    }
}
