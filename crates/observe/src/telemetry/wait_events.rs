//! Wait events of the server's processes, from `pg_stat_activity`, polled many times a second by a
//! thread with its own connection. Polls are counted and not kept.
//!
//! Each column counts sightings. `load.IO:WALSync` are client backends and parallel workers of the
//! loaded database that waited for that event. `load.CPU` are those that waited for nothing, and so
//! ran or waited for a CPU. `state.active` and the like count these backends by state.
//! `checkpointer.IO:DataFileWrite` is one of the server's own processes, by kind.
//!
//! `polls` counts the polls: sightings divided by polls are a mean number of processes. Processes
//! of the server that idle in their main loop (type `Activity`) do not count, nor does pgdyno's own
//! connection.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pgdyno_model::telemetry::{Column, Kind};

use super::columns::Columns;
use super::context::TelemetryContext;
use super::cost::thread_cpu;
use super::probe::{Probe, ProbeError, ProbeResult, float};
use super::session::{Query, TelemetrySession};

/// `$1` is the loaded database's oid. The view itself joins more than is needed.
const LOOK: &str = "SELECT \
        CASE WHEN backend_type IN ('client backend', 'parallel worker') THEN 'load' \
            ELSE backend_type END, \
        state, wait_event_type, wait_event, count(*) \
    FROM pg_catalog.pg_stat_get_activity(NULL) \
    WHERE pid <> pg_catalog.pg_backend_pid() AND application_name <> 'pgdyno control' \
      AND (backend_type NOT IN ('client backend', 'parallel worker') OR datid = $1) \
      AND wait_event_type IS DISTINCT FROM 'Activity' \
    GROUP BY 1, 2, 3, 4";

/// The probe's name.
pub(super) const NAME: &str = "wait_events";
/// Prefix of the loaded backends' columns.
const LOAD: &str = "load.";
/// A backend that waits for its client is idle.
const IDLE: &str = "Client:ClientRead";

/// A wait event such as `IO:WalSync`, or `CPU`, and the mean number of loaded backends that were
/// seen in it.
pub type Wait = (String, f64);

struct WaitEvents {
    columns: Columns,
    seen: Arc<Mutex<Seen>>,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    missing: Option<String>,
}

#[derive(Default)]
struct Seen {
    polls: u64,
    counts: BTreeMap<String, u64>,
    failed: Option<ProbeError>,
}

/// Returns none if the experiment switches it off.
pub(super) fn make(context: &TelemetryContext) -> ProbeResult {
    let interval = context.wanted.wait_events.0;
    if interval.is_zero() {
        return Ok(None);
    }
    let session = context.own_session(&context.server.control)?;
    let row = session.row_once(
        "SELECT (SELECT oid FROM pg_catalog.pg_database WHERE datname = $1), \
         pg_catalog.pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'), current_user::text",
        &[&context.server.loaded.database],
    )?;
    let (database, who): (Option<u32>, String) = (row.try_get(0)?, row.try_get(2)?);
    let database =
        database.ok_or_else(|| ProbeError::NoDatabase(context.server.loaded.database.clone()))?;
    let missing = (!row.try_get::<_, bool>(1)?).then(|| {
        format!(
            "{who} sees only the waits of its own sessions; GRANT pg_read_all_stats \
             shows the others'"
        )
    });
    let look = session.prepare(LOOK)?;
    let seen = Arc::new(Mutex::new(Seen::default()));
    let clock = context.cost.add_thread();
    let (end, ended) = channel();
    let looker = Looker { session, look, database, interval, seen: Arc::clone(&seen), clock };
    let thread = std::thread::Builder::new()
        .name("wait events".into())
        .spawn(move || looker.run(&ended))
        .map_err(ProbeError::start("a thread"))?;
    let columns = Columns::default();
    Ok(Some(Box::new(WaitEvents { columns, seen, end: Some(end), thread: Some(thread), missing })))
}

/// The state of the polling thread.
struct Looker {
    session: TelemetrySession,
    look: Query,
    database: u32,
    interval: Duration,
    seen: Arc<Mutex<Seen>>,
    clock: Arc<AtomicU64>,
}

