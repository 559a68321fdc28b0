//! Adds judged states up.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use pgdyno_emulated_disk::states::{Candidate, Within};
use pgdyno_model::crash::{
    FailedState, StateCount, StateKind, StatePhases, StatesOutcome, Verdict,
};
use pgdyno_model::ledger::Token;

use super::super::round_plan::ms;
use super::super::verify::Depth;
use super::judge_state::{JudgedState, PhaseTimes};
use super::record::Recording;
use super::shrink::Suspect;

/// Failed states that a record describes (count).
const DESCRIBED: usize = 5;
/// Lost transactions that a record names of a state (count).
const NAMED: usize = 20;

/// Sums over the states judged until now.
pub(super) struct Tally<'a> {
    recording: &'a Recording,
    outcome: StatesOutcome,
    worst: Verdict,
    lost: BTreeSet<Token>,
    suspects: Vec<Suspect>,
    times: Vec<PhaseTimes>,
    /// How long an earlier process judged states.
    earlier: Duration,
    /// When judging began; none before.
    began: Option<Instant>,
}

impl<'a> Tally<'a> {
    /// Returns the tally of no state of `recording`, which has the states `within` epochs.
    pub(super) fn new(recording: &'a Recording, within: &Within) -> Self {
        let stretch = &recording.stretch;
        let count = |kind, total| StateCount { kind, judged: 0, total };
        let outcome = StatesOutcome {
            stretch: recording.facts.clone(),
            boundaries: count(StateKind::Boundary, stretch.boundary_count()),
            within: within.counts.iter().map(|&(kind, total)| count(kind, total)).collect(),
            within_log2: stretch.within_log2(),
            equal_within: within.equal,
            ..StatesOutcome::default()
        };
        Self {
            recording,
            outcome,
            worst: Verdict::Pass,
            lost: BTreeSet::new(),
            suspects: Vec::new(),
            times: Vec::new(),
            earlier: Duration::ZERO,
            began: None,
        }
    }

    /// Notes that the first state is about to be judged, of those that no earlier process judged in
    /// the time `earlier`.
    pub(super) fn begin(&mut self, earlier: Duration) {
        (self.earlier, self.began) = (earlier, Some(Instant::now()));
    }

    /// Returns how long states were judged until now.
    pub(super) fn spent(&self) -> Duration {
        self.earlier + self.began.map_or(Duration::ZERO, |began| began.elapsed())
    }

    /// Returns how many states failed (count).
    pub(super) fn failed(&self) -> u64 {
        self.outcome.failed
    }

    /// Adds a state that was judged.
    pub(super) fn add(&mut self, candidate: &Candidate, depth: Depth, judged: JudgedState) {
        let outcome = &mut self.outcome;
        match candidate.kind {
            StateKind::Boundary => {
                outcome.boundaries.judged += candidate.boundaries;
                outcome.equal_boundaries += candidate.boundaries.saturating_sub(1);
            }
            kind => {
                let count = outcome.within.iter_mut().find(|count| count.kind == kind);
                count.into_iter().for_each(|count| count.judged += 1);
            }
        }
        outcome.thorough += u64::from(depth == Depth::Thorough);
        self.worst = self.worst.max(judged.verdict);
        self.times.push(judged.took);
        match judged.verdict {
            Verdict::Fail(_) => {
                outcome.failed += 1;
                let described =
                    (outcome.failures.len() < DESCRIBED).then_some(outcome.failures.len());
                if described.is_some() {
                    outcome.failures.push(failed_state(self.recording, candidate, &judged));
                }
                suspect(&mut self.suspects, candidate, depth, judged.verdict, described);
            }
            Verdict::Unknown => {
                outcome.unknown += 1;
                outcome.unchecked.get_or_insert(judged.reason);
            }
            _ => {}
        }
        if judged.verdict.is_failure() {
            self.lost.extend(judged.lost);
        }
    }

    /// Returns the failed states whose causes are looked for: the first flush boundary, and of the
    /// described states between flushes the first of each verdict.
    pub(super) fn suspects(&self) -> &[Suspect] {
        &self.suspects
    }

    /// Returns the outcome of all states.
    pub(super) fn outcome(mut self) -> StatesOutcome {
        if !self.times.is_empty() {
            let median = |part: fn(&PhaseTimes) -> Duration| median_ms(&self.times, part);
            self.outcome.judging_ms = Some(ms(self.spent()));
            self.outcome.state_ms = Some(median(PhaseTimes::total));
            self.outcome.phases = Some(StatePhases {
                mount_ms: median(|took| took.mount),
                recovery_ms: median(|took| took.recovery),
                oracles_ms: median(|took| took.oracles),
                cut_ms: median(|took| took.cut),
            });
        }
        self.outcome.lost = self.lost.len() as u64;
        self.outcome.conclude(self.worst);
        self.outcome
    }
}

/// Adds a failed state to `suspects`, if its like is not among them.
fn suspect(
    suspects: &mut Vec<Suspect>,
    candidate: &Candidate,
    depth: Depth,
    verdict: Verdict,
    described: Option<usize>,
) {
    let is_boundary = |candidate: &Candidate| candidate.kind == StateKind::Boundary;
    let of = is_boundary(candidate);
    let is_like = |earlier: &Suspect| {
        is_boundary(&earlier.candidate) == of && (of || earlier.verdict == verdict)
    };
    let described = described.filter(|_| !of);
    if (of || described.is_some()) && !suspects.iter().any(is_like) {
        suspects.push(Suspect { candidate: candidate.clone(), depth, verdict, described });
    }
}

/// Returns the median of a part of `times`, of which there are some (milliseconds).
fn median_ms(times: &[PhaseTimes], part: fn(&PhaseTimes) -> Duration) -> f64 {
    let mut times: Vec<Duration> = times.iter().map(part).collect();
    times.sort_unstable();
    ms(times[times.len() / 2])
}

fn failed_state(recording: &Recording, candidate: &Candidate, judged: &JudgedState) -> FailedState {
    let state = &candidate.state;
    let omitted = state.omitted.iter().map(|&number| recording.missing_write(number, 0));
    let torn = state.torn.map(|tear| recording.missing_write(tear.write, tear.kept));
    FailedState {
        kind: candidate.kind,
        newest: state.newest,
        missing: omitted.chain(torn).collect(),
        until: Some(candidate.window.until).filter(|until| *until != u64::MAX),
        verdict: judged.verdict,
        reason: judged.reason.clone(),
        lost: judged.lost.len() as u64,
        tokens: judged.lost.iter().take(NAMED).copied().collect(),
        log: judged.log.clone(),
        cause: None,
    }
}
