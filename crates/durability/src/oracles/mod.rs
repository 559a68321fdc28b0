//! Oracles: each checks one property that must hold whatever was crashed.
//!
//! To add one, write a function from [`Case`] to an outcome and add its line to [`ORACLES`]. Plant a
//! history that it must catch in `judge/tests.rs`.

mod case;
mod ledger;
mod tables;

pub use case::Case;
pub(crate) use case::tokens;
use case::{complaints, with};
pub use ledger::missing;
use pgdyno_model::crash::Failing::{Corrupt, Lost, NoWrites, WillNotStart};
use pgdyno_model::crash::{CheckOutcome, Failing};
use tables::once;

use crate::found::Observed;

/// A named check.
#[derive(Clone, Copy)]
pub struct Oracle {
    /// Property that must hold, as text.
    pub name: &'static str,
    /// Kind of failure if the property does not hold.
    pub failing: Failing,
    /// Checks the property.
    pub look: fn(&Case<'_>) -> CheckOutcome,
}

/// All oracles, in the order of reports.
pub const ORACLES: &[Oracle] = &[
    Oracle::new("acknowledged transactions are there", Lost, ledger::acknowledged),
    Oracle::new("each client's are there without a gap", Lost, ledger::gaps),
    Oracle::new("transactions are there in the order of acknowledgement", Lost, ledger::order),
    Oracle::new("refused and unsent ones are not there", Corrupt, ledger::resurrected),
    Oracle::new("nothing is there that was not asked for", Corrupt, ledger::strangers),
    Oracle::new("no transaction is there twice", Corrupt, ledger::duplicates),
    Oracle::new("index and table agree", Corrupt, tables::index),
    Oracle::new("every transaction is there whole", Corrupt, tables::whole),
    Oracle::new("the balances' sums agree", Corrupt, tables::sums),
    Oracle::new("every loaded row is there once, by a scan", Corrupt, |case| {
        once(&case.found.by_scan)
    }),
    Oracle::new("every loaded row is there once, by its key", Corrupt, |case| {
        once(&case.found.by_key)
    }),
    Oracle::new("index entries lead to tuples", Corrupt, |case| complained(&case.found.pointers)),
    Oracle::new("the visibility map tells the truth", Corrupt, |case| {
        complained(&case.found.visibility)
    }),
    Oracle::new("the cluster is the same", Corrupt, identifier),
    Oracle::new("recovery reached the last acknowledged WAL", Lost, wal),
    Oracle::new("the server's log tells of no damage", Corrupt, |case| complained(&case.found.log)),
    Oracle::new("amcheck: B-trees", Corrupt, |case| complained(&case.found.btrees)),
    Oracle::new("amcheck: tables", Corrupt, |case| complained(&case.found.heaps)),
    Oracle::new("pg_checksums", Corrupt, |case| complained(&case.found.checksums)),
    Oracle::new("the server takes writes", NoWrites, |case| works(&case.found.writes)),
    // A server that a clean stop ends for good is as good as one that did not recover.
    Oracle::new("the server starts again after a clean stop", WillNotStart, |case| {
        works(&case.found.restarted)
    }),
    Oracle::new("the last write is there after a clean stop", Lost, unwritten),
    Oracle::new("every loaded row is there after a clean stop", Corrupt, |case| {
        once(&case.found.after_restart)
    }),
];

impl Oracle {
    const fn new(
        name: &'static str,
        failing: Failing,
        look: fn(&Case<'_>) -> CheckOutcome,
    ) -> Self {
        Self { name, failing, look }
    }
}

/// The server that came back is the one that went.
fn identifier(case: &Case<'_>) -> CheckOutcome {
    with(&case.found.system_identifier, |(before, after)| {
        if before == after {
            CheckOutcome::Passed
        } else {
            CheckOutcome::Failed(format!("the system identifier was {before} and is {after}"))
        }
    })
}

/// Recovery replayed at least as far as a commit that was acknowledged.
fn wal(case: &Case<'_>) -> CheckOutcome {
    with(&case.found.wal, |wal| {
        if wal.recovered >= wal.acknowledged {
            CheckOutcome::Passed
        } else {
            CheckOutcome::Failed(format!(
                "recovery ended at {}, and a commit beyond {} had been acknowledged",
                lsn(wal.recovered),
                lsn(wal.acknowledged)
            ))
        }
    })
}

fn complained(observed: &Observed<Vec<String>>) -> CheckOutcome {
    with(observed, |lines| complaints(lines))
}

fn works(observed: &Observed<()>) -> CheckOutcome {
    with(observed, |()| CheckOutcome::Passed)
}

/// What a server acknowledged after its recovery outlives a clean stop.
fn unwritten(case: &Case<'_>) -> CheckOutcome {
    with(&case.found.unwritten, |tables| {
        let lost: Vec<String> = tables
            .iter()
            .map(|table| format!("{table} lacks the row that was written last"))
            .collect();
        complaints(&lost)
    })
}

/// An LSN as PostgreSQL writes it.
fn lsn(position: u64) -> String {
    format!("{:X}/{:X}", position >> 32, position & 0xffff_ffff)
}
