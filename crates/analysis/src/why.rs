//! Why two treatments differ: where the gap in latency lies, statement by statement and wait event
//! by wait event, and what else each transaction took.

use std::collections::BTreeSet;

use pgdyno_model::Plan;
use pgdyno_stats as stats;

use super::profile::{FIGURES, Profile};
use super::treatment::TreatmentSamples;
use super::view::{
    Comparison, FigureView, GapPart, GapView, Part, PartView, TreatmentView, WhyView,
};
use crate::comparison::pairing::Pairing;

/// A treatment to be taken apart: its index in its plan, and its profiles.
pub(super) struct Member<'a> {
    pub(super) index: usize,
    pub(super) profiles: &'a [Profile],
}

/// Takes `b` apart beside `a`.
pub(super) fn explain(a: &Member<'_>, b: &Member<'_>, pairing: &Pairing) -> WhyView {
    let mut latency = latency(a, b, pairing);
    let active = active(a, b, pairing);
    let no_common_statement = have_no_statement_in_common(a, b);
    if no_common_statement {
        for part in latency.iter_mut().flat_map(|gap| &mut gap.parts) {
            (part.share, part.ci95) = (None, None);
        }
    }
    let missing: BTreeSet<&String> =
        a.profiles.iter().chain(b.profiles).flat_map(|p| &p.missing).collect();
    WhyView {
        treatment: b.index,
        to: a.index,
        no_common_statement,
        latency,
        active,
        figures: figures(a.profiles, b.profiles, pairing),
        missing: missing.into_iter().cloned().collect(),
    }
}

/// The pairs of a run that are worth explaining: told apart, under the same load. Each treatment
/// beside the best, and each two that differ in one factor.
pub(super) fn of_run(
    plan: &Plan,
    best: Option<usize>,
    treatments: &[TreatmentView],
    comparisons: &[Comparison],
    sums: &[TreatmentSamples],
) -> Vec<WhyView> {
    // At rates of their own, latencies are what was asked for.
    if plan.find.is_some() {
        return Vec::new();
    }
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    let mut add = |treatment: usize, to: usize| {
        let known = pairs.contains(&(treatment, to)) || pairs.contains(&(to, treatment));
        if !known && plan.treatments[treatment].is_loaded_alike(&plan.treatments[to]) {
            pairs.push((treatment, to));
        }
    };
    if let Some(best) = best {
        let apart = |t: &&TreatmentView| {
            t.index != best && t.ratio_to_best.as_ref().is_some_and(|r| r.significant == Some(true))
        };
        treatments.iter().filter(apart).for_each(|t| add(t.index, best));
    }
    for c in comparisons.iter().filter(|c| c.ratio.significant == Some(true)) {
        // The slower beside the faster.
        let slower = c.ratio.value.is_some_and(|v| v < 1.0);
        let (treatment, to) = if slower { (c.treatment, c.to) } else { (c.to, c.treatment) };
        add(treatment, to);
    }
    let pairing = Pairing::within(plan);
    pairs
        .into_iter()
        .map(|(b, a)| {
            let member = |i: usize| Member { index: i, profiles: &sums[i].profiles };
            explain(&member(a), &member(b), &pairing)
        })
        .collect()
}

fn latency(a: &Member<'_>, b: &Member<'_>, pairing: &Pairing) -> Option<GapView> {
    let parts: BTreeSet<&Part> =
        a.profiles.iter().chain(b.profiles).flat_map(|p| p.parts.keys()).collect();
    let all = parts.into_iter().map(|part| {
        let of = |p: &Profile| p.parts.get(part).copied().unwrap_or(0.0);
        let part = GapPart::Latency(part.clone());
        (part, rows(a, of, |p| p.latency), rows(b, of, |p| p.latency))
    });
    gap(all.collect(), pairing)
}

fn active(a: &Member<'_>, b: &Member<'_>, pairing: &Pairing) -> Option<GapView> {
    if a.profiles.iter().chain(b.profiles).any(|p| p.active.is_none()) {
        return None;
    }
    let events: BTreeSet<&String> = a
        .profiles
        .iter()
        .chain(b.profiles)
        .flat_map(|p| p.active.iter().flatten())
        .map(|(event, _)| event)
        .collect();
    let all = events.into_iter().map(|event| {
        let of =
            |p: &Profile| p.active.as_ref().and_then(|all| all.get(event)).copied().unwrap_or(0.0);
        let whole = |p: &Profile| p.active.iter().flat_map(|all| all.values()).sum();
        (GapPart::Event(event.clone()), rows(a, of, whole), rows(b, of, whole))
    });
    gap(all.collect(), pairing)
}

