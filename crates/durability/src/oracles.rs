//! The oracles: each looks at one thing that must hold whatever was crashed.

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_model::crash::{CheckOutcome, Failing};
use pgdyno_model::ledger::{Effect, Entry, History, State, Token};

use crate::found::{Found, Observed, Promise, Row, Unseen};

/// What an oracle is given.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// What clients did.
    pub history: &'a History,
    /// What is there.
    pub found: &'a Found,
    /// What should be.
    pub promise: &'a Promise,
}

/// One oracle.
#[derive(Clone, Copy)]
pub struct Oracle {
    /// What it looks at, in words.
    pub name: &'static str,
    /// What its failure means.
    pub failing: Failing,
    /// Looks.
    pub look: fn(&Case<'_>) -> CheckOutcome,
}

/// All of them, in the order in which they are told.
pub const ORACLES: &[Oracle] = &[
    Oracle { name: "acknowledged transactions are there", failing: Failing::Lost, look: acknowledged },
    Oracle { name: "each client's are there without a gap", failing: Failing::Lost, look: gaps },
    Oracle { name: "refused and unsent ones are not there", failing: Failing::Corrupt, look: resurrected },
    Oracle { name: "nothing is there that was not asked for", failing: Failing::Corrupt, look: strangers },
    Oracle { name: "no transaction is there twice", failing: Failing::Corrupt, look: duplicates },
    Oracle { name: "index and table agree", failing: Failing::Corrupt, look: index },
    Oracle { name: "every transaction is there whole", failing: Failing::Corrupt, look: whole },
    Oracle { name: "the balances' sums agree", failing: Failing::Corrupt, look: sums },
    Oracle { name: "the cluster is the same", failing: Failing::Corrupt, look: identifier },
    Oracle { name: "recovery reached the last acknowledged WAL", failing: Failing::Lost, look: wal },
    Oracle { name: "the server's log tells of no damage", failing: Failing::Corrupt, look: log },
    Oracle { name: "amcheck: B-trees", failing: Failing::Corrupt, look: btrees },
    Oracle { name: "amcheck: tables", failing: Failing::Corrupt, look: heaps },
    Oracle { name: "pg_checksums", failing: Failing::Corrupt, look: checksums },
];

/// How many things a finding names at most.
const NAMED: usize = 5;

/// The acknowledged transactions that are missing; none known where the table could not be read.
#[must_use]
pub fn missing(history: &History, found: &Found) -> Vec<Entry> {
    let Ok(rows) = &found.rows else { return Vec::new() };
    let there = tokens(rows);
    history
        .entries()
        .filter(|e| e.state == State::Acknowledged && !there.contains(&e.token))
        .copied()
        .collect()
}

/// Every acknowledged transaction is there. With `synchronous_commit = off` those may be missing that were acknowledged
/// shortly before the fault.
fn acknowledged(case: &Case<'_>) -> CheckOutcome {
    if let Err(unseen) = &case.found.rows {
        return outcome_of(unseen);
    }
    let missing = missing(case.history, case.found);
    if missing.is_empty() {
        return CheckOutcome::Passed;
    }
    let age = |e: &Entry| case.promise.struck_at.saturating_sub(e.at);
    let oldest = missing.iter().map(age).max().unwrap_or_default();
    let what = format!(
        "{} of {} acknowledged transactions are missing, the oldest acknowledged {:.0} ms before the fault",
        missing.len(),
        case.history.count(State::Acknowledged),
        oldest.as_secs_f64() * 1e3
    );
    match case.promise.loses_at_most {
        Some(most) if oldest <= most => CheckOutcome::Allowed(format!(
            "{what}: synchronous_commit = off allows {} ms (3 × wal_writer_delay)",
            most.as_millis()
        )),
        Some(most) => CheckOutcome::Failed(format!(
            "{what}: more than the {} ms that synchronous_commit = off allows (3 × wal_writer_delay)",
            most.as_millis()
        )),
        None => CheckOutcome::Failed(what),
    }
}

/// What is there of a client's acknowledged transactions is a prefix: WAL is replayed in order, so that nothing can be
/// there while something earlier of the same client is not.
fn gaps(case: &Case<'_>) -> CheckOutcome {
    with(&case.found.rows, |rows| {
        let there = tokens(rows);
        let mut holes = Vec::new();
        for client in &case.history.clients {
            let Some(last) = client.iter().rposition(|e| there.contains(&e.token)) else { continue };
            let before = &client[..last];
            let absent =
                before.iter().filter(|e| e.state == State::Acknowledged && !there.contains(&e.token));
            holes.extend(absent.map(|e| format!("{} is missing, {} is there", e.token, client[last].token)));
        }
        complaints(&holes)
    })
}

/// What the server refused, and what was never asked to commit, is not there.
fn resurrected(case: &Case<'_>) -> CheckOutcome {
    with(&case.found.rows, |rows| {
        let there = tokens(rows);
        let risen =
            case.history.entries().filter(|e| there.contains(&e.token)).filter_map(|e| match e.state {
                State::Failed => Some(format!("{} was refused and is there", e.token)),
                State::Issued => Some(format!("{} was never asked to commit and is there", e.token)),
                State::Acknowledged | State::Unknown => None,
            });
        complaints(&risen.collect::<Vec<_>>())
    })
}

/// Every row is one that a client asked for, and says what the client asked.
fn strangers(case: &Case<'_>) -> CheckOutcome {
    with(&case.found.rows, |rows| {
        let asked: BTreeMap<Token, Effect> = case.history.entries().map(|e| (e.token, e.effect)).collect();
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

/// No token is in two rows, by a scan that trusts no index.
fn duplicates(case: &Case<'_>) -> CheckOutcome {
    with(&case.found.rows, |rows| {
        let mut seen = BTreeSet::new();
        let twice = rows.iter().filter(|row| !seen.insert(row.token));
        complaints(&twice.map(|row| format!("{} is there twice", row.token)).collect::<Vec<_>>())
    })
}

/// The primary key leads to the very rows that the table holds.
fn index(case: &Case<'_>) -> CheckOutcome {
    with(&case.found.rows, |rows| {
        with(&case.found.index, |indexed| {
            let (heap, index) = (tokens(rows), indexed.iter().copied().collect::<BTreeSet<_>>());
            let mut differ: Vec<String> =
                heap.difference(&index).map(|t| format!("{t} is in the table, not in the index")).collect();
            differ.extend(index.difference(&heap).map(|t| format!("{t} is in the index, not in the table")));
            if differ.is_empty() && rows.len() != indexed.len() {
                let (rows, indexed) = (rows.len(), indexed.len());
                differ.push(format!("{rows} rows in the table, {indexed} by the index"));
            }
            complaints(&differ)
        })
    })
}

/// Each account, teller and branch holds exactly what the rows that are there say: a transaction of which a part is
/// missing shows here.
fn whole(case: &Case<'_>) -> CheckOutcome {
    with(&case.found.rows, |rows| {
        type Balances = Observed<BTreeMap<i64, i64>>;
        type Of = fn(&Effect) -> i64;
        let mut differ = Vec::new();
        let kinds: [(&str, &Balances, Of); 3] = [
            ("account", &case.found.accounts, |e| e.account),
            ("teller", &case.found.tellers, |e| e.teller),
            ("branch", &case.found.branches, |e| e.branch),
        ];
        for (kind, balances, of) in kinds {
            let balances = match balances {
                Ok(balances) => balances,
                Err(unseen) => return outcome_of(unseen),
            };
            let mut expected: BTreeMap<i64, i64> = BTreeMap::new();
            for row in rows {
                *expected.entry(of(&row.effect)).or_default() += row.effect.delta;
            }
            expected.retain(|_, sum| *sum != 0);
            let all: BTreeSet<&i64> = expected.keys().chain(balances.keys()).collect();
            differ.extend(all.into_iter().filter_map(|id| {
                let (is, should) =
                    (balances.get(id).copied().unwrap_or(0), expected.get(id).copied().unwrap_or(0));
                (is != should).then(|| {
                    format!("{kind} {id} holds {is}, and the transactions that are there come to {should}")
                })
            }));
        }
        complaints(&differ)
    })
}

/// TPC-B's rule: accounts, tellers, branches and the transactions' own amounts have one sum; and it lies between the
/// ledger's with none and with all of the transactions in doubt only if these are there whole, which [`whole`] tells.
fn sums(case: &Case<'_>) -> CheckOutcome {
    let sum = |balances: &Observed<BTreeMap<i64, i64>>| match balances {
        Ok(balances) => Ok(balances.values().sum::<i64>()),
        Err(unseen) => Err(outcome_of(unseen)),
    };
    let rows = match &case.found.rows {
        Ok(rows) => rows.iter().map(|r| r.effect.delta).sum::<i64>(),
        Err(unseen) => return outcome_of(unseen),
    };
    let found = [sum(&case.found.accounts), sum(&case.found.tellers), sum(&case.found.branches)];
    match found {
        [Ok(accounts), Ok(tellers), Ok(branches)] => {
            if [accounts, tellers, branches].iter().all(|sum| *sum == rows) {
                CheckOutcome::Passed
            } else {
                CheckOutcome::Failed(format!(
                    "accounts hold {accounts}, tellers {tellers}, branches {branches}, the transactions that are there {rows}"
                ))
            }
        }
        [Err(unseen), _, _] | [_, Err(unseen), _] | [_, _, Err(unseen)] => unseen,
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

fn log(case: &Case<'_>) -> CheckOutcome {
    with(&case.found.log, |lines| complaints(lines))
}

fn btrees(case: &Case<'_>) -> CheckOutcome {
    with(&case.found.btrees, |complaints_of| complaints(complaints_of))
}

fn heaps(case: &Case<'_>) -> CheckOutcome {
    with(&case.found.heaps, |complaints_of| complaints(complaints_of))
}

fn checksums(case: &Case<'_>) -> CheckOutcome {
    with(&case.found.checksums, |complaints_of| complaints(complaints_of))
}

fn tokens(rows: &[Row]) -> BTreeSet<Token> {
    rows.iter().map(|row| row.token).collect()
}

fn with<T>(observed: &Observed<T>, look: impl FnOnce(&T) -> CheckOutcome) -> CheckOutcome {
    match observed {
        Ok(value) => look(value),
        Err(unseen) => outcome_of(unseen),
    }
}

fn outcome_of(unseen: &Unseen) -> CheckOutcome {
    match unseen {
        Unseen::Damaged(what) => CheckOutcome::Failed(what.clone()),
        Unseen::CouldNotRun(why) => CheckOutcome::CouldNotRun(why.clone()),
        Unseen::NotApplicable(why) => CheckOutcome::NotApplicable(why.clone()),
    }
}

/// Nothing to complain of, or the first of the complaints and how many there are.
fn complaints(all: &[String]) -> CheckOutcome {
    if all.is_empty() {
        return CheckOutcome::Passed;
    }
    let mut text = all.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    if all.len() > NAMED {
        text = format!("{text}; and {} more", all.len() - NAMED);
    }
    CheckOutcome::Failed(text)
}

/// An LSN as PostgreSQL writes it.
fn lsn(position: u64) -> String {
    format!("{:X}/{:X}", position >> 32, position & 0xffff_ffff)
}
