//! Keeps the server's WAL writer awake while rows are sent and keys built.
//!
//! By itself it looks every `wal_writer_delay`, 200 ms unless set; a COPY fills `wal_buffers` in a
//! few milliseconds and then writes and flushes WAL itself, page by page, on the core that is the
//! load's limit; two of them also wait for each other. The end of a transaction that wrote WAL and
//! needs no flush wakes the WAL writer as soon as `wal_writer_flush_after` of WAL wait
//! (PostgreSQL's `XLogSetAsyncXactLSN`, called by `RecordTransactionCommit`). A logical message
//! that belongs to no transaction is the least that does it: some 60 bytes of WAL and no
//! transaction id.
//!
//! Only beside COPY with FREEZE, where the WAL of one or two connections is the limit, and on no
//! small table.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pgdyno_connect::control::ControlClient;

use crate::worker::Shared;

/// Time between checks for a piece that writes.
const LOOK: Duration = Duration::from_millis(20);

/// Returns whether keeping the WAL writer awake helps and harms nobody.
///
/// With `wal_level = minimal`, COPY with FREEZE writes no WAL. With `logical`, somebody may read
/// the messages.
pub(crate) fn helps(client: &mut ControlClient) -> bool {
    const ASKED: &str = "SELECT pg_catalog.current_setting('wal_level') = 'replica'";
    // Behind a pooler a DO block that commits cannot have its search_path set.
    !client.is_pooled() && client.query_one(ASKED, &[]).is_ok_and(|row| row.get(0))
}

/// Wakes the WAL writer until `working` connections, whose backends are `backends`, are done.
///
/// If the server refuses, the load goes on without.
pub(crate) fn keep(
    client: &mut ControlClient,
    shared: &Shared<'_>,
    backends: &[i32],
    working: &AtomicU32,
) {
    let sql = until_they_are_done(backends);
    while working.load(Ordering::Acquire) > 0 {
        let open =
            shared.open.try_read().ok().filter(|_| shared.writing.load(Ordering::Relaxed) > 0);
        let Some(_open) = open else {
            std::thread::park_timeout(LOOK);
            continue;
        };
        if client.batch_execute(&sql).is_err() {
            return;
        }
    }
}

/// Returns SQL that runs while one of `backends` fills a table or builds a key.
///
/// The loop is the server's, so it also ends if pgdyno is gone.
fn until_they_are_done(backends: &[i32]) -> String {
    let pids = backends.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    format!(
        "DO $$ BEGIN LOOP \
         FOR tick IN 1..16 LOOP \
         PERFORM pg_catalog.pg_logical_emit_message(false, 'pgdyno', ''); COMMIT; \
         PERFORM pg_catalog.pg_sleep(0.001); \
         END LOOP; \
         EXIT WHEN NOT EXISTS (SELECT FROM pg_catalog.pg_stat_activity \
         WHERE pid IN ({pids}) AND state = 'active' AND query ~ '^(COPY|ALTER)'); \
         END LOOP; END $$"
    )
}
