//! The coordinator of several workers: a state machine without I/O.
//!
//! Call [`Coordinator::receive`] with every report and the time at which it arrived,
//! [`Coordinator::disconnected`] when a worker is gone, and [`Coordinator::tick`] at least every
//! tenth of a second. After each call take what is to be done from [`Coordinator::next_action`].
//! Once [`Coordinator::is_over`], [`Coordinator::finish`] returns the measurement or why there is
//! none.
//!
//! Any fault of one worker makes the load invalid and stops all others.

mod member;
mod outcome;

use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::time::Duration;

use member::{Member, Stage};
use pgdyno_engine::aggregate::Aggregate;
use pgdyno_engine::schedule::{Moment, Schedule};
use pgdyno_engine::tally::Tally;
use pgdyno_engine::{LiveSecond, LoadSpec};
use pgdyno_model::measurement::pinned;

use crate::clock::{Exchange, Nanos};
use crate::error::{Fault, GeneratorsError, LoadTime};
use crate::generators::Limits;
use crate::protocol::{Done, Hello, IntervalCounts, LogKind, Order, Report};

/// From the order to begin until the beginning.
const LEAD: Duration = Duration::from_secs(2);
/// Between two exchanges with a worker, and between two reports of one.
const BEAT: Duration = Duration::from_secs(1);
const SECOND: Duration = Duration::from_secs(1);
/// Beats that a worker may miss.
const MISSED: u32 = 3;
/// Exchanges before a worker is given its share.
const FIRST_EXCHANGES: usize = 8;
/// Time that a worker has to say hello: `ssh` may have to go a long way.
const HELLO: Duration = Duration::from_secs(60);

/// One thing for the caller of [`Coordinator::next_action`] to do.
#[derive(Debug)]
pub enum CoordinatorAction {
    /// Send an order to the worker of this index.
    Send(usize, Order),
    /// Have the server let in connections from these addresses, then call
    /// [`Coordinator::admitted`].
    Admit(BTreeSet<IpAddr>),
    /// Note that the measured window opened at this time.
    Opened(Nanos),
    /// Show a second that all workers have ended.
    Second(Box<LiveSecond>),
    /// Show a client's message.
    Log(LogKind, String),
}

/// Coordinator of a load.
pub struct Coordinator {
    members: Vec<Member>,
    limits: Limits,
    /// Server that has to let workers in first.
    server: Option<SocketAddr>,
    /// The load's start is moment 0.
    schedule: Schedule,
    aggregate: Aggregate,
    /// Sum of the totals that workers reported.
    totals: Option<Tally>,
    began: Nanos,
    /// When all were asked to connect, and when all had done so.
    connecting: Option<Nanos>,
    ready: Option<Nanos>,
    go_at: Option<Nanos>,
    opened: bool,
    /// When somebody asked for the end.
    stopped: Option<Nanos>,
    failure: Option<GeneratorsError>,
    actions: VecDeque<CoordinatorAction>,
}

