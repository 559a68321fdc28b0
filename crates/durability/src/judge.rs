//! From oracles to a verdict.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use pgdyno_model::crash::{Check, CheckOutcome, Failing, Verdict};
use pgdyno_model::ledger::{Entry, History};

use crate::found::{Aftermath, Promise};
use crate::oracles::{Case, ORACLES, Oracle, missing};

/// What is said of one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// Every oracle that was asked.
    pub checks: Vec<Check>,
    /// Acknowledged transactions that are missing, with the time from their acknowledgement to the fault; oldest first.
    pub lost: Vec<(Entry, Duration)>,
}

/// Judges what a fault left against what clients had been told.
#[must_use]
pub fn judge(history: &History, aftermath: &Aftermath, promise: &Promise) -> Judgement {
    judge_by(ORACLES, history, aftermath, promise)
}

fn judge_by(oracles: &[Oracle], history: &History, aftermath: &Aftermath, promise: &Promise) -> Judgement {
    let without_checks = |verdict, reason: &str| Judgement {
        verdict,
        reason: reason.into(),
        checks: Vec::new(),
        lost: Vec::new(),
    };
    let found = match aftermath {
        Aftermath::Up(found) => found,
        Aftermath::WillNotStart(seen) => {
            return without_checks(Verdict::Fail(Failing::WillNotStart), seen);
        }
        Aftermath::WillNotMount(seen) => {
            return without_checks(Verdict::Fail(Failing::WillNotMount), seen);
        }
        Aftermath::NotTried(why) => return without_checks(Verdict::Invalid, why),
    };
    let case = Case { history, found, promise };
    let checks: Vec<(Failing, Check)> = oracles
        .iter()
        .map(|oracle| {
            // One that crashes has not said that all is well.
            let outcome = catch_unwind(AssertUnwindSafe(|| (oracle.look)(&case)))
                .unwrap_or_else(|_| CheckOutcome::CouldNotRun("the oracle panicked".into()));
            (oracle.failing, Check { name: oracle.name.into(), outcome })
        })
        .collect();
    let (verdict, reason) = conclude(&checks, history);
    let mut lost: Vec<(Entry, Duration)> =
        missing(history, found).into_iter().map(|e| (e, promise.struck_at.saturating_sub(e.at))).collect();
    lost.sort_by_key(|(entry, age)| (std::cmp::Reverse(*age), entry.token));
    Judgement { verdict, reason, checks: checks.into_iter().map(|(_, check)| check).collect(), lost }
}

