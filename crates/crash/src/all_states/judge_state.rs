//! One state: shown, mounted, recovered, looked at and judged.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use pgdyno_durability::{Aftermath, AsynchronousCommit, CutWindow, Promise, history_at, judge};
use pgdyno_emulated_disk::states::{Candidate, Window};
use pgdyno_model::crash::{CheckOutcome, Verdict};
use pgdyno_model::ledger::Token;
use pgdyno_postgres::StopMode;
use serde::{Deserialize, Serialize};

use super::super::recovery::{mount_failure, start_failure};
use super::super::round_plan::excerpt;
use super::super::subject::Subject;
use super::super::test_bed::TestBed;
use super::super::verify::{self, Depth, Terms};
use super::record::Recording;
use pgdyno_provision::{BenchError, Context};

/// A state that was judged.
pub(super) struct JudgedState {
    pub(super) verdict: Verdict,
    pub(super) reason: String,
    /// Acknowledged transactions that are missing.
    pub(super) lost: Vec<Token>,
    /// The transactions that are there; none where they could not be read.
    pub(super) there: Option<BTreeSet<Token>>,
    /// Lines of the server's log that tell of errors; empty where nothing failed.
    pub(super) log: String,
    /// How long its parts took.
    pub(super) took: PhaseTimes,
}

/// How long the parts of judging a state took, as [`pgdyno_model::crash::StatePhases`] names them.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct PhaseTimes {
    pub(super) mount: Duration,
    pub(super) recovery: Duration,
    pub(super) oracles: Duration,
    pub(super) cut: Duration,
}

impl PhaseTimes {
    /// Returns how long all of it took.
    pub(super) fn total(&self) -> Duration {
        self.mount + self.recovery + self.oracles + self.cut
    }
}

/// Judges states of a recording on the test bed that it was made on.
pub(super) struct Judge<'a, 'c> {
    pub(super) bed: &'a mut TestBed,
    pub(super) recording: &'a Recording,
    pub(super) subject: &'a Subject,
    pub(super) context: Context<'c>,
}

impl Judge<'_, '_> {
    /// Judges the state of `candidate`, and cuts the power of the disk that showed it.
    ///
    /// # Errors
    /// pgdyno itself cannot go on, or a signal asked to stop.
    pub(super) fn judge(
        &mut self,
        candidate: &Candidate,
        depth: Depth,
    ) -> Result<JudgedState, BenchError> {
        self.context.check_stop()?;
        let mut took = PhaseTimes::default();
        let (aftermath, log) = self.recover(candidate, depth, &mut took)?;
        let began = Instant::now();
        self.bed.cut_power(0.0)?;
        took.cut = began.elapsed();
        let Window { from, until } = candidate.window;
        let Recording { history, positions, .. } = self.recording;
        let history = history_at(history, positions, CutWindow { from, until });
        let judged = judge(&history, &aftermath, &self.promise(until));
        let could_run = |outcome: &CheckOutcome| !matches!(outcome, CheckOutcome::CouldNotRun(_));
        let is_checked = judged.checks.iter().all(|check| could_run(&check.outcome));
        let verdict = match judged.verdict {
            // Before the first acknowledgement nothing is owed, and all else was checked.
            Verdict::Unknown if is_checked => Verdict::Pass,
            // Something around the storage kept it from coming back.
            Verdict::Invalid => Verdict::Unknown,
            verdict => verdict,
        };
        Ok(JudgedState {
            verdict,
            reason: judged.reason,
            lost: judged.lost.into_iter().map(|(entry, _)| entry.token).collect(),
            there: tokens(&aftermath),
            log: if verdict.is_failure() { excerpt(&log) } else { String::new() },
            took,
        })
    }

    /// Returns the settings' promise at a cut right before event `until`.
    fn promise(&self, until: u64) -> Promise {
        let recording = self.recording;
        let at = recording.flushed_at.get(&until).copied();
        let asynchronous = recording.wal_writer_delay.map(|wal_writer_delay| AsynchronousCommit {
            wal_writer_delay,
            flush_time: None,
            durable_before: None,
        });
        Promise { asynchronous, struck_at: at.unwrap_or(recording.ended_at) }
    }

    /// Mounts the state, lets the server recover and looks at it. Returns the server's log, too,
    /// and notes in `took` how long each part was.
    fn recover(
        &mut self,
        candidate: &Candidate,
        depth: Depth,
        took: &mut PhaseTimes,
    ) -> Result<(Aftermath, String), BenchError> {
        let (stop, limit) = (self.context.stop, self.subject.options.recovery_limit.0);
        let began = Instant::now();
        let shown = self.bed.show(&candidate.state, stop);
        took.mount = began.elapsed();
        if let Err(error) = shown {
            self.context.check_stop()?;
            return Ok((mount_failure(&error), String::new()));
        }
        let cluster = self.bed.cluster();
        // A state holds the lock of a server that ended many servers ago.
        let forgotten = cluster.forget_postmaster();
        let mark = cluster.log_mark();
        let began = Instant::now();
        let up = forgotten.and_then(|()| cluster.start_within(limit, stop));
        took.recovery = began.elapsed();
        self.context.check_stop()?;
        if let Err(error) = up {
            cluster.stop(StopMode::Immediate);
            let log = cluster.log_since(mark);
            return Ok((Aftermath::WillNotStart(start_failure(&error, &log)), log));
        }
        if let Some(interfere) = &self.subject.interference.after_recovery {
            interfere(
                &cluster.control_target(pgdyno_provision::provisioner::DATABASE),
                &cluster.data(),
            );
        }
        let terms = Terms::new(self.subject.load(), self.subject.options.scale, limit, stop)?;
        let began = Instant::now();
        let found = verify::look(cluster, &self.recording.before, mark, depth, &terms)?;
        took.oracles = began.elapsed();
        let log = cluster.log_since(mark);
        Ok((Aftermath::Up(Box::new(found)), log))
    }
}

/// Returns the tokens of the transactions that are there; none where they could not be read.
fn tokens(aftermath: &Aftermath) -> Option<BTreeSet<Token>> {
    let Aftermath::Up(found) = aftermath else { return None };
    found.tokens()
}
