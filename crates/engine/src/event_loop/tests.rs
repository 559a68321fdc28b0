//! The event loop and its clients on a simulated network.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pgdyno_model::Measurement;
use pgdyno_model::experiment::{Length, Protocol, ReconnectLost};
use pgdyno_model::target::{Address, Target};
use pgdyno_model::units::Span;

use crate::aggregate::Aggregate;
use crate::client::Client;
use crate::pace::Pacer;
use crate::program::{ClientPolicy, Program};
use crate::random::Random;
use crate::reactor::sim::{Network, Peer, PeerAction, Sim};
use crate::recorder::{Interval, Recorder, RecorderOptions};
use crate::schedule::{Clock, Moment, Schedule};
use crate::script::{Script, WeightedScript};
use crate::spec::LoadSpec;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// What a simulated server says to a command.
type Answer = Box<dyn FnMut(&str, Moment) -> Vec<(Duration, PeerAction)>>;

/// A server that knows where messages end, and answers each Query or Sync.
struct FakeServer {
    received: Vec<u8>,
    /// The SQL of the series of messages that is under way.
    sql: String,
    asked: Arc<Mutex<Vec<String>>>,
    answer: Answer,
    parsed: u32,
    /// What comes before the result of each statement of a series: ParseComplete, BindComplete.
    heads: VecDeque<Vec<u8>>,
    /// Whether the series describes its portals.
    described: bool,
    /// Whether a Parse waits for its Bind.
    parses: bool,
}

