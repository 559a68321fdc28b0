//! Analyses of a run agree with its trials.

use pgdyno_analysis::analyse;
use pgdyno_model::record::SessionEnd;
use pgdyno_model::{Latencies, LevelValue, Levels, Plan, PlannedTrial, Treatment};
use pgdyno_report::{NoteKind, RunReport};
use pgdyno_store::Store;
use pgdyno_test_support::records::{
    self, RUN, add_run, alike, analysed_run, failed_trial, fill_with, filled, first_treatments,
    plan, run_called, run_record, session_record, store, trial,
};
use serde_json::Value;

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} is not {b}");
}

fn report_of(plan: Plan) -> RunReport {
    RunReport::read(&filled(plan, None).1, RUN).unwrap()
}

#[test]
fn the_json_keeps_its_keys() {
    let json = serde_json::to_value(report_of(plan(3))).unwrap();
    assert_eq!(json["run"]["id"], RUN);
    assert_eq!(json["run"]["recipe"], "quickstart");
    assert_eq!(json["run"]["state"], "completed");
    let treatments = json["treatments"].as_array().unwrap();
    assert_eq!(treatments.len(), 4);
    for t in treatments {
        assert!(
            t["factors"]["clients"].is_number() && t["factors"]["synchronous_commit"].is_string()
        );
        assert_eq!(t["trials"], 3);
        let mean = t["tps"]["mean"].as_f64().unwrap();
        let (lo, hi) =
            (t["tps"]["ci95"][0].as_f64().unwrap(), t["tps"]["ci95"][1].as_f64().unwrap());
        assert!(lo < mean && mean < hi);
        let latency = |key: &str| t["latency_us"][key].as_f64().unwrap();
        assert!(
            latency("p50") <= latency("p95")
                && latency("p95") <= latency("p99")
                && latency("p99") <= latency("max")
        );
        assert!(t["ratio_to_best"]["value"].as_f64().unwrap() <= 1.0);
        assert!(t["ratio_to_best"]["verdict"].is_string());
    }
    // Ten sightings at ten looks while commits wait, three while they do not; the walwriter is none
    // of the load.
    close(json["treatments"][0]["waits"][0]["share"].as_f64().unwrap(), 0.7);
    assert_eq!(json["treatments"][0]["waits"][0]["event"], "IO:WALSync");
    close(json["treatments"][2]["waits"][0]["backends"].as_f64().unwrap(), 0.2);
    close(json["trials"][0]["events"][0]["t_s"].as_f64().unwrap(), 1.5);
    let trials = json["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 12);
    for t in trials {
        assert!(t["factors"].is_object() && t["repeat"].as_u64().unwrap() >= 1);
        assert!(t["tps"].is_f64() && t["failed"].is_u64());
        let series = t["series"].as_array().unwrap();
        assert_eq!(series.len(), 5);
        let sum: f64 = series
            .iter()
            .map(|s| s["tps"].as_f64().unwrap() * s["length_s"].as_f64().unwrap())
            .sum();
        close(sum, t["transactions"].as_f64().unwrap());
        assert!(series.iter().all(|s| s["t_s"].is_u64() && s["latency_us_p99"].is_f64()));
        assert!(!t["telemetry"].as_array().unwrap().is_empty());
        close(t["observer"]["sampler_cpus"].as_f64().unwrap(), 0.002);
        close(t["observer"]["backends_cpus"].as_f64().unwrap(), 0.004);
        assert_eq!(t["events"][1]["of"], "pgdyno.public.pgbench_tellers");
        close(t["events"][1]["numbers"]["elapsed_s"].as_f64().unwrap(), 0.02);
    }
}

#[test]
fn a_treatment_is_the_sum_of_its_trials() {
    let plan = plan(3);
    let RunReport { view, answer, .. } = report_of(plan.clone());
    for t in &view.treatments {
        let planned = plan.trials.iter().filter(|p| p.treatment == t.index);
        let trials: Vec<_> = planned.map(|p| trial(&plan, *p).measurement.unwrap()).collect();
        let mean = trials.iter().map(|m| m.tps().unwrap()).sum::<f64>() / 3.0;
        close(t.tps.as_ref().unwrap().mean, mean);
        assert_eq!(t.transactions, trials.iter().map(|m| m.transactions).sum::<u64>());
        assert_eq!(t.latency_us.as_ref().unwrap().count, t.transactions);
        let longest = trials.iter().map(|m| m.latency.max_us().unwrap()).fold(0.0, f64::max);
        close(t.latency_us.as_ref().unwrap().max, longest);
        assert_eq!(t.statements.len(), 3);
        assert_eq!(t.statements[1].latency_us.as_ref().unwrap().count, t.transactions);
        assert_eq!(
            t.fsync_per_second.is_some(),
            t.index < 2,
            "commits wait where synchronous_commit is on"
        );
    }
    assert_eq!(view.comparisons.len(), 4, "two factors of two levels, each under the other's two");
    assert!(
        view.comparisons.iter().all(|c| c.ratio.significant == Some(true)),
        "{:#?}",
        view.comparisons
    );
    assert_eq!(view.comparisons[0].given, "clients=1");
    assert!((3.0..4.0).contains(&view.comparisons[0].ratio.value.unwrap()));
    assert!(answer[0].starts_with("synchronous_commit=off clients=8 is fastest"), "{answer:?}");
}

#[test]
fn nothing_measured_is_said_in_words() {
    // All failed.
    let (_folder, mut store) = store();
    let record = run_record(plan(2));
    store.begin_run(&record).unwrap();
    let empty = RunReport::read(&store, RUN).unwrap();
    assert!(empty.answer[0].contains("No trial is completed"));
    let failed = record.plan.trials.iter().map(|planned| failed_trial(*planned));
    let view =
        add_run(&mut records::store().1, &record, &session_record(), SessionEnd::Failed, failed);
    let json = serde_json::to_value(RunReport::new(view)).unwrap();
    for t in json["treatments"].as_array().unwrap() {
        assert_eq!(
            (&t["tps"], &t["latency_us"], &t["ratio_to_best"]),
            (&Value::Null, &Value::Null, &Value::Null)
        );
        assert_eq!(t["reason"], "no trial is completed");
    }
    assert_eq!(json["comparisons"], Value::Array(Vec::new()));
    assert_eq!(json["trials"][0]["tps"], Value::Null);
}

#[test]
fn trials_without_a_transaction_have_no_ratio() {
    let view = analysed_run(plan(2), |t| {
        let m = t.measurement.as_mut().unwrap();
        m.transactions = 0;
        m.latency = Latencies::new();
        m.scripts.clear();
        m.series.clear();
    });
    let RunReport { view, answer, .. } = RunReport::new(view);
    for t in &view.treatments {
        let tps = t.tps.as_ref().unwrap();
        assert_eq!((tps.mean, tps.ci95), (0.0, None));
        assert_eq!(t.ratio_to_best.as_ref().unwrap().value, None);
        assert!(t.latency_us.is_none() && t.quantiles.is_empty());
    }
    assert!(answer[0].contains("No transaction"));
    assert!(view.comparisons.iter().all(|c| c.ratio.value.is_none()));
}

#[test]
fn what_cannot_be_compared_is_not_said_to_be_alike() {
    let mut said = Vec::new();
    for counts in [[[1, 0, 2], [244, 243, 245]], [[40, 40, 40], [95, 95, 95]]] {
        let view = analysed_run(first_treatments(2, 3), |t| {
            let m = t.measurement.as_mut().unwrap();
            m.transactions = counts[t.treatment][t.repeat as usize - 1];
            m.measured_s = 5.0;
        });
        let report = RunReport::new(view);
        said.push(serde_json::to_value(&report).unwrap()["headline"].clone());
        said.push(serde_json::json!(report.answer));
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&said).unwrap());
}

