//! A reactor on `io_uring`: one system call submits all clients' sends and waits for replies.
//!
//! Every connection has one multishot receive under way, which fills buffers from a common ring. It
//! has at most one send under way. The send's buffer belongs to the kernel from submission to
//! completion: nothing here touches, moves or frees it meanwhile.
#![allow(unsafe_code)]

use std::io;
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

use io_uring::types::{Fd, SubmitArgs, TimeoutFlags, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use pgdyno_connect::Stream;
use rustix::fd::{AsFd, AsRawFd};

use super::alarm::Alarm;
use super::buffers::ReceiveBuffers;
use super::{AfterSend, Connector, Reactor, ReactorHandler, ReconnectError};
use crate::schedule::{Clock, Moment};

/// Queued submissions that are handed to the kernel early, so that servers begin to work.
const BATCH: u32 = 64;
/// Time that closing waits for operations under way.
const END: Duration = Duration::from_secs(2);

/// Lowest bit of a completion's user data: set for a send. The other bits are the connection's
/// index.
const SEND: u64 = 1;
/// User data of the timer.
const ALARM: u64 = u64::MAX;

struct Link {
    /// None once the connection is closed.
    stream: Option<Stream>,
    /// Bytes that are not handed to the kernel yet.
    out: Vec<u8>,
    /// Bytes that the kernel sends while `is_sending`.
    sending: Vec<u8>,
    /// Bytes of `sending` that are sent (count).
    sent: usize,
    is_sending: bool,
    /// Whether a receive is under way.
    is_receiving: bool,
    /// State once all bytes are sent.
    after: AfterSend,
    /// Error of a send. The connection is read to its end, then reported as lost.
    broken: Option<String>,
}

impl Link {
    /// Puts the next bytes in place once all bytes handed to the kernel are sent.
    fn turn_over(&mut self) {
        if self.sent == self.sending.len() {
            self.sending.clear();
            self.sent = 0;
            std::mem::swap(&mut self.sending, &mut self.out);
        }
    }
}

/// Result of one operation.
#[derive(Clone, Copy)]
struct Completion {
    data: u64,
    result: i32,
    flags: u32,
}

impl Completion {
    /// Returns the connection's index.
    fn link(self) -> usize {
        usize::try_from(self.data >> 1).unwrap_or(usize::MAX)
    }

    fn is_send(self) -> bool {
        self.data & SEND != 0
    }
}

/// Connections on one `io_uring`.
pub struct Uring {
    connector: Option<Connector>,
    // Drop order: the ring before the buffers that it may write to.
    ring: IoUring,
    buffers: ManuallyDrop<ReceiveBuffers>,
    clock: Clock,
    links: Vec<Link>,
    /// Completions taken from the kernel and not handled yet.
    completed: Vec<Completion>,
    /// Connections that are to be refilled.
    drained: Vec<usize>,
    /// Submissions queued since the last system call (count).
    queued: u32,
    alarm: Alarm,
    /// Time of the timer, which the kernel reads on submission.
    alarm_time: Box<Timespec>,
}

impl Uring {
    /// Checks whether the kernel lets this process use `io_uring` as this reactor does.
    ///
    /// # Errors
    /// Containers and `kernel.io_uring_disabled` may forbid it; kernels before 6.1 lack parts.
    pub fn probe() -> io::Result<()> {
        Self::new(Clock::new(Instant::now()), Vec::new(), None)?.submit()
    }

    /// Creates a reactor of `streams`, which are not encrypted; `connector` makes new connections.
    ///
    /// # Errors
    /// The kernel refuses a ring.
    pub fn new(
        clock: Clock,
        mut streams: Vec<Stream>,
        connector: Option<Connector>,
    ) -> io::Result<Self> {
        for stream in &mut streams {
            // A receive on a non-blocking socket would fail at once instead of waiting.
            stream.set_blocking(None)?;
        }
        let entries =
            u32::try_from(streams.len().saturating_mul(2)).unwrap_or(u32::MAX).clamp(64, 4096);
        let links = streams
            .into_iter()
            .map(|stream| Link {
                stream: Some(stream),
                out: Vec::with_capacity(256),
                sending: Vec::with_capacity(256),
                sent: 0,
                is_sending: false,
                is_receiving: false,
                after: AfterSend::Open,
                broken: None,
            })
            .collect::<Vec<_>>();
        let ring = ring(entries.next_power_of_two())?;
        let buffers = ManuallyDrop::new(ReceiveBuffers::register(links.len(), &ring.submitter())?);
        let mut uring = Self {
            connector,
            ring,
            buffers,
            clock,
            completed: Vec::with_capacity(2 * links.len() + 1),
            links,
            drained: Vec::new(),
            queued: 0,
            alarm: Alarm::new(clock),
            alarm_time: Box::default(),
        };
        for index in 0..uring.links.len() {
            uring.receive(index)?;
        }
        Ok(uring)
    }

    /// Queues `entry`; submits the queue first if it is full.
    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: an entry of `receive` names no memory but the group of buffers, which
            // outlives the ring; one of `transmit` a connection's own, which is left alone while
            // `is_sending`, and the drop waits for that; the timer's its time, which the kernel
            // reads when it is handed the entry, or never.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                self.queued += 1;
                return Ok(());
            }
            self.submit()?;
        }
    }

    fn submit(&mut self) -> io::Result<()> {
        match self.ring.submit() {
            Ok(_) => {}
            // The kernel accepts more once completions are taken.
            Err(e) if is_busy(&e) => self.collect(),
            Err(e) => return Err(e),
        }
        self.queued = 0;
        Ok(())
    }

    /// Takes completions from the kernel.
    fn collect(&mut self) {
        let completions = self.ring.completion();
        self.completed.extend(completions.map(|c| Completion {
            data: c.user_data(),
            result: c.result(),
            flags: c.flags(),
        }));
    }

    /// Starts a receive on connection `index`, unless one is under way.
    fn receive(&mut self, index: usize) -> io::Result<()> {
        let link = &mut self.links[index];
        let Some(stream) = link.stream.as_ref().filter(|_| !link.is_receiving) else {
            return Ok(());
        };
        let entry = opcode::RecvMulti::new(Fd(stream.as_fd().as_raw_fd()), ReceiveBuffers::GROUP)
            .build()
            .user_data((index as u64) << 1);
        link.is_receiving = true;
        self.push(&entry)
    }

    /// Starts a send of connection `index`, unless one is under way.
    fn transmit(&mut self, index: usize) -> io::Result<()> {
        let link = &mut self.links[index];
        if link.is_sending {
            return Ok(());
        }
        link.turn_over();
        let Some(stream) = link.stream.as_ref().filter(|_| link.broken.is_none()) else {
            link.out.clear();
            link.sending.clear();
            return Ok(());
        };
        let rest = &link.sending[link.sent..];
        if rest.is_empty() {
            if link.after == AfterSend::Close {
                // Ends the receive, too.
                let _ = rustix::net::shutdown(stream, rustix::net::Shutdown::Both);
                if !link.is_receiving {
                    link.stream = None;
                }
            }
            return Ok(());
        }
        let length = u32::try_from(rest.len()).unwrap_or(u32::MAX);
        let entry = opcode::Send::new(Fd(stream.as_fd().as_raw_fd()), rest.as_ptr(), length)
            .flags(rustix::net::SendFlags::NOSIGNAL.bits().cast_signed())
            .build()
            .user_data((index as u64) << 1 | SEND);
        link.is_sending = true;
        self.push(&entry)
    }

    /// Handles the completion of a send: bytes sent, or an error.
    fn sent(&mut self, index: usize, result: i32) -> io::Result<()> {
        let link = &mut self.links[index];
        link.is_sending = false;
        match usize::try_from(result) {
            Ok(n) => {
                link.sent += n;
                // Reuse the memory: it may still be in a cache.
                if link.out.is_empty() {
                    link.turn_over();
                }
            }
            Err(_) => {
                let error = io::Error::from_raw_os_error(-result);
                if error.kind() != io::ErrorKind::Interrupted {
                    link.broken = Some(error.to_string());
                }
            }
        }
        if link.stream.is_none() {
            return Ok(());
        }
        if link.sent < link.sending.len() || !link.out.is_empty() || link.after == AfterSend::Close
        {
            return self.transmit(index);
        }
        if link.after == AfterSend::Refill {
            link.after = AfterSend::Open;
            self.drained.push(index);
        }
        Ok(())
    }

    /// Handles the completion of a receive: bytes, the end of the stream, or an error.
    fn arrived(
        &mut self,
        index: usize,
        arrival: Completion,
        driver: &mut impl ReactorHandler,
    ) -> io::Result<()> {
        let buffer = cqueue::buffer_select(arrival.flags);
        let link = &mut self.links[index];
        link.is_receiving = cqueue::more(arrival.flags);
        if link.after == AfterSend::Close {
            if !link.is_sending && !link.is_receiving {
                link.stream = None;
            }
            buffer.into_iter().for_each(|id| self.buffers.give_back(id));
            return Ok(());
        }
        let how = match (usize::try_from(arrival.result), buffer) {
            (Ok(n), Some(id)) if n > 0 => {
                // Read for each reply: replies before it in the batch took their time.
                let now = self.clock.now();
                let filled = self.buffers.filled(id, n);
                let after = driver.received(index, filled, now, &mut link.out);
                self.buffers.give_back(id);
                let link = &mut self.links[index];
                link.after = link.after.max(after);
                if link.after == AfterSend::Close || !link.out.is_empty() {
                    self.transmit(index)?;
                }
                return self.receive(index);
            }
            (Ok(_), _) => "the server closed the connection".to_owned(),
            (Err(_), _) => {
                let error = io::Error::from_raw_os_error(-arrival.result);
                let no_buffers = Some(rustix::io::Errno::NOBUFS.raw_os_error());
                if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
                    || error.raw_os_error() == no_buffers
                {
                    return self.receive(index);
                }
                error.to_string()
            }
        };
        link.stream = None;
        let how = link.broken.take().unwrap_or(how);
        driver.lost(index, &how, self.clock.now());
        Ok(())
    }

    /// Lets `driver` append more bytes for a connection that has taken all others.
    fn refill(&mut self, index: usize, driver: &mut impl ReactorHandler) -> io::Result<()> {
        let link = &mut self.links[index];
        if link.stream.is_none() || link.after == AfterSend::Close {
            return Ok(());
        }
        link.after = driver.refill(index, self.clock.now(), &mut link.out);
        self.transmit(index)
    }

    /// Makes the timer complete at `at` or before.
    #[inline]
    fn set_timer(&mut self, at: Moment) -> io::Result<()> {
        let Some(time) = self.alarm.advance(at) else { return Ok(()) };
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
        *self.alarm_time = Timespec::new().sec(time.tv_sec.cast_unsigned()).nsec(nanoseconds);
        let entry = opcode::Timeout::new(&raw const *self.alarm_time)
            .flags(TimeoutFlags::ABS)
            .build()
            .user_data(ALARM);
        self.push(&entry)
    }

    /// Submits the queue and waits for a completion, at most for `limit`.
    #[inline]
    fn enter(&mut self, limit: Option<Duration>) -> io::Result<()> {
        let entered = match limit.map(Timespec::from) {
            None => self.ring.submitter().submit_and_wait(1),
            Some(limit) => {
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&limit))
            }
        };
        match entered {
            Ok(_) => {}
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::TIME.raw_os_error()) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted || is_busy(&e) => {}
            Err(e) => return Err(e),
        }
        self.queued = 0;
        self.collect();
        Ok(())
    }

    /// Waits until no operation of connection `index`, or of any connection, is under way.
    ///
    /// Returns false if that takes longer than [`END`].
    fn settle(&mut self, index: Option<usize>) -> bool {
        let begun = self.clock.now();
        let mut others = Vec::new();
        loop {
            let busy = |link: &Link| link.is_sending || link.is_receiving;
            let unsettled = match index {
                Some(index) => busy(&self.links[index]),
                None => self.links.iter().any(busy),
            };
            let left = END.saturating_sub(self.clock.now().since(begun));
            if !unsettled || left.is_zero() {
                self.completed.append(&mut others);
                return !unsettled;
            }
            if self.completed.is_empty() && self.enter(Some(left)).is_err() {
                self.completed.append(&mut others);
                return false;
            }
            for completion in std::mem::take(&mut self.completed) {
                let link = completion.link();
                if completion.data == ALARM {
                    self.alarm.went_off();
                } else if index.is_some_and(|index| index != link) {
                    others.push(completion);
                } else if completion.is_send() {
                    if self.sent(link, completion.result).is_err() {
                        return false;
                    }
                } else {
                    self.links[link].is_receiving = cqueue::more(completion.flags);
                    let buffer = cqueue::buffer_select(completion.flags);
                    buffer.into_iter().for_each(|id| self.buffers.give_back(id));
                }
            }
        }
    }
}

