//! The exit status of a command that did its work.

use pgdyno_analysis::RunView;
use pgdyno_model::crash::Verdict;

/// How a command ended that did its work. An error ends it with 1 instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// Everything was done.
    Success = 0,
    /// A trial failed. The other trials are stored.
    TrialFailed = 2,
    /// A gate was exceeded, `audit` found something serious, or `verify` found damage.
    Exceeded = 3,
    /// A server lost what it had acknowledged.
    PromiseBroken = 4,
    /// The data are not enough to decide a gate or a crash test.
    Undecided = 5,
    /// A signal ended the command. Finished work is stored.
    Interrupted = 130,
}

impl ExitStatus {
    /// Returns the number that the process exits with.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// Returns the status that a run's crash tests ask for: the worst among the newest verdict of
    /// each treatment and all failures.
    pub(crate) fn from_crashes(view: &RunView) -> Self {
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
