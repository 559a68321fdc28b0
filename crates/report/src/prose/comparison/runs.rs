//! Sentences on all pairs of a comparison, and on the runs that are compared.

use pgdyno_stats::{FEWEST_RUNS, NoHostNoise};
use pgdyno_text::format::counted;

use super::super::noise_floor::noise_floor;
use super::super::phrases::degrees_of_freedom;
use super::verdict;
use pgdyno_analysis::comparison::imported::SideBySideView;
use pgdyno_analysis::comparison::runs::{CompareNote, EarlierCount, Others, PairView};

/// Counts the verdicts of all pairs; of one pair, its own sentence.
pub(crate) fn pairs(pairs: &[PairView], measure: &str) -> Vec<String> {
    if let [only] = pairs {
        return vec![pair(only)];
    }
    let of = |wanted: &dyn Fn(&PairView) -> bool| pairs.iter().filter(|p| wanted(p)).count();
    let apart = |p: &PairView| p.ratio.significant == Some(true);
    let more = of(&|p| apart(p) && p.ratio.value.is_some_and(|v| v > 1.0));
    let less = of(&|p| apart(p) && p.ratio.value.is_some_and(|v| v < 1.0));
    let alike = of(&|p| p.ratio.significant == Some(false));
    let undecided = of(&|p| p.ratio.withheld.is_some());
    let unknown = pairs.len() - more - less - alike - undecided;
    let mut parts = Vec::new();
    for (count, what) in [
        (more, format!("B has the higher {measure}")),
        (less, format!("B has the lower {measure}")),
        (alike, "there is no significant difference".to_owned()),
        (undecided, "it is undecided across runs".to_owned()),
        (unknown, "nothing can be concluded".to_owned()),
    ] {
        if count > 0 {
            parts.push(format!("{what} in {count}"));
        }
    }
    vec![format!("Of {} treatments: {}.", pairs.len(), parts.join(", "))]
}

/// Renders a comparison of one pair: `clients=8→16: …`.
pub(crate) fn pair(pair: &PairView) -> String {
    let verdict = pair_verdict(pair);
    match pair.label.as_str() {
        "" => format!("{verdict}."),
        label => format!("{label}: {verdict}."),
    }
}

/// Renders the verdict on one pair.
pub(crate) fn pair_verdict(pair: &PairView) -> String {
    verdict("B", "A", &pair.ratio, pair.generator_limited)
}

/// Renders how the sides were compared, or what is not as it should be in their runs.
pub(crate) fn compare_note(note: &CompareNote) -> String {
    match note {
        CompareNote::OneRun => {
            "Both sides are of one run: trials of the same block are paired.".to_owned()
        }
        CompareNote::TwoRuns(earlier_runs) => how_compared(earlier_runs),
        CompareNote::NotComplete { side, state, completed, planned } => format!(
            "Side {side} is not complete ({}): {completed} of {planned} trials are completed.",
            state.name()
        ),
        CompareNote::AdHoc { side } => format!(
            "Side {side} is ad hoc (`pgdyno pgbench --store`): the state of its data and caches, \
             and what else ran, is not known."
        ),
        CompareNote::OtherVersions([a, b]) => {
            format!("The runs were measured by different versions of pgdyno: {a} (A) and {b} (B).")
        }
        CompareNote::OtherHosts([a, b]) => format!(
            "A ran on {}, B on {}: the ratio is one of these two machines. Hosts are not blocks, \
             and the interval holds nothing of how machines differ.",
            a.join(" and "),
            b.join(" and ")
        ),
        CompareNote::NoiseFloor(floor) => noise_floor(Some(floor)),
    }
}

/// Says how far earlier runs allow a verdict on two runs.
fn how_compared(earlier_runs: &EarlierCount) -> String {
    const ONE_RUN: &str = "As levels of one factor in one run the two need no earlier run, and \
                           smaller differences show (docs/comparing.md).";
    let EarlierCount { least, most, others } = earlier_runs;
    let own = format!("{} of this experiment on this host", counted(*least as u64, "earlier run"));
    let known = |by: &str| {
        format!("Two runs: intervals hold how far equal runs differ here, by {by}. {ONE_RUN}")
    };
    let lack = match others {
        Others::Used(host) => {
            let others = format!(
                "repeated runs of {} here ({})",
                counted(host.experiments as u64, "other experiment"),
                degrees_of_freedom(host.pooled.freedom)
            );
            return known(&if *least == 0 { others } else { format!("{own} and {others}") });
        }
        _ if *least >= FEWEST_RUNS => return known(&own),
        Others::NotAsked => "repeated runs of others were not to count (`--own-runs`)",
        Others::Quieter => "they differ by more than those of other experiments here",
        Others::TooFew => "repeated runs of others are too few yet",
        Others::Unknown(NoHostNoise::Unlike) => {
            "other experiments here differ too much in how far their runs differ"
        }
        Others::Unknown(NoHostNoise::NotRepeated) => "no other experiment was run twice here",
    };
    format!(
        "Two runs differ by more than their trials tell: what a run draws once (initdb, where \
         files lie, the hour) is the same in all its trials. A verdict takes {FEWEST_RUNS} earlier \
         runs of this experiment on this host, or repeated runs of others; {most} {} found, and \
         {lack} (`pgdyno noise`). {ONE_RUN}",
        if *most == 1 { "was" } else { "were" }
    )
}

/// Says what keeps an imported report and a run apart, and which side has nothing to show.
pub(crate) fn side_by_side_notes(view: &SideBySideView) -> Vec<String> {
    let apart = "no ratio between the two sides is given: machine, versions and settings differ, \
                 and the report's repeats, where it has any, are of another day; the ratios to the \
                 best are each side's own";
    let no_rates = "nothing of the report's that was recognised is a rate of transactions";
    let no_trials = "the run has no completed trial";
    [(true, apart), (view.theirs.is_empty(), no_rates), (view.ours.is_empty(), no_trials)]
        .into_iter()
        .filter(|(is_so, _)| *is_so)
        .map(|(_, note)| note.to_owned())
        .collect()
}
