//! The sides of a comparison: treatments that are named by their levels, and machines.
#![allow(missing_docs, clippy::unwrap_used)]

use pgdyno_analysis::analyse;
use pgdyno_analysis::comparison::runs::{CompareError, CompareOptions, CompareView, compare};
use pgdyno_model::record::SessionRecord;
use pgdyno_model::{LevelValue, Levels, Plan, RunRecord};
use pgdyno_report as report;
use pgdyno_store::Merge;
use pgdyno_store::Store;
use pgdyno_test_support::records::{fill_on, fill_with, plan, run_record, session_record, store};

fn record(id: &str, plan: Plan) -> RunRecord {
    RunRecord { id: id.into(), ..run_record(plan) }
}

fn by(names: &[&str]) -> CompareOptions {
    let by = names.iter().map(|name| (*name).to_owned()).collect();
    CompareOptions { by, ..CompareOptions::default() }
}

fn refused(result: Result<CompareView, CompareError>) -> String {
    let error = result.unwrap_err();
    format!("{error}\nhelp: {}", error.help().unwrap_or_default())
}

#[test]
fn a_level_with_commas_is_named_as_it_is_printed() {
    let (_folder, mut store) = store();
    let mut plan = plan(2);
    plan.factors = vec!["generators".into(), "clients".into()];
    let launches = ["ssh:a", "ssh:a,b", "ssh:a,b", "ssh:a"];
    for (treatment, (launch, clients)) in plan.treatments.iter_mut().zip(launches.iter().zip(1..)) {
        treatment.levels = Levels(vec![
            ("generators".into(), LevelValue::Text((*launch).into())),
            ("clients".into(), LevelValue::Int(clients)),
        ]);
    }
    fill_with(&mut store, &record("run", plan), |_| {});
    let forced = CompareOptions { force: true, ..by(&["generators", "clients"]) };
    let chosen = |which: &str| {
        let view = compare(&store, "run:4", &format!("run:{which}"), &forced).unwrap();
        view.pairs.iter().map(|pair| pair.b.treatment).collect::<Vec<_>>()
    };
    assert_eq!(chosen("generators=ssh:a,b"), [1, 2]);
    assert_eq!(chosen("generators=ssh:a"), [0]);
    assert_eq!(chosen("generators=ssh:a,b,clients=3"), [2]);
    assert_eq!(chosen("clients=2, generators = ssh:a,b"), [1]);
    for (wrong, why) in [
        ("generators=ssh:a,c", "`c` is neither"),
        ("generators=ssh:a,b,client=3", "`client` is none"),
        ("generators=ssh:b,clients=3", "none has these levels"),
    ] {
        let refused = refused(compare(&store, "run:4", &format!("run:{wrong}"), &forced));
        assert!(refused.contains(why), "{refused}");
    }
}

/// Merges the run `id`, measured on `host`, into `store`; the host does `factor` times the work.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn arrive(target: &mut Store, id: &str, host: &str, session: &SessionRecord, factor: f64) {
    let (_folder, mut there) = store();
    let mut plan = plan(4);
    plan.treatments.truncate(1);
    plan.trials.retain(|trial| trial.treatment == 0);
    (0..).zip(&mut plan.trials).for_each(|(i, trial)| trial.ordinal = i);
    fill_on(&mut there, &record(id, plan), session, |trial| {
        let measurement = trial.measurement.as_mut().unwrap();
        measurement.transactions = (measurement.transactions as f64 * factor) as u64;
    });
    let mut merge = Merge::default();
    merge.add_store_of(Some(target), &there, &format!("ssh:{host}")).unwrap();
    merge.write(target).unwrap();
}

#[test]
fn hosts_are_compared_as_levels_of_a_factor() {
    let (_folder, mut store) = store();
    arrive(&mut store, "a", "db1", &session_record(), 1.0);
    let mut other = session_record();
    other.host.kernel = "Linux 7.1.0 x86_64".into();
    other.storage[0].filesystem = "xfs".into();
    arrive(&mut store, "b", "db2", &other, 1.1);
    assert_eq!(store.runs().unwrap().iter().flat_map(|run| &run.hosts).count(), 2);

    let refused = refused(compare(&store, "a", "b", &CompareOptions::default()));
    assert!(refused.contains("help: `--by host`"), "{refused}");
    let view = compare(&store, "a", "b", &by(&["host"])).unwrap();
    assert_eq!((&view.a.hosts[..], &view.b.hosts[..]), (&["db1".into()][..], &["db2".into()][..]));
    assert!(view.pairs[0].label.starts_with("host=db1→db2 "), "{}", view.pairs[0].label);
    assert!(view.unequal.iter().all(|unequal| unequal.on_purpose), "{:?}", view.unequal);
    let differ: Vec<&str> = view.unequal.iter().map(|unequal| unequal.what.as_str()).collect();
    assert_eq!(differ, ["host", "kernel", "filesystem"]);
    assert!(
        view.notes.iter().any(|note| note.contains("Hosts are not blocks")),
        "{:?}",
        view.notes
    );

    let views = ["a", "b"].map(|run| analyse(&store, run).unwrap());
    let table = report::hosts(&views, 100);
    assert!(table.contains("db1") && table.contains("db2"), "{table}");
}

/// Machines of one kind differ in nothing that is recorded.
#[test]
fn earlier_runs_of_each_host_judge_that_host() {
    let (_folder, mut store) = store();
    for (n, host) in (0..6).zip(["db1", "db2"].into_iter().cycle()) {
        let factor = if host == "db1" { 1.0 } else { 2.0 };
        let drift = 1.0 + 0.002 * f64::from(n);
        arrive(&mut store, &format!("earlier-{n}"), host, &session_record(), factor * drift);
    }
    arrive(&mut store, "a", "db1", &session_record(), 1.0);
    arrive(&mut store, "b", "db2", &session_record(), 2.0);
    let interval = |asked: &CompareOptions| {
        let view = compare(&store, "a", "b", asked).unwrap();
        view.pairs[0].ratio.ci95.unwrap()
    };
    let [low, high] = interval(&by(&["host"]));
    assert!(1.8 < low && high < 2.2, "{low} {high}");
    // As runs of one machine they would be twice as far apart as these are equal.
    let [low, high] = interval(&CompareOptions::default());
    assert!(low < 1.0 && high > 3.0, "{low} {high}");
}
