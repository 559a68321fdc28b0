//! Finds runs that measured one treatment under two names.

use std::collections::BTreeSet;

/// Runs that measured one treatment under two names, as far as the store was searched for them: a
/// list of many runs asks for them with each run that it analyses.
#[derive(Debug, Default)]
pub(super) struct EqualTreatments {
    /// Removals before the search (their last number). One more gives numbers of runs away again.
    pub(super) removals: i64,
    /// The last run that was looked at.
    pub(super) searched: i64,
    /// The runs: when each began, and its id.
    pub(super) found: BTreeSet<(i64, String)>,
}
