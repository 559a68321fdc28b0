//! Sentences on why two treatments differ.

use pgdyno_text::format;

use pgdyno_analysis::{GapPart, GapView, Part, PartView, WhyView};

/// Quoted length of a statement (characters).
const QUOTED: usize = 100;

/// Names a part of a gap: a statement, a wait event, or a phrase.
pub(crate) fn part_name(part: &GapPart) -> &str {
    match part {
        GapPart::Latency(Part::Statement { text, .. }) | GapPart::Event(text) => text,
        GapPart::Latency(Part::WaitToBeSent) => "waiting to be sent",
        GapPart::Latency(Part::BetweenStatements) => "between statements",
    }
}

/// Renders the largest parts of a difference between `a` and `b`.
pub(crate) fn why(view: &WhyView, a: &str, b: &str) -> Vec<String> {
    let latency = match view.no_common_statement {
        true => Some(no_common_statement(a, b)),
        false => view.latency.as_ref().and_then(|gap| latency_gap(gap, a, b)),
    };
    latency.into_iter().chain(view.active.as_ref().and_then(active_gap)).collect()
}

/// Says that `a` and `b` run different statements only.
fn no_common_statement(a: &str, b: &str) -> String {
    format!(
        "{b} and {a} have no statement in common, so that the gap in latency cannot be shared out \
         among statements"
    )
}

/// Names the largest part of the gap in latency between `a` and `b`; none if no part has a share.
fn latency_gap(gap: &GapView, a: &str, b: &str) -> Option<String> {
    let ms = |us: f64| format::milliseconds(us);
    let times = format!(
        "a transaction takes {} ms with {b} and {} ms with {a}",
        ms(gap.b_us),
        ms(gap.a_us)
    );
    if gap.significant == Some(false) {
        return Some(format!(
            "No significant difference of mean latency ({times}): there is no gap to explain"
        ));
    }
    let largest = gap.parts.first()?;
    let share = share(largest)?;
    let place = match &largest.part {
        GapPart::Latency(Part::Statement { text, .. }) => {
            let quoted: String = text.chars().take(QUOTED).collect();
            let rest = if quoted.len() < text.len() { "…" } else { "" };
            format!("is in one statement: {quoted}{rest}")
        }
        GapPart::Latency(Part::WaitToBeSent) => {
            "is waiting to be sent: more is due than the clients get through".to_owned()
        }
        _ => "lies between statements: meta commands, or the load generator".to_owned(),
    };
    let sure = if gap.significant.is_none() { "; without repeats it may be chance" } else { "" };
    Some(format!("{share} of the latency gap {place} ({times}{sure})"))
}

/// Names the largest part of the gap in active time; none if the gap is not significant.
fn active_gap(gap: &GapView) -> Option<String> {
    if gap.significant == Some(false) {
        return None;
    }
    let largest = gap.parts.first()?;
    let share = share(largest)?;
    Some(format!(
        "{share} of the gap in the backends' active time is in {} ({} → {} ms a transaction)",
        match part_name(&largest.part) {
            "CPU" => "running, or waiting for a CPU",
            event => event,
        },
        format::milliseconds(largest.a_us),
        format::milliseconds(largest.b_us)
    ))
}

/// Renders a part's share: `93% (95% CI 91–95%)`; none if it has none.
fn share(part: &PartView) -> Option<String> {
    let percent = format::whole_percent;
    let interval = part
        .ci95
        .map_or_else(String::new, |[lo, hi]| format!(" (95% CI {}–{}%)", percent(lo), percent(hi)));
    Some(format!("{}%{interval}", percent(part.share?)))
}