/// One failure suffices to fail; else one oracle that could not run suffices for *unknown*.
fn conclude(checks: &[(Failing, Check)], history: &History) -> (Verdict, String) {
    let of = |pick: &dyn Fn(&CheckOutcome) -> Option<&String>| -> Vec<String> {
        let picked =
            checks.iter().filter_map(|(_, c)| pick(&c.outcome).map(|why| format!("{}: {why}", c.name)));
        picked.collect()
    };
    let failed = of(&|o| if let CheckOutcome::Failed(why) = o { Some(why) } else { None });
    if !failed.is_empty() {
        let failing = checks
            .iter()
            .filter(|(_, c)| matches!(c.outcome, CheckOutcome::Failed(_)))
            .map(|(failing, _)| *failing)
            .min()
            .unwrap_or(Failing::Corrupt);
        return (Verdict::Fail(failing), failed.join(". "));
    }
    let blind = of(&|o| if let CheckOutcome::CouldNotRun(why) = o { Some(why) } else { None });
    if !blind.is_empty() {
        return (Verdict::Unknown, format!("could not be checked: {}", blind.join(". ")));
    }
    if checks.is_empty() {
        return (Verdict::Unknown, "nothing was checked".into());
    }
    if history.count(pgdyno_model::ledger::State::Acknowledged) == 0 {
        return (Verdict::Unknown, "nothing had been acknowledged when the fault struck".into());
    }
    let allowed = of(&|o| if let CheckOutcome::Allowed(why) = o { Some(why) } else { None });
    if !allowed.is_empty() {
        return (Verdict::BoundedLoss, allowed.join(". "));
    }
    (Verdict::Pass, "every acknowledged transaction is there".into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
mod tests {
    use std::collections::BTreeMap;

    use pgdyno_model::ledger::{Effect, State, Token};

    use super::*;
    use crate::found::{Found, Row, Unseen, Wal};

    const SECOND: Duration = Duration::from_secs(1);

    fn token(client: u32, sequence: u64) -> Token {
        Token { client, sequence }
    }

    /// Two clients: four acknowledged each, one refused, the last of each in doubt or never asked to commit.
    fn history() -> History {
        let entry = |client: u32, sequence: u64, state| Entry {
            token: token(client, sequence),
            effect: Effect {
                account: i64::from(client) * 10 + sequence.cast_signed(),
                teller: sequence.cast_signed() % 3,
                branch: 1,
                delta: 100 * sequence.cast_signed() + i64::from(client),
            },
            state,
            at: Duration::from_millis(100 * sequence),
        };
        let client = |client, last| {
            let mut all: Vec<Entry> = (1..=5).map(|n| entry(client, n, State::Acknowledged)).collect();
            all[2].state = State::Failed;
            all.push(entry(client, 6, last));
            all
        };
        History { clients: vec![client(0, State::Unknown), client(1, State::Issued)] }
    }

    /// What an honest server holds, the transaction in doubt among it.
    fn honest(history: &History) -> Found {
        let rows = history
            .entries()
            .filter(|e| matches!(e.state, State::Acknowledged | State::Unknown))
            .map(|e| Row { token: e.token, effect: e.effect })
            .collect();
        let mut found = Found {
            rows: Ok(rows),
            index: Ok(Vec::new()),
            accounts: Ok(BTreeMap::new()),
            tellers: Ok(BTreeMap::new()),
            branches: Ok(BTreeMap::new()),
            system_identifier: Ok((7, 7)),
            wal: Ok(Wal { acknowledged: 0x10_0000, recovered: 0x10_0000 }),
            log: Ok(Vec::new()),
            btrees: Ok(Vec::new()),
            heaps: Ok(Vec::new()),
            checksums: Ok(Vec::new()),
        };
        settle(&mut found);
        found
    }

    /// Makes index and balances agree with the rows.
    fn settle(found: &mut Found) {
        let rows = found.rows.clone().unwrap();
        let sums = |of: fn(&Effect) -> i64| {
            let mut sums = BTreeMap::new();
            for row in &rows {
                *sums.entry(of(&row.effect)).or_insert(0) += row.effect.delta;
            }
            sums.retain(|_, sum| *sum != 0);
            Ok(sums)
        };
        found.index = Ok(rows.iter().map(|r| r.token).collect());
        found.accounts = sums(|e| e.account);
        found.tellers = sums(|e| e.teller);
        found.branches = sums(|e| e.branch);
    }

    fn rows(found: &mut Found) -> &mut Vec<Row> {
        found.rows.as_mut().unwrap()
    }

    const DURABLE: Promise = Promise { loses_at_most: None, struck_at: SECOND };
    const ASYNCHRONOUS: Promise =
        Promise { loses_at_most: Some(Duration::from_millis(600)), struck_at: SECOND };

    /// Judges the honest server after `spoil`; the oracles that failed.
    fn spoiled(promise: &Promise, spoil: impl FnOnce(&mut Found)) -> (Judgement, Vec<String>) {
        let history = history();
        let mut found = honest(&history);
        spoil(&mut found);
        let judged = judge(&history, &Aftermath::Up(Box::new(found)), promise);
        let failed = judged.checks.iter().filter(|c| matches!(c.outcome, CheckOutcome::Failed(_)));
        let failed = failed.map(|c| c.name.clone()).collect();
        (judged, failed)
    }

    #[test]
    fn an_honest_server_passes_with_and_without_what_was_in_doubt() {
        let (judged, failed) = spoiled(&DURABLE, |_| {});
        assert_eq!((judged.verdict, failed), (Verdict::Pass, vec![]), "{}", judged.reason);
        let (judged, failed) = spoiled(&DURABLE, |found| {
            rows(found).retain(|r| r.token != token(0, 6));
            settle(found);
        });
        assert_eq!((judged.verdict, failed), (Verdict::Pass, vec![]), "{}", judged.reason);
    }

    #[test]
    fn one_lost_transaction_fails_even_where_all_invariants_hold() {
        let (judged, failed) = spoiled(&DURABLE, |found| {
            rows(found).retain(|r| ![token(0, 5), token(0, 6)].contains(&r.token));
            settle(found);
        });
        assert_eq!(judged.verdict, Verdict::Fail(Failing::Lost));
        assert_eq!(failed, ["acknowledged transactions are there"]);
        let lost: Vec<_> = judged.lost.iter().map(|(e, age)| (e.token, age.as_millis())).collect();
        assert_eq!(lost, [(token(0, 5), 500)]);
    }

    #[test]
    fn asynchronous_commit_may_lose_the_latest_and_nothing_older_and_no_gap() {
        let (judged, failed) = spoiled(&ASYNCHRONOUS, |found| {
            rows(found).retain(|r| r.token.client != 0 || r.token.sequence < 5);
            settle(found);
        });
        assert_eq!((judged.verdict, failed), (Verdict::BoundedLoss, vec![]), "{}", judged.reason);
        let (judged, _) = spoiled(&ASYNCHRONOUS, |found| {
            rows(found).retain(|r| r.token.client != 0 || r.token.sequence < 2);
            settle(found);
        });
        assert_eq!(judged.verdict, Verdict::Fail(Failing::Lost), "800 ms are more than 600");
        let (judged, failed) = spoiled(&ASYNCHRONOUS, |found| {
            rows(found).retain(|r| r.token != token(0, 4));
            settle(found);
        });
        assert_eq!(judged.verdict, Verdict::Fail(Failing::Lost));
        assert_eq!(failed, ["each client's are there without a gap"]);
    }

    #[test]
    fn a_duplicate_is_seen_by_the_scan() {
        let (judged, failed) = spoiled(&DURABLE, |found| {
            let again = rows(found)[1];
            rows(found).push(again);
        });
        assert_eq!(judged.verdict, Verdict::Fail(Failing::Corrupt));
        assert!(failed.contains(&"no transaction is there twice".to_owned()), "{failed:?}");
    }

    #[test]
    fn a_refused_one_and_one_never_asked_to_commit_must_not_rise() {
        for risen in [token(1, 3), token(1, 6)] {
            let (judged, failed) = spoiled(&DURABLE, |found| {
                let effect = history().entries().find(|e| e.token == risen).unwrap().effect;
                rows(found).push(Row { token: risen, effect });
                settle(found);
            });
            assert_eq!(judged.verdict, Verdict::Fail(Failing::Corrupt));
            assert_eq!(failed, ["refused and unsent ones are not there"], "{risen}");
        }
    }

    #[test]
    fn a_half_present_transaction_in_doubt_is_seen_from_both_sides() {
        // Its row without what it did to its teller.
        let (judged, failed) = spoiled(&DURABLE, |found| {
            found.tellers.as_mut().unwrap().entry(0).and_modify(|sum| *sum -= 600);
        });
        assert_eq!(judged.verdict, Verdict::Fail(Failing::Corrupt));
        assert_eq!(failed, ["every transaction is there whole", "the balances' sums agree"]);
        // What it did without its row.
        let (_, failed) = spoiled(&DURABLE, |found| {
            rows(found).retain(|r| r.token != token(0, 6));
            found.index.as_mut().unwrap().retain(|t| *t != token(0, 6));
        });
        assert_eq!(failed, ["every transaction is there whole", "the balances' sums agree"]);
    }

    #[test]
    fn balances_that_cancel_out_in_the_sum_are_still_seen() {
        let (judged, failed) = spoiled(&DURABLE, |found| {
            let accounts = found.accounts.as_mut().unwrap();
            *accounts.entry(1).or_default() += 5;
            *accounts.entry(2).or_default() -= 5;
        });
        assert_eq!(judged.verdict, Verdict::Fail(Failing::Corrupt));
        assert_eq!(failed, ["every transaction is there whole"]);
    }

    #[test]
    fn strangers_changed_rows_and_an_index_that_misses_one_are_seen() {
        let (_, failed) = spoiled(&DURABLE, |found| {
            rows(found).push(Row { token: token(9, 1), effect: Effect::default() });
            settle(found);
        });
        assert_eq!(failed, ["nothing is there that was not asked for"]);
        let (_, failed) = spoiled(&DURABLE, |found| {
            rows(found)[0].effect.delta += 1;
            settle(found);
        });
        assert_eq!(failed, ["nothing is there that was not asked for"]);
        let (_, failed) = spoiled(&DURABLE, |found| {
            found.index.as_mut().unwrap().pop();
        });
        assert_eq!(failed, ["index and table agree"]);
    }

    #[test]
    fn the_servers_own_word_counts() {
        type Spoil = fn(&mut Found);
        let cases: [(&str, Spoil); 6] = [
            ("the cluster is the same", |f| f.system_identifier = Ok((7, 8))),
            ("recovery reached the last acknowledged WAL", |f| {
                f.wal = Ok(Wal { acknowledged: 2, recovered: 1 });
            }),
            ("the server's log tells of no damage", |f| f.log = Ok(vec!["PANIC:  x".into()])),
            ("amcheck: B-trees", |f| f.btrees = Ok(vec!["item order".into()])),
            ("amcheck: tables", |f| f.heaps = Ok(vec!["xmin".into()])),
            ("pg_checksums", |f| f.checksums = Ok(vec!["block 3".into()])),
        ];
        for (name, spoil) in cases {
            let (judged, failed) = spoiled(&DURABLE, spoil);
            assert!(judged.verdict.is_failure());
            assert_eq!(failed, [name]);
        }
    }

    #[test]
    fn what_could_not_be_looked_at_is_unknown_and_what_is_damaged_is_not() {
        let could_not = |what: &str| Unseen::CouldNotRun(what.into());
        let (judged, _) = spoiled(&DURABLE, |f| f.btrees = Err(could_not("no amcheck")));
        assert_eq!(judged.verdict, Verdict::Unknown);
        assert!(judged.reason.contains("no amcheck"), "{}", judged.reason);
        let (judged, _) = spoiled(&DURABLE, |f| f.rows = Err(could_not("cannot connect")));
        assert_eq!(judged.verdict, Verdict::Unknown);
        let (judged, _) = spoiled(&DURABLE, |f| f.rows = Err(Unseen::Damaged("invalid page".into())));
        assert!(judged.verdict.is_failure());
        let (judged, _) = spoiled(&DURABLE, |f| f.wal = Err(Unseen::NotApplicable("async".into())));
        assert_eq!(judged.verdict, Verdict::Pass);
    }

    #[test]
    fn a_load_that_acknowledged_nothing_tells_nothing() {
        let found = honest(&History::default());
        let judged = judge(&History::default(), &Aftermath::Up(Box::new(found)), &DURABLE);
        assert_eq!(judged.verdict, Verdict::Unknown);
    }

    #[test]
    fn an_oracle_that_panics_gives_unknown_and_an_empty_list_never_passes() {
        fn broken(_: &Case<'_>) -> CheckOutcome {
            panic!("planted: an oracle that crashes")
        }
        let history = history();
        let up = Aftermath::Up(Box::new(honest(&history)));
        let mut oracles = ORACLES.to_vec();
        oracles.push(Oracle { name: "broken", failing: Failing::Lost, look: broken });
        let judged = judge_by(&oracles, &history, &up, &DURABLE);
        assert_eq!(judged.verdict, Verdict::Unknown);
        assert!(judged.reason.contains("panicked"), "{}", judged.reason);
        assert_eq!(judge_by(&[], &history, &up, &DURABLE).verdict, Verdict::Unknown);
    }

    #[test]
    fn a_server_that_stays_away_fails_and_a_fault_that_never_struck_is_invalid() {
        let judged = |aftermath| judge(&history(), &aftermath, &DURABLE).verdict;
        assert_eq!(judged(Aftermath::WillNotStart("x".into())), Verdict::Fail(Failing::WillNotStart));
        assert_eq!(judged(Aftermath::WillNotMount("x".into())), Verdict::Fail(Failing::WillNotMount));
        assert_eq!(judged(Aftermath::NotTried("x".into())), Verdict::Invalid);
    }
}
