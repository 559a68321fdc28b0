//! Figures of a run under way, in the text format of OpenMetrics 1.0.
//!
//! ```
//! use pgdyno_report::metrics::RunMetrics;
//!
//! assert_eq!(RunMetrics::default().render(), "# EOF\n");
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pgdyno_model::live::{LiveRun, LoadSecond};

use crate::live::{LiveRecord, LiveState, LiveTrialState};

/// The type of the text, for HTTP.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Powers of two of microseconds that bound the buckets of the histogram of latency: up to 134 s.
const OCTAVES: u16 = 27;

/// Adds up what a run tells about itself.
#[derive(Debug, Default)]
pub struct RunMetrics {
    state: LiveState,
    /// Sums of each treatment's load since the session began, by index.
    load: BTreeMap<usize, LoadSums>,
}

/// Sums of one treatment's load, warm-up included.
#[derive(Debug, Default)]
struct LoadSums {
    failed: u64,
    /// Transactions by octave of latency (count), from 1 µs on; the last for longer ones.
    latencies: [u64; OCTAVES as usize + 1],
}

impl RunMetrics {
    /// Adds the next record.
    pub fn add(&mut self, record: LiveRecord) {
        if let (LiveRecord::Second(second), Some(trial)) = (&record, &self.state.current) {
            self.load.entry(trial.planned.treatment).or_default().add(second);
        }
        self.state.add(record);
        // Only the newest second is rendered.
        if let Some(trial) = &mut self.state.current {
            let older = trial.seconds.len().saturating_sub(1);
            trial.seconds.drain(..older);
        }
    }

    /// Renders all figures; none before the run has its place in the store.
    pub fn render(&self) -> String {
        let mut text = Text::default();
        if let Some(run) = &self.state.run {
            text.run = label("run", &run.run);
            self.render_run(run, &mut text);
            self.render_load(run, &mut text);
            self.render_second(run, &mut text);
        }
        text.out.push_str("# EOF\n");
        text.out
    }

    fn render_run(&self, run: &LiveRun, text: &mut Text) {
        let recipe = [label("recipe", &run.recipe), label("pid", &run.owner.pid.to_string())];
        text.family("pgdyno_run", "info", "", "The run that works.");
        text.sample("pgdyno_run_info", &recipe, 1.0);
        let done = |state: &&LiveTrialState| matches!(state, LiveTrialState::Done { .. });
        let failed = |state: &&LiveTrialState| matches!(state, LiveTrialState::Failed { .. });
        let trials = &self.state.trials;
        text.gauge("pgdyno_trials", "", "Trials of the plan.", count(trials.len()));
        text.gauge(
            "pgdyno_trials_done",
            "",
            "Trials in the store.",
            count(trials.iter().filter(done).count()),
        );
        text.gauge(
            "pgdyno_trials_failed",
            "",
            "Trials whose last attempt failed.",
            count(trials.iter().filter(failed).count()),
        );
        if let Some(left) = self.state.left_s {
            text.gauge("pgdyno_left_seconds", "seconds", "Expected time until the end.", left);
        }
        if let Some(outlook) = &self.state.outlook {
            let (decided, comparisons) = (outlook.decided, outlook.comparisons);
            text.gauge("pgdyno_comparisons", "", "Comparisons of the plan.", comparisons.into());
            text.gauge("pgdyno_comparisons_decided", "", "Comparisons decided.", decided.into());
            if let Some(left) = outlook.blocks_left {
                let help = "More blocks until all comparisons are decided, as forecast.";
                text.gauge("pgdyno_blocks_left", "", help, left.into());
            }
        }
        let is_stopping = f64::from(u8::from(self.state.is_stopping));
        text.gauge("pgdyno_stopping", "", "1 if the run ends after this trial.", is_stopping);
    }

