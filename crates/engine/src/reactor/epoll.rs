//! A reactor on edge-triggered epoll: one wait, then reads and writes that do not block.

use std::io;
use std::time::Duration;

use pgdyno_connect::Stream;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::alarm::Alarm;
use super::{AfterSend, Connector, Reactor, ReactorHandler, ReconnectError, timespec};
use crate::schedule::{Clock, Moment};

/// Bytes read at once.
const READ: usize = 64 * 1024;
/// Reads from one connection before other connections have their turn.
const READS: usize = 16;
/// Events taken from the kernel at once.
const EVENTS: usize = 256;

/// A connection.
struct Link {
    /// None once the connection is closed.
    stream: Option<Stream>,
    /// Bytes that are not sent yet.
    out: Vec<u8>,
    /// Whether the kernel took only a part, and will report when it takes more.
    blocked: bool,
    /// State once all bytes are sent.
    after: AfterSend,
    /// Whether sending failed. The connection is read to its end, then reported as lost.
    broken: bool,
}

/// Connections on one epoll instance.
pub struct Epoll {
    connector: Option<Connector>,
    epoll: OwnedFd,
    /// Timer descriptor, watched for its edges.
    timer: OwnedFd,
    alarm: Alarm,
    clock: Clock,
    links: Vec<Link>,
    events: Vec<epoll::Event>,
    scratch: Box<[u8]>,
    /// Connections with more to read than one turn allowed.
    unread: Vec<usize>,
    /// Connections that are to be refilled.
    drained: Vec<usize>,
    /// Connections that were lost while sending, with the error.
    gone: Vec<(usize, String)>,
}

impl Epoll {
    /// Creates a reactor of `streams`, which do not block; `connector` makes new connections.
    ///
    /// # Errors
    /// The kernel refuses an epoll instance or a registration.
    pub fn new(
        clock: Clock,
        streams: Vec<Stream>,
        connector: Option<Connector>,
    ) -> io::Result<Self> {
        Self::with_links(clock, streams.into_iter().map(Some).collect(), connector)
    }

    /// Creates a reactor of `count` connections that `connector` will make.
    ///
    /// # Errors
    /// The kernel refuses an epoll instance.
    pub fn without_connections(
        clock: Clock,
        count: usize,
        connector: Option<Connector>,
    ) -> io::Result<Self> {
        Self::with_links(clock, std::iter::repeat_with(|| None).take(count).collect(), connector)
    }

    fn with_links(
        clock: Clock,
        streams: Vec<Option<Stream>>,
        connector: Option<Connector>,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        epoll::add(&epoll, &timer, ALARM, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        let mut links = Vec::with_capacity(streams.len());
        for (index, stream) in streams.into_iter().enumerate() {
            if let Some(stream) = &stream {
                epoll::add(&epoll, stream, data(index), READABLE)?;
            }
            links.push(Link {
                stream,
                out: Vec::with_capacity(512),
                blocked: false,
                after: AfterSend::Open,
                broken: false,
            });
        }
        Ok(Self {
            connector,
            epoll,
            timer,
            alarm: Alarm::new(clock),
            clock,
            events: Vec::with_capacity(EVENTS),
            scratch: vec![0; READ].into_boxed_slice(),
            unread: Vec::with_capacity(links.len()),
            drained: Vec::new(),
            gone: Vec::new(),
            links,
        })
    }

    /// Sends as much as the kernel takes. A failure is reported by the next turn.
    fn flush(&mut self, index: usize) {
        let link = &mut self.links[index];
        let Some(stream) = link.stream.as_mut().filter(|_| !link.broken) else {
            link.out.clear();
            return;
        };
        let mut sent = 0;
        let failure = loop {
            if sent == link.out.len() {
                break None;
            }
            match stream.write(&link.out[sent..]) {
                Ok(0) => break Some("the connection takes no more bytes".to_owned()),
                Ok(n) => sent += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    link.out.drain(..sent);
                    if !link.blocked {
                        link.blocked = true;
                        // Not asked for before: every byte that the server reads would wake this
                        // thread.
                        if let Err(e) = epoll::modify(
                            &self.epoll,
                            &*stream,
                            data(index),
                            READABLE | epoll::EventFlags::OUT,
                        ) {
                            break Some(format!("epoll refuses the connection: {e}"));
                        }
                    }
                    return;
                }
                Err(e) => break Some(e.to_string()),
            }
        };
        link.out.clear();
        if let Some(how) = failure {
            if link.after == AfterSend::Close {
                link.stream = None;
            } else {
                link.broken = true;
                self.gone.push((index, how));
            }
            return;
        }
        if link.blocked {
            link.blocked = false;
            // A failure costs some wake-ups in vain.
            let _ = epoll::modify(&self.epoll, &*stream, data(index), READABLE);
        }
        match link.after {
            AfterSend::Open => {}
            AfterSend::Refill => {
                link.after = AfterSend::Open;
                self.drained.push(index);
            }
            AfterSend::Close => {
                stream.shutdown();
                link.stream = None;
            }
        }
    }

