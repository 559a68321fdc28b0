//! Treatments of two runs, or of two parts of one, beside each other.

mod chosen;
pub(crate) mod equal;
mod error;
mod gates;
mod history;
mod ratios;
mod view;

use chosen::{Selection, others};
pub use equal::INCIDENTAL;
use equal::MACHINE;
pub use error::CompareError;
use history::History;
use pgdyno_model::Levels;
use pgdyno_model::level::Key;
use pgdyno_model::record::RunState;
use pgdyno_text::nearest::nearest;
use ratios::{Found, Ratios};
pub use view::{
    CompareNote, CompareView, EarlierCount, GateState, GateUnknown, GateView, MemberView, Others,
    Outcome, PairView, SideView, Unequal,
};

use super::family::{Judged, judge, measure};
use super::pairing::Pairing;
use super::within::latency;
use crate::gate::{Gate, Measure};
use crate::noise_floor;
use crate::records::RunData;
use crate::view::{NoiseFloor, RatioView, RunHead, TreatmentView, WhyView};
use crate::why::{Member, explain};
use pgdyno_store::Store;

/// Options of a comparison.
#[derive(Clone, Debug, Default)]
pub struct CompareOptions {
    /// Names that are compared on purpose: factors, or differences as [`Unequal::what`] names them.
    pub by: Vec<String>,
    /// Whether to compare sides that differ in more than `by`.
    pub force: bool,
    /// Whether only earlier runs of the same experiment tell how far equal runs differ. Otherwise
    /// other experiments on the host count too.
    pub own_runs_only: bool,
    /// Gates, judged for every pair.
    pub gates: Vec<Gate>,
}

/// Compares side `b` with side `a`: each is a run as [`Store::resolve`] knows it, or
/// `RUN:TREATMENT`. TREATMENT is a number from 1 in the plan's order, or levels
/// (`clients=8,storage=xfs`) that a treatment must have.
///
/// Treatments match if their levels have the same labels in all factors but those of
/// [`CompareOptions::by`]. One treatment named on each side matches the other whatever its levels;
/// the factors in which they differ are then compared on purpose.
pub fn compare(
    store: &Store,
    a: &str,
    b: &str,
    asked: &CompareOptions,
) -> Result<CompareView, CompareError> {
    let (a, b) = (Selection::read(store, a)?, Selection::read(store, b)?);
    let same_run = a.run.head.id == b.run.head.id;
    let by = named(&asked.by, &a.run, &b.run)?;
    let pairs = matched(&a, &b, &by, same_run);
    if pairs.is_empty() && same_run && a.treatments == b.treatments {
        return Err(CompareError::Itself { run: a.run.head.id, factors: a.run.plan.factors });
    }
    if pairs.is_empty() {
        let (of_a, of_b) = (a.labels(), b.labels());
        return Err(CompareError::NoPairs { a: a.run.head.id, b: b.run.head.id, of_a, of_b });
    }
    let mut by = if a.named && b.named { with_levels(by, &a, &b, &pairs) } else { by };
    let machines = equal::machines(&a.run, &b.run);
    let mut unequal = unequal(&a, &b, &pairs, &by);
    if by.is_empty() {
        by.extend(configurations(&mut unequal));
    }
    if unequal.iter().any(|u| !u.on_purpose) && !asked.force {
        let unequal = unequal.into_iter().filter(|u| !u.on_purpose).collect();
        let (a, b) = (a.run.head.id, b.run.head.id);
        return Err(CompareError::Unequal { a, b, unequal, on_two_hosts: machines.is_some() });
    }
    let machines = machines.filter(|_| by.iter().any(|name| name == MACHINE));
    if let Some([a, b]) = machines.clone() {
        let pairs = (0..pairs.len()).collect();
        unequal.insert(0, Unequal { what: MACHINE.into(), a, b, on_purpose: true, pairs });
    }
    let history = if same_run {
        History::default()
    } else {
        History::load(store, &a, &b, !asked.own_runs_only)?
    };
    let ratios = Ratios::new(&a, &b, &pairs, &by, &history);
    let found: Vec<Found> =
        (0..pairs.len()).map(|pair| ratios.judged(pair, Measure::Tps)).collect();
    // Equivalence is judged by the margin that both name.
    let margin = a.run.plan.margin.filter(|margin| b.run.plan.margin == Some(*margin));
    let measure = measure(&b.run.plan);
    let alone = found.iter().map(|f| f.ratio.clone()).collect();
    let mut judged = judge(alone, measure, margin);
    for (judged, found) in judged.iter_mut().zip(&found) {
        judged.withheld = found.withheld;
    }
    let machines = machines.map(|[a, b]| format!("{MACHINE}={a}→{b}"));
    let views = pair_views(&judged, &found, &ratios, machines.as_deref());
    let floor = match b.run.sessions.last() {
        Some(session) => noise_floor::newest(store, &session.host)?,
        None => None,
    };
    let gates = gates::judge(&ratios, &asked.gates, floor.as_ref());
    let earlier_runs = ratios.earlier_runs(&found, asked.own_runs_only);
    let unmatched = |side: &Selection, of: fn(&(usize, usize)) -> usize| {
        let lonely = side.treatments.iter().filter(|t| !pairs.iter().any(|pair| of(pair) == **t));
        lonely.map(|t| side.run.treatments[*t].label.clone()).collect::<Vec<_>>()
    };
    let (lonely_a, lonely_b) = (unmatched(&a, |pair| pair.0), unmatched(&b, |pair| pair.1));
    Ok(CompareView {
        notes: notes(&a.run, &b.run, earlier_runs, floor),
        measure,
        a: a.side(lonely_a),
        b: b.side(lonely_b),
        by,
        same_run,
        exceeded: gates.iter().any(|g| g.outcome == Outcome::Exceeded),
        outcome: gates.iter().map(|g| g.outcome).max(),
        pairs: views,
        unequal,
        gates,
    })
}

