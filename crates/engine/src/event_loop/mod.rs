//! The event loop: one thread's clients on one reactor, from the first transaction to the last.
//!
//! [`run`] wakes all clients once. Each turn then connects clients that lost their connection,
//! wakes clients whose time has come, and lets the reactor bring what arrived.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::client::{Client, ClientContext, Wait};
use crate::outcome::ThreadOutcome;
use crate::pace::Pacer;
use crate::reactor::{AfterSend, Reactor, ReactorHandler};
use crate::recorder::Recorder;
use crate::schedule::{Moment, Phase};

/// Time within which a stop is noticed.
const STOP_CHECK: Duration = Duration::from_millis(50);

/// The clients of one thread, and what each waits for.
struct Clients {
    clients: Vec<Client>,
    recorder: Recorder,
    /// When to wake which client; at most one entry a client.
    timers: BinaryHeap<Reverse<(Moment, usize)>>,
    /// Clients to be woken in the next turn.
    next_turn: VecDeque<usize>,
    /// Paces of the clients' groups.
    pacers: Vec<Pacer>,
    /// Times of the first and the last reply of the current turn.
    replied: Option<(Moment, Moment)>,
    /// Clients that wait for a new connection.
    connecting: Vec<usize>,
    /// Clients that have not ended (count).
    active: usize,
}

impl Clients {
    fn new(clients: Vec<Client>, recorder: Recorder, pacers: Vec<Pacer>) -> Self {
        let count = clients.len();
        Self {
            clients,
            recorder,
            timers: BinaryHeap::with_capacity(count),
            next_turn: VecDeque::with_capacity(count),
            pacers,
            replied: None,
            connecting: Vec::new(),
            active: count,
        }
    }

    /// Notes what client `index` waits for.
    fn note(&mut self, index: usize, next: Wait) -> AfterSend {
        match next {
            Wait::ForReply => AfterSend::Open,
            Wait::ForRoom => AfterSend::Refill,
            Wait::Until(at) => {
                self.timers.push(Reverse((at, index)));
                self.after_send(index)
            }
            Wait::NextTurn => {
                self.next_turn.push_back(index);
                self.after_send(index)
            }
            Wait::Connect => {
                self.connecting.push(index);
                AfterSend::Close
            }
            Wait::Close => {
                self.active -= 1;
                AfterSend::Close
            }
        }
    }

    fn after_send(&self, index: usize) -> AfterSend {
        if self.clients[index].is_connected() { AfterSend::Open } else { AfterSend::Close }
    }

    /// Has client `index` do `act`, and returns what it waits for then.
    #[inline]
    fn call(
        &mut self,
        index: usize,
        now: Moment,
        out: &mut Vec<u8>,
        act: impl FnOnce(&mut Client, &mut ClientContext<'_>) -> Wait,
    ) -> Wait {
        let client = &mut self.clients[index];
        let (recorder, pacer) = (&mut self.recorder, &mut self.pacers[client.group()]);
        act(client, &mut ClientContext { now, out, recorder, pacer })
    }

    fn wake(&mut self, index: usize, now: Moment, out: &mut Vec<u8>) -> AfterSend {
        if self.clients[index].has_ended() {
            return AfterSend::Close;
        }
        let next = self.call(index, now, out, Client::wake);
        self.note(index, next)
    }

    fn expire(&mut self, index: usize, now: Moment, out: &mut Vec<u8>) -> AfterSend {
        if self.clients[index].has_ended() {
            return AfterSend::Close;
        }
        let next = self.call(index, now, out, Client::expire);
        self.note(index, next)
    }

    fn connection_failed(&mut self, index: usize, how: &str, now: Moment) {
        let unsent = &mut Vec::new();
        let next = self.call(index, now, unsent, |client, c| client.connection_failed(how, c));
        self.note(index, next);
    }

    /// Wakes client `index` and sends what it has to say.
    #[inline]
    fn wake_on<R: Reactor>(&mut self, reactor: &mut R, index: usize) {
        let now = reactor.now();
        reactor.send(index, &mut |out| self.wake(index, now, out));
    }

    /// Makes the connections that clients wait for.
    #[inline]
    fn connect_on<R: Reactor>(&mut self, reactor: &mut R) {
        for index in std::mem::take(&mut self.connecting) {
            match reactor.reconnect(index) {
                Ok(took) => {
                    self.recorder.record_reconnection(took);
                    self.clients[index].connection_restored();
                    self.wake_on(reactor, index);
                }
                Err(error) => self.connection_failed(index, &error.to_string(), reactor.now()),
            }
        }
    }

    /// Wakes clients that asked for this turn, then clients whose time has come by `now`; returns
    /// whether there were any.
    #[inline]
    fn wake_due_on<R: Reactor>(&mut self, reactor: &mut R, now: Moment) -> bool {
        let mut woken = !self.next_turn.is_empty();
        // A client that asks again has its turn after the others' replies.
        for _ in 0..self.next_turn.len() {
            let Some(index) = self.next_turn.pop_front() else { break };
            self.wake_on(reactor, index);
        }
        for _ in 0..self.timers.len() {
            match self.timers.peek() {
                Some(Reverse((at, index))) if *at <= now => {
                    let (at, index) = (*at, *index);
                    self.timers.pop();
                    // Clients woken before this one took their time.
                    let now = reactor.now();
                    self.recorder.record_lag(now.nanoseconds_since(at));
                    reactor.send(index, &mut |out| self.wake(index, now, out));
                    woken = true;
                }
                _ => break,
            }
        }
        woken
    }

    /// Returns until when the reactor may wait, from `now`.
    #[inline]
    fn next_wake(&self, now: Moment) -> Moment {
        let timer = self.timers.peek().map_or(Moment::NEVER, |Reverse((at, _))| *at);
        let may_wait = self.connecting.is_empty() && self.next_turn.is_empty();
        let soon = if may_wait { now.after(STOP_CHECK) } else { now };
        soon.min(self.recorder.next_tick()).min(timer)
    }

    /// Returns whether there is something to wait for at `now`: a client, or the end of a window in
    /// which nothing more is due. Clients that gave up make up no load.
    #[inline]
    fn goes_on(&self, now: Moment) -> bool {
        self.active > 0
            || self.recorder.schedule().is_open(now)
                && self.recorder.aborted_clients() < self.clients.len()
    }

    /// Returns the clients, by index, whose statement is under way.
    fn under_way(&self) -> Vec<usize> {
        let clients = self.clients.iter().enumerate();
        let under_way = clients.filter(|(_, client)| !client.has_ended() && client.awaits_reply());
        under_way.map(|(index, _)| index).collect()
    }

    /// Stops clients that have not ended.
    fn stop_on<R: Reactor>(&mut self, reactor: &mut R) {
        for (index, client) in self.clients.iter_mut().enumerate() {
            if client.has_ended() {
                continue;
            }
            reactor.send(index, &mut |out| {
                client.stop(out);
                AfterSend::Close
            });
        }
    }
}

impl ReactorHandler for Clients {
    fn received(&mut self, link: usize, bytes: &[u8], now: Moment, out: &mut Vec<u8>) -> AfterSend {
        if self.clients[link].has_ended() {
            return AfterSend::Close;
        }
        self.replied.get_or_insert((now, now)).1 = now;
        let next = self.call(link, now, out, |client, context| client.receive(bytes, context));
        // A client that sleeps and hears a notice has its timer already.
        match next {
            Wait::ForReply => AfterSend::Open,
            other => self.note(link, other),
        }
    }