#[test]
fn equal_treatments_cannot_be_told_apart() {
    let view = analysed_run(plan(3), |t| {
        let m = t.measurement.as_mut().unwrap();
        // The same three values for all treatments, in another order for each.
        m.transactions = [1000, 1020, 1050][(t.treatment + t.repeat as usize) % 3];
    });
    let RunReport { view, answer, .. } = RunReport::new(view);
    assert!(answer[0].contains("the fastest is"), "{answer:?}");
    assert!(view.treatments.iter().all(|t| t.may_be_best == Some(true)));
    for c in &view.comparisons {
        assert_eq!(c.ratio.significant, Some(false), "{c:?}");
        assert!(c.ratio.minimum_detectable.is_some(), "{c:?}");
    }
}

/// A run of `plan` whose trials have the tps that `tps` gives for (treatment, block), and its
/// store.
fn run_of(plan: Plan, id: &str, store: &mut Store, tps: impl Fn(usize, u32) -> u64) -> RunReport {
    let record = run_called(id, plan);
    RunReport::new(fill_with(store, &record, |t| {
        t.measurement.as_mut().unwrap().transactions = 5 * tps(t.treatment, t.block);
    }))
}

fn says(report: &RunReport, words: &str) -> bool {
    report.notes.iter().any(|note| note.text.contains(words))
}