/// Makes the view of every pair. `machines` precedes each label.
fn pair_views(
    judged: &[Judged],
    found: &[Found],
    ratios: &Ratios<'_>,
    machines: Option<&str>,
) -> Vec<PairView> {
    let (a, b) = (ratios.a, ratios.b);
    let view = |(pair, (judged, found)): (usize, (&Judged, &Found))| {
        let (i, j) = ratios.pairs[pair];
        let (x, y) = (&a.run.treatments[i], &b.run.treatments[j]);
        let limited = a.run.sums[i].generator_limited + b.run.sums[j].generator_limited > 0;
        let parts = machines.map(str::to_owned).into_iter().chain([pair_label(x, y)]);
        let label = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        PairView {
            label,
            a: member(x),
            b: member(y),
            ratio: RatioView { within_runs: found.within_runs, ..RatioView::from(judged) },
            latency: latency(|measure| Some(ratios.judged(pair, measure).ratio)),
            why: why(judged, (a, i), (b, j), &ratios.pairing),
            generator_limited: limited,
        }
    };
    judged.iter().zip(found).enumerate().map(view).collect()
}

/// Collects the circumstances of the two runs that a reader needs beside the figures.
fn notes(
    a: &RunData,
    b: &RunData,
    earlier_runs: Option<EarlierCount>,
    floor: Option<NoiseFloor>,
) -> Vec<CompareNote> {
    let mut notes = vec![earlier_runs.map_or(CompareNote::OneRun, CompareNote::TwoRuns)];
    let sides = if a.head.id == b.head.id { vec![("A", a)] } else { vec![("A", a), ("B", b)] };
    for (side, run) in sides {
        let RunHead { state, trials_completed: completed, trials_planned: planned, .. } = run.head;
        if state != RunState::Completed {
            notes.push(CompareNote::NotComplete { side, state, completed, planned });
        }
        notes.extend(run.ad_hoc.then_some(CompareNote::AdHoc { side }));
    }
    let versions = [a, b].map(|run| run.head.pgdyno_version.clone());
    if versions[0] != versions[1] {
        notes.push(CompareNote::OtherVersions(versions));
    }
    if ran_elsewhere(a, b) {
        notes.push(CompareNote::OtherHosts([a.hosts(), b.hosts()]));
    }
    notes.extend(floor.map(CompareNote::NoiseFloor));
    notes
}

