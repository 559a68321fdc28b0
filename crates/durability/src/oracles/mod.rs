//! Oracles: each checks one property that must hold whatever was crashed.
//!
//! To add one, write a function from [`Case`] to an outcome and add its line to [`ORACLES`]. Plant
//! a history that it must catch in `judge/tests.rs`.

mod case;
mod ledger;
mod tables;

pub use case::Case;
use case::{complaints, outcome_of, with};
pub(crate) use ledger::missing;
use pgdyno_model::crash::Failing::{Corrupt, Lost, NoWrites, WillNotStart};
use pgdyno_model::crash::{CheckOutcome, Failing};
use pgdyno_model::ledger::History;
use tables::once;

use crate::found::{Contents, Found, Objects, Observed, Promise, Unseen};

/// A named check.
#[derive(Clone, Copy)]
pub struct Oracle {
    /// Property that must hold, as text.
    pub name: &'static str,
    /// Kind of failure if the property does not hold.
    pub failing: Failing,
    /// Part of the server that has the property.
    pub subject: Subject,
    /// Checks the property.
    pub look: fn(&Case<'_>) -> CheckOutcome,
}

/// Part of the server that a property belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The database. The property must hold after recovery, and again after a clean stop and a
    /// second start.
    Contents,
    /// The server and its recovery. The property is checked once.
    Server,
}

/// All oracles, in the order of reports.
pub const ORACLES: &[Oracle] = &[
    Oracle::contents("acknowledged transactions are there", Lost, ledger::acknowledged),
    Oracle::contents("each client's are there without a gap", Lost, ledger::gaps),
    Oracle::contents("transactions are there in the order of acknowledgement", Lost, ledger::order),
    Oracle::contents("refused and unsent ones are not there", Corrupt, ledger::resurrected),
    Oracle::contents("nothing is there that was not asked for", Corrupt, ledger::strangers),
    Oracle::contents("no transaction is there twice", Corrupt, ledger::duplicates),
    Oracle::contents("the sequence gives no number again", Corrupt, ledger::numbers),
    Oracle::contents("index and table agree", Corrupt, tables::index),
    Oracle::contents("every transaction is there whole", Corrupt, tables::whole),
    Oracle::contents("the balances' sums agree", Corrupt, tables::sums),
    Oracle::contents("the workload's conditions hold", Corrupt, |case| {
        complained(&case.contents.conditions)
    }),
    Oracle::contents("every loaded row is there once, by a scan", Corrupt, |case| {
        once(&case.contents.by_scan)
    }),
    Oracle::contents("every loaded row is there once, by its key", Corrupt, |case| {
        once(&case.contents.by_key)
    }),
    Oracle::contents("index entries lead to tuples", Corrupt, |case| {
        complained(&case.contents.pointers)
    }),
    Oracle::contents("the visibility map tells the truth", Corrupt, |case| {
        complained(&case.contents.visibility)
    }),
    Oracle::contents("amcheck: B-trees", Corrupt, |case| complained(&case.contents.btrees)),
    Oracle::contents("amcheck: tables", Corrupt, |case| complained(&case.contents.heaps)),
    Oracle::server("no object is gone, new or changed", Corrupt, objects),
    Oracle::server("the other databases are whole", Corrupt, |case| complained(&case.found.others)),
    Oracle::server("the cluster is the same", Corrupt, identifier),
    Oracle::server("recovery reached the last acknowledged WAL", Lost, wal),
    Oracle::server("the server's log tells of no damage", Corrupt, |case| {
        complained(&case.found.log)
    }),
    Oracle::server("pg_checksums", Corrupt, |case| complained(&case.found.checksums)),
    Oracle::server("the server takes writes", NoWrites, |case| works(&case.found.writes)),
    // A server that a clean stop ends for good is as good as one that did not recover.
    Oracle::server("the server starts again after a clean stop", WillNotStart, |case| {
        works(&case.found.restarted)
    }),
    Oracle::server("the last write is there after a clean stop", Lost, unwritten),
    Oracle::server("a clean stop takes and adds no transaction", Lost, stopped),
];

