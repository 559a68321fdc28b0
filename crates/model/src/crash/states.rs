//! Disk states that a power cut could have left, judged in place of drawn moments: choice, counts
//! and findings.

use serde::{Deserialize, Serialize};

use super::{Failing, Verdict};
use crate::ledger::Token;
use pgdyno_text::format::counted;

/// Which states a session of crash tests looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum States {
    /// One a round, at a drawn moment.
    #[default]
    Drawn,
    /// The disk at every flush of one stretch of load.
    Flushes,
    /// The disk at every flush, then a sample of the states between two flushes.
    All,
}

/// How a state of the disk was derived from the log of its writes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum StateKind {
    /// The disk at a flush, without anything that was written since.
    #[default]
    Boundary,
    /// A subset of the writes between two flushes, where those are few.
    Subset,
    /// The first writes after a flush.
    Prefix,
    /// All writes between two flushes but one.
    Omitted,
    /// All writes between two flushes but two neighbours.
    PairOmitted,
    /// The first writes after a flush, the last of them torn at a multiple of 4 KiB.
    #[serde(rename = "torn-4096")]
    Torn4096,
    /// The first writes after a flush, the last of them torn at another multiple of 512 bytes.
    #[serde(rename = "torn-512")]
    Torn512,
}

impl StateKind {
    /// All kinds of states between two flushes.
    pub const WITHIN: &[Self] = &[
        Self::Subset,
        Self::Prefix,
        Self::Omitted,
        Self::PairOmitted,
        Self::Torn4096,
        Self::Torn512,
    ];
}

/// States of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateCount {
    /// The kind.
    pub kind: StateKind,
    /// States that were judged (count).
    pub judged: u64,
    /// States that there are (count).
    pub total: u64,
}

/// The stretch of load that was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordedStretch {
    /// How long it was (milliseconds).
    pub length_ms: f64,
    /// Writes and discards (count).
    pub writes: u64,
    /// Flushes that the disk did (count).
    pub flushes: u64,
    /// The size of the disk log (bytes).
    pub log_bytes: u64,
    /// Checkpoints that completed (count).
    pub checkpoints: u64,
    /// Transactions that were acknowledged (count).
    pub acknowledged: u64,
    /// Transactions that were acknowledged before a flush covered their commit record, or, where
    /// that is not known, what was written since their COMMIT was sent (count). None where commits
    /// are asynchronous.
    pub early: Option<u64>,
    /// Acknowledged transactions for which the write of the commit record is known (count). None
    /// where commits are asynchronous, and in records of earlier versions.
    pub by_record: Option<u64>,
    /// The first of the early ones.
    #[serde(default)]
    pub first_early: Vec<Token>,
}

/// A kind of page of PostgreSQL's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PageKind {
    /// A page of a table or an index.
    Data,
    /// A page of WAL.
    Wal,
}

/// A write that a state lacks, although later ones are there; or one that is torn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MissingWrite {
    /// Number of the write in the disk log.
    pub number: u64,
    /// Bytes at the write's beginning that are there; 0 if all of it is missing.
    pub kept: u64,
    /// PostgreSQL's pages in the write, each with its WAL position (an LSN as a number).
    pub pages: Vec<(PageKind, u64)>,
    /// Files that the write is part of, as far as they are known. For a torn write, files of the
    /// page that the tear is in.
    #[serde(default)]
    pub files: Vec<FilePart>,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilePart {
    /// The file, below PGDATA.
    pub file: String,
    /// Offset in the file (bytes).
    pub offset: u64,
    /// Length (bytes).
    pub length: u64,
}

/// A state that the server did not survive as it must.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailedState {
    /// How the state was derived.
    pub kind: StateKind,
    /// Newest event of the disk log that the state contains, by its number.
    pub newest: u64,
    /// Earlier writes that the state lacks or has in part.
    pub missing: Vec<MissingWrite>,
    /// First event of the disk log after which no cut leaves this state, by its number; none if
    /// there is no such event.
    pub until: Option<u64>,
    /// Verdict on the state.
    pub verdict: Verdict,
    /// Reason for the verdict.
    pub reason: String,
    /// Acknowledged transactions that are missing (count).
    pub lost: u64,
    /// First lost transactions.
    pub tokens: Vec<Token>,
    /// Lines of the server's log that bear on it.
    pub log: String,
    /// Why the state failed. Between flushes only the first state of each verdict has a cause.
    pub cause: Option<FailureCause>,
}

