//! Flush accounting: whether a flush of the disk under pg_wal was begun and done while a commit was
//! under way.
//!
//! [`Client::note_commit`] reads how many flushes were begun right before a statement is sent that
//! may end a transaction. [`Client::judge_commit`] reads which flushes are done when the server is
//! ready again. A later flush than the first number that is done covers the commit; commits may
//! share it. Whether the transaction changed rows, the server's command tags say
//! ([`CommandEffects`]).

use pgdyno_wire::backend::TransactionStatus;

use super::commit_watch::{CommandEffects, CommitWatch};
use super::state::{Client, ClientContext};
use crate::flushes::DiskFlushes;
use crate::program::{Statement, TransactionEdge};

impl Client {
    /// Judges each commit by `flushes` of the disk under the server's WAL.
    #[must_use]
    pub fn with_flushes(mut self, flushes: DiskFlushes) -> Self {
        self.replies.effects = Some(CommandEffects::default());
        Self { commits: Some(Box::new(CommitWatch::new(flushes))), ..self }
    }

    /// Notes the disk's flushes before `statement` is sent, if it may end a transaction.
    #[inline]
    pub(super) fn note_commit(&mut self, statement: &Statement) {
        let Some(watch) = &mut self.commits else { return };
        let may_end = match statement.edge {
            TransactionEdge::Begins => false,
            TransactionEdge::Ends => true,
            TransactionEdge::Within => self.replies.status == TransactionStatus::Idle,
        };
        watch.begun = (may_end && !self.in_pipeline).then(|| watch.flushes.begun());
    }

    /// Judges the transaction that has ended with this reply, if one has that changed rows.
    #[inline]
    pub(super) fn judge_commit(&mut self, context: &mut ClientContext<'_>) {
        let (Some(watch), Some(effects)) = (&mut self.commits, &mut self.replies.effects) else {
            return;
        };
        let begun = watch.begun.take();
        if !effects.end_reply(self.replies.status) || self.error.is_some() {
            return;
        }
        let is_early = begun.map(|begun| watch.flushes.done() <= begun);
        context.recorder.record_commit(is_early, context.now);
    }
}
