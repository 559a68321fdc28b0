//! Holds every reactor that carries real bytes to one set of conversations.
//!
//! A request is four bytes: the length of the reply that the peer is to send.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pgdyno_connect::Stream;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use super::choice::{ReactorChoice, ReactorKind, choose};
use super::epoll::Epoll;
use super::uring::Uring;
use super::{AfterSend, Connector, Reactor, ReactorHandler};
use crate::schedule::{Clock, Moment};

/// Handler that records bytes and losses of each connection, and asks for the next reply.
#[derive(Default)]
struct Seen {
    received: Vec<Vec<u8>>,
    lost: Vec<Option<String>>,
    /// Lengths of the replies that each connection still has to ask for, in order (bytes).
    asks: Vec<Vec<u32>>,
    /// Bytes of the current reply that have not arrived, by connection.
    lacking: Vec<usize>,
}

impl Seen {
    fn new(asks: Vec<Vec<u32>>) -> Self {
        let count = asks.len();
        Self {
            received: vec![Vec::new(); count],
            lost: vec![None; count],
            lacking: vec![0; count],
            asks,
        }
    }

    /// Asks for the next reply, or has the connection closed.
    fn ask(&mut self, link: usize, out: &mut Vec<u8>) -> AfterSend {
        if self.asks[link].is_empty() {
            return AfterSend::Close;
        }
        let length = self.asks[link].remove(0);
        self.lacking[link] = length as usize;
        out.extend_from_slice(&length.to_be_bytes());
        AfterSend::Open
    }

    fn done(&self) -> bool {
        self.asks.iter().all(Vec::is_empty) && self.lacking.iter().all(|l| *l == 0)
    }
}

impl ReactorHandler for Seen {
    fn received(&mut self, link: usize, bytes: &[u8], _: Moment, out: &mut Vec<u8>) -> AfterSend {
        self.received[link].extend_from_slice(bytes);
        self.lacking[link] = self.lacking[link].saturating_sub(bytes.len());
        if self.lacking[link] == 0 { self.ask(link, out) } else { AfterSend::Open }
    }

    fn lost(&mut self, link: usize, how: &str, _: Moment) {
        assert!(self.lost[link].replace(how.to_owned()).is_none(), "told twice");
    }
}

/// Answers requests until the other side closes. The thread returns how many there were (count).
fn answer(mut peer: UnixStream) -> JoinHandle<usize> {
    std::thread::spawn(move || {
        let mut asked = 0;
        let mut length = [0; 4];
        while peer.read_exact(&mut length).is_ok() {
            asked += 1;
            let reply: Vec<u8> = (0..u32::from_be_bytes(length)).map(|n| (n % 251) as u8).collect();
            peer.write_all(&reply).unwrap();
        }
        asked
    })
}

/// A connection as the engine hands it over, and its other end.
fn pair() -> (Stream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (Stream::Unix(ours), theirs)
}

fn clock() -> Clock {
    Clock::new(Instant::now())
}

/// Turns until `done`, or a quarter of a minute has passed.
fn turn<R: Reactor>(reactor: &mut R, seen: &mut Seen, done: impl Fn(&Seen) -> bool) {
    let end = reactor.now().after(Duration::from_secs(15));
    while !done(seen) {
        let now = reactor.now();
        assert!(now < end, "nothing comes: {:?}, {:?} lacking", seen.lost, seen.lacking);
        reactor.turn(now, now.after(Duration::from_millis(50)), seen).unwrap();
    }
}

/// Calls `$test` with a maker of each reactor.
macro_rules! on_every_reactor {
    ($test:ident, $connections:expr) => {
        $test($connections, |streams, connector| Epoll::new(clock(), streams, connector));
        match Uring::probe() {
            Ok(()) => {
                $test($connections, |streams, connector| Uring::new(clock(), streams, connector))
            }
            Err(e) => {
                // Past the test runner, which hides what a passing test says.
                let _ = writeln!(
                    io::stderr(),
                    "\nskipped: io_uring_in_reactor_tests: the kernel refuses io_uring here: {e}"
                );
            }
        }
    };
}

type Make<'a, R> = &'a dyn Fn(Vec<Stream>, Option<Connector>) -> io::Result<R>;

