//! Notes on tps that moves: over the repeats of a treatment, and within trials.

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_stats as stats;
use pgdyno_text::format;

use super::cause::cause_kind;
use crate::note::{NoteKind, NoteList};
use pgdyno_analysis::{NotJudged, RunView, Steadiness, TreatmentView, TrialState};

/// Names treatments whose repeats rise or fall.
pub(super) fn drift(measured: &[&TreatmentView], out: &mut NoteList) {
    for t in measured {
        let Some(trend) = t.drift.filter(stats::Trend::is_significant) else { continue };
        let (way, hint) = if trend.rising {
            ("rises", "it may still be warming up")
        } else {
            ("falls", "something may wear down: bloat, a filling disk, heat")
        };
        let how = if trend.every_one { "with every repeat" } else { "over its repeats" };
        out.add(NoteKind::Trend, format!(
            "{}: tps {way} {how} (two-sided, all treatments judged together: {}): {hint}; the mean \
             averages over a trend.",
            t.label,
            if trend.chance_together < 0.0005 {
                "p < 0.001".to_owned()
            } else {
                format!("p = {:.3}", trend.chance_together)
            }
        ));
    }
}

/// Names trials that were not steady, and what happened when they changed.
pub(super) fn steadiness(view: &RunView, out: &mut NoteList) {
    /// Smaller changes of the mean by a warm-up are not mentioned (a share).
    const MATTERS: f64 = 0.01;
    let all = || {
        view.trials
            .iter()
            .filter(|t| t.state == TrialState::Completed)
            .filter_map(|t| Some((t.ordinal + 1, t.steadiness.as_ref()?)))
    };
    let list =
        |trials: &[u32]| trials.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let unsteady: Vec<u32> =
        all().filter(|(_, s)| s.steady == Some(false)).map(|(n, _)| n).collect();
    if !unsteady.is_empty() {
        out.add(
            NoteKind::NotSteady,
            format!(
                "tps never became steady in trials {}: longer trials, or a longer `load.warm_up`, \
                 would tell.",
                list(&unsteady)
            ),
        );
    }
    let warming =
        || all().filter(|(_, s)| s.warm_up_gain.is_some_and(|gain| gain.abs() >= MATTERS));
    let longest = warming().max_by_key(|(_, s)| s.warm_up_s);
    if let Some((trial, s)) = longest
        && let (Some(seconds), Some(gain)) = (s.warm_up_s, s.warm_up_gain)
    {
        let trials: Vec<u32> = warming().map(|(n, _)| n).collect();
        out.add(NoteKind::WarmUp, format!(
            "The window begins with a warm-up (MSER-5) in trials {}: in trial {trial} its first \
             {seconds} s, without which tps would be {}% {}; add that to `load.warm_up`.",
            list(&trials),
            format::percent(gain.abs()),
            if gain > 0.0 { "higher" } else { "lower" }
        ));
    }
    let alike: Vec<(u32, f64)> = all().filter_map(|(n, s)| Some((n, s.too_alike?))).collect();
    if let Some((trial, worth)) = alike.iter().min_by(|a, b| a.1.total_cmp(&b.1)) {
        let trials: Vec<u32> = alike.iter().map(|(n, _)| *n).collect();
        out.add(NoteKind::SteadinessNotJudged, format!(
            "Whether tps was steady is not judged in trials {}: their seconds resemble each other \
             so much that they are worth fewer than {} independent ones (those of trial {trial}: \
             {}). Longer trials would tell.",
            list(&trials),
            stats::LEAST_EFFECTIVE,
            worth.floor().max(1.0)
        ));
    }
    changes(all(), out);
}

/// Renders why steadiness, or the interval over seconds, is not judged.
pub(crate) fn not_judged(why: &NotJudged) -> String {
    match *why {
        NotJudged::TooShort { least } => {
            format!("too short to tell: fewer than {least} whole seconds")
        }
        NotJudged::TooAlike { effective } => {
            let worth = match effective.floor() {
                n if n <= 1.0 => "one independent one".to_owned(),
                n => format!("{n} independent ones"),
            };
            format!(
                "not judged: the seconds resemble each other so much that they are worth {worth} \
                 (at least {} are needed)",
                stats::LEAST_EFFECTIVE
            )
        }
        NotJudged::NoTransaction => "not judged: no transaction".to_owned(),
        NotJudged::NoDifference => "not judged: the seconds do not differ".to_owned(),
    }
}

/// Says what the changes within trials coincide with, the commonest first.
fn changes<'a>(all: impl Iterator<Item = (u32, &'a Steadiness)>, out: &mut NoteList) {
    const SHOWN: usize = 4;
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let (mut count, mut trials) = (0, 0);
    for (_, s) in all {
        let changes = s.changes.as_deref().unwrap_or_default();
        count += changes.len();
        trials += usize::from(!changes.is_empty());
        for change in changes {
            let distinct: BTreeSet<String> = if change.with.is_empty() {
                BTreeSet::from(["nothing that was watched".to_owned()])
            } else {
                change.with.iter().map(cause_kind).collect()
            };
            for kind in distinct {
                *kinds.entry(kind).or_default() += 1;
            }
        }
    }
    if count == 0 {
        return;
    }
    let mut kinds: Vec<(String, usize)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let shown: Vec<String> =
        kinds.iter().take(SHOWN).map(|(kind, n)| format!("{kind} ({n})")).collect();
    out.add(NoteKind::Changes, format!(
        "tps changed {count} {} within {trials} {}, at the same time as: {}. The report's trials \
         say when.",
        if count == 1 { "time" } else { "times" },
        if trials == 1 { "trial" } else { "trials" },
        shown.join(", ")
    ));
}