    fn refill(&mut self, link: usize, now: Moment, out: &mut Vec<u8>) -> AfterSend {
        if self.clients[link].has_ended() {
            return AfterSend::Close;
        }
        let next = self.call(link, now, out, Client::refill);
        self.note(link, next)
    }

    fn lost(&mut self, link: usize, how: &str, now: Moment) {
        if self.clients[link].has_ended() {
            return;
        }
        let unsent = &mut Vec::new();
        let next = self.call(link, now, unsent, |client, c| client.connection_lost(how, c));
        self.note(link, next);
    }
}

/// Runs `clients` until all have ended or `stop` is set. Client n uses the reactor's connection n,
/// and the pacer of its group.
///
/// `cancel` has the statements of clients cancelled that nobody waits for any more, while they are
/// still connected: a pooler forgets whose statement it was once the connection is closed.
pub(crate) fn run<R: Reactor>(
    reactor: &mut R,
    clients: Vec<Client>,
    recorder: Recorder,
    pacers: Vec<Pacer>,
    stop: &AtomicBool,
    mut cancel: impl FnMut(&[usize]),
) -> io::Result<ThreadOutcome> {
    let schedule = *recorder.schedule();
    let mut all = Clients::new(clients, recorder, pacers);
    for index in 0..all.clients.len() {
        all.wake_on(reactor, index);
    }
    let deadline = schedule.end_of(Phase::Draining);
    let mut now = reactor.now();
    let mut skipped_turns = 0;
    while all.goes_on(now) && !stop.load(Ordering::Relaxed) {
        all.recorder.tick(now);
        if now >= deadline {
            cancel(&all.under_way());
            for index in 0..all.clients.len() {
                reactor.send(index, &mut |out| all.expire(index, now, out));
            }
            break;
        }
        all.connect_on(reactor);
        let woken = all.wake_due_on(reactor, now);
        if !all.goes_on(now) {
            // Nothing more will come; a wait for it would count as load.
            break;
        }
        if all.active > 0
            && all.next_turn.len() == all.active
            && skipped_turns < R::MAX_SKIPPED_TURNS
        {
            skipped_turns += 1;
            now = reactor.now();
            continue;
        }
        skipped_turns = 0;
        let until = all.next_wake(now).min(deadline);
        reactor.turn(if woken { reactor.now() } else { now }, until, &mut all)?;
        // Replies of one turn were there when the first was read: the last has waited longest.
        let last = all.replied.take().map(|(first, last)| {
            all.recorder.record_lag(last.nanoseconds_since(first));
            last
        });
        // Reading the clock costs a tenth of a statement: it is read anew only for clients that
        // are to be woken.
        now = last
            .filter(|_| all.timers.is_empty() && all.next_turn.is_empty())
            .unwrap_or_else(|| reactor.now());
    }
    let ended = reactor.now();
    cancel(&all.under_way());
    all.stop_on(reactor);
    let tally = all.recorder.finish(ended);
    Ok(ThreadOutcome { tally, ended, reactor: None })
}

#[cfg(test)]
mod tests;
