//! Verdict cards of comparisons, and of imported figures.

use pgdyno_audit::ImportedRun;
use pgdyno_model::record::RunState;
use pgdyno_text::format;

use super::super::HOPELESS;
use super::super::shell::command_line;
use super::{SENTENCES, figure, joined, range};
use crate::headline::{Headline, KeyFigure};
use pgdyno_analysis::Badge;
use pgdyno_analysis::badge::is_settled;
use pgdyno_analysis::comparison::imported::SideBySideView;
use pgdyno_analysis::comparison::runs::{CompareView, PairView};

/// Returns the card of a comparison.
pub(crate) fn comparison_headline(view: &CompareView, answer: &[String]) -> Headline {
    let is_open = [&view.a, &view.b].iter().any(|side| side.state != RunState::Completed);
    let badge = match view.pairs.iter().any(|pair| is_settled(&pair.ratio)) {
        _ if is_open => Badge::Unfinished,
        true => Badge::Answered,
        false => Badge::Inconclusive,
    };
    let answer: Vec<&str> = answer.iter().take(SENTENCES).map(String::as_str).collect();
    Headline {
        question: Some(match view.same_run {
            true => format!("How do treatments of {} differ?", view.a.run),
            false => format!("How does {} differ from {}?", view.b.run, view.a.run),
        }),
        badge,
        answer: answer.join(" "),
        figures: figures(view),
        command: None,
        proofs: Vec::new(),
    }
}

/// Shows the pair with the largest difference: its ratio of tps and of p99, and the minimum
/// detectable difference.
fn figures(view: &CompareView) -> Vec<KeyFigure> {
    let size = |pair: &PairView| {
        pair.ratio.value.filter(|value| *value > 0.0).map_or(-1.0, |value| value.ln().abs())
    };
    let Some(pair) = view.pairs.iter().max_by(|a, b| size(a).total_cmp(&size(b))) else {
        return Vec::new();
    };
    let label = (view.pairs.len() > 1).then(|| pair.label.clone());
    let multiple = |value: f64| format!("{}×", format::times(value));
    let tps = pair.ratio.value.map(|value| {
        let detail = joined([pair.ratio.ci95.map(range), label.clone()]);
        figure(&format!("{}, B to A", view.measure), multiple(value), detail)
    });
    let p99 = pair.latency.iter().find(|latency| latency.percentile == "p99").map(|latency| {
        let detail = joined([latency.ci95.map(range), label.clone()]);
        figure("p99 latency, B to A", multiple(latency.value), detail)
    });
    let detectable = pair.ratio.minimum_detectable.filter(|share| *share <= HOPELESS);
    let detectable = detectable.map(|share| {
        figure("minimum detectable difference", format!("{}%", format::percent(share)), None)
    });
    [tps, p99, detectable].into_iter().flatten().collect()
}

/// Returns the card of a run beside imported figures.
pub(crate) fn side_by_side_headline(view: &SideBySideView) -> Headline {
    let rows = |count: usize| format::counted(count as u64, "row");
    Headline {
        answer: format!(
            "{} of {} beside {} of the run {}: nothing is computed between the two.",
            rows(view.theirs.len()),
            view.source,
            rows(view.ours.len()),
            view.run
        ),
        ..Headline::default()
    }
}

/// Returns the card of imported figures.
pub(crate) fn import_headline(import: &ImportedRun) -> Headline {
    Headline {
        answer: format!(
            "Figures that were recognised in {}. pgdyno did not measure them.",
            import.source
        ),
        command: command_line(&["pgdyno", "audit", &import.source]),
        ..Headline::default()
    }
}
