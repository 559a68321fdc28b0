//! Pages of large runs stay small, and lose no extreme.

use crate::page_support::detail;
use pgdyno_analysis::{RunView, TrialView};
use pgdyno_model::measurement::{CommandSums, Second};
use pgdyno_model::telemetry::{Column, Kind, Sample, Table};
use pgdyno_model::{Latencies, SecondLatencies};
use pgdyno_report::{Page, RunReport};
use pgdyno_test_support::records::{Random, analysed_run, first_treatments, plan};

const MB: usize = 1_000_000;

/// Returns one command's sums for a second.
fn command(random: &mut Random) -> CommandSums {
    let count = (1000.0 + 100.0 * random.normal()) as u64;
    CommandSums { count, nanoseconds: count * (1e6 * (1.0 + random.uniform())) as u64 }
}

/// Seconds whose figures and latencies vary as those of a real load do.
fn series(seconds: u32, random: &mut Random) -> Vec<Second> {
    (0..seconds)
        .map(|t_s| {
            let mut latencies = Latencies::new();
            for _ in 0..300 {
                latencies.record((1e6 * (1.0 + random.normal().abs()).powi(3)) as u64);
            }
            Second {
                t_s,
                length_s: 1.0,
                transactions: (1000.0 + 100.0 * random.normal()) as u64,
                failed: 0,
                latency_us_p50: latencies.quantile_us(0.5),
                latency_us_p95: latencies.quantile_us(0.95),
                latency_us_p99: latencies.quantile_us(0.99),
                latency_us_max: latencies.max_us(),
                latencies: Some(SecondLatencies::from(&latencies)),
                commands: (0..3).map(|_| command(random)).collect(),
            }
        })
        .collect()
}

/// Traffic of `interfaces` networks, two lines each.
fn network(seconds: u32, interfaces: usize, random: &mut Random) -> Table {
    let column = |name: String| Column { name, unit: "bytes".into(), kind: Kind::Counter };
    let columns: Vec<Column> = (0..interfaces)
        .flat_map(|i| [column(format!("eth{i}.rx_bytes")), column(format!("eth{i}.tx_bytes"))])
        .collect();
    let mut sums = vec![0.0; columns.len()];
    let samples = (0..=seconds)
        .map(|t| {
            for sum in &mut sums {
                *sum += (5e6 * (1.0 + random.uniform())).round();
            }
            Sample { t_s: f64::from(t), values: sums.iter().copied().map(Some).collect() }
        })
        .collect();
    Table { probe: "network".into(), columns, samples, unavailable: None }
}

/// Renders the page. Where `PGDYNO_KEEP_PAGES` names a folder, it is kept there as `name.html`.
fn page(view: &RunView, name: &str) -> String {
    let html = Page::run(&RunReport::new(view.clone())).unwrap().to_html();
    if let Some(folder) = std::env::var_os("PGDYNO_KEEP_PAGES") {
        std::fs::create_dir_all(&folder).unwrap();
        let path = std::path::Path::new(&folder).join(name).with_extension("html");
        std::fs::write(path, &html).unwrap();
    }
    html
}

#[test]
fn two_hours_with_sixty_columns_fit_and_keep_their_extremes() {
    let seconds = series(7200, &mut Random(11));
    let mut view = analysed_run(first_treatments(1, 1), |trial| {
        let mut random = Random(12);
        let m = trial.measurement.as_mut().unwrap();
        m.measured_s = 7200.0;
        m.series.clone_from(&seconds);
        m.series[4321].transactions = 3;
        m.series[4321].latency_us_max = Some(9_876_543.0);
        trial.telemetry = vec![network(7200, 30, &mut random)];
        for sample in &mut trial.telemetry[0].samples[5000..] {
            sample.values[7] = sample.values[7].map(|bytes| bytes + 9e9);
        }
    });
    assert_eq!(view.trials[0].telemetry[0].lines.len(), 60);
    for (shown, second) in view.trials[0].series.iter_mut().zip(seconds) {
        shown.second.latencies = second.latencies;
    }
    let html = page(&view, "two-hours");
    assert!(html.len() <= 25 * MB, "{} bytes", html.len());
    let detail = detail(&html, 0).unwrap();
    let numbers = |value: &serde_json::Value| -> Vec<f64> {
        value.as_array().unwrap().iter().filter_map(serde_json::Value::as_f64).collect()
    };
    let (series, line) = (&detail["series"], &detail["telemetry"][0]["lines"][7]);
    let low = numbers(&series["tps"]["min"]).into_iter().fold(f64::MAX, f64::min);
    assert_eq!((detail["reduced"].as_bool(), low), (Some(true), 3.0));
    assert_eq!(numbers(&series["max"]).into_iter().fold(0.0, f64::max), 9_876_540.0);
    assert!(numbers(&line["max"]).into_iter().fold(0.0, f64::max) > 9000.0);
    assert!(numbers(&line["mean"]).len() <= 1801);
    // No transaction is lost, and each is in the heat map.
    let total: f64 = numbers(&series["transactions"]).iter().sum();
    let measured: u64 = view.trials[0].series.iter().map(|s| s.second.transactions).sum();
    assert_eq!(total as u64, measured);
    let heat: f64 = numbers(&detail["heat"]["rows"]).iter().skip(2).step_by(3).sum();
    assert_eq!(heat as usize, 7200 * 300);
    let statements = detail["statements"].as_array().unwrap();
    for (place, statement) in statements.iter().enumerate() {
        let executions: f64 = numbers(&statement["executions"]).iter().sum();
        let seconds = view.trials[0].series.iter();
        let done: u64 = seconds.map(|s| s.second.commands[place].count).sum();
        assert_eq!(executions as u64, done);
    }
    assert_eq!(statements.len(), 3);
}

#[test]
#[ignore = "long: a page of a thousand trials"]
fn a_run_of_a_thousand_trials_fits() {
    let seconds = series(60, &mut Random(5));
    let mut view = analysed_run(plan(1), |trial| {
        trial.measurement.as_mut().unwrap().series.clone_from(&seconds);
        trial.telemetry.push(network(60, 6, &mut Random(u64::from(trial.ordinal) + 7)));
    });
    let trials = std::mem::take(&mut view.trials);
    view.trials = (0..1000)
        .map(|ordinal| {
            let like = &trials[ordinal as usize % trials.len()];
            TrialView { ordinal, repeat: 1 + ordinal / 4, ..like.clone() }
        })
        .collect();
    let html = page(&view, "thousand-trials");
    assert!(html.len() <= 25 * MB, "{} bytes", html.len());
    for trial in [0, 999] {
        let detail = detail(&html, trial).unwrap();
        assert!(detail["series"]["t_s"].as_array().unwrap().len() > 10, "trial {trial}");
        assert_eq!(detail["telemetry"].as_array().unwrap().len(), view.trials[0].telemetry.len());
    }
}

#[test]
fn the_page_of_a_first_run_is_below_a_megabyte() {
    let html = page(&analysed_run(plan(3), |_| {}), "first-run");
    assert!(html.len() <= MB, "{} bytes", html.len());
}