impl Looker {
    fn run(mut self, ended: &Receiver<()>) {
        let mut due = Instant::now();
        loop {
            let rows = self.session.rows(&mut self.look, &[&self.database]);
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            match rows {
                Ok(rows) => {
                    seen.polls += 1;
                    seen.failed = None;
                    if let Err(e) = rows.iter().try_for_each(|row| seen.add_row(row)) {
                        seen.failed = Some(e.into());
                        return;
                    }
                }
                Err(lost @ ProbeError::Lost(_)) => seen.failed = Some(lost),
                Err(e) => {
                    seen.failed = Some(e);
                    return;
                }
            }
            drop(seen);
            let cpu = u64::try_from(thread_cpu().as_nanos()).unwrap_or(u64::MAX);
            self.clock.store(cpu, Ordering::Relaxed);
            let now = Instant::now();
            while due <= now {
                due += self.interval;
            }
            match ended.recv_timeout(due - now) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

impl Seen {
    fn add_row(&mut self, row: &tokio_postgres::Row) -> Result<(), tokio_postgres::Error> {
        let who: Option<String> = row.try_get(0)?;
        let count = u64::try_from(row.try_get::<_, i64>(4)?).unwrap_or(0);
        let (state, kind, event) = (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
        self.add(who.as_deref().unwrap_or("unknown"), state, kind, event, count);
        Ok(())
    }

    fn add(
        &mut self,
        who: &str,
        state: Option<&str>,
        kind: Option<&str>,
        event: Option<&str>,
        count: u64,
    ) {
        let mut plus = |name: String| *self.counts.entry(name).or_default() += count;
        let load = who == "load";
        if let Some(state) = state.filter(|_| load) {
            plus(format!("state.{state}"));
        }
        match (kind, event) {
            (Some(kind), Some(event)) => plus(format!("{who}.{kind}:{event}")),
            // Other users' sessions show neither.
            _ if load && state.is_none() => plus("load.(not visible)".into()),
            _ => plus(format!("{who}.CPU")),
        }
    }
}

impl Probe for WaitEvents {
    fn columns(&self) -> &[Column] {
        self.columns.all()
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = &seen.failed {
            return Err(why.clone());
        }
        let mut row = self.columns.row();
        row.set("polls", "count", Kind::Counter, float(seen.polls));
        for (name, count) in &seen.counts {
            row.set(name, "count", Kind::Counter, float(*count));
        }
        Ok(row.values())
    }

    fn missing_data(&self) -> Option<String> {
        self.missing.clone()
    }
}

impl Drop for WaitEvents {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns the waits of the loaded backends between two samples, most frequent first. Idle backends
/// are left out.
pub(super) fn mean_waits(
    columns: &[Column],
    earlier: &[Option<f64>],
    later: &[Option<f64>],
) -> Vec<Wait> {
    // A column that was added later was 0 until then.
    let change = |place: usize| {
        let at = |sample: &[Option<f64>]| sample.get(place).copied().flatten().unwrap_or(0.0);
        at(later) - at(earlier)
    };
    let polls = columns.iter().position(|column| column.name == "polls").map_or(0.0, change);
    if polls <= 0.0 {
        return Vec::new();
    }
    let wait = |(place, column): (usize, &Column)| {
        let event = column.name.strip_prefix(LOAD).filter(|event| *event != IDLE)?;
        Some((event.to_owned(), change(place) / polls)).filter(|(_, mean)| *mean > 0.0)
    };
    let mut waits: Vec<Wait> = columns.iter().enumerate().filter_map(wait).collect();
    waits.sort_by(|a, b| b.1.total_cmp(&a.1));
    waits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::probe::column;

    #[test]
    fn sightings_are_kept_apart_by_who_waits_and_counted_by_state_for_the_load_alone() {
        let mut seen = Seen::default();
        seen.add("load", Some("active"), Some("LWLock"), Some("WALWrite"), 3);
        seen.add("load", Some("active"), None, None, 2);
        seen.add("load", Some("idle"), Some("Client"), Some("ClientRead"), 4);
        seen.add("load", None, None, None, 1);
        seen.add("checkpointer", None, Some("IO"), Some("DataFileSync"), 1);
        let counts: Vec<(&str, u64)> = seen.counts.iter().map(|(n, c)| (n.as_str(), *c)).collect();
        assert_eq!(
            counts,
            [
                ("checkpointer.IO:DataFileSync", 1),
                ("load.(not visible)", 1),
                ("load.CPU", 2),
                ("load.Client:ClientRead", 4),
                ("load.LWLock:WALWrite", 3),
                ("state.active", 5),
                ("state.idle", 4)
            ]
        );
    }

    #[test]
    fn mean_waits_are_sightings_by_poll_without_idle_backends() {
        let columns: Vec<Column> =
            ["polls", "load.IO:WalSync", "load.Client:ClientRead", "state.active", "load.CPU"]
                .map(|name| column(name, "count", Kind::Counter))
                .into();
        // `load.CPU` was seen for the first time in the second sample.
        let earlier = [10.0, 20.0, 5.0, 9.0].map(Some);
        let later = [20.0, 40.0, 95.0, 99.0, 35.0].map(Some);
        assert_eq!(
            mean_waits(&columns, &earlier, &later),
            [("CPU".to_owned(), 3.5), ("IO:WalSync".to_owned(), 2.0)]
        );
        assert_eq!(mean_waits(&columns, &later, &later), []);
    }
}
