//! One thread's clients, on one reactor, from the first transaction to the last.

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
use crate::schedule::Moment;

/// How long a stop may go unnoticed.
const STOP_CHECK: Duration = Duration::from_millis(50);

struct Clients {
    clients: Vec<Client>,
    recorder: Recorder,
    /// Whom to wake when: at most one entry a client.
    timers: BinaryHeap<Reverse<(Moment, usize)>>,
    /// Who is to be woken at once.
    again: VecDeque<usize>,
    pacer: Pacer,
    /// When the present turn brought its first reply, and its last.
    woken: Option<(Moment, Moment)>,
    /// Who waits for a new connection.
    connecting: Vec<usize>,
    active: usize,
}

impl Clients {
    /// Notes what client `index` waits for.
    fn note(&mut self, index: usize, next: Wait) -> AfterSend {
        match next {
            Wait::ForReply => AfterSend::Open,
            Wait::Until(at) => {
                self.timers.push(Reverse((at, index)));
                self.keep(index)
            }
            Wait::NextTurn => {
                self.again.push_back(index);
                self.keep(index)
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

    fn keep(&self, index: usize) -> AfterSend {
        if self.clients[index].is_connected() { AfterSend::Open } else { AfterSend::Close }
    }

    fn wake(&mut self, index: usize, now: Moment, out: &mut Vec<u8>) -> AfterSend {
        if self.clients[index].has_ended() {
            return AfterSend::Close;
        }
        let next = self.clients[index].wake(&mut ClientContext {
            now,
            out,
            recorder: &mut self.recorder,
            pacer: &mut self.pacer,
        });
        self.note(index, next)
    }

    fn expire(&mut self, index: usize, now: Moment, out: &mut Vec<u8>) -> AfterSend {
        if self.clients[index].has_ended() {
            return AfterSend::Close;
        }
        let next = self.clients[index].expire(&mut ClientContext {
            now,
            out,
            recorder: &mut self.recorder,
            pacer: &mut self.pacer,
        });
        self.note(index, next)
    }

    fn connection_failed(&mut self, index: usize, how: &str, now: Moment) {
        let mut nowhere = Vec::new();
        let next = self.clients[index].connection_failed(
            how,
            &mut ClientContext {
                now,
                out: &mut nowhere,
                recorder: &mut self.recorder,
                pacer: &mut self.pacer,
            },
        );
        self.note(index, next);
    }
}

impl ReactorHandler for Clients {
    fn received(&mut self, link: usize, bytes: &[u8], now: Moment, out: &mut Vec<u8>) -> AfterSend {
        if self.clients[link].has_ended() {
            return AfterSend::Close;
        }
        self.woken.get_or_insert((now, now)).1 = now;
        let next = self.clients[link].receive(
            bytes,
            &mut ClientContext { now, out, recorder: &mut self.recorder, pacer: &mut self.pacer },
        );
        // A client that sleeps and hears a notice has its timer already.
        match next {
            Wait::ForReply => AfterSend::Open,
            other => self.note(link, other),
        }
    }

    fn lost(&mut self, link: usize, how: &str, now: Moment) {
        if self.clients[link].has_ended() {
            return;
        }
        let mut nowhere = Vec::new();
        let next = self.clients[link].connection_lost(
            how,
            &mut ClientContext {
                now,
                out: &mut nowhere,
                recorder: &mut self.recorder,
                pacer: &mut self.pacer,
            },
        );
        self.note(link, next);
    }
}

/// Runs `clients`, whose connections are `reactor`'s by the same index, until all have ended or
/// `stop` is set.
pub(crate) fn run<R: Reactor>(
    reactor: &mut R,
    clients: Vec<Client>,
    recorder: Recorder,
    pacer: Pacer,
    stop: &AtomicBool,
) -> io::Result<ThreadOutcome> {
    let schedule = *recorder.schedule();
    let count = clients.len();
    let mut all = Clients {
        clients,
        recorder,
        timers: BinaryHeap::with_capacity(count),
        again: VecDeque::with_capacity(count),
        pacer,
        woken: None,
        connecting: Vec::new(),
        active: count,
    };
    for index in 0..count {
        let now = reactor.now();
        reactor.send(index, &mut |out| all.wake(index, now, out));
    }
    let deadline = schedule.closing.after(schedule.grace);
    let mut now = reactor.now();
    let mut turns_left_out = 0;
    while all.active > 0 && !stop.load(Ordering::Relaxed) {
        all.recorder.tick(now);
        if now >= deadline {
            for index in 0..count {
                reactor.send(index, &mut |out| all.expire(index, now, out));
            }
            break;
        }
        for index in std::mem::take(&mut all.connecting) {
            match reactor.reconnect(index) {
                Ok(took) => {
                    all.recorder.record_reconnections(1, took);
                    all.clients[index].connection_restored();
                    let now = reactor.now();
                    reactor.send(index, &mut |out| all.wake(index, now, out));
                }
                Err(how) => all.connection_failed(index, &how, reactor.now()),
            }
        }
        let mut woken = !all.again.is_empty();
        // Those who ask for it anew have their turn after the others' replies.
        for _ in 0..all.again.len() {
            let Some(index) = all.again.pop_front() else { break };
            let now = reactor.now();
            reactor.send(index, &mut |out| all.wake(index, now, out));
        }
        let due = all.timers.len();
        for _ in 0..due {
            match all.timers.peek() {
                Some(Reverse((at, index))) if *at <= now => {
                    let (at, index) = (*at, *index);
                    all.timers.pop();
                    // Those before it took their time.
                    let now = reactor.now();
                    all.recorder.record_lag(now.nanoseconds_since(at));
                    reactor.send(index, &mut |out| all.wake(index, now, out));
                    woken = true;
                }
                _ => break,
            }
        }
        if all.active == 0 {
            // Nothing more will come; to wait for it would be counted.
            break;
        }
        if all.again.len() == all.active && turns_left_out < R::MAX_SKIPPED_TURNS {
            turns_left_out += 1;
            now = reactor.now();
            continue;
        }
        turns_left_out = 0;
        let timer = all.timers.peek().map_or(Moment::NEVER, |Reverse((at, _))| *at);
        let waits = all.connecting.is_empty() && all.again.is_empty();
        let soon = if waits { now.after(STOP_CHECK) } else { now };
        let until = soon.min(all.recorder.next_tick()).min(timer).min(deadline);
        reactor.turn(if woken { reactor.now() } else { now }, until, &mut all)?;
        // Replies of one turn were there when the first was read: the last has waited longest.
        let last = all.woken.take().map(|(first, last)| {
            all.recorder.record_lag(last.nanoseconds_since(first));
            last
        });
        // To read the clock is a tenth of what a statement costs here: only who is to be woken has
        // to know better.
        now = last
            .filter(|_| all.timers.is_empty() && all.again.is_empty())
            .unwrap_or_else(|| reactor.now());
    }
    let mut interrupted = Vec::new();
    for index in 0..count {
        let client = &mut all.clients[index];
        if client.has_ended() {
            continue;
        }
        if client.awaits_reply() {
            interrupted.push(index);
        }
        reactor.send(index, &mut |out| {
            client.stop(out);
            AfterSend::Close
        });
    }
    let ended = reactor.now();
    Ok(ThreadOutcome {
        tally: all.recorder.finish(ended),
        ended,
        interrupted,
        reactor: String::new(),
    })
}

#[cfg(test)]
mod tests;
