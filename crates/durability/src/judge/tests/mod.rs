//! Histories and what was found after them, written by hand.

mod asynchronous;

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_model::ledger::{Effect, State, Token};

use super::*;
use crate::found::{
    Amounts, AsynchronousCommit, Census, Contents, EffectKey, Found, Numbers, Row, TableRows,
    Unseen, Wal,
};
use crate::oracles::Case;

const SECOND: Duration = Duration::from_secs(1);

fn token(client: u32, sequence: u64) -> Token {
    Token { client, sequence }
}

/// Two clients: four acknowledged each, one refused, the last of each in doubt or never asked to
/// commit.
pub(crate) fn history() -> History {
    let entry = |client: u32, sequence: u64, state| Entry {
        token: token(client, sequence),
        effect: Effect {
            account: i64::from(client) * 10 + sequence.cast_signed(),
            teller: sequence.cast_signed() % 3,
            branch: 1,
            delta: 100 * sequence.cast_signed() + i64::from(client),
        },
        state,
        begun: Duration::from_millis(100 * sequence - 50),
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

/// Returns the state of an honest server, which kept the transaction in doubt.
pub(crate) fn honest(history: &History) -> Found {
    let rows = history
        .entries()
        .filter(|e| matches!(e.state, State::Acknowledged | State::Unknown))
        .map(|e| Row { token: e.token, effect: e.effect })
        .collect();
    let mut contents = Contents {
        rows: Ok(rows),
        index: Ok(Vec::new()),
        amounts: [
            ("account", EffectKey::Account),
            ("teller", EffectKey::Teller),
            ("branch", EffectKey::Branch),
        ]
        .map(|(holder, key)| Amounts { holder, key, by_key: Ok(BTreeMap::new()) })
        .into(),
        numbers: Ok(Numbers { last: 40, highest: Some(12), repeated: 0 }),
        conditions: Ok(Vec::new()),
        by_scan: Ok(loaded()),
        by_key: Ok(loaded()),
        btrees: Ok(Vec::new()),
        heaps: Ok(Vec::new()),
        pointers: Ok(Vec::new()),
        visibility: Ok(Vec::new()),
    };
    settle(&mut contents);
    Found {
        recovered: contents.clone(),
        system_identifier: Ok((7, 7)),
        wal: Ok(Wal { acknowledged: 0x10_0000, recovered: 0x10_0000 }),
        log: Ok(Vec::new()),
        writes: Ok(()),
        checksums: Ok(Vec::new()),
        restarted: Ok(contents),
        unwritten: Ok(Vec::new()),
        objects: Ok(census()),
        others: Ok(Vec::new()),
    }
}

/// Two databases as they were.
fn census() -> Census {
    let objects: BTreeSet<String> = ["relation t", "function f()"].map(str::to_owned).into();
    let names = ["pgdyno", "template1"].map(str::to_owned);
    Census {
        before: names.clone().map(|name| (name, objects.clone())).into(),
        after: names.map(|name| (name, Ok(objects.clone()))).into(),
    }
}

/// TPC-B's tables as they were loaded.
fn loaded() -> Vec<TableRows> {
    let table = |table: &str, rows: u64| TableRows {
        table: table.into(),
        loaded: rows,
        rows,
        keys: rows,
        lowest: Some(1),
        highest: Some(rows.cast_signed()),
        changed: 0,
        examples: Vec::new(),
    };
    vec![
        table("pgbench_accounts", 100_000),
        table("pgbench_tellers", 10),
        table("pgbench_branches", 1),
    ]
}

/// Makes index and balances agree with the rows.
fn settle(contents: &mut Contents) {
    let rows = contents.rows.clone().unwrap();
    contents.index = Ok(rows.iter().map(|r| r.token).collect());
    for Amounts { key, by_key, .. } in &mut contents.amounts {
        let mut sums = BTreeMap::new();
        for row in &rows {
            *sums.entry(key.key(&row.effect)).or_insert(0) += row.effect.delta;
        }
        sums.retain(|_, sum| *sum != 0);
        *by_key = Ok(sums);
    }
}

/// The balances of the accounts, 0, or of the tellers, 1.
fn balances(contents: &mut Contents, kind: usize) -> &mut BTreeMap<i64, i64> {
    contents.amounts[kind].by_key.as_mut().unwrap()
}

fn rows(contents: &mut Contents) -> &mut Vec<Row> {
    contents.rows.as_mut().unwrap()
}

const DURABLE: Promise = Promise { asynchronous: None, struck_at: SECOND };
/// Judges the honest server after `spoil` of its contents; the oracles that failed. What recovery
/// left is there after a clean stop as well.
fn spoiled(promise: &Promise, spoil: impl Fn(&mut Contents)) -> (Judgement, Vec<String>) {
    spoiled_server(promise, |found| {
        spoil(&mut found.recovered);
        spoil(found.restarted.as_mut().unwrap());
    })
}

/// Judges it after `spoil` of anything that was found.
fn spoiled_server(promise: &Promise, spoil: impl FnOnce(&mut Found)) -> (Judgement, Vec<String>) {
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
fn the_worst_kind_names_the_verdict() {
    type Spoil = fn(&mut Found);
    let spoils: [(Failing, Spoil); 4] = [
        (Failing::NoWrites, |f| f.writes = Err(Unseen::Damaged("read-only".into()))),
        (Failing::Lost, |f| f.wal = Ok(Wal { acknowledged: 2, recovered: 1 })),
        (Failing::Corrupt, |f| f.recovered.heaps = Ok(vec!["xmin".into()])),
        (Failing::WillNotStart, |f| f.restarted = Err(Unseen::Damaged("PANIC".into()))),
    ];
    for last in 0..spoils.len() {
        let (judged, _) = spoiled_server(&DURABLE, |found| {
            spoils[..=last].iter().for_each(|(_, spoil)| spoil(found));
        });
        assert_eq!(judged.verdict, Verdict::Fail(spoils[last].0), "{}", judged.reason);
    }
}

#[test]
fn rows_that_vanish_double_or_change_are_seen_from_each_side() {
    type Spoil = fn(&mut TableRows);
    let spoils: [(&str, Spoil); 5] = [
        ("eleven pages of zeros", |t| {
            t.rows -= 671;
            t.keys -= 671;
        }),
        ("a tail cut off", |t| {
            t.rows -= 2440;
            t.keys -= 2440;
            t.highest = Some(97_560);
        }),
        ("one lost and another twice", |t| t.keys -= 1),
        ("a key that nobody loaded in place of the first", |t| t.lowest = Some(0)),
        ("overwritten filler", |t| t.changed = 3),
    ];
    type Place = fn(&mut Contents) -> &mut Vec<TableRows>;
    let places: [(&str, Place); 2] = [
        ("every loaded row is there once, by a scan", |c| c.by_scan.as_mut().unwrap()),
        ("every loaded row is there once, by its key", |c| c.by_key.as_mut().unwrap()),
    ];
    for (what, spoil) in spoils {
        for (name, place) in places {
            let (judged, failed) = spoiled(&DURABLE, |contents| spoil(&mut place(contents)[0]));
            assert_eq!(judged.verdict, Verdict::Fail(Failing::Corrupt), "{what}");
            assert_eq!(failed, [name], "{what}");
        }
    }
    // An empty table has no keys at all; and to have counted nothing is no finding.
    let (_, failed) = spoiled(&DURABLE, |found| {
        let table = &mut found.by_scan.as_mut().unwrap()[2];
        *table = TableRows { table: table.table.clone(), loaded: 1, ..TableRows::default() };
    });
    assert_eq!(failed, ["every loaded row is there once, by a scan"]);
    let (judged, _) = spoiled(&DURABLE, |found| found.by_scan = Ok(Vec::new()));
    assert_eq!(judged.verdict, Verdict::Unknown);
}

#[test]
fn one_cause_that_blinds_many_oracles_is_told_once() {
    let (judged, _) = spoiled_server(&DURABLE, |found| {
        let late = || Unseen::CouldNotRun("it did not end in time".into());
        found.recovered.btrees = Err(late());
        found.recovered.heaps = Err(late());
        found.checksums = Err(late());
    });
    assert_eq!(judged.verdict, Verdict::Unknown);
    assert_eq!(judged.reason.matches("it did not end in time").count(), 1, "{}", judged.reason);
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
        balances(found, 1).entry(0).and_modify(|sum| *sum -= 600);
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
        let accounts = balances(found, 0);
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
    type Spoil = fn(&mut Contents);
    let of_contents: [(&str, Spoil); 7] = [
        ("the sequence gives no number again", |c| c.numbers.as_mut().unwrap().last = 11),
        ("the sequence gives no number again", |c| c.numbers.as_mut().unwrap().repeated = 1),
        ("the workload's conditions hold", |c| c.conditions = Ok(vec!["1 row breaks it".into()])),
        ("amcheck: B-trees", |c| c.btrees = Ok(vec!["item order".into()])),
        ("amcheck: tables", |c| c.heaps = Ok(vec!["xmin".into()])),
        ("index entries lead to tuples", |c| c.pointers = Ok(vec!["(0,1)".into()])),
        ("the visibility map tells the truth", |c| c.visibility = Ok(vec!["(0,1)".into()])),
    ];
    for (name, spoil) in of_contents {
        let (judged, failed) = spoiled(&DURABLE, spoil);
        assert!(judged.verdict.is_failure());
        assert_eq!(failed, [name]);
    }
    type SpoilServer = fn(&mut Found);
    let of_server: [(&str, SpoilServer); 10] = [
        ("no object is gone, new or changed", |f| {
            f.objects.as_mut().unwrap().before.get_mut("template1").unwrap().pop_first();
        }),
        ("no object is gone, new or changed", |f| {
            let damaged = Err(Unseen::Damaged("catalogue is missing".into()));
            f.objects.as_mut().unwrap().after.insert("pgdyno".into(), damaged);
        }),
        ("the other databases are whole", |f| f.others = Ok(vec!["template1: x".into()])),
        ("the cluster is the same", |f| f.system_identifier = Ok((7, 8))),
        ("recovery reached the last acknowledged WAL", |f| {
            f.wal = Ok(Wal { acknowledged: 2, recovered: 1 });
        }),
        ("the server's log tells of no damage", |f| f.log = Ok(vec!["PANIC:  x".into()])),
        ("pg_checksums", |f| f.checksums = Ok(vec!["block 3".into()])),
        ("the server takes writes", |f| f.writes = Err(Unseen::Damaged("read-only".into()))),
        ("the server starts again after a clean stop", |f| {
            f.restarted = Err(Unseen::Damaged("PANIC".into()));
        }),
        ("the last write is there after a clean stop", |f| {
            f.unwritten = Ok(vec!["pgbench_tellers".into()]);
        }),
    ];
    for (name, spoil) in of_server {
        let (judged, failed) = spoiled_server(&DURABLE, spoil);
        assert!(judged.verdict.is_failure());
        assert_eq!(failed, [name]);
    }
}

#[test]
fn what_a_clean_stop_takes_is_missed() {
    type Spoil = fn(&mut Contents);
    let spoils: [(&[&str], Spoil); 5] = [
        (&["acknowledged transactions are there"], |c| {
            rows(c).retain(|r| r.token.sequence < 5);
            settle(c);
        }),
        (&["every transaction is there whole", "the balances' sums agree"], |c| {
            balances(c, 0).retain(|account, _| *account == 1);
        }),
        (&["every loaded row is there once, by a scan"], |c| {
            c.by_scan.as_mut().unwrap()[0].rows -= 1;
        }),
        (&["index and table agree"], |c| c.index.as_mut().unwrap().truncate(1)),
        (&["amcheck: tables"], |c| c.heaps = Ok(vec!["xmin".into()])),
    ];
    let stop = "a clean stop takes and adds no transaction";
    for (names, spoil) in spoils {
        let (judged, failed) =
            spoiled_server(&DURABLE, |found| spoil(found.restarted.as_mut().unwrap()));
        assert!(judged.verdict.is_failure(), "{names:?}: {}", judged.reason);
        let others: Vec<&String> = failed.iter().filter(|name| *name != stop).collect();
        assert_eq!(others, names);
        assert!(judged.reason.contains("after a clean stop and a second start: "), "{names:?}");
    }
    // With asynchronous commit a fault may take the latest. A clean stop takes nothing.
    let bound = AsynchronousCommit {
        wal_writer_delay: Duration::from_millis(200),
        flush_time: None,
        durable_before: None,
    };
    let promise = Promise { asynchronous: Some(bound), ..DURABLE };
    let (judged, failed) = spoiled_server(&promise, |found| {
        let restarted = found.restarted.as_mut().unwrap();
        rows(restarted).retain(|r| r.token.sequence < 5);
        settle(restarted);
    });
    assert_eq!((judged.verdict, failed), (Verdict::Fail(Failing::Lost), vec![stop.to_owned()]));
    assert_eq!(judged.lost.len(), 2);
}

#[test]
fn what_was_seen_after_recovery_stands_where_a_second_start_was_not_seen() {
    let killed = || Err(Unseen::CouldNotRun("it was killed".into()));
    let (judged, failed) = spoiled_server(&DURABLE, |found| found.restarted = killed());
    assert_eq!((judged.verdict, failed), (Verdict::Unknown, vec![]));
    let (judged, failed) = spoiled_server(&DURABLE, |found| {
        found.restarted = killed();
        rows(&mut found.recovered).retain(|r| r.token.sequence < 5);
        settle(&mut found.recovered);
    });
    assert_eq!(judged.verdict, Verdict::Fail(Failing::Lost));
    assert_eq!(failed, ["acknowledged transactions are there"]);
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
    let (judged, _) =
        spoiled_server(&DURABLE, |f| f.wal = Err(Unseen::NotApplicable("async".into())));
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
    oracles.push(Oracle { name: "broken", look: broken, ..ORACLES[0] });
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