/// Why a state failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "cause")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FailureCause {
    /// The server never wrote the data: the state fails even with every write that had reached the
    /// disk.
    NotWritten,
    /// Writes had reached the disk and no flush covered them.
    Lost {
        /// Smallest number of missing or torn writes with which the state still fails, as far as
        /// was tried (count).
        writes: u64,
        /// First of these writes.
        first: Vec<MissingWrite>,
        /// Flush that would have made these writes durable in time; none where no acknowledged
        /// transaction is missing, and in records of earlier versions.
        flush: Option<MissingFlush>,
    },
}

/// A flush that a disk was not asked for in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MissingFlush {
    /// Write that the flush had to cover, by its number.
    pub after: u64,
    /// Newest event when a transaction that needs that write was acknowledged, by its number.
    pub before: u64,
    /// Name of that transaction.
    pub token: Token,
}

/// How long the parts of judging a state took (milliseconds): of each the median of all states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatePhases {
    /// The disk shows the state, and the kernel mounts it.
    pub mount_ms: f64,
    /// The server starts and recovers; 0 where the filesystem was not mounted.
    pub recovery_ms: f64,
    /// The oracles' reads, a clean stop of the server and another start.
    pub oracles_ms: f64,
    /// The disk's power is cut, and what was mounted goes.
    pub cut_ms: f64,
}

/// Outcome of judging all states.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatesOutcome {
    /// Reason for the verdict.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// Recorded stretch of load.
    pub stretch: RecordedStretch,
    /// States at flush boundaries.
    pub boundaries: StateCount,
    /// States within epochs, by kind.
    pub within: Vec<StateCount>,
    /// The logarithm to base 2 of the number of all states within epochs, none of them torn. None
    /// if there is no such state.
    pub within_log2: Option<f64>,
    /// Flush boundaries that changed nothing: the state of the flush before was judged for both
    /// (count).
    pub equal_boundaries: u64,
    /// States within epochs whose image is that of another state, which is judged at least as
    /// strictly (count).
    pub equal_within: u64,
    /// States whose server was looked at by every oracle (count). The others were looked at by the
    /// ledger's, by the sums, and by a scan of every table.
    pub thorough: u64,
    /// Acknowledged transactions that are missing in any state (count).
    pub lost: u64,
    /// States that failed (count).
    pub failed: u64,
    /// States that could not be checked (count).
    pub unknown: u64,
    /// Median time to show, mount, recover and judge a state (milliseconds). None without a state.
    pub state_ms: Option<f64>,
    /// Phases of `state_ms`. None without a state, and in records of earlier versions.
    pub phases: Option<StatePhases>,
    /// Time that all states took together, side by side where `jobs` says so (milliseconds). None
    /// without a state, and in records of earlier versions.
    pub judging_ms: Option<f64>,
    /// The first states that failed.
    pub failures: Vec<FailedState>,
    /// Why the first unknown state could not be checked.
    pub unchecked: Option<String>,
    /// Cause of failure of the first flush boundary that failed; none if none failed.
    pub cause: Option<FailureCause>,
    /// Folder with the image, the disk log and the ledger, if a state failed.
    pub kept: Option<String>,
}

impl StatesOutcome {
    /// States within epochs that were judged, and how many are of kinds that are looked at
    /// (counts).
    pub fn within_total(&self) -> (u64, u64) {
        let sum = |of: fn(&StateCount) -> u64| self.within.iter().map(of).sum();
        (sum(|count| count.judged), sum(|count| count.total))
    }

    /// Iterates over the missing writes of all described states and causes.
    pub fn missing_writes_mut(&mut self) -> impl Iterator<Item = &mut MissingWrite> {
        fn of_cause(cause: &mut Option<FailureCause>) -> &mut [MissingWrite] {
            match cause {
                Some(FailureCause::Lost { first, .. }) => first,
                Some(FailureCause::NotWritten) | None => &mut [],
            }
        }
        let of_failures = self
            .failures
            .iter_mut()
            .flat_map(|failed| failed.missing.iter_mut().chain(of_cause(&mut failed.cause)));
        of_failures.chain(of_cause(&mut self.cause))
    }

