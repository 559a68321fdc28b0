//! What a client keeps to judge its commits by a disk's flushes.

use pgdyno_wire::backend::TransactionStatus;

use crate::flushes::DiskFlushes;

/// What a client keeps to judge its commits.
pub(super) struct CommitWatch {
    pub(super) flushes: DiskFlushes,
    /// The newest flush that was begun when the statement that may end a transaction was sent; none
    /// after another statement, and in a pipeline.
    pub(super) begun: Option<u64>,
}

impl CommitWatch {
    pub(super) fn new(flushes: DiskFlushes) -> Self {
        Self { flushes, begun: None }
    }
}

/// What the command tags say of the transaction under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CommandEffects {
    /// It changed nothing that is known of.
    #[default]
    Nothing,
    /// It changed rows.
    Changed,
    /// It changed rows and was committed; another statement of the same message may follow.
    Committed,
}

impl CommandEffects {
    /// Notes a command's tag: `INSERT 0 1`, `UPDATE 3`, `COMMIT`.
    #[inline]
    pub(super) fn note(&mut self, tag: &[u8]) {
        match tag.first() {
            Some(b'I' | b'U' | b'D' | b'M') if changes_rows(tag) => *self = Self::Changed,
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
    let names: [&[u8]; 4] = [b"INSERT ", b"UPDATE ", b"DELETE ", b"MERGE "];
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
        for changing in ["INSERT 0 1", "UPDATE 10", "DELETE 3", "MERGE 7"] {
            assert!(ends_changed(&[changing], Idle), "{changing}");
            assert!(ends_changed(&["BEGIN", changing, "SELECT 1", "COMMIT"], Idle), "{changing}");
            assert!(!ends_changed(&["BEGIN", changing], InTransaction), "{changing}");
            assert!(!ends_changed(&["BEGIN", changing, "ROLLBACK"], Idle), "{changing}");
        }
        for other in ["INSERT 0 0", "UPDATE 0", "DELETE 0", "SELECT 5", "CALL", "CREATE INDEX"] {
            assert!(!ends_changed(&["BEGIN", other, "COMMIT"], Idle), "{other}");
        }
        let mut chained = CommandEffects::default();
        ["UPDATE 1", "COMMIT"].iter().for_each(|tag| chained.note(tag.as_bytes()));
        assert!(!chained.end_reply(InTransaction), "COMMIT AND CHAIN");
        assert!(!chained.end_reply(Idle), "the next transaction changed nothing");
    }
}
