//! Analyses factors over all their levels: courses over ordered factors, an effect averaged over
//! the other factors, interactions of two.

use std::cmp::Ordering;

use pgdyno_model::record::RunState;
use pgdyno_model::units::{Bytes, Span};
use pgdyno_model::{LevelValue, Levels, Plan};
use pgdyno_stats::{self as stats, Cells, RunTrials};

use super::question::{asked_levels, effect_pairs};
use super::treatment::TreatmentSamples;
use super::view::{CoursePoint, CourseView, EffectView, InteractionView};
use crate::comparison::family::{ALPHA, is_provisional};
use crate::comparison::pairing::{design, interim_analyses};
use crate::gate::Measure;

/// Findings of a run about whole factors.
#[derive(Default)]
pub(super) struct Factors {
    pub(super) effect: Option<EffectView>,
    pub(super) courses: Vec<CourseView>,
    pub(super) interactions: Vec<InteractionView>,
}

impl Factors {
    /// Judges the factors of a run in `state`. Finds nothing for a run that may still change, or
    /// whose tps a rate sets.
    pub(super) fn of_run(plan: &Plan, state: RunState, sums: &[TreatmentSamples]) -> Self {
        if is_provisional(plan, state) || plan.has_rate() {
            return Self::default();
        }
        let trials = TreatmentSamples::all_values(sums, Measure::Tps);
        let looks = interim_analyses(plan);
        let run = RunTrials::new(&trials, design(plan, looks.as_ref(), plan.noise_prior));
        Self {
            effect: average_effect(plan, sums, &run),
            courses: courses(plan, sums, &run),
            interactions: interactions(plan, sums, &run),
        }
    }
}

/// Returns the course over each ordered factor, under each combination of the others.
fn courses(plan: &Plan, sums: &[TreatmentSamples], run: &RunTrials) -> Vec<CourseView> {
    let of_factor = |factor: &String| sweeps(plan, factor, sums);
    let sweeps: Vec<Sweep> = plan.factors.iter().flat_map(of_factor).collect();
    let members: Vec<Vec<usize>> = sweeps.iter().map(|sweep| sweep.treatments.clone()).collect();
    let found = stats::courses(run, &members);
    let view = |(sweep, course): (Sweep, Option<stats::Course>)| {
        let Sweep { factor, given, treatments } = sweep;
        let stats::Course { rises, falls, peak, curve } = course?;
        let curve = in_tps(&curve, &treatments, sums);
        Some(CourseView { factor, given, treatments, rises, falls, peak, curve })
    };
    sweeps.into_iter().zip(found).filter_map(view).collect()
}

/// Measured treatments that differ in one ordered factor only, by ascending level.
struct Sweep {
    factor: String,
    /// Levels of the other factors in one line; all treatments share them.
    given: String,
    treatments: Vec<usize>,
}

/// Returns a curve over `treatments` in their unit.
fn in_tps(
    curve: &[stats::Fit],
    treatments: &[usize],
    sums: &[TreatmentSamples],
) -> Vec<CoursePoint> {
    let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
    let of = |t: &usize| mean(&sums[*t].tps.iter().map(|(_, tps)| tps.ln()).collect::<Vec<f64>>());
    let level = mean(&treatments.iter().map(of).collect::<Vec<f64>>()).exp();
    let point = |fit: &stats::Fit| CoursePoint {
        value: level * fit.value,
        band: fit.band.map(|end| level * end),
    };
    curve.iter().map(point).collect()
}

/// Returns the sweeps over `factor`; none of fewer than three levels, or where its levels have no
/// order.
fn sweeps(plan: &Plan, factor: &str, sums: &[TreatmentSamples]) -> Vec<Sweep> {
    let place = |t: usize| plan.treatments[t].levels.get(factor).and_then(Place::from_level);
    let all: Option<Vec<Place>> = (0..plan.treatments.len()).map(place).collect();
    let is_ordered = all.is_some_and(|all| {
        all.iter().all(|place| std::mem::discriminant(place) == std::mem::discriminant(&all[0]))
    });
    if !is_ordered {
        return Vec::new();
    }
    let mut sweeps: Vec<Sweep> = Vec::new();
    let measured = (0..plan.treatments.len()).filter(|t| !sums[*t].tps.is_empty());
    for index in measured {
        let given = plan.treatments[index].levels.without(&[factor]).to_string();
        match sweeps.iter_mut().find(|sweep| sweep.given == given) {
            Some(sweep) => sweep.treatments.push(index),
            None => {
                let factor = factor.to_owned();
                sweeps.push(Sweep { factor, given, treatments: vec![index] });
            }
        }
    }
    for Sweep { treatments, .. } in &mut sweeps {
        treatments.sort_by(|a, b| place(*a).partial_cmp(&place(*b)).unwrap_or(Ordering::Equal));
        treatments.dedup_by(|a, b| place(*a) == place(*b));
    }
    sweeps.retain(|sweep| sweep.treatments.len() >= 3);
    sweeps
}

/// Place of a level in its factor's order.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Place {
    Number(f64),
    Size(Bytes),
    Time(Span),
}

