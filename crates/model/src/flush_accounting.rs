//! Flush accounting beside a trial: did each commit wait for a flush of the disk under pg_wal?

use serde::{Deserialize, Serialize};

/// Result of flush accounting over a load.
///
/// A commit is judged if the server said that its transaction changed rows. A flush of its own is
/// one that began after COMMIT was sent, and was done before the acknowledgement arrived. Commits
/// may share it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlushAccounting {
    /// Commits that were judged, from the load's beginning to its end (count).
    pub judged: u64,
    /// Commits among them that were acknowledged without a flush of their own (count).
    pub early: u64,
    /// Transactions that changed rows and could not be judged: their statements were sent in a
    /// pipeline (count).
    pub unjudged: u64,
    /// When the first [`Self::early`] were acknowledged: from the window's opening, negative before
    /// it (seconds), at most [`FlushAccounting::MAX_INSTANTS`].
    pub first_early_s: Vec<f64>,
    /// Why no commit was judged; none if commits were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_judged: Option<NotJudged>,
}

/// Why no commit of a load is judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NotJudged {
    /// `synchronous_commit` is off: no commit waits for a flush.
    Asynchronous,
    /// A script, of this name, sets `synchronous_commit` itself.
    ScriptSetsIt(String),
    /// A script, of this name, uses temporary tables. Changes of theirs wait for no flush.
    TemporaryTables(String),
    /// This relation is unlogged, foreign, or a view with a trigger: what is changed in it may wait
    /// for no flush.
    NotLogged(String),
}

impl FlushAccounting {
    /// Instants that are kept.
    pub const MAX_INSTANTS: usize = 10;

    /// Returns an account of nothing yet, with room for its instants.
    pub fn with_room() -> Self {
        Self { first_early_s: Vec::with_capacity(Self::MAX_INSTANTS), ..Self::default() }
    }

    /// Counts a commit that was acknowledged `at` (seconds from the window's opening).
    pub fn add(&mut self, is_early: bool, at: impl FnOnce() -> f64) {
        self.judged += 1;
        if is_early {
            self.early += 1;
            if self.first_early_s.len() < Self::MAX_INSTANTS {
                self.first_early_s.push(at());
            }
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.judged += other.judged;
        self.early += other.early;
        self.unjudged += other.unjudged;
        self.first_early_s.extend_from_slice(&other.first_early_s);
        self.first_early_s.sort_by(f64::total_cmp);
        self.first_early_s.truncate(Self::MAX_INSTANTS);
        if self.not_judged.is_none() {
            self.not_judged.clone_from(&other.not_judged);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_instants_of_all_threads_are_kept() {
        let mut all = FlushAccounting::with_room();
        for thread in 0..3_u8 {
            let mut one = FlushAccounting::with_room();
            for n in 0..20_u8 {
                one.add(n % 2 == 0, || f64::from(n) + f64::from(thread) / 10.0);
            }
            all.merge(&one);
        }
        assert_eq!((all.judged, all.early), (60, 30));
        assert_eq!(all.first_early_s, [0.0, 0.1, 0.2, 2.0, 2.1, 2.2, 4.0, 4.1, 4.2, 6.0]);
    }
}
