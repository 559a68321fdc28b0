//! Reasons for a missing estimate.

/// Reason why an estimate has no confidence interval, or no value at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoInterval {
    /// No trial is completed.
    #[error("no trial is completed")]
    NoTrial,
    /// There is one value only.
    #[error("one repeat only: no interval")]
    OneRepeat,
    /// A value is not a finite number.
    #[error("a value is not a finite number")]
    NotFinite,
    /// All values are equal, so that their spread cannot be estimated.
    #[error("all repeats are equal: their spread cannot be estimated, no interval")]
    AllEqual,
    /// The distribution's quantile could not be computed.
    #[error("the interval could not be computed")]
    NotComputable,
    /// The values differ so much that an end of the interval is not a number.
    #[error("the repeats differ too much for an interval")]
    TooWide,
    /// One of the two treatments of a ratio has no completed trial.
    #[error("one of the two has no completed trial")]
    OneSideEmpty,
    /// A trial completed no transaction, so that no ratio can be formed.
    #[error("a trial completed no transaction, so that no ratio can be formed")]
    NoTransaction,
    /// Two runs are compared, and too few earlier runs are known.
    #[error("no interval across runs")]
    TooFewRuns,
}

/// Reason why no law of scaling was fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoFit {
    /// A trial completed no transaction.
    #[error("a trial completed no transaction")]
    NoTransaction,
    /// Fewer than four numbers of clients were measured; the law has three parameters.
    #[error("fewer than four numbers of clients: the law has three unknowns")]
    TooFewClients,
    /// The equations have no solution with non-negative parameters.
    #[error("the law could not be fitted")]
    NoSolution,
}
