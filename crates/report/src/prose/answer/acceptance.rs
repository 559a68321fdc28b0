//! Answers whether a storage is good enough, and honest.

use pgdyno_model::Verdict;
use pgdyno_text::format;

use super::super::phrases::{listed, rate, so_far};
use super::super::suspicion;
use super::leader;
use crate::CrashView;
use pgdyno_analysis::{RunView, StageProbeView, TreatmentView};

pub(super) fn answer(view: &RunView, crashed: &[CrashView]) -> Vec<String> {
    let mut out = honesty(view);
    out.extend(crashes(crashed));
    match leader::speed(view) {
        Err(nothing) => out.push(nothing.to_string()),
        Ok(_) => out.push(speed(view)),
    }
    out
}

/// Says for each storage what its newest fsync probe found.
fn honesty(view: &RunView) -> Vec<String> {
    let probes = || view.probes.iter().filter(|probe| probe.flushes_per_second.is_some());
    let mut storages: Vec<&str> = probes().map(|probe| probe.storage.as_str()).collect();
    storages.dedup();
    if storages.is_empty() {
        return vec![
            "No fsync probe is done yet: whether the storage acknowledges from a cache is not \
             known."
                .to_owned(),
        ];
    }
    let newest = |storage: &str| probes().rfind(|probe| probe.storage == storage);
    storages.into_iter().filter_map(newest).map(one).collect()
}

fn one(probe: &StageProbeView) -> String {
    let rate = probe.flushes_per_second.map_or_else(String::new, |flushes| {
        format!("{} flushes/s of one writer", format::rate(flushes))
    });
    match probe.acknowledges_from_cache.as_slice() {
        [] => format!(
            "Storage `{}` shows no sign that it acknowledges from a cache: {rate}.",
            probe.storage
        ),
        signs => format!(
            "Storage `{}` acknowledges from a cache, as far as can be seen from here: {rate}; {}.",
            probe.storage,
            listed(
                &signs.iter().map(|sign| suspicion(*sign).to_owned()).collect::<Vec<_>>(),
                2,
                "; "
            )
        ),
    }
}

/// Sums up the crash tests with the gravest verdict.
fn crashes(crashed: &[CrashView]) -> Option<String> {
    let crash = crashed.iter().max_by_key(|crash| crash.verdict)?;
    let named = match crash.verdict {
        Verdict::Unknown | Verdict::Invalid => format!("{} ({})", crash.verdict, crash.reason),
        verdict => verdict.to_string(),
    };
    let lossy = crash.gravest.as_ref().filter(|gravest| gravest.lost > 0);
    Some(match lossy {
        // A fault's loss is a share of what was acknowledged in its own rounds.
        Some(fault) => format!(
            "Crash tests ({}, {}): {named}, {} of {} acknowledged commits lost.",
            fault.fault,
            format::counted(fault.rounds as u64, "round"),
            format::count(fault.lost),
            format::count(fault.acknowledged)
        ),
        None => format!(
            "Crash tests ({}, {}): {named}, {} acknowledged, {} lost.",
            crash.fault,
            format::counted(crash.rounds as u64, "round"),
            format::count(crash.acknowledged),
            format::count(crash.lost)
        ),
    })
}

/// Lists the treatments' tps and p99.
fn speed(view: &RunView) -> String {
    const SHOWN: usize = 4;
    let of = |t: &TreatmentView| {
        t.tps.as_ref()?;
        let p99 = t.latency_us.as_ref().map_or_else(String::new, |latency| {
            format!(", p99 {} ms", format::milliseconds(latency.p99))
        });
        Some(format!("{} {}{p99}", t.label, rate(view, t)))
    };
    let all: Vec<String> = view.treatments.iter().filter_map(of).collect();
    format!("{}{}.", so_far(view), listed(&all, SHOWN, "; "))
}
