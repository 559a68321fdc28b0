//! A replay from connection options to its report.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use pgdyno_connect::conninfo::{ConnectOptions, Resolved, resolve};
use pgdyno_connect::control::{ControlClient, ControlError};
use pgdyno_engine::reactor::epoll::Epoll;
use pgdyno_engine::schedule::Clock;
use pgdyno_engine::{allow_open_files, process_cpu_seconds};
use pgdyno_model::target::Servers;

use crate::connections::ConnectionPool;
use crate::error::ReplayError;
use crate::options::{ReplayOptions, Speed};
use crate::player::{Player, ReplayProgress, RunError, run};
use crate::recording::Recording;
use crate::report::{ReplayEnd, ReplayReport};

/// Files that are open beside the sessions' connections: those of threads that cancel, and more.
const OTHER_FILES: usize = 16;

/// Number of sessions that the server has room for, beside those that are there.
const ROOM: &str = "\
    SELECT (pg_catalog.current_setting('max_connections')::int4
        - CASE WHEN pg_catalog.current_setting('is_superuser') = 'on' THEN 0
            ELSE pg_catalog.current_setting('superuser_reserved_connections')::int4
                + coalesce(pg_catalog.current_setting('reserved_connections', true)::int4, 0) END
        - (SELECT count(*) FROM pg_catalog.pg_stat_activity
            WHERE backend_type = 'client backend' AND pid <> pg_catalog.pg_backend_pid()))::text";

/// Names of the databases that take sessions.
const DATABASES: &str = "SELECT datname::text FROM pg_catalog.pg_database WHERE datallowconn";

/// Replays `recording` on the server that `connect` names, as `options` say. `observe` is called
/// once a second.
///
/// Statements that cannot be replayed are not in the recording, and are not sent.
///
/// # Errors
/// [`ReplayError`]: nothing was sent, unless polling the connections failed.
pub fn replay(
    recording: &Recording,
    connect: &ConnectOptions,
    options: &ReplayOptions,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(&ReplayProgress),
) -> Result<ReplayReport, ReplayError> {
    let resolved = resolve(connect)?;
    let room = check_server(recording, &resolved, options)?;
    let links = links(recording, options, room)?;
    allow_open_files(links, 1, OTHER_FILES).map_err(ReplayError::OpenFiles)?;
    let system = |cause| ReplayError::System { cause };
    let servers = recording.databases.iter().map(|name| {
        let name = options.database.as_ref().unwrap_or(name);
        with_database(&resolved.servers, name)
    });
    let mut pool = ConnectionPool::new(links, servers.collect()).map_err(system)?;
    let clock = Clock::new(Instant::now());
    let connector = Some(pool.connector());
    let mut reactor = Epoll::without_connections(clock, links, connector).map_err(system)?;
    let mut player = Player::new(recording, options, links);
    let cpu = process_cpu_seconds();
    let played = run(&mut player, &mut reactor, &mut pool, stop, observe);
    let client_cpu_s = process_cpu_seconds() - cpu;
    let (end, elapsed) = played.map_err(|error| match error {
        RunError::Connect(cause) => ReplayError::Connect { cause },
        RunError::Interrupted => ReplayError::Interrupted,
        RunError::Reactor(cause) => system(cause),
    })?;
    let mut report = empty_report(recording, options, end);
    report.elapsed_s = elapsed.as_secs_f64();
    report.client_cpu_s = client_cpu_s;
    report.set_tally(player.into_tally());
    Ok(report)
}

/// Room that a server has.
struct Room {
    address: String,
    /// Sessions that it takes beside those that are there (count).
    sessions: usize,
}

/// Checks that the server has the databases, and returns how much room it has.
fn check_server(
    recording: &Recording,
    resolved: &Resolved,
    options: &ReplayOptions,
) -> Result<Room, ReplayError> {
    let (mut client, target) = resolved.connect()?;
    let address = target.address.to_string();
    let known = ask(&mut client, "list the databases", DATABASES)?;
    let is_used = |index| recording.sessions.iter().any(|session| session.database == index);
    let wanted: Vec<&String> = match &options.database {
        Some(database) => vec![database],
        None => {
            let all = recording.databases.iter().enumerate();
            all.filter(|(index, _)| is_used(*index)).map(|(_, name)| name).collect()
        }
    };
    let missing: Vec<String> =
        wanted.into_iter().filter(|name| !known.contains(name)).cloned().collect();
    if !missing.is_empty() {
        return Err(ReplayError::NoDatabase { address, missing });
    }
    let room = ask(&mut client, "ask how many sessions the server takes", ROOM)?;
    let sessions = room.first().and_then(|room| room.parse::<i64>().ok()).unwrap_or(0);
    Ok(Room { address, sessions: usize::try_from(sessions).unwrap_or(0) })
}

/// Returns the first value, a text, of each row that `sql` returns.
fn ask(
    client: &mut ControlClient,
    what: &'static str,
    sql: &str,
) -> Result<Vec<String>, ReplayError> {
    let rows = client.query(sql, &[]).map_err(|error| ControlError::query(what, &error))?;
    Ok(rows.iter().filter_map(|row| row.try_get::<_, String>(0).ok()).collect())
}

/// Returns how many sessions may be connected at one time.
fn links(recording: &Recording, options: &ReplayOptions, room: Room) -> Result<usize, ReplayError> {
    let needed = recording.summary().peak_sessions;
    let is_paced = options.speed != Speed::Max;
    let asked = options.max_connections;
    let by_server = Some(room.sessions).filter(|room| asked.is_none_or(|asked| asked >= *room));
    let limit = by_server.or(asked).unwrap_or(room.sessions);
    // Without due times, fewer sessions at one time only take longer.
    if limit == 0 || is_paced && limit < needed {
        let is_by_server = by_server.is_some();
        return Err(ReplayError::TooManySessions {
            address: room.address,
            needed,
            limit,
            is_by_server,
        });
    }
    let wanted = if is_paced { recording.sessions.len() } else { asked.unwrap_or(needed) };
    Ok(wanted.clamp(1, limit))
}

fn with_database(servers: &Servers, name: &str) -> Servers {
    let mut servers = servers.clone();
    servers.targets.iter_mut().for_each(|target| name.clone_into(&mut target.database));
    servers
}

fn empty_report(recording: &Recording, options: &ReplayOptions, end: ReplayEnd) -> ReplayReport {
    let obstacles = recording.obstacles.iter();
    ReplayReport {
        end,
        speed: match options.speed {
            Speed::Factor(factor) => Some(factor),
            Speed::Max => None,
        },
        elapsed_s: 0.0,
        log_span_s: recording.span.as_secs_f64(),
        sessions: 0,
        peak_sessions: 0,
        statements: 0,
        unanswered: 0,
        unsent: 0,
        skipped: obstacles.map(|(obstacle, count, _)| (obstacle.into(), count)).collect(),
        latency: None,
        service: None,
        lag: None,
        service_of_logged: None,
        logged: None,
        errors: Vec::new(),
        failed_only_in_log: 0,
        timed_out: 0,
        lost_sessions: 0,
        first_loss: None,
        failed_connections: 0,
        first_failed_connection: None,
        client_cpu_s: 0.0,
    }
}
