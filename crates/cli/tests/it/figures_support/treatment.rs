//! A treatment of a run.

use pgdyno_test_support::median;
use serde_json::Value;

use super::{Run, count, percent, range};
use crate::support::elements;

/// The one with the most tps, by the median.
pub fn highest<'a, 'b>(sweep: &'b [Treatment<'a>]) -> &'b Treatment<'a> {
    sweep.iter().max_by(|a, b| a.median().total_cmp(&b.median())).unwrap()
}

/// A treatment of a run.
pub struct Treatment<'a> {
    pub(super) run: &'a Run,
    pub(super) of: &'a Value,
}

impl Treatment<'_> {
    /// The level of a factor, as text.
    pub fn factor(&self, name: &str) -> String {
        match &self.of["factors"][name] {
            Value::String(level) => level.clone(),
            level => level.to_string(),
        }
    }

    /// Returns the treatment's completed trials, in the order of repeats.
    fn completed(&self) -> impl Iterator<Item = &Value> {
        let all = self.run.view["trials"].as_array().unwrap().iter();
        all.filter(|trial| trial["treatment"] == self.of["index"] && trial["state"] == "completed")
    }

    /// Returns the tps of each completed trial, in the order of repeats.
    pub fn trials(&self) -> Vec<f64> {
        let tps = |trial: &Value| {
            trial["transactions"].as_f64().unwrap() / trial["measured_s"].as_f64().unwrap()
        };
        self.completed().map(tps).collect()
    }

    /// Returns for how long each completed trial was measured (seconds).
    pub(super) fn loads_s(&self) -> Vec<f64> {
        self.completed().map(|trial| trial["measured_s"].as_f64().unwrap()).collect()
    }

    /// Returns the growth of the counter `column` for each transaction, all trials together.
    pub fn per_transaction(&self, column: &str) -> f64 {
        let transactions: f64 =
            self.completed().map(|trial| trial["transactions"].as_f64().unwrap()).sum();
        self.gained(column) / transactions
    }

    /// The median of the trials' tps.
    pub fn median(&self) -> f64 {
        median(&self.trials())
    }

    /// Returns the places of the completed trials in the run, from 1.
    fn ordinals(&self) -> impl Iterator<Item = u64> {
        self.completed().map(|trial| trial["ordinal"].as_u64().unwrap() + 1)
    }

    /// Returns the median over the trials of the counter `column`'s growth (per second).
    pub fn rate(&self, column: &str) -> f64 {
        median(&self.ordinals().map(|at| self.run.rate(at, column)).collect::<Vec<_>>())
    }

    /// The median of all samples of the gauge `column` but those that found nothing, as before the
    /// clients came and after they left.
    pub fn gauge(&self, column: &str) -> f64 {
        let samples = self.ordinals().flat_map(|at| self.run.samples(at, column));
        let found = samples.map(|(_, value)| value).filter(|value| *value > 0.0);
        median(&found.collect::<Vec<_>>())
    }

    /// The median over the trials of the processors that the load generator took.
    pub fn generator(&self) -> f64 {
        let cpus = self.completed().map(|trial| trial["generator_cpus"].as_f64().unwrap());
        median(&cpus.collect::<Vec<_>>())
    }

    /// The medians of the parts of CPU time that were idle (`idle` of telemetry's `cpu`) and that
    /// waited for the disk (`iowait`), in percent of all CPUs.
    pub fn idle_and_waiting(&self) -> String {
        format!("{}, {:.0}", self.idle(), 100.0 * self.of_cpu("iowait"))
    }

    /// The median of the part of CPU time that was idle, in percent of all CPUs, without its sign.
    pub fn idle(&self) -> String {
        format!("{:.0}", 100.0 * self.of_cpu("idle"))
    }

    /// Returns the median of the part of CPU time that `column` of telemetry's `cpu` has.
    pub fn of_cpu(&self, column: &str) -> f64 {
        let cpus = self.run.view["sessions"][0]["host"]["cpus"].as_f64().unwrap();
        self.rate(&format!("cpu {column}")) / cpus
    }

    /// The median of the part of CPU time in which the processors were at work, in percent.
    pub fn at_work(&self) -> String {
        percent(1.0 - self.of_cpu("idle") - self.of_cpu("iowait"))
    }

    /// Returns the median over the trials of what a transaction adds to a table (bytes).
    pub fn grown(&self, relation: &str) -> f64 {
        let each = self.completed().map(|trial| {
            let mut sizes = elements(&trial["sizes"]);
            let size = sizes.find(|size| size["name"] == relation).unwrap();
            size["bytes_per_transaction"].as_f64().unwrap()
        });
        median(&each.collect::<Vec<_>>())
    }

    /// Returns the part of the time in which the machine's disk had a request.
    pub fn of_disk(&self) -> f64 {
        let milliseconds_a_second = self.rate("diskstats vda.io_ticks");
        milliseconds_a_second / 1000.0
    }

    /// [`Self::of_disk`] in percent, as text.
    pub fn disk_busy(&self) -> String {
        percent(self.of_disk())
    }

    /// The tps of each whole minute of its first trial.
    pub fn minutes(&self) -> Vec<f64> {
        let trial = self.ordinals().next().unwrap();
        let mut minutes: Vec<(f64, f64)> = Vec::new();
        for second in self.run.seconds.iter().filter(|second| second["trial"] == trial) {
            let number = |key: &str| second[key].as_f64().unwrap();
            let minute = (number("t_s") / 60.0) as usize;
            minutes.resize(minutes.len().max(minute + 1), (0.0, 0.0));
            minutes[minute].0 += number("length_s");
            minutes[minute].1 += number("transactions");
        }
        let whole = minutes.into_iter().filter(|(length_s, _)| *length_s > 59.0);
        whole.map(|(length_s, transactions)| transactions / length_s).collect()
    }

    /// Returns the growth of the counter `column`, all trials together.
    pub fn gained(&self, column: &str) -> f64 {
        let gain = |at| {
            let samples = self.run.samples(at, column);
            samples[samples.len() - 1].1 - samples[0].1
        };
        self.ordinals().map(gain).sum()
    }

    /// Returns the treatment's crash test.
    pub fn crash(&self) -> &Value {
        self.run.crashes().iter().find(|crash| crash["name"] == self.of["label"]).unwrap()
    }

    /// The mean number of backends that waited for `event`.
    pub fn waiting(&self, event: &str) -> f64 {
        let mut all = elements(&self.of["waits"]);
        let found = all.find(|wait| wait["event"] == event);
        found.map_or(0.0, |wait| wait["backends"].as_f64().unwrap())
    }

    /// The mean of the statement that begins with these words, in µs.
    pub fn mean_of(&self, statement: &str) -> f64 {
        let all = self.statements();
        all.iter().find(|(text, ..)| text.starts_with(statement)).unwrap().1
    }

    /// The sum of the means of all statements, in µs.
    pub fn mean_of_all(&self) -> f64 {
        self.statements().iter().map(|(_, mean, _)| mean).sum()
    }

    /// Each statement with its mean and standard deviation, in µs.
    pub fn statements(&self) -> Vec<(&str, f64, f64)> {
        let all = self.of["statements"].as_array().unwrap().iter();
        all.map(|statement| {
            let latency = |key: &str| statement["latency_us"][key].as_f64().unwrap();
            (statement["text"].as_str().unwrap(), latency("mean"), latency("stddev"))
        })
        .collect()
    }

    /// The median, and the lowest and highest trial.
    pub fn median_and_range(&self) -> String {
        let [lowest, highest] = range(&self.trials());
        format!("{} ({}–{})", count(self.median()), count(lowest), count(highest))
    }

    /// The tps of every trial, parted by dots.
    pub fn each(&self) -> String {
        self.trials().into_iter().map(count).collect::<Vec<_>>().join(" · ")
    }

    /// The mean tps of the trials, and its interval.
    pub fn mean(&self) -> (f64, Option<[f64; 2]>) {
        let tps = &self.of["tps"];
        let ends = tps["ci95"].as_array();
        let ends = ends.map(|ends| [ends[0].as_f64().unwrap(), ends[1].as_f64().unwrap()]);
        (tps["mean"].as_f64().unwrap(), ends)
    }

    /// The mean of the trials, with half the width of its interval in percent.
    pub fn mean_with_interval(&self) -> String {
        let (mean, Some([from, to])) = self.mean() else { return count(self.mean().0) };
        let half = (to - from) / 2.0;
        format!("{} ±{:.1}%", count(mean), 100.0 * half / mean)
    }

    /// Mean tps as a part of the best treatment's, with the interval.
    pub fn of_best(&self) -> (f64, [f64; 2]) {
        let ratio = &self.of["ratio_to_best"];
        let end = |at: usize| ratio["ci95"][at].as_f64().unwrap();
        (ratio["value"].as_f64().unwrap(), [end(0), end(1)])
    }

    /// A percentile of its latency, in µs.
    pub fn latency(&self, percentile: &str) -> f64 {
        self.of["latency_us"][percentile].as_f64().unwrap()
    }

    /// A figure of the treatment.
    pub fn number(&self, key: &str) -> f64 {
        self.of[key].as_f64().unwrap_or_else(|| panic!("{}: no {key}", self.of["label"]))
    }
}