/// Whether both have statements and none is the same.
fn have_no_statement_in_common(a: &Member<'_>, b: &Member<'_>) -> bool {
    fn statements<'a>(of: &Member<'a>) -> BTreeSet<&'a str> {
        let parts = of.profiles.iter().flat_map(|p| p.parts.keys());
        let text = |part: &'a Part| match part {
            Part::Statement { text, .. } => Some(text.as_str()),
            Part::WaitToBeSent | Part::BetweenStatements => None,
        };
        parts.filter_map(text).collect()
    }
    let (a, b) = (statements(a), statements(b));
    !a.is_empty() && !b.is_empty() && a.is_disjoint(&b)
}

type Rows = Vec<(u32, f64, f64)>;

fn rows(of: &Member<'_>, part: impl Fn(&Profile) -> f64, whole: impl Fn(&Profile) -> f64) -> Rows {
    of.profiles.iter().map(|p| (p.block, part(p), whole(p))).collect()
}

/// The gap of parts that add up to a whole; none without any.
fn gap(all: Vec<(GapPart, Rows, Rows)>, pairing: &Pairing) -> Option<GapView> {
    let mean = |rows: &Rows, of: fn(&(u32, f64, f64)) -> f64| {
        rows.iter().map(of).sum::<f64>() / rows.len() as f64
    };
    let mut parts = Vec::new();
    let mut whole = None;
    for (part, a, b) in all {
        let (a, b) = if pairing.is_paired() { in_both(a, b) } else { (a, b) };
        let trials =
            |rows: &Rows| rows.iter().map(|(block, _, whole)| (*block, *whole)).collect::<Vec<_>>();
        let level = pairing.share(&trials(&b), &trials(&a));
        let found = stats::share(level, &a, &b, pairing.is_paired())?;
        whole = Some((mean(&a, |r| r.2), mean(&b, |r| r.2), found.whole));
        parts.push(PartView {
            part,
            a_us: mean(&a, |r| r.1),
            b_us: mean(&b, |r| r.1),
            gap_us: found.part,
            share: found.share,
            ci95: found.ci95,
        });
    }
    let (a_us, b_us, gap_us) = whole?;
    // The largest in the direction of the whole.
    let along = |part: &PartView| part.gap_us.value * gap_us.value.signum();
    parts.sort_by(|x, y| along(y).total_cmp(&along(x)));
    let significant = gap_us.ci95.map(|[lo, hi]| lo > 0.0 || hi < 0.0);
    for part in parts.iter_mut().filter(|part| !has_meaning(part, significant)) {
        (part.share, part.ci95) = (None, None);
    }
    Some(GapView { a_us, b_us, gap_us, significant, parts })
}

/// Whether a part's share says anything: not of a gap that may be none, nor where the interval is
/// wider than the gap itself.
fn has_meaning(part: &PartView, significant: Option<bool>) -> bool {
    match (significant, part.ci95) {
        (Some(true), Some([lo, hi])) => hi - lo <= 1.0,
        (Some(true), None) => true,
        // Without repeats: a share of what was seen, if it can be one.
        (None, _) => part.share.is_some_and(|share| (-1.0..=2.0).contains(&share)),
        (Some(false), _) => false,
    }
}

/// The trials of blocks that both have, so that means and gaps are of the same; all where fewer
/// than two blocks do.
fn in_both(a: Rows, b: Rows) -> (Rows, Rows) {
    let common = |these: &Rows, those: &Rows| -> Rows {
        these
            .iter()
            .filter(|(block, ..)| those.iter().any(|(other, ..)| other == block))
            .copied()
            .collect()
    };
    let (x, y) = (common(&a, &b), common(&b, &a));
    if x.len() < 2 { (a, b) } else { (x, y) }
}

fn figures(a: &[Profile], b: &[Profile], pairing: &Pairing) -> Vec<FigureView> {
    let figure = |i: usize| {
        let of = |profiles: &[Profile]| -> Vec<(u32, f64)> {
            profiles
                .iter()
                .filter_map(|p| Some((p.block, p.figures[i]?)))
                .filter(|(_, v)| v.is_finite())
                .collect()
        };
        let mean = |values: &[(u32, f64)]| {
            (!values.is_empty())
                .then(|| values.iter().map(|v| v.1).sum::<f64>() / values.len() as f64)
        };
        let (x, y) = (of(a), of(b));
        let ratio = pairing.ratio(&y, &x);
        let (name, unit) = FIGURES[i];
        FigureView { name, unit, a: mean(&x), b: mean(&y), ratio: ratio.value, ci95: ratio.ci95 }
    };
    (0..FIGURES.len()).map(figure).filter(|f| f.a.is_some() || f.b.is_some()).collect()
}
