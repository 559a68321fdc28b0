//! Clients' transactions against the rows that name them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pgdyno_model::crash::CheckOutcome;
use pgdyno_model::ledger::{Effect, Entry, History, State, Token};

use super::case::{Case, complaints, outcome_of, with};
use crate::found::{AsynchronousCommit, tokens};

/// Acknowledged transactions from which on the loss of all of them is no accident (count).
const SOME: u64 = 10;

/// Returns the acknowledged transactions that are not in `there`.
pub(crate) fn missing(history: &History, there: &BTreeSet<Token>) -> Vec<Entry> {
    history
        .entries()
        .filter(|e| e.state == State::Acknowledged && !there.contains(&e.token))
        .copied()
        .collect()
}

/// Checks that every acknowledged transaction is there. With `synchronous_commit = off`,
/// transactions may be missing whose WAL the server had not flushed yet: see
/// [`AsynchronousCommit`].
pub(super) fn acknowledged(case: &Case<'_>) -> CheckOutcome {
    let there = match &case.contents.rows {
        Ok(rows) => tokens(rows),
        Err(unseen) => return outcome_of(unseen),
    };
    let missing = missing(case.history, &there);
    if missing.is_empty() {
        return CheckOutcome::Passed;
    }
    let all = case.history.count(State::Acknowledged);
    let age = |e: &Entry| case.promise.struck_at.saturating_sub(e.at);
    let oldest = missing.iter().map(age).max().unwrap_or_default();
    let what = format!(
        "{} of {all} acknowledged transactions are missing, the oldest acknowledged {} ms \
         before the fault",
        missing.len(),
        ms(oldest)
    );
    match &case.promise.asynchronous {
        None => CheckOutcome::Failed(what),
        Some(asynchronous) => {
            let is_all = all >= SOME && missing.len() as u64 == all;
            asynchronous_loss(asynchronous, &missing, is_all, oldest, &what)
        }
    }
}

/// Judges the loss of `missing` under asynchronous commit. `oldest` is the age of the oldest lost
/// transaction; `is_all` says that no acknowledged transaction is there.
fn asynchronous_loss(
    promise: &AsynchronousCommit,
    missing: &[Entry],
    is_all: bool,
    oldest: Duration,
    what: &str,
) -> CheckOutcome {
    let (documented, with_flushes) = (promise.documented(), promise.with_flushes());
    let flushed = missing
        .iter()
        .filter(|e| promise.durable_before.is_some_and(|before| e.at < before))
        .count();
    if flushed > 0 {
        return CheckOutcome::Failed(format!(
            "{what}: the server had reported the WAL of {flushed} of them as flushed"
        ));
    }
    // While load lasts, WAL is flushed again and again: of a load that is older than a bound,
    // something is there. The age of the oldest acknowledgement, which is missing here, is that of
    // the load.
    if is_all && oldest > with_flushes {
        return CheckOutcome::Failed(format!(
            "{what}: all that was ever acknowledged, and the load had lasted longer than the {} ms \
             in which synchronous_commit = off allows loss",
            ms(with_flushes)
        ));
    }
    if is_all {
        return CheckOutcome::CouldNotRun(format!(
            "{what}: all that was ever acknowledged, and the fault struck within the first {} \
             ms, in which synchronous_commit = off allows loss: nothing shows that anything \
             was ever durable",
            ms(with_flushes)
        ));
    }
    if oldest <= documented {
        return CheckOutcome::Allowed(format!(
            "{what}: synchronous_commit = off allows {} ms (3 × wal_writer_delay)",
            ms(documented)
        ));
    }
    let late = format!(
        "late: {what}: more than the {} ms of synchronous_commit = off (3 × wal_writer_delay)",
        ms(documented)
    );
    match (promise.flush_time, promise.durable_before) {
        (Some(flush), _) if oldest <= with_flushes => CheckOutcome::Allowed(format!(
            "{late}, within the {} ms that they are with flushes of {} ms",
            ms(with_flushes),
            ms(flush)
        )),
        (flush, Some(_)) => {
            let flush =
                flush.map_or("not measured".to_owned(), |flush| format!("{} ms", ms(flush)));
            CheckOutcome::Allowed(format!(
                "{late}; the server had reported none of their WAL as flushed, so that the storage \
                 lost nothing that it had (flush time {flush})"
            ))
        }
        (Some(flush), None) => CheckOutcome::Failed(format!(
            "{what}: more than the {} ms that synchronous_commit = off allows with flushes of {} \
             ms (3 × (wal_writer_delay + flush))",
            ms(with_flushes),
            ms(flush)
        )),
        (None, None) => CheckOutcome::CouldNotRun(format!(
            "{late}; the flush time was not measured, nor was the server asked what it had flushed"
        )),
    }
}