impl Place {
    /// Reads the place of a level; none if it is no quantity.
    fn from_level(level: &LevelValue) -> Option<Self> {
        match level {
            LevelValue::Bool(_) => None,
            LevelValue::Int(number) => Some(Self::Number(*number as f64)),
            LevelValue::Float(number) => Some(Self::Number(*number)),
            LevelValue::Text(text) => {
                let size = text.parse().ok().map(Self::Size);
                size.or_else(|| text.parse().ok().map(Self::Time))
            }
        }
    }
}

/// Returns the effect that the question asks for, averaged over all measured combinations; none for
/// fewer than two.
fn average_effect(plan: &Plan, sums: &[TreatmentSamples], run: &RunTrials) -> Option<EffectView> {
    let (factor, level, against) = asked_levels(plan)?;
    let is_measured = |t: usize| !sums[t].tps.is_empty();
    let mut pairs = effect_pairs(plan);
    pairs.retain(|(this, that)| is_measured(*this) && is_measured(*that));
    let ratio = (pairs.len() > 1).then(|| stats::average_ratio(run, &pairs))??;
    Some(EffectView {
        factor,
        level,
        against,
        combinations: pairs.len(),
        ratio: ratio.value?,
        ci95: ratio.ci95?,
        p: ratio.p?,
        significant: ratio.p? <= ALPHA,
    })
}

/// Returns the interaction of each two factors of which every combination was measured.
fn interactions(plan: &Plan, sums: &[TreatmentSamples], run: &RunTrials) -> Vec<InteractionView> {
    let tables: Vec<Table> = pairs_of_factors(plan)
        .into_iter()
        .filter_map(|(factor, on)| Table::new(plan, sums, factor, on))
        .collect();
    let cells: Vec<Cells> = tables.iter().map(|table| table.cells.clone()).collect();
    let found = stats::interactions(run, &cells);
    let view = |(table, found): (Table, Option<stats::Interaction>)| {
        let stats::Interaction { p, rows: [level, against], columns, ratio, ci95 } = found?;
        let [higher, lower] = columns.map(|column| table.columns[column].to_string());
        Some(InteractionView {
            factor: table.factor.to_owned(),
            on: table.on.to_owned(),
            p,
            depends: p <= ALPHA,
            level: table.rows[level].to_string(),
            against: table.rows[against].to_string(),
            higher_with: higher,
            lower_with: lower,
            ratio,
            ci95,
        })
    };
    tables.into_iter().zip(found).filter_map(view).collect()
}

/// Returns all pairs of factors, as (factor whose effect is judged, factor on which it may depend).
/// Clients and scale come last.
fn pairs_of_factors(plan: &Plan) -> Vec<(&str, &str)> {
    let is_load = |factor: &str| factor == "clients" || factor == "scale";
    let mut factors: Vec<&str> = plan.factors.iter().map(String::as_str).collect();
    factors.sort_by_key(|factor| is_load(factor));
    let after = |(i, factor)| factors[i + 1..].iter().map(move |on| (factor, *on));
    factors.iter().copied().enumerate().flat_map(after).collect()
}

/// Treatments by the levels of two factors.
struct Table<'a> {
    factor: &'a str,
    on: &'a str,
    rows: Vec<&'a LevelValue>,
    columns: Vec<&'a LevelValue>,
    cells: Cells,
}

impl<'a> Table<'a> {
    /// Collects the treatments whose other levels were measured in every cell; none without any, or
    /// if a factor has one level only.
    fn new(
        plan: &'a Plan,
        sums: &[TreatmentSamples],
        factor: &'a str,
        on: &'a str,
    ) -> Option<Self> {
        let (rows, columns) = (plan.levels(factor), plan.levels(on));
        if rows.len() < 2 || columns.len() < 2 {
            return None;
        }
        let mut cells: Cells = vec![vec![Vec::new(); columns.len()]; rows.len()];
        let measured = |given: &Levels, row: &LevelValue, column: &LevelValue| {
            plan.treatments.iter().zip(sums).position(|(t, sums)| {
                let is_cell = t.levels.get(factor) == Some(row) && t.levels.get(on) == Some(column);
                is_cell && t.levels.without(&[factor, on]) == *given && !sums.tps.is_empty()
            })
        };
        let mut known: Vec<Levels> = Vec::new();
        for treatment in &plan.treatments {
            let given = treatment.levels.without(&[factor, on]);
            if known.contains(&given) {
                continue;
            }
            let of_row = |row: &&LevelValue| -> Option<Vec<usize>> {
                columns.iter().map(|column| measured(&given, row, column)).collect()
            };
            if let Some(whole) = rows.iter().map(of_row).collect::<Option<Vec<Vec<usize>>>>() {
                let found = whole.into_iter().flatten();
                cells.iter_mut().flatten().zip(found).for_each(|(cell, t)| cell.push(t));
            }
            known.push(given);
        }
        let is_whole = !cells[0][0].is_empty();
        is_whole.then_some(Self { factor, on, rows, columns, cells })
    }
}