fn nanos(span: Duration) -> Nanos {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl Coordinator {
    /// Creates the coordinator of `spec` at `now`; each worker has a name and runs a share of the
    /// event loops.
    pub fn new(
        spec: &LoadSpec,
        shares: Vec<(String, Range<u32>)>,
        limits: Limits,
        now: Nanos,
    ) -> Self {
        let schedule = spec.schedule(Moment(0));
        let count = shares.len();
        let member = |(name, share): (String, Range<u32>)| Member::new(name, spec, share);
        Self {
            members: shares.into_iter().map(member).collect(),
            limits,
            server: None,
            schedule,
            aggregate: Aggregate::new(schedule, Moment(0), count),
            totals: None,
            began: now,
            connecting: None,
            ready: None,
            go_at: None,
            opened: false,
            stopped: None,
            failure: None,
            actions: VecDeque::new(),
        }
    }

    /// Has the server at `server` let workers in before they connect.
    #[must_use]
    pub fn admitting(self, server: SocketAddr) -> Self {
        Self { server: Some(server), ..self }
    }

    /// Returns the next thing to do.
    pub fn next_action(&mut self) -> Option<CoordinatorAction> {
        self.actions.pop_front()
    }

    /// Returns whether all workers are done, or the load is invalid.
    pub fn is_over(&self) -> bool {
        self.failure.is_some() || self.members.iter().all(|member| member.stage == Stage::Gone)
    }

    /// Returns whether the worker of this index has nothing more to do.
    pub fn is_gone(&self, worker: usize) -> bool {
        self.members[worker].stage == Stage::Gone
    }

    /// Takes a report of a worker that arrived at `now`.
    pub fn receive(&mut self, worker: usize, report: Report, now: Nanos) {
        self.members[worker].last_heard = now;
        if self.failure.is_some() || self.is_gone(worker) {
            return;
        }
        let taken = match report {
            Report::Hello(hello) => self.greet(worker, &hello, now),
            Report::Time { sent, received, replied } => {
                self.set_clock(worker, Exchange { sent, received, replied, arrived: now }, now)
            }
            Report::Route(address) => self.note_route(worker, address),
            Report::Ready => self.note_ready(worker, now),
            Report::Started { at } => self.note_start(worker, at, now),
            Report::Second { number, counts } => self.add(worker, number, &counts),
            Report::Done(done) => self.note_done(worker, &done, now),
            Report::Log(kind, text) => {
                self.actions.push_back(CoordinatorAction::Log(kind, text));
                Ok(())
            }
            Report::Failed { is_interrupted: true, .. } if self.stopped.is_some() => {
                self.members[worker].stage = Stage::Gone;
                Ok(())
            }
            Report::Failed { reason, help, .. } => Err(Fault::Load { reason, help }),
        };
        if let Err(fault) = taken {
            self.fail(worker, fault, now);
        }
    }

    /// Notes that the connection to a worker ended at `now`; `how` says what is known of it.
    pub fn disconnected(&mut self, worker: usize, fault: Fault, now: Nanos) {
        if self.is_gone(worker) || self.failure.is_some() {
            return;
        }
        match self.stopped {
            Some(_) => self.members[worker].stage = Stage::Gone,
            None => self.fail(worker, fault, now),
        }
    }

    /// Does what is due at `now`.
    pub fn tick(&mut self, now: Nanos) {
        if self.failure.is_some() {
            return;
        }
        for worker in 0..self.members.len() {
            let member = &mut self.members[worker];
            let (limit, since) = match member.stage {
                Stage::Gone => continue,
                Stage::Launched => (HELLO, self.began),
                _ => (BEAT * MISSED, member.last_heard),
            };
            if now.saturating_sub(since) > nanos(limit) {
                return self.fail(worker, Fault::Silent(limit), now);
            }
            if member.stage != Stage::Launched && now >= member.next_exchange {
                member.next_exchange = now.saturating_add(nanos(BEAT));
                self.send(worker, Order::Time(now));
            }
        }
        if let Some(opening) = self.opening()
            && !self.opened
            && now >= opening
            && self.stopped.is_none()
        {
            self.opened = true;
            self.actions.push_back(CoordinatorAction::Opened(opening));
        }
    }

    /// Ends the load early, as of `now`.
    pub fn stop(&mut self, now: Nanos) {
        if self.stopped.is_none() && !self.is_over() {
            self.stopped = Some(now);
            self.stop_all();
        }
    }

    /// When the measured window opens, once that is agreed.
    fn opening(&self) -> Option<Nanos> {
        self.go_at.map(|go| go.saturating_add(self.schedule.opening.0))
    }

    fn send(&mut self, worker: usize, order: Order) {
        self.actions.push_back(CoordinatorAction::Send(worker, order));
    }

    /// Stops all workers that have not ended; those that do nothing yet are gone with it.
    fn stop_all(&mut self) {
        for worker in 0..self.members.len() {
            match self.members[worker].stage {
                Stage::Gone => continue,
                Stage::Launched | Stage::Greeted => self.members[worker].stage = Stage::Gone,
                Stage::Connecting | Stage::Ready | Stage::Running => {}
            }
            self.send(worker, Order::Stop);
        }
    }

    /// Makes the load invalid.
    fn fail(&mut self, worker: usize, fault: Fault, now: Nanos) {
        let when = match (fault.since(), self.go_at) {
            (Some(second), _) => LoadTime::Second(second),
            (None, Some(go)) if now >= go => LoadTime::Second((now - go) / nanos(SECOND)),
            (None, _) => LoadTime::Before,
        };
        let name = self.members[worker].name.clone();
        self.failure = Some(GeneratorsError::Generator { name, when, fault });
        self.stop_all();
    }

    fn greet(&mut self, worker: usize, hello: &Hello, now: Nanos) -> Result<(), Fault> {
        let ours = Hello::ours();
        if *hello != ours {
            let words =
                |h: &Hello| format!("pgdyno {} with worker protocol {}", h.pgdyno, h.protocol);
            return Err(Fault::Version { ours: words(&ours), theirs: words(hello) });
        }
        self.members[worker].advance(Stage::Launched, Stage::Greeted)?;
        self.members[worker].next_exchange = now;
        if let Some(server) = self.server {
            self.send(worker, Order::Route(server));
        }
        self.tick(now);
        Ok(())
    }

    fn set_clock(&mut self, worker: usize, exchange: Exchange, now: Nanos) -> Result<(), Fault> {
        let member = &mut self.members[worker];
        member.clock.add(exchange).map_err(Fault::Clock)?;
        if member.stage != Stage::Greeted {
            return Ok(());
        }
        if member.clock.exchanges() < FIRST_EXCHANGES {
            member.next_exchange = now.saturating_add(nanos(BEAT));
            self.send(worker, Order::Time(now));
            return Ok(());
        }
        self.connect(worker, now);
        Ok(())
    }

    /// Has a worker connect its clients, once its clock is known and the server lets it in.
    fn connect(&mut self, worker: usize, now: Nanos) {
        let member = &mut self.members[worker];
        let is_known = member.clock.exchanges() >= FIRST_EXCHANGES;
        if self.server.is_some() || member.stage != Stage::Greeted || !is_known {
            return;
        }
        member.stage = Stage::Connecting;
        let description = member.description.clone();
        self.connecting.get_or_insert(now);
        self.send(worker, Order::Prepare(description));
    }

    /// Notes from which address a worker connects. Once all are known, the server is told.
    fn note_route(&mut self, worker: usize, address: IpAddr) -> Result<(), Fault> {
        let member = &mut self.members[worker];
        if self.server.is_none() || member.address.replace(address).is_some() {
            return Err(Fault::Protocol("an address that nobody asked for".to_owned()));
        }
        let known: Option<BTreeSet<IpAddr>> = self.members.iter().map(|m| m.address).collect();
        self.actions.extend(known.map(CoordinatorAction::Admit));
        Ok(())
    }

    /// Notes at `now` that the server lets all workers in, or why it does not.
    pub fn admitted(&mut self, how: Result<(), String>, now: Nanos) {
        self.server = None;
        match how {
            Ok(()) => (0..self.members.len()).for_each(|worker| self.connect(worker, now)),
            Err(why) => {
                self.failure.get_or_insert(GeneratorsError::Admission(why));
                self.stop_all();
            }
        }
    }

    fn note_ready(&mut self, worker: usize, now: Nanos) -> Result<(), Fault> {
        self.members[worker].advance(Stage::Connecting, Stage::Ready)?;
        if self.stopped.is_none() && self.members.iter().all(|m| m.stage == Stage::Ready) {
            self.go(now);
        }
        Ok(())
    }

    /// Has all workers begin at one instant, if their clocks are known well enough.
    fn go(&mut self, now: Nanos) {
        let at = now.saturating_add(nanos(LEAD));
        self.ready = Some(now);
        let mut orders = Vec::new();
        for (worker, member) in self.members.iter().enumerate() {
            // As much is known at the start as now, less the drift until then.
            let Some(offset) = member.clock.offset(at) else { continue };
            if offset.uncertainty > nanos(self.limits.max_start_skew) {
                let fault = Fault::Uncertain {
                    uncertainty_ns: offset.uncertainty,
                    allowed: self.limits.max_start_skew,
                };
                return self.fail(worker, fault, now);
            }
            orders.push((worker, Order::Go { at: offset.to_theirs(at) }));
        }
        self.go_at = Some(at);
        for (worker, order) in orders {
            self.send(worker, order);
        }
    }

    fn note_start(&mut self, worker: usize, at: Nanos, now: Nanos) -> Result<(), Fault> {
        let member = &mut self.members[worker];
        let (Some(go), Some(offset)) = (self.go_at, member.clock.offset(now)) else {
            return Err(Fault::Protocol("its start before it was asked to begin".to_owned()));
        };
        member.advance(Stage::Ready, Stage::Running)?;
        let start = i128::from(offset.to_ours(at)) - i128::from(go);
        let skew_ns = i64::try_from(start).unwrap_or(i64::MAX);
        let uncertainty_ns = offset.uncertainty;
        member.start = Some((skew_ns, uncertainty_ns));
        let allowed = self.limits.max_start_skew;
        if skew_ns.unsigned_abs().saturating_add(uncertainty_ns) > nanos(allowed) {
            return Err(Fault::StartSkew { skew_ns, uncertainty_ns, allowed });
        }
        Ok(())
    }

    fn add(&mut self, worker: usize, number: u64, counts: &IntervalCounts) -> Result<(), Fault> {
        let interval = self.members[worker].take_second(number, counts)?;
        self.aggregate.add(worker, interval);
        self.show_seconds();
        Ok(())
    }

    /// Shows the seconds that all workers have ended.
    fn show_seconds(&mut self) {
        while let Some(interval) = self.aggregate.next_interval() {
            let live = Box::new(self.aggregate.live(&interval));
            self.actions.push_back(CoordinatorAction::Second(live));
        }
    }

    fn note_done(&mut self, worker: usize, done: &Done, now: Nanos) -> Result<(), Fault> {
        let totals = self.members[worker].end(done)?;
        match &mut self.totals {
            Some(sum) => sum.merge(&totals),
            none => *none = Some(totals),
        }
        self.aggregate.ended(worker, Moment(done.ended));
        self.show_seconds();
        let opening = self.schedule.opening;
        let window = Duration::from_nanos(done.ended.saturating_sub(opening.0));
        let share = pinned(done.busiest_thread, window.as_secs_f64());
        if let Some(share) = share.filter(|_| !self.limits.allow_saturated)
            && self.stopped.is_none()
        {
            let of_load = |second: u32| opening.after(SECOND * second).0 / nanos(SECOND);
            return Err(Fault::Saturated { share, since: done.pinned_since.map(of_load) });
        }
        if done.ends_all {
            self.stop(now);
        }
        Ok(())
    }
}
