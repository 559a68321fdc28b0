//! In steady state a client and its recorder leave the allocator alone.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use pgdyno_engine::WeightedScript;
use pgdyno_engine::client::{Client, ClientContext, Wait};
use pgdyno_engine::ledger::{Ledger, MappedLedger};
use pgdyno_engine::pace::Pacer;
use pgdyno_engine::program::Program;
use pgdyno_engine::random::Random;
use pgdyno_engine::recorder::Recorder;
use pgdyno_engine::schedule::{Clock, Moment, Schedule};
use pgdyno_engine::script::Script;
use pgdyno_model::experiment::Protocol;

/// The answer to a query: its columns, a row, its command's end and `ReadyForQuery`.
const QUERIED: &[u8] = b"T\0\0\0\x1a\0\x01c\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0\
    D\0\0\0\x0c\0\x01\0\0\0\x0242C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
/// The answer to Parse, Bind and Execute.
const PARSED: &[u8] =
    b"1\0\0\0\x042\0\0\0\x04D\0\0\0\x0c\0\x01\0\0\0\x0242C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
/// The answer to Bind and Execute.
const BOUND: &[u8] = PARSED.split_at(5).1;

/// An answer to the request that begins with a message of type `asked`.
fn answer(asked: u8) -> &'static [u8] {
    match asked {
        b'Q' => QUERIED,
        b'P' => PARSED,
        b'B' => BOUND,
        other => panic!("asked for {other}"),
    }
}

#[test]
fn a_transaction_allocates_nothing() {
    let text = "\\if :client_id > 5 or hash(:client_id) is null\nSELECT 9;\n\\elif :scale = 1\n\
                \\set p permute(random(1, 10), 1000) % 7\n\\else\nSELECT 8;\n\\endif\n\
                \\set c case when :p < 3 then greatest(:p, 1.5, 2) else hash_fnv1a(:p, 5) end\n\
                \\set aid random(1, 10000 * :given)\n\\set x random_gaussian(1, 100, 2.5) / 3.0\n\
                UPDATE accounts SET balance = balance + :x WHERE aid = :aid;\nSELECT 1;";
    let script = Arc::new(Script::parse("test", text).unwrap());
    for protocol in [Protocol::Simple, Protocol::Extended, Protocol::Prepared] {
        let scripts = [(); 2].map(|()| WeightedScript::new(Arc::clone(&script), 1));
        let program = Rc::new(
            Program::link(&scripts, protocol, 1, &[("given".to_owned(), "10".into())], &[])
                .unwrap(),
        );
        let schedule = Schedule::default();
        let mut recorder = Recorder::new(&program, schedule, Box::new(|_| {}));
        let mut client = Client::new(0, program, Random::new(1), Random::new(2), None);
        let mut out = Vec::with_capacity(1024);
        let mut pacer = Pacer::default();
        let mut now = Moment(1);
        let mut turn = |client: &mut Client, bytes: &[u8]| {
            // All within one second, at whose end the recorder may allocate.
            now = Moment(now.0 + 1_000);
            out.clear();
            let mut turn =
                ClientContext { now, out: &mut out, recorder: &mut recorder, pacer: &mut pacer };
            let next = if bytes.is_empty() {
                client.wake(&mut turn)
            } else {
                client.receive(bytes, &mut turn)
            };
            assert_eq!(next, Wait::ForReply);
            out.first().copied()
        };
        let mut asked = turn(&mut client, b"").unwrap();
        let mut statements = |client: &mut Client, count: usize| {
            for n in 0..count {
                // PartialReplies in every place.
                let answer = answer(asked);
                let (first, rest) = answer.split_at(1 + n % (answer.len() - 1));
                turn(client, first);
                asked = turn(client, rest).unwrap();
            }
        };
        // Until every statement has been prepared.
        statements(&mut client, 200);
        let counted = allocation_counter::measure(|| statements(&mut client, 20_000));
        assert_eq!(counted.count_total, 0, "{protocol:?}");
        let tally = recorder.finish(now);
        let done: u64 = tally.scripts.iter().map(|s| s.transactions).sum();
        assert!(done > 10_000, "{done}");
    }
}

/// An answer to BEGIN and what follows it, in a transaction block and out of it.
const IN_BLOCK: &[u8] = b"C\0\0\0\x0aBEGIN\0Z\0\0\0\x05T";
const COMMITTED: &[u8] = b"C\0\0\0\x0bCOMMIT\0Z\0\0\0\x05I";

#[test]
fn a_transaction_with_a_ledger_allocates_nothing() {
    let text = "\\set aid random(1, 100000)\n\\set tid 1\n\\set bid 1\n\\set delta 5\nBEGIN;\n\
                INSERT INTO t VALUES (:client_id, :sequence, :aid, :delta);\nEND;";
    let scripts = [WeightedScript::new(Arc::new(Script::parse("test", text).unwrap()), 1)];
    let program = Rc::new(Program::link(&scripts, Protocol::Simple, 1, &[], &[]).unwrap());
    let schedule = Schedule::default();
    let mut recorder = Recorder::new(&program, schedule, Box::new(|_| {}));
    let folder = tempfile::tempdir().unwrap();
    let ledger = MappedLedger::create(&folder.path().join("ledger"), 1, 10_000, 1).unwrap();
    let client = Client::new(0, program, Random::new(1), Random::new(2), None);
    let mut client =
        client.with_ledger(ledger.open(0, &Clock::new(Instant::now())).unwrap()).unwrap();
    let (mut out, mut pacer, mut now) = (Vec::with_capacity(1024), Pacer::default(), Moment(1));
    let mut turn = |client: &mut Client, bytes: &[u8]| {
        now = Moment(now.0 + 1_000);
        out.clear();
        let mut turn =
            ClientContext { now, out: &mut out, recorder: &mut recorder, pacer: &mut pacer };
        let next = if bytes.is_empty() {
            client.wake(&mut turn)
        } else {
            client.receive(bytes, &mut turn)
        };
        assert_eq!(next, Wait::ForReply);
    };
    turn(&mut client, b"");
    let mut transactions = |client: &mut Client, count: u32| {
        for _ in 0..count {
            [IN_BLOCK, IN_BLOCK, COMMITTED].iter().for_each(|answer| turn(client, answer));
        }
    };
    transactions(&mut client, 100);
    let counted = allocation_counter::measure(|| transactions(&mut client, 5_000));
    assert_eq!(counted.count_total, 0);
    assert_eq!(ledger.acknowledged(), 5_100);
}
