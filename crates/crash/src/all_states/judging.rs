//! Judging the control and the states in their order, from where an earlier process ended.

use std::collections::BTreeSet;
use std::time::Duration;

use pgdyno_durability::shrinkage;
use pgdyno_emulated_disk::states::{Candidate, State, Window};
use pgdyno_model::crash::{Control, Failing, StateKind, States, Verdict};
use pgdyno_model::ledger::Token;
use pgdyno_model::progress::{Activity, Warning};
use pgdyno_model::{Failure, FailureKind, Fault};

use super::super::subject::Subject;
use super::super::test_bed::TestBed;
use super::super::verify::Depth;
use super::judge_state::{Judge, JudgedState};
use super::kept_stretch::KeptStretch;
use super::lanes::{Limits, judge_side_by_side};
use super::record::Recording;
use super::tally::Tally;
use super::verdicts::{Judged, Line, StateLine};
use pgdyno_provision::{BenchError, Context};

/// Flush boundaries that every oracle looks at, where there are as many (count).
const THOROUGH: usize = 8;
/// How much of a state between flushes is looked at.
const WITHIN: Depth = Depth::Structure;
/// States that fail before the others are left alone (count).
const ENOUGH: u64 = 20;

/// The states of a recording, in the order in which they are judged.
pub(super) struct Queue<'a> {
    pub(super) recording: &'a Recording,
    /// The flush boundaries, in order.
    pub(super) boundaries: Vec<Candidate>,
    /// The states between flushes, in order.
    pub(super) within: Vec<Candidate>,
}

impl Queue<'_> {
    /// Tells whether the queue begins with the states that were `judged`.
    pub(super) fn begins_with(&self, judged: &Judged) -> bool {
        let are_of = |lines: &[StateLine], candidates: &[Candidate]| {
            lines.len() <= candidates.len()
                && lines.iter().zip(candidates).all(|(line, candidate)| line.is_of(candidate))
        };
        are_of(&judged.boundaries, &self.boundaries) && are_of(&judged.within, &self.within)
    }

    /// Returns how much of the flush boundary at `place` is looked at.
    fn depth(&self, place: usize) -> Depth {
        let count = self.boundaries.len();
        let apart = count.div_ceil(THOROUGH).max(1);
        match place % apart == apart - 1 || place + 1 == count {
            true => Depth::Thorough,
            false => Depth::Quick,
        }
    }
}

/// States that are being judged.
pub(super) struct Judging<'a, 'r> {
    queue: &'a Queue<'a>,
    subject: &'a Subject,
    context: Context<'a>,
    tally: &'a mut Tally<'r>,
    kept: Option<&'a mut KeptStretch>,
    controls: Vec<Control>,
    /// The transactions that were there at the last flush boundary.
    there: BTreeSet<Token>,
}

impl<'a, 'r> Judging<'a, 'r> {
    /// Returns the states of `queue`, none of them judged. Verdicts go to `tally` and to `kept`.
    pub(super) fn new(
        queue: &'a Queue<'a>,
        subject: &'a Subject,
        context: Context<'a>,
        tally: &'a mut Tally<'r>,
        kept: Option<&'a mut KeptStretch>,
    ) -> Self {
        let (controls, there) = (Vec::new(), BTreeSet::new());
        Self { queue, subject, context, tally, kept, controls, there }
    }

    /// Judges the control, every flush boundary, then states between flushes, until all are judged,
    /// the budget is spent, or enough of them failed. Those that were `judged` count, and are not
    /// judged again. States are shown on `bed` and on `replicas`, which are made.
    ///
    /// # Errors
    /// pgdyno itself cannot go on, or a signal asked to stop.
    pub(super) fn judge_all(
        &mut self,
        bed: &mut TestBed,
        replicas: &mut Vec<TestBed>,
        judged: Judged,
    ) -> Result<(), BenchError> {
        let (boundaries, within) = (judged.boundaries.len(), judged.within.len());
        let spent = judged.spent;
        self.add_earlier(judged);
        let Self { queue, subject, context, .. } = *self;
        for _ in 1..subject.options.jobs {
            replicas.push(bed.replica(subject, context)?);
        }
        let recording = queue.recording;
        let beds = std::iter::once(bed).chain(replicas);
        let mut judges: Vec<Judge<'_, '_>> =
            beds.map(|bed| Judge { bed, recording, subject, context }).collect();
        if subject.options.controls && self.controls.is_empty() {
            let control = control(&mut judges[0])?;
            self.keep(&Line::Control(control.clone()));
            self.controls.push(control);
        }
        let budget = subject.options.budget.map_or(Duration::MAX, |budget| budget.0);
        let limits = Limits::new(budget.saturating_sub(spent), ENOUGH, self.tally.failed());
        self.tally.begin(spent);
        let depth = |place| queue.depth(place);
        let candidates = &queue.boundaries;
        judge_side_by_side(
            &mut judges,
            candidates,
            boundaries,
            &depth,
            &limits,
            &mut |n, judged| {
                self.add_boundary(n, judged);
            },
        )?;
        if subject.options.states == States::Flushes {
            return Ok(());
        }
        let (depth, candidates) = (|_| WITHIN, &queue.within);
        judge_side_by_side(&mut judges, candidates, within, &depth, &limits, &mut |n, judged| {
            self.add_within(n, judged);
        })
    }

