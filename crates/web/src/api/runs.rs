//! `GET /api/runs`: the list, from one query and what is known by heart.

use std::collections::{BTreeMap, BTreeSet};

use crate::digest::DigestCache;
use axum::extract::State;
use axum::response::Response;
use pgdyno_store::ListedRun;
use pgdyno_store::notes::{Note, Notes};

use super::documents::{NotedRow, RunRow, Runs, respond};
use crate::app::{App, Shared, blocking};
use crate::response::ApiError;

/// `GET /api/runs`.
pub(crate) async fn runs(State(app): Shared) -> Result<Response, ApiError> {
    blocking(&app, |app| respond(&list(app)?)).await
}

fn list(app: &App) -> Result<Runs, ApiError> {
    let contents = app.contents()?;
    // Notes that cannot be trusted are left out; `/api/info` says why.
    let notes = Notes::open_for_reading(app.path()).ok().flatten();
    let mut notes = notes.map(|notes| notes.all()).transpose()?.unwrap_or_default();
    // Live files that cannot be trusted are left out; `/api/live` says why.
    let live = app.live_runs().unwrap_or_default();
    let digests = app.digests();
    let pending = contents.runs.iter().filter(|run| digests.get(run).is_none()).count();
    let row = |run: &ListedRun| row(run, &digests, &mut notes, &live);
    let runs = contents.runs.iter().map(row).collect();
    let others = contents.others.iter().map(|other| {
        let Note { text, tags } = notes.remove(other.id()).unwrap_or_default();
        NotedRow { row: other.clone(), note: text, tags }
    });
    Ok(Runs { runs, others: others.collect(), pending })
}

fn row(
    run: &ListedRun,
    digests: &DigestCache,
    notes: &mut BTreeMap<String, Note>,
    live: &BTreeSet<String>,
) -> RunRow {
    // A run that goes on shows its trials so far, and an answer only once it is that of all.
    let (last, now) = (digests.last(&run.summary.id), digests.get(run));
    let Note { text, tags } = notes.remove(&run.summary.id).unwrap_or_default();
    RunRow {
        is_live: live.contains(&run.summary.id),
        summary: run.summary.clone(),
        host: last.and_then(|digest| digest.host.clone()),
        badge: now.map(|digest| digest.badge),
        headline: now.map(|digest| digest.headline.clone()),
        spark: last.map(|digest| digest.spark.clone()).unwrap_or_default(),
        note: text,
        tags,
    }
}