/// Formats milliseconds, without a fraction from 10 on.
fn ms(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    if ms < 10.0 { format!("{ms:.1}") } else { format!("{ms:.0}") }
}

/// Checks that a client's acknowledged transactions are there without a gap. WAL is replayed in
/// order, so that nothing can be there while an earlier transaction of the client is missing.
pub(super) fn gaps(case: &Case<'_>) -> CheckOutcome {
    with(&case.contents.rows, |rows| {
        let there = tokens(rows);
        let mut holes = Vec::new();
        for client in &case.history.clients {
            let Some(last) = client.iter().rposition(|e| there.contains(&e.token)) else {
                continue;
            };
            let before = &client[..last];
            let absent = before
                .iter()
                .filter(|e| e.state == State::Acknowledged && !there.contains(&e.token));
            holes.extend(
                absent.map(|e| format!("{} is missing, {} is there", e.token, client[last].token)),
            );
        }
        complaints(&holes)
    })
}

/// Checks the order over all clients: if a transaction is there, so is every other that was
/// acknowledged before it began. This holds for asynchronous commit too, whose records are written
/// in that order.
pub(super) fn order(case: &Case<'_>) -> CheckOutcome {
    with(&case.contents.rows, |rows| {
        let there = tokens(rows);
        // Of those that are there, the one begun last condemns whatever any other would.
        let Some(last) =
            case.history.entries().filter(|e| there.contains(&e.token)).max_by_key(|e| e.begun)
        else {
            return CheckOutcome::Passed;
        };
        let lost = case.history.entries().filter(|e| {
            e.state == State::Acknowledged && e.at < last.begun && !there.contains(&e.token)
        });
        let told = lost.map(|e| {
            let before = ms(last.begun.saturating_sub(e.at));
            format!(
                "{} is missing, and {} is there, begun {before} ms after its acknowledgement",
                e.token, last.token
            )
        });
        complaints(&told.collect::<Vec<_>>())
    })
}

/// Checks that no refused transaction is there, and none whose COMMIT was never sent.
pub(super) fn resurrected(case: &Case<'_>) -> CheckOutcome {
    with(&case.contents.rows, |rows| {
        let there = tokens(rows);
        let risen = case.history.entries().filter(|e| there.contains(&e.token)).filter_map(|e| {
            match e.state {
                State::Failed => Some(format!("{} was refused and is there", e.token)),
                State::Issued => {
                    Some(format!("{} was never asked to commit and is there", e.token))
                }
                State::Acknowledged | State::Unknown => None,
            }
        });
        complaints(&risen.collect::<Vec<_>>())
    })
}

/// Checks that every row belongs to a transaction of the ledger and has its values.
pub(super) fn strangers(case: &Case<'_>) -> CheckOutcome {
    with(&case.contents.rows, |rows| {
        let asked: BTreeMap<Token, Effect> =
            case.history.entries().map(|e| (e.token, e.effect)).collect();
        let strange = rows.iter().filter_map(|row| match asked.get(&row.token) {
            None => Some(format!("{} is there, and no client asked for it", row.token)),
            Some(effect) if *effect != row.effect => {
                Some(format!("{} was asked to do {effect:?} and did {:?}", row.token, row.effect))
            }
            Some(_) => None,
        });
        complaints(&strange.collect::<Vec<_>>())
    })
}

/// Checks that no token is in two rows, by a scan that trusts no index.
pub(super) fn duplicates(case: &Case<'_>) -> CheckOutcome {
    with(&case.contents.rows, |rows| {
        let mut seen = BTreeSet::new();
        let twice = rows.iter().filter(|row| !seen.insert(row.token));
        complaints(&twice.map(|row| format!("{} is there twice", row.token)).collect::<Vec<_>>())
    })
}

/// Checks that the sequence stands at or beyond every number that a transaction took, and gave none
/// twice. The sequence's change is in the WAL before the commit of the transaction.
pub(super) fn numbers(case: &Case<'_>) -> CheckOutcome {
    with(&case.contents.numbers, |numbers| {
        let mut wrong = Vec::new();
        if let Some(highest) = numbers.highest.filter(|highest| *highest > numbers.last) {
            wrong.push(format!(
                "it stands at {}, and a transaction that is there took {highest}",
                numbers.last
            ));
        }
        if numbers.repeated > 0 {
            wrong.push(format!("{} rows have a number that another has", numbers.repeated));
        }
        complaints(&wrong)
    })
}
