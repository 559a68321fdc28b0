//! A client's share of flush accounting: which flush a commit has to wait for.
//!
//! Before the statement that may end a transaction is sent, [`CommitWatch`] notes the newest flush
//! that had begun. [`CommandEffects`] tells from command tags whether the transaction changed rows,
//! since only then has the server anything to flush.

use pgdyno_wire::backend::TransactionStatus;

use crate::flushes::DiskFlushes;

/// Flushes of the disk below WAL, and where they stood when a COMMIT was sent.
pub(super) struct CommitWatch {
    pub(super) flushes: DiskFlushes,
    /// Number of the newest flush that had begun when the statement that may end a transaction was
    /// sent. None after any other statement, and in a pipeline.
    pub(super) begun: Option<u64>,
}

impl CommitWatch {
    pub(super) fn new(flushes: DiskFlushes) -> Self {
        Self { flushes, begun: None }
    }
}

/// Changes that the current transaction has made, as its command tags tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CommandEffects {
    /// No command reported changed rows.
    #[default]
    Nothing,
    /// Rows were changed.
    Changed,
    /// Rows were changed and committed. Another statement of the same message may follow.
    Committed,
}

impl CommandEffects {
    /// Notes a command's tag: `INSERT 0 1`, `UPDATE 3`, `COMMIT`.
    #[inline]
    pub(super) fn note(&mut self, tag: &[u8]) {
        match tag.first() {
            Some(b'I' | b'U' | b'D' | b'M') if changes_rows(tag) => *self = Self::Changed,
            Some(b'C') if changes_rows(tag) => *self = Self::Changed,
            Some(b'C') if *self == Self::Changed && tag == b"COMMIT" => *self = Self::Committed,
            // Also of ROLLBACK TO: what came before it may be all that is left of its changes.
            Some(b'R') if tag == b"ROLLBACK" => *self = Self::Nothing,
            _ => {}
        }
    }

    /// Ends a reply, after which the session is in `status`. Returns whether a transaction that
    /// changed rows ended with it.
    #[inline]
    pub(super) fn end_reply(&mut self, status: TransactionStatus) -> bool {
        let is_over = status == TransactionStatus::Idle;
        let has_ended = is_over && *self != Self::Nothing;
        if is_over || *self == Self::Committed {
            *self = Self::Nothing;
        }
        has_ended
    }
}

/// Tells whether the tag is of a command that changed at least one row.
fn changes_rows(tag: &[u8]) -> bool {
    let names: [&[u8]; 5] = [b"INSERT ", b"UPDATE ", b"DELETE ", b"MERGE ", b"COPY "];
    names.iter().any(|name| tag.starts_with(name)) && !tag.ends_with(b" 0")
}

#[cfg(test)]
mod tests {
    use pgdyno_wire::backend::TransactionStatus::{Idle, InTransaction};

    use super::*;

    #[test]
    fn a_transaction_changed_rows_if_a_tag_counts_some_and_none_takes_them_back() {
        let ends_changed = |tags: &[&str], status| {
            let mut effects = CommandEffects::default();
            tags.iter().for_each(|tag| effects.note(tag.as_bytes()));
            effects.end_reply(status)
        };
        for changing in ["INSERT 0 1", "UPDATE 10", "DELETE 3", "MERGE 7", "COPY 5"] {
            assert!(ends_changed(&[changing], Idle), "{changing}");
            assert!(ends_changed(&["BEGIN", changing, "SELECT 1", "COMMIT"], Idle), "{changing}");
            assert!(!ends_changed(&["BEGIN", changing], InTransaction), "{changing}");
            assert!(!ends_changed(&["BEGIN", changing, "ROLLBACK"], Idle), "{changing}");
        }
        for other in ["INSERT 0 0", "UPDATE 0", "DELETE 0", "SELECT 5", "CALL", "COPY 0"] {
            assert!(!ends_changed(&["BEGIN", other, "COMMIT"], Idle), "{other}");
        }
        let mut chained = CommandEffects::default();
        ["UPDATE 1", "COMMIT"].iter().for_each(|tag| chained.note(tag.as_bytes()));
        assert!(!chained.end_reply(InTransaction), "COMMIT AND CHAIN");
        assert!(!chained.end_reply(Idle), "the next transaction changed nothing");
    }
}