/// Returns whether the runs are of different machines: `--hosts` named two, or no session of A
/// shares one with a session of B, as far as they name it.
fn ran_elsewhere(a: &RunData, b: &RunData) -> bool {
    if let (Some(a), Some(b)) = (&a.head.host, &b.head.host) {
        return a != b;
    }
    let (of_a, of_b) = (&a.sessions, &b.sessions);
    !of_a.is_empty()
        && !of_b.is_empty()
        && of_a.iter().all(|a| of_b.iter().all(|b| a.host.is_other_than(&b.host)))
}

/// Returns `by` if each name is a factor, or something that must be equal.
fn named(by: &[String], a: &RunData, b: &RunData) -> Result<Vec<String>, CompareError> {
    let factors = || a.plan.factors.iter().chain(&b.plan.factors);
    for name in by {
        // Errors name a setting so.
        let bare = name.strip_prefix("setting ").unwrap_or(name);
        let setting =
            |v: &RunData| v.servers.iter().any(|s| s.settings.iter().any(|x| x.name == bare));
        let own = Key::NAMES.contains(&bare) || equal::names().contains(&bare);
        if own || factors().any(|f| f == bare) || setting(a) || setting(b) {
            continue;
        }
        let known: Vec<&str> = factors().map(String::as_str).chain(equal::names()).collect();
        let mut known: Vec<String> = nearest(name, &known).into_iter().map(str::to_owned).collect();
        known.dedup();
        return Err(CompareError::NoSuchFactor { by: name.clone(), known });
    }
    Ok(by.to_vec())
}

/// Pairs the treatments that match, as (A's index, B's).
fn matched(a: &Selection, b: &Selection, by: &[String], same_run: bool) -> Vec<(usize, usize)> {
    if let ([i], [j]) = (a.treatments.as_slice(), b.treatments.as_slice())
        && a.named
        && b.named
        && !(same_run && i == j)
    {
        return vec![(*i, *j)];
    }
    let levels = |side: &Selection, t: usize| side.run.treatments[t].factors.clone();
    let mut pairs = Vec::new();
    for i in &a.treatments {
        let alike = |j: &&usize| others(&levels(a, *i), by) == others(&levels(b, **j), by);
        let candidates: Vec<usize> = b.treatments.iter().filter(alike).copied().collect();
        // Where the factor that is compared has several levels, its own level is none to compare
        // with.
        let differ = |j: &&usize| others(&levels(a, *i), &[]) != others(&levels(b, **j), &[]);
        let different: Vec<usize> = candidates.iter().filter(differ).copied().collect();
        let chosen = if different.is_empty() { candidates } else { different };
        for j in chosen {
            let itself = same_run && *i == j;
            // Within one run each two are compared once, the later with the earlier.
            let twice = same_run && pairs.contains(&(j, *i));
            if !itself && !twice {
                pairs.push((*i, j));
            }
        }
    }
    pairs
}

/// Adds to `by` the factors in which the named treatments have different levels.
fn with_levels(
    mut by: Vec<String>,
    a: &Selection,
    b: &Selection,
    pairs: &[(usize, usize)],
) -> Vec<String> {
    for (i, j) in pairs {
        let (x, y) = (&a.run.treatments[*i].factors, &b.run.treatments[*j].factors);
        for (factor, _) in x.0.iter().chain(&y.0) {
            let label = |levels: &Levels| levels.get(factor).map(ToString::to_string);
            if label(x) != label(y) && !by.contains(factor) {
                by.push(factor.clone());
            }
        }
    }
    by
}