fn is_busy(error: &io::Error) -> bool {
    let busy = [rustix::io::Errno::BUSY, rustix::io::Errno::AGAIN];
    busy.iter().any(|e| error.raw_os_error() == Some(e.raw_os_error()))
}

/// Creates a ring whose completions are delivered only on request, which saves interruptions.
///
/// Kernels that support it, from 6.1 on, support everything else that is needed.
fn ring(entries: u32) -> io::Result<IoUring> {
    IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(entries)
}

impl Reactor for Uring {
    fn now(&self) -> Moment {
        self.clock.now()
    }

    fn send(&mut self, link: usize, fill: &mut dyn FnMut(&mut Vec<u8>) -> AfterSend) {
        let after = fill(&mut self.links[link].out);
        self.links[link].after = self.links[link].after.max(after);
        if let Err(e) = self.transmit(link) {
            self.links[link].broken = Some(e.to_string());
        }
    }

    fn reconnect(&mut self, link: usize) -> Result<Duration, ReconnectError> {
        let begun = self.clock.now();
        if self.connector.is_none() {
            return Err(ReconnectError::NoConnector);
        }
        // The old connection is shut down once its bytes are sent.
        self.links[link].after = AfterSend::Close;
        if self.transmit(link).is_err() || !self.settle(Some(link)) {
            return Err(ReconnectError::StillInUse);
        }
        // The old connection is closed first: a server at its limit has no room for both.
        self.links[link].stream = None;
        let Some(connector) = &mut self.connector else {
            return Err(ReconnectError::NoConnector);
        };
        let mut stream = connector(link)?;
        let refused = |action| move |cause| ReconnectError::Refused { action, cause };
        stream.set_blocking(None).map_err(refused("the connection cannot be made to wait"))?;
        let fresh = &mut self.links[link];
        fresh.stream = Some(stream);
        fresh.out.clear();
        fresh.sending.clear();
        fresh.sent = 0;
        (fresh.after, fresh.broken) = (AfterSend::Open, None);
        self.drained.retain(|index| *index != link);
        self.receive(link).map_err(refused("io_uring refuses the connection"))?;
        Ok(self.clock.now().since(begun))
    }