    /// Renders the sums of every treatment that was loaded.
    fn render_load(&self, run: &LiveRun, text: &mut Text) {
        if self.load.is_empty() {
            return;
        }
        let treatment = |index: &usize| {
            label("treatment", run.treatments.get(*index).map_or("", String::as_str))
        };
        let help = "Transactions that failed.";
        text.family("pgdyno_failed_transactions", "counter", "", help);
        for (index, load) in &self.load {
            let name = "pgdyno_failed_transactions_total";
            text.sample(name, &[treatment(index)], float(load.failed));
        }
        let help = "Latency of transactions.";
        text.family("pgdyno_latency_seconds", "histogram", "seconds", help);
        for (index, load) in &self.load {
            let mut so_far = 0;
            for (octave, count) in (1_i32..).zip(&load.latencies) {
                so_far += count;
                let is_last = octave > i32::from(OCTAVES);
                let bound =
                    if is_last { "+Inf".into() } else { (2_f64.powi(octave) / 1e6).to_string() };
                let labels = [treatment(index), label("le", &bound)];
                text.sample("pgdyno_latency_seconds_bucket", &labels, float(so_far));
            }
        }
    }

    /// Renders the newest second of the trial in progress.
    fn render_second(&self, run: &LiveRun, text: &mut Text) {
        let Some(trial) = &self.state.current else { return };
        let Some(second) = trial.seconds.last() else { return };
        let treatment = run.treatments.get(trial.planned.treatment).map_or("", String::as_str);
        let treatment = label("treatment", treatment);
        let phase = label("phase", if second.measuring { "measured" } else { "warm-up" });
        text.family("pgdyno_tps", "gauge", "", "Transactions per second in the last second.");
        text.sample("pgdyno_tps", &[treatment.clone(), phase], second.tps);
        let quantiles = [("0.5", second.latency_us_p50), ("0.99", second.latency_us_p99)];
        if quantiles.iter().any(|(_, us)| us.is_some()) {
            let (name, help) =
                ("pgdyno_latency_quantile_seconds", "Quantiles of latency in the last second.");
            text.family(name, "gauge", "seconds", help);
            for (quantile, us) in quantiles {
                let labels = [treatment.clone(), label("quantile", quantile)];
                if let Some(us) = us {
                    text.sample(name, &labels, us / 1e6);
                }
            }
        }
        if let Some(us) = second.event_loop_lag_us_p99 {
            let (name, help) = (
                "pgdyno_event_loop_lag_seconds",
                "99th percentile of the load generator's lag in the last second.",
            );
            text.family(name, "gauge", "seconds", help);
            text.sample(name, &[treatment.clone(), label("quantile", "0.99")], us / 1e6);
        }
        if !second.waits.is_empty() {
            let name = "pgdyno_waiting_backends";
            text.family(name, "gauge", "", "Mean number of backends in a wait event.");
            for (event, mean) in &second.waits {
                text.sample(name, &[treatment.clone(), label("wait_event", event)], *mean);
            }
        }
    }
}

impl LoadSums {
    fn add(&mut self, second: &LoadSecond) {
        self.failed += second.failed;
        for (bucket, count) in &second.latencies {
            let octave = (bucket / LoadSecond::BUCKETS_PER_OCTAVE).min(OCTAVES);
            self.latencies[usize::from(octave)] += count;
        }
    }
}

/// Text that grows by families of metrics.
#[derive(Default)]
struct Text {
    out: String,
    /// The label of the run, which every sample has.
    run: String,
}

impl Text {
    fn family(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        let _ = writeln!(self.out, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.out, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.out, "# HELP {name} {help}");
    }

    fn sample(&mut self, name: &str, labels: &[String], value: f64) {
        let run = [self.run.clone()];
        let labels = [&run, labels].concat().join(",");
        let _ = writeln!(self.out, "{name}{{{labels}}} {value}");
    }

    /// Adds a family of one sample.
    fn gauge(&mut self, name: &str, unit: &str, help: &str, value: f64) {
        self.family(name, "gauge", unit, help);
        self.sample(name, &[], value);
    }
}

/// Returns a label with its value escaped.
fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    // Other control characters mean nothing to the format, and much to a terminal.
    format!("{name}=\"{}\"", value.replace(char::is_control, "\u{fffd}"))
}

fn count(n: usize) -> f64 {
    float(n as u64)
}

