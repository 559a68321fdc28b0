//! The event loop of a replay: sessions that begin, links that are due, replies that arrive.

use std::cmp::Reverse;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pgdyno_connect::ConnectError;
use pgdyno_engine::reactor::{AfterSend, Reactor};
use pgdyno_engine::schedule::Moment;
use pgdyno_wire::frontend;

use super::{AFTER_CANCEL, LinkState, Player, ReplayProgress};
use crate::connections::Connections;
use crate::report::ReplayEnd;

/// Time within which a stop is noticed.
const STOP_CHECK: Duration = Duration::from_millis(50);
/// Time within which an open connection is noticed.
const CONNECT_CHECK: Duration = Duration::from_millis(1);
/// Time between two reports of progress, and two looks at statements that take too long.
const TICK: Duration = Duration::from_secs(1);

/// A replay cannot go on.
#[derive(Debug)]
pub(crate) enum RunError {
    /// A session that the log begins with cannot be connected.
    Connect(ConnectError),
    /// A signal came before the replay began.
    Interrupted,
    /// The reactor no longer works.
    Reactor(io::Error),
}

/// Plays until all sessions have ended, `stop` is set or the time is over. Returns how it ended and
/// how long it took.
///
/// Sessions that the log begins with are connected before the clock of the replay starts.
///
/// # Errors
/// [`RunError`]; nothing was sent unless the reactor failed.
pub(crate) fn run<R: Reactor>(
    player: &mut Player<'_>,
    reactor: &mut R,
    connections: &mut impl Connections,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(&ReplayProgress),
) -> Result<(ReplayEnd, Duration), RunError> {
    let first = connect_first(player, reactor, connections, stop)?;
    player.origin = reactor.now();
    for link in first {
        wake(player, reactor, link);
    }
    let end = play(player, reactor, connections, stop, observe).map_err(RunError::Reactor)?;
    let elapsed = reactor.now().since(player.origin);
    if end != ReplayEnd::Completed {
        stop_all(player, reactor, connections);
    }
    Ok((end, elapsed))
}

/// Connects the sessions that the log begins with, and returns their links.
fn connect_first<R: Reactor>(
    player: &mut Player<'_>,
    reactor: &mut R,
    connections: &mut impl Connections,
    stop: &AtomicBool,
) -> Result<Vec<usize>, RunError> {
    let mut links = Vec::new();
    while let Some((link, database)) = player.begin_session(Moment(0)) {
        connections.connect(link, database);
        links.push(link);
    }
    while player.connecting > 0 {
        if stop.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        while let Some((link, result)) = connections.finished() {
            result.map_err(RunError::Connect)?;
            reactor.reconnect(link).map_err(|error| RunError::Reactor(io::Error::other(error)))?;
            player.connected(link);
        }
        if player.connecting > 0 {
            let now = reactor.now();
            reactor.turn(now, now.after(CONNECT_CHECK), player).map_err(RunError::Reactor)?;
        }
    }
    Ok(links)
}

fn play<R: Reactor>(
    player: &mut Player<'_>,
    reactor: &mut R,
    connections: &mut impl Connections,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(&ReplayProgress),
) -> io::Result<ReplayEnd> {
    let limit = player.options.max_duration.map_or(Moment::NEVER, |d| player.origin.after(d));
    let mut next_tick = player.origin.after(TICK);
    loop {
        let mut now = reactor.now();
        if stop.load(Ordering::Relaxed) {
            return Ok(ReplayEnd::Interrupted);
        }
        if now >= limit {
            return Ok(ReplayEnd::OutOfTime);
        }
        while let Some((link, database)) = player.begin_session(now) {
            connections.connect(link, database);
        }
        take_connections(player, reactor, connections);
        wake_due(player, reactor);
        if player.used() == 0 && player.next_session == player.recording.sessions.len() {
            return Ok(ReplayEnd::Completed);
        }
        now = reactor.now();
        if now >= next_tick {
            next_tick = now.after(TICK);
            cancel_late(player, reactor, connections, now);
            observe(&player.progress(now));
        }
        let timer = player.timers.peek().map_or(Moment::NEVER, |Reverse((at, _))| *at);
        let look = if player.connecting > 0 { CONNECT_CHECK } else { STOP_CHECK };
        let until = timer.min(player.next_begin()).min(now.after(look)).min(next_tick).min(limit);
        reactor.turn(now, until, player)?;
    }
}

/// Hands connections that are open now to the reactor.
fn take_connections<R: Reactor>(
    player: &mut Player<'_>,
    reactor: &mut R,
    connections: &mut impl Connections,
) {
    if player.connecting == 0 {
        return;
    }
    while let Some((link, result)) = connections.finished() {
        let taken = match result {
            Ok(()) => reactor.reconnect(link).map(drop).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match taken {
            Ok(()) => {
                player.connected(link);
                wake(player, reactor, link);
            }
            Err(how) => player.connection_failed(link, how),
        }
    }
}

/// Wakes links whose time has come.
fn wake_due<R: Reactor>(player: &mut Player<'_>, reactor: &mut R) {
    let now = reactor.now();
    // A link that sleeps again has its turn after the others' replies.
    for _ in 0..player.timers.len() {
        match player.timers.peek() {
            Some(Reverse((at, link))) if *at <= now => {
                let link = *link;
                player.timers.pop();
                wake(player, reactor, link);
            }
            _ => return,
        }
    }
}

fn wake<R: Reactor>(player: &mut Player<'_>, reactor: &mut R, link: usize) {
    let now = reactor.now();
    reactor.send(link, &mut |out| player.advance(link, now, out));
}

/// Has statements that take too long cancelled, and gives up connections that do not answer then.
fn cancel_late<R: Reactor>(
    player: &mut Player<'_>,
    reactor: &mut R,
    connections: &mut impl Connections,
    now: Moment,
) {
    for link in 0..player.links.len() {
        let it = &mut player.links[link];
        if it.state != LinkState::Busy || now < it.current.limit {
            continue;
        }
        if it.current.is_cancelled {
            player.gone(link, "the server does not answer a request to cancel");
            reactor.send(link, &mut |_| AfterSend::Close);
        } else {
            it.current.is_cancelled = true;
            it.current.limit = now.after(AFTER_CANCEL);
            connections.cancel(link);
        }
    }
}

/// Has all statements under way cancelled, and ends all sessions.
fn stop_all<R: Reactor>(
    player: &mut Player<'_>,
    reactor: &mut R,
    connections: &mut impl Connections,
) {
    let is_in = |player: &Player<'_>, link: usize, state| player.links[link].state == state;
    for link in (0..player.links.len()).filter(|link| is_in(player, *link, LinkState::Busy)) {
        connections.cancel(link);
    }
    connections.finish_cancelling();
    for link in 0..player.links.len() {
        if is_in(player, link, LinkState::Free) {
            continue;
        }
        if !is_in(player, link, LinkState::Connecting) {
            reactor.send(link, &mut |out| {
                frontend::terminate(out);
                AfterSend::Close
            });
        }
        player.release(link);
    }
    let rest = &player.recording.sessions[player.next_session..];
    player.tally.unsent += rest.iter().map(|s| s.statements.len() as u64).sum::<u64>();
}