impl Oracle {
    const fn contents(
        name: &'static str,
        failing: Failing,
        look: fn(&Case<'_>) -> CheckOutcome,
    ) -> Self {
        Self { name, failing, subject: Subject::Contents, look }
    }

    const fn server(
        name: &'static str,
        failing: Failing,
        look: fn(&Case<'_>) -> CheckOutcome,
    ) -> Self {
        Self { name, failing, subject: Subject::Server, look }
    }

    /// Returns the outcome for the state that was `found`. Properties of the contents are checked
    /// twice, and the worse outcome counts.
    pub(crate) fn ask(&self, history: &History, found: &Found, promise: &Promise) -> CheckOutcome {
        let look = |contents: &Contents| (self.look)(&Case { history, found, contents, promise });
        let recovered = look(&found.recovered);
        // That the server does not start again, or could not be asked to, is another's finding.
        let (Subject::Contents, Ok(restarted)) = (self.subject, &found.restarted) else {
            return recovered;
        };
        match look(restarted) {
            again if gravity(&again) <= gravity(&recovered) => recovered,
            CheckOutcome::Failed(what) => {
                CheckOutcome::Failed(format!("after a clean stop and a second start: {what}"))
            }
            again => again,
        }
    }
}

/// Ranks an outcome by gravity: of two, the graver is reported.
fn gravity(outcome: &CheckOutcome) -> u8 {
    match outcome {
        CheckOutcome::NotApplicable(_) => 0,
        CheckOutcome::Passed => 1,
        CheckOutcome::Allowed(_) => 2,
        CheckOutcome::CouldNotRun(_) => 3,
        CheckOutcome::Failed(_) => 4,
    }
}

/// Checks that the server after the fault is the one from before.
fn identifier(case: &Case<'_>) -> CheckOutcome {
    with(&case.found.system_identifier, |(before, after)| {
        if before == after {
            CheckOutcome::Passed
        } else {
            CheckOutcome::Failed(format!("the system identifier was {before} and is {after}"))
        }
    })
}

/// Checks that all databases have the objects that they had.
fn objects(case: &Case<'_>) -> CheckOutcome {
    with(&case.found.objects, |census| {
        let mut differ = Vec::new();
        for (database, before) in &census.before {
            let found = match census.after.get(database) {
                Some(Ok(after)) => differences(before, after),
                Some(Err(Unseen::Damaged(what))) => vec![what.clone()],
                Some(Err(unseen)) if differ.is_empty() => return outcome_of(unseen),
                // What was found before is a finding, whatever keeps the rest from being looked at.
                Some(Err(_)) => break,
                None => vec!["gone".to_owned()],
            };
            differ.extend(found.iter().map(|what| format!("database {database}: {what}")));
        }
        complaints(&differ)
    })
}

fn differences(before: &Objects, after: &Objects) -> Vec<String> {
    let gone = before.difference(after).map(|object| format!("gone or changed: {object}"));
    let new = after.difference(before).map(|object| format!("new or changed: {object}"));
    gone.chain(new).collect()
}

/// Checks that recovery replayed the WAL at least as far as an acknowledged commit.
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

fn works<T>(observed: &Observed<T>) -> CheckOutcome {
    with(observed, |_| CheckOutcome::Passed)
}

/// Checks that a clean stop changes nothing: the transactions after it are those from before, even
/// if a fault took others.
fn stopped(case: &Case<'_>) -> CheckOutcome {
    let again = case.found.restarted.as_ref().ok().and_then(Contents::tokens);
    let (Some(before), Some(after)) = (case.found.recovered.tokens(), again) else {
        // Why not is told where they are missed first.
        return CheckOutcome::NotApplicable("the transactions were not read twice".into());
    };
    let gone = before.difference(&after);
    let mut differ: Vec<String> =
        gone.map(|token| format!("{token} was there after recovery and is gone")).collect();
    let new = after.difference(&before);
    differ.extend(new.map(|token| format!("{token} was not there after recovery and is now")));
    complaints(&differ)
}

/// Checks that rows acknowledged after recovery outlive a clean stop.
fn unwritten(case: &Case<'_>) -> CheckOutcome {
    with(&case.found.unwritten, |tables| {
        let lost: Vec<String> = tables
            .iter()
            .map(|table| format!("{table} lacks the row that was written last"))
            .collect();
        complaints(&lost)
    })
}

/// Formats an LSN as PostgreSQL does.
fn lsn(position: u64) -> String {
    format!("{:X}/{:X}", position >> 32, position & 0xffff_ffff)
}