    /// Reads until the connection is drained; `hung_up` says that its end has been reported.
    fn read(&mut self, index: usize, hung_up: bool, driver: &mut impl ReactorHandler) {
        for _ in 0..READS {
            let link = &mut self.links[index];
            if link.after == AfterSend::Close {
                return;
            }
            let Some(stream) = &mut link.stream else { return };
            let how = match stream.read(&mut self.scratch) {
                Ok(0) => "the server closed the connection".to_owned(),
                Ok(n) => {
                    // Read for each reply: replies before it in the batch took their time.
                    let now = self.clock.now();
                    let after = driver.received(index, &self.scratch[..n], now, &mut link.out);
                    link.after = link.after.max(after);
                    if link.after == AfterSend::Close || !link.out.is_empty() {
                        self.flush(index);
                    }
                    // A short read drained the socket: the next byte is a new edge. The end of the
                    // stream may not be one.
                    if n < READ && !hung_up {
                        return;
                    }
                    continue;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => e.to_string(),
            };
            link.stream = None;
            link.out.clear();
            driver.lost(index, &how, self.clock.now());
            return;
        }
        self.unread.push(index);
    }

    /// Lets `driver` append more bytes for a connection that has taken all others.
    fn refill(&mut self, index: usize, driver: &mut impl ReactorHandler) {
        let link = &mut self.links[index];
        if link.stream.is_some() && link.after != AfterSend::Close {
            link.after = driver.refill(index, self.clock.now(), &mut link.out);
            self.flush(index);
        }
    }

    /// Makes the timer go off at `at` or before.
    #[inline]
    fn set_timer(&mut self, at: Moment) -> io::Result<()> {
        if let Some(it_value) = self.alarm.advance(at) {
            let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
            timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        }
        Ok(())
    }

    fn report_gone(&mut self, driver: &mut impl ReactorHandler) {
        while let Some((index, how)) = self.gone.pop() {
            // Bytes that the server sent before it hung up are still to be read.
            self.read(index, true, driver);
            let link = &mut self.links[index];
            if link.stream.take().is_some() && link.after != AfterSend::Close {
                driver.lost(index, &how, self.clock.now());
            }
        }
    }
}

const READABLE: epoll::EventFlags =
    epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP).union(epoll::EventFlags::ET);

const ALARM: epoll::EventData = epoll::EventData::new_u64(u64::MAX);

fn data(index: usize) -> epoll::EventData {
    epoll::EventData::new_u64(index as u64)
}

impl Reactor for Epoll {
    fn now(&self) -> Moment {
        self.clock.now()
    }

    fn send(&mut self, link: usize, fill: &mut dyn FnMut(&mut Vec<u8>) -> AfterSend) {
        let after = fill(&mut self.links[link].out);
        self.links[link].after = self.links[link].after.max(after);
        self.flush(link);
    }

    fn reconnect(&mut self, link: usize) -> Result<Duration, ReconnectError> {
        let begun = self.clock.now();
        let Some(connector) = &mut self.connector else {
            return Err(ReconnectError::NoConnector);
        };
        self.gone.retain(|(index, _)| *index != link);
        self.unread.retain(|index| *index != link);
        self.drained.retain(|index| *index != link);
        // The old connection is closed first: a server at its limit has no room for both.
        self.links[link].stream = None;
        let stream = connector(link)?;
        epoll::add(&self.epoll, &stream, data(link), READABLE).map_err(|cause| {
            ReconnectError::Refused { action: "epoll refuses the connection", cause: cause.into() }
        })?;
        let link = &mut self.links[link];
        link.stream = Some(stream);
        link.out.clear();
        (link.blocked, link.broken, link.after) = (false, false, AfterSend::Open);
        Ok(self.clock.now().since(begun))
    }

    fn turn(
        &mut self,
        now: Moment,
        until: Moment,
        driver: &mut impl ReactorHandler,
    ) -> io::Result<()> {
        self.report_gone(driver);
        // With more to read, or no time to wait, only events that are there are taken.
        let waits = self.unread.is_empty() && self.drained.is_empty();
        let timeout = if waits && until > now {
            self.set_timer(until)?;
            None
        } else {
            Some(timespec(Duration::ZERO))
        };
        self.events.clear();
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut self.events),
            timeout.as_ref(),
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        // Connections that are drained again have the next turn.
        for _ in 0..self.drained.len() {
            let index = self.drained.remove(0);
            self.refill(index, driver);
        }
        // Connections put back while they are read have the next turn.
        for _ in 0..self.unread.len() {
            let index = self.unread.remove(0);
            self.read(index, true, driver);
        }
        for n in 0..self.events.len() {
            let event = self.events[n];
            let flags = event.flags;
            if event.data.u64() == ALARM.u64() {
                self.alarm.went_off();
                continue;
            }
            let Ok(index) = usize::try_from(event.data.u64()) else { continue };
            if flags.contains(epoll::EventFlags::OUT) && self.links[index].blocked {
                self.flush(index);
            }
            let ends = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
            if flags.intersects(epoll::EventFlags::IN | ends) {
                self.read(index, flags.intersects(ends), driver);
            }
        }
        self.report_gone(driver);
        Ok(())
    }
}
