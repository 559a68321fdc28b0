//! Asks, by a session of its own, what a process of the server's waits for.

use std::sync::Arc;
use std::time::Duration;

use pgdyno_model::target::Target;
use tokio_postgres::SimpleQueryMessage;

use super::client::Client;
use super::config::{APPLICATION, SEARCH_PATH, config};
use super::wait::Wait;
use super::watcher::{Answer, Ask};
use crate::error::ConnectError;

/// How long an answer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Returns how to ask the server of `target`.
pub(super) fn questions(target: &Target) -> Ask {
    let target = target.clone();
    Arc::new(move |backend| {
        let (target, mut session) = (target.clone(), None);
        Box::new(move || answer(&mut session, &target, backend))
    })
}

/// Asks once; connects first where there is no session.
fn answer(session: &mut Option<Client>, target: &Target, backend: u32) -> Answer {
    let client = match session {
        Some(client) => client,
        None => {
            let config = config(target, Some(SEARCH_PATH));
            match Client::connect(target, &config, None, ANSWER_LIMIT) {
                Ok(mut client) => {
                    client.set_statement_limit(Some(ANSWER_LIMIT));
                    session.insert(client)
                }
                Err(ConnectError::Server { .. }) => return Answer::NotSeen,
                Err(_) => return Answer::None,
            }
        }
    };
    // The last columns: how long a lock has been waited for, and whether pgdyno alone is in the
    // way.
    let sql = format!(
        "SELECT wait_event_type, wait_event, array_to_string(pg_blocking_pids(pid), ' '), \
         current_setting('synchronous_standby_names'), \
         (SELECT extract(epoch FROM clock_timestamp() - min(waitstart)) FROM pg_locks l \
          WHERE l.pid = a.pid AND NOT granted), \
         (SELECT bool_and(application_name = '{APPLICATION}') FROM pg_stat_activity b \
          WHERE b.pid = ANY (pg_blocking_pids(a.pid))) \
         FROM pg_stat_activity a WHERE pid = {backend}"
    );
    match client.simple_query(&sql) {
        Ok(rows) => rows.iter().find_map(read_answer).unwrap_or(Answer::NotSeen),
        Err(e) if e.as_db_error().is_some() => Answer::NotSeen,
        Err(_) => {
            *session = None;
            Answer::None
        }
    }
}

fn read_answer(message: &SimpleQueryMessage) -> Option<Answer> {
    let SimpleQueryMessage::Row(row) = message else { return None };
    let column = |n| row.get(n).unwrap_or_default();
    let (class, event) = (column(0), column(1));
    let is_among_ours = column(5) == "t";
    let wait = match (class, event) {
        // Work of the statement's own.
        ("IPC", _)
            if ["Parallel", "Hash", "ExecuteGather"].iter().any(|e| event.starts_with(e)) =>
        {
            return Some(Answer::Works);
        }
        ("Lock", _) if !is_among_ours => {
            let holders = column(2).split(' ').filter_map(|pid| pid.parse().ok()).collect();
            Wait::Lock { kind: event.to_owned(), holders }
        }
        ("IPC", "SyncRep") => Wait::Standby { names: column(3).to_owned() },
        ("BufferPin" | "IPC" | "Lock", _) => Wait::Process { event: format!("{class}: {event}") },
        _ => return Some(Answer::Works),
    };
    let waited = column(4).parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    Some(Answer::Waits(wait, waited))
}
