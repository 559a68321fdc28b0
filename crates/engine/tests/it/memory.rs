//! Memory of a client, on the reactors that carry real connections.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pgdyno_connect::Stream;
use pgdyno_engine::WeightedScript;
use pgdyno_engine::client::{Client, ClientContext};
use pgdyno_engine::pace::Pacer;
use pgdyno_engine::program::Program;
use pgdyno_engine::random::Random;
use pgdyno_engine::reactor::epoll::Epoll;
use pgdyno_engine::reactor::uring::Uring;
use pgdyno_engine::reactor::{AfterSend, Connector, Reactor, ReactorHandler};
use pgdyno_engine::recorder::Recorder;
use pgdyno_engine::schedule::{Clock, Moment, Schedule};
use pgdyno_engine::script::Script;
use pgdyno_model::experiment::Protocol;

/// The most that a client may cost (bytes).
const BUDGET: usize = 10 * 1024;

/// TPC-B-like, as pgbench's own.
const SCRIPT: &str = "\\set aid random(1, 100000 * :scale)\n\\set bid random(1, 1 * :scale)\n\
    \\set tid random(1, 10 * :scale)\n\\set delta random(-5000, 5000)\nBEGIN;\n\
    UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
    SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
    UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n\
    UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n\
    INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, \
    CURRENT_TIMESTAMP);\n\
    END;\n";

/// `ParseComplete`, `BindComplete`, a row, its command's end and `ReadyForQuery`.
const ANSWER: &[u8] =
    b"1\0\0\0\x042\0\0\0\x04D\0\0\0\x0c\0\x01\0\0\0\x0242C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";

/// A thread's clients.
struct Clients {
    clients: Vec<Client>,
    recorder: Recorder,
    pacer: Pacer,
    answered: usize,
}

impl Clients {
    fn new(count: usize) -> Self {
        let script = Arc::new(Script::parse("tpcb-like", SCRIPT).unwrap());
        let scripts = [WeightedScript::new(script, 1)];
        let scale = ("scale".to_owned(), pgdyno_engine::script::Value::Int(1).into());
        let program =
            Rc::new(Program::link(&scripts, Protocol::Prepared, 1, &[scale], &[]).unwrap());
        let schedule = Schedule::default();
        let recorder = Recorder::new(&program, schedule, Box::new(|_| {}));
        let client = |id: usize| {
            let (random, choice) = (Random::new(id as u64), Random::new(id as u64));
            Client::new(u32::try_from(id).unwrap(), Rc::clone(&program), random, choice, None)
        };
        let clients = (0..count).map(client).collect();
        Self { clients, recorder, pacer: Pacer::default(), answered: 0 }
    }
}

impl ReactorHandler for Clients {
    fn received(&mut self, link: usize, bytes: &[u8], now: Moment, out: &mut Vec<u8>) -> AfterSend {
        let Self { clients, recorder, pacer, .. } = self;
        let _ = clients[link].receive(bytes, &mut ClientContext { now, out, recorder, pacer });
        self.answered += 1;
        AfterSend::Open
    }

    fn lost(&mut self, link: usize, how: &str, _: Moment) {
        panic!("connection {link} was lost: {how}");
    }
}

/// The peak of what is allocated (bytes) for `count` clients in the course of two transactions
/// each.
fn peak<R: Reactor>(
    count: usize,
    make: impl Fn(Clock, Vec<Stream>, Option<Connector>) -> io::Result<R>,
) -> usize {
    let pairs = (0..count).map(|_| UnixStream::pair().unwrap());
    let (ours, mut peers): (Vec<_>, Vec<_>) = pairs.unzip();
    let streams = ours.into_iter().map(|stream| {
        stream.set_nonblocking(true).unwrap();
        Stream::Unix(stream)
    });
    let streams: Vec<Stream> = streams.collect();
    let mut done = 0;
    let counted = allocation_counter::measure(|| {
        let mut reactor = make(Clock::new(Instant::now()), streams, None).unwrap();
        let mut all = Clients::new(count);
        for link in 0..count {
            let now = reactor.now();
            let Clients { clients, recorder, pacer, .. } = &mut all;
            reactor.send(link, &mut |out| {
                let _ = clients[link].wake(&mut ClientContext { now, out, recorder, pacer });
                AfterSend::Open
            });
        }
        for statement in 1..=14 {
            for peer in &mut peers {
                peer.write_all(ANSWER).unwrap();
            }
            let patience = Instant::now() + Duration::from_secs(60);
            while all.answered < statement * count {
                assert!(
                    Instant::now() < patience,
                    "{} answers did not arrive",
                    statement * count - all.answered
                );
                let now = reactor.now();
                reactor.turn(now, now.after(Duration::from_millis(10)), &mut all).unwrap();
            }
        }
        done = all.answered;
    });
    assert_eq!(done, 14 * count);
    usize::try_from(counted.bytes_max).unwrap()
}

/// Returns the memory of each of a thousand clients, without the thread's own (bytes).
fn each<R: Reactor>(
    make: impl Fn(Clock, Vec<Stream>, Option<Connector>) -> io::Result<R>,
) -> usize {
    let (few, many) = (peak(100, &make), peak(1000, &make));
    (many - few) / 900
}

#[test]
fn each_of_a_thousand_clients_costs_at_most_ten_kilobytes() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // Two ends of a thousand connections are more files than most shells allow.
    let files = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files }).unwrap();
    let cost = each(Epoll::new);
    assert!((1..=BUDGET).contains(&cost), "epoll: {cost} bytes");
    match Uring::probe() {
        Ok(()) => {
            let cost = each(Uring::new);
            assert!((1..=BUDGET).contains(&cost), "io_uring: {cost} bytes");
        }
        Err(e) => {
            // Past the test runner, which captures what passing tests print.
            let name = "each_of_a_thousand_clients_costs_at_most_ten_kilobytes";
            let _ = writeln!(io::stderr(), "\nskipped: {name}: the kernel refuses io_uring: {e}");
        }
    }
}
