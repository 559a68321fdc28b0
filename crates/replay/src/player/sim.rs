//! A simulated server, network and clock.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use pgdyno_connect::ConnectError;
use pgdyno_engine::reactor::{AfterSend, Reactor, ReactorHandler, ReconnectError};
use pgdyno_engine::schedule::Moment;
use pgdyno_model::target::Address;

use crate::connections::Connections;

/// Something that a link's client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) link: usize,
    pub(super) at: Duration,
    /// Type bytes of the messages, such as `PBES`.
    pub(super) tags: String,
    pub(super) bytes: Vec<u8>,
}

/// Answers a link's client: bytes, and how long they take. None closes the connection.
pub(super) type Answer = Box<dyn FnMut(&Sent) -> Option<(Vec<u8>, Duration)>>;

/// A network on which every client talks to one server. Its clock runs only in
/// [`Reactor::turn`].
pub(super) struct SimReactor {
    now: Moment,
    answer: Answer,
    pub(super) sent: Vec<Sent>,
    /// Bytes on their way, by link; none stands for the end of the connection.
    arriving: Vec<(Moment, usize, Option<Vec<u8>>)>,
}

impl SimReactor {
    pub(super) fn new(answer: Answer) -> Self {
        Self { now: Moment(0), answer, sent: Vec::new(), arriving: Vec::new() }
    }

    fn take(&mut self, link: usize, bytes: Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let at = Duration::from_nanos(self.now.0);
        let sent = Sent { link, at, tags: tags(&bytes), bytes };
        if !sent.tags.ends_with('X') {
            let answer = (self.answer)(&sent);
            let took = answer.as_ref().map_or(Duration::ZERO, |(_, took)| *took);
            self.arriving.push((self.now.after(took), link, answer.map(|(bytes, _)| bytes)));
        }
        self.sent.push(sent);
    }
}

fn tags(mut bytes: &[u8]) -> String {
    let mut tags = String::new();
    while let [tag, a, b, c, d, ..] = bytes {
        tags.push(char::from(*tag));
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        bytes = &bytes[1 + length..];
    }
    tags
}

impl Reactor for SimReactor {
    fn now(&self) -> Moment {
        self.now
    }

    fn send(&mut self, link: usize, fill: &mut dyn FnMut(&mut Vec<u8>) -> AfterSend) {
        let mut out = Vec::new();
        fill(&mut out);
        self.take(link, out);
    }

    fn reconnect(&mut self, _link: usize) -> Result<Duration, ReconnectError> {
        Ok(Duration::ZERO)
    }

    fn turn(
        &mut self,
        _now: Moment,
        until: Moment,
        handler: &mut impl ReactorHandler,
    ) -> io::Result<()> {
        let next = self.arriving.iter().map(|(at, ..)| *at).min().unwrap_or(Moment::NEVER);
        self.now = self.now.max(until.min(next));
        let (due, later): (Vec<_>, Vec<_>) =
            self.arriving.drain(..).partition(|(at, ..)| *at <= self.now);
        self.arriving = later;
        for (_, link, bytes) in due {
            match bytes {
                Some(bytes) => {
                    let mut out = Vec::new();
                    handler.received(link, &bytes, self.now, &mut out);
                    self.take(link, out);
                }
                None => handler.lost(link, "the server closed the connection", self.now),
            }
        }
        Ok(())
    }
}

/// Connections that are open at once, unless the server refuses.
#[derive(Default)]
pub(super) struct SimConnections {
    pub(super) finished: Vec<usize>,
    /// Sessions that are connected before the server refuses more.
    pub(super) limit: Option<usize>,
    pub(super) connected: usize,
    pub(super) cancelled: Rc<RefCell<Vec<usize>>>,
}

impl Connections for SimConnections {
    fn connect(&mut self, link: usize, _database: usize) {
        self.finished.push(link);
    }

    fn finished(&mut self) -> Option<(usize, Result<(), ConnectError>)> {
        let link = self.finished.pop()?;
        self.connected += 1;
        if self.limit.is_some_and(|limit| self.connected > limit) {
            let address = Address::Tcp { host: "sim".into(), port: 1 };
            return Some((link, Err(ConnectError::Interrupted { address })));
        }
        Some((link, Ok(())))
    }

    fn cancel(&mut self, link: usize) {
        self.cancelled.borrow_mut().push(link);
    }

    fn finish_cancelling(&mut self) {}
}
