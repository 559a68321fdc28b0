//! Flush accounting: was every acknowledged commit covered by a flush?
//!
//! A stack that acknowledges early is caught here without a crash. The ledger notes the disk's
//! newest event right before COMMIT is sent and right after it is acknowledged.
//!
//! - Where the write of its commit record is known, a flush that was done by the acknowledgement
//!   must cover that write.
//! - Elsewhere: what the server writes for a commit is a later event than the first number. So the
//!   flush must cover a later event. One of something else may hide that its own is missing.
//!
//! ```
//! # use std::collections::BTreeMap;
//! # use pgdyno_durability::{FlushEvent, early_acknowledgements};
//! # use pgdyno_model::ledger::{LogPositions, Token};
//! let commit = LogPositions { committing: 10, acknowledged: Some(12) };
//! let commits = BTreeMap::from([(Token { client: 0, sequence: 1 }, commit)]);
//! // Event 11 was a write; flush 12 covers it.
//! let flush = FlushEvent { number: 12, covers: 11 };
//! assert!(early_acknowledgements(&commits, &BTreeMap::new(), [flush]).is_empty());
//! assert_eq!(early_acknowledgements(&commits, &BTreeMap::new(), []).len(), 1);
//! ```

use std::collections::BTreeMap;

use pgdyno_model::ledger::{LogPositions, Token};

/// A flush that a disk did, by the numbers of the disk's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushEvent {
    /// Number of the event at which the flush was done.
    pub number: u64,
    /// Newest event when the flush was requested: it covers all events up to this one.
    pub covers: u64,
}

/// Returns the acknowledged transactions of `commits` that no flush covers.
///
/// `records` has, where known, the number of the write that completed each commit record. The
/// `flushes` are in the order of completion. One flush may cover any number of commits (group
/// commit).
pub fn early_acknowledgements(
    commits: &BTreeMap<Token, LogPositions>,
    records: &BTreeMap<Token, u64>,
    flushes: impl IntoIterator<Item = FlushEvent>,
) -> Vec<Token> {
    // Of the flushes up to each, the one that covers most.
    let mut done: Vec<FlushEvent> = Vec::new();
    for flush in flushes {
        let covers = done.last().map_or(0, |earlier| earlier.covers).max(flush.covers);
        done.push(FlushEvent { covers, ..flush });
    }
    let is_early = |token: &Token, position: &LogPositions| {
        let write = records.get(token).copied().unwrap_or(position.committing + 1);
        position.acknowledged.is_some_and(|acknowledged| {
            let until = done.partition_point(|flush| flush.number <= acknowledged);
            until == 0 || done[until - 1].covers < write
        })
    };
    let early = commits.iter().filter(|(token, position)| is_early(token, position));
    early.map(|(token, _)| *token).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Token = Token { client: 0, sequence: 1 };

    fn is_early_by(
        record: Option<u64>,
        committing: u64,
        acknowledged: u64,
        flushes: &[(u64, u64)],
    ) -> bool {
        let position = LogPositions { committing, acknowledged: Some(acknowledged) };
        let commits = BTreeMap::from([(TOKEN, position)]);
        let records = record.map(|write| (TOKEN, write)).into_iter().collect();
        let flushes = flushes.iter().map(|&(number, covers)| FlushEvent { number, covers });
        !early_acknowledgements(&commits, &records, flushes).is_empty()
    }

    fn is_early(committing: u64, acknowledged: u64, flushes: &[(u64, u64)]) -> bool {
        is_early_by(None, committing, acknowledged, flushes)
    }

    #[test]
    fn a_flush_of_something_else_does_not_cover_a_commit_whose_record_is_known() {
        // A checkpoint's write 11 and its flush, then the commit record's write 13.
        let flushes = [(12, 11)];
        assert!(!is_early(10, 14, &flushes));
        assert!(is_early_by(Some(13), 10, 14, &flushes));
        assert!(!is_early_by(Some(13), 10, 15, &[(12, 11), (14, 13)]));
        // The record got to the disk after the acknowledgement.
        assert!(is_early_by(Some(17), 10, 15, &[(12, 11), (18, 17)]));
    }

    #[test]
    fn a_flush_that_was_asked_for_before_the_commit_was_sent_does_not_cover_it() {
        assert!(is_early(10, 14, &[(12, 10)]));
        assert!(!is_early(10, 14, &[(12, 11)]));
    }

    #[test]
    fn a_flush_that_was_done_after_the_acknowledgement_does_not_cover_it() {
        assert!(is_early(10, 14, &[(15, 13)]));
        assert!(!is_early(10, 15, &[(15, 13)]));
    }

    #[test]
    fn one_flush_covers_several_commits_and_an_unanswered_one_needs_none() {
        assert!(!is_early(10, 20, &[(5, 4), (16, 15), (18, 12)]));
        let open = LogPositions { committing: 1, acknowledged: None };
        let commits = BTreeMap::from([(TOKEN, open)]);
        assert_eq!(early_acknowledgements(&commits, &BTreeMap::new(), []), []);
    }
}