fn replies_of_all_lengths<R: Reactor>(
    connections: usize,
    make: impl Fn(Vec<Stream>, Option<Connector>) -> io::Result<R>,
) {
    let make: Make<'_, R> = &make;
    let (streams, peers): (Vec<_>, Vec<_>) = (0..connections).map(|_| pair()).unzip();
    let answering: Vec<_> = peers.into_iter().map(answer).collect();
    let asks = vec![1, 5, 16_383, 16_384, 16_385, 200_000, 3, 1_000_000, 7];
    let all: u32 = asks.iter().sum();
    let mut seen = Seen::new(vec![asks.clone(); connections]);
    let mut reactor = make(streams, None).unwrap();
    for link in 0..connections {
        reactor.send(link, &mut |out| seen.ask(link, out));
    }
    turn(&mut reactor, &mut seen, Seen::done);
    drop(reactor);
    for (link, peer) in answering.into_iter().enumerate() {
        assert_eq!(peer.join().unwrap(), asks.len());
        assert_eq!(seen.received[link].len(), all as usize);
        assert_eq!(seen.lost[link], None);
        let expected: Vec<u8> =
            asks.iter().flat_map(|length| (0..*length).map(|n| (n % 251) as u8)).collect();
        assert!(seen.received[link] == expected, "bytes of connection {link} are out of order");
    }
}

#[test]
fn replies_of_all_lengths_arrive_in_order() {
    on_every_reactor!(replies_of_all_lengths, 12);
}

fn a_flood<R: Reactor>(
    connections: usize,
    make: impl Fn(Vec<Stream>, Option<Connector>) -> io::Result<R>,
) {
    const FLOOD: usize = 3_000_000;
    let make: Make<'_, R> = &make;
    let (streams, peers): (Vec<_>, Vec<_>) = (0..connections).map(|_| pair()).unzip();
    // Says all it has to say before it listens: who waits for it to listen waits for ever.
    let talking: Vec<_> = peers
        .into_iter()
        .map(|mut peer| {
            std::thread::spawn(move || {
                peer.write_all(&vec![7; FLOOD]).unwrap();
                let mut heard = Vec::new();
                peer.read_to_end(&mut heard).unwrap();
                heard.len()
            })
        })
        .collect();
    let mut seen = Seen::new(vec![Vec::new(); connections]);
    seen.lacking.fill(FLOOD);
    let mut reactor = make(streams, None).unwrap();
    for link in 0..connections {
        reactor.send(link, &mut |out| {
            out.resize(FLOOD, 9);
            AfterSend::Open
        });
    }
    turn(&mut reactor, &mut seen, Seen::done);
    // What was still to be sent when the last byte came is sent before the connection is closed.
    turn(&mut reactor, &mut seen, |_| talking.iter().all(JoinHandle::is_finished));
    drop(reactor);
    for peer in talking {
        assert_eq!(peer.join().unwrap(), FLOOD);
    }
}

/// Sends blocks, each once the connection has taken the one before.
struct Blocks {
    left: Vec<u32>,
    /// Bytes that were not sent when a block was asked for, at most.
    most_unsent: usize,
}

impl Blocks {
    const SIZE: usize = 50_000;
    const COUNT: u32 = 100;

    fn next(&mut self, link: usize, out: &mut Vec<u8>) -> AfterSend {
        self.most_unsent = self.most_unsent.max(out.len());
        let number = Self::COUNT - self.left[link];
        out.extend((0..Self::SIZE).map(|_| number as u8));
        self.left[link] -= 1;
        if self.left[link] == 0 { AfterSend::Close } else { AfterSend::Refill }
    }
}

impl ReactorHandler for Blocks {
    fn received(&mut self, _: usize, _: &[u8], _: Moment, _: &mut Vec<u8>) -> AfterSend {
        AfterSend::Open
    }

    fn refill(&mut self, link: usize, _: Moment, out: &mut Vec<u8>) -> AfterSend {
        self.next(link, out)
    }

    fn lost(&mut self, _: usize, how: &str, _: Moment) {
        panic!("{how}");
    }
}

fn blocks<R: Reactor>(
    connections: usize,
    make: impl Fn(Vec<Stream>, Option<Connector>) -> io::Result<R>,
) {
    let make: Make<'_, R> = &make;
    let (streams, peers): (Vec<_>, Vec<_>) = (0..connections).map(|_| pair()).unzip();
    let hearing = |mut peer: UnixStream| {
        std::thread::spawn(move || {
            let mut heard = Vec::new();
            peer.write_all(b"a notice in between").unwrap();
            peer.read_to_end(&mut heard).unwrap();
            heard
        })
    };
    let hearing: Vec<_> = peers.into_iter().map(hearing).collect();
    let mut sent = Blocks { left: vec![Blocks::COUNT; connections], most_unsent: 0 };
    let mut reactor = make(streams, None).unwrap();
    for link in 0..connections {
        reactor.send(link, &mut |out| sent.next(link, out));
    }
    let end = reactor.now().after(Duration::from_secs(15));
    while !hearing.iter().all(JoinHandle::is_finished) {
        let now = reactor.now();
        assert!(now < end, "blocks left: {:?}", sent.left);
        reactor.turn(now, now.after(Duration::from_millis(50)), &mut sent).unwrap();
    }
    let expected = (0..Blocks::COUNT).flat_map(|number| vec![number as u8; Blocks::SIZE]);
    let expected: Vec<u8> = expected.collect();
    assert!(hearing.into_iter().all(|heard| heard.join().unwrap() == expected));
    assert_eq!(sent.most_unsent, 0, "a block was asked for too early");
}