    /// Notes for a later process how long states were judged. Returns the controls.
    pub(super) fn end(mut self) -> Vec<Control> {
        self.keep(&Line::Spent(self.tally.spent()));
        self.controls
    }

    /// Adds the verdicts of an earlier process.
    fn add_earlier(&mut self, judged: Judged) {
        self.there = judged.there();
        self.controls = judged.controls;
        for (n, line) in judged.boundaries.into_iter().enumerate() {
            self.tally.add(&self.queue.boundaries[n], self.queue.depth(n), line.into());
        }
        for (n, line) in judged.within.into_iter().enumerate() {
            self.tally.add(&self.queue.within[n], WITHIN, line.into());
        }
    }

    fn add_boundary(&mut self, place: usize, mut judged: JudgedState) {
        let candidate = &self.queue.boundaries[place];
        fail_if_shrunk(&mut judged, &self.there);
        let there = judged.there.take();
        let spent = self.tally.spent();
        let line = StateLine::new(candidate, &judged, &self.there, there.as_ref(), spent);
        self.keep(&Line::State(Box::new(line)));
        self.there = there.unwrap_or_else(|| std::mem::take(&mut self.there));
        self.tally.add(candidate, self.queue.depth(place), judged);
        self.report(place, self.queue.boundaries.len(), true);
    }

    fn add_within(&mut self, place: usize, judged: JudgedState) {
        let candidate = &self.queue.within[place];
        let line = StateLine::new(candidate, &judged, &self.there, None, self.tally.spent());
        self.keep(&Line::State(Box::new(line)));
        self.tally.add(candidate, WITHIN, judged);
        self.report(place, self.queue.within.len(), false);
    }

    /// Keeps a verdict for another process. One that cannot be kept is the last: those after it
    /// would be taken for others.
    fn keep(&mut self, line: &Line) {
        let Some(kept) = &mut self.kept else { return };
        if let Err(error) = kept.append(line) {
            self.context.warn(Warning::StretchNotKept {
                reason: Failure::new(FailureKind::Host, error.to_string()),
            });
            self.kept = None;
        }
    }

    fn report(&self, place: usize, total: usize, boundaries: bool) {
        let (judged, total) = (place as u64 + 1, total as u64);
        let subject = self.subject.name.clone();
        self.context.begin(Activity::JudgingStates { subject, judged, total, boundaries });
    }
}

/// Judges the disk as it was before the load by the whole ledger.
fn control(judge: &mut Judge<'_, '_>) -> Result<Control, BenchError> {
    let empty = Candidate {
        state: State::default(),
        window: Window { from: 0, until: u64::MAX },
        kind: StateKind::Boundary,
        boundaries: 0,
    };
    let judged = judge.judge(&empty, Depth::Quick)?;
    Ok(Control {
        name: "the disk as it was before the load, judged by the whole ledger".into(),
        fault: Some(Fault::Power),
        seen: judged.verdict.is_failure(),
        verdict: judged.verdict,
        reason: judged.reason,
    })
}

/// Fails a flush boundary that lacks a transaction which an `earlier` one had.
fn fail_if_shrunk(judged: &mut JudgedState, earlier: &BTreeSet<Token>) {
    let Some(there) = &judged.there else { return };
    let gone = shrinkage(earlier, there);
    if let (Some(first), false) = (gone.first(), judged.verdict.is_failure()) {
        judged.verdict = Verdict::Fail(Failing::Lost);
        judged.reason = format!(
            "{} transactions that were there at an earlier flush are not there any more, {first} \
             among them",
            gone.len()
        );
    }
}