fn float(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use pgdyno_model::PlannedTrial;
    use pgdyno_model::facts::Owner;
    use pgdyno_model::live::Outlook;
    use pgdyno_model::units::Epoch;

    use super::*;

    fn metrics(treatment: &str) -> RunMetrics {
        let planned = PlannedTrial { ordinal: 0, block: 1, treatment: 0, repeat: 1 };
        let mut metrics = RunMetrics::default();
        metrics.add(LiveRecord::Begun(LiveRun {
            schema: LiveRun::SCHEMA.into(),
            run: "try-1".into(),
            recipe: "try".into(),
            question: None,
            started_at: Epoch(0),
            owner: Owner { pid: 7, started_ticks: 2, boot_id: "b".into(), host: None },
            treatments: vec![treatment.into()],
            trials: vec![planned],
            done: Vec::new(),
            warm_up_s: 1.0,
            window_s: None,
            is_open_ended: false,
        }));
        metrics.add(LiveRecord::Trial { planned, at: Epoch(0), left_s: 9.0 });
        for _ in 0..2 {
            metrics.add(LiveRecord::Second(LoadSecond {
                tps: 12.5,
                failed: 1,
                latency_us_p99: Some(2_000.0),
                // 1 to 2 µs, 2 to 4 µs, and beyond the last bound.
                latencies: vec![(0, 1), (3, 2), (4, 4), (2000, 8)],
                waits: vec![("IO:WalSync".into(), 1.5)],
                ..LoadSecond::default()
            }));
        }
        metrics
    }

    #[test]
    fn seconds_add_up_to_counters_and_a_cumulative_histogram() {
        let text = metrics("clients=1").render();
        let labels = "run=\"try-1\",treatment=\"clients=1\"";
        for line in [
            format!("pgdyno_failed_transactions_total{{{labels}}} 2"),
            format!("pgdyno_latency_seconds_bucket{{{labels},le=\"0.000002\"}} 6"),
            format!("pgdyno_latency_seconds_bucket{{{labels},le=\"0.000004\"}} 14"),
            format!("pgdyno_latency_seconds_bucket{{{labels},le=\"134.217728\"}} 14"),
            format!("pgdyno_latency_seconds_bucket{{{labels},le=\"+Inf\"}} 30"),
            format!("pgdyno_tps{{{labels},phase=\"warm-up\"}} 12.5"),
            format!("pgdyno_latency_quantile_seconds{{{labels},quantile=\"0.99\"}} 0.002"),
            format!("pgdyno_waiting_backends{{{labels},wait_event=\"IO:WalSync\"}} 1.5"),
            "pgdyno_left_seconds{run=\"try-1\"} 0".to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn a_label_from_a_file_ends_no_line() {
        let text = metrics("a\"b\\c\nd\u{1b}").render();
        assert!(text.contains("treatment=\"a\\\"b\\\\c\\nd\u{fffd}\""), "{text}");
    }

    #[test]
    fn every_metric_of_the_dashboard_exists() {
        let dashboard = include_str!("../../../packaging/grafana/pgdyno.json");
        let mut metrics = metrics("clients=1");
        metrics.add(LiveRecord::Outlook(Outlook {
            blocks: 4,
            decided: 1,
            comparisons: 2,
            blocks_left: Some(5),
            ceiling: 30,
        }));
        metrics.add(LiveRecord::Second(LoadSecond {
            latency_us_p50: Some(1.0),
            event_loop_lag_us_p99: Some(1.0),
            waits: vec![("CPU".into(), 1.0)],
            ..LoadSecond::default()
        }));
        let text = metrics.render();
        let names = dashboard.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let names: Vec<&str> = names.filter(|word| word.starts_with("pgdyno_")).collect();
        assert!(names.len() > 10, "{names:?}");
        for name in &names {
            assert!(text.contains(&format!("\n{name}{{")), "{name} of the dashboard\n{text}");
        }
        // And the other way round: a figure that is served is drawn.
        let served = text.lines().filter_map(|line| line.split_once('{')).map(|(name, _)| name);
        let undrawn: Vec<&str> = served.filter(|name| !names.contains(name)).collect();
        assert_eq!(undrawn, ["pgdyno_stopping"], "a state, not a figure");
    }
}
