//! One connection on a thread of its own: it waits in the read itself, which saves the wait before
//! every read.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::{Connector, Driver, Keep, Reactor, timespec};
use crate::connect::Stream;
use crate::schedule::{Clock, Moment};

/// Bytes read at once.
const READ: usize = 64 * 1024;
/// How long a read waits at most. A turn that has less time asks the kernel for readiness first.
const WAIT: Duration = Duration::from_millis(40);

/// A connection that blocks.
pub struct Blocking {
    connector: Option<Connector>,
    clock: Clock,
    /// None once it is closed.
    stream: Option<Stream>,
    /// What is not sent yet.
    out: Vec<u8>,
    /// Whether it is to be closed once all is sent.
    closing: bool,
    /// Why sending failed: it is read to its end, then reported as gone.
    broken: Option<String>,
    scratch: Box<[u8]>,
}

impl Blocking {
    /// A reactor of one `stream`, which is not encrypted; new connections are `connector`'s.
    ///
    /// # Errors
    /// The kernel refuses to limit the time of a read.
    pub fn new(clock: Clock, mut stream: Stream, connector: Option<Connector>) -> io::Result<Self> {
        stream.set_blocking(Some(WAIT))?;
        Ok(Self {
            connector,
            clock,
            stream: Some(stream),
            out: Vec::with_capacity(512),
            closing: false,
            broken: None,
            scratch: vec![0; READ].into_boxed_slice(),
        })
    }

    /// Sends as much as the kernel takes without waiting: a server that waits for its replies to be
    /// read must not be waited for.
    fn flush(&mut self) {
        let Some(stream) = self.stream.as_ref().filter(|_| self.broken.is_none()) else {
            self.out.clear();
            return;
        };
        let mut sent = 0;
        while sent < self.out.len() {
            match send(stream, &self.out[sent..], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(n) => sent += n,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    self.out.drain(..sent);
                    return;
                }
                Err(e) => {
                    self.out.clear();
                    self.broken = Some(io::Error::from(e).to_string());
                    return;
                }
            }
        }
        self.out.clear();
        if self.closing
            && let Some(mut stream) = self.stream.take()
        {
            stream.shutdown();
        }
    }

    /// Takes what `flags` lets it read.
    fn read(&mut self, flags: RecvFlags, driver: &mut impl Driver) {
        let Some(stream) = &self.stream else { return };
        let how = match recv(stream, &mut self.scratch[..], flags) {
            Ok((_, 0)) => "the server closed the connection".to_owned(),
            Ok((_, n)) => {
                let now = self.clock.now();
                if driver.received(0, &self.scratch[..n], now, &mut self.out) == Keep::Close {
                    self.closing = true;
                }
                if self.closing || !self.out.is_empty() {
                    self.flush();
                }
                return;
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return,
            Err(e) => io::Error::from(e).to_string(),
        };
        self.stream = None;
        self.out.clear();
        let how = self.broken.take().unwrap_or(how);
        if !self.closing {
            driver.lost(0, &how, self.clock.now());
        }
    }
}

impl Reactor for Blocking {
    fn now(&self) -> Moment {
        self.clock.now()
    }

    fn send(&mut self, _: usize, fill: &mut dyn FnMut(&mut Vec<u8>) -> Keep) {
        if fill(&mut self.out) == Keep::Close {
            self.closing = true;
        }
        self.flush();
    }

    fn reconnect(&mut self, link: usize) -> Result<Duration, String> {
        let begun = self.clock.now();
        let Some(connector) = &mut self.connector else {
            return Err("connections are not renewed".to_owned());
        };
        // The old one goes first: a server at its limit has no room for both.
        self.stream = None;
        let mut stream = connector(link)?;
        stream
            .set_blocking(Some(WAIT))
            .map_err(|e| format!("the kernel refuses a limit for its reads: {e}"))?;
        self.stream = Some(stream);
        self.out.clear();
        (self.closing, self.broken) = (false, None);
        Ok(self.clock.now().since(begun))
    }

    fn turn(&mut self, now: Moment, until: Moment, driver: &mut impl Driver) -> io::Result<()> {
        let wait = until.since(now);
        let Some(stream) = &self.stream else {
            std::thread::sleep(wait);
            return Ok(());
        };
        if self.out.is_empty() && wait >= WAIT {
            self.read(RecvFlags::empty(), driver);
            return Ok(());
        }
        let mut wanted = PollFlags::IN;
        if !self.out.is_empty() {
            wanted |= PollFlags::OUT;
        }
        let mut fds = [PollFd::new(stream, wanted)];
        match poll(&mut fds, Some(&timespec(wait))) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(e) => return Err(e.into()),
        }
        let ready = fds[0].revents();
        if ready.contains(PollFlags::OUT) {
            self.flush();
        }
        if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            self.read(RecvFlags::DONTWAIT, driver);
        }
        Ok(())
    }
}