    fn turn(
        &mut self,
        now: Moment,
        until: Moment,
        driver: &mut impl ReactorHandler,
    ) -> io::Result<()> {
        if self.completed.is_empty() {
            if until > now && self.drained.is_empty() {
                self.set_timer(until)?;
                self.enter(None)?;
            } else {
                self.enter(Some(Duration::ZERO))?;
            }
        }
        // Connections that are drained again have the next turn.
        for _ in 0..self.drained.len() {
            let index = self.drained.remove(0);
            self.refill(index, driver)?;
        }
        // Completions that are added meanwhile have the next turn.
        let count = self.completed.len();
        for next in 0..count {
            let completion = self.completed[next];
            let index = completion.link();
            if completion.data == ALARM {
                self.alarm.went_off();
            } else if completion.is_send() {
                self.sent(index, completion.result)?;
            } else {
                self.arrived(index, completion, driver)?;
            }
            if self.queued >= BATCH {
                self.submit()?;
            }
        }
        self.completed.drain(..count);
        Ok(())
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        for index in 0..self.links.len() {
            let link = &self.links[index];
            // A send under way, mostly a Terminate, is completed before the shutdown.
            if let Some(stream) =
                link.stream.as_ref().filter(|_| !link.is_sending || link.after != AfterSend::Close)
            {
                let _ = rustix::net::shutdown(stream, rustix::net::Shutdown::Both);
            }
        }
        if self.settle(None) {
            // SAFETY: nothing is under way, so that the kernel writes to none of them, and they are
            // not used again.
            unsafe { ManuallyDrop::drop(&mut self.buffers) };
        } else {
            // The kernel may still read or write them: better lost than reused.
            self.links.drain(..).for_each(|link| std::mem::forget(link.sending));
        }
    }
}
