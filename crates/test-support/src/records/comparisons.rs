//! Comparisons of such runs, and runs whose ratio is known.

use pgdyno_analysis::comparison::runs::{CompareError, CompareOptions, CompareView, compare};
use pgdyno_analysis::gate::{self, Form};
use pgdyno_model::{Advice, LevelValue, Levels, Plan, Treatment, TrialRecord};
use pgdyno_store::Store;

use super::{fill_with, first_treatments, run_called};

/// Options of a comparison by `names`.
pub fn by(names: &[&str]) -> CompareOptions {
    let by = names.iter().map(|name| (*name).to_owned()).collect();
    CompareOptions { by, ..CompareOptions::default() }
}

/// Options of a comparison with these gates.
pub fn gates(text: &str, form: Form) -> CompareOptions {
    CompareOptions { gates: gate::parse(text, form).unwrap(), ..CompareOptions::default() }
}

/// Message and help of a comparison that was refused.
pub fn refused(result: Result<CompareView, CompareError>) -> String {
    let error = result.unwrap_err();
    format!("{error}\nhelp: {}", error.help().unwrap_or_default())
}

/// Compares `b` with `a` through gates.
pub fn gated(store: &Store, a: &str, b: &str, form: Form, text: &str) -> CompareView {
    compare(store, a, b, &gates(text, form)).unwrap()
}

/// Gives a trial `factor` times the transactions.
pub fn speed_up(trial: &mut TrialRecord, factor: f64) {
    let measurement = trial.measurement.as_mut().unwrap();
    measurement.transactions = (measurement.transactions as f64 * factor) as u64;
}

/// Gives a trial of five seconds that tps.
pub fn set_tps(trial: &mut TrialRecord, tps: f64) {
    let measurement = trial.measurement.as_mut().unwrap();
    measurement.transactions = (tps * 5.0) as u64;
    measurement.measured_s = 5.0;
}

/// A plan of the treatments called `names`, which differ in nothing.
pub fn alike(names: &[&str], repeats: u32) -> Plan {
    let mut plan = first_treatments(names.len(), repeats);
    plan.factors = vec!["name".into()];
    let first = plan.treatments[0].clone();
    let named = |name: &&str| {
        let levels = Levels(vec![("name".into(), LevelValue::Text((*name).into()))]);
        Treatment { levels, ..first.clone() }
    };
    plan.treatments = names.iter().map(named).collect();
    plan
}

/// A run of one treatment with five trials around `level`, within 1% of it.
pub fn run_at(store: &mut Store, id: &str, level: f64) {
    fill_with(store, &run_called(id, alike(&["only"], 5)), |t| {
        set_tps(t, level * (1.0 + 0.004 * (f64::from(t.block * 7 % 5) - 2.0)));
    });
}

/// A run of two treatments whose ratio in block b is `ratio` × (1 + `spread` × one of -1, 0, 1).
/// They are equal only in the run `floor`.
pub fn run_of_two(store: &mut Store, id: &str, ratio: f64, spread: f64) {
    let mut plan = alike(&["a", "b"], 6);
    plan.treatments[1].clients += u32::from(id != "floor");
    fill_with(store, &run_called(id, plan), |t| {
        let around = 1.0 + spread * (f64::from(t.block % 3) - 1.0);
        set_tps(t, if t.treatment == 0 { 100_000.0 } else { 100_000.0 * ratio * around });
    });
}