/// Marks the settings in which the sides differ as on purpose and returns their names; none if the
/// sides differ in anything else.
///
/// Two configurations of one server are comparable without `--by`.
fn configurations(unequal: &mut [Unequal]) -> Vec<String> {
    let is_setting = |u: &Unequal| u.what.starts_with("setting ");
    if !unequal.iter().filter(|u| !u.on_purpose).all(is_setting) {
        return Vec::new();
    }
    let on_purpose = |u: &mut Unequal| {
        u.on_purpose = true;
        u.what.clone()
    };
    unequal.iter_mut().filter(|u| !u.on_purpose).map(on_purpose).collect()
}

/// Lists the differences of the pairs other than their results, each with the pairs that have it.
fn unequal(a: &Selection, b: &Selection, pairs: &[(usize, usize)], by: &[String]) -> Vec<Unequal> {
    let mut out: Vec<Unequal> = Vec::new();
    for (pair, (i, j)) in pairs.iter().enumerate() {
        // Without a completed trial there is nothing to compare, and the verdict says so.
        if a.run.sums[*i].tps.is_empty() || b.run.sums[*j].tps.is_empty() {
            continue;
        }
        let (x, y) = (&a.run.plan.treatments[*i], &b.run.plan.treatments[*j]);
        for d in equal::differences(&a.treatment(*i), &b.treatment(*j)) {
            let on_purpose = d.is_named(by, |name| equal::is_bundle(name, x, y));
            let same = |u: &&mut Unequal| {
                (&u.what, &u.a, &u.b, u.on_purpose) == (&d.what, &d.a, &d.b, on_purpose)
            };
            match out.iter_mut().find(same) {
                Some(known) => known.pairs.push(pair),
                None => out.push(Unequal {
                    what: d.what,
                    a: d.a,
                    b: d.b,
                    on_purpose,
                    pairs: vec![pair],
                }),
            }
        }
    }
    out
}

/// Renders a pair in one line: `factor=level` where both have the level, `factor=A's→B's` where
/// they differ. Empty if each is its run's only treatment.
fn pair_label(x: &TreatmentView, y: &TreatmentView) -> String {
    let (a, b) = (&x.factors, &y.factors);
    let only_b = b.0.iter().filter(|(factor, _)| a.get(factor).is_none());
    let level = |of: &Levels, factor: &str| {
        of.get(factor).map_or_else(|| "–".to_owned(), ToString::to_string)
    };
    let each = a.0.iter().chain(only_b).map(|(factor, _)| {
        let (before, after) = (level(a, factor), level(b, factor));
        if before == after {
            format!("{factor}={before}")
        } else {
            format!("{factor}={before}→{after}")
        }
    });
    each.collect::<Vec<_>>().join(" ")
}

fn member(t: &TreatmentView) -> MemberView {
    MemberView {
        treatment: t.index,
        label: t.label.clone(),
        factors: t.factors.clone(),
        trials: t.trials,
        tps: t.tps.clone(),
        reason: t.reason,
        latency_us: t.latency_us.clone(),
    }
}

/// Explains where the difference lies; none if it is not significant, or the loads differ.
fn why(
    judged: &Judged,
    (a, i): (&Selection, usize),
    (b, j): (&Selection, usize),
    pairing: &Pairing,
) -> Option<WhyView> {
    let (from, to) = (&a.run.plan.treatments[i], &b.run.plan.treatments[j]);
    let searched = a.run.plan.find.is_some() || b.run.plan.find.is_some();
    if searched
        || judged.withheld.is_some()
        || judged.significant() == Some(false)
        || !from.is_loaded_alike(to)
    {
        return None;
    }
    let (profiles_a, profiles_b) = (&a.run.sums[i].profiles, &b.run.sums[j].profiles);
    if profiles_a.is_empty() || profiles_b.is_empty() {
        return None;
    }
    Some(explain(
        &Member { index: i, profiles: profiles_a },
        &Member { index: j, profiles: profiles_b },
        pairing,
    ))
}