    /// Judges the states as those of a planted failure: a failure is expected. It is *invalid* to
    /// judge every flush boundary without a failure.
    pub(super) fn plant(&mut self) {
        self.verdict = match self.verdict {
            Verdict::Fail(failing) => Verdict::AsPlanted(failing),
            Verdict::Pass | Verdict::BoundedLoss => {
                self.reason = format!(
                    "was meant to fail and did not in any state: the instrument does not see what \
                     was planted, or it is not there; {}",
                    self.reason
                );
                Verdict::Invalid
            }
            verdict => verdict,
        };
    }

    /// Sets verdict and reason from the counts. `worst` is the gravest verdict of a state.
    pub fn conclude(&mut self, worst: Verdict) {
        let StateCount { judged, total, .. } = self.boundaries;
        (self.verdict, self.reason) = match worst {
            Verdict::Fail(_) => {
                let first = self.failures.first().map_or("", |failed| &failed.reason);
                (worst, format!("{} failed; the first: {first}", counted(self.failed, "state")))
            }
            _ if self.stretch.early.is_some_and(|early| early > 0) => {
                let early = self.stretch.early.unwrap_or_default();
                let reason =
                    format!("{early} transactions were acknowledged before a flush covered them");
                (Verdict::Fail(Failing::Lost), reason)
            }
            _ if self.unknown > 0 => {
                let why = self.unchecked.as_deref().unwrap_or_default();
                (Verdict::Unknown, format!("{} states could not be checked: {why}", self.unknown))
            }
            _ if judged < total => {
                let reason = format!("{judged} of {total} flush boundaries were judged");
                (Verdict::Partial, reason)
            }
            _ if self.stretch.acknowledged == 0 => {
                (Verdict::Unknown, "nothing was acknowledged in the recorded stretch".into())
            }
            Verdict::BoundedLoss => (
                worst,
                format!("all {total} flush boundaries keep what the settings promise to keep"),
            ),
            _ => {
                (Verdict::Pass, format!("all {total} flush boundaries keep what was acknowledged"))
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(judged: u64, unknown: u64) -> StatesOutcome {
        StatesOutcome {
            stretch: RecordedStretch { acknowledged: 5, ..RecordedStretch::default() },
            boundaries: StateCount { kind: StateKind::Boundary, judged, total: 10 },
            unknown,
            ..StatesOutcome::default()
        }
    }

    #[test]
    fn boundaries_that_were_not_judged_leave_a_pass_partial_and_a_failure_a_failure() {
        let verdict = |judged, unknown, worst| {
            let mut outcome = outcome(judged, unknown);
            outcome.conclude(worst);
            outcome.verdict
        };
        assert_eq!(verdict(10, 0, Verdict::Pass), Verdict::Pass);
        assert_eq!(verdict(10, 0, Verdict::BoundedLoss), Verdict::BoundedLoss);
        assert_eq!(verdict(9, 0, Verdict::Pass), Verdict::Partial);
        assert_eq!(verdict(9, 1, Verdict::Unknown), Verdict::Unknown);
        let lost = Verdict::Fail(Failing::Lost);
        assert_eq!(verdict(3, 1, lost), lost);
        let mut early = outcome(10, 0);
        early.stretch.early = Some(1);
        early.conclude(Verdict::Pass);
        assert_eq!(early.verdict, lost);
    }

    #[test]
    fn a_planted_failure_has_to_come_in_some_state() {
        let planted = |judged, worst| {
            let mut outcome = outcome(judged, 0);
            outcome.conclude(worst);
            outcome.plant();
            let once = outcome.clone();
            outcome.plant();
            assert_eq!(outcome, once, "a second time changes nothing");
            outcome.verdict
        };
        let lost = Failing::Lost;
        assert_eq!(planted(3, Verdict::Fail(lost)), Verdict::AsPlanted(lost));
        assert_eq!(planted(10, Verdict::Pass), Verdict::Invalid);
        assert_eq!(planted(10, Verdict::BoundedLoss), Verdict::Invalid);
        assert_eq!(planted(9, Verdict::Pass), Verdict::Partial, "it may be in a state to come");
    }
}