#[test]
fn equivalence_needs_a_margin_and_is_said() {
    let (_folder, mut store) = store();
    let spread = |t: usize, block: u32| 1000 + 3 * ((t as u64 + u64::from(block)) % 3);
    let without = run_of(plan(5), "without", &mut store, spread);
    assert!(without.view.comparisons.iter().all(|c| c.ratio.equivalent.is_none()));
    let with = run_of(Plan { margin: Some(0.03), ..plan(5) }, "with", &mut store, spread);
    for c in &with.view.comparisons {
        assert_eq!((c.ratio.significant, c.ratio.equivalent), (Some(false), Some(true)), "{c:?}");
    }
    let tight = run_of(Plan { margin: Some(0.0001), ..plan(5) }, "tight", &mut store, spread);
    assert!(tight.view.comparisons.iter().all(|c| c.ratio.equivalent == Some(false)));
    let words = [&without, &with, &tight].map(|report| {
        let json = serde_json::to_value(report).unwrap();
        json["comparisons"][0]["words"].as_str().unwrap().to_owned()
    });
    insta::assert_snapshot!("equivalence", words.join("\n"));
}

#[test]
fn the_noise_floor_is_that_of_the_newest_run_of_the_same_under_two_names_on_this_host() {
    let (_folder, mut store) = store();
    let same = alike(&["a", "b"], 4);
    let before = run_of(plan(3), "before", &mut store, |_, block| 1000 + u64::from(block));
    assert!(before.view.noise_floor.is_none() && says(&before, "`pgdyno run noise-floor`"));
    let itself = run_of(same, "floor", &mut store, |t, block| {
        1000 + 10 * ((t as u64 + u64::from(block)) % 3)
    });
    assert_eq!(itself.view.noise_floor.as_ref().unwrap().run, "floor");
    assert!(
        itself.answer[0].starts_with("Noise floor: the same treatment differs"),
        "{:?}",
        itself.answer
    );
    let later = RunReport::read(&store, "before").unwrap();
    let floor = later.view.noise_floor.as_ref().unwrap();
    assert_eq!((floor.run.as_str(), floor.blocks), ("floor", 4));
    close(floor.floor, floor.ci95[1].max(1.0 / floor.ci95[0]) - 1.0);
    assert!(says(&later, "A difference below"));

    // Another machine's floor is not this one's.
    let record = run_called("elsewhere", plan(1));
    store.begin_run(&record).unwrap();
    let mut session = session_record();
    session.host.cpu_model = "Another CPU".into();
    let session = store.begin_session("elsewhere", &session).unwrap();
    store.add_trial("elsewhere", session, &trial(&record.plan, record.plan.trials[0])).unwrap();
    assert!(analyse(&store, "elsewhere").unwrap().noise_floor.is_none());
}

#[test]
fn repeats_that_all_rise_are_called_so() {
    let (_folder, mut store) = store();
    let rising_and_falling = |t: usize, block: u32| match t {
        0 => 1000 + 50 * u64::from(block),
        1 => 1000 - 50 * u64::from(block),
        _ => 1000 + 50 * (u64::from(block) % 2),
    };
    let report = run_of(plan(6), RUN, &mut store, rising_and_falling);
    // 2 of 720 orders, four treatments judged together.
    assert!(
        says(&report, "clients=1: tps rises with every repeat") && says(&report, "p = 0.011"),
        "{:#?}",
        report.notes
    );
    assert!(says(&report, "clients=8: tps falls with every repeat"));
    let view = report.view;
    close(view.treatments[0].drift.unwrap().chance, 2.0 / 720.0);
    close(view.treatments[0].drift.unwrap().chance_together, 8.0 / 720.0);
    assert!(view.treatments[2].drift.is_none_or(|d| !d.is_significant()));

    // Four repeats that all rise do so in 2 of 24 orders, up or down.
    let RunReport { view, notes, .. } = run_of(plan(4), "four", &mut store, rising_and_falling);
    close(view.treatments[0].drift.unwrap().chance, 2.0 / 24.0);
    assert!(!notes.iter().any(|n| n.kind == NoteKind::Trend), "{notes:#?}");
}