/// The acts of `answer` as a server has them for the extended protocol: columns only where they
/// were asked for, and before each result what is in `heads`.
fn extended(
    answer: Vec<(Duration, PeerAction)>,
    heads: &mut VecDeque<Vec<u8>>,
    described: bool,
) -> Vec<(Duration, PeerAction)> {
    let sent = |act: &PeerAction| match act {
        PeerAction::Send(bytes) => bytes.clone(),
        PeerAction::HangUp => Vec::new(),
    };
    let whole: Vec<u8> = answer.iter().flat_map(|(_, act)| sent(act)).collect();
    // By offset: what is left out, and what is put in.
    let mut edits: HashMap<usize, (usize, Vec<u8>)> = HashMap::new();
    let mut at = 0;
    while let Ok(Some(frame)) = pgdyno_wire::next_frame(&whole[at..]) {
        match frame.tag {
            b'T' if !described => drop(edits.insert(at, (frame.len(), Vec::new()))),
            b'C' => {
                drop(edits.insert(at + frame.len(), (0, heads.pop_front().unwrap_or_default())))
            }
            b'E' => heads.clear(),
            _ => {}
        }
        at += frame.len();
    }
    let (mut offset, mut left_out) = (0, 0);
    let edited = answer.into_iter().map(|(delay, act)| {
        let PeerAction::Send(bytes) = act else { return (delay, act) };
        let mut out = Vec::new();
        for byte in bytes {
            if let Some((length, put_in)) = edits.get(&offset) {
                left_out = *length;
                out.extend(put_in);
            }
            match left_out {
                0 => out.push(byte),
                _ => left_out -= 1,
            }
            offset += 1;
        }
        (delay, PeerAction::Send(out))
    });
    edited.collect()
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

/// A result of one row, and what follows it.
fn done(status: u8) -> Vec<u8> {
    let mut bytes = message(b'T', b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0");
    bytes.extend(message(b'D', b"\0\x01\0\0\0\x0242"));
    bytes.extend(message(b'C', b"SELECT 1\0"));
    bytes.extend(message(b'N', b"SNOTICE\0C00000\0Mby the way\0\0"));
    bytes.extend(ready(status));
    bytes
}

fn error(code: &str, status: u8) -> Vec<u8> {
    let mut bytes = message(b'E', format!("SERROR\0VERROR\0C{code}\0Mno\0\0").as_bytes());
    bytes.extend(ready(status));
    bytes
}

fn after(delay: Duration, bytes: Vec<u8>) -> Vec<(Duration, PeerAction)> {
    vec![(delay, PeerAction::Send(bytes))]
}

impl Peer for FakeServer {
    fn receive(&mut self, bytes: &[u8], now: Moment) -> Vec<(Duration, PeerAction)> {
        self.received.extend_from_slice(bytes);
        let mut acts = Vec::new();
        while let Some(frame) = pgdyno_wire::next_frame(&self.received).unwrap() {
            // ClientLogKind without the semicolon that ends each statement.
            let text = String::from_utf8_lossy(frame.body).replace(";\0", "|").replace('\0', "|");
            let length = frame.len();
            let whole = match frame.tag {
                b'Q' => {
                    self.sql = text;
                    true
                }
                b'P' => {
                    self.sql = text;
                    self.parsed += 1;
                    self.heads.push_back(message(b'1', b""));
                    self.parses = true;
                    false
                }
                b'B' => {
                    self.sql.push_str(&text);
                    match self.heads.back_mut().filter(|_| std::mem::take(&mut self.parses)) {
                        Some(head) => head.extend(message(b'2', b"")),
                        None => self.heads.push_back(message(b'2', b"")),
                    }
                    false
                }
                b'D' => {
                    self.described = true;
                    false
                }
                b'E' => false,
                b'S' => true,
                b'X' => {
                    self.asked.lock().unwrap().push("goodbye".into());
                    false
                }
                other => panic!("message {}", other.escape_ascii()),
            };
            self.received.drain(..length);
            if whole {
                let sql = std::mem::take(&mut self.sql);
                let answer = (self.answer)(sql.trim_end_matches('|'), now);
                // A Bind is acknowledged at once.
                if let Some(head) = self.heads.pop_front() {
                    acts.push((Duration::ZERO, PeerAction::Send(head)));
                    acts.extend(extended(answer, &mut self.heads, self.described));
                    self.heads.clear();
                    self.described = false;
                } else {
                    acts.extend(answer);
                }
                self.asked.lock().unwrap().push(sql.trim_end_matches('|').to_owned());
            }
        }
        acts
    }
}

/// A simulated load: tests change what they are about.
struct Load {
    script: &'static str,
    clients: u32,
    protocol: Protocol,
    warm_up: Duration,
    length: Length,
    grace: Duration,
    network: Network,
    /// Changes what else the load is about.
    change: fn(&mut LoadSpec),
}

struct Seen {
    measurement: Measurement,
    /// What each server was asked.
    asked: Vec<Vec<String>>,
    parsed: u32,
}

impl Load {
    fn new(script: &'static str) -> Self {
        Self {
            script,
            clients: 1,
            protocol: Protocol::Simple,
            warm_up: Duration::ZERO,
            length: Length::Duration(Span(5 * SECOND)),
            grace: 30 * SECOND,
            network: Network::default(),
            change: |_| {},
        }
    }

    fn run(&self, answer: impl Fn(usize) -> Answer) -> Seen {
        let address = Address::Tcp { host: "nowhere".into(), port: 0 };
        let target = Target::new(address, "", "");
        let script = Arc::new(Script::parse("sim", self.script).unwrap());
        let mut spec = LoadSpec {
            clients: NonZeroU32::new(self.clients).unwrap(),
            protocol: self.protocol,
            warm_up: self.warm_up,
            length: self.length,
            seed: 1,
            ..LoadSpec::new(target, vec![WeightedScript { script, weight: 1 }])
        };
        (self.change)(&mut spec);
        let stop = Arc::new(AtomicBool::new(false));
        let mut program =
            Program::link(&spec.scripts, spec.protocol, spec.seed, &spec.variables).unwrap();
        program.policy = ClientPolicy {
            client_log: spec.say.clone(),
            logs_failures: spec.say_failures,
            logs_steps: spec.say_steps,
            stop: Arc::clone(&stop),
            ..ClientPolicy::from_load(&spec.options)
        };
        let program = Rc::new(program);
        let opening = Moment(0).after(self.warm_up);
        let (closing, transactions) = match self.length {
            Length::Duration(span) => (opening.after(span.0), None),
            Length::Transactions(n) => (Moment::NEVER, Some(n)),
        };
        let schedule =
            Schedule { start: Moment(0), opening, closing, transactions, grace: self.grace };
        let asked: Vec<Arc<Mutex<Vec<String>>>> =
            (0..self.clients).map(|_| Arc::default()).collect();
        let peers = asked.iter().enumerate().map(|(n, asked)| FakeServer {
            received: Vec::new(),
            sql: String::new(),
            asked: Arc::clone(asked),
            answer: answer(n),
            parsed: 0,
            heads: VecDeque::new(),
            described: false,
            parses: false,
        });
        let mut sim = Sim::new(peers.collect(), self.network);
        let intervals: Arc<Mutex<Vec<Interval>>> = Arc::default();
        let ended = Arc::clone(&intervals);
        let log =
            spec.log.as_ref().map(|log| (log.open(0).unwrap(), std::time::SystemTime::UNIX_EPOCH));
        let options = RecorderOptions { log, ..RecorderOptions::from_load(&spec.options) };
        let ended = Box::new(move |i| ended.lock().unwrap().push(i));
        let recorder = Recorder::with_options(&program, schedule, ended, options);
        let mut pacer = Pacer::default();
        if let Some(rate) = spec.options.rate {
            pacer.throttle(rate, &schedule, Random::new(3));
        }
        let client = |id| {
            let random = Random::new(id);
            let id = u32::try_from(id).unwrap();
            let client = Client::new(id, Rc::clone(&program), random.clone(), random, transactions);
            match &spec.ledger {
                Some(ledger) => {
                    let clock = Clock::new(std::time::Instant::now());
                    client.with_ledger(ledger.open(id, &clock).unwrap()).unwrap()
                }
                None => client,
            }
        };
        let clients = (0..self.clients.into()).map(client).collect();
        let outcome = super::run(&mut sim, clients, recorder, pacer, &stop).unwrap();
        let mut aggregate = Aggregate::new(schedule, schedule.start, 1);
        for interval in intervals.lock().unwrap().drain(..) {
            aggregate.add(0, interval);
        }
        aggregate.ended(0, &outcome);
        let measurement = aggregate.measurement(&spec, None, 0.0);
        let series = &measurement.series;
        assert_eq!(series.iter().map(|s| s.transactions).sum::<u64>(), measurement.transactions);
        assert_eq!(series.iter().map(|s| s.failed).sum::<u64>(), measurement.failed);
        let parsed = sim.into_peers().map(|p| p.parsed).sum();
        let asked = asked.iter().map(|a| a.lock().unwrap().clone()).collect();
        Seen { measurement, asked, parsed }
    }
}

/// A server that takes `delay` for everything.
fn steady(delay: Duration) -> impl Fn(usize) -> Answer {
    move |_| Box::new(move |_, _| after(delay, done(b'I')))
}

#[test]
fn a_steady_server_gives_the_throughput_that_its_delay_allows() {
    let seen = Load { clients: 3, warm_up: SECOND, ..Load::new("SELECT 1;") }.run(steady(MS));
    let m = &seen.measurement;
    // One transaction a millisecond; the one that ends as the window closes lies outside it.
    assert_eq!(m.warm_up_transactions, 3 * 999);
    assert_eq!((m.transactions, m.drained_transactions), (3 * 5000, 3));
    assert!(m.series.iter().all(|s| s.transactions == 3000), "{:?}", m.series);
    assert_eq!(m.measured_s, 5.0);
    let p50 = m.latency.quantile_us(0.5).unwrap();
    assert!((p50 - 1000.0).abs() < 2.0, "{p50}");
    assert!(seen.asked.iter().all(|a| a.last().unwrap() == "goodbye"));
}

#[test]
fn a_one_second_stall_is_one_long_latency_and_a_second_without_transactions() {
    let stalls = |_| -> Answer {
        Box::new(|_, now| {
            let stalled = (2 * SECOND..3 * SECOND).contains(&now.since(Moment(0)));
            let delay = if stalled { Moment(0).after(3 * SECOND).since(now) } else { MS };
            after(delay, done(b'I'))
        })
    };
    let m = Load::new("SELECT 1;").run(stalls).measurement;
    let counts: Vec<_> = m.series.iter().map(|s| s.transactions).collect();
    assert_eq!(counts, [999, 1000, 1, 1000, 1000]);
    let max = m.latency.max_us().unwrap();
    assert!((max - 1e6).abs() < 1e3, "{max}");
    assert!(m.latency.quantile_us(0.99).unwrap() < 1100.0);
    let silent = Load::new("SELECT 1;").run(steady(10 * SECOND)).measurement;
    assert_eq!((silent.transactions, silent.drained_transactions, silent.series.len()), (0, 1, 5));
}

#[test]
fn bytes_may_travel_in_pieces_of_any_size() {
    for protocol in [Protocol::Simple, Protocol::Extended, Protocol::Prepared] {
        for piece in 1..40 {
            let network = Network {
                read: piece,
                write: 41 - piece,
                pace: Duration::from_nanos(10),
                away: None,
            };
            let length = Length::Transactions(7);
            let load = Load {
                network,
                protocol,
                length,
                ..Load::new("\\set x 40 + 2\nSELECT :x;\nSELECT 'a';")
            };
            let m = load.run(steady(MS));
            assert_eq!(
                (m.measurement.transactions, m.measurement.aborted_clients),
                (7, 0),
                "{piece}"
            );
            let asked = &m.asked[0];
            // And a goodbye, unless it was still on its way.
            assert!((14..=15).contains(&asked.len()), "{asked:?}");
            match protocol {
                Protocol::Simple => assert_eq!(asked[..2], ["SELECT 42", "SELECT 'a'"]),
                Protocol::Extended => {
                    assert_eq!((m.parsed, asked[0].starts_with("|SELECT $1")), (14, true))
                }
                Protocol::Prepared => {
                    assert_eq!(m.parsed, 2);
                    assert!(asked[0].starts_with("pgdyno_0_0|SELECT $1|"), "{}", asked[0]);
                    assert!(
                        asked[2].starts_with("|pgdyno_0_0|") && asked[2].contains("42"),
                        "{}",
                        asked[2]
                    );
                }
            }
        }
    }
}

#[test]
fn a_serialization_failure_is_rolled_back_and_counted_once() {
    let fails_every_third = |_| -> Answer {
        let mut transactions = 0;
        Box::new(move |sql, _| {
            let reply = match sql {
                "BEGIN" => {
                    transactions += 1;
                    done(b'T')
                }
                "UPDATE" if transactions % 3 == 0 => error("40001", b'E'),
                "UPDATE" => done(b'T'),
                "COMMIT" if transactions % 7 == 0 => error("40P01", b'I'),
                "COMMIT" | "ROLLBACK" => done(b'I'),
                other => panic!("{other}"),
            };
            after(MS, reply)
        })
    };
    let load = Load { length: Length::Transactions(21), ..Load::new("BEGIN; UPDATE; COMMIT;") };
    let seen = load.run(fails_every_third);
    let m = seen.measurement;
    // Multiples of 3 fail at UPDATE, of 7 but not of 3 at COMMIT.
    assert_eq!((m.transactions, m.failed, m.aborted_clients), (12, 9, 0));
    assert_eq!(m.failures.get("40001"), Some(&7));
    assert_eq!(m.failures.get("40P01"), Some(&2));
    let statements: Vec<_> = m.scripts[0].statements.iter().map(|s| s.failed).collect();
    assert_eq!(statements, [0, 7, 2]);
    let rollbacks = seen.asked[0].iter().filter(|sql| *sql == "ROLLBACK").count();
    assert_eq!(rollbacks, 7, "only a failed block is rolled back");
}

#[test]
fn a_reply_that_nobody_asked_for_ends_the_client_and_is_no_measurement() {
    let complete = || message(b'C', b"SELECT 1\0");
    let notices = || {
        let settings = message(b'S', b"TimeZone\0UTC\0");
        [settings, message(b'A', b"\0\0\0\x01a\0b\0"), message(b'N', b"SNOTICE\0Mhi\0\0")].concat()
    };
    let pipeline = "\\startpipeline\nSELECT 1;\nSELECT 2;\n\\endpipeline\n";
    let lies: [(&str, Vec<u8>); 9] = [
        ("five of ReadyForQuery", ready(b'I').repeat(4)),
        ("five whole answers", [complete(), ready(b'I')].concat().repeat(4)),
        ("a row without a query", message(b'D', b"\0\0")),
        ("copy data", message(b'd', b"x")),
        ("an error of nothing", error("40001", b'I')),
        ("a ParseComplete", message(b'1', b"")),
        ("a BackendKeyData", message(b'K', &[0; 8])),
        ("an authentication", message(b'R', &[0; 4])),
        ("notices, then an answer", [notices(), complete(), ready(b'I')].concat()),
    ];
    for (script, protocol) in [
        ("SELECT 1;", Protocol::Simple),
        ("SELECT 1;", Protocol::Extended),
        ("SELECT 1;", Protocol::Prepared),
        (pipeline, Protocol::Extended),
    ] {
        for (what, lie) in &lies {
            // Whole answers that come one by one are told from a fast server's only by who counts
            // them.
            let is_whole = lie.ends_with(&ready(b'I')) && !lie.starts_with(&ready(b'I'));
            let pieces: &[usize] = if is_whole { &[usize::MAX] } else { &[1, 5, usize::MAX] };
            for &piece in pieces {
                let network = Network { read: piece, ..Network::default() };
                let load = Load {
                    network,
                    protocol,
                    length: Length::Transactions(500),
                    ..Load::new(script)
                };
                let answer = |_| -> Answer {
                    let answer = [complete(), ready(b'I'), lie.clone()].concat();
                    let two = [complete(), complete(), ready(b'I'), lie.clone()].concat();
                    let answer = if script == pipeline { two } else { answer };
                    Box::new(move |_, _| after(MS, answer.clone()))
                };
                let m = load.run(answer).measurement;
                assert_eq!(m.aborted_clients, 1, "{protocol:?}, {what}, {piece}");
                assert!(m.transactions <= 1, "{protocol:?}, {what}, {piece}: {}", m.transactions);
                assert_eq!(m.failures.get("08P01"), Some(&1), "{what}: {:?}", m.abort_reasons);
            }
        }
        let load = Load { protocol, length: Length::Transactions(50), ..Load::new(script) };
        let honest = |_| -> Answer {
            let results = if script == pipeline { 2 } else { 1 };
            let answer = [complete().repeat(results), notices(), ready(b'I'), notices()].concat();
            Box::new(move |_, _| after(MS, answer.clone()))
        };
        let m = load.run(honest).measurement;
        assert_eq!(
            (m.transactions, m.aborted_clients),
            (50, 0),
            "{protocol:?}: {:?}",
            m.abort_reasons
        );
    }
}

#[test]
fn what_the_server_should_not_send_ends_the_client_with_a_reason() {
    let copy = message(b'G', b"\0\0\0");
    let mut torn_then_closed = done(b'I');
    torn_then_closed.truncate(20);
    let fatal = message(b'E', b"SFATAL\0VFATAL\0C57P01\0Mterminating\0\0");
    for (reply, hangs_up, code, words) in [
        (b"HTTP/1.1 400 Bad Request\r\n".to_vec(), false, "08P01", "broke the protocol"),
        (message(b'!', b""), false, "08P01", "type `!`"),
        (
            [message(b'C', b"BEGIN\0"), message(b'Z', b"?")].concat(),
            false,
            "08P01",
            "`status` is 63",
        ),
        (message(b'R', b"\0\0\0\0"), false, "08P01", "type `R`"),
        (b"E\x3f\xff\xff\xff".to_vec(), false, "08P01", "at most 1048576 are taken"),
        (b"D\0\0\0\x03".to_vec(), false, "08P01", "is 3 bytes long"),
        (copy, false, "0A000", "COPY is not supported"),
        (torn_then_closed, true, "08006", "connection lost"),
        (fatal, true, "08006", "57P01"),
        ([done(b'I'), ready(b'I')].concat(), false, "", ""),
    ] {
        let answer = |_| -> Answer {
            let reply = reply.clone();
            Box::new(move |_, _| {
                let mut acts = after(MS, reply.clone());
                acts.extend(hangs_up.then_some((2 * MS, PeerAction::HangUp)));
                acts
            })
        };
        for piece in [1, 3, usize::MAX] {
            let network = Network { read: piece, ..Network::default() };
            let load = Load { network, length: Length::Transactions(1), ..Load::new("SELECT 1;") };
            let m = load.run(answer).measurement;
            if code.is_empty() {
                // One answer too many, but the client had ended.
                assert_eq!((m.transactions, m.aborted_clients), (1, 0), "{:?}", m.abort_reasons);
                continue;
            }
            assert_eq!((m.transactions, m.failed, m.aborted_clients), (0, 1, 1));
            assert_eq!(m.failures.get(code), Some(&1), "{words}: {:?}", m.abort_reasons);
            assert!(m.abort_reasons[0].contains(words), "{words}: {:?}", m.abort_reasons);
        }
    }
}

#[test]
fn a_script_that_ends_inside_a_transaction_counts_and_ends_its_client() {
    let load = Load { length: Length::Transactions(5), ..Load::new("BEGIN;") };
    let m = load.run(|_| Box::new(|_, _| after(MS, done(b'T')))).measurement;
    assert_eq!((m.transactions, m.failed, m.aborted_clients), (1, 0, 1));
    assert!(m.abort_reasons[0].contains("inside a transaction block"), "{:?}", m.abort_reasons);
}

#[test]
fn a_lost_connection_fails_its_transaction_and_is_made_anew_as_often_as_is_allowed() {
    // Every third transaction ends in a hang-up, one of them after the server said why.
    let hangs_up = |_| -> Answer {
        let mut asked = 0;
        Box::new(move |_, _| {
            asked += 1;
            match asked {
                3 => vec![(MS, PeerAction::HangUp)],
                6 => vec![
                    (MS, PeerAction::Send(error("57P01", b'I')[..20].to_vec())),
                    (MS, PeerAction::HangUp),
                ],
                9 => {
                    let fatal = message(b'E', b"SFATAL\0VFATAL\0C57P01\0Mbye\0\0");
                    vec![(MS, PeerAction::Send(fatal)), (2 * MS, PeerAction::HangUp)]
                }
                _ => after(MS, done(b'I')),
            }
        })
    };
    let load = |change, protocol| Load {
        length: Length::Transactions(10),
        protocol,
        change,
        clients: 2,
        ..Load::new("SELECT 1;")
    };
    for protocol in [Protocol::Simple, Protocol::Prepared] {
        let seen = load(|spec| spec.options.reconnect_lost = ReconnectLost::UpTo(1), protocol)
            .run(hangs_up);
        let m = &seen.measurement;
        assert_eq!(
            (m.transactions, m.failed, m.aborted_clients),
            (14, 6, 0),
            "{:?}",
            m.abort_reasons
        );
        assert_eq!(m.failures.get("08006"), Some(&6));
        assert_eq!((m.lost_connections, m.reconnections), (6, 6));
        assert_eq!(m.scripts[0].statements[0].failed, 6);
        // What was prepared went with its connection.
        let prepared = if protocol == Protocol::Prepared { 2 * 4 } else { 0 };
        assert_eq!(seen.parsed, prepared);
        let m = load(|_| {}, protocol).run(hangs_up).measurement;
        assert_eq!((m.transactions, m.failed, m.aborted_clients, m.lost_connections), (4, 2, 2, 0));
    }
    // One that is lost again and again is given up after so many, and never where there is no
    // limit.
    let gone = |_| -> Answer { Box::new(|_, _| vec![(MS, PeerAction::HangUp)]) };
    let m = load(|spec| spec.options.reconnect_lost = ReconnectLost::UpTo(3), Protocol::Simple)
        .run(gone);
    let m = m.measurement;
    assert_eq!((m.failed, m.aborted_clients, m.lost_connections), (2 * 4, 2, 2 * 3));
    let m = load(|spec| spec.options.reconnect_lost = ReconnectLost::Always, Protocol::Simple)
        .run(gone);
    let m = m.measurement;
    assert_eq!((m.transactions, m.failed, m.aborted_clients, m.lost_connections), (0, 20, 0, 20));
}

#[test]
fn a_client_whose_server_stays_away_tries_again_ever_more_rarely() {
    let hangs_up = |_| -> Answer {
        Box::new(|_, now| {
            if now < Moment(0).after(SECOND) {
                after(MS, done(b'I'))
            } else {
                vec![(MS, PeerAction::HangUp)]
            }
        })
    };
    let away = Network {
        away: Some((Moment(0).after(SECOND), Moment(0).after(3 * SECOND))),
        ..Network::default()
    };
    let back = |_| steady(MS)(0);
    let load = |change| Load { network: away, change, ..Load::new("\\sleep 10 ms\nSELECT 1;") };
    let m =
        load(|spec| spec.options.reconnect_lost = ReconnectLost::Always).run(hangs_up).measurement;
    assert!(m.transactions > 80 && m.aborted_clients == 0, "{m:?}");
    let m = load(|spec| {
        spec.options.reconnect_lost = ReconnectLost::UpTo(3);
        spec.options.reconnect = true;
    })
    .run(back)
    .measurement;
    assert_eq!((m.aborted_clients, m.lost_connections), (1, 0));
    assert!(m.abort_reasons[0].contains("after 3 in a row"), "{:?}", m.abort_reasons);
    let m = load(|spec| {
        spec.options.reconnect_lost = ReconnectLost::UpTo(8);
        spec.options.reconnect = true;
    })
    .run(back)
    .measurement;
    assert_eq!((m.aborted_clients, m.failed), (0, 0), "nothing was under way");
    let silent = m.series.iter().filter(|s| s.transactions == 0).count();
    assert!((1..=2).contains(&silent) && m.series.len() == 5, "{:?}", m.series);
}

#[test]
fn a_client_that_gives_up_leaves_the_others_alone() {
    let second_hangs_up = |n| -> Answer {
        Box::new(move |_, now| {
            if n == 1 && now.since(Moment(0)) > SECOND {
                vec![(MS, PeerAction::HangUp)]
            } else {
                after(MS, done(b'I'))
            }
        })
    };
    let m = Load { clients: 3, ..Load::new("SELECT 1;") }.run(second_hangs_up).measurement;
    assert_eq!((m.aborted_clients, m.measured_s), (1, 5.0));
    assert_eq!(m.transactions, 2 * 4999 + 1001);
    assert_eq!(
        m.abort_reasons,
        ["client 1: connection lost: the server closed the connection (SQLSTATE 08006)"]
    );
}

#[test]
fn a_transaction_that_does_not_end_is_given_up_after_the_grace() {
    let hangs = |_| -> Answer { Box::new(|_, _| Vec::new()) };
    let m = Load { clients: 2, grace: 3 * SECOND, ..Load::new("SELECT 1;") }.run(hangs).measurement;
    assert_eq!((m.transactions, m.failed, m.failed_outside, m.aborted_clients), (0, 0, 2, 2));
    assert!(m.abort_reasons[0].contains("3s after the window closed"), "{:?}", m.abort_reasons);
    assert_eq!(m.measured_s, 5.0);
    assert_eq!(m.series.len(), 5);
}

#[test]
fn a_count_of_transactions_begins_after_the_warm_up() {
    let load = Load {
        clients: 2,
        warm_up: SECOND + MS / 2,
        length: Length::Transactions(100),
        ..Load::new("SELECT 1;")
    };
    let m = load.run(steady(MS)).measurement;
    // Those under way at the opening ended within the window, and are left over from the warm-up.
    assert_eq!(m.warm_up_transactions, 2 * 1001);
    assert_eq!((m.transactions, m.drained_transactions), (2 * 100, 0));
    assert!((m.measured_s - 0.1005).abs() < 1e-6, "{}", m.measured_s);
    assert_eq!(m.series.len(), 1);
}

#[test]
fn sleeping_clients_wake_in_time_and_scripts_without_sql_take_turns() {
    let m =
        Load { clients: 2, ..Load::new("SELECT 1;\n\\sleep 9 ms\n") }.run(steady(MS)).measurement;
    assert_eq!(m.transactions, 2 * 499);
    let p50 = m.latency.quantile_us(0.5).unwrap();
    assert!((p50 - 10_000.0).abs() < 20.0, "{p50}");
    let m = Load { clients: 2, ..Load::new("\\set x 1\n") }.run(steady(MS)).measurement;
    assert!(m.transactions > 1000 && m.transactions.is_multiple_of(2), "{}", m.transactions);
}

#[test]
fn thousands_of_clients_share_one_thread_evenly() {
    let load =
        Load { clients: 3000, length: Length::Duration(Span(SECOND)), ..Load::new("SELECT 1;") };
    let seen = load.run(steady(10 * MS));
    assert_eq!(seen.measurement.transactions, 3000 * 99);
    assert!(seen.asked.iter().all(|a| a.len() == 101));
}

mod ledger;
mod more;
mod timing;