#[test]
fn each_block_is_asked_for_when_the_one_before_is_sent() {
    on_every_reactor!(blocks, 3);
}

#[test]
fn both_sides_may_say_more_than_the_kernel_holds() {
    on_every_reactor!(a_flood, 3);
}

fn a_hang_up<R: Reactor>(
    connections: usize,
    make: impl Fn(Vec<Stream>, Option<Connector>) -> io::Result<R>,
) {
    let make: Make<'_, R> = &make;
    let (streams, peers): (Vec<_>, Vec<_>) = (0..connections).map(|_| pair()).unzip();
    let mut seen = Seen::new(vec![vec![100]; connections]);
    let mut reactor = make(streams, None).unwrap();
    for mut peer in peers {
        peer.write_all(b"last words").unwrap();
        peer.shutdown(Shutdown::Both).unwrap();
    }
    // The request fails, and what was said before must be heard all the same.
    for link in 0..connections {
        reactor.send(link, &mut |out| seen.ask(link, out));
    }
    turn(&mut reactor, &mut seen, |seen| seen.lost.iter().all(Option::is_some));
    for link in 0..connections {
        assert_eq!(seen.received[link], b"last words");
    }
}

#[test]
fn what_the_server_says_before_it_hangs_up_is_heard_and_the_loss_told_once() {
    on_every_reactor!(a_hang_up, 300);
}

fn a_renewal<R: Reactor>(
    connections: usize,
    make: impl Fn(Vec<Stream>, Option<Connector>) -> io::Result<R>,
) {
    let make: Make<'_, R> = &make;
    let (streams, peers): (Vec<_>, Vec<_>) = (0..connections).map(|_| pair()).unzip();
    let answering: Arc<Mutex<Vec<_>>> =
        Arc::new(Mutex::new(peers.into_iter().map(answer).collect()));
    let renewed = Arc::clone(&answering);
    let connector: Connector = Box::new(move |_| {
        let (stream, peer) = pair();
        renewed.lock().unwrap().push(answer(peer));
        Ok(stream)
    });
    let mut seen = Seen::new(vec![vec![10, 20]; connections]);
    let mut reactor = make(streams, Some(connector)).unwrap();
    for round in 0..3 {
        for link in 0..connections {
            seen.asks[link] = vec![10, 20_000 * round];
            reactor.send(link, &mut |out| seen.ask(link, out));
        }
        // The last reply has its connection closed.
        turn(&mut reactor, &mut seen, Seen::done);
        for link in 0..connections {
            reactor.reconnect(link).unwrap();
        }
    }
    drop(reactor);
    assert!(seen.lost.iter().all(Option::is_none), "{:?}", seen.lost);
    let asked: usize = answering.lock().unwrap().drain(..).map(|peer| peer.join().unwrap()).sum();
    assert_eq!(asked, 2 * 3 * connections);
}

#[test]
fn a_connection_is_renewed_while_others_go_on() {
    on_every_reactor!(a_renewal, 150);
}

fn an_end_in_the_middle<R: Reactor>(
    connections: usize,
    make: impl Fn(Vec<Stream>, Option<Connector>) -> io::Result<R>,
) {
    let make: Make<'_, R> = &make;
    let (streams, peers): (Vec<_>, Vec<_>) = (0..connections).map(|_| pair()).unzip();
    let mut reactor = make(streams, None).unwrap();
    for link in 0..connections {
        reactor.send(link, &mut |out| {
            out.extend_from_slice(b"goodbye");
            AfterSend::Close
        });
    }
    drop(reactor);
    for mut peer in peers {
        let mut heard = Vec::new();
        peer.read_to_end(&mut heard).unwrap();
        assert_eq!(heard, b"goodbye");
    }
}

#[test]
fn what_was_to_be_sent_is_sent_before_the_end() {
    on_every_reactor!(an_end_in_the_middle, 300);
}

/// Has the kernel refuse the system call `number` to the thread that calls this, as the profiles of
/// containers do.
fn refuse(number: i64) {
    let refused = SeccompAction::Errno(rustix::io::Errno::PERM.raw_os_error().unsigned_abs());
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let rules = [(number, Vec::new())].into();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, arch).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
}

#[test]
fn epoll_serves_whichever_call_of_io_uring_is_refused() {
    // io_uring_setup, io_uring_enter and io_uring_register, on every architecture.
    for call in 425..=427 {
        let chosen = std::thread::spawn(move || {
            refuse(call);
            choose(ReactorChoice::IoUring, &[], false)
        });
        let ReactorKind::Epoll { instead } = chosen.join().unwrap() else { panic!("{call}") };
        let why = instead.unwrap();
        assert!(why.starts_with("the kernel refuses io_uring: Operation not permitted"), "{why}");
    }
}
