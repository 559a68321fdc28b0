//! A simulated clock and network for deterministic tests.
//!
//! Equal input gives equal runs, and a simulated second takes no time. A [`Peer`] answers after
//! delays of its choice. A [`Network`] may deliver bytes in small pieces, so that messages arrive
//! cut at every place.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::time::Duration;

use super::{AfterSend, Reactor, ReactorHandler, ReconnectError};
use crate::schedule::Moment;

/// Time that passes with each turn, so that no loop stands still for ever.
const TICK: Duration = Duration::from_micros(1);

/// Act of a peer, some time after it received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerAction {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Closes the connection.
    HangUp,
}

/// Other end of a connection.
pub trait Peer {
    /// Handles `bytes` that arrived at `now`; returns acts with their delays.
    fn receive(&mut self, bytes: &[u8], now: Moment) -> Vec<(Duration, PeerAction)>;
}

/// Properties of the simulated network.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Bytes that one read returns at most.
    pub read: usize,
    /// Bytes that one write takes at most. The rest follows one [`Network::pace`] later.
    pub write: usize,
    /// Time between pieces.
    pub pace: Duration,
    /// Time in which no new connection can be made, from and until.
    pub away: Option<(Moment, Moment)>,
}

impl Default for Network {
    fn default() -> Self {
        Self { read: usize::MAX, write: usize::MAX, pace: Duration::from_micros(1), away: None }
    }
}

struct Link<P> {
    peer: P,
    out: Vec<u8>,
    open: bool,
    /// State once all bytes are sent.
    after: AfterSend,
    /// Time until which earlier pieces are on their way to the client: pieces arrive in order.
    busy_until: Moment,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The client's end takes more bytes.
    Writable,
    /// The client's end has taken all bytes, and is to be refilled.
    Drained,
    /// Bytes arrive at the client.
    Arrive(Vec<u8>),
    /// The peer has closed.
    Closed,
}

/// Connections to simulated peers.
pub struct Sim<P> {
    now: Moment,
    network: Network,
    links: Vec<Link<P>>,
    /// Events by time, then by the order in which they were caused.
    events: BinaryHeap<Reverse<(Moment, u64, usize, Event)>>,
    caused: u64,
}

impl<P: Peer> Sim<P> {
    /// Creates a simulation with a connection to each of `peers`, at moment 0.
    pub fn new(peers: Vec<P>, network: Network) -> Self {
        let link = |peer| Link {
            peer,
            out: Vec::new(),
            open: true,
            after: AfterSend::Open,
            busy_until: Moment(0),
        };
        Self {
            now: Moment(0),
            network,
            links: peers.into_iter().map(link).collect(),
            events: BinaryHeap::new(),
            caused: 0,
        }
    }

    /// Returns the peers after the run.
    pub fn into_peers(self) -> impl Iterator<Item = P> {
        self.links.into_iter().map(|link| link.peer)
    }

    fn cause(&mut self, at: Moment, link: usize, event: Event) {
        self.caused += 1;
        self.events.push(Reverse((at, self.caused, link, event)));
    }

    /// Gives the peer as many bytes as one write takes.
    fn flush(&mut self, index: usize) {
        let link = &mut self.links[index];
        if !link.open {
            link.out.clear();
            return;
        }
        let taken = link.out.len().min(self.network.write);
        if taken == 0 {
            return;
        }
        let bytes: Vec<u8> = link.out.drain(..taken).collect();
        let more = !link.out.is_empty();
        let answers = link.peer.receive(&bytes, self.now);
        if more {
            self.cause(self.now.after(self.network.pace), index, Event::Writable);
        } else if link.after == AfterSend::Close {
            link.open = false;
        } else if link.after == AfterSend::Refill {
            link.after = AfterSend::Open;
            self.cause(self.now.after(self.network.pace), index, Event::Drained);
        }
        for (delay, act) in answers {
            let ready = self.now.after(delay).max(self.links[index].busy_until);
            match act {
                PeerAction::HangUp => self.cause(ready, index, Event::Closed),
                PeerAction::Send(bytes) => {
                    let mut at = ready;
                    for piece in bytes.chunks(self.network.read.max(1)) {
                        self.cause(at, index, Event::Arrive(piece.to_vec()));
                        at = at.after(self.network.pace);
                    }
                    self.links[index].busy_until = at;
                }
            }
        }
    }

    fn deliver(&mut self, index: usize, event: &Event, driver: &mut impl ReactorHandler) {
        let now = self.now;
        let link = &mut self.links[index];
        if !link.open || link.after == AfterSend::Close && *event != Event::Writable {
            return;
        }
        match event {
            Event::Writable => self.flush(index),
            Event::Drained => {
                link.after = driver.refill(index, now, &mut link.out);
                self.flush(index);
            }
            Event::Closed => {
                link.open = false;
                driver.lost(index, "the server closed the connection", now);
            }
            Event::Arrive(bytes) => {
                let waiting = !link.out.is_empty();
                let after = driver.received(index, bytes, now, &mut link.out);
                link.after = link.after.max(after);
                // What waits for room goes out when there is some.
                if !waiting {
                    self.flush(index);
                }
            }
        }
    }
}

impl<P: Peer> Reactor for Sim<P> {
    /// Simulated time passes only in turns.
    const MAX_SKIPPED_TURNS: u32 = 0;

    fn now(&self) -> Moment {
        self.now
    }

    fn send(&mut self, link: usize, fill: &mut dyn FnMut(&mut Vec<u8>) -> AfterSend) {
        let waiting = !self.links[link].out.is_empty();
        let after = fill(&mut self.links[link].out);
        self.links[link].after = self.links[link].after.max(after);
        if !waiting {
            self.flush(link);
        }
    }

    fn reconnect(&mut self, link: usize) -> Result<Duration, ReconnectError> {
        if self.network.away.is_some_and(|(from, until)| (from..until).contains(&self.now)) {
            return Err(ReconnectError::Unreachable);
        }
        // Bytes on their way on the old connection never arrive.
        self.events.retain(|Reverse((_, _, at, _))| *at != link);
        let link = &mut self.links[link];
        link.out.clear();
        link.open = true;
        link.after = AfterSend::Open;
        let took = self.network.pace;
        self.now = self.now.after(took);
        Ok(took)
    }

    fn turn(
        &mut self,
        _: Moment,
        until: Moment,
        driver: &mut impl ReactorHandler,
    ) -> io::Result<()> {
        let until = until.max(self.now.after(TICK));
        let Some(Reverse((at, ..))) = self.events.peek() else {
            self.now = until;
            return Ok(());
        };
        let at = *at;
        if at > until {
            self.now = until;
            return Ok(());
        }
        self.now = self.now.max(at);
        while let Some(Reverse((due, ..))) = self.events.peek()
            && *due <= at
        {
            if let Some(Reverse((_, _, link, event))) = self.events.pop() {
                self.deliver(link, &event, driver);
            }
        }
        Ok(())
    }
}
