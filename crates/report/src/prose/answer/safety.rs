//! Sentences on which treatments keep their acknowledged commits.

use pgdyno_model::Verdict;
use pgdyno_text::format;

use super::super::phrases::listed;
use super::super::promise::loss;
use super::leader;
use crate::CrashView;
use pgdyno_analysis::{RunView, TreatmentView};

/// Most treatments that are named one by one.
const SHOWN: usize = 3;

pub(super) fn answer(view: &RunView, crashes: &[CrashView]) -> Vec<String> {
    let crashed = |t: &&TreatmentView| t.crash.is_some();
    let crashed: Vec<&TreatmentView> = view.treatments.iter().filter(crashed).collect();
    let mut out = Vec::new();
    if crashed.is_empty() {
        out.push(
            "No crash test is done yet: which of them keep what they acknowledged is not known."
                .to_owned(),
        );
    } else {
        out.push(kept(crashes, &crashed));
    }
    out.extend(broken(&crashed));
    let rest = crashed.len() < view.treatments.len() && !crashed.is_empty();
    if rest {
        let missing = view.treatments.len() - crashed.len();
        out.push(format!("Of {missing} nothing is known: they were not crashed."));
    }
    match leader::speed(view) {
        Err(nothing) => out.push(nothing.to_string()),
        Ok(_) if crashed.is_empty() => {}
        Ok(_) => out
            .extend(leader::ahead(view).map(|said| format!("Of those that may be ranked, {said}"))),
    }
    out
}

/// Counts the treatments that kept every commit, with the rounds behind it.
fn kept(crashes: &[CrashView], crashed: &[&TreatmentView]) -> String {
    let with = |wanted: &dyn Fn(Verdict) -> bool| -> Vec<String> {
        let is = |t: &&&TreatmentView| t.crash.as_ref().is_some_and(|crash| wanted(crash.verdict));
        crashed.iter().filter(is).map(|t| t.label.clone()).collect()
    };
    let (passed, bounded) = (with(&|v| v == Verdict::Pass), with(&|v| v == Verdict::BoundedLoss));
    let is_open = |t: &&&TreatmentView| {
        t.crash.as_ref().is_some_and(|crash| match crash.verdict {
            Verdict::Partial | Verdict::Unknown | Verdict::Invalid => true,
            // Only what every server fails was tried.
            Verdict::AsPlanted(_) | Verdict::Fail(_) => crash.broken().is_none(),
            Verdict::Pass | Verdict::BoundedLoss => false,
        })
    };
    let unknown: Vec<String> = crashed.iter().filter(is_open).map(|t| t.label.clone()).collect();
    let rounds: usize = crashes.iter().map(|crash| crash.rounds).min().unwrap_or(0);
    let mut parts = vec![format!(
        "{} of {} treatments kept every commit they acknowledged, through {} of crashes each",
        passed.len(),
        crashed.len(),
        format::counted(rounds as u64, "round")
    )];
    if !passed.is_empty() && passed.len() < crashed.len() {
        parts[0].push_str(&format!(" ({})", listed(&passed, SHOWN, "; ")));
    }
    if !bounded.is_empty() {
        parts.push(format!(
            "{} lost no more than their settings allow ({})",
            bounded.len(),
            listed(&bounded, SHOWN, "; ")
        ));
    }
    if !unknown.is_empty() {
        parts.push(format!(
            "of {} it could not be told ({})",
            unknown.len(),
            listed(&unknown, SHOWN, "; ")
        ));
    }
    format!("{}.", parts.join("; "))
}

/// Names the treatments that did not, with their losses.
fn broken(crashed: &[&TreatmentView]) -> Option<String> {
    let of = |t: &&TreatmentView| {
        let crash = t.crash.as_ref()?;
        let broken = crash.broken()?;
        let expected = if broken.planted { ", as was expected" } else { "" };
        Some(match loss(broken) {
            None => format!("{}: {}{expected}", t.label, crash.reason),
            Some(loss) => format!("{} {loss}{expected}", t.label),
        })
    };
    let all: Vec<String> = crashed.iter().filter_map(of).collect();
    (!all.is_empty()).then(|| format!("Not kept: {}.", listed(&all, SHOWN, "; ")))
}
