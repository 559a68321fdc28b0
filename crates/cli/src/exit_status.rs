//! The exit status of a command that did its work.

use pgdyno_analysis::RunView;
use pgdyno_lab::Verdict;

/// How a command ended that did its work. An error ends it with 1 instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// 0: everything was done.
    Success,
    /// 2: a trial failed. The other trials are stored.
    TrialFailed,
    /// 3: a gate was exceeded, `audit` found something serious, or `verify` found damage.
    Exceeded,
    /// 4: a server lost what it had acknowledged.
    PromiseBroken,
    /// 5: the data are not enough to decide a gate or a crash test.
    Undecided,
    /// 130: a signal ended the command. Finished work is stored.
    Interrupted,
}

/// Every exit status and its meaning, for the help and the man pages.
pub(crate) const MEANINGS: [(u8, &str); 8] = [
    (0, "done"),
    (1, "error"),
    (2, "a trial failed, the others are stored"),
    (
        3,
        "a gate of `--fail-if` or `--fail-unless` was exceeded, `audit` found something serious, \
         or `verify` found damage",
    ),
    (4, "a crash test FAILs"),
    (5, "the data are not enough to decide a gate or a crash test"),
    (130, "interrupted"),
    (141, "the reader of standard output went away, as in `| head`"),
];

/// Returns the meanings of all exit statuses as one sentence.
pub(crate) fn exit_codes() -> String {
    MEANINGS.map(|(code, meaning)| format!("{code} {meaning}")).join("; ")
}

impl ExitStatus {
    /// Returns the number that the process exits with.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::TrialFailed => 2,
            Self::Exceeded => 3,
            Self::PromiseBroken => 4,
            Self::Undecided => 5,
            Self::Interrupted => 130,
        }
    }

    /// Returns the status that a run's crash tests ask for: the worst among the newest verdict of
    /// each treatment and all failures.
    pub(crate) fn of_crashes(view: &RunView) -> Self {
        let newest =
            view.treatments.iter().filter_map(|t| t.crash.as_ref()).map(|crash| crash.verdict);
        let all = view.crashes.iter().map(|crash| crash.outcome.verdict);
        let failed = all.filter(|verdict| verdict.is_failure());
        newest.chain(failed).max().map_or(Self::Success, Self::from)
    }
}

impl From<Verdict> for ExitStatus {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass | Verdict::BoundedLoss | Verdict::AsPlanted(_) => Self::Success,
            Verdict::Fail(_) => Self::PromiseBroken,
            Verdict::Partial | Verdict::Unknown | Verdict::Invalid => Self::Undecided,
        }
    }
}
