//! Runs whose trials look for the highest rate.

use pgdyno_analysis::Withheld;
use pgdyno_analysis::comparison::runs::{CompareOptions, compare};
use pgdyno_model::search::Step;
use pgdyno_model::{Failure, FailureKind, Find, Plan, RunRecord, Search, TrialRecord};
use pgdyno_report::{self as report, RunReport};
use pgdyno_store::Store;
use pgdyno_test_support::assert_contains;
use pgdyno_test_support::records::{fill_with, plan, run_record, store};

fn searching(repeats: u32) -> Plan {
    let slo = "p99 < 20ms, failed < 0.1%".parse().unwrap();
    Plan { find: Some(Find::new(slo, std::time::Duration::from_secs(20))), ..plan(repeats) }
}

/// Gives a trial a search that ended at about `rate`.
fn searched(t: &mut TrialRecord, rate: f64, generator: bool) {
    let rate = rate * (1.0 + 0.01 * f64::from((t.ordinal * 7) % 5));
    let step = |factor: f64, confirming| Step {
        rate: Some(rate * factor),
        confirming,
        latency_us_p50: Some(900.0 * factor),
        latency_us_p95: Some(4000.0 * factor),
        latency_us_p99: Some(12_000.0 * factor.powi(20)),
        broken: (factor > 1.0).then(|| "p99 = 22.10 ms".to_owned()),
        generator_limit: (generator && factor > 1.0).then(|| "busy".to_owned()),
        ..Step::default()
    };
    let steps = vec![
        Step::default(),
        step(0.5, false),
        step(1.03, false),
        step(0.99, false),
        step(1.0, true),
    ];
    t.measurement.as_mut().unwrap().search =
        Some(Search { max_rate: Some(rate), least_broken: Some(rate * 1.03), steps });
}

const RATES: [f64; 4] = [500.0, 2500.0, 1500.0, 6000.0];

fn run(store: &mut Store, id: &str, change: impl Fn(&mut TrialRecord)) -> RunReport {
    let record = RunRecord { id: id.into(), ..run_record(searching(4)) };
    RunReport::new(fill_with(store, &record, |t| {
        searched(t, RATES[t.treatment], false);
        change(t);
    }))
}

#[test]
fn maximum_rates_are_compared_as_tps_is_and_called_by_their_name() {
    let (_folder, mut store) = store();
    let report = run(&mut store, "rates", |_| {});
    let json = serde_json::to_value(&report).unwrap();
    let terminal = report::terminal(&report, 200, report::Detail::Full);
    let RunReport { view, answer, .. } = report;
    let first = &view.treatments[0];
    assert!((first.tps.as_ref().unwrap().mean / 510.0 - 1.0).abs() < 0.02, "{:?}", first.tps);
    let words = json["comparisons"][0]["words"].as_str().unwrap();
    assert!(words.contains("the maximum rate of synchronous_commit=on (95% CI "), "{words}");
    assert!(answer[0].contains("transactions/s at most"), "{answer:?}");
    assert!(
        view.why.is_empty()
            && view.scaling.is_empty()
            && view.treatments.iter().all(|t| t.little.is_none())
    );
    // Four steps of each of four trials, the lower rate first; the closed loop has none.
    let curve = &view.capacity[0].curve;
    assert_eq!(curve.len(), 16);
    assert!(curve.windows(2).all(|w| w[0].rate <= w[1].rate));
    insta::assert_snapshot!("words", json["capacity"][0]["words"].as_str().unwrap());
    assert!(terminal.contains("max rate") && terminal.contains("Maximum rates\n- "), "{terminal}");
    let kept = curve.iter().filter(|point| point.broken.is_none()).count();
    let broken: Vec<&String> = curve.iter().filter_map(|point| point.broken.as_ref()).collect();
    assert_eq!((kept, broken.len()), (12, 4));
    assert!(broken.iter().all(|why| why.contains("p99 = 22.10 ms")), "{broken:?}");
    assert_eq!(json["trials"][0]["search"]["steps"].as_array().unwrap().len(), 5);
    assert_eq!(json["plan"]["find"]["slo"], "p99 < 20ms, failed < 0.1%");
    let objective = &json["capacity"][0]["objective"];
    assert_eq!(
        (&objective["percentile"], objective["limit_us"].as_f64()),
        (&"p99".into(), Some(2e4))
    );
}

#[test]
fn an_answer_that_the_generator_set_is_named() {
    let (_folder, mut store) = store();
    let report = run(&mut store, "limited", |t| {
        if t.treatment == 3 {
            searched(t, RATES[3], true);
        }
    });
    let json = serde_json::to_value(&report).unwrap();
    let view = report.view;
    let limited = |index: usize| view.treatments[index].generator_limited > 0;
    assert!(limited(3) && !limited(0));
    insta::assert_snapshot!("generator_limited", json["capacity"][3]["words"].as_str().unwrap());
    assert!(
        view.comparisons
            .iter()
            .filter(|c| c.treatment == 3 || c.to == 3)
            .all(|c| c.generator_limited)
    );
}

#[test]
fn trials_that_found_no_rate_have_no_number_and_runs_of_other_objectives_are_not_compared() {
    let (_folder, mut store) = store();
    let none = run(&mut store, "none", |t| {
        if t.treatment == 0 {
            t.measurement.as_mut().unwrap().search = Some(Search::default());
            t.failure =
                Some(Failure::new(FailureKind::Load, "no rate was found that keeps the objective"));
        }
    });
    assert!(none.view.treatments[0].tps.is_none());
    assert_eq!(
        serde_json::to_value(&none).unwrap()["capacity"][0]["words"],
        "synchronous_commit=on clients=1: no rate is known to keep p99 < 20ms, failed < 0.1%."
    );
    run(&mut store, "rates", |_| {});
    let record = RunRecord { id: "plain".into(), ..run_record(plan(2)) };
    fill_with(&mut store, &record, |_| {});
    let error =
        compare(&store, "rates", "plain", &CompareOptions::default()).unwrap_err().to_string();
    assert_contains(
        &error,
        &["slo\n    A: p99 < 20ms, failed < 0.1%\n    B: no rate is looked for"],
    );
    let view = compare(
        &store,
        "rates",
        "none",
        &CompareOptions { force: true, ..CompareOptions::default() },
    )
    .unwrap();
    assert!(
        matches!(view.pairs[1].ratio.withheld, Some(Withheld::TooFewRuns { .. }))
            && view.pairs.iter().all(|p| p.why.is_none())
    );
    assert_eq!(
        (view.pairs[0].a.trials.min(view.pairs[0].b.trials), view.pairs[0].ratio.value),
        (0, None)
    );
}