#[test]
fn what_the_generator_may_have_limited_is_said_wherever_it_is_compared() {
    let view = analysed_run(plan(3), |t| {
        if t.treatment == 3 && t.block == 2 {
            t.measurement.as_mut().unwrap().busiest_thread = 0.97;
        }
    });
    let report = RunReport::new(view);
    let json = serde_json::to_value(&report).unwrap();
    let RunReport { view, notes, answer, .. } = report;
    for c in &view.comparisons {
        let limited = c.treatment == 3 || c.to == 3;
        assert_eq!(c.generator_limited, limited, "{c:?}");
    }
    let to_best = &json["treatments"][0]["ratio_to_best"]["verdict"];
    assert!(to_best.as_str().unwrap().contains("generator-limited"), "{to_best}");
    assert!(
        notes.iter().any(|n| n.kind == NoteKind::GeneratorLimited)
            && answer[0].contains("generator"),
        "{answer:?}"
    );
    assert_eq!(view.trials.iter().filter(|t| t.generator_limit.is_some()).count(), 1);
}

#[test]
fn a_client_sweep_has_its_law_knee_and_peak() {
    let mut sweep = plan(3);
    let first = sweep.treatments[0].clone();
    let clients = [1, 2, 4, 8, 16, 32];
    sweep.factors = vec!["clients".into()];
    sweep.treatments = clients
        .map(|n: u32| {
            let levels = Levels(vec![("clients".into(), LevelValue::Int(n.into()))]);
            Treatment { levels, clients: n, ..first.clone() }
        })
        .into();
    sweep.trials = (0..18)
        .map(|i| {
            let block = i / 6 + 1;
            PlannedTrial { ordinal: i, block, treatment: i as usize % 6, repeat: block }
        })
        .collect();
    // Trials that the shared plan's four bases cannot make are made from the first one's.
    let record = run_record(sweep);
    let trials = record.plan.trials.iter().map(|planned| {
        let mut t = trial(&record.plan, PlannedTrial { treatment: 0, ..*planned });
        t.treatment = planned.treatment;
        let n = f64::from(clients[planned.treatment]);
        let tps = 1000.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.002 * n * (n - 1.0));
        let transactions = (5.0 * tps * (1.0 + 0.01 * f64::from((planned.ordinal * 7) % 5))) as u64;
        t.measurement.as_mut().unwrap().transactions = transactions;
        t
    });
    let view = add_run(&mut store().1, &record, &session_record(), SessionEnd::Completed, trials);
    let report = RunReport::new(view);
    let view = &report.view;
    let law = view.scaling[0].law.as_ref().unwrap();
    let peak = law.peak_clients.unwrap();
    assert!((18.0..26.0).contains(&peak.value) && peak.ci95.is_some(), "{law:?}");
    assert!(law.knee.unwrap().value < peak.value && law.measured_to == 32);
    assert!(
        says(&report, "Universal Scalability Law") && says(&report, "the knee is at"),
        "{:#?}",
        report.notes
    );
    // 16 clients reach 7.3 thousand, 32 reach 7.2, 8 reach 5.5: at 4% of noise 8 are told apart.
    let course = &view.courses[0];
    assert!(course.rises && !course.falls && course.peak == Some([4, 5]), "{course:?}");
    let holds = |point: &pgdyno_analysis::CoursePoint, t: &usize| {
        let tps = view.treatments[*t].tps.as_ref().unwrap().mean;
        (point.band[0]..=point.band[1]).contains(&tps)
    };
    assert_eq!(course.treatments, [0, 1, 2, 3, 4, 5]);
    assert!(course.curve.iter().zip(&course.treatments).all(|(point, t)| holds(point, t)));
    assert!(says(&report, "highest between clients=16 and clients=32"), "{:#?}", report.notes);
    assert!(view.interactions.is_empty(), "one factor");
    // The latencies are those of one client's trials.
    assert!(says(&report, "(Little's law)"));
}

#[test]
fn commits_that_share_a_flush_are_counted_against_the_fsync_rate() {
    let (_folder, mut store) = store();
    fill_with(&mut store, &run_record(plan(2)), |t| {
        let wal = t.telemetry.iter_mut().find(|table| table.probe == "pg_stat_wal").unwrap();
        wal.columns[0].name = "wal_sync".into();
        for sample in &mut wal.samples {
            sample.values[0] = Some(800.0 * sample.t_s);
        }
    });
    let session = store.sessions(RUN).unwrap()[0].0;
    store.add_fsync_rate(RUN, session, &records::fsync_rate()).unwrap();
    let report = RunReport::read(&store, RUN).unwrap();
    let view = &report.view;
    let eight = &view.treatments[1];
    close(eight.wal_flushes_per_second.unwrap(), 800.0);
    close(eight.commits_per_flush.unwrap(), eight.tps.as_ref().unwrap().mean / 800.0);
    assert!(says(&report, "commits a WAL flush"));
    assert_eq!(
        view.treatments[3].commits_per_flush, None,
        "commits that do not wait share nothing"
    );
}
